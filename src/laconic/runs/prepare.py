"""From a data set and a partition to what a fleet needs: the task, and every client's examples as methods take them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from laconic.algorithm import Examples, Task
from laconic.data import Dataset, Partition, Share, partition
from laconic.data.datasets import draw_examples, split_groups
from laconic.data.partition import tell_left_out
from laconic.data.reading import Lacking
from laconic.data.sources import open_source
from laconic.fleets.source import ClientData
from laconic.models.portable import turn
from laconic.models.preprocessing import Preprocessing, fit_for
from laconic.runs.typed_toml import ConfigError, lacking

if TYPE_CHECKING:
    from laconic.runs.config import Config, DataSettings

BLOCK = 2**16  # rows
RULES = "threshold:75, adaptive:11:2, thermometer:8, thermometer:4:16 (levels:top), quantile:4 or none"


class Prepared(NamedTuple):
    task: Task
    source: ClientData
    partition: Partition
    dataset: Dataset
    preprocessing: Preprocessing
    turns: tuple[int, ...]  # [client] quarters by which its images are turned
    names: tuple[str, ...]  # [client] "" where it has none
    notes: tuple[str, ...]  # what is odd about the data, and who has no part


def prepare(config: Config, shares: Partition | None = None) -> Prepared:
    """Loads, partitions (unless that was done before), and makes of the examples what the method takes."""
    dataset = load_for(config.data)
    shares = shares or draw_shares(dataset, config)
    preprocessing = fit_preprocessing(dataset, config)
    starts = {0: shares.at(0)} | ({shares.drift_round: shares.at(shares.drift_round)} if shares.drifted else {})
    dealt = {first: deal(dataset, owned, preprocessing, config) for first, owned in starts.items()}
    shape = dealt[0][0][0].shape[1:]
    turns = count_turns(config.data, shape, len(shares.shares))
    phases = tuple(
        (
            first,
            {
                client: (
                    Examples(turn(train, turns[client]), dataset.y_train[share.train]),
                    Examples(turn(val, turns[client]), dataset.y_train[share.val]),
                    Examples(turn(test, turns[client]), dataset.y_test[share.test]),
                )
                for client, (share, (train, val, test)) in enumerate(zip(owned, dealt[first], strict=True))
            },
        )
        for first, owned in starts.items()
    )
    scale = preprocessing.levels, preprocessing.peak, preprocessing.byte_layers
    task = Task(shape, len(dataset.classes), len(shares.shares), *scale)
    names = name_clients(dataset, config.data, shares)
    notes = (*dataset.notes, *tell_left_out(dataset, config.data, shares))
    return Prepared(task, ClientData(phases), shares, dataset, preprocessing, turns, names, notes)


def name_clients(dataset: Dataset, settings: DataSettings, shares: Partition) -> tuple[str, ...]:
    """By the column that says who owns a row."""
    if settings.partition != "natural":
        return ("",) * len(shares.shares)
    owners = dataset.groups[settings.group][0]
    return tuple(str(owners[np.concatenate([share.train, share.val])[0]]) for share in shares.shares)


def load_for(settings: DataSettings) -> Dataset:
    return draw_examples(load_whole(settings), settings.examples)


def load_whole(settings: DataSettings) -> Dataset:
    """A set with nobody both in training and in test is parted anew, person by person; its name then says so."""
    try:
        dataset = open_source(settings.name, settings.reading, download=settings.download)
        if settings.partition == "natural" and settings.group in dataset.groups and not settings.reading.test_file:
            in_train, in_test = dataset.groups[settings.group]
            if not np.isin(in_test, in_train).any():
                return split_groups(dataset, settings.group)
        return dataset
    except Lacking as error:
        raise lacking(error.what, error.extra, error.error) from error
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


def fit_preprocessing(dataset: Dataset, config: Config) -> Preprocessing:
    """As bits, values or bytes, whichever the method takes."""
    rule = dataset.booleanize if config.data.booleanize == "auto" else config.data.booleanize
    try:
        return fit_for(config.method.takes, rule, dataset.x_train, dataset.columns)
    except KeyError:
        raise ConfigError("E102", f'data.booleanize = "{rule}" is unknown; there are {RULES}, or auto') from None
    except (ValueError, TypeError) as error:
        raise unfit(dataset, rule, error) from error


def deal(
    dataset: Dataset, owned: Sequence[Share], preprocessing: Preprocessing, config: Config
) -> list[tuple[NDArray[Any], ...]]:
    """[client] its training, validation and test examples as the method takes them: views of one array for each half.

    A copy for each client beside the whole would take twice the memory.
    """
    train = [rows for share in owned for rows in (share.train, share.val)]
    try:
        both = [
            np.split(transform(preprocessing, x, np.concatenate(parts)), np.cumsum([len(part) for part in parts])[:-1])
            for x, parts in ((dataset.x_train, train), (dataset.x_test, [share.test for share in owned]))
        ]
    except (ValueError, TypeError) as error:
        raise unfit(dataset, config.data.booleanize, error) from error
    return list(zip(both[0][::2], both[0][1::2], both[1], strict=True))


def transform(preprocessing: Preprocessing, x: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
    """These rows of x, block by block, so that there is no second copy of them as they were."""
    first = preprocessing.transform(x[rows[:BLOCK] if len(rows) else [0]])
    made = np.empty((len(rows), *first.shape[1:]), first.dtype)
    made[:BLOCK] = first[: len(rows)]
    for start in range(BLOCK, len(rows), BLOCK):
        made[start : start + BLOCK] = preprocessing.transform(x[rows[start : start + BLOCK]])
    return made


def unfit(dataset: Dataset, rule: str, error: Exception) -> ConfigError:
    rule = dataset.booleanize if rule == "auto" else rule
    return ConfigError(
        "E150", f'data.booleanize = "{rule}" does not fit {dataset.name}: {error}.  Choose one of {RULES}'
    )
