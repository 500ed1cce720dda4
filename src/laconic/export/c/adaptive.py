"""name_encode of images read by the adaptive threshold: a pixel against the Gaussian mean around it.

The mean in Python is made of floats, rounded where OpenCV rounds them; a chip without a floating-point unit is slow at
that. So C first takes the mean in integers, whose error has a bound; only where that leaves open on which side of a
half the mean lies, at one pixel in a thousand of Fashion-MNIST, does it do as Python does.
"""

from __future__ import annotations

from math import ceil

import numpy as np
from numpy.typing import NDArray

from laconic.export.c.tables import define, write_table
from laconic.export.c.values import BYTE, Values
from laconic.models.preprocessing import Adaptive
from laconic.tsetlin.booleanize import gaussian_kernel

ALONG_BITS, DOWN_BITS = 20, 18  # of whole weights: sums of bytes by them fit 32 bits
KEPT_BITS = 6  # of means along rows, behind the point
NEAR_BITS = 16  # of the mean that is compared, behind the point
# where in the turned image is place (y, x) of the raw one, by quarters to the left
TURNED_OF_RAW = (
    ("y", "x"),
    ("NAME_RAW_WIDTH - 1 - x", "y"),
    ("NAME_RAW_HEIGHT - 1 - y", "NAME_RAW_WIDTH - 1 - x"),
    ("x", "NAME_RAW_HEIGHT - 1 - y"),
)

EXACT = """static inline int name_within(int k, int size)
{
    return k < 0 ? 0 : k < size ? k : size - 1;
}

/* Rounded where OpenCV rounds; a product of two floats is exact as a double. pixels: of one channel. */
static inline float name_mean_along(const name_value *pixels, int y, int x)
{
    float mean = 0;
    int k;
    y = name_within(y, NAME_RAW_HEIGHT);
    for (k = -NAME_ALONG; k <= NAME_ALONG; k++) {
        const int place = y * NAME_RAW_WIDTH + name_within(x + k, NAME_RAW_WIDTH);
        mean = (float)((double)name_along[k < 0 ? -k : k] * pixels[place * NAME_CHANNELS] + mean);
    }
    return mean;
}

/* The mean around a pixel as a whole number, halves to even. */
static inline int name_mean(const name_value *pixels, int y, int x)
{
    float mean = (float)((double)name_mean_along(pixels, y, x) * name_down[0]);
    int k, whole;
    for (k = 1; k <= NAME_DOWN; k++) {
        const float pair = name_mean_along(pixels, y - k, x) + name_mean_along(pixels, y + k, x);
        mean = (float)((double)pair * name_down[k] + mean);
    }
    whole = (int)mean;
    mean -= (float)whole;
    return whole + (mean > 0.5f || (mean == 0.5f && (whole & 1)));
}
"""

# column by column, so that one column of means along rows is all that is kept
ENCODE = """{
    uint16_t means[NAME_RAW_HEIGHT];
    int x, y, channel, k;
    for (k = 0; k < NAME_WORDS; k++)
        bits[k] = 0;
    for (channel = 0; channel < NAME_CHANNELS; channel++)
        for (x = 0; x < NAME_RAW_WIDTH; x++) {
            const name_value *pixels = row + channel;
            for (y = 0; y < NAME_RAW_HEIGHT; y++) {
                uint32_t sum = (uint32_t)1 << (NAME_ALONG_SHIFT - 1);
                for (k = -NAME_ALONG; k <= NAME_ALONG; k++) {
                    const int place = y * NAME_RAW_WIDTH + name_within(x + k, NAME_RAW_WIDTH);
                    sum += name_whole_along[k < 0 ? -k : k] * (uint32_t)pixels[place * NAME_CHANNELS];
                }
                means[y] = (uint16_t)(sum >> NAME_ALONG_SHIFT);
            }
            for (y = 0; y < NAME_RAW_HEIGHT; y++) {
                const int least = pixels[(y * NAME_RAW_WIDTH + x) * NAME_CHANNELS] - NAME_ABOVE;
                const int32_t half = ((int32_t)2 * least - 1) * ((int32_t)1 << NAME_HALF_SHIFT);
                uint32_t sum = 0;
                int is_above;
                for (k = -NAME_DOWN; k <= NAME_DOWN; k++)
                    sum += name_whole_down[k < 0 ? -k : k] * means[name_within(y + k, NAME_RAW_HEIGHT)];
                sum >>= NAME_DOWN_SHIFT;
                is_above = (int32_t)sum < half;
                if ((int32_t)sum >= half - NAME_NEAR && (int32_t)sum <= half + NAME_NEAR)
                    is_above = name_mean(pixels, y, x) < least;
                if (is_above) {
                    const int i = ROW, j = COLUMN, place = PLACE;
                    bits[WORD_OF] |= (uint32_t)1 << (BIT_OF & 31);
                }
            }
        }
}
"""


def write_adaptive(
    preprocessing: Adaptive, sizes: dict[str, int], turns: int, values: Values, head: str, *, is_flat: bool
) -> str:
    """head: of the function."""
    if values.ctype in ("float", "double"):
        raise ValueError(f"rows hold {values.ctype}; the adaptive threshold reads bytes, whole numbers from 0 to 255")
    # OpenCV does not blur along an axis of one pixel; kernels are symmetric, so the half from the middle on will do
    along, down = (
        gaussian_kernel(preprocessing.window if sizes[key] > 1 else 1)[-1 - preprocessing.window // 2 :]
        for key in ("raw_width", "raw_height")
    )
    whole_along, whole_down = np.rint(np.ldexp(along, ALONG_BITS)), np.rint(np.ldexp(down, DOWN_BITS))
    constants = {
        "along": len(along) - 1,
        "down": len(down) - 1,
        "along_shift": ALONG_BITS - KEPT_BITS,
        "down_shift": DOWN_BITS + KEPT_BITS - NEAR_BITS,
        "half_shift": NEAR_BITS - 1,
        "near": bound_error(along, down),
        "above": f"({-ceil(preprocessing.offset)})",
    }
    i, j = TURNED_OF_RAW[turns]
    if is_flat:
        word, bit, place = "place >> 5", "place", "(i * NAME_WIDTH + j) * NAME_CHANNELS + channel"
    else:
        word, bit, place = "place", "j", "(i * NAME_CHANNELS + channel) * NAME_STEP + (j >> 5)"
    body = ENCODE.replace("ROW,", f"{i},").replace("COLUMN", j).replace("PLACE", place)
    return "".join(
        [
            define(**sizes, **constants),
            write_table("float", "name_along", along, "Weights of the mean along a row, from the middle outwards."),
            write_table("float", "name_down", down, "And down a column."),
            write_table("uint32_t", "name_whole_along", whole_along, "Both as whole numbers."),
            write_table("uint32_t", "name_whole_down", whole_down, "These down a column."),
            EXACT,
            head + body.replace("WORD_OF", word).replace("BIT_OF", bit),
        ]
    )


def bound_error(along: NDArray[np.float64], down: NDArray[np.float64]) -> int:
    """How far the mean in integers may be from that in floats, in parts of 2^16, rounded up.

    Rounded weights, one rounding of each mean along a row, one at the end; and each float operation is off by half of
    the last place of 512 at most.
    """

    def sum_both_ways(half: NDArray[np.float64]) -> float:
        return float(2 * np.abs(half).sum() - abs(half[0]))

    off_along, off_down = (
        BYTE * sum_both_ways(np.rint(np.ldexp(half, bits)) / (1 << bits) - half)
        for half, bits in ((along, ALONG_BITS), (down, DOWN_BITS))
    )
    kept = 0.5 / (1 << KEPT_BITS)
    n_operations = 2 * (len(along) + len(down))
    off = (off_along + kept) * sum_both_ways(down) + 2 * off_down + n_operations * 2.0**-15
    return ceil(off * (1 << NEAR_BITS)) + 2
