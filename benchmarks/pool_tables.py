"""Tables of ClausePool and its controls, by the names of the runs in clausepool.json."""

import re
from collections import defaultdict
from collections.abc import Iterable
from statistics import fmean, stdev
from typing import Any

from tables import NOTHING, Rows, sent_kb, signed, table

POOLED = {"ci": "CIFAR-10", "fm": "Fashion-MNIST"}  # as names of runs have them
ALPHAS = ("0.05", "0.1", "1")
CONTROLS = ("alone", "own", "private", "seed")
ROUNDS = ("4", "8", "12", "16")
NAME = re.compile(r"M-(ci|fm)([\d.]+)-(\w+)-(\d)")

Runs = dict[int, Any]  # of a method, by seed
Cells = dict[str, Runs]  # of a partition, by method


def list_partitions(file: Any) -> Iterable[tuple[str, Cells]]:
    """Runs of `mirrored`, and controls of older lists on the same partitions."""
    known = {run["run"]: run for name in ("fashion_mnist", "twenty_steps") for run in file[name]}
    found = defaultdict[tuple[str, str], Cells](lambda: defaultdict(dict))
    for run in file["mirrored"]:
        if name := NAME.fullmatch(run["run"]):
            found[name[1], name[2]][name[3]][int(name[4])] = run
    for key, title in POOLED.items():
        for alpha in ALPHAS:
            cells = found[key, alpha]
            for seed in cells["pool"]:
                for part, older in (("alone", f"local-{alpha}/seed-{seed}"), ("own", f"{key}{alpha}-own-{seed}")):
                    if key == "fm" and seed not in cells[part] and older in known:
                        cells[part][seed] = known[older]
            yield f"{title}, α = {alpha}", cells


def gain(runs: Runs, others: Runs) -> str:
    """Over the seeds that both have."""
    gains = [runs[seed]["last"] - others[seed]["last"] for seed in runs if seed in others]
    if not gains:
        return NOTHING
    return signed(fmean(gains)) + (f" ± {stdev(gains) / len(gains) ** 0.5:.2f}" if len(gains) > 1 else "")


def mean(runs: Runs, *, is_sent: bool) -> str:
    if not runs:
        return NOTHING
    size = f", {max(map(sent_kb, runs.values())):.1f} kB" if is_sent else ""
    shares, worst = ([run[key] for run in runs.values()] for key in ("last", "p10"))
    return f"{fmean(shares):.2f} ({fmean(worst):.1f}){size}"


@table(
    "clausepool.means", "| alone | own clauses | private seed head | seedhead | clausepool | over seedhead | few bytes"
)
def clausepool_means(file: Any) -> Rows:
    for title, cells in list_partitions(file):
        controls = [mean(cells[part], is_sent=part == "seed") for part in CONTROLS]
        pooled = [mean(cells["pool"], is_sent=True), gain(cells["pool"], cells["seed"])]
        yield [title, *controls, *pooled, mean(cells["few"], is_sent=True)]


@table("clausepool.seeds", "| seed | alone | own clauses | private seed head | seedhead | clausepool | few bytes")
def clausepool_seeds(file: Any) -> Rows:
    for title, cells in list_partitions(file):
        for seed in sorted(cells["pool"]):
            of_seed = {part: {seed: runs[seed]} if seed in runs else {} for part, runs in cells.items()}
            parts = (*CONTROLS, "pool", "few")
            yield [title, str(seed), *(mean(of_seed.get(part, {}), is_sent=part not in CONTROLS[:3]) for part in parts)]


@table("clausepool.rounds", f"| {' | '.join(f'round {number}' for number in ROUNDS)}")
def clausepool_rounds(file: Any) -> Rows:
    """How accuracy and bytes grow."""
    for title, cells in list_partitions(file):
        runs = cells["pool"].values()
        shares = [fmean(run["by_round"][number] for run in runs) for number in ROUNDS]
        sizes = [max(run["bytes_by_round"][number] for run in runs) / 1e5 for number in ROUNDS]
        yield [title, *(f"{share:.2f}, {size:.1f} kB" for share, size in zip(shares, sizes, strict=True))]


@table("clausepool", "| clauses a class | alone | own clauses | clausepool | over alone | over own | kB at most | aim")
def clausepool(file: Any) -> Rows:
    """Before seed features."""
    known = {run["run"]: run for run in file["twenty_steps"] + file["fashion_mnist"]}

    def find(pattern: str) -> Runs:
        return {seed: known[pattern.format(seed)] for seed in range(3)} if pattern else {}

    for title, offered, *patterns, aim in (
        ("CIFAR-10, α = 0.1", "1", "ci-q1-{}", "ci-local-{}", "", "84 % in 40 kB"),
        ("CIFAR-10, α = 0.1", "3", "ci-q3-{}", "ci-local-{}", "", "85.3 % in 115 kB"),
        ("Fashion-MNIST, α = 0.05", "2", "fm0.05-pool-{}", "local-0.05/seed-{}", "fm0.05-own-{}", "+0.4 in 25 kB"),
        ("Fashion-MNIST, α = 0.1", "2", "fm0.1-pool-{}", "local-0.1/seed-{}", "fm0.1-own-{}", "+1.2 in 40 kB"),
        ("Fashion-MNIST, α = 1", "2", "fm1-pool-{}", "local-1/seed-{}", "fm1-own-{}", "+5.5 in 180 kB"),
    ):
        pool, alone, own = map(find, patterns)
        means = [mean(runs, is_sent=False) for runs in (alone, own, pool)]
        most = max(map(sent_kb, pool.values()))
        yield [title, offered, *means, gain(pool, alone), gain(pool, own), f"{most:.1f}", aim]
