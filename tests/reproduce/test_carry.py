"""Runs are kept, go on after a stop, and their figures are entered."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from laconic.reproduce import carry
from laconic.reproduce.page import refresh, tell_verdict
from laconic.reproduce.published import select
from laconic.reproduce.scoreboard import KEYS, Measured, enter, list_rows, read_measured
from laconic.reproduce.verdicts import VERDICTS
from laconic.runs.typed_toml import ConfigError

ROW = "cs-pfedtm:9:personalisation-only/cifar10/0.1"
FOUND = Measured((76.0, 77.0), (0, 1), "paper", 100, 1000.0, "abcdef0")


LACONIC = [sys.executable, "-c", "from laconic.cli import main; main()"]


def ask(tmp_path: Path, *arguments: str) -> tuple[int, str, str]:
    """The command line's exit code, stdout and stderr."""
    fixed = ["--out", str(tmp_path / "runs"), "--scoreboard", str(tmp_path / "board.json"), "--quiet"]
    done = subprocess.run(
        [*LACONIC, "reproduce", *arguments, *fixed], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    return done.returncode, done.stdout, done.stderr


def reproduce(tmp_path: Path, row: str, n_seeds: int = 1, workers: int = 1, *, resume: bool = False) -> list[str]:
    """Names of what is on the board after a tiny run."""
    board, seeds = tmp_path / "board.json", range(n_seeds)
    carry.reproduce(select(row), "tiny", seeds, tmp_path / "runs", board, resume=resume, workers=workers, quiet=True)
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
    assert reproduce(tmp_path, row) == [row]
    (told,) = list_rows(select(row), read_measured(tmp_path / "board.json"))
    assert (told.seeds, told.scale, told.verdict) == (1, "tiny", "not run")
    assert told.ours is not None


def test_the_command_line_runs_a_row_and_tells_it(tmp_path: Path) -> None:
    code, output, error = ask(tmp_path, ROW, "--scale", "tiny", "--json", "--workers", "1")
    (told,) = json.loads(output)
    assert code == 0, error
    assert (told["paper"], told["seeds"], told["scale"]) == ("cs-pfedtm", 1, "tiny")


def test_rows_of_one_run_are_all_entered_from_it(tmp_path: Path) -> None:
    assert len(reproduce(tmp_path, "fedpurin:3:fedpurin/cifar10")) == 4
    assert len([*(tmp_path / "runs").rglob("config.toml")]) == 1


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


def test_a_board_that_is_none_is_refused_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "board.json").write_text("[]")
    with pytest.raises(ValueError, match=r"board\.json is no scoreboard"):
        read_measured(tmp_path / "board.json")


def test_a_page_beside_the_board_is_made_anew(tmp_path: Path) -> None:
    page = tmp_path / "board.md"
    page.write_text("Of 1 published figures none.\n\n<!-- table: scoreboard -->\n<!-- end -->\n", "utf-8")
    row = dict.fromkeys(KEYS) | {"paper": "p", "table": "1", "verdict": "near"}
    refresh(page, [row])
    assert page.read_text("utf-8").startswith(tell_verdict([row]))
    assert f"| {' | '.join(VERDICTS)} |" in page.read_text("utf-8")
    assert "| p | 1 | – | 1 | – | – | – | – |" in page.read_text("utf-8")
