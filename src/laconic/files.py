"""Files that outlive a crash or a power cut: whole, and under their names."""

import os
from collections.abc import Iterable
from pathlib import Path

MANY = 20  # files


def write_atomically(path: Path, data: bytes) -> None:
    """Whoever reads the path sees the old file or the whole new one, even after a power cut."""
    make_folder(path.parent)
    draft = path.with_name(f"{path.name}.{os.getpid()}.draft")  # another process may write the same file
    try:
        draft.write_bytes(data)
        put_in_place(draft, path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def put_in_place(draft: Path, path: Path) -> None:
    """The finished draft gets the name of the path, on the same disk, and takes the place of what is there."""
    sync_file(draft)
    draft.replace(path)
    sync_folder(path.parent)


def make_safe(files: Iterable[Path]) -> None:
    """Each takes milliseconds, so many go out with all that the system has yet to write."""
    files = list(files)
    if len(files) > MANY and hasattr(os, "sync"):  # Windows has none
        os.sync()
        return
    for path in files:
        sync_file(path)
    for folder in {path.parent for path in files}:
        sync_folder(folder)


def make_folder(folder: Path) -> None:
    """With its parents, and safe as they are."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        sync_folder(folder.parent)


def sync_file(path: Path) -> None:
    with path.open("rb+") as file:  # Windows syncs only what is open for writing
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Names live in their folder, and a file whose name is lost is lost; where folders cannot be opened, no more."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except PermissionError:  # Windows opens none
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
