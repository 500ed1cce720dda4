"""What the terminal shows: a line per round everywhere, a bar only on terminals, nothing at all when quiet."""

import io
import threading
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from laconic.records import Round, log_event, to_line
from laconic.runs.display import HEADING, Bar, Lines, format_row, format_seconds, make_display


def make_row(round: int, **changes: Any) -> Round:
    row: dict[str, Any] = {
        "round": round,
        "accuracy_mean": 0.712,
        "accuracy_p10": 0.55,
        "accuracy_min": 0.5,
        "accuracy_pooled": 0.7,
    }
    row |= {"upload_bytes": 16_100, "download_bytes": 30_200, "peer_bytes": 0}
    row |= {"paper_upload_bytes": 20_000.0, "paper_download_bytes": 40_000.0}
    row |= {"n_sampled": 10, "n_reached": 10, "n_replied": 10, "is_void": False, "notes": {}}
    return Round(**row | changes)


def show(display: Lines, first_round: int = 1) -> str:
    """What a run of two rounds leaves on the console."""
    with display:
        display.started("fedtm on digits", 2, first_round)
        display.said("compiling [once]")
        for number in (first_round, first_round + 1):
            for done in range(11):
                display.progressed(number, done, 10, "train")
            display.finished_round(make_row(number), 1.5)
    written = display.console.file
    assert isinstance(written, io.StringIO)
    return written.getvalue()


def test_each_round_is_one_line_with_bytes_per_client_and_in_total() -> None:
    assert show(Lines(Console(file=io.StringIO()))).splitlines() == [
        "fedtm on digits",
        HEADING,
        "compiling [once]",
        "    1     0.712  0.550     1.61 kB      3.02 kB     46.3 kB",
        "    2     0.712  0.550     1.61 kB      3.02 kB     92.6 kB",
    ]


@pytest.mark.parametrize("kind", [Lines, Bar])
def test_what_a_node_said_is_shown_as_it_is_and_moves_no_cursor(kind: type[Lines], tmp_path: Path) -> None:
    words = "the node says: [/nothing] \x1b[2J\r\nround 9 is void \u202e"
    shown = r"the node says: [/nothing] \x1b[2J\r\nround 9 is void \u202e"
    with kind(Console(file=io.StringIO(), width=200)) as display:
        display.said(words)
        assert shown in display.console.file.getvalue()
        if isinstance(display, Bar):
            (description,) = (task.description for task in display.progress.tasks)
            assert description == shown
            display.progress.refresh()
    log_event(tmp_path, words)
    (line,) = (tmp_path / "events.log").read_text().splitlines()
    assert line.endswith(shown)


def test_the_total_goes_on_where_a_resumed_run_was(tmp_path: Path) -> None:
    # round 2 was cut off after its row was written, so it is run again
    (tmp_path / "metrics.jsonl").write_text("".join(to_line(make_row(r)) + "\n" for r in (0, 1, 2)))
    display = make_display(tmp_path)
    display.console = Console(file=io.StringIO())
    assert show(display, first_round=2).splitlines()[-1].endswith(" 185 kB")


def test_rounds_played_again_after_a_loss_are_counted_once() -> None:
    display = Lines(Console(file=io.StringIO()))
    show(display)
    assert show(display, first_round=2).splitlines()[-1].endswith(" 139 kB")  # rounds 1, 2 and 3


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"accuracy_mean": None, "accuracy_p10": None}, "    1         -      -     1.61 kB"),
        ({"is_void": True}, "void: too few replies"),
        ({"n_replied": 7}, "3 of 10 did not reply"),
        ({"n_sampled": 0, "n_replied": 0}, "16.1 kB"),
        ({"peer_bytes": 1000}, "1.71 kB      3.12 kB"),
    ],
)
def test_rows_tell_what_is_missing(changes: dict[str, Any], words: str) -> None:
    assert words in format_row(make_row(1, **changes), 0)


def test_a_terminal_gets_the_same_lines_and_a_bar_that_goes_away() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=120, color_system=None)
    shown = show(Bar(console))
    assert "10/10 clients" in shown
    assert "round 2/2  train" in shown
    assert "    2     0.712  0.550     1.61 kB      3.02 kB     92.6 kB" in shown
    assert shown.endswith("\x1b[2K")  # the bar's line is wiped
    assert "\x1b[?25h" in shown  # and the cursor is back


def test_quiet_says_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with make_display(tmp_path, quiet=True) as display:
        display.started("title", 1, 1)
        display.progressed(1, 1, 1, "train")
        display.finished_round(make_row(1), 1.0)
    assert capsys.readouterr() == ("", "")


def test_progress_goes_to_stderr_alone_and_without_codes_when_piped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with make_display(tmp_path) as display:
        display.started("title", 1, 1)
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"title\n{HEADING}\n")


def test_many_threads_may_report_at_once() -> None:
    display = Bar(Console(file=io.StringIO(), force_terminal=True, width=120))
    with display:
        display.started("title", 400, 1)

        def work(thread: int) -> None:
            for number in range(50 * thread, 50 * thread + 50):
                display.progressed(number, thread, 8, "train")
                display.finished_round(make_row(number), 0.1)

        threads = [threading.Thread(target=work, args=(thread,)) for thread in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sum(display.sent_bytes.values()) == 8 * 50 * 46_300


@pytest.mark.parametrize(("seconds", "text"), [(0.2, "0 s"), (59, "59 s"), (61, "1 min"), (4000, "1 h 7 min")])
def test_times_are_told_as_people_tell_them(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text
