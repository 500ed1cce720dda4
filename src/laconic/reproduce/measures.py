"""What of a finished run is the figure that a paper prints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean, pvariance

from laconic.records import Round, read_rounds
from laconic.runs.config import Config, read_config

Measure = Callable[[Sequence[Round], Config], float]


def read_figure(folder: Path, measure: str) -> float:
    name, _, argument = measure.partition(":")
    rounds, config = read_rounds(folder), read_config(folder / "config.toml")
    if name == "less":
        return saved_share(rounds, config, int(argument))
    return MEASURES[name](rounds, config)


def mean_bytes(folder: Path) -> float:
    """Of all clients in a round, both ways and to peers, as sent."""
    return fmean(each.total_bytes for each in read_rounds(folder) if each.round)


def best(rounds: Sequence[Round], _: Config) -> float:
    return 100 * max(each.accuracy_mean for each in rounds if each.accuracy_mean is not None)


def last(rounds: Sequence[Round], _: Config) -> float:
    return 100 * [each.accuracy_mean for each in rounds if each.accuracy_mean is not None][-1]


def pooled(rounds: Sequence[Round], _: Config) -> float:
    """All test examples count alike: of one model for all, its accuracy."""
    return 100 * [each.accuracy_pooled for each in rounds if each.accuracy_pooled is not None][-1]


def note(name: str) -> Measure:
    return lambda rounds, _: noted(rounds, name)[-1]


def note_variance(name: str) -> Measure:
    return lambda rounds, _: pvariance(noted(rounds, name))


def noted(rounds: Sequence[Round], name: str) -> list[float]:
    return [value for each in rounds if (value := each.notes.get(name)) is not None]


def mebibytes(rounds: Sequence[Round], _: Config) -> float:
    """Of all clients in a round, as the paper counts."""
    return fmean(each.paper_upload_bytes + each.paper_download_bytes for each in rounds if each.round) / 2**20


def client_bytes(way: str, *, before: bool) -> Measure:
    """MiB of one client in a round as sent, while clients go together (rounds up to beta) or alone."""

    def measure(rounds: Sequence[Round], config: Config) -> float:
        beta = getattr(config.method, "alone_after", config.rounds)
        chosen = [each for each in rounds if each.round and (each.round <= beta) == before]
        if not chosen:
            raise ValueError(f"the run has no rounds {'up to' if before else 'beyond'} {beta}; prolong it")
        return fmean(getattr(each, way) for each in chosen) / config.data.clients / 2**20

    return measure


def saved_share(rounds: Sequence[Round], config: Config, n_weights: int) -> float:
    """Percent below 32 bits of every weight both ways, as the paper counts."""
    dense = 2 * 4 * n_weights * config.data.clients
    return 100 * (1 - mebibytes(rounds, config) * 2**20 / dense)


MEASURES: dict[str, Measure] = {
    "best": best,
    "last": last,
    "pooled": pooled,
    "n_shared": note("n_shared"),
    "similarity-variance": note_variance("similarity"),
    "mebibytes": mebibytes,
    "up-before": client_bytes("upload_bytes", before=True),
    "up-after": client_bytes("upload_bytes", before=False),
    "down-before": client_bytes("download_bytes", before=True),
    "down-after": client_bytes("download_bytes", before=False),
}
