"""Byte planes under Zstandard: the first bytes of all numbers, then the second bytes, ... so that like meets like."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.wire.buffer import WireError

SLOW_BYTES = 1 << 16  # up to here the thorough level costs milliseconds


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


def unsqueeze(data: bytes, n_numbers: int, dtype: np.dtype[Any]) -> NDArray[np.unsignedinteger[Any]]:
    """n_numbers of dtype; the frame cannot declare a size of its own, so never more than that is held."""
    import zstandard

    n_bytes = n_numbers * dtype.itemsize
    try:
        decompressor = zstandard.ZstdDecompressor(format=zstandard.FORMAT_ZSTD1_MAGICLESS)
        planes = decompressor.decompress(b"\0" + data, max_output_size=n_bytes, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise WireError(f"{len(data)} bytes are no Zstandard frame of {n_bytes}: {error}") from None
    if len(planes) != n_bytes:
        raise WireError(f"Zstandard frame holds {len(planes)} bytes, {n_bytes} were expected")
    return join(np.frombuffer(planes, np.uint8).reshape(dtype.itemsize, -1), dtype)


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
