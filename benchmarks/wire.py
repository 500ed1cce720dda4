"""Sizes and times of the wire codec on payloads like those that algorithms send; prints the table of docs/wire.md.

python benchmarks/wire.py                synthetic payloads, always the same
python benchmarks/wire.py arrays.npz     your own: each array x, coded against x_before where the file has one
"""

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import zstandard
from numpy.typing import NDArray

from laconic.wire import Bits, Floats, Hop, Ints, Ledger, Message, Sparse, decode, encode_detailed


class SomeBits(Message):
    values: Bits


class SomeInts(Message):
    values: Ints


class SomeFloats(Message):
    values: Floats


class SomeSparse(Message):
    values: Sparse


def clauses(rng: np.random.Generator, n_clauses: int, n_features: int, density: float) -> NDArray[np.bool_]:
    """Include bits [clause, literal] as of a machine on images: clauses differ in length, literals in popularity,
    neighbouring pixels go together, and a literal excludes its negation."""
    length = rng.gamma(3, 1 / 3, (n_clauses, 1))
    popular = np.convolve(rng.gamma(0.6, 1 / 0.6, n_features + 8), np.ones(9) / 9, "valid")
    negated = rng.random((n_clauses, n_features)) < np.clip(np.roll(popular, 7) * 0.5, 0.1, 0.9)
    field = rng.normal(size=(n_clauses, n_features + 4))
    field = (field[:, :-4] + field[:, 1:-3] + field[:, 2:-2]) / 3**0.5  # runs of some three pixels
    score = field + 0.8 * np.log(length * popular + 1e-3)
    chosen = score > np.quantile(score, 1 - 2 * density)
    return np.concatenate([chosen & ~negated, chosen & negated], axis=1)


def drift(rng: np.random.Generator, bits: NDArray[np.bool_], share: float) -> NDArray[np.bool_]:
    """The next round's bits: mostly includes lost, in a few clauses more than in others."""
    busy = rng.gamma(0.5, 2, (len(bits), 1))
    lost = bits & (rng.random(bits.shape) < np.minimum(0.8 * share / bits.mean() * busy, 1))
    return np.asarray(bits ^ lost ^ (rng.random(bits.shape) < 0.2 * share))


def stretch(rows: NDArray[np.float64]) -> NDArray[np.float32]:
    """256 features as 500, means of two neighbours between them, as adaptive pooling makes them."""
    places = np.arange(500) / 2
    return np.stack([np.interp(places, np.arange(256), row) for row in rows]).astype(np.float32)


def payloads(rng: np.random.Generator) -> Iterator[tuple[str, Message, Message | None]]:
    for density, n_clauses, n_features in ((0.01, 1000, 784), (0.06, 1000, 784), (0.15, 1000, 136), (0.25, 2000, 71)):
        bits = clauses(rng, n_clauses, n_features, density)
        yield f"include bits {n_clauses}x{2 * n_features}, {bits.mean():.1%}", SomeBits(bits), None
        for share in (0.01, 0.001, 0.0005):
            later = drift(rng, bits, share)
            yield f"… next round, {np.mean(later != bits):.2%} flipped", SomeBits(later), SomeBits(bits)
    one_class = clauses(rng, 100, 192, 0.01)
    yield "include bits 100x384, 1 %", SomeBits(one_class), None
    weights = np.minimum(rng.gamma(1.5, 20, (10, 300)).astype(np.int32) + 1, 200)
    yield "3000 clause weights, 1..200", SomeInts(weights), None
    later = weights + (rng.random(weights.shape) < 0.2) * rng.choice([-1, 1, 2], weights.shape)
    yield "… next round, a fifth moved", SomeInts(later.astype(np.int32)), SomeInts(weights)
    yield "10000 signed weights, Laplace", SomeInts(np.rint(rng.laplace(0, 11, 10_000)).astype(np.int32)), None
    yield "100 small weights", SomeInts(np.rint(rng.laplace(0, 3, 100)).astype(np.int32)), None
    sketch = rng.random(12_288) < 0.5
    yield "one-bit sketch, 12288", SomeBits(sketch), None
    for cosine in (0.90, 0.95, 0.99):
        other = sketch ^ (rng.random(sketch.size) < np.arccos(cosine) / np.pi)
        yield f"… of a vector at cosine {cosine:.2f}", SomeBits(other), SomeBits(sketch)
    features = np.maximum(rng.normal(0, 1, (10, 512)) - 0.1, 0)
    yield "prototypes 10x512, 54 % zeros, fp32", SomeFloats(features.astype(np.float32)), None
    yield "… fp16", SomeFloats(features.astype(np.float16)), None
    top = np.where(features >= np.quantile(features, 0.9), features, 0)
    yield "… top tenth only, fp16", SomeFloats(top.astype(np.float16)), None
    model = np.repeat(rng.gamma(2, 0.01, 12), 100_000) * rng.normal(size=1_200_000)
    kept = np.abs(model) > np.quantile(np.abs(model), 0.95) * rng.uniform(0.6, 1.4, model.size)
    sparse = Sparse.of(model.astype(np.float32), kept)
    yield f"{kept.mean():.1%} of 1.2 M weights, mask only", SomeBits(kept), None
    yield "… mask and fp32 values", SomeSparse(sparse), None
    yield "… mask and fp16 values", SomeSparse(Sparse.of(model.astype(np.float16), kept)), None
    moved = (model + rng.normal(0, 0.02, model.size) * np.abs(model)).astype(np.float32)
    yield "… next round, fp32, moved by 2 %", SomeSparse(Sparse.of(moved, kept)), SomeSparse(sparse)
    yield "1.2 M weights, fp32", SomeFloats(model.astype(np.float32)), None
    means = rng.gamma(2, 0.3, (10, 256))
    stretched = [stretch(rows) for rows in (means, means * (1 + rng.normal(0, 0.02, means.shape)))]
    yield "prototypes 10x500 of 256 features, fp32", SomeFloats(stretched[0]), None
    yield "… next round, moved by 2 %", SomeFloats(stretched[1]), SomeFloats(stretched[0])


def payloads_of(path: Path) -> Iterator[tuple[str, Message, Message | None]]:
    classes = {"b": SomeBits, "i": SomeInts, "u": SomeInts, "f": SomeFloats}
    with np.load(path, allow_pickle=False) as arrays:
        for name in arrays.files:
            if not name.endswith("_before"):
                cls = classes[arrays[name].dtype.kind]
                yield name, cls(arrays[name]), None
                if f"{name}_before" in arrays.files:
                    yield "… on what was before", cls(arrays[name]), cls(arrays[f"{name}_before"])


def seconds(work: Any) -> float:
    """Processor time of the best of five runs; other jobs on the machine then matter least."""
    best = np.inf
    for _ in range(5):
        start = time.thread_time()
        work()
        best = min(best, time.thread_time() - start)
    return best


def zstd_bytes(message: Any, base: Any) -> int:
    """What Zstandard's level 19 makes of the packed payload, bits as changes where there is a base."""
    values = message.values
    if isinstance(values, Sparse):
        packed = np.packbits(values.mask).tobytes() + values.values.tobytes()
    elif values.dtype == bool:
        packed = np.packbits(values if base is None else values ^ base.values).tobytes()
    else:
        packed = values.tobytes()
    return len(zstandard.ZstdCompressor(level=19).compress(packed))


def entropy_bytes(message: Any, base: Any) -> float:
    """Of the bits' or integers' changes where there is a base, each drawn independently."""
    if base is not None and isinstance(message, SomeBits | SomeInts):
        values = message.values ^ base.values if isinstance(message, SomeBits) else message.values - base.values
        message = type(message)(values)
    ledger = Ledger()
    ledger.record(Hop(1, "bench", "up", 0), message, encode_detailed(message))
    return ledger.total(field="values").entropy_bytes


def measure(name: str, message: Message, base: Message | None) -> str:
    encoded = encode_detailed(message, base)
    assert decode(type(message), encoded.data, base) == message
    ledger = Ledger()
    ledger.record(Hop(1, "bench", "up", 0), message, encoded)
    packed, sent, entropy = ledger.total(field="values").packed_bytes, len(encoded.data), entropy_bytes(message, base)
    encode_ms = 1e3 * seconds(lambda: encode_detailed(message, base))
    decode_ms = 1e3 * seconds(lambda: decode(type(message), encoded.data, base))
    sizes = f"{packed} | {zstd_bytes(message, base)} | {entropy:.0f} | **{sent}** | {sent / entropy:.2f}"
    return f"| {name} | {sizes} | {encoded.fields['values'].method} | {encode_ms:.1f}, {decode_ms:.1f} |"


def main() -> None:
    print("| payload | packed | zstd-19 | entropy | **laconic** | to entropy | method | encode, decode ms |")
    print("|---|---|---|---|---|---|---|---|")
    for payload in payloads_of(Path(sys.argv[1])) if len(sys.argv) > 1 else payloads(np.random.default_rng(0)):
        print(measure(*payload))


if __name__ == "__main__":
    main()
