"""What outlives a power cut: on systems with and without what Linux offers."""

import os
from pathlib import Path

import pytest

from laconic import files
from laconic.files import make_safe, put_in_place, sync_folder, write_atomically


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of what was synced, in order, as each stood then."""
    seen: list[str] = []
    fsync = os.fsync

    def look(handle: int) -> None:
        seen.append(Path(f"/proc/self/fd/{handle}").readlink().name)
        fsync(handle)

    monkeypatch.setattr(os, "fsync", look)
    return seen


def test_a_file_is_safe_before_it_gets_its_name_and_its_name_afterwards(tmp_path: Path, synced: list[str]) -> None:
    write_atomically(tmp_path / "new" / "file", b"content")
    assert (tmp_path / "new" / "file").read_bytes() == b"content"
    assert synced == [tmp_path.name, f"file.{os.getpid()}.draft", "new"]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_atomically(tmp_path / "file", b"old")
    monkeypatch.setattr(files, "sync_file", lambda path: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_atomically(tmp_path / "file", b"new")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"old"]


def test_a_draft_takes_the_place_of_what_is_there(tmp_path: Path, synced: list[str]) -> None:
    for name in ("draft", "file"):
        (tmp_path / name).write_text(name)
    put_in_place(tmp_path / "draft", tmp_path / "file")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["draft"]
    assert synced == ["draft", tmp_path.name]


@pytest.mark.parametrize("n_files", [3, 2 * files.MANY])
def test_where_the_system_cannot_sync_all_at_once_each_file_and_its_folder_is(
    tmp_path: Path, synced: list[str], monkeypatch: pytest.MonkeyPatch, n_files: int
) -> None:
    monkeypatch.delattr(os, "sync")
    paths = [tmp_path / f"{k}" for k in range(n_files)]
    for path in paths:
        path.write_text("")
    make_safe(paths)
    assert synced == [*(path.name for path in paths), tmp_path.name]


def test_where_folders_cannot_be_opened_files_are_written_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = os.open

    def refuse(path: Path, *rest: int, **more: int) -> int:
        if Path(path).is_dir():
            raise PermissionError(13, "Permission denied")
        return opened(path, *rest, **more)

    monkeypatch.setattr(os, "open", refuse)
    sync_folder(tmp_path)
    write_atomically(tmp_path / "file", b"content")
    assert (tmp_path / "file").read_bytes() == b"content"
