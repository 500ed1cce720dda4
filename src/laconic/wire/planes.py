"""Byte planes under Zstandard: the first bytes of all numbers, then the second bytes, ... so that like meets like."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.wire.buffer import WireError

SLOW_BYTES = 1 << 16  # up to here the thorough level costs milliseconds


def squeeze(numbers: NDArray[np.unsignedinteger[Any]]) -> bytes:
    """One Zstandard frame without what is always the same: its magic and first byte (no size, checksum, dictionary)."""
    import zstandard

    planes = numbers.view(np.uint8).reshape(-1, numbers.itemsize).T.tobytes()
    level = 19 if len(planes) <= SLOW_BYTES else 1  # noise has no repeats: levels between find none, and longer
    parameters = zstandard.ZstdCompressionParameters.from_level(
        level, source_size=len(planes), format=zstandard.FORMAT_ZSTD1_MAGICLESS, write_content_size=0
    )
    return zstandard.ZstdCompressor(compression_params=parameters).compress(planes)[1:]


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
        raise WireError(f"Zstandard frame holds {len(planes)} bytes, {n_bytes} were due")
    return np.ascontiguousarray(np.frombuffer(planes, np.uint8).reshape(dtype.itemsize, -1).T).view(dtype).ravel()
