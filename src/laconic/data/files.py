"""Files of a data set: fetched with their checksum, read from a folder or from the archives in it; never unpickled."""

import gzip
import hashlib
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from laconic.files import put_in_place

_CHUNK_BYTES = 2**20
_SILENCE_SECONDS = 60.0  # a server that sends nothing for so long is given up
_ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz")

Progress = Callable[[str, int, int], None]  # file name, bytes so far, bytes in all (0 where the server does not say)


@dataclass(frozen=True)
class Remote:
    """A file to download: `checksum` is "md5:..." or "sha256:..."."""

    url: str
    checksum: str

    @property
    def name(self) -> str:
        return PurePosixPath(self.url).name


class MissingFiles(ValueError):  # `load` adds where to get them
    """Some files of a data set are not there."""


def fetch(remote: Remote, folder: Path, progress: Progress | None = None) -> Path:
    """The file in the folder, downloaded unless it is there whole; a file with another checksum is never kept."""
    target = folder / remote.name
    algorithm, expected = remote.checksum.split(":")
    if target.is_file() and _hash_file(target, algorithm) == expected:
        return target
    folder.mkdir(parents=True, exist_ok=True)
    # beside the target, so that the last step is a rename: nobody ever sees half a file
    with tempfile.TemporaryDirectory(prefix=".download-", dir=folder) as scratch:
        part = Path(scratch) / remote.name
        came = _stream(remote, part, hashlib.new(algorithm, usedforsecurity=False), progress)
        if came != expected:
            raise ValueError(
                f"{remote.url} has {algorithm} {came}, {expected} was expected; the download is removed. "
                f"Try again, or put the right file into {folder}"
            )
        put_in_place(part, target)
    return target


def _stream(remote: Remote, part: Path, digest: "hashlib._Hash", progress: Progress | None) -> str:
    from http.client import HTTPException  # these two would double the time to import laconic.data
    from urllib.request import urlopen

    n_bytes = 0
    try:
        with urlopen(remote.url, timeout=_SILENCE_SECONDS) as response, part.open("wb") as out:
            total = int(response.headers.get("Content-Length") or 0)
            while chunk := response.read(_CHUNK_BYTES):
                out.write(chunk)
                digest.update(chunk)
                n_bytes += len(chunk)
                if progress:
                    progress(remote.name, n_bytes, total)
    except (OSError, HTTPException) as error:
        raise ValueError(
            f"cannot download {remote.url}: {error}. Check network and disk, or bring the file to {part.parent.parent}"
        ) from error
    return digest.hexdigest()


def _hash_file(path: Path, algorithm: str) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()


def collect(home: Path, names: Sequence[str], optional: Sequence[str] = ()) -> dict[str, bytes]:
    """Content by file name, wherever under the folder (or in an archive there) it lies; NAME.gz counts as NAME."""
    found: dict[str, bytes] = {}
    for path, content in walk(home, lambda path: path.name in (*names, *optional)):
        found.setdefault(path.name, content)
    if lacking := [name for name in names if name not in found]:
        raise MissingFiles(f"no {', '.join(lacking)} (nor .gz of it, nor an archive with it) under {home}")
    return found


def walk(home: Path, is_wanted: Callable[[PurePosixPath], bool]) -> Iterator[tuple[PurePosixPath, bytes]]:
    """Wanted files by path (without .gz) with content: those in the folder, or else those in the archives in it."""
    files = sorted(path for path in home.rglob("*") if path.is_file())
    is_found = False
    for path in files:
        inner = _without_gz(PurePosixPath(path.relative_to(home).as_posix()))
        if is_wanted(inner):
            is_found = True
            with _naming(path):
                content = _unpack(path.name, path.read_bytes())
            yield inner, content
    for path in files if not is_found else []:
        if path.name.endswith(_ARCHIVES):
            with _naming(path):
                yield from _walk_archive(path, is_wanted)


def _walk_archive(path: Path, is_wanted: Callable[[PurePosixPath], bool]) -> Iterator[tuple[PurePosixPath, bytes]]:
    if path.name.endswith(".zip"):
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if is_wanted(inner := _without_gz(PurePosixPath(name))) and not name.endswith("/"):
                    yield inner, _unpack(name, archive.read(name))
        return
    with tarfile.open(path, "r|*") as stream:  # in the order of the file: seeking in a .gz means starting over
        for member in stream:
            if member.isfile() and is_wanted(inner := _without_gz(PurePosixPath(member.name))):
                file = stream.extractfile(member)
                yield inner, _unpack(member.name, file.read() if file else b"")


def _without_gz(path: PurePosixPath) -> PurePosixPath:
    return path.with_suffix("") if path.suffix == ".gz" and not path.name.endswith(_ARCHIVES) else path


def _unpack(name: str, content: bytes) -> bytes:
    return gzip.decompress(content) if name.endswith(".gz") else content


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise ValueError(f"{path} is broken or cut short ({error}); remove it and get it again") from error
