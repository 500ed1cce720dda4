import numpy as np
import pytest

from laconic.networks import pack, unpack
from laconic.networks.precision import LIMITS

ROWS = np.array([0, 10, 17, 18])


def draw(scale: float = 1.0) -> np.ndarray:
    values = np.random.default_rng(0).normal(size=25).astype(np.float32) * np.float32(scale)
    values[:10] *= 1000  # rows of very different size
    return values


@pytest.mark.parametrize("kept", LIMITS)
def test_whole_numbers_are_off_by_half_a_level_of_their_row_at_most(kept: str) -> None:
    values = draw()
    packed = pack(values, ROWS, kept)
    assert packed.levels is not None
    assert packed.scales is not None
    assert packed.levels.dtype == np.int8
    assert np.abs(packed.levels).max() == LIMITS[kept]  # each row uses its whole range
    level = np.repeat(packed.scales, np.diff(ROWS, append=25))
    assert (np.abs(unpack(packed, ROWS) - values) <= level / 2 * 1.001).all()
    assert [np.abs(row).max() / LIMITS[kept] for row in np.split(values, ROWS[1:])] == pytest.approx(packed.scales)


@pytest.mark.parametrize("kept", LIMITS)
def test_a_row_of_zeros_stays_one(kept: str) -> None:
    values = draw()
    values[10:17] = 0
    assert (unpack(pack(values, ROWS, kept), ROWS)[10:17] == 0).all()


def test_single_precision_is_exact_and_half_precision_nearly() -> None:
    values = draw()
    assert unpack(pack(values, ROWS, "fp32"), ROWS) is values
    halves = pack(values, ROWS, "fp16")
    assert halves.exact is not None
    assert halves.exact.dtype == np.float16
    assert unpack(halves, ROWS) == pytest.approx(values, rel=2**-11)


@pytest.mark.parametrize("kept", ["fp32", "fp16", "int8", "int4"])
def test_nothing_packs_to_nothing(kept: str) -> None:
    assert unpack(pack(np.zeros(0, np.float32), np.zeros(0, np.int64), kept), np.zeros(0, np.int64)).size == 0
