"""A federation as a scikit-learn classifier: rows belong to clients, and each client gets a model of its own."""

from collections.abc import Callable, Mapping
from math import prod
from typing import Any, Literal, Self

import numpy as np
from joblib import effective_n_jobs  # type: ignore[import-untyped]
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from laconic import __version__
from laconic.algorithm import Algorithm, Examples, Task
from laconic.algorithms import check_method
from laconic.client_model import ClientModel
from laconic.columns import encode_rows, find_columns
from laconic.data.partition import set_aside
from laconic.models.portable import About
from laconic.models.preprocessing import Bytes, Centred, Preprocessing, fit_for, from_transformer, put_beside
from laconic.runs.budget import keep_budget
from laconic.runs.config import Config, read_config
from laconic.runs.keywords import in_python, read_keywords
from laconic.runs.run import find_conditions
from laconic.simulation import PlayedRound, simulate
from laconic.tsetlin.booleanize import Thermometer, choose_booleanizer

LET_VOTE = 'leave groups out to let all vote, or say unseen="vote" for such rows alone'
RoundHook = Callable[[int, dict[str, int]], None]  # (rounds done, bytes of the last one by direction)


class FederatedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """`fit(X, y, groups=client_of_each_row)`; `predict(X, groups=...)` asks each row's own client.

    Without groups there is one client in fit, and in predict all clients vote. `traffic_`: for each round a dict of the
    bytes sent up, down and between peers. `client_model(group)` is one client's model, which can be saved and exported.
    """

    def __init__(
        self,
        method: str | type[Algorithm] = "fedtm",  # a name, "module:Class", or a class of your own
        *,
        rounds: int = 10,
        settings: Mapping[str, Any] | None = None,  # of the method, see `laconic list METHOD`
        budget: str | None = None,  # most bytes per client and round, up and down together, e.g. "5kB"
        validation: float = 0.1,  # share of a client's rows that it keeps for choosing, not for training
        # a transformer; None for 0/1 data; "auto": as is if 0/1 integers, else thermometer. Networks take none
        booleanizer: Any = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        on_round: RoundHook | None = None,
        unseen: Literal["refuse", "vote"] = "refuse",  # in predict, rows of groups that took no part in fit
    ):
        self.method = method
        self.rounds = rounds
        self.settings = settings
        self.budget = budget
        self.validation = validation
        self.booleanizer = booleanizer
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.on_round = on_round
        self.unseen = unseen

    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> Self:
        """X: [n, features], or images [n, height, width] or [n, height, width, channels]; groups: [n]."""
        config = self._configure()
        rows, labels = self._check(X, y, is_first=True)
        self.classes_, classes = np.unique(labels, return_inverse=True)
        self.clients_, clients = np.unique(self._check_groups(groups, len(rows)), return_inverse=True)
        self.seed_ = int(check_random_state(self.random_state).randint(2**31))
        self._fit_booleanizer(rows, config.method.takes)
        inputs = self._prepare(rows)
        shape, scale = inputs.shape[1:], self._find_scale(inputs)
        task = Task(shape, len(self.classes_), len(self.clients_), *scale)
        config = keep_budget(config, task, lambda line: None)
        self.algorithm_ = config.method
        done = simulate(
            config.method,
            self._deal(inputs, classes, clients, np.random.default_rng(self.seed_)),
            config.rounds,
            self.seed_,
            task=task,
            workers=effective_n_jobs(self.n_jobs),
            conditions=find_conditions(config),
            evaluate_every=config.rounds,
            on_round=self._tell,
        )
        self.traffic_ = [count_traffic(row) for row in done.rounds]
        self.states_ = done.states
        return self

    def predict(self, X: ArrayLike, groups: ArrayLike | None = None) -> NDArray[Any]:
        votes = self._ask(X, groups)
        winners: NDArray[Any] = self.classes_[votes.argmax(axis=1)]
        return winners

    def predict_proba(self, X: ArrayLike, groups: ArrayLike | None = None) -> NDArray[np.float64]:
        """[row, class] of each row's own client, or without groups the mean over clients; not calibrated."""
        return self._ask(X, groups, as_chances=True)

    def score(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> float:
        """Share of rows predicted right."""
        return float(np.mean(self.predict(X, groups) == np.asarray(y)))

    def scores_by_client(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike) -> dict[Any, float]:
        """Share of its own rows that each client predicts right."""
        is_right, owners = self.predict(X, groups) == np.asarray(y), np.asarray(groups)
        return {client: float(is_right[owners == client].mean()) for client in np.unique(owners).tolist()}

    def client_model(self, group: Any) -> ClientModel:
        """Its `save`, `export_c`, `export_onnx` and `rules` take the model of one client further."""
        check_is_fitted(self)
        self._check_known(np.array([group]))
        client = int(np.flatnonzero(self.clients_ == group)[0])
        features = tuple(map(str, getattr(self, "feature_names_in_", ())))
        about = About(
            classes=tuple(map(str, self.classes_.tolist())),
            features=features,
            input_shape=self.input_shape_ or (self.n_features_in_,),
            method=self.algorithm_.name or type(self.algorithm_).__name__,
            client=client,
            name=str(group),
            data="",
            seed=self.seed_,
            rounds=self.rounds,
            laconic=__version__,
            git=None,
            run="",
        )
        model = self.algorithm_.personal_model(self.states_[client])
        return ClientModel(model, from_transformer(self.booleanizer_), about)

    def rules(self, group: Any, X: Any = None, y: ArrayLike | None = None) -> list[Any]:
        """What the model of one client goes by, in the names of columns; X, y: rows to count its successes on."""
        return self.client_model(group).rules(X, y)

    # ---------------------------------------------------------------- pieces
    def _tell(self, row: PlayedRound) -> None:
        if self.on_round is not None:
            self.on_round(row.round, count_traffic(row))

    def _configure(self) -> Config:
        """The command line's checks, on what it calls the same."""
        if self.unseen not in ("refuse", "vote"):
            raise ValueError(f"unseen is {self.unseen!r}; 'refuse' or 'vote' was expected")
        own = check_method(self.method, self.method.__qualname__) if isinstance(self.method, type) else None
        name = self.method if isinstance(self.method, str) else "fedtm"
        words = {"rounds": self.rounds, "budget": self.budget, "validation": self.validation}
        with in_python():
            given = read_keywords([name] if own is None else [], words, self.settings)
            return read_config(None, [f"method.name={name}", *given], own)

    def _fit_booleanizer(self, rows: NDArray[Any], takes: str) -> None:
        if self.columns_:
            if self.booleanizer != "auto":
                raise ValueError(
                    f"booleanizer is {self.booleanizer!r}; a frame with text or empty cells takes only 'auto'"
                )
            self.booleanizer_: Any = fit_for(takes, "quantile:4", rows, self.columns_)
            return
        if takes in ("values", "bytes"):  # whatever the values are, a network gets them centred
            self.booleanizer_ = Centred.fit(rows) if takes == "values" else Bytes.fit(rows)
            return
        self.booleanizer_ = choose_booleanizer(self.booleanizer, rows, are_images=self.input_shape_ is not None)
        if self.booleanizer_ is not None:
            self.booleanizer_.fit(rows)
        if takes == "bits+bytes":
            self.booleanizer_ = put_beside(from_transformer(self.booleanizer_), Bytes.fit(rows))

    def _ask(self, X: ArrayLike, groups: ArrayLike | None, *, as_chances: bool = False) -> NDArray[np.float64]:
        """[row, class] chances, or votes: one for each row, or without groups one of every client."""
        check_is_fitted(self)
        inputs = self._prepare(self._check(X, is_first=False))
        owners = None if groups is None else self._check_groups(groups, len(inputs))
        is_strange = np.zeros(len(inputs), np.bool_)
        if owners is not None and self.unseen == "vote":
            is_strange = ~np.isin(owners, self.clients_)
        elif owners is not None:
            self._check_known(owners)
        votes = np.zeros((len(inputs), len(self.classes_)))
        for client, state in zip(self.clients_, self.states_, strict=True):
            mine = np.flatnonzero(np.ones(len(inputs), np.bool_) if owners is None else is_strange | (owners == client))
            if not len(mine):
                continue
            if as_chances:
                votes[mine] += self.algorithm_.personal_model(state).chances(inputs[mine])
            else:
                votes[mine, self.algorithm_.predict(state, inputs[mine])] += 1
        is_shared = is_strange | (owners is None)
        votes[is_shared] /= len(self.clients_)
        return votes

    def _check(self, X: Any, y: Any = "no_validation", *, is_first: bool) -> Any:
        """Rows in their own shape, and y if given."""
        if is_first:
            self.columns_ = find_columns(X)
        if self.columns_:
            return self._check_table(X, y, is_first=is_first)
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

    def _check_table(self, X: Any, y: Any, *, is_first: bool) -> Any:
        """A frame with text or empty cells, which scikit-learn's own checks do not take."""
        rows = encode_rows(X, self.columns_)
        if is_first:
            self.input_shape_, self.n_features_in_ = None, len(self.columns_)
            self.feature_names_in_ = np.array([column.name for column in self.columns_], object)
        if isinstance(y, str):  # no labels, see _check
            return rows
        labels = np.asarray(column_or_1d(y))
        if len(labels) != len(rows):
            raise ValueError(f"y has {len(labels)} labels for {len(rows)} rows; give one for each")
        check_present("y", labels, "give its label")
        check_classification_targets(labels)
        return rows, labels

    def _check_groups(self, groups: ArrayLike | None, n_rows: int) -> NDArray[Any]:
        if groups is None:
            return np.zeros(n_rows, np.int64)
        if np.ndim(groups) == 0:
            raise ValueError(f"groups is {groups!r}; the client of each of {n_rows} rows was expected")
        owners = np.asarray(column_or_1d(groups))
        if len(owners) != n_rows:
            raise ValueError(f"groups has {len(owners)} entries for {n_rows} rows; name the client of each row")
        check_present("groups", owners, "name its client")
        return owners if owners.dtype.kind != "O" else owners.astype(np.str_)

    def _check_known(self, owners: NDArray[Any]) -> None:
        if strangers := sorted({*owners.tolist()} - {*self.clients_.tolist()}):
            raise ValueError(f"groups has {strangers[:3]}, who took no part in fit; {LET_VOTE}")

    def _prepare(self, rows: NDArray[Any]) -> NDArray[Any]:
        return rows if self.booleanizer_ is None else np.asarray(self.booleanizer_.transform(rows))

    def _find_scale(self, inputs: NDArray[Any]) -> tuple[int, float, int]:
        """Levels, peak and layers of bytes, as a task has them."""
        given = self.booleanizer_
        if isinstance(given, Preprocessing):
            return given.levels, 0.0, given.byte_layers
        return given.levels if inputs.ndim == 4 and isinstance(given, Thermometer) else 1, 0.0, 0

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


def check_present(what: str, values: NDArray[Any], remedy: str) -> None:
    for row, value in enumerate(values.tolist()):
        if value is None or value != value:  # NaN
            raise ValueError(f"{what} has {value} in row {row}; {remedy} or drop the row")


def count_traffic(row: PlayedRound) -> dict[str, int]:
    return {"up": row.upload_bytes, "down": row.download_bytes, "peer": row.peer_bytes}
