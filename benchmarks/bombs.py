"""What the worst messages that we could craft cost a reader, beside honest ones of the same shape.

python benchmarks/bombs.py               memory and time of the costliest honest and forged message of each kind
python benchmarks/bombs.py --json        the same, every message by its name
python benchmarks/bombs.py --kind int8   of kinds with this in their names alone
python benchmarks/bombs.py --unknown     the reader is not told what to expect

Linux only: a process can be told there to forget how much memory it once held.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import zstandard
from numpy.typing import NDArray

from laconic.wire import Bits, Due, Floats, Ints, Message, Sparse, WireError, decode, encode
from laconic.wire.buffer import write_varint
from laconic.wire.codec import VERSION, checksum
from laconic.wire.message import DTYPES


class SomeBits(Message):
    values: Bits


class SomeInts(Message):
    values: Ints


class SomeFloats(Message):
    values: Floats


class SomeSparse(Message):
    values: Sparse


class Case(NamedTuple):
    """A message on its way to a reader who knows its shape and dtype."""

    kind: str
    name: str
    is_honest: bool
    cls: type[Message]
    data: bytes
    base: Message | None
    due: Due

    @property
    def decoded_bytes(self) -> int:
        """Of an honest one, once read."""
        return math.prod(self.due.shape) * (self.due.item_bytes + (self.cls is SomeSparse))  # type: ignore[arg-type]


class Series(NamedTuple):
    """Messages of one kind, honest and forged."""

    kind: str
    cls: type[Any]
    shape: tuple[int, ...]
    dtype: str

    def honest(self, name: str, value: Any, base: Message | None = None) -> Case:
        return self.case(name, True, encode(self.cls(value), base), base)

    def forged(self, name: str, method: int, code: bytes, base: Message | None = None) -> Case:
        return self.case(name, False, forge(self.cls, block(method, self.dtype, self.shape, code), base), base)

    def case(self, name: str, is_honest: bool, data: bytes, base: Message | None) -> Case:
        due = Due(self.shape, item_bytes=np.dtype(self.dtype).itemsize)
        return Case(self.kind, name, is_honest, self.cls, data, base, due)


# ---------------------------------------------------------------- forging
def forge(cls: type[Message], field: bytes, base: Message | None = None) -> bytes:
    """A message with this as its only field."""
    body = bytes([VERSION | (base is not None) << 4]) + field
    return body + checksum(cls, body, base)


def block(method: int, dtype: str, shape: tuple[int, ...] | None, code: bytes) -> bytes:
    """shape: None for the values of a Sparse; methods from 8 on have the base's, and its dtype."""
    if method >= 8:
        return bytes([method]) + code
    head = bytes([method | DTYPES.index(np.dtype(f"<{dtype}")) << 4])
    return head + (b"" if shape is None else bytes([len(shape)]) + b"".join(map(write_varint, shape))) + code


def pair(mask: bytes, values: bytes) -> bytes:
    """The field of a Sparse."""
    return write_varint(len(mask)) + mask + values


def codes(rng: np.random.Generator, n_bytes: int) -> Iterator[tuple[str, bytes]]:
    """For a model to make of what it will: past the end it reads zeros."""
    yield "no code", b""
    yield "noise", rng.bytes(n_bytes)
    yield "ones", b"\xff" * n_bytes
    yield "near ones", (b"\xff" * 7 + b"\xfe") * (n_bytes // 8)


def pack_zeros(n_bytes: int) -> bytes:
    """A frame, as planes have it, of zeros: four bytes for each 128 KiB of them."""
    blocks, left = [b"\x38"], n_bytes  # a window of 128 KiB
    while left:
        some = min(left, 1 << 17)
        left -= some
        blocks.append((int(left == 0) | 1 << 1 | some << 3).to_bytes(3, "little") + b"\0")
    return b"".join(blocks)


def pack_window(n_bytes: int) -> bytes:
    """The same with the largest window that a frame can ask for."""
    return b"\xff" + pack_zeros(n_bytes)[1:]


def pack_blocks(rng: np.random.Generator, n_bytes: int) -> bytes:
    """A frame of blocks of a hundred bytes, each of which brings tables of its own."""
    parameters = zstandard.ZstdCompressionParameters.from_level(
        3, source_size=n_bytes, format=zstandard.FORMAT_ZSTD1_MAGICLESS, write_content_size=0
    )
    stream, parts = zstandard.ZstdCompressor(compression_params=parameters).compressobj(), []
    for at in range(0, n_bytes, 100):
        piece = np.minimum(rng.geometric(0.12, min(100, n_bytes - at)) + rng.integers(0, 200), 255).astype(np.uint8)
        parts += [stream.compress(piece.tobytes()), stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)]
    return b"".join([*parts, stream.flush()])[1:]


def frames(rng: np.random.Generator, n_bytes: int) -> Iterator[tuple[str, bytes]]:
    yield "zeros", pack_zeros(n_bytes)
    yield "zeros, window", pack_window(n_bytes)
    yield "too many zeros", pack_zeros(100 * n_bytes)
    yield "blocks", pack_blocks(rng, n_bytes)


# ---------------------------------------------------------------- messages
def cases_of_bits(rng: np.random.Generator, series: Series) -> Iterator[Case]:
    shape, n = series.shape, math.prod(series.shape)
    for density in (0.5, 0.25, 0.06, 0.001):
        bits = rng.random(shape) < rng.gamma(0.6, density / 0.6, shape[-1])
        yield series.honest(f"density {density}", bits)
        for share in (0.1, 0.01, 0.0001):
            later = bits ^ (rng.random(shape) < share)
            yield series.honest(f"density {density}, {share} flipped", later, SomeBits(bits))
    dense, sparse = SomeBits(rng.random(shape) < 0.5), SomeBits(bits)
    for name, code in codes(rng, n // 8):
        for lag, prior in ((4, 151), (63, 0), (4, 140)):
            yield series.forged(f"model {lag}, {prior}, {name}", 2, bytes([lag, prior]) + code)
        for base in (dense, sparse):
            yield series.forged(f"model on base, {name}", 9, b"\x8c\x8c" + code, base)
    gaps = write_varint(n) + bytes(1 + -(-n // 8))  # all of length 0
    yield series.forged("gaps, all", 1, b"\1" + gaps)
    yield series.forged("gaps, long", 1, b"\1\1\0" + b"\xff" * (n // 8) + b"\0")
    n_held = int(np.count_nonzero(dense.values))
    changes = [write_varint(k) + bytes(1 + -(-k // 8)) for k in (n_held, n - n_held)]
    yield series.forged("changes, all", 8, b"".join(changes), dense)


def cases_of_ints(rng: np.random.Generator, series: Series) -> Iterator[Case]:
    n, limits, width = math.prod(series.shape), np.iinfo(series.dtype), np.dtype(series.dtype).itemsize
    spread = {
        "small": np.clip(np.rint(rng.laplace(0, 3, n)), limits.min, limits.max).astype(series.dtype),
        "wide": (np.tanh(rng.laplace(0, 0.1, n)) * limits.max * 0.99).astype(series.dtype),
        "noise": rng.integers(limits.min, limits.max, n, endpoint=True, dtype=series.dtype),
    }
    for name, numbers in spread.items():
        yield series.honest(name, numbers)
        later = numbers + rng.integers(-1, 2, n).astype(series.dtype)
        yield series.honest(f"{name}, later", later, SomeInts(numbers))
        yield series.honest(f"{name}, on another", numbers, SomeInts(spread["small"]))
    for on_base, base in ((0, None), (8, SomeInts(spread["noise"]))):
        where = "on base, " if on_base else ""
        for shift in (0, 1, 7, 40):
            for name, code in (("zeros", bytes(-(-n * (shift + 1) // 8))), ("noise", rng.bytes(n * width - 1))):
                yield series.forged(f"rice of {shift}, {where}{name}", 1 + on_base, bytes([shift]) + code, base)
        for wide in (1, 2, 4, 8):
            for name, code in frames(rng, n * wide):
                yield series.forged(f"planes of {wide}, {where}{name}", 2 + on_base, bytes([wide]) + code, base)
        for widest in sorted({8 * width, 8 * width - 1, 7, 64}):
            for name, code in codes(rng, n * width):
                yield series.forged(f"model of {widest}, {where}{name}", 3 + on_base, bytes([widest]) + code, base)


def cases_of_floats(rng: np.random.Generator, series: Series) -> Iterator[Case]:
    n, width = math.prod(series.shape), np.dtype(series.dtype).itemsize
    gauss = rng.normal(0, 0.1, n)
    spread = {
        "gauss": gauss,
        "half zeros": np.maximum(gauss, 0),
        "stretched": np.interp(np.arange(n) / 2, np.arange(n), gauss),
        "few": rng.choice(gauss[:200], n),
    }
    for name, numbers in spread.items():
        base = SomeFloats(numbers.astype(series.dtype))
        yield series.honest(name, base.values)
        later = numbers * (1 + rng.normal(0, 0.02, n))
        yield series.honest(f"{name}, later", later.astype(series.dtype), base)
    for on_base, known in ((0, None), (8, base)):
        where = "on base, " if on_base else ""
        for name, code in frames(rng, n * width):
            yield series.forged(f"planes, {where}{name}", 2 + on_base, code, known)
        for name, code in codes(rng, n * width):
            for widest in sorted({8 * width, 7, 64}):
                yield series.forged(f"model of {widest}, {where}{name}", 3 + on_base, bytes([widest]) + code, known)
            yield series.forged(f"lines, {where}{name}", 4 + on_base, code, known)


def cases_of_sparse(rng: np.random.Generator, series: Series) -> Iterator[Case]:
    n = math.prod(series.shape)
    vector: NDArray[Any] = rng.normal(size=n).astype(series.dtype)
    everything = SomeSparse(Sparse(np.ones(n, bool), vector))
    for share in (0.05, 0.5):
        base = SomeSparse(Sparse.of(vector, rng.random(n) < share))
        yield series.honest(f"{share} chosen", base.values)
        moved = Sparse.of(vector * vector.dtype.type(1.01), np.abs(vector) > np.quantile(np.abs(vector), 1 - share))
        yield series.honest(f"{share} chosen, by size", moved, everything)
        yield series.honest(f"{share} chosen, later", moved, base)
    masks = {
        "all": (block(0, "?", series.shape, b"\xff" * (n // 8)), n),
        "half": (block(0, "?", series.shape, b"\xaa" * (n // 8)), n // 2),
        "model": (block(2, "?", series.shape, bytes([4, 151]) + rng.bytes(n // 8)), n),
        "none": (block(0, "?", series.shape, bytes(n // 8)), 0),
    }
    for name, (mask, n_chosen) in masks.items():
        for what, method, code in (
            ("planes", 2, pack_zeros(4 * n_chosen)),
            ("model", 3, b"\x20" + rng.bytes(n)),
            ("lines", 4, rng.bytes(n)),
        ):
            alone = forge(SomeSparse, pair(mask, block(method, series.dtype, None, code)))
            yield series.case(f"{name}, {what}", False, alone, None)
            on_base = forge(SomeSparse, pair(mask, block(method + 8, series.dtype, None, code)), everything)
            yield series.case(f"{name}, {what} on base", False, on_base, everything)
    values = block(10, series.dtype, None, pack_zeros(4 * n))
    for method, name in ((9, "model on base"), (10, "by size")):
        for what, code in codes(rng, n // 8):
            mask = block(method, "?", None, (b"\x8c\x8c" if method == 9 else b"") + code)
            yield series.case(f"{name}, {what}", False, forge(SomeSparse, pair(mask, values), everything), everything)
    same = pair(block(15, "?", None, b""), values)
    yield series.case("same, zeros", False, forge(SomeSparse, same, everything), everything)


MAKERS = {SomeBits: cases_of_bits, SomeInts: cases_of_ints, SomeFloats: cases_of_floats, SomeSparse: cases_of_sparse}
SERIES = [Series(f"bits {shape}", SomeBits, shape, "?") for shape in ((1000, 1568), (1_200_000,), (300_000, 4))]
SERIES += [
    Series(f"{np.dtype(dtype)} {n}", cls, (n,), dtype)
    for cls, dtype, sizes in (
        (SomeInts, "i1", (250_000, 1_200_000)),
        (SomeInts, "i4", (3000, 250_000)),
        (SomeInts, "i8", (250_000, 1_200_000)),
        (SomeFloats, "f2", (1 << 15, 1_200_000)),
        (SomeFloats, "f4", (5000, 1 << 15, 250_000, 1_200_000)),
        (SomeFloats, "f8", (1 << 15,)),
    )
    for n in sizes
]
SERIES += [Series(f"sparse {n}", SomeSparse, (n,), "f4") for n in (30_000, 1_200_000)]


def cases(series: Series) -> Iterator[Case]:
    return MAKERS[series.cls](np.random.default_rng(1), series)


# ---------------------------------------------------------------- measuring
# For a process that gives back all that is freed: what it kept would not be seen when it is used again.
GIVES_BACK = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}


def read(case: Case, *, is_known: bool = True) -> bool:
    """Whether it was taken for a message."""
    try:
        if is_known:
            decode(case.cls, case.data, case.base, expected={"values": case.due}, must_be_finite=True)
        else:
            decode(case.cls, case.data, case.base)
    except WireError:
        return False
    return True


def peak_bytes() -> int:
    """Most memory that this process held since its peak was forgotten."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return 1024 * int(line.split()[1])


def measure(case: Case, *, is_known: bool) -> dict[str, Any]:
    is_read = read(case, is_known=is_known)  # compiles what it needs
    Path("/proc/self/clear_refs").write_text("5")  # the peak is forgotten
    before = peak_bytes()
    read(case, is_known=is_known)
    held, best = peak_bytes() - before, math.inf
    for _ in range(3):
        start = time.thread_time()
        read(case, is_known=is_known)
        best = min(best, time.thread_time() - start)
    what = {"kind": case.kind, "message": case.name, "is_honest": case.is_honest, "is_read": is_read}
    return what | {"n_bytes": len(case.data), "held_bytes": held, "seconds": best}


def costliest(rows: list[dict[str, Any]], what: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Among the honest, and among the forged."""
    honest, forged = (max((r for r in rows if r["is_honest"] is ok), key=lambda r: r[what]) for ok in (True, False))
    return honest, forged


def summarise(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield "| kind | honest MB | worst MB | times | by | honest ms | worst ms | times | by |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for kind in dict.fromkeys(row["kind"] for row in rows):
        line = f"| {kind} |"
        for what, unit in (("held_bytes", 1e6), ("seconds", 1e-3)):
            honest, forged = costliest([row for row in rows if row["kind"] == kind], what)
            line += f" {honest[what] / unit:.2f} | {forged[what] / unit:.2f} | {forged[what] / honest[what]:.1f} |"
            line += f" {forged['message']} |"
        yield line


def main() -> None:
    parser = argparse.ArgumentParser(description="What the worst messages cost a reader, beside honest ones.")
    parser.add_argument("--json", action="store_true", help="every message, not the worst of each kind alone")
    parser.add_argument("--kind", default="", help="of kinds with this in their names alone")
    parser.add_argument("--unknown", action="store_true", help="the reader is not told what to expect")
    arguments = parser.parse_args()
    if not GIVES_BACK.items() <= os.environ.items():
        again = [sys.executable, __file__, *sys.argv[1:]]
        sys.exit(subprocess.run(again, check=False, env=os.environ | GIVES_BACK).returncode)
    chosen = [series for series in SERIES if arguments.kind in series.kind]
    rows = [measure(case, is_known=not arguments.unknown) for series in chosen for case in cases(series)]
    print(json.dumps(rows, indent=1) if arguments.json else "\n".join(summarise(rows)))


if __name__ == "__main__":
    main()
