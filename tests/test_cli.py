"""The command line: what it says, what it refuses, what it does not load, and how it ends."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from laconic.algorithms import METHODS
from laconic.bench.peers import VERSIONS

LACONIC = [sys.executable, "-c", "from laconic.cli import main; main()"]


HEAVY = {"numpy", "numba", "scipy", "sklearn", "torch", "laconic.tsetlin"}
# several command lines in one process, as most of a short one's time goes into imports
SCRIPT = """
import contextlib, io, json, sys
from laconic.cli import main
answers = []
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["laconic", *arguments]
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            main()
        except SystemExit as end:
            code = end.code
    answers.append([code or 0, out.getvalue(), err.getvalue()])
print(json.dumps([answers, sorted(sys.modules)]))
"""


class Answer(NamedTuple):
    code: int
    out: str
    err: str


def start(command: Sequence[str], folder: Path | None = None) -> Answer:
    wide = os.environ | {"COLUMNS": "200", "TERMINAL_WIDTH": "200"}  # else messages are broken between words
    done = subprocess.run(command, capture_output=True, text=True, env=wide, cwd=folder, check=False)
    return Answer(done.returncode, done.stdout, done.stderr)


def laconic(*arguments: str, folder: Path | None = None) -> Answer:
    return start([*LACONIC, *arguments], folder)


def in_turn(*commands: Sequence[str], folder: Path | None = None) -> tuple[list[Answer], set[str]]:
    """Answers to several command lines, and the modules loaded after all of them."""
    done = start([sys.executable, "-c", SCRIPT, json.dumps(commands)], folder)
    assert done.code == 0, done.err
    answers, modules = json.loads(done.out)
    return [Answer(*answer) for answer in answers], set(modules)


def test_help_gives_examples_and_help_and_lists_load_nothing_heavy() -> None:
    commands = ["demo", "list", "init", "check", "run", "compare", "report", "export", "explain", "predict", "bench"]
    helps = [["--help"], ["bench", "tsetlin", "--help"], *([command, "--help"] for command in commands)]
    answers, modules = in_turn(*helps, ["list"], ["list", "--json"])
    assert all("Example: laconic " in answer.out for answer in answers[: len(helps)])
    assert all(command in answers[0].out for command in commands)
    assert all(name in answers[-2].out for name in METHODS)
    methods = json.loads(answers[-1].out)
    assert {method["name"] for method in methods} == METHODS.keys()
    assert all({"name", "family", "paper", "travels", "extra"} == method.keys() for method in methods)
    assert not HEAVY & modules


def test_lists_name_data_sets_partitions_and_the_settings_of_a_method() -> None:
    (datasets, partitions, settings), _ = in_turn(
        ["list", "datasets", "--json"], ["list", "partitions"], ["list", "fedtm", "--json"]
    )
    assert {"digits", "mnist"} <= {row["name"] for row in json.loads(datasets.out)}
    assert "dirichlet-equal" in partitions.out
    (clauses,) = (row for row in json.loads(settings.out) if row["key"] == "method.n_clauses")
    assert clauses.keys() == {"key", "default", "takes", "meaning"}
    assert clauses["meaning"] == "per class"


def test_a_method_is_listed_with_what_travels() -> None:
    (shown, rows, nothing, wrong), _ = in_turn(
        ["list", "tpfl"], ["list", "tpfl", "--travels", "--json"], ["list", "local-tm"], ["list", "--travels"]
    )
    before, _, travels = shown.out.partition("\nWhat travels\n")
    assert "method.n_clauses" in before
    assert "the class this client is surest of" in travels
    assert json.loads(rows.out)[-1]["direction"] == "note"
    assert {row["direction"] for row in json.loads(rows.out)} == {"down", "up", "note"}
    assert nothing.out.endswith("\nWhat travels\nnothing\n")
    assert "--travels is of one method, not of methods" in wrong.err


# ---------------------------------------------------------------- experiments
QUICK = ("--set", "rounds=2", "--set", "method.epochs=1", "--set", "method.n_clauses=4", "--set", "data.clients=3")
KEYS = ["run", "method", "rounds", "tested", "accuracy_mean", "accuracy_best", "accuracy_p10"]
KEYS += ["upload_bytes", "download_bytes", "paper_upload_bytes", "paper_download_bytes", "seconds"]


def test_a_run_ends_with_one_json_object_is_never_overwritten_and_can_be_resumed(tmp_path: Path) -> None:
    done = laconic("run", *QUICK, "--out", "first", "--json", folder=tmp_path)
    assert done.code == 0, done.err
    (last,) = done.out.splitlines()
    summary = json.loads(last)
    assert list(summary) == KEYS
    assert (summary["run"], summary["method"], summary["rounds"]) == ("first", "fedtm", 2)
    assert [line.split()[0] for line in done.err.splitlines()[-2:]] == ["1", "2"]
    assert "\x1b" not in done.err
    assert {"DONE.json", "report.html"} <= {file.name for file in (tmp_path / "first").iterdir()}

    resumed, shown = ["run", "--resume", "first", "--json", "--quiet"], ["report", "first"]
    commands = ["run", *QUICK, "--out", "first"], resumed, shown, [*shown, "--json"]
    more = [*shown, "--svg", "--clauses-of", "2"], [*shown, "--clauses-of", "9"]
    (refused, again, reported, described, drawn, absent), _ = in_turn(*commands, *more, folder=tmp_path)
    assert refused.code == 2
    assert refused.err.startswith("error[E160] --out first already holds a run")
    assert "laconic run --resume first" in refused.err
    assert (again.code, again.err) == (0, "")
    assert {**json.loads(again.out), "seconds": 0} == {**summary, "seconds": 0}
    assert reported == (0, "report: first/report.html\n", "")
    (figures,) = json.loads(described.out)
    shared = set(figures) & set(summary)
    assert {"accuracy_best", "upload_bytes", "paper_download_bytes"} <= shared
    assert {key: figures[key] for key in shared - {"seconds"}} == {key: summary[key] for key in shared - {"seconds"}}
    assert figures["accuracy_by_round"]["2"] == summary["accuracy_mean"]
    written = [f"figure: first/figures/{name}.svg" for name in ("accuracy-by-bytes", "accuracy-by-round", "fairness")]
    assert drawn.out.splitlines() == ["report: first/report.html", *written]
    assert "Client 2 · accuracy" in (tmp_path / "first" / "report.html").read_text("utf-8")
    assert (absent.code, absent.err) == (2, "error: client is '9'; first has 0 to 2\n")


def test_a_comparison_goes_on_where_it_was_and_refuses_other_settings(tmp_path: Path) -> None:
    command = ["compare", "local-tm", "fedtm", *QUICK, "--set", "fedtm.blend=0.5", "--seed", "1,0", "--out", "both"]
    commands = [*command, "--json"], [*command, "--quiet"], [*command, "--set", "method.epochs=2"]
    shown = ["report", "both"], ["report", "both", "--json"]
    (first, again, other, reported, described), _ = in_turn(*commands, *shown, folder=tmp_path)
    assert first.code == 0, first.err
    runs = ["both/local-tm/seed-1", "both/local-tm/seed-0", "both/fedtm/seed-1", "both/fedtm/seed-0"]
    assert [result["run"] for result in json.loads(first.out.splitlines()[-1])] == runs
    partitions = [json.loads((tmp_path / run / "partition.json").read_text())["sha256"] for run in runs]
    assert partitions[:2] == partitions[2:]
    assert partitions[0] != partitions[1]
    assert (again.code, again.err) == (0, "")
    assert [line.split()[0] for line in again.out.splitlines()[:3]] == ["method", "local-tm", "fedtm"]
    assert again.out.count("±") == 2  # over the two seeds
    assert again.out.splitlines()[-1] == "report: both/report.html"
    assert other.code == 2
    assert "both/local-tm/seed-1 holds a run with other settings" in other.err
    assert reported == (0, "report: both/report.html\n", "")
    assert [result["run"] for result in json.loads(described.out)] == runs


def test_interrupt_leaves_a_checkpoint_and_says_how_to_go_on(tmp_path: Path) -> None:
    command = [*LACONIC, "run", *QUICK, "--set", "rounds=100000", "--out", "run"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        while not (tmp_path / "run" / "checkpoints" / "manifest.json").exists():
            assert run.poll() is None
            time.sleep(0.05)
        run.send_signal(signal.SIGINT)
        _, err = run.communicate()
    assert run.returncode == 130
    assert err.splitlines()[-1].endswith("Go on with: laconic run --resume run")


def test_check_tells_costs_of_what_init_wrote_and_leaves_nothing_behind(tmp_path: Path) -> None:
    commands = ["init", "exp.toml", "--method", "local-tm"], ["init", "exp.toml"], ["init", "exp.toml", "--force"]
    (made, refused, forced, checked), _ = in_turn(*commands, ["check", "exp.toml", *QUICK, "--json"], folder=tmp_path)
    assert [made.code, refused.code, forced.code, checked.code] == [0, 2, 0, 0], checked.err
    assert refused.err.startswith("error[E160] exp.toml exists.")
    assert 'name = "fedtm"' in (tmp_path / "exp.toml").read_text()
    costs = json.loads(checked.out.splitlines()[-1])
    assert costs["upload_bytes"] > 0
    assert {"download_bytes", "paper_upload_bytes", "memory_bytes", "seconds_total"} <= costs.keys()
    assert [file.name for file in tmp_path.iterdir()] == ["exp.toml"]


NONSENSE = {
    "run bad.toml": "error[E101] bad.toml:2  unknown key method.clausses  Did you mean n_clauses?  (laconic list",
    "run broken.toml": "error[E103] broken.toml",
    "run absent.toml": "error[E103] absent.toml does not exist.  Make one: laconic init absent.toml",
    "run --set rounds=many": 'error[E102] --set rounds  rounds = "many" must be a whole number',
    "run --set data.alpha=-0.1": "error[E102] --set data.alpha  data.alpha = -0.1 must be > 0",
    "run --set data.partition=dirichlt": "error[E102] --set data.partition  data.partition = 'dirichlt' is",
    "run --set data.name=digitz": "digits",
    "run --set data.clients=1000": "data.clients <=",
    "run --set data.booleanize=fourier": 'data.booleanize = "fourier"',
    "run --budget 10kg": 'error[E102] --set budget  budget = "10kg" is no number of bytes',
    "run --seed 1,x": "--seed",
    "run --resume nowhere": "error[E160] nowhere holds no run",
    "run --resume full --seed 3": "give it alone",
    "run --resume begun --set seed=3": "error[E101] --set seed=3  a run goes on as it was begun",
    "run --resume begun --set rounds=2": "it can get more, not as few as 2",
    "compare local-tm fedbn --set fedbn.training.model=mlp": "so fedbn would be fedavg; choose",
    "run --set method.name=fedavg --set method.training.model=mynet:Net": "there is no module mynet",
    "conform nothing:Nothing": "there is no module nothing",
    "run --out full": "error[E160] --out full is not empty",
    "run --out bad.toml": "error[E160] --out bad.toml is a file",
    "compare fedtm fedtmm": 'error[E110] unknown method "fedtmm".  Closest: fedtm',
    "compare fedtm --set method.clausses=4": "none of fedtm has a setting clausses",
    "compare fedtm --set local-tm.epochs=4": "local-tm is not among the methods: fedtm",
    "report full": "full has no config.toml",
    "report full full": "-o report.html",
    "report full --json --pdf": "give it alone",
    "list fedtn": 'error[E110] nothing called "fedtn" can be listed.  Did you mean fedtm?',
    "init new.toml --method fedtn": 'error[E110] unknown method "fedtn".  Closest: fedtm',
}


def test_nonsense_ends_with_code_2_and_a_budget_too_small_with_3_and_both_leave_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("[method]\nclausses = 5\n")
    (tmp_path / "broken.toml").write_text("rounds = [\n")
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "config.toml").write_text("rounds = 3\n")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").touch()
    before = sorted(tmp_path.rglob("*"))
    too_small = ["run", *QUICK, "--budget", "10", "--out", "run", "--debug"]
    (*answers, refused), _ = in_turn(*(line.split() for line in NONSENSE), too_small, folder=tmp_path)
    for (line, words), answer in zip(NONSENSE.items(), answers, strict=True):
        assert (answer.code, answer.out) == (2, ""), (line, answer)
        assert words in answer.err, (line, answer)
        assert "Traceback" not in answer.err
        assert answer.err.startswith("Usage") or len(answer.err.splitlines()) == 1
    assert refused.code == 3
    assert "Traceback" in refused.err  # as --debug was given
    assert refused.err.splitlines()[-1].startswith("error[E130] budget 10 is below")
    assert sorted(tmp_path.rglob("*")) == before


def test_demo_compares_and_shows_rules_without_escape_codes(tmp_path: Path) -> None:
    done = laconic("demo", folder=tmp_path)
    assert done.code == 0, done.err
    shown = (
        (Path(__file__).parent.parent / "README.md").read_text("utf-8").split("$ make demo\n")[1].split("report:")[0]
    )
    figures = [line.split()[:-1] for line in shown.splitlines()]  # all but seconds
    assert [line.split()[:-1] for line in done.out.splitlines()[:4]] == figures
    assert done.out.count("digit ") == 3
    assert "\x1b" not in done.out
    (page,) = tmp_path.glob("runs/demo-*/report.html")
    assert f"report: {page.relative_to(tmp_path)}" in done.out


# ---------------------------------------------------------------- benchmarks
@pytest.mark.parametrize(
    ("arguments", "due"),
    [
        (["--jobs", "A,Z"], ["'Z'", "A, B, C, D, E, F, coalesced"]),
        (["--against", "tmu2"], ["'tmu2'", "pyTsetlinMachineParallel", "pyTsetlinMachine,", "tmu"]),
        (["--jobs", "coalesced", "--against", "PYTSETLINMACHINE"], ["coalesced", "tmu"]),
        (["--seeds", "0"], ["--seeds"]),
        (["--threads", "0"], ["--threads"]),
    ],
)
def test_wrong_arguments_end_with_code_2_and_name_the_valid_ones(arguments: list[str], due: list[str]) -> None:
    done = laconic("bench", "tsetlin", *arguments)
    assert done.code == 2
    assert all(words in done.err for words in due)


def test_missing_data_ends_with_code_1_and_one_line(tmp_path: Path) -> None:
    install_stand_in(tmp_path, "tmu", "exit 1")
    folders = os.environ | {"LACONIC_DATA": str(tmp_path), "LACONIC_CACHE": str(tmp_path)}
    done = subprocess.run(
        [*LACONIC, "bench", "tsetlin", "--jobs", "B", "--against", "tmu"],
        capture_output=True,
        text=True,
        env=folders,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.splitlines()[-1].startswith(f"error: {tmp_path}/fashion_mnist.npz is missing")


def test_interrupt_ends_the_workers_and_gives_code_130(tmp_path: Path) -> None:
    install_stand_in(tmp_path, "tmu", f"echo $$ > {tmp_path}/new && mv {tmp_path}/new {tmp_path}/pid && exec sleep 600")
    y, x = np.arange(6000) % 10, np.zeros((6000, 28, 28), np.uint8)
    np.savez(tmp_path / "fashion_mnist.npz", x_train=x, y_train=y, x_test=x[:2000], y_test=y[:2000])
    folders = os.environ | {"LACONIC_DATA": str(tmp_path), "LACONIC_CACHE": str(tmp_path)}
    command = [*LACONIC, "bench", "tsetlin", "--jobs", "B", "--against", "tmu"]
    with subprocess.Popen(command, env=folders, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as bench:
        while not (tmp_path / "pid").exists():
            assert bench.poll() is None
            time.sleep(0.05)
        bench.send_signal(signal.SIGINT)
        bench.communicate()
    assert bench.returncode == 130
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def install_stand_in(cache: Path, peer: str, script: str) -> None:
    """A peer whose Python is a shell script."""
    python = cache / "peers" / f"{peer}-{VERSIONS[peer]}" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    (python.parent.parent / "installed").touch()
