"""How tables are made: each has a header and a function from its JSON, if it has one, to the cells of its rows.

Percent are of test examples, a kB is 1000 bytes; ± beside a difference is the standard error of its mean over seeds,
beside an accuracy the standard deviation over seeds. pages.py calls these and writes the pages.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from statistics import fmean, stdev
from typing import Any

from method_pages import find_page

from laconic.reproduce import page

Rows = Iterator[list[str]]
Make = Callable[[Any], Rows]
TABLES: dict[str, tuple[str, Make]] = {}  # by name: header and rows

DATA = {"mnist": "MNIST", "fashion-mnist": "Fashion-MNIST", "fashion_mnist": "Fashion-MNIST", "cifar10": "CIFAR-10"}
NOTHING = "–"


def table(name: str, header: str) -> Callable[[Make], Make]:
    return lambda make: TABLES.setdefault(name, (header, make))[1]


def link(method: str) -> str:
    return f"[{method}](../methods/{method}.md)"


def number(value: float | None, digits: int = 0, unit: str = "") -> str:
    return NOTHING if value is None else f"{value:,.{digits}f}{unit}"


def signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")


def megabytes(size: float) -> str:
    return number(size / 1e6, 3 if size < 1e6 else 1 if size < 1e8 else 0)


def sent_kb(run: Any) -> float:
    """Of one of 100 clients, both ways."""
    return (run["upload_bytes"] + run["download_bytes"]) / 100 / 1000


def tell_precision(row: Any) -> str:
    """Of a network's numbers on the wire, where it is not the usual int8."""
    return ", int4" if "up int4" in row["settings"] else ""


# -- Tsetlin Machines


CS_PFEDTM = {  # runs of Fashion-MNIST are named by these
    "cs": f"{link('cs-pfedtm')} as published",
    "csp": "the same, `present_only=true`",
    "pers": "the same, `mask=false`",
    "fedtm": f"{link('fedtm')}: one machine for all",
    "mask": "the same, `mask=true`",
    "tpfl": link("tpfl"),
    "local": f"{link('local-tm')}: nothing shared",
}
CS_PFEDTM_FOLDERS = {  # of the other runs, where they are not named by their method
    ("abl", "cs-pfedtm"): "pers",
    ("abl", "fedtm"): "mask",
    ("pres", "cs-pfedtm"): "csp",
    ("pub", "cs-pfedtm"): "cs",
    ("pub", "local-tm"): "local",
}


@table("cs-pfedtm", "| Fashion-MNIST, α = 0.05 | Fashion-MNIST, α = 0.1 | CIFAR-10, α = 0.05 | CIFAR-10, α = 0.1")
def cs_pfedtm(file: Any) -> Rows:
    found: dict[tuple[str, str, str], list[tuple[float, float]]] = defaultdict(list)
    for key in ("fashion_mnist", "fashion_mnist_e5374b8", "fashion_mnist_a0d93e8", "cifar10_a0d93e8"):
        for run in file[key]:
            folder, alpha, rest = re.fullmatch(r"(\w+)-([\d.]+)(.*)", run["run"]).groups()
            method = run["method"]
            what = (
                rest.split("/")[0].split("-")[1] if folder == "fm" else CS_PFEDTM_FOLDERS.get((folder, method), method)
            )
            best = run["best"] if "best" in run else 100 * run["accuracy_best"]
            found["cifar10" if "cifar10" in key else "fashion_mnist", alpha, what].append((best, sent_kb(run)))
    published = {(p["data"], str(p["alpha"]), p["what"]): f" (paper {p['accuracy']:.2f})" for p in file["published"]}
    for what, title in CS_PFEDTM.items():
        cells = [title]
        for data, alpha in ((data, alpha) for data in ("fashion_mnist", "cifar10") for alpha in ("0.05", "0.1")):
            best, sent = zip(*found[data, alpha, what], strict=True)
            size = f", {fmean(sent):.1f} kB" if any(sent) else ""
            cells.append(f"{fmean(best):.2f} ± {stdev(best):.2f}{size}{published.get((data, alpha, what), '')}")
        yield cells


@table(
    "fedtm", "| α | published | ours | difference | mean of rounds 16–20 | up: paper's · sent | down: paper's · sent"
)
def fedtm(file: Any) -> Rows:
    for name, run in file.items():
        data, alpha = name.rsplit("-", 1)
        rounds = run["rounds"][:20]
        accuracy = [100 * r["accuracy_pooled"] for r in rounds]
        theirs = 100 * run["published"]
        cells = [DATA[data], alpha, f"{theirs:.2f}", f"{accuracy[-1]:.2f}", signed(accuracy[-1] - theirs)]
        cells.append(f"{fmean(accuracy[15:]):.2f}")
        for way in ("upload_bytes", "download_bytes"):
            counted, sent = (fmean(r[key] for r in rounds) / 1e6 for key in (f"paper_{way}", way))
            cells.append(f"{counted:.3f} · {sent:.3f} MB ({counted / sent:.1f}×)")
        yield cells


@table(
    "scale",
    "clients | commit | CPU ms per client-round | peak memory | state on disk, a client | records per client-round",
)
def scale(file: Any) -> Rows:
    for run in file["runs"]:
        size = [number(run.get("state_kb"), 1, " kB"), number(run.get("record_bytes"), 0, " B")]
        yield [number(run["clients"]), run["commit"], str(run["cpu_ms"]), f"{run['peak_mb']} MB", *size]


ENGINE_COMMITS = ("0e92117", "50425ed", "2e1040d")  # of the present kernels
ENGINE_JOBS = {  # laconic/bench/jobs.py has them in full; aims for training and prediction
    "A": ("Fashion-MNIST, adaptive threshold, 5×5 patches, 200 clauses", 80, 180),
    "B": ("Fashion-MNIST, pixel > 75, 10×10 patches, 100 clauses", 40, 60),
    "C": ("Fashion-MNIST, flat, 784 bits, 200 clauses", 14, 6),
    "D": ("20 new machines of 300 images, as B, one epoch", 30, None),
    "E": ("CIFAR-10, 24 bit layers, 3×3 patches, 200 clauses", 100, 250),
    "coalesced": ("as A, 2,000 clauses for all classes", 60, 120),
}


@table(
    "tsetlin",
    "job | commit | train/s, ours · peer | ratio (aim) | predict/s | ratio (aim) | accuracy | peer's | MB · peer's",
)
def tsetlin(file: Any) -> Rows:
    def speed(run: Any, what: str, aim: int | None, digits: int) -> list[str]:
        ours, peer, ratio = (run[key] for key in (f"ours_{what}_per_s", f"peer_{what}_per_s", f"{what}_ratio"))
        return [f"{ours:,.0f} · {peer:,.0f}", f"**{ratio:.{digits}f}×** (≥ {aim})"] if ratio else [NOTHING, NOTHING]

    def accuracy(run: Any, who: str) -> str:
        mean, error = run[f"{who}_accuracy"], run[f"{who}_accuracy_se"]
        return f"{mean:.4f} ± {error:.4f}" if mean else NOTHING

    for job, (title, aim_train, aim_predict) in ENGINE_JOBS.items():
        name = f"{job}: {title}"
        for run in reversed([r for r in file if (r["job"], r["seeds"]) == (job, 5) and r["commit"] in ENGINE_COMMITS]):
            speeds = speed(run, "train", aim_train, 1) + speed(run, "predict", aim_predict, 0)
            memory = f"{run['ours_rss_mb']:.0f} · {run['peer_rss_mb']:.0f}"
            yield [name, run["commit"], *speeds, accuracy(run, "ours"), accuracy(run, "peer"), memory]
            name = f"{job}, another run"


@table("mnist", "epoch | 1 | 2 | 5 | 10 | 20 | 30 | 40 | 50 | 60 | 70")
def mnist(file: Any) -> Rows:
    curve = {point["epoch"]: f"{100 * point['test_accuracy']:.2f}" for point in file["curve"]}
    yield ["test accuracy, %", *(curve[epoch] for epoch in (1, 2, 5, 10, 20, 30, 40, 50, 60, 70))]


@table("fuzzy", "| clauses a class | classic (literals) | fuzzy (literals) | training, classic · fuzzy")
def fuzzy(file: Any) -> Rows:
    yield from show_both(file["accuracy"])


@table("fuzzy.thousands", "| clauses a class | classic (literals) | fuzzy (literals) | training, classic · fuzzy")
def fuzzy_thousands(file: Any) -> Rows:
    yield from show_both(file["thousands"])


def show_both(measured: list[Any]) -> Rows:
    """Classic and fuzzy machines of as many clauses side by side."""
    rows = defaultdict[tuple[str, int], dict[str, list[Any]]](lambda: defaultdict(list))
    for row in measured:
        rows[row["data"], row["n_clauses"]][row["kind"]].append(row)
    for (data, n_clauses), kinds in rows.items():
        cells, seconds = [], []
        for kind in ("classic", "fuzzy"):
            shares = [100 * row["accuracy"] for row in kinds[kind]]
            literals = fmean(row["literals"] for row in kinds[kind])
            cells.append(f"{fmean(shares):.2f} ± {stdev(shares):.2f} ({literals:.0f})")
            seconds.append(f"{fmean(row['train_seconds'] for row in kinds[kind]):.1f}")
        yield [DATA[data], str(n_clauses), *cells, f"{seconds[0]} · {seconds[1]} s"]


@table("fuzzy.speed", "engine | machine | train/s | predict/s | accuracy | measured")
def fuzzy_speed(file: Any) -> Rows:
    for row in file["speed"]:
        rates = [number(row["train_per_s"]), number(row["predict_per_s"])]
        yield [row["engine"], row["machine"], *rates, row["accuracy"], row["measured"]]


@table("fuzzy.federated", "method, data | clauses | seeds | classic | kB | fuzzy | kB | of the bytes")
def fuzzy_federated(file: Any) -> Rows:
    for row in file["federated"]:
        classic, fuzzy = ([100 * run["accuracy"] for run in row[kind]] for kind in ("classic", "fuzzy"))
        sizes = [fmean(run["kB"] for run in row[kind]) for kind in ("classic", "fuzzy")]

        def mean(shares: list[float]) -> str:
            return f"{fmean(shares):.2f}" + (f" ± {stdev(shares):.2f}" if len(shares) > 1 else "")

        cells = [mean(classic), f"{sizes[0]:.1f}", mean(fuzzy), f"{sizes[1]:.1f}", f"1/{sizes[0] / sizes[1]:.1f}"]
        yield [f"{link(row['method'])}, {row['data']}", row["clauses"], row["seeds"], *cells]


@table("fuzzy.balanced", "classes | examples | shares | classic | if balanced | fuzzy | if balanced")
def fuzzy_balanced(file: Any) -> Rows:
    rows = defaultdict[tuple[int, int, str], dict[str, Any]](dict)
    for row in file["balanced"]:
        rows[row["n_classes"], row["n_examples"], row["shares"]][row["kind"]] = row
    for (n_classes, n_examples, shares), kinds in sorted(rows.items()):
        cells = []
        for row in (kinds["classic"], kinds["fuzzy"]):
            cells += [f"{row['plain']:.2f}", f"{signed(row['gain'])} ± {row['error']:.2f}"]
        yield [str(n_classes), number(n_examples), shares, *cells]


# -- networks


@table(
    "networks.speed",
    "| commit | ours, samples/s | bare loop | serial, as PFLlib | PFLlib's FedAvg | Flower's simulator",
)
def networks_speed(file: Any) -> Rows:
    for run in file["rounds"]:
        others = [run.get(other) for other in ("loop", "serial", "pfllib", "flower")]
        cells = [f"{other:,} (**{run['ours'] / other:.2f}**)" if other else NOTHING for other in others]
        yield [link(run["job"]), run["commit"], number(run["ours"]), *cells]


@table(
    "networks.one_partition", "| Fashion-MNIST % (worst tenth) | kB a client | CIFAR-10 % (worst tenth) | kB a client"
)
def networks_one_partition(file: Any) -> Rows:
    runs = {(run["data"], run["method"]): run for run in file["one_partition"]}
    methods = [method for data, method in runs if data == "fashion_mnist"]
    for method in sorted(methods, key=lambda name: -runs["fashion_mnist", name]["accuracy"]):
        cells = [link(method)]
        for data in ("fashion_mnist", "cifar10"):
            run = runs[data, method]
            sent = 10 * (run["upload_mb"] + run["download_mb"])  # kB of one of 100 clients
            cells += [f"{run['accuracy']:.2f} ({run['p10']:.1f})", number(sent, int(0 < sent < 100))]
        yield cells


FEDPURIN = ("separate", "fedavg", "fedper", "fedbn", "pfedsd", "fedcac", "fedpurin")


@table(
    "fedpurin.whole_network", "ours · published | CIFAR-10, α = 0.1 | 0.5 | 1.0 | Fashion-MNIST, α = 0.1 | 0.5 | 1.0"
)
def fedpurin_whole_network(file: Any) -> Rows:
    columns = [f"{data}-{alpha}" for data in ("cifar10", "fashion_mnist") for alpha in ("0.1", "0.5", "1.0")]
    runs = {tuple(run["run"].split("/")): run for run in file["whole_network"]}
    published = {row["method"]: row for row in file["published"]}

    def cells(method: str, key: str) -> Iterable[float]:
        return [runs[f"{column}-{method}", method][key] for column in columns]

    for method in FEDPURIN:
        best = zip(columns, cells(method, "accuracy_best"), strict=True)
        yield [link(method), *(f"{100 * ours:.1f} · {published[method][column]:.1f}" for column, ours in best)]
    uploads = zip(cells("fedpurin", "upload_bytes"), cells("fedavg", "upload_bytes"), strict=True)
    yield ["fedpurin's uploads below fedavg's", *(f"{100 * (1 - mine / theirs):.1f} %" for mine, theirs in uploads)]


@table(
    "fedpurin.sixty_rounds",
    "| CIFAR-10: published | ours | FedPURIN's lead | sent up | Fashion-MNIST: published | ours | lead | sent up",
)
def fedpurin_sixty_rounds(file: Any) -> Rows:
    """A lead is the mean over clients of differences in their shares of right answers."""
    runs = {run["run"].removesuffix("-0.5/seed-0"): run for run in file["sixty_rounds"]}
    published = {row["method"]: row for row in file["published"]}
    for method in FEDPURIN:
        cells = [link(method)]
        for data in ("cifar10", "fashion_mnist"):
            cells.append(f"{published[method][f'{data}-0.5']:.1f}")
            cells += tell_lead(runs[f"fedpurin-{data}"], runs.get(f"{method}-{data}"))
        yield cells


def tell_lead(leader: Any, run: Any) -> list[str]:
    """The run's best accuracy, what the leader has more of it, and the run's uploads."""
    if run is None:
        return [NOTHING, NOTHING, NOTHING]
    lead = NOTHING if run is leader else tell_gain(leader, run)
    return [f"{fmean(list_shares(run)):.2f}", lead, f"{run['upload_bytes'] / 1e9:.2f} GB"]


def tell_gain(run: Any, other: Any) -> str:
    """What the run has more than the other at the same clients, each in its best round."""
    gains = [mine - theirs for mine, theirs in zip(list_shares(run), list_shares(other), strict=True)]
    return f"{signed(fmean(gains))} ± {stdev(gains) / len(gains) ** 0.5:.2f}"


def list_shares(run: Any) -> list[float]:
    """[client] percent"""
    return [100 * right / n for right, n in zip(run["n_correct"], run["n_test"], strict=True)]


@table("fedpurin.forty_rounds", "after round | 5 | 10 | 15 | 20 | 25 | 30 | 35 | 40 | published, best of 200")
def fedpurin_forty_rounds(file: Any) -> Rows:
    published = {row["method"]: f"{row['cifar10-0.5']:.1f}" for row in file["published"]}
    for run in sorted(file["forty_rounds"], key=lambda run: FEDPURIN.index(run["method"])):
        by_round = [f"{100 * run['accuracy_by_round'][str(r)]:.1f}" for r in range(5, 41, 5)]
        yield [link(run["method"]), *by_round, published[run["method"]]]


SIGNS = ("pfed1bs", "separate", "fedavg", "eden", "fedbat", "zsignfed", "obda", "obcsaa")


@table(
    "pfed1bs",
    "| MNIST % (worst tenth) | published | as averaged % | CIFAR-10 % | published | sent on MNIST, up + down"
    " | less | printed",
)
def pfed1bs(file: Any) -> Rows:
    """Means over seeds; less: than 32 bits of each weight both ways, by the paper's count."""
    published = {row["method"]: row for row in file["published"]}
    for method in SIGNS:
        runs, theirs = pick(file["as_tested"], f"{method}-mnist"), published.get(method, {})
        cifar10, averaged = pick(file["as_tested"], f"{method}-cifar10"), pick(file["as_averaged"], f"{method}-mnist")
        sent = [fmean(run[key] for run in runs) for key in ("upload_bytes", "download_bytes")]
        less, printed = NOTHING, number(theirs.get("less_than_fedavg"), 2, " %")
        if printed != NOTHING:
            counted = fmean(run["paper_upload_bytes"] + run["paper_download_bytes"] for run in runs)
            less = f"{100 * (1 - counted / file['fedavg_bytes']):.2f} %"
        yield [
            link(method),
            f"{mean_last(runs)} ({fmean(run['p10'] for run in runs):.1f})",
            number(theirs.get("mnist"), 2),
            mean_last(averaged),
            mean_last(cifar10),
            number(theirs.get("cifar10"), 2),
            f"{megabytes(sent[0])} + {megabytes(sent[1])} MB" if sent[0] else "0",
            less,
            printed,
        ]


def pick(runs: list[Any], name: str) -> list[Any]:
    """One for each seed."""
    return [run for run in runs if run["run"].startswith(f"{name}/")]


def mean_last(runs: list[Any]) -> str:
    return f"{fmean(run['last'] for run in runs):.2f}" if runs else NOTHING


@table(
    "prototypes",
    "| options | by target % | above plain by | above alone by | by head % | bytes sent | paper's count | published %",
)
def prototypes(file: Any) -> Rows:
    published = {(run["method"], run["options"]): run["published"] for run in file["rows"]}
    for run, cells in tell_prototypes(file["sixty_rounds"]):
        yield [*cells, number(published[run["method"], tell_options(run["run"])], 2)]


@table(
    "prototypes.one_kind",
    "| options | by target % | above plain by | above alone by | by head % | bytes sent | paper's count",
)
def prototypes_of_one_kind(file: Any) -> Rows:
    return (cells for _, cells in tell_prototypes(file["one_kind"]))


def tell_prototypes(runs: list[Any]) -> Iterator[tuple[Any, list[str]]]:
    """Means over clients, each in the round that was best by it."""
    plain = {run["method"]: run for run in runs if not tell_options(run["run"])}
    alone = plain["separate"]
    for run in runs:
        options, best = tell_options(run["run"]), fmean(list_shares(run))
        by_head = 100 * run["best_notes"].get("head_accuracy", best / 100)
        yield (
            run,
            [
                link(run["method"]),
                options,
                number(best if "prototype_accuracy" in run["best_notes"] else None, 1),
                tell_gain(run, plain[run["method"]]) if options else NOTHING,
                tell_gain(run, alone) if run is not alone else NOTHING,
                number(by_head, 1),
                number(run["upload_bytes"] + run["download_bytes"]),
                number(run["paper_upload_bytes"] + run["paper_download_bytes"]),
            ],
        )


def tell_options(run: str) -> str:
    """fedtgp-cifar10-0.1-cps50+ppa/seed-0: CPS 50, PPA"""
    _, _, options = run.partition("/")[0].partition("-0.1")
    return options.strip("-").upper().replace("CPS", "CPS ").replace("+", ", ")


def list_jobs(file: Any, work: str) -> Iterator[tuple[list[str], dict[str, float]]]:
    for found in file["found"]:
        if found["job"][0] == work:
            yield found["job"][1:], found["best"]


@table("data", "file | for a method on | seconds of CPU | by the clock | peak GB")
def data_clients(file: Any) -> Rows:
    kinds = {"fedtm": "bits", "separate": "values"}
    for (kind, method), best in list_jobs(file, "into_clients"):
        took = [f"{best[key]:.1f}" for key in ("cpu_seconds", "seconds")]
        yield [kind, f"{kinds[method]} ({method})", *took, f"{best['peak_gb']:.2f}"]


@table("data.readers", "reader | seconds of CPU | peak GB")
def data_readers(file: Any) -> Rows:
    for (_, library), best in list_jobs(file, "read_alone"):
        yield [library, f"{best['cpu_seconds']:.1f}", f"{best['peak_gb']:.2f}"]


@table("data.start", "command | seconds of CPU")
def data_start(file: Any) -> Rows:
    for (words,), best in list_jobs(file, "start"):
        yield [f"`{words}`", f"{best['cpu_seconds']:.2f}"]


@table("sketch.transform", "n | ours, ms | NumPy butterfly | SciPy rfft | dense product | copy | ours ÷ copy")
def sketch_transform(file: Any) -> Rows:
    for run in file["transform"]:
        ratios = run["ratios"]
        others = [(run[f"{name}_ms"], ratios[name]) for name in ("numpy", "scipy_rfft", "dense")]
        cells = [f"{ms:.3f} ({ratio}×)" if ratio else NOTHING for ms, ratio in others]
        yield [run["n"], f"**{run['ours_ms']:.4f}**", *cells, f"{run['copy_ms']:.4f}", str(ratios["to_copy"])]


@table(
    "sketch.networks",
    "weights · rows | forward, ms | adjoint | transform alone | draw signs and rows | rotate | unrotate",
)
def sketch_networks(file: Any) -> Rows:
    for run in file["sketches"]:
        keys = ("forward", "adjoint", "transform", "draw", "rotate", "unrotate")
        yield [f"{run['n']:,} · {run['m']:,}", *(f"{run[f'{key}_ms']:.2f}" for key in keys)]


@table(
    "models.c",
    "model | clauses | kB M0+ · M4 | stack, B | instructions M0+ · M4 | C, µs | Python alone | of many | rows compared",
)
def models_c(file: Any) -> Rows:
    for run in file["c"]:
        options = f" ({run['options']})" if run["options"] else ""
        chips = [run["chips"][chip] for chip in ("cortex-m0plus", "cortex-m4")]
        flash = " · ".join(f"{flash / 1000:.1f}" for flash, _, _ in chips)
        instructions = " · ".join(f"{run['instructions'][chip]:,}" for chip in ("cortex-m0plus", "cortex-m4"))
        times = [number(run[f"{who}_microseconds"], 1) for who in ("c", "python_alone", "python")]
        name = f"{link(run['method'])} on {DATA.get(run['data'], run['data'])}{options}"
        n_compared = run["compared_rows"] + run["compared_random_rows"]
        stack = str(max(each[2] for each in chips))
        yield [name, number(run["clauses"]), flash, stack, instructions, *times, number(n_compared)]


@table("mqtt", "what | Flower 1.41 | due | measured | command | commit")
def mqtt(file: Any) -> Rows:
    def row(name: str, what: str, before: str, due: str, measured: str) -> list[str]:
        return [what, before, due, f"**{measured}**", f"`python benchmarks/mqtt.py {name}`", file[name]["commit"]]

    wire, exchanges = file["wire"], file["exchanges"]
    up, down = exchanges["up_beyond_payload"], exchanges["down_beyond_payload"]
    yield row(
        "exchanges",
        "socket bytes of an exchange beyond its payload, up and down",
        "8,800 and 5,500",
        "100",
        f"{up:.0f} and {down:.0f}",
    )
    idle = file["idle"]["bytes_a_day"] / 1000
    yield row("idle", "idle node, bytes a day, both ways", "33 MB", "20 kB", f"{idle:.1f} kB")
    seconds = exchanges["median_seconds"]
    yield row("exchanges", "a later exchange of clausepool on digits, median", "5–7 s", "0.5 s", f"{seconds:.2f} s")
    payload = next(row for row in wire["rows"] if row["payload"] == 70)
    came = f"{payload['median_ms']:.1f} ms (nine tenths below {payload['p90_ms']:.1f})"
    yield row("wire", "of which transport: a round trip of 70 B, median", NOTHING, "50 ms", came)
    for kill in file["faults"]["rows"]:
        what = f"kill -9 of {kill['killed']}: two rounds further after"
        yield row("faults", what, NOTHING, "20 s", f"{kill['seconds']:.1f} s")
    for key, words in (("connect_first", "the first time"), ("connect_again", "with the TLS session resumed")):
        up, down = wire[key]
        yield row("wire", f"connecting {words}, up and down", NOTHING, NOTHING, f"{up:,.0f} and {down:,.0f} B")


@table("mqtt.many", "what | 200 nodes, measured | 1,000, measured | 10,000, by arithmetic | 1,000,000, by arithmetic")
def mqtt_many(file: Any) -> Rows:
    """By arithmetic: from the 1,000."""
    measured, wire, exchanges = [file["many_200"], file["many_1000"]], file["wire"], file["exchanges"]
    beyond = exchanges["up_beyond_payload"] + exchanges["down_beyond_payload"]
    duty = sum(wire["connect_again"]) + beyond

    def told(what: str, unit: str, figure: Callable[[Any], float], digits: int = 0) -> list[str]:
        figures = [figure(many) for many in measured]
        each = figures[-1] / measured[-1]["nodes"]
        return [what, *(f"{n:,.{digits}f} {unit}" for n in (*figures, 10_000 * each, 1_000_000 * each))]

    def spread(what: str, unit: str, each: float, digits: int = 0) -> list[str]:
        return told(what, unit, lambda many: each * many["nodes"], digits)

    seconds = [f"{many['median_round_seconds']:.2f} s" for many in measured]
    yield [
        "an exchange with everyone, 70 B each way, on a machine that also plays all nodes",
        *seconds,
        NOTHING,
        NOTHING,
    ]
    yield told("the broker's processor for it", "s", lambda many: many["broker_cpu_seconds_a_round"], 2)
    connecting = "the broker's processor for connecting everyone the first time"
    yield told(connecting, "s", lambda many: many["broker_cpu_seconds_connecting"], 1)
    memory = "the broker's memory for connections"
    yield told(memory, "MB", lambda many: many["broker_mb_after_rounds"] - many["broker_mb_before"])
    yield spread("bytes of the exchange beyond payload, both ways", "kB", beyond / 1000)
    yield spread("staying connected, a day", "MB", file["idle"]["bytes_a_day"] / 1e6, 1)
    yield spread("waking every ten minutes instead, with one exchange each, a day", "MB", 144 * duty / 1e6)


@table("trust", "what befalls | before | due | measured | command | commit")
def trust(file: Any) -> Rows:
    for row in file:
        command = f"`{row['command']}`" if row["command"] else NOTHING
        yield [row["test"], row["before"], row["due"], f"**{row['measured']}**", command, row["commit"]]


@table("lies", "method | averaging | without lies | with a liar | change | plain mean, with a liar | refused")
def lies(file: Any) -> Rows:
    for row in file:
        page, change = f"../methods/{find_page(row['method'])}", signed(100 * (row["liar"] - row["honest"]))
        honest, liar, mean = (f"{100 * row[key]:.1f}" for key in ("honest", "liar", "mean_liar"))
        yield [f"[{row['method']}]({page})", row["averaging"], honest, liar, change, mean, str(row["refused"])]


@table("parity", "method | reference | its commit | rounds | weights | masks | accuracy, theirs · ours | our commit")
def parity(file: Any) -> Rows:
    for row in file:
        masks = NOTHING if row["masks"] is None else f"{row['masks']:.2%}"
        accuracy = [number(row[f"accuracy_{who}"], 1) for who in ("theirs", "ours")]
        gaps = [str(row["rounds"]), f"{row['weights']:.1e}", masks, " · ".join(accuracy)]
        name = f"[{row['method']}](../methods/{find_page(row['method'])})"
        yield [name, row["reference"], row["their_commit"], *gaps, row["commit"]]


# ---------------------------------------------------------------- published figures
for name, (header, make) in page.TABLES.items():
    table(name, header)(lambda file, make=make: make(file["rows"]))
