"""Reading bytes that a stranger sent: every length is checked before it is believed."""

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

MAX_RANK = 8
Payload: TypeAlias = bytes | memoryview
Shape: TypeAlias = tuple[int, ...]
CHUNK = 1 << 16  # numbers that are worked on at once: what a code needs beside the array itself is then little


class WireError(ValueError):
    """Bytes that are no message of the class asked for; says what came and what was expected."""


def write_varint(number: int) -> bytes:
    """Seven bits a byte, lowest first; the top bit says that more follow."""
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


class Reader:
    """A cursor over a message; `allowance` is how many bytes of arrays it may still ask us to hold."""

    def __init__(self, data: bytes | memoryview, allowance: int) -> None:
        self.data, self.at, self.allowance = memoryview(data), 0, allowance

    @property
    def n_left(self) -> int:
        return len(self.data) - self.at

    def take(self, n_bytes: int) -> memoryview:
        if n_bytes > self.n_left:
            raise WireError(f"message ends early: {n_bytes} bytes due, {self.n_left} left")
        self.at += n_bytes
        return self.data[self.at - n_bytes : self.at]

    def byte(self) -> int:
        if self.at >= len(self.data):
            raise WireError("message ends early: 1 byte due, 0 left")
        self.at += 1
        return self.data[self.at - 1]

    def varint(self, most: int = (1 << 64) - 1) -> int:
        number = 0
        for shift in range(0, 70, 7):
            byte = self.byte()
            number |= (byte & 127) << shift
            if byte < 128:
                if number > most or (byte == 0 and shift > 0):
                    raise WireError(f"number {number} is above {most} or written too long")
                return number
        raise WireError("number runs over ten bytes")

    def claim(self, shape: tuple[int, ...], item_bytes: int) -> None:
        """Refuses an array that we could not afford to hold; to be called before it is made."""
        n_bytes = item_bytes
        for length in shape:
            n_bytes *= max(length, 1)  # an empty axis must not hide an absurd one
        if n_bytes > self.allowance:
            raise WireError(f"array of shape {shape} takes {n_bytes} bytes, {self.allowance} allowed (see max_bytes)")
        self.allowance -= n_bytes

    def finish(self) -> None:
        if self.n_left:
            raise WireError(f"{self.n_left} bytes too many at the end")


def gather(chunks: Iterable[NDArray[Any]], n: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """The n numbers that come in these parts."""
    whole, at = np.empty(n, dtype), 0
    for some in chunks:
        whole[at : at + some.size] = some
        at += some.size
    return whole


def chunks_of(flat: NDArray[Any]) -> Iterable[NDArray[Any]]:
    return (flat[at : at + CHUNK] for at in range(0, flat.size, CHUNK))
