"""Packed samples hold every bit of the raw ones, twice."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from laconic.tsetlin import Shape, pack
from laconic.tsetlin.geometry import geometry


def unpack(shape, packed):
    """Raw images from the row-major copy and from the pixel-major copy."""
    layout, n = geometry(shape).layout, len(packed)
    stored = packed.samples.rows[: n * layout.image_bytes].reshape(n, shape.layers, layout.rows_per_layer, -1)
    rows = np.unpackbits(stored[:, :, : shape.height], axis=-1, bitorder="little")[..., : shape.width]
    stored = packed.samples.patches[: n * layout.patch_image_bytes].reshape(n, shape.height, -1)
    patches = np.unpackbits(stored, axis=-1, bitorder="little")[..., : shape.width * shape.layers]
    return rows.transpose(0, 2, 3, 1), patches.reshape(n, shape.height, shape.width, shape.layers)


@given(
    height=st.integers(1, 90),
    width=st.integers(1, 140),
    layers=st.integers(1, 70),
    patch=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    n_samples=st.integers(1, 4),
)
@example(height=39, width=16, layers=3, patch=(4, 3), n_samples=2)  # tall and narrow: the last row ends with its layer
@example(height=79, width=8, layers=2, patch=(8, 2), n_samples=2)
def test_both_copies_hold_every_bit(height, width, layers, patch, n_samples):
    shape = Shape.image(height, width, layers, patch=(min(patch[0], height), min(patch[1], width)))
    x = np.random.default_rng(0).integers(0, 2, (n_samples, height, width, layers), dtype=np.uint8)
    if not shape.is_flat:
        for copy in unpack(shape, pack(shape, x)):
            np.testing.assert_array_equal(copy, x)


@given(n_features=st.integers(1, 200), n_samples=st.integers(1, 4))
def test_flat_words_hold_every_bit_and_its_negation(n_features, n_samples):
    shape = Shape.flat(n_features)
    x = np.random.default_rng(0).integers(0, 2, (n_samples, n_features)).astype(bool)
    words = pack(shape, x).samples.literals[: n_samples * -(-shape.n_words // 4) * 4]
    bits = np.unpackbits(words.view(np.uint8), bitorder="little").reshape(n_samples, -1)
    np.testing.assert_array_equal(bits[:, shape.literal_slots], np.concatenate([x, ~x], axis=1))
    assert bits.sum() == n_samples * n_features  # unused slots are false
