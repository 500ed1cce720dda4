"""Who has what: a data set's examples dealt out to clients, the same way for the same seed."""

import difflib
import hashlib
import io
import math
import zipfile
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from laconic.data.datasets import Dataset
from laconic.data.tables import draw_log_dirichlet, draw_test_table, draw_train_table
from laconic.files import write_atomically

Indices = NDArray[np.int64]
PARTITIONS = {
    "iid": "all clients alike",
    "dirichlet": "labels and sizes differ: a Dirichlet draw over clients for each label",
    "dirichlet-equal": "labels differ, sizes do not",
    "dirichlet-sampled": "each draws a mix of labels and a few examples by it, which others may draw too",
    "shards": "each has a few pieces of the examples sorted by label",
    "windows": "each has a few labels in a row, shared evenly with others who have them",
    "quantity": "only sizes differ",
    "natural": "a client for each value of a column of the data set, e.g. each speaker",
}
_STREAM = 0xDA7A  # keeps these draws apart from all others made from the same seed


@dataclass(frozen=True)
class Partitioning:
    """How examples are dealt out; part of the [data] section."""

    partition: str = ""  # iid, dirichlet, dirichlet-equal or -sampled, shards, windows, quantity or natural
    clients: int = -1  # how many; with natural the so many largest, 0 = all; -1: 10, with natural all
    alpha: float = 0.1  # the dirichlets, quantity: small = clients differ more (0.01 to 1), 100 = hardly
    labels: int = 2  # shards, windows: labels per client (1 to 20)
    group: str = ""  # the column that says who owns a row, e.g. "speaker"; natural has a client for each
    validation: float = 0.1  # share of a client's training examples set aside, label by label; 0 = none
    min_samples: int = -1  # fewest training examples of a client, before any are set aside; -1: 10, with natural 2
    drift_round: int = 0  # from this round on clients have other shares, drawn anew; 0 = never
    train_samples: int = 500  # dirichlet-sampled: a client's training examples, before any are set aside
    test_samples: int = 100  # dirichlet-sampled: a client's test examples

    def __post_init__(self) -> None:
        if not self.partition:  # nothing was said
            object.__setattr__(self, "partition", "natural" if self.group else "dirichlet")
        if self.partition not in PARTITIONS:
            closest = difflib.get_close_matches(self.partition, PARTITIONS, n=1)
            hint = f" Did you mean {closest[0]}?" if closest else ""
            raise ValueError(
                f"data.partition = {self.partition!r} is unknown.{hint} There are {', '.join(PARTITIONS)}."
            )
        is_natural = self.partition == "natural"
        if self.clients == -1:
            object.__setattr__(self, "clients", 0 if is_natural else 10)
        if self.min_samples == -1:
            object.__setattr__(self, "min_samples", 2 if is_natural else 10)
        if self.clients < (0 if is_natural else 1):
            raise ValueError(
                f"data.clients = {self.clients} must be >= 1 (10 to 500 typical); only natural takes 0, for all."
            )
        if not 0 < self.alpha < math.inf:
            raise ValueError(
                f"data.alpha = {self.alpha} must be > 0. Small = more different clients (0.1 typical), "
                "100 = almost the same."
            )
        if self.labels < 1:
            raise ValueError(f"data.labels = {self.labels} must be >= 1: labels per client (2 typical).")
        if is_natural and not self.group:
            raise ValueError('data.group is empty; natural needs a column of the data set, e.g. group = "speaker".')
        if self.group and not is_natural:
            raise ValueError(
                f"data.group = {self.group!r} says who owns a row, data.partition = {self.partition!r} deals rows out "
                "otherwise; leave one of them out."
            )
        if not 0 <= self.validation < 1:
            raise ValueError(
                f"data.validation = {self.validation} must be from 0 to below 1: the share of a client's training "
                "examples set aside (0.1 typical)."
            )
        if self.min_samples < 1:
            raise ValueError(f"data.min_samples = {self.min_samples} must be >= 1 (10 typical).")
        if self.train_samples < 2 or self.test_samples < 1:
            raise ValueError(
                f"data.train_samples = {self.train_samples}, data.test_samples = {self.test_samples} must be >= 2 and "
                ">= 1 (500 and 100 typical)."
            )
        if self.drift_round < 0 or (is_natural and self.drift_round):
            raise ValueError(
                f"data.drift_round = {self.drift_round} must be 0 (never) or a round from 1 on, and 0 with natural, "
                "where shares are not drawn."
            )


@dataclass(frozen=True, eq=False)
class Share:
    """What one client has: sorted indices. test may be empty where the set has too few, or none of a natural group."""

    train: Indices  # into the training examples of the data set
    val: Indices  # likewise, none of train
    test: Indices  # into the test examples


@dataclass(frozen=True, eq=False)
class Partition:
    """The shares of all clients; no example is in two of them, unless clients sampled."""

    shares: tuple[Share, ...]
    drifted: tuple[Share, ...] | None = None  # from drift_round on
    drift_round: int = 0

    def at(self, round: int) -> tuple[Share, ...]:
        return self.drifted if self.drifted is not None and round >= self.drift_round else self.shares

    def counts(self, dataset: Dataset, round: int = 0) -> list[dict[str, Any]]:
        """For reports: a client's number, and its examples of each label in train, val and test."""
        return [
            {"client": k}
            | {
                part: np.bincount(y[getattr(share, part)], minlength=len(dataset.classes)).tolist()
                for part, y in (("train", dataset.y_train), ("val", dataset.y_train), ("test", dataset.y_test))
            }
            for k, share in enumerate(self.at(round))
        ]

    @property
    def sha256(self) -> str:
        """Equal exactly for equal partitions."""
        digest = hashlib.sha256()
        for _, array in sorted(self._flatten().items()):
            digest.update(np.int64(array.size).astype("<i8").tobytes() + array.astype("<i8").tobytes())
        return digest.hexdigest()

    def save(self, path: Path) -> None:
        """As an .npz of three integer arrays."""
        archive = io.BytesIO()
        np.savez_compressed(archive, **self._flatten())  # type: ignore[arg-type]
        write_atomically(path, archive.getvalue())

    @classmethod
    def load(cls, path: Path) -> Self:
        try:
            with np.load(path, allow_pickle=False) as archive:
                arrays = [archive[key] for key in ("indices", "sizes", "drift_round")]
        except (OSError, KeyError, ValueError, AttributeError, zipfile.BadZipFile) as error:
            raise ValueError(f"{path} is no partition ({error}); give the partition.npz of a run") from error
        indices, sizes, drift_round = arrays
        if (
            any(array.dtype != np.int64 for array in arrays)
            or [array.ndim for array in arrays] != [1, 3, 0]
            or sizes.shape[2] != 3
            or len(sizes) != (2 if drift_round > 0 else 1)
            or sizes.min(initial=0) < 0
            or sizes.sum() != len(indices)
        ):
            raise ValueError(f"{path} is no partition: its arrays do not fit together; give the partition.npz of a run")
        parts = iter(np.split(indices, np.cumsum(sizes)[:-1]))
        phases = [tuple(Share(next(parts), next(parts), next(parts)) for _ in phase) for phase in sizes]
        return cls(phases[0], phases[1] if len(phases) > 1 else None, int(drift_round))

    def _flatten(self) -> dict[str, Indices]:
        """indices one after the other, sizes [phases, clients, 3] to cut them by, and drift_round."""
        phases = [self.shares] if self.drifted is None else [self.shares, self.drifted]
        parts = [[(share.train, share.val, share.test) for share in phase] for phase in phases]
        return {
            "indices": np.concatenate([part for phase in parts for share in phase for part in share]),
            "sizes": np.array([[[len(part) for part in share] for share in phase] for phase in parts]),
            "drift_round": np.array(self.drift_round),
        }


def partition(dataset: Dataset, settings: Partitioning, seed: int) -> Partition:
    """Every client's train and test examples follow the same mix of labels, drawn once."""
    if seed < 0:
        raise ValueError(f"seed = {seed} must be >= 0")
    phases = [_draw_phase(dataset, settings, seed, phase) for phase in range(2 if settings.drift_round else 1)]
    return Partition(phases[0], phases[1] if settings.drift_round else None, settings.drift_round)


def _draw_phase(dataset: Dataset, settings: Partitioning, seed: int, phase: int) -> tuple[Share, ...]:
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_STREAM, phase)))
    if settings.partition == "natural":
        train, test = _split_by_group(dataset, settings)
    elif settings.partition == "dirichlet-sampled":
        train, test = _sample(dataset, settings, rng)
    else:
        table = draw_train_table(dataset, settings, rng, phase)
        train = deal(dataset.y_train, table, rng)
        test = deal(dataset.y_test, draw_test_table(table, dataset.y_test, rng), rng)
    shares = []
    for mine, tested in zip(train, test, strict=True):
        kept, val = set_aside(mine, dataset.y_train[mine], settings.validation, rng)
        shares.append(Share(kept, val, tested))
    return tuple(shares)


def deal(y: NDArray[np.int64], table: NDArray[np.int64], rng: np.random.Generator) -> list[Indices]:
    """Each client's indices, sorted: table[k, c] examples of label c, at random."""
    owner = np.full(len(y), -1)
    for label, counts in enumerate(table.T):
        chosen = rng.permutation(np.flatnonzero(y == label))[: counts.sum()]
        owner[chosen] = np.repeat(np.arange(len(table)), counts)
    return _gather(owner, len(table))


def _gather(owner: NDArray[np.int64], n_clients: int) -> list[Indices]:
    """Sorted indices by owner; -1 is nobody."""
    order = np.argsort(owner, kind="stable")
    return np.split(order, np.searchsorted(owner[order], np.arange(n_clients + 1)))[1:-1]


def set_aside(
    indices: Indices, labels: NDArray[np.int64], share: float, rng: np.random.Generator
) -> tuple[Indices, Indices]:
    """(kept, set aside), sorted: about `share` of each label, one at least in all, a label's last only if need be."""
    n_wanted = min(max(1, round(share * len(indices))), len(indices) - 1) if share > 0 else 0
    if n_wanted < 1:
        return indices, indices[:0]
    order = rng.permutation(len(indices))
    order = order[np.argsort(labels[order], kind="stable")]  # label by label, at random within
    _, starts, sizes = np.unique(labels[order], return_index=True, return_counts=True)
    place = np.arange(len(order)) - np.repeat(starts, sizes)
    size = np.repeat(sizes, sizes)
    # the lowest of 0.5 / size, 1.5 / size, ... over all labels are evenly many of each; a label's last one goes last
    turn = np.where(place == size - 1, 2.0, (place + 0.5) / size)
    chosen = order[np.argsort(turn, kind="stable")[:n_wanted]]
    is_val = np.zeros(len(indices), np.bool_)
    is_val[chosen] = True
    return indices[~is_val], indices[is_val]


def _sample(dataset: Dataset, settings: Partitioning, rng: np.random.Generator) -> tuple[list[Indices], list[Indices]]:
    """Every client draws a mix of labels, and by it its own examples, none twice, whatever the others draw."""
    mixes = np.exp(draw_log_dirichlet(len(dataset.classes), settings.clients, settings.alpha, rng)).T
    drawn = []
    for y, n_due, key in (
        (dataset.y_train, settings.train_samples, "train_samples"),
        (dataset.y_test, settings.test_samples, "test_samples"),
    ):
        of_label = [np.flatnonzero(y == label) for label in range(len(dataset.classes))]
        if (n_fewest := min(map(len, of_label))) < n_due:
            raise ValueError(
                f"data.{key} = {n_due}: a client may draw all of one label, and {dataset.name} has one with "
                f"{n_fewest} examples. Use data.{key} <= {n_fewest}."
            )
        tables = rng.multinomial(n_due, mixes / mixes.sum(axis=1, keepdims=True))
        drawn.append(
            [
                np.sort(np.concatenate([rng.choice(of, n, replace=False) for of, n in zip(of_label, row, strict=True)]))
                for row in tables
            ]
        )
    return drawn[0], drawn[1]


def _split_by_group(dataset: Dataset, settings: Partitioning) -> tuple[list[Indices], list[Indices]]:
    """A client for each value of the column with enough training examples; the others' examples are left out."""
    if settings.group not in dataset.groups:
        raise ValueError(
            f"data.group = {settings.group!r} is no column of {dataset.name}; "
            f"there are: {', '.join(dataset.groups) or 'none'}. A .csv has it as a column, an .npz as two arrays, "
            f"{settings.group}_train and {settings.group}_test, with the owner of each example."
        )
    in_train, in_test = dataset.groups[settings.group]
    values, sizes = np.unique(in_train, return_counts=True)
    by_size = np.argsort(-sizes, kind="stable")
    chosen = by_size[sizes[by_size] >= settings.min_samples]
    if len(chosen) < max(1, settings.clients):
        raise ValueError(
            f"data.clients = {settings.clients}: {dataset.name} has {len(values)} values of {settings.group}, "
            f"{len(chosen)} of them with >= {settings.min_samples} training examples (largest: {sizes.max()}). "
            f"Use clients <= {len(chosen)} or a smaller data.min_samples."
        )
    names = np.sort(values[chosen[: settings.clients or None]])
    parts = [_gather(_find_owner(names, column), len(names)) for column in (in_train, in_test)]
    if not any(len(tested) for tested in parts[1]):
        raise ValueError(
            f"{dataset.name} has no {settings.group} both in training and in test: nobody could be tested on its own "
            f'data. Use data.name = "{dataset.name}@{settings.group}", which parts the examples of each.'
        )
    return parts[0], parts[1]


def tell_left_out(dataset: Dataset, settings: Partitioning, shares: Partition) -> tuple[str, ...]:
    """Of owners and rows that have no part in a natural partition, what people should know."""
    if settings.partition != "natural":
        return ()
    (in_train, in_test), column = dataset.groups[settings.group], settings.group
    clients = {in_train[np.append(share.train, share.val)[0]].item() for share in shares.shares}
    in_either = [{*np.unique(values).tolist()} for values in (in_train, in_test)]
    left, strangers = (values - clients for values in in_either)
    untested = clients - in_either[1]
    why = (
        f"the {settings.clients} largest were asked for"
        if settings.clients
        else f"data.min_samples = {settings.min_samples}"
    )
    n_left, n_unknown = int(np.isin(in_train, [*left]).sum()), int(np.isin(in_test, [*strangers]).sum())
    told = {
        f"{len(left)} of {len(left) + len(clients)} values of {column} have no part, with {n_left} rows to learn from "
        f"({why}): ": left,
        f"{n_unknown} test rows are of a {column} that is no client, and are left out: ": strangers,
        f"{len(untested)} clients have no test rows, and are not tested: ": untested,
    }
    return tuple(words + name_some(who) for words, who in told.items() if who)


def name_some(who: Collection[Any], most: int = 5) -> str:
    names = sorted(map(str, who))
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _find_owner(names: NDArray[Any], column: NDArray[Any]) -> NDArray[np.int64]:
    place = np.minimum(np.searchsorted(names, column), len(names) - 1)
    owner: NDArray[np.int64] = np.where(names[place] == column, place, -1)
    return owner
