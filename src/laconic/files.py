"""Files that outlive a crash or a power cut: whole, under their names, and in one process's hands at a time."""

import errno
import hashlib
import os
import platform
import shlex
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

MANY = 20  # files
LOCK = "lock"
HOLDER_SECONDS = 2.0  # for whoever has just taken a lock to write down who it is
RETRY_SECONDS = 0.02


class InUse(ValueError):
    """Another process has the folder."""


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


def remove(path: Path) -> None:
    """So that it does not come back after a power cut."""
    if path.exists():
        path.unlink()
        sync_folder(path.parent)


def hash_file(path: Path, n_bytes: int | None = None) -> str:
    """SHA-256, of so many bytes from its start or of all."""
    with path.open("rb") as file:
        if n_bytes is None:
            return hashlib.file_digest(file, "sha256").hexdigest()
        digest = hashlib.sha256()
        while n_bytes > 0 and (chunk := file.read(min(n_bytes, 1 << 20))):
            digest.update(chunk)
            n_bytes -= len(chunk)
        return digest.hexdigest()


# ---------------------------------------------------------------- one process at a time
@contextmanager
def lock(folder: Path, patience_seconds: float = 0) -> Iterator[None]:
    """InUse while another process has the folder. The system lets go of what a process held, however it ended."""
    make_folder(folder)
    path, deadline = folder / LOCK, time.monotonic() + patience_seconds
    with path.open("a", encoding="utf-8") as file:  # "w" would wipe out who holds it
        while not _seize(file.fileno()):
            if _is_taken(file.fileno()) and time.monotonic() >= deadline:
                raise InUse(f"{folder} is in use by {_read_holder(path)}.  Wait for it to end, or stop it")
            time.sleep(RETRY_SECONDS)
        file.truncate(0)
        command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])
        since = datetime.now(UTC).isoformat(timespec="seconds")
        file.write(f"process {os.getpid()} on {platform.node()} since {since}: {command}\n")
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)


def is_in_use(folder: Path) -> bool:
    """Whether a process has the folder. Where one crashed it is locked for an instant to find out, else only read."""
    try:
        with (folder / LOCK).open("rb") as file:
            return bool(file.read(1)) and _is_taken(file.fileno())  # who lets go wipes out its words
    except OSError:  # never locked, or not for us to look at
        return False


def _is_taken(handle: int) -> bool:
    """By one who keeps it: those who only look share it, for an instant."""
    if not _seize(handle, is_shared=True):
        return True
    _release(handle)
    return False


def _read_holder(path: Path) -> str:
    deadline = time.monotonic() + HOLDER_SECONDS
    while not (words := path.read_text("utf-8").strip()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return words or "another process"


if sys.platform == "win32":
    import msvcrt

    def _seize(handle: int, *, is_shared: bool = False) -> bool:
        """Of one byte far behind the words, which nobody else could read otherwise; it cannot be shared."""
        os.lseek(handle, 1 << 30, os.SEEK_SET)
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _release(handle: int) -> None:
        os.lseek(handle, 1 << 30, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _seize(handle: int, *, is_shared: bool = False) -> bool:
        try:
            fcntl.flock(handle, (fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:  # a file system without locks keeps nobody out
            if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):
                raise
        return True

    def _release(handle: int) -> None:
        with suppress(OSError):  # of such a file system
            fcntl.flock(handle, fcntl.LOCK_UN)
