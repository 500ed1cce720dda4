"""A federation as a scikit-learn classifier: rows belong to clients, and each client gets a model of its own."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from math import prod
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs  # type: ignore[import-untyped]
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from laconic.algorithm import Algorithm, Examples, Task
from laconic.algorithms import METHODS, check_method, load_method
from laconic.data.partition import set_aside
from laconic.models.preprocessing import Centred
from laconic.runs.config import gather, list_keys
from laconic.simulation import PlayedRound, simulate
from laconic.tsetlin.booleanize import Thermometer, choose_booleanizer

RoundHook = Callable[[int, dict[str, int]], None]  # (rounds done, bytes of the last one by direction)


class FederatedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """`fit(X, y, groups=client_of_each_row)`; `predict(X, groups=...)` asks each row's own client.

    Without groups there is one client in fit, and in predict all clients vote. `traffic_`: for each round a dict of the
    bytes sent up, down and between peers.
    """

    def __init__(
        self,
        method: str | type[Algorithm] = "fedtm",  # a name, "module:Class", or a class of your own
        *,
        rounds: int = 10,
        settings: Mapping[str, Any] | None = None,  # of the method, see `laconic list METHOD`
        validation: float = 0.1,  # share of a client's rows that it keeps for choosing, not for training
        # a transformer; None for 0/1 data; "auto": as is if 0/1 integers, else thermometer. Networks take none
        booleanizer: Any = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        on_round: RoundHook | None = None,
    ):
        self.method = method
        self.rounds = rounds
        self.settings = settings
        self.validation = validation
        self.booleanizer = booleanizer
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.on_round = on_round

    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> Self:
        """X: [n, features], or images [n, height, width] or [n, height, width, channels]; groups: [n]."""
        rows, labels = self._check(X, y, is_first=True)
        self.classes_, classes = np.unique(labels, return_inverse=True)
        owners = self._check_groups(groups, len(rows))
        self.clients_, clients = np.unique(owners, return_inverse=True)
        seed = int(check_random_state(self.random_state).randint(2**31))
        self.algorithm_ = self._make_method()
        if self.algorithm_.takes == "bits":
            self.booleanizer_ = choose_booleanizer(self.booleanizer, rows, are_images=self.input_shape_ is not None)
            if self.booleanizer_ is not None:
                self.booleanizer_.fit(rows)
        else:  # whatever the values are, a network gets them centred
            self.booleanizer_ = Centred.fit(rows)
        inputs = self._prepare(rows)
        task = Task(inputs.shape[1:], len(self.classes_), len(self.clients_), self._count_levels(inputs))
        done = simulate(
            self.algorithm_,
            self._deal(inputs, classes, clients, np.random.default_rng(seed)),
            self.rounds,
            seed,
            task=task,
            workers=effective_n_jobs(self.n_jobs),
            evaluate_every=self.rounds,
            on_round=self._tell,
        )
        self.traffic_ = [count_traffic(row) for row in done.rounds]
        self.states_ = done.states
        return self

    def predict(self, X: ArrayLike, groups: ArrayLike | None = None) -> NDArray[Any]:
        check_is_fitted(self)
        bits = self._prepare(self._check(X, is_first=False))
        if groups is None:
            votes = np.zeros((len(bits), len(self.classes_)), np.int64)
            for state in self.states_:
                votes[np.arange(len(bits)), self.algorithm_.predict(state, bits)] += 1
            winners: NDArray[Any] = self.classes_[votes.argmax(axis=1)]
            return winners
        owners = self._check_groups(groups, len(bits))
        if strangers := sorted({*owners.tolist()} - {*self.clients_.tolist()}):
            raise ValueError(f"groups has {strangers[:3]}, who took no part in fit; leave groups out to let all vote")
        predicted = np.empty(len(bits), np.int64)
        for client, state in zip(self.clients_, self.states_, strict=True):
            mine = owners == client
            if mine.any():
                predicted[mine] = self.algorithm_.predict(state, bits[mine])
        own: NDArray[Any] = self.classes_[predicted]
        return own

    def score(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> float:
        """Share of rows predicted right."""
        return float(np.mean(self.predict(X, groups) == np.asarray(y)))

    # ---------------------------------------------------------------- pieces
    def _tell(self, row: PlayedRound) -> None:
        if self.on_round is not None:
            self.on_round(row.round, count_traffic(row))

    def _make_method(self) -> Algorithm:
        settings, method = dict(self.settings or {}), self._find_method()
        known = [key.removeprefix("method.") for key in list_keys("method", method)]
        if strangers := sorted(settings.keys() - {*known, *(f.name for f in fields(method))}):
            raise ValueError(f"settings has {', '.join(strangers)}; {method.__name__} has {', '.join(known)}")
        return method(**gather(method, settings))

    def _find_method(self) -> type[Algorithm]:
        if isinstance(self.method, type):
            return check_method(self.method, self.method.__qualname__)
        try:
            return load_method(self.method)
        except KeyError:
            raise ValueError(
                f"method is {self.method!r}; there are {', '.join(METHODS)}, or give a class of your own"
            ) from None

    def _check(self, X: Any, y: Any = "no_validation", *, is_first: bool) -> Any:
        """Rows in their own shape, and y if given."""
        images = X if isinstance(X, np.ndarray) and X.ndim > 2 else None
        shape = None if images is None else images.shape[1:]
        if is_first:
            self.input_shape_ = shape
        elif shape != self.input_shape_:
            raise ValueError(f"images are {shape} but {self.input_shape_} was expected")
        if images is not None and shape is not None:
            X = images.reshape(len(images), prod(shape))
        checked = validate_data(self, X, y, reset=is_first)
        rows = checked[0] if isinstance(checked, tuple) else checked
        rows = rows if self.input_shape_ is None else rows.reshape(-1, *self.input_shape_)
        if isinstance(checked, tuple):
            check_classification_targets(checked[1])
            return rows, checked[1]
        return rows

    def _check_groups(self, groups: ArrayLike | None, n_rows: int) -> NDArray[Any]:
        owners = np.zeros(n_rows, np.int64) if groups is None else column_or_1d(groups)
        if len(owners) != n_rows:
            raise ValueError(f"groups has {len(owners)} entries for {n_rows} rows; name the client of each row")
        return np.asarray(owners)

    def _prepare(self, rows: NDArray[Any]) -> NDArray[Any]:
        return rows if self.booleanizer_ is None else np.asarray(self.booleanizer_.transform(rows))

    def _count_levels(self, bits: NDArray[Any]) -> int:
        return self.booleanizer_.levels if bits.ndim == 4 and isinstance(self.booleanizer_, Thermometer) else 1

    def _deal(
        self, bits: NDArray[Any], classes: NDArray[np.int64], clients: NDArray[np.int64], rng: np.random.Generator
    ) -> list[list[Examples]]:
        """Train, validation and test examples of each client; nothing is tested here."""
        dealt = []
        for client in range(len(self.clients_)):
            mine = np.flatnonzero(clients == client)
            shares = (*set_aside(mine, classes[mine], self.validation, rng), mine[:0])
            dealt.append([Examples(bits[share], classes[share]) for share in shares])
        return dealt


def count_traffic(row: PlayedRound) -> dict[str, int]:
    return {"up": row.upload_bytes, "down": row.download_bytes, "peer": row.peer_bytes}
