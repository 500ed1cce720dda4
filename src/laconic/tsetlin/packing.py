"""Bits in, packed samples out: checked once here, never again."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import uint8
from numpy.typing import NDArray

from laconic.tsetlin.geometry import FEATURES_PER_WORD, Layout, Shape, aligned, geometry
from laconic.tsetlin.kernels import Samples
from laconic.tsetlin.windows import kernel


@dataclass(frozen=True)
class Packed:
    """Samples of one shape, about a bit per bit (twice for images)."""

    shape: Shape
    n_samples: int
    samples: Samples

    def __len__(self) -> int:
        return self.n_samples


def include_stride(shape: Shape) -> int:
    """Words from one clause's include bits to the next; flat ones are compared in whole vectors."""
    return -(-shape.n_words // 8) * 8 if shape.is_flat else shape.n_words


def pack(shape: Shape, x: Any) -> Packed:
    """Packs 0/1 samples: [n, features] for a flat shape, [n, height, width] or [n, height, width, layers] for images."""
    if isinstance(x, Packed):
        if x.shape != shape:
            raise ValueError(f"samples were packed for {x.shape}, the machine expects {shape}; pack them for that shape")
        return x
    bits = _as_bits(shape, np.asarray(x))
    n_samples = len(bits)
    empty = np.zeros(0, np.uint8)
    if shape.is_flat:
        return Packed(shape, n_samples, Samples(empty, empty, _pack_literals(shape, bits)))
    layout = geometry(shape).layout
    rows = aligned(n_samples * layout.image_bytes + 512, np.uint8)  # vector loads run past the last image
    patches = aligned(n_samples * layout.patch_image_bytes + 64, np.uint8)
    _pack_patches(bits.reshape(-1), patches, n_samples * shape.height, shape.width * shape.layers, layout.patch_row_bytes)
    _pack_rows(bits, rows, layout.image_bytes // (shape.layers * layout.rows_per_layer), layout.rows_per_layer)
    if shape.levels > 1:
        _check_nesting(shape, layout, rows, n_samples)
    return Packed(shape, n_samples, Samples(rows, patches, np.zeros(0, np.uint64)))


def _as_bits(shape: Shape, x: NDArray[Any]) -> NDArray[np.uint8]:
    full = (shape.height, shape.width, shape.layers)
    is_table = shape.is_flat and x.ndim == 2 and x.shape[1] == shape.n_features
    if not is_table and not (x.shape[1:] == full or (shape.layers == 1 and x.shape[1:] == full[:2])):
        due = f"[n, {shape.n_features}]" if shape.height == shape.width == 1 else f"[n, {', '.join(map(str, full))}]"
        raise ValueError(f"x has shape {list(x.shape)}, {due} was due; reshape it or build the machine for this shape")
    if x.dtype.kind not in "biu":
        raise ValueError(f"x is {x.dtype}, bits (bool or integer 0/1) were due; booleanize it (laconic.tsetlin.booleanize)")
    if x.dtype != np.bool_ and x.size and (x.max() > 1 or (x.dtype.kind == "i" and x.min() < 0)):
        raise ValueError(
            f"x holds values from {x.min()} to {x.max()}, only 0 and 1 were due; booleanize it (laconic.tsetlin.booleanize)"
        )
    x = np.ascontiguousarray(x)
    bits = x.view(np.uint8) if x.dtype.itemsize == 1 else x.astype(np.uint8)
    return bits.reshape(len(x), *full)


def _pack_literals(shape: Shape, bits: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """[sample, word]: 32 features and their negations to a word; unused slots are false."""
    n, stride = len(bits), include_stride(shape)
    halves = np.zeros((n, stride * FEATURES_PER_WORD // 8), np.uint8)
    _pack_patches(bits.reshape(-1), halves.reshape(-1), n, shape.n_features, halves.shape[1])
    features = halves.view(np.uint32).astype(np.uint64)
    literals = aligned((n, stride), np.uint64)
    np.bitwise_or(features, (features ^ np.uint64(0xFFFFFFFF)) << np.uint64(32), out=literals)
    literals[:, : shape.n_words] &= geometry(shape).tables.valid
    literals[:, shape.n_words :] = 0
    return literals


@kernel
def _pack_patches(bits, packed, n_rows, row_bits, row_bytes):  # type: ignore[no-untyped-def]
    """Consecutive bytes → consecutive bits, each row from a new byte on."""
    for row in range(n_rows):
        start = row * row_bits
        for byte in range((row_bits + 7) // 8):
            value = uint8(0)
            for bit in range(min(8, row_bits - 8 * byte)):
                value |= bits[start + 8 * byte + bit] << uint8(bit)
            packed[row * row_bytes + byte] = value


@kernel
def _pack_rows(bits, packed, row_bytes, rows_per_layer):  # type: ignore[no-untyped-def]
    """[image, row, column, layer] bytes → [image, layer, row] bits of a row; layers innermost, so that it vectorises."""
    n_images, height, width, layers = bits.shape
    gathered = np.zeros(layers, np.uint8)
    for image in range(n_images):
        for row in range(height):
            for byte in range((width + 7) // 8):
                gathered[:] = 0
                for bit in range(min(8, width - 8 * byte)):
                    for layer in range(layers):
                        gathered[layer] |= bits[image, row, 8 * byte + bit, layer] << uint8(bit)
                for layer in range(layers):
                    packed[((image * layers + layer) * rows_per_layer + row) * row_bytes + byte] = gathered[layer]


def _check_nesting(shape: Shape, layout: Layout, rows: NDArray[np.uint8], n_samples: int) -> None:
    fields = rows[: n_samples * layout.image_bytes].reshape(-1, shape.levels, layout.image_bytes // shape.layers)
    for level in range(1, shape.levels):
        if np.any(fields[:, level] & ~fields[:, level - 1]):
            raise ValueError(
                f"layers do not nest: level {level} holds where level {level - 1} does not, in a shape with "
                f"levels={shape.levels}; order thermometer layers by rising threshold, or use levels=1"
            )
