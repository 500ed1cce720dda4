"""Tsetlin Machines as scikit-learn classifiers."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs  # type: ignore[import-untyped]
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from laconic.tsetlin.booleanize import Bit, Thermometer, choose_booleanizer
from laconic.tsetlin.fuzzy import Fuzzy, check_fuzzy
from laconic.tsetlin.geometry import Shape
from laconic.tsetlin.machine import Machine, build, build_coalesced, class_sums, clause_outputs
from laconic.tsetlin.rules import Evidence, Flag, Rule, read_rules, votes_by_class
from laconic.tsetlin.training import fit

EpochHook = Callable[[Any, int], None]  # (the estimator, which can predict by then; epochs done: 1, 2, ...)
BALANCED_FROM = 20  # examples a class, on average, of fuzzy machines
EVIDENCE_SAMPLES = 2000  # clause outputs on more than these would cost more than they tell


class _TsetlinEstimator(ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]  # scikit-learn has no types
    """Everything but which machine is built."""

    machine_: Machine
    classes_: NDArray[Any]

    # Defaults by 5-fold cross-validation on iris, wine, breast cancer and digits: mean accuracy .971 and, coalesced,
    # .967 (.970 and .966 if not balanced). Half or twice the threshold or the epochs, or specificity 2 to 5, changes
    # the former by .002 at most. Twenty clauses alone: .934; twenty fuzzy ones, Fuzzy(10, 20): .958 to .963 with a
    # threshold of once to eight times what they can vote and specificity 3 to 50.
    # Whether balanced: docs/results/fuzzy.md. No number of examples or classes was found at which it is bad for classic
    # clauses; fuzzy ones lost ten points with ten examples a class.
    def __init__(
        self,
        n_clauses: int = 400,
        threshold: int | None = None,  # None: half of n_clauses, of fuzzy ones twice what they can vote
        specificity: float = 3.0,
        epochs: int = 30,
        *,
        boost: bool = True,
        balanced: bool | None = None,  # tsetlin/balance.py; None: unless fuzzy clauses have few examples a class
        fuzzy: Fuzzy | None = None,  # clauses that vote although some literals fail: tsetlin/fuzzy.py
        patch: tuple[int, int] | None = None,  # None: flat; (height, width): convolutional, on images
        image_shape: tuple[int, ...] | None = None,  # of the rows of a 2-D X; image stacks bring their own
        booleanizer: Any = "auto",  # a transformer; None for 0/1 data; "auto": as is if 0/1 integers, else thermometer
        n_jobs: int | None = None,
        random_state: Any = None,
        on_epoch: EpochHook | None = None,
    ):
        self.n_clauses = n_clauses
        self.threshold = threshold
        self.specificity = specificity
        self.epochs = epochs
        self.boost = boost
        self.balanced = balanced
        self.fuzzy = fuzzy
        self.patch = patch
        self.image_shape = image_shape
        self.booleanizer = booleanizer
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.on_epoch = on_epoch

    @abstractmethod
    def _build(self, shape: Shape, n_classes: int, **settings: Any) -> Machine: ...

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """X: [n, features] or, with patch, images [n, height, width] or [n, height, width, channels]."""
        rows, labels = self._check(X, y, is_first=True)
        self.classes_ = np.unique(labels)
        self._start(rows)
        return self._train(rows, self._index(labels), self.epochs)

    def partial_fit(self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None) -> Self:
        """One epoch more; the first call fits the booleanizer and settles the classes (those in y unless given)."""
        is_first = not hasattr(self, "machine_")
        rows, labels = self._check(X, y, is_first=is_first)
        if is_first:
            self.classes_ = np.unique(labels if classes is None else classes)
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(f"classes are {np.unique(classes)} but were {self.classes_} at first; give those or none")
        indices = self._index(labels)
        if is_first:
            self._start(rows)
        return self._train(rows, indices, 1)

    def decision_function(self, X: ArrayLike) -> NDArray[np.int32]:
        """Class sums [n, class]; with two classes [n], the second's sum less the first's."""
        check_is_fitted(self)
        bits = self._booleanize(self._check(X, is_first=False))
        sums = class_sums(self.machine_, bits, threads=effective_n_jobs(self.n_jobs))
        return sums[:, 1] - sums[:, 0] if len(self.classes_) == 2 else sums

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        sums = self.decision_function(X)
        winners: NDArray[Any] = self.classes_[sums.argmax(1) if sums.ndim == 2 else (sums > 0).astype(np.intp)]
        return winners

    @property
    def rules_(self) -> list[Rule]:
        """Rules by class, heaviest first; support and precision are over up to 2,000 samples of the last fit."""
        check_is_fitted(self)
        return read_rules(self.machine_, self.classes_.tolist(), self._name_bits(), self._evidence)

    def rules(self, X: ArrayLike, y: ArrayLike, *, feature_names: Sequence[str] | None = None) -> list[Rule]:
        """The same rules with support and precision over these samples, and in these names if given."""
        check_is_fitted(self)
        if feature_names is not None and (self.image_shape_ or len(feature_names) != self.n_features_in_):
            due = "none for images" if self.image_shape_ else f"{self.n_features_in_} names"
            raise ValueError(f"feature_names are {feature_names}; give {due}")
        rows, labels = self._check(X, y, is_first=False)
        bits = self._name_bits(feature_names)
        return read_rules(self.machine_, self.classes_.tolist(), bits, self._weigh(rows, self._index(labels)))

    def _check(self, X: Any, y: Any = "no_validation", *, is_first: bool) -> Any:
        """Rows [n, features], images flattened, and y if given; the first call settles what later ones must match."""
        if is_first:
            self.image_shape_ = None if self.patch is None else self._find_image_shape(X)
        if self.image_shape_ is not None and np.ndim(X) > 2:
            if np.shape(X)[1:] != self.image_shape_:
                raise ValueError(f"images are {np.shape(X)[1:]} but {self.image_shape_} was expected")
            X = np.reshape(X, (len(X), prod(self.image_shape_)))
        checked = validate_data(self, X, y, reset=is_first)
        if self.image_shape_ is not None and self.n_features_in_ != prod(self.image_shape_):
            raise ValueError(f"X has {self.n_features_in_} features but image_shape {self.image_shape_} was expected")
        if isinstance(checked, tuple):
            check_classification_targets(checked[1])
        return checked

    def _find_image_shape(self, X: Any) -> tuple[int, ...]:
        shape = np.shape(X)[1:] if self.image_shape is None else tuple(self.image_shape)
        if not isinstance(self.patch, Sequence) or len(self.patch) != 2:
            raise ValueError(f"patch is {self.patch!r}; give (height, width), or None for a flat machine")
        if len(shape) not in (2, 3):
            raise ValueError(f"patch={self.patch} needs images, X is {np.shape(X)}; give a stack, or image_shape=")
        return shape

    def _start(self, rows: NDArray[Any]) -> None:
        """Fits the booleanizer and builds the machine."""
        self._rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31, size=4))
        self.booleanizer_ = choose_booleanizer(self.booleanizer, rows, are_images=self.image_shape_ is not None)
        if self.booleanizer_ is not None:
            self.booleanizer_.fit(self._as_images(rows))
        self.machine_ = self._build(
            self._find_shape(self._booleanize(rows[:1])),
            len(self.classes_),
            threshold=self._choose_threshold(),
            specificity=self.specificity,
            boost=self.boost,
            balanced=self._is_balanced(len(rows)),
            fuzzy=self.fuzzy,
        )

    def _is_balanced(self, n_examples: int) -> bool:
        if self.balanced is not None:
            return self.balanced
        return self.fuzzy is None or n_examples >= BALANCED_FROM * len(self.classes_)

    def _choose_threshold(self) -> int:
        if self.threshold is not None:
            return self.threshold
        fuzzy = check_fuzzy(self.fuzzy)
        return max(1, self.n_clauses // 2) if fuzzy is None else 2 * self.n_clauses * fuzzy.failures

    def _as_images(self, rows: NDArray[Any]) -> NDArray[Any]:
        return rows if self.image_shape_ is None else rows.reshape(len(rows), *self.image_shape_)

    def _booleanize(self, rows: NDArray[Any]) -> NDArray[Any]:
        images = self._as_images(rows)
        return images if self.booleanizer_ is None else self.booleanizer_.transform(images)

    def _find_shape(self, bits: NDArray[Any]) -> Shape:
        if self.patch is None:
            return Shape.flat(bits.shape[1])
        levels = self.booleanizer_.levels if isinstance(self.booleanizer_, Thermometer) else 1
        return Shape.image(*bits.shape[1:], patch=self.patch, levels=levels)

    def _index(self, y: NDArray[Any]) -> NDArray[np.int64]:
        unseen = np.setdiff1d(y, self.classes_)
        if len(unseen):
            known = self.classes_.tolist()
            raise ValueError(f"y holds {unseen.tolist()}, the classes are {known}; name them all at the first call")
        return np.searchsorted(self.classes_, y)

    def _train(self, rows: NDArray[Any], indices: NDArray[np.int64], epochs: int) -> Self:
        on_epoch = None if self.on_epoch is None else partial(self.on_epoch, self)
        fit(
            self.machine_,
            self._booleanize(rows),
            indices,
            self._rng,
            epochs=epochs,
            threads=effective_n_jobs(self.n_jobs),
            on_epoch=on_epoch,
        )
        stride = -(-len(rows) // EVIDENCE_SAMPLES)
        self._evidence = self._weigh(rows[::stride], indices[::stride])
        return self

    def _weigh(self, rows: NDArray[Any], indices: NDArray[np.int64]) -> Evidence:
        outputs = clause_outputs(self.machine_, self._booleanize(rows), threads=effective_n_jobs(self.n_jobs))
        return Evidence.count(outputs, indices, votes_by_class(self.machine_))

    def _name_bits(self, feature_names: Sequence[str] | None = None) -> list[Bit]:
        """What each bit of a patch says, in the user's words."""
        if self.image_shape_ is None:
            if feature_names is None:
                feature_names = getattr(self, "feature_names_in_", [f"x{k}" for k in range(self.n_features_in_)])
            return self._name_layers(feature_names)
        shape, n_channels = self.machine_.shape, prod(self.image_shape_[2:])
        channels = [f" channel {k}" for k in range(n_channels)] if n_channels > 1 else [""]
        pixels = [f"pixel({row},{column})" for row, column in np.ndindex(shape.patch_height, shape.patch_width)]
        return [bit for pixel in pixels for bit in self._name_layers([pixel + channel for channel in channels])]

    def _name_layers(self, names: Sequence[str]) -> list[Bit]:
        if self.booleanizer_ is None:
            return [Flag(name) for name in names]
        if hasattr(self.booleanizer_, "describe"):
            return list(self.booleanizer_.describe(names))
        return [Flag(name) for name in self.booleanizer_.get_feature_names_out(names)]  # scikit-learn's own


class TsetlinClassifier(_TsetlinEstimator):
    """A Tsetlin Machine with clauses of its own for every class; n_clauses counts those of one class."""

    def _build(self, shape: Shape, n_classes: int, **settings: Any) -> Machine:
        return build(shape, n_classes, self.n_clauses, **settings)


class CoalescedTsetlinClassifier(_TsetlinEstimator):
    """A Tsetlin Machine whose clauses vote on every class; n_clauses counts them all."""

    def _build(self, shape: Shape, n_classes: int, **settings: Any) -> Machine:
        return build_coalesced(shape, n_classes, self.n_clauses, self._rng, **settings)
