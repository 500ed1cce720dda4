"""The Walsh–Hadamard transform: sums and differences only, always in the same order, so the same bits on any CPU.

The transform of 2n numbers is that of both halves, then their sums and differences: a butterfly. Eight vectors of
eight numbers stay in registers for three such steps, for six at the start, so that 2^20 numbers are loaded and stored
six times and not twenty. Eight parts become one as soon as the last of them is ready, in whatever cache they still are.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit
from numba.core import types as numba_types
from numba.extending import intrinsic as numba_intrinsic
from numpy.typing import NDArray

types: Any = numba_types
intrinsic: Callable[[Callable[..., Any]], Callable[..., Any]] = numba_intrinsic
compiled: Callable[[Callable[..., Any]], Callable[..., Any]] = njit(nogil=True, cache=True)

LANES = 8
CHUNK = LANES * LANES  # numbers that eight registers hold
VECTOR, WORDS = (ir.VectorType(kind, LANES) for kind in (ir.FloatType(), ir.IntType(32)))


def hadamard(x: NDArray[np.float32]) -> None:
    """In place, not normalised: twice gives len(x) times x. Other threads run meanwhile."""
    if x.dtype != np.float32 or x.ndim != 1 or not x.flags.c_contiguous or not x.flags.writeable:
        kind = f"{'x'.join(map(str, x.shape))} {x.dtype}"
        raise ValueError(f"x is {kind}; give a writeable contiguous vector of float32 (np.ascontiguousarray)")
    if len(x).bit_count() != 1:
        raise ValueError(f"x has {len(x)} numbers, not a power of 2; pad it with zeros")
    transform(x)


# ---------------------------------------------------------------- butterflies
def _across_lanes(b: Any, vector: Any, bit: int) -> Any:
    partner = b.shuffle_vector(vector, vector, ir.Constant(WORDS, [lane ^ bit for lane in range(LANES)]))
    minus = ir.Constant(WORDS, [(1 << 31) * bool(lane & bit) for lane in range(LANES)])
    return b.fadd(partner, b.bitcast(b.xor(b.bitcast(vector, WORDS), minus), VECTOR))


def _butterfly(n_vectors: int, *, across_lanes: bool) -> Any:
    """A kernel's instruction: combines eight columns of n_vectors rows that are `stride` bytes apart.

    Vectors are LLVM's own: with plain loops over numbers the transform took three times as long.
    """

    @intrinsic
    def butterfly(typing: Any, address: Any, stride: Any) -> Any:
        def generate(context: Any, b: Any, signature: Any, values: Any) -> Any:
            start, step = values
            rows = [b.add(start, b.mul(step, ir.Constant(step.type, row))) for row in range(n_vectors)]
            pointers = [b.inttoptr(row, VECTOR.as_pointer()) for row in rows]
            vectors = [b.load(pointer, align=4) for pointer in pointers]
            for bit in (1, 2, 4) if across_lanes else ():
                vectors = [_across_lanes(b, vector, bit) for vector in vectors]
            for bit in (1, 2, 4):
                for i in range(n_vectors):
                    if i & bit == 0 and i | bit < n_vectors:
                        low, high = vectors[i], vectors[i | bit]
                        vectors[i], vectors[i | bit] = b.fadd(low, high), b.fsub(low, high)
            for vector, pointer in zip(vectors, pointers, strict=True):
                b.store(vector, pointer, align=4)
            return context.get_dummy_value()

        return types.void(types.intp, types.intp), generate

    return butterfly


whole_chunk = _butterfly(8, across_lanes=True)
eight_rows = _butterfly(8, across_lanes=False)
four_rows = _butterfly(4, across_lanes=False)
two_rows = _butterfly(2, across_lanes=False)


# ---------------------------------------------------------------- the kernel
@compiled
def transform(x: Any) -> None:
    n, size = len(x), 1  # size: of the parts that are transformed
    if n < CHUNK:
        while size < n:
            for start in range(0, n, 2 * size):
                for i in range(start, start + size):
                    x[i], x[i + size] = x[i] + x[i + size], x[i] - x[i + size]
            size *= 2
        return
    address = np.int64(x.ctypes.data)
    for end in range(CHUNK, n + 1, CHUNK):
        whole_chunk(address + 4 * (end - CHUNK), 4 * LANES)
        size = CHUNK
        while end % (8 * size) == 0:
            for i in range(end - 8 * size, end - 7 * size, LANES):
                eight_rows(address + 4 * i, 4 * size)
            size *= 8
    if n == 2 * size:
        for i in range(0, size, LANES):
            two_rows(address + 4 * i, 4 * size)
    elif n == 4 * size:
        for i in range(0, size, LANES):
            four_rows(address + 4 * i, 4 * size)
