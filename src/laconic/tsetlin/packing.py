"""Bits in, packed samples out: checked once here, never again."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import uint64 as word
from numpy.typing import NDArray

from laconic.tsetlin.compiling import entry_point, inline
from laconic.tsetlin.geometry import Layout, Shape, aligned, geometry
from laconic.tsetlin.kernels import Samples
from laconic.tsetlin.vectors import (
    and_not8,
    any8,
    bare,
    double4,
    load4,
    load8,
    load_bytes,
    load_word,
    nonzero_bytes,
    nothing4,
    or4,
    or8,
    shift_left8,
    splat8,
    store4,
    store8,
    store_apart,
    store_word,
    widen8,
)
from laconic.tsetlin.windows import LOW


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
    return -(-shape.n_words // 4) * 4 if shape.is_flat else shape.n_words


def pack(shape: Shape, x: Any) -> Packed:
    """Packs 0/1 samples: [n, features] if the shape is flat, else [n, height, width] or [n, height, width, layers]."""
    if isinstance(x, Packed):
        if x.shape != shape:
            raise ValueError(
                f"samples were packed for {x.shape}, the machine expects {shape}; pack them for that shape"
            )
        return x
    bits = _as_bits(shape, np.asarray(x))
    layout, valid, n_samples = geometry(shape).layout, geometry(shape).tables.valid, len(bits)
    # Vector loads and stores run past the end. What images leave unwritten is never looked at, but that the check of
    # nesting compares whole rows, of which wide ones leave words unwritten.
    make = np.zeros if layout.is_wide else np.empty
    n_images = 0 if shape.is_flat else n_samples
    packed = Samples(
        rows=aligned(n_images * layout.image_bytes + 512, np.uint8, make=make),
        patches=aligned(n_images * layout.patch_image_bytes + 64, np.uint8, make=np.empty),
        literals=aligned(n_samples * include_stride(shape) + 8 if shape.is_flat else 0, np.uint64),
    )
    room = aligned(256, np.uint8), aligned(32, np.uint64)
    for first, raw in _in_padded_parts(bits):
        part = Raw(len(raw), first, raw.reshape(-1), *room)
        if shape.is_flat:
            unnested = False  # a single patch has no use for nesting
            excess = _pack_flat(part, packed, valid, shape.n_features, include_stride(shape))
        else:
            excess, unnested = _pack_images(part, packed, layout, shape.width, shape.levels)
        _check_range(np.asarray(x), excess)
        if unnested:
            _refuse_unnested(shape, layout, packed.rows, first + len(raw))
    return Packed(shape, n_samples, packed)


class Raw(NamedTuple):
    """Samples of one byte per bit, with room to read 64 bytes past any of them."""

    n_samples: int
    first: int  # sample
    bits: NDArray[np.uint8]
    bytes: NDArray[np.uint8]  # room for [block of 8 columns, layer]
    words: NDArray[np.uint64]  # room for [layer]


def _in_padded_parts(bits: NDArray[np.uint8]) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """(first, samples): nearly all as they are, then the last few copied to where reads past the end are safe."""
    n_last = min(len(bits), 1 + 64 // bits[0].size) if len(bits) else 0
    n_first = len(bits) - n_last
    yield 0, bits[:n_first]
    room = np.zeros((n_last * bits[:1].size + 64,), np.uint8)
    room[: bits[n_first:].size] = bits[n_first:].reshape(-1)
    yield n_first, room[: bits[n_first:].size].reshape(bits[n_first:].shape)


def _as_bits(shape: Shape, x: NDArray[Any]) -> NDArray[np.uint8]:
    full = (shape.height, shape.width, shape.layers)
    is_table = shape.is_flat and x.ndim == 2 and x.shape[1] == shape.n_features
    if not is_table and not (x.shape[1:] == full or (shape.layers == 1 and x.shape[1:] == full[:2])):
        due = f"[n, {shape.n_features}]" if shape.height == shape.width == 1 else f"[n, {', '.join(map(str, full))}]"
        raise ValueError(
            f"x has shape {list(x.shape)}, {due} was expected; reshape it or build the machine for this shape"
        )
    if x.dtype.kind not in "biu":
        raise ValueError(
            f"x is {x.dtype}, bits (bool or integer 0/1) were expected; booleanize it (laconic.tsetlin.booleanize)"
        )
    x = np.ascontiguousarray(x)
    if x.dtype.itemsize > 1:  # single bytes are checked while they are packed
        _check_range(x, bool(x.size and (x.max() > 1 or x.min() < 0)))
        x = x.astype(np.uint8)
    return x.view(np.uint8).reshape(len(x), *full)


def _check_range(x: NDArray[Any], is_wrong: bool) -> None:
    if is_wrong:
        raise ValueError(
            f"x holds values from {x.min()} to {x.max()}, only 0 and 1 were expected; "
            "booleanize it (laconic.tsetlin.booleanize)"
        )


@inline
def _gather(bits, at, excess):
    """64 bytes of 0/1 → as many bits; adds what the bytes hold beside 0 and 1 to the excess."""
    surplus = and_not8(load8(bits, at), splat8(word(0x0101010101010101)))
    return nonzero_bytes(load_bytes(bits, at)), or8(excess, surplus)


@entry_point
def _pack_flat(raw, packed, valid, n_features, stride):
    """Literal words: 32 features and their negations; unused slots are false. True if a byte is above 1."""
    raw, packed = bare(raw), bare(packed)
    n_words, excess = valid.shape[0], splat8(word(0))
    for i in range(raw.n_samples):
        to = (raw.first + i) * stride
        for feature in range(0, n_features, 64):
            # features past the last one belong to the next sample; `valid` leaves them out
            gathered, excess = _gather(raw.bits, i * n_features + feature, excess)
            for half in range(2):
                w = feature // 32 + half
                if w < n_words:
                    true = gathered >> word(32 * half) & LOW
                    packed.literals[to + w] = (true | ((true ^ LOW) << word(32))) & valid[w]
    return any8(excess) != 0


@inline
def _stack(bits, last, layers, n_columns):
    """Bytes of up to eight columns, the last one at `last`, as bits of one byte per layer, for 32 layers."""
    stacked = nothing4()
    for _ in range(n_columns):
        stacked = or4(double4(stacked), load4(bits, last))
        last -= layers
    return stacked


@inline
def _gather_columns(raw, at, n_columns, n_layers, layers):
    """words[layer] = the bits of up to 64 columns, for up to 32 layers."""
    for column in range(0, n_columns - 7, 8):
        store4(raw.bytes, 4 * column, _stack(raw.bits, at + (column + 7) * layers, layers, 8))
    if n_columns & 7:
        last = at + (n_columns - 1) * layers
        store4(raw.bytes, 4 * (n_columns & ~7), _stack(raw.bits, last, layers, n_columns & 7))
    for k in range(0, n_layers, 8):
        columns = splat8(word(0))
        for column in range(0, n_columns, 8):
            columns = or8(columns, shift_left8(widen8(raw.bytes, 4 * column + k), word(column)))
        store8(raw.words, k, columns)


@inline
def _unnested(rows, image, layout, levels):
    """Bits of an image that are set although the same bit of the level below is not."""
    step, unnested = layout.image_bytes // layout.layers, word(0)
    written = step // layout.rows_per_layer * layout.height
    for layer in range(layout.layers):
        if layer % levels:
            start = image + layer * step
            for byte in range(0, written, 8):
                unnested |= load_word(rows, start + byte) & ~load_word(rows, start + byte - step)
    return unnested


@entry_point
def _pack_images(raw, packed, layout, width, levels):
    """Both copies of each image; true if a byte is above 1, true if levels do not nest.

    Stores of 8 bytes run into what is written next.
    """
    raw, packed = bare(raw), bare(packed)
    layers, excess, unnested = layout.layers, splat8(word(0)), word(0)
    row_bits = width * layers
    layer_bytes = layout.image_bytes // layers
    row_bytes = layer_bytes // layout.rows_per_layer
    for i in range(raw.n_samples):
        image = (raw.first + i) * layout.image_bytes
        for row in range(layout.height):
            source = (i * layout.height + row) * row_bits
            patch = (raw.first + i) * layout.patch_image_bytes + row * layout.patch_row_bytes
            line = image + row * row_bytes
            for bit in range(0, row_bits, 64):  # the last word may run on into the next row, which is written later
                gathered, excess = _gather(raw.bits, source + bit, excess)
                store_word(packed.patches, patch + bit // 8, gathered)
                if layers == 1:  # rows and patches are the same bits
                    store_word(packed.rows, line + bit // 8, gathered)
            if layers > 1:
                for layer in range(0, layers, 32):
                    n_layers = min(32, layers - layer)
                    for column in range(0, width, 64):
                        n_columns = min(64, width - column)
                        _gather_columns(raw, source + column * layers + layer, n_columns, n_layers, layers)
                        to = line + layer * layer_bytes + column // 8
                        for k in range(0, n_layers & ~7, 8):
                            store_apart(packed.rows, to + k * layer_bytes, layer_bytes, load8(raw.words, k))
                        for k in range(n_layers & ~7, n_layers):
                            store_word(packed.rows, to + k * layer_bytes, raw.words[k])
        if levels > 1:
            unnested |= _unnested(packed.rows, image, layout, levels)
    return any8(excess) != 0, unnested != 0


def _refuse_unnested(shape: Shape, layout: Layout, rows: NDArray[np.uint8], n_samples: int) -> None:
    layer_bytes = layout.image_bytes // shape.layers
    written = layer_bytes // layout.rows_per_layer * layout.height
    fields = rows[: n_samples * layout.image_bytes].reshape(-1, shape.levels, layer_bytes)[:, :, :written]
    level = next(k for k in range(1, shape.levels) if np.any(fields[:, k] & ~fields[:, k - 1]))
    raise ValueError(
        f"layers do not nest: level {level} holds where level {level - 1} does not, in a shape with "
        f"levels={shape.levels}; order thermometer layers by rising threshold, or use levels=1"
    )
