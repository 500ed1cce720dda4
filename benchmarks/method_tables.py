"""Tables about methods: what each says of itself, the schemas of its messages, and what was measured of it anywhere."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import headline
from method_pages import FAMILIES, find_page, list_family
from tables import DATA, NOTHING, Rows, number, table, tell_options, tell_precision

from laconic.algorithms import METHODS
from laconic.reproduce.papers.pfed1bs import TESTED_AS_TRAINED

RESULTS = Path(__file__).parent.parent / "docs" / "results"


@table("methods-by-family", "methods on | ")
def list_by_family(_: None) -> Rows:
    for family, words in FAMILIES.items():
        yield [words, " ".join(f"[`{name}`](docs/methods/{page})" for name, page in list_family(family))]


@table("methods", "method | what it does | what travels | paper")
def list_methods(_: None) -> Rows:
    for name, method in METHODS.items():
        summary = method.summary.partition(": ")[2].rstrip(".")
        yield [f"[{name}]({find_page(name)})", summary, method.travels, method.paper]


# ---------------------------------------------------------------- what travels
TRAVELS = "direction | step | field | kind | optional | meaning"


def list_travels(method: str) -> Rows:
    """By the schemas of its messages."""
    from laconic.catalogue import list_travels

    rows = list_travels(method)
    for row in rows:
        optional = "yes" if row["optional"] else ""
        field, meaning = f"`{row['field']}`", row["meaning"].replace("|", r"\|")
        yield [row["direction"], row["step"], field, row["kind"], optional, meaning]
    if not rows:
        yield ["nothing"] + [""] * TRAVELS.count("|")


# ---------------------------------------------------------------- what was measured
class Measured(NamedTuple):
    """One run; those of one method and setting are averaged."""

    method: str
    data: str
    setting: str  # clients, how unlike, how many take part, rounds, and what else differs from the defaults
    accuracy: float  # percent, each client on its own test examples after the last round
    p10: float | None
    sent: float  # kB of one client, both ways, over the whole run
    paper: float | None  # the same by the paper's count
    page: str  # of docs/results


def read(name: str) -> Any:
    return json.loads((RESULTS / name).read_text("utf-8"))


def share(run: Any, clients: int, unit: str = "bytes") -> tuple[float, float | None]:
    """What one client sent and received, and what its paper would count, in kB; unit: of the file, bytes or mb."""
    ways = [f"upload_{unit}", f"download_{unit}"]
    each = (1e6 if unit == "mb" else 1) / clients / 1000
    counted = [f"paper_{way}" for way in ways]
    paper = sum(run[way] for way in counted) * each if all(way in run for way in counted) else None
    return sum(run[way] for way in ways) * each, paper


def read_digits() -> Iterator[Measured]:
    for run in read("methods.json")["runs"]:
        setting = f"10 clients, α = 0.3, {run['last_round']} rounds, every setting by default"
        yield Measured(run["method"], "digits", setting, run["last"], run["p10"], *share(run, 10), "README.md#methods")


def read_one_partition() -> Iterator[Measured]:
    for run in read("networks.json")["one_partition"]:
        setting, sent = "100 clients, 30 a round, α = 0.1, 10 rounds", share(run, 100, "mb")
        yield Measured(run["method"], run["data"], setting, run["accuracy"], run["p10"], *sent, "networks.md")


def read_seeds() -> Iterator[Measured]:
    for data, alpha, kind, run in headline.list_runs(read("clausepool.json")):
        if kind in headline.OWN:
            rounds = f"{run['last_round']} round{'s' * (run['last_round'] > 1)}"
            more = {"few": ", few bytes", "once": ", one shot"}.get(kind, "")
            setting, name = f"100 clients, α = {alpha}, {rounds}{more}", {"ci": "cifar10", "fm": "fashion_mnist"}[data]
            yield Measured(run["method"], name, setting, run["last"], run["p10"], *share(run, 100), "clausepool.md")


def read_hundred_rounds() -> Iterator[Measured]:
    for run in read("cs-pfedtm.json")["cifar10_a0d93e8"]:
        if run["run"].startswith("pub-0.1"):
            last, p10 = 100 * run["accuracy_by_round"]["100"], 100 * run["accuracy_p10"]
            setting = "100 clients, 30 a round, α = 0.1, 100 rounds"
            yield Measured(run["method"], "cifar10", setting, last, p10, *share(run, 100), "cs-pfedtm.md")


def read_whole_networks() -> Iterator[Measured]:
    for run in read("fedpurin.json")["whole_network"]:
        if run["run"].startswith("cifar10-0.1"):
            last, p10 = 100 * run["accuracy_by_round"]["10"], 100 * run["accuracy_p10"]
            setting = "20 clients, α = 0.1, 10 rounds of ResNet-8"
            yield Measured(run["method"], "cifar10", setting, last, p10, *share(run, 20), "fedpurin.md")
    for run in read("fedpurin.json")["sixty_rounds"]:
        data = run["run"].removeprefix(f"{run['method']}-").partition("-")[0]
        figures = (run["last"], run["p10"], *share(run, 20))
        yield Measured(run["method"], data, "20 clients, α = 0.5, 60 rounds of ResNet-8", *figures, "fedpurin.md")


def read_signs() -> Iterator[Measured]:
    file = read("pfed1bs.json")
    for run in file["as_tested"]:
        data = run["run"].partition("/")[0].rpartition("-")[2]
        setting = f"20 clients with two labels each, 100 rounds of {'an MLP' if data == 'mnist' else 'a VGG8'}"
        setting += ", tested as trained" if run["method"] in TESTED_AS_TRAINED else ""
        yield Measured(run["method"], data, setting, run["last"], run["p10"], *share(run, 20), "pfed1bs.md")


def read_prototypes() -> Iterator[Measured]:
    for run in read("prototypes.json")["sixty_rounds"]:
        options = tell_options(run["run"])
        setting = "10,000 examples, 20 clients, α = 0.1, 60 rounds of four slim networks"
        setting += f", {options}" if options else ""
        figures = (run["last"], run["p10"], *share(run, 20))
        yield Measured(run["method"], "cifar10", setting, *figures, "prototypes.md")


def read_speakers() -> Iterator[Measured]:
    for run in read("natural.json")["runs"]:
        if run["run"].startswith(f"t-{run['method']}-"):  # others are controls
            setting = f"100 speakers, {run['last_round']} rounds"
            yield Measured(
                run["method"], "Speech Commands", setting, run["last"], run["p10"], *share(run, 100), "natural.md"
            )


def read_ruler() -> Iterator[Measured]:
    file = read("ruler.json")
    tuned_on = {row["data"] for row in file["validation"]}
    for row in file["rows"]:
        setting = f"100 clients, 10 a round, α = {row['alpha']}, {row['rounds']} rounds"
        setting += tell_precision(row) + (", tuned" if row["data"] in tuned_on else "")
        figures = (row["accuracy"], row["p10"], row["kilobytes"], None)
        yield Measured(row["method"], row["data"], setting, *figures, "ruler.md")


SOURCES: tuple[Callable[[], Iterator[Measured]], ...] = (
    read_digits,
    read_one_partition,
    read_ruler,
    read_seeds,
    read_hundred_rounds,
    read_whole_networks,
    read_signs,
    read_prototypes,
    read_speakers,
)


def list_measured(method: str) -> Rows:
    groups: dict[tuple[str, str, str], list[Measured]] = defaultdict(list)
    for source in SOURCES:
        for row in source():
            if row.method == method:
                groups[row.data, row.setting, row.page].append(row)
    for (data, setting, page), rows in groups.items():
        accuracy, sent = fmean(row.accuracy for row in rows), fmean(row.sent for row in rows)
        p10, paper = average(row.p10 for row in rows), average(row.paper for row in rows)
        less = NOTHING if not paper or not sent else f"{paper / sent:.1f}×"
        figures = [f"{accuracy:.1f}", number(p10, 1), number(sent, int(0 < sent < 100)), less, str(len(rows))]
        yield [
            DATA.get(data, data),
            setting,
            *figures,
            f"[{TITLES.get(page, page.partition('.')[0])}](../results/{page})",
        ]


def average(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


TITLES = {"README.md#methods": "every method"}
MEASURED = "data | setting | accuracy % | worst tenth | kB a client | paper ÷ sent | seeds | more"
for each in METHODS:
    table(f"travels.{each}", TRAVELS)(lambda _, method=each: list_travels(method))
    table(f"measured.{each}", MEASURED)(lambda _, method=each: list_measured(method))
