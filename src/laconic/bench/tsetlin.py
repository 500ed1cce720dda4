"""`laconic bench tsetlin`: our Tsetlin engine and its peers on the same jobs, taking turns.

Machines are noisy and their speed drifts; turns let every engine meet the same drift, so that the ratios hold.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from laconic.bench import peers
from laconic.bench.jobs import JOBS, Job, write_data

OURS = "laconic"
WORKER = Path(__file__).with_name("worker.py")


class Worker:
    """A subprocess that runs one engine; it works only while it is asked."""

    def __init__(self, engine: str, python: list[str], threads: int, log: Path) -> None:
        self.engine, self.log = engine, log
        limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(threads))
        with log.open("w") as stderr:
            self.process = subprocess.Popen(
                [*python, str(WORKER), engine],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                env=os.environ | limits,
                start_new_session=True,  # Ctrl-C reaches us alone; we then end the workers
            )

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def ask(self, step: str, **order: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps({"step": step} | order) + "\n")
            self.process.stdin.flush()
            reply = self.process.stdout.readline()
        except BrokenPipeError:
            reply = ""
        if not reply:
            code, last_lines = self.process.wait(), self.log.read_text().strip().splitlines()[-5:]
            raise RuntimeError("\n".join([f"{self.engine} ended with code {code} in step {step}:", *last_lines]))
        return dict(json.loads(reply))


@dataclass
class Tally:
    """What one engine did on one job, over all seeds."""

    train_samples: int = 0
    train_seconds: float = 0.0
    predict_samples: int = 0
    predict_seconds: float = 0.0
    accuracies: list[float] = field(default_factory=list)  # one per seed
    rss_mb: float = 0.0  # peak above what the process held after its imports
    working_mb: float = 0.0  # peak above what it held once warm: data, encoded data and the machine, no code

    @property
    def train_per_s(self) -> float:
        return self.train_samples / self.train_seconds

    @property
    def predict_per_s(self) -> float | None:
        return self.predict_samples / self.predict_seconds if self.predict_samples else None

    @property
    def accuracy(self) -> float | None:
        return statistics.fmean(self.accuracies) if self.accuracies else None

    @property
    def accuracy_se(self) -> float | None:
        """Standard error of the mean; None for fewer than two seeds."""
        n_seeds = len(self.accuracies)
        return statistics.stdev(self.accuracies) / n_seeds**0.5 if n_seeds > 1 else None

    def add(self, step: str, reply: Mapping[str, Any]) -> None:
        if step == "train":
            self.train_samples += reply["samples"]
            self.train_seconds += reply["seconds"]
        else:
            self.predict_samples += reply["samples"]
            self.predict_seconds += reply["seconds"]
        self.rss_mb = max(self.rss_mb, reply["rss_mb"])
        self.working_mb = max(self.working_mb, reply["working_mb"])


def summarize(name: str, ours: Tally, others: Mapping[str, Tally]) -> dict[str, Any]:
    """One row; every peer number is that of the peer which is best at it."""
    best_peer = max(others, key=lambda peer: others[peer].train_per_s)
    predict_rates = [rate for tally in others.values() if (rate := tally.predict_per_s) is not None]
    most_accurate = max(others.values(), key=lambda tally: tally.accuracy or 0.0)
    peer_predict = max(predict_rates, default=None)
    return {
        "job": name,
        "ours_train_per_s": ours.train_per_s,
        "ours_predict_per_s": ours.predict_per_s,
        "best_peer": best_peer,
        "peer_train_per_s": others[best_peer].train_per_s,
        "peer_predict_per_s": peer_predict,
        "train_ratio": ours.train_per_s / others[best_peer].train_per_s,
        "predict_ratio": ours.predict_per_s / peer_predict if ours.predict_per_s and peer_predict else None,
        "ours_accuracy": ours.accuracy,
        "peer_accuracy": most_accurate.accuracy,
        "ours_rss_mb": ours.rss_mb,
        "peer_rss_mb": min(tally.rss_mb for tally in others.values()),
        "ours_accuracy_se": ours.accuracy_se,
        "peer_accuracy_se": most_accurate.accuracy_se,
        "ours_working_mb": ours.working_mb,
        "peer_working_mb": min(tally.working_mb for tally in others.values()),
        "peers": {
            peer: {
                "version": peers.VERSIONS[peer],
                "train_per_s": tally.train_per_s,
                "predict_per_s": tally.predict_per_s,
                "accuracy": tally.accuracy,
                "accuracy_se": tally.accuracy_se,
                "rss_mb": tally.rss_mb,
                "working_mb": tally.working_mb,
            }
            for peer, tally in others.items()
        },
    }


def take_turns(job: Job, workers: Mapping[str, Worker], seeds: int, say: Callable[[str], None]) -> dict[str, Tally]:
    """Seed by seed every engine trains in its turn, then every engine predicts."""
    tallies = {engine: Tally() for engine in workers}
    for seed in range(1, seeds + 1):
        for engine, worker in workers.items():
            reply = worker.ask("train", seed=seed)
            tallies[engine].add("train", reply)
            rate = reply["samples"] / reply["seconds"]
            say(f"  seed {seed}/{seeds} {engine}: trained {rate:,.0f}/s")
        for engine, worker in workers.items() if job.n_test else ():
            reply = worker.ask("predict")
            tallies[engine].add("predict", reply)
            tallies[engine].accuracies.append(reply["accuracy"])
            rate = reply["samples"] / reply["seconds"]
            say(f"  seed {seed}/{seeds} {engine}: predicted {rate:,.0f}/s, accuracy {reply['accuracy']:.4f}")
    return tallies


def select_peers(job: Job, against: Sequence[str]) -> list[str]:
    """Those of `against` that have such a machine."""
    able = [peer for peer in against if not job.coalesced or peer in peers.WITH_COALESCED]
    return [peer for peer in able if job.patch is None or peer not in peers.FLAT_ONLY]


def run(
    names: Sequence[str], against: Sequence[str], *, threads: int, seeds: int, say: Callable[[str], None]
) -> Iterator[dict[str, Any]]:
    """One row per job, as each is done."""
    ours = [sys.executable, "-P"]  # without its own folder on the path: a peer must not meet our module names
    pythons = {OURS: ours} | {peer: [str(peers.ensure_environment(peer, say)), "-I"] for peer in against}
    for name in names:
        job = JOBS[name]
        engines = [OURS, *select_peers(job, against)]
        say(f"job {name}: {job.title}; {', '.join(engines)} in turns on {threads} thread(s)")
        with tempfile.TemporaryDirectory(prefix="laconic-bench-") as folder, ExitStack() as stack:
            data = Path(folder) / "data.npz"
            example, shared = write_data(job, data), {"threads": threads}
            order = {"spec": job.spec() | shared, "example": example}
            classic = order | {"spec": JOBS[job.classic or name].spec() | shared}
            with Worker(OURS, ours, threads, Path(folder) / "compile.log") as compiler:
                # In a process that then ends, since a compiler's memory is not the engine's.
                compile_seconds = compiler.ask("warm_up", **order)["seconds"]
            workers = {}
            for engine in engines:
                worker = Worker(engine, pythons[engine], threads, Path(folder) / f"{engine}.log")
                workers[engine] = stack.enter_context(worker)
                worker.ask("warm_up", **(order if engine == OURS else classic))
                worker.ask("load", path=str(data))
            tallies = take_turns(job, workers, seeds, say)
        others = {peer: tally for peer, tally in tallies.items() if peer != OURS}
        yield summarize(name, tallies[OURS], others) | {
            "threads": threads,
            "seeds": seeds,
            "cpu": cpu_model(),
            "compile_seconds": compile_seconds,
        }


def cpu_model() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """A block per job: every engine, then our ratio to the best peer in that column."""
    compile_seconds = max(row["compile_seconds"] for row in rows)
    shown = Table(
        caption=f"{rows[0]['cpu']}, {rows[0]['threads']} thread(s), {rows[0]['seeds']} seed(s). "
        f"Encoding is in the times, our compilation (first call: at most {compile_seconds:.1f} s) is not. "
        "MB: peak above imports.",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    shown.add_column("job")
    shown.add_column("engine", no_wrap=True)
    for heading in ("train/s", "predict/s", "accuracy", "MB"):
        shown.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        ours = {key.removeprefix("ours_"): value for key, value in row.items() if key.startswith("ours_")}
        for engine, numbers in {OURS: ours, **row["peers"]}.items():
            spread = f" ±{numbers['accuracy_se']:.4f}" if numbers["accuracy_se"] is not None else ""
            shown.add_row(
                row["job"] if engine == OURS else "",
                engine,
                write(numbers["train_per_s"], ",.0f"),
                write(numbers["predict_per_s"], ",.0f"),
                write(numbers["accuracy"], ".4f") + spread,
                write(numbers["rss_mb"], ",.0f"),
            )
        ratios = [write(row[key], ".1f", "x") for key in ("train_ratio", "predict_ratio")]
        shown.add_row("", "ratio to the best peer", *ratios, end_section=True, style="bold")
    return shown


def write(number: float | None, form: str, unit: str = "") -> str:
    return "-" if number is None else f"{number:{form}}{unit}"
