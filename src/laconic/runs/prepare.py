"""From a data set and a partition to what a fleet needs: the task, and every client's examples as bits or values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from laconic.algorithm import Examples, Task
from laconic.data import Dataset, Partition, load, partition
from laconic.fleets.source import ClientData
from laconic.runs.typed_toml import ConfigError

if TYPE_CHECKING:
    from laconic.runs.config import Config, DataSettings

RULES = "threshold:75, adaptive:11:2, thermometer:8, thermometer:4:16 (levels:top), quantile:4 or none"


class Prepared(NamedTuple):
    task: Task
    source: ClientData
    partition: Partition
    dataset: Dataset
    turns: tuple[int, ...]  # [client] quarters by which its images are turned


def prepare(config: Config, shares: Partition | None = None) -> Prepared:
    """Loads, partitions (unless that was done before), and makes of the examples what the method takes."""
    dataset = load_for(config.data)
    shares = shares or draw_shares(dataset, config)
    levels, peak = 1, 0.0
    if config.method.takes == "bits":
        x_train, x_test, levels = booleanize(dataset, config.data)
    else:
        x_train, x_test, peak = scale(dataset)
    turns = count_turns(config.data, x_train.shape[1:], len(shares.shares))
    starts = {0: shares.at(0)} | ({shares.drift_round: shares.at(shares.drift_round)} if shares.drifted else {})
    phases = tuple(
        (
            first,
            {
                client: (
                    Examples(turn(x_train[share.train], turns[client]), dataset.y_train[share.train]),
                    Examples(turn(x_train[share.val], turns[client]), dataset.y_train[share.val]),
                    Examples(turn(x_test[share.test], turns[client]), dataset.y_test[share.test]),
                )
                for client, share in enumerate(owned)
            },
        )
        for first, owned in starts.items()
    )
    task = Task(x_train.shape[1:], len(dataset.classes), len(shares.shares), levels, peak)
    return Prepared(task, ClientData(phases), shares, dataset, turns)


def load_for(settings: DataSettings) -> Dataset:
    """A set with nobody both in training and in test is parted anew, person by person; its name then says so."""
    try:
        dataset = load(settings.name, download=settings.download)
        if settings.partition == "natural" and settings.group in dataset.groups:
            in_train, in_test = dataset.groups[settings.group]
            if not np.isin(in_test, in_train).any():
                return load(f"{settings.name}@{settings.group}")
        return dataset
    except (ValueError, FileNotFoundError) as error:
        raise ConfigError("E115", str(error)) from error


def draw_shares(dataset: Dataset, config: Config) -> Partition:
    try:
        return partition(dataset, config.data, config.seed)
    except ValueError as error:
        raise ConfigError("E120", str(error)) from error


def count_turns(settings: DataSettings, shape: Sequence[int], n_clients: int) -> tuple[int, ...]:
    """[client] by how many quarters its images are turned."""
    if settings.shift == "none":
        return (0,) * n_clients
    if len(shape) < 2 or shape[0] != shape[1]:
        raise ConfigError(
            "E102", f'data.shift = "turned" needs square images; {settings.name} has examples of shape {tuple(shape)}'
        )
    return tuple(client % 4 for client in range(n_clients))


def turn(x: NDArray[Any], turns: int) -> NDArray[Any]:
    """[example, row, column, ...] turned to the left."""
    return np.ascontiguousarray(np.rot90(x, turns, axes=(1, 2))) if turns else x


class Centring:
    """Values less their mean, in units of their spread; both are of all training examples, so everyone knows them."""

    def fit(self, rows: NDArray[Any]) -> Self:
        self.mean_, spread = rows.mean(axis=0, dtype=np.float64), rows.std(axis=0, dtype=np.float64)
        self.spread_ = np.where(spread > 0, spread, 1)
        return self

    def transform(self, rows: NDArray[Any]) -> NDArray[np.float32]:
        centred: NDArray[np.float32] = ((rows - self.mean_) / self.spread_).astype(np.float32)
        return centred


def scale(dataset: Dataset) -> tuple[NDArray[Any], NDArray[Any], float]:
    """Training and test examples, and the largest value of a pixel: bytes stay bytes, other values are centred."""
    train, test = dataset.x_train, dataset.x_test
    if train.dtype == np.uint8:
        return train, test, float(next(peak for peak in (1, 16, 255) if train.max() <= peak))
    rule = Centring().fit(train)
    return rule.transform(train), rule.transform(test), 0.0


def booleanize(dataset: Dataset, settings: DataSettings) -> tuple[NDArray[np.uint8], NDArray[np.uint8], int]:
    """Training and test examples as bits, and how many thermometer levels nest."""
    rule = dataset.booleanize if settings.booleanize == "auto" else settings.booleanize
    return _apply_rule(rule, dataset.x_train, dataset.x_test, dataset.name)


def booleanize_by(rule: str, x: NDArray[Any]) -> tuple[NDArray[np.uint8], int]:
    """The same of examples without their data set, by a rule that needs no fit."""
    some = x if len(x) else np.zeros((1, *x.shape[1:]), x.dtype)  # rules refuse to look at nothing
    bits, _, levels = _apply_rule(rule, some, some[:1], "the nodes' examples")
    return bits[: len(x)], levels


def _apply_rule(rule: str, train: NDArray[Any], test: NDArray[Any], what: str) -> Bits:
    name, *numbers = rule.split(":")
    if name not in _RULES:
        raise ConfigError("E102", f'data.booleanize = "{rule}" is unknown; there are {RULES}, or auto')
    try:
        return _RULES[name](train, test, *map(float, numbers))
    except (ValueError, TypeError) as error:
        raise ConfigError(
            "E150", f'data.booleanize = "{rule}" does not fit {what}: {error}.  Choose one of {RULES}'
        ) from error


Bits = tuple[NDArray[np.uint8], NDArray[np.uint8], int]


def _check_bits(train: NDArray[Any], test: NDArray[Any]) -> Bits:
    for x in (train, test):
        if not np.isin(x, (0, 1)).all():
            raise ValueError(f"values from {x.min():g} to {x.max():g} came, 0 and 1 were expected")
    return train.astype(np.uint8), test.astype(np.uint8), 1


def _threshold(train: NDArray[Any], test: NDArray[Any], above: float = 75) -> Bits:
    return (train > above).astype(np.uint8), (test > above).astype(np.uint8), 1


def _adaptive(train: NDArray[Any], test: NDArray[Any], window: float = 11, offset: float = 2) -> Bits:
    from laconic.tsetlin.booleanize import AdaptiveGaussianThreshold

    rule = AdaptiveGaussianThreshold(int(window), offset)
    return rule.fit_transform(train), rule.transform(test), 1


def _thermometer(train: NDArray[Any], test: NDArray[Any], levels: float = 8, top: float = 255) -> Bits:
    from laconic.tsetlin.booleanize import Thermometer

    rule = Thermometer(int(levels), top)
    return rule.fit_transform(train), rule.transform(test), int(levels)


def _quantile(train: NDArray[Any], test: NDArray[Any], levels: float = 4) -> Bits:
    """Tables column by column; images place by place, so that they stay images."""
    if train.ndim == 2:
        from laconic.tsetlin.booleanize import QuantileThermometer

        rule = QuantileThermometer(int(levels))
        return rule.fit_transform(train), rule.transform(test), 1
    shares = np.arange(1, int(levels) + 1) / (int(levels) + 1)
    thresholds = np.moveaxis(np.quantile(train.astype(np.float32), shares, axis=0), 0, -1)
    above = [(x[..., None] > thresholds).astype(np.uint8) for x in (train, test)]
    bits = [x.reshape(*x.shape[:3], -1) for x in above]
    return bits[0], bits[1], int(levels)


_RULES: dict[str, Callable[..., Bits]] = {
    "none": _check_bits,
    "threshold": _threshold,
    "adaptive": _adaptive,
    "thermometer": _thermometer,
    "quantile": _quantile,
}
