"""Runs are kept, go on after a stop, and their figures are entered."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from signal import SIGINT
from time import sleep

import numpy as np
import pytest

from laconic.files import lock
from laconic.reproduce.carry import carry_out, check_free, leave_out, plan_series
from laconic.reproduce.page import refresh, tell_verdict
from laconic.reproduce.published import select
from laconic.reproduce.scoreboard import KEYS, Measured, enter, list_rows, read_measured
from laconic.reproduce.verdicts import VERDICTS
from laconic.runs.config import Config
from laconic.runs.typed_toml import ConfigError

ROW = "cs-pfedtm:9:personalisation-only/cifar10/0.1"
FOUND = Measured((76.0, 77.0), (0, 1), "paper", 100, 1000.0, "abcdef0")


LACONIC = [sys.executable, "-c", "from laconic.cli import main; main()"]


def ask(tmp_path: Path, *arguments: str) -> tuple[int, str, str]:
    """The command line's exit code, stdout and stderr."""
    done = subprocess.run(spell(tmp_path, *arguments), capture_output=True, text=True, cwd=tmp_path, check=False)
    return done.returncode, done.stdout, done.stderr


def spell(tmp_path: Path, *arguments: str) -> list[str]:
    fixed = ["--out", str(tmp_path / "runs"), "--scoreboard", str(tmp_path / "board.json"), "--quiet"]
    return [*LACONIC, "reproduce", *arguments, *fixed]


def reproduce(tmp_path: Path, row: str, n_seeds: int = 1, workers: int = 1, *, resume: bool = False) -> list[str]:
    """Names of what is on the board after a tiny run."""
    board = tmp_path / "board.json"
    planned = plan_series(select(row), "tiny", range(n_seeds), tmp_path / "runs", workers)
    if not resume:
        check_free(planned)
    for series in planned:
        carry_out(series, board, quiet=True)
    return [*read_measured(board)]


def test_the_list_has_a_row_for_each_figure_with_the_keys_that_others_read(tmp_path: Path) -> None:
    code, output, _ = ask(tmp_path, "--list", "--json")
    rows = json.loads(output)
    assert code == 0
    assert len(rows) == len(select(""))
    assert all(tuple(row) == KEYS for row in rows)
    assert KEYS == (
        "paper", "table", "row", "published", "ours", "seeds", "scale", "bytes_published", "bytes_sent", "command",
        "verdict", "why",
    )  # fmt: skip


def test_a_piped_list_has_each_row_on_a_line_of_its_own(tmp_path: Path) -> None:
    code, output, _ = ask(tmp_path, "cs-pfedtm:12", "--list")
    assert code == 0
    names = [line.split()[0] for line in output.splitlines()]
    assert [name for name in names if name.startswith("cs-pfedtm:12:")] == [
        each.name for each in select("cs-pfedtm:12")
    ]


@pytest.mark.parametrize(
    "row",
    [
        ROW,
        "cs-pfedtm:3:shared/cifar10/0.1",
        "cs-pfedtm:12:similarity/cifar10/0.1/participation=0.3",
        "fedpurin:3:fedpurin/cifar10/0.1/up-after",
        "pbfl:1:fedtgp/cifar10/0.1/cps=50+ppa+cpkd",
        "fedtm:III:fedtm/mnist/1",
        "pfed1bs:2:pfed1bs/mnist/less",
    ],
)
def test_a_tiny_run_is_entered_and_proves_nothing(row: str, tmp_path: Path) -> None:
    assert row in reproduce(tmp_path, row)
    (told,) = list_rows(select(row), read_measured(tmp_path / "board.json"))
    assert (told.seeds, told.scale, told.verdict) == (1, "tiny", "not run")
    assert told.ours is not None


def test_the_command_line_runs_a_row_and_tells_it(tmp_path: Path) -> None:
    code, output, error = ask(tmp_path, ROW, "--scale", "tiny", "--json", "--workers", "1")
    (told,) = json.loads(output)
    assert code == 0, error
    assert (told["paper"], told["seeds"], told["scale"]) == ("cs-pfedtm", 1, "tiny")


def test_a_run_is_entered_for_every_table_that_it_serves(tmp_path: Path) -> None:
    entered = reproduce(tmp_path, "fedpurin:1:fedpurin/cifar10/0.1")
    assert len([*(tmp_path / "runs").rglob("config.toml")]) == 1
    assert {name.split(":")[1] for name in entered} == {"1", "2", "3"}
    assert "fedpurin:2:fedpurin/cifar10/0.1/gradient" in entered


# ---------------------------------------------------------------- data that are not there
def test_rows_whose_data_are_not_there_are_left_out_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LACONIC_DATA", str(tmp_path))
    x, y = np.zeros((20, 28, 28), np.uint8), np.arange(20) % 10
    np.savez(tmp_path / "mnist.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    figures = [*select("fedtm:III:fedtm/mnist/1"), *select("fedtm:III:fedtm/fashion_mnist/1")]
    (due,), (told,) = leave_out(plan_series(figures, "small", [0], tmp_path / "runs", 1), download=False)
    assert due.data.name == "mnist"
    assert told.startswith("left out (1 row): ")
    assert "fashion_mnist is not in" in told
    assert "--download" in told


def test_without_any_data_the_command_ends_and_says_how_to_get_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LACONIC_DATA", str(tmp_path))
    code, _, error = ask(tmp_path, "fedtm:III:fedtm/mnist/1")
    assert code == 2
    assert "mnist is not in" in error
    assert "--download" in error
    assert not (tmp_path / "runs").exists()


def test_runs_that_have_ended_are_entered_without_their_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reproduce(tmp_path, ROW)
    (series,) = plan_series(select(ROW), "tiny", [0], tmp_path / "runs", 1)
    lost = replace(series, plan={folder: on(config, "svhn") for folder, config in series.plan.items()})
    monkeypatch.setenv("LACONIC_DATA", str(tmp_path))
    assert leave_out([lost], download=False) == ([lost], [])


def on(config: Config, data: str) -> Config:
    return replace(config, data=replace(config.data, name=data))


def test_a_finished_run_is_used_again_and_more_seeds_are_added(tmp_path: Path) -> None:
    reproduce(tmp_path, ROW)
    (done,) = (tmp_path / "runs").rglob("DONE.json")
    before = done.stat().st_mtime_ns
    reproduce(tmp_path, ROW, n_seeds=2, workers=2)
    assert done.stat().st_mtime_ns == before
    assert read_measured(tmp_path / "board.json")[ROW].seeds == (0, 1)


def test_a_run_that_was_begun_goes_on_only_when_asked(tmp_path: Path) -> None:
    reproduce(tmp_path, ROW)
    (done,) = (tmp_path / "runs").rglob("DONE.json")
    done.unlink()  # as a stop leaves it
    with pytest.raises(ConfigError, match="--resume"):
        reproduce(tmp_path, ROW)
    assert reproduce(tmp_path, ROW, resume=True) == [ROW]
    assert done.exists()


def test_who_stops_the_command_is_told_to_go_on_with_it(tmp_path: Path) -> None:
    """A run that went on by itself would not be entered."""
    command = spell(tmp_path, ROW, "--scale", "tiny", "--seeds", "200")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not [*tmp_path.rglob("DONE.json")] and process.poll() is None:
            sleep(0.05)
        process.send_signal(SIGINT)
        _, error = process.communicate(timeout=60)
    assert process.returncode == 128 + SIGINT
    assert "Go on with the same command and --resume" in error
    assert reproduce(tmp_path, ROW, resume=True) == [ROW]


def test_two_commands_side_by_side_enter_all_they_find(tmp_path: Path) -> None:
    """Each waits while another has the board, so that none writes over what came in meanwhile."""
    rows = [f"cs-pfedtm:10:cs-pfedtm/cifar10/{alpha}/tau=0.05" for alpha in ("0.1", "0.05", "0.01", "0.005")]
    commands = [spell(tmp_path, row, "--scale", "tiny", "--seeds", "2", "--workers", "1") for row in rows]
    side_by_side = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for command in commands]
    assert [process.wait(timeout=300) for process in side_by_side] == [0] * len(rows)
    assert sorted(read_measured(tmp_path / "board.json")) == sorted(rows)


def test_what_is_found_is_entered_after_another_command_has_let_go_of_the_board(tmp_path: Path) -> None:
    reproduce(tmp_path, ROW)
    (tmp_path / "board.json").unlink()
    again = spell(tmp_path, ROW, "--scale", "tiny", "--workers", "1")
    with lock(tmp_path / "runs"):
        process = subprocess.Popen(again, stdout=subprocess.DEVNULL)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=5)
        assert not (tmp_path / "board.json").exists()
    assert (process.wait(timeout=60), [*read_measured(tmp_path / "board.json")]) == (0, [ROW])


def test_without_a_row_nothing_is_run(tmp_path: Path) -> None:
    code, _, error = ask(tmp_path)
    assert (code, "say what" in error) == (2, True)


# ---------------------------------------------------------------- the board
def test_a_lesser_measurement_does_not_take_the_place_of_a_better_one() -> None:
    (figure,), board = select(ROW), dict[str, Measured]()
    enter(board, figure, FOUND)
    for lesser in (replace(FOUND, scale="small"), replace(FOUND, seeds=(0,), values=(99.0,))):
        enter(board, figure, lesser)
        assert board[ROW] == FOUND
    enter(board, figure, replace(FOUND, commit="1234567"))
    assert board[ROW].commit == "1234567"


def test_the_command_of_a_row_is_that_of_what_was_measured_or_else_of_the_papers_scale() -> None:
    measured = {ROW: replace(FOUND, scale="small", seeds=(0,), values=(76.0,))}
    for board, ending in ((measured, "--scale small --seeds 1"), ({}, "--scale paper --seeds 3")):
        (row,) = list_rows(select(ROW), board)
        assert row.command == f"laconic reproduce {ROW} {ending}"


def test_a_board_that_is_none_is_refused_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "board.json").write_text("[]")
    with pytest.raises(ValueError, match=r"board\.json is no scoreboard"):
        read_measured(tmp_path / "board.json")


def test_a_page_beside_the_board_is_made_anew(tmp_path: Path) -> None:
    page = tmp_path / "board.md"
    page.write_text("Of 1 published figures none.\n\n<!-- table: scoreboard -->\n<!-- end -->\n", "utf-8")
    row = dict.fromkeys(KEYS) | {"paper": "p", "table": "1", "verdict": "near", "why": ""}
    refresh(page, [row])
    assert page.read_text("utf-8").startswith(tell_verdict([row]))
    assert f"| {' | '.join(VERDICTS)} |" in page.read_text("utf-8")
    assert "| p | 1 | – | 1 | – | – | – | – |" in page.read_text("utf-8")
