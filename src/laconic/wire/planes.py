"""Byte planes under Zstandard: the first bytes of all numbers, then the second bytes, ... so that like meets like."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.wire.buffer import CHUNK, WireError

SLOW_BYTES = 1 << 16  # up to here the thorough level costs milliseconds
# Of the frame as it is read: magic, and a first byte by which eight bytes of size follow in place of a window.
FRAME_START = b"\x28\xb5\x2f\xfd\xe0"
# Blocks of a frame: each may bring tables that take a microsecond to build, and writers make far fewer than these.
FREE_BLOCKS, BLOCK_BYTES = 256, 1 << 12


def squeeze(numbers: NDArray[np.unsignedinteger[Any]]) -> bytes:
    """One Zstandard frame without what is always the same: its magic and first byte (no size, checksum, dictionary)."""
    import zstandard

    planes = split(numbers)
    level, search = 19, {}
    if planes.size > SLOW_BYTES:  # noise has no repeats but chance ones, so look for long ones alone, and not too hard
        level, search = 1, {"min_match": 7, "hash_log": 6}
    parameters = zstandard.ZstdCompressionParameters.from_level(
        level, source_size=planes.size, format=zstandard.FORMAT_ZSTD1_MAGICLESS, write_content_size=0, **search
    )
    return zstandard.ZstdCompressor(compression_params=parameters).compress(planes.data)[1:]


def unsqueeze(
    data: bytes | memoryview, n_numbers: int, dtype: np.dtype[Any]
) -> Iterator[NDArray[np.unsignedinteger[Any]]]:
    """n_numbers of dtype, in chunks. Size and window are ours, not the sender's: never more than that is held."""
    import zstandard

    n_bytes = n_numbers * dtype.itemsize
    if len(data) > n_bytes + (n_bytes >> 8) + 64:  # as Zstandard's own bound
        raise WireError(f"Zstandard frame of {len(data)} bytes, where {n_bytes} were expected in it")
    check_blocks(data, n_bytes)
    try:
        frame = b"".join([FRAME_START, n_bytes.to_bytes(8, "little"), data[1:]])  # data[0]: the window
        unpacked = zstandard.ZstdDecompressor().decompress(frame, max_output_size=n_bytes, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise WireError(f"{len(data)} bytes are no Zstandard frame of {n_bytes}: {error}") from None
    if len(unpacked) != n_bytes:
        raise WireError(f"Zstandard frame holds {len(unpacked)} bytes, {n_bytes} were expected")
    planes = np.frombuffer(unpacked, np.uint8).reshape(dtype.itemsize, -1)
    for at in range(0, n_numbers, CHUNK):
        yield join(planes[:, at : at + CHUNK], dtype)


def check_blocks(data: bytes | memoryview, n_bytes: int) -> None:
    """Refuses a frame of many small blocks, which takes far longer to read than n_bytes should."""
    at, most = 1, FREE_BLOCKS + n_bytes // BLOCK_BYTES
    for _ in range(most):
        head = int.from_bytes(data[at : at + 3], "little")  # is it the last, of which kind, how long
        at += 3 + (1 if head >> 1 & 3 == 1 else head >> 3)  # one byte that is repeated, or so many
        if head & 1 or at > len(data):
            return
    raise WireError(f"Zstandard frame of over {most} blocks, where {n_bytes} bytes were expected in it")


# Shifts run on whole vectors; moving single bytes about takes three times as long.
def split(numbers: NDArray[np.unsignedinteger[Any]]) -> NDArray[np.uint8]:
    """[plane, number]: byte by byte, the lowest first."""
    planes = np.empty((numbers.itemsize, numbers.size), np.uint8)
    for k, plane in enumerate(planes):
        plane[:] = (numbers >> (8 * k)).astype(np.uint8)
    return planes


def join(planes: NDArray[np.uint8], dtype: np.dtype[Any]) -> NDArray[np.unsignedinteger[Any]]:
    numbers: NDArray[np.unsignedinteger[Any]] = planes[-1].astype(dtype)
    for plane in planes[-2::-1]:
        numbers <<= 8
        numbers |= plane
    return numbers
