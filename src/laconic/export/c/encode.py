"""name_encode: from a raw row to packed bits, as the fitted preprocessing and the turns of a client's images say.

Two layouts. Flat: bit k of the example is bit k % 32 of word k / 32. Patches: a row of a layer of the image is
NAME_STEP words, layers of an image row one after the other, so that a row further down is always as many words away.
"""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import NDArray

from laconic import tsetlin as tm
from laconic.export.c.adaptive import write_adaptive
from laconic.export.c.tables import define, fit_integer, write_table
from laconic.export.c.values import Values, list_thresholds
from laconic.models.portable import About
from laconic.models.preprocessing import Adaptive, PlaceQuantiles, Preprocessing, Quantiles, Thermometer, Threshold
from laconic.models.preprocessing import Unchanged as Bits

WORD = 32
HEAD = "static inline void name_encode(const name_value *row, uint32_t *bits)\n"
# where in the raw image is place (i, j) of the turned one, by quarters to the left
RAW_OF_TURNED = (
    ("i", "j"),
    ("j", "NAME_RAW_WIDTH - 1 - i"),
    ("NAME_RAW_HEIGHT - 1 - i", "NAME_RAW_WIDTH - 1 - j"),
    ("NAME_RAW_HEIGHT - 1 - j", "i"),
)
COLUMNS_FLAT = """{
    uint32_t word = 0;
    int k;
    for (k = 0; k < NAME_BITS; k++) {
        word |= (uint32_t)(row[name_columns[k]] > name_thresholds[k]) << (k & 31);
        if ((k & 31) == 31 || k + 1 == NAME_BITS) {
            bits[k >> 5] = word;
            word = 0;
        }
    }
}
"""

PIXELS_FLAT = """{
    uint32_t word = 0;
    int i, j, channel, level, k = 0;
    for (i = 0; i < NAME_HEIGHT; i++)
        for (j = 0; j < NAME_WIDTH; j++)
            for (channel = 0; channel < NAME_CHANNELS; channel++)
                for (level = 0; level < NAME_LEVELS; level++, k++) {
                    const int place = ((Y) * NAME_RAW_WIDTH + X) * NAME_CHANNELS + channel;
                    word |= (uint32_t)(row[place] > name_thresholds[THRESHOLD]) << (k & 31);
                    if ((k & 31) == 31 || k + 1 == NAME_BITS) {
                        bits[k >> 5] = word;
                        word = 0;
                    }
                }
}
"""

PIXELS_IN_ROWS = """{
    int i, j, channel, level, first;
    for (i = 0; i < NAME_HEIGHT; i++)
        for (channel = 0; channel < NAME_CHANNELS; channel++)
            for (level = 0; level < NAME_LEVELS; level++)
                for (first = 0; first < NAME_WIDTH; first += 32) {
                    uint32_t word = 0;
                    for (j = first; j < NAME_WIDTH && j < first + 32; j++) {
                        const int place = ((Y) * NAME_RAW_WIDTH + X) * NAME_CHANNELS + channel;
                        word |= (uint32_t)(row[place] > name_thresholds[THRESHOLD]) << (j - first);
                    }
                    *bits++ = word;
                }
END}
"""


def count_words(shape: tm.Shape) -> int:
    """Of an encoded row; where an image row takes several, a load may run one word past the last."""
    if shape.is_flat:
        return -(-shape.n_features // WORD)
    step = count_step(shape)
    return shape.height * shape.layers * step + (step > 1)


def count_step(shape: tm.Shape) -> int:
    """Words of a row of one layer."""
    return -(-shape.width // WORD)


def find_nesting(preprocessing: Preprocessing, shape: tm.Shape) -> NDArray[np.int64]:
    """[layer] the field of a bit: of two in one field, the later holds only where the earlier does."""
    if isinstance(preprocessing, Quantiles):
        return np.repeat(np.arange(len(preprocessing.thresholds)), [len(each) for each in preprocessing.thresholds])
    return np.arange(shape.layers) // preprocessing.levels


def write_encoder(preprocessing: Preprocessing, about: About, shape: tm.Shape, values: Values) -> str:
    known = (Adaptive, Bits, PlaceQuantiles, Quantiles, Thermometer, Threshold)
    if not isinstance(preprocessing, known):
        raise ValueError(
            f"rows are read by {preprocessing.kind!r}, which C export does not know; keep it as a model file"
        )
    if isinstance(preprocessing, Quantiles):
        return write_columns(preprocessing, values)
    raw_height, raw_width, channels = (
        (1, 1, *about.input_shape) if len(about.input_shape) == 1 else (*about.input_shape, 1)[:3]
    )
    turns = about.turns % 4
    height, width = (raw_width, raw_height) if turns % 2 else (raw_height, raw_width)
    sizes = {"raw_height": raw_height, "raw_width": raw_width, "channels": channels, "height": height, "width": width}
    if height * width * channels * preprocessing.levels != shape.height * shape.width * shape.layers:
        raise ValueError(f"rows of {about.input_shape} do not make the {shape} that the model's clauses look at")
    if isinstance(preprocessing, Adaptive):
        return write_adaptive(preprocessing, sizes, turns, values, HEAD, is_flat=shape.is_flat)
    return write_pixels(preprocessing, sizes, turns, shape, values)


def write_columns(preprocessing: Quantiles, values: Values) -> str:
    columns = [k for k, column in enumerate(preprocessing.thresholds) for _ in column]
    return "".join(
        [
            define(bits=len(columns)),
            write_table(fit_integer(columns), "name_columns", columns, "The value that a bit is about."),
            write_thresholds(preprocessing, values, "What it has to exceed."),
            HEAD + COLUMNS_FLAT,
        ]
    )


def write_pixels(
    preprocessing: Preprocessing, sizes: dict[str, int], turns: int, shape: tm.Shape, values: Values
) -> str:
    is_of_place = isinstance(preprocessing, PlaceQuantiles)
    n_bits = prod(sizes[key] for key in ("height", "width", "channels")) * preprocessing.levels
    y, x = RAW_OF_TURNED[turns]
    body = (PIXELS_FLAT if shape.is_flat else PIXELS_IN_ROWS).replace("(Y)", f"({y})" if turns else y)
    body = body.replace(" X)", f" {x})").replace("THRESHOLD", "place * NAME_LEVELS + level" if is_of_place else "level")
    body = body.replace(
        "END", "    *bits = 0; /* loads of the last row may run into it */\n" if shape.width > WORD else ""
    )
    meaning = "What each place of the raw image has to exceed." if is_of_place else "What a value has to exceed."
    return "".join(
        [
            define(**sizes, levels=preprocessing.levels, bits=n_bits),
            write_thresholds(preprocessing, values, meaning),
            HEAD + body,
        ]
    )


def write_thresholds(preprocessing: Preprocessing, values: Values, meaning: str) -> str:
    thresholds = values.convert(list_thresholds(preprocessing, values))
    ctype = values.ctype if values.ctype in ("float", "double") else fit_integer(thresholds.reshape(-1))
    return write_table(ctype, "name_thresholds", thresholds.reshape(-1), meaning)
