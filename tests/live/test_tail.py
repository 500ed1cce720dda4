"""Records read as they grow: nothing twice, nothing of what was cut off, nothing before it is whole."""

from pathlib import Path

import pytest

from laconic.live import tail
from laconic.live.tail import Tail, read_backwards, read_last
from laconic.records import Times, append_lines, to_line


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lines"


def test_only_what_was_added_is_given(path: Path) -> None:
    lines = Tail(path)
    assert lines.read() == (0, [])
    path.write_text("a\nb\n")
    assert lines.read() == (0, [b"a\n", b"b\n"])
    assert lines.read() == (2, [])
    append_lines(path, ["c"])
    assert lines.read() == (2, [b"c\n"])


def test_a_line_is_given_once_it_is_whole(path: Path) -> None:
    lines = Tail(path)
    path.write_text("a\nhal")
    assert lines.read() == (0, [b"a\n"])
    path.write_text("a\nhalf\n")
    assert lines.read() == (1, [b"half\n"])


@pytest.mark.parametrize(
    ("now", "kept", "news"),
    [
        ("a\nb\n", 2, []),  # cut back
        ("a\nb\nX\n", 2, [b"X\n"]),  # and grown to the same length
        ("a\nb\nX\nY\nZ\n", 2, [b"X\n", b"Y\n", b"Z\n"]),  # and grown beyond what was read
        ("X\n", 0, [b"X\n"]),  # begun anew
        ("", 0, []),
    ],
)
def test_what_was_cut_back_between_two_looks_is_told_however_much_has_grown_since(
    path: Path, now: str, kept: int, news: list[bytes]
) -> None:
    lines = Tail(path)
    path.write_text("a\nb\nc\n")
    lines.read()
    path.write_text(now)
    assert lines.read() == (kept, news)
    append_lines(path, ["on"])
    assert lines.read() == (kept + len(news), [b"on\n"])


def test_an_end_that_is_as_it_was_hides_a_change_only_until_it_is_doubted(path: Path) -> None:
    lines = Tail(path)
    path.write_text("a\nb\nc\n")
    lines.read()
    path.write_text("a\nX\nc\nd\n")
    lines.doubt()
    assert lines.read() == (1, [b"X\n", b"c\n", b"d\n"])


def test_a_file_that_has_gone_leaves_nothing(path: Path) -> None:
    lines = Tail(path)
    path.write_text("a\n")
    lines.read()
    path.unlink()
    assert lines.read() == (0, [])
    path.write_text("a\n")
    assert lines.read() == (0, [b"a\n"])


@pytest.mark.parametrize("block", [1, 2, 3, 100])
@pytest.mark.parametrize("text", ["", "hal", "a\n", "a\nbcd\nhal", "\n\nlonger than a block\n", "é\nü\n"])
def test_lines_come_backwards_whole_whatever_the_blocks(
    path: Path, monkeypatch: pytest.MonkeyPatch, block: int, text: str
) -> None:
    monkeypatch.setattr(tail, "BLOCK_BYTES", block)
    path.write_text(text)
    assert [line.decode() for line in read_backwards(path)] == text.split("\n")[-2::-1]


def test_the_last_round_is_read_without_those_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "BLOCK_BYTES", 200)
    rows = [Times(number, 1.0, 0.0) for number in (0, 1, 1, 2, 2, 3)]
    path = tmp_path / Times.file
    append_lines(path, ["no record at all" for _ in range(50)] + [to_line(row) for row in rows])
    assert read_last(tmp_path, Times, 3) == rows[5:]
    assert read_last(tmp_path, Times, 2) == rows[3:5]  # round 3 has not ended yet
    assert read_last(tmp_path, Times, 1) == rows[1:3]
