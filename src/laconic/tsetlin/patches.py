"""A patch drawn from those that a clause matched, and its literals: what feedback to a clause that fired looks at."""

import numpy as np
from numba import int64
from numba import uint64 as word

from laconic.tsetlin.compiling import inline, kernel
from laconic.tsetlin.vectors import follow, keep_apart, load_word, popcount
from laconic.tsetlin.windows import HALF, LOW, ONE, SINGLE

COUNTER_STEP = np.uint64(0x9E3779B97F4A7C15)


@inline
def scramble(counter):
    """splitmix64: a random word from a counter."""
    z = (counter ^ (counter >> word(30))) * word(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> word(27))) * word(0x94D049BB133111EB)
    return z ^ (z >> word(31))


@inline
def nth_set_bit(bits, n):
    """Position of the set bit with n set bits below it: halve the range six times, without branches."""
    place = word(0)
    for half in (32, 16, 8, 4, 2, 1):
        below = popcount(bits & ((ONE << word(half)) - ONE))
        skip = word(half) if n >= below else word(0)
        n -= below if n >= below else word(0)
        bits >>= skip
        place += skip
    return place


@inline
def pick_patch(matches, at, width, lane, layout, cumulative, chance):
    """A patch drawn uniformly from those a clause matched, by the upper half of a random word: row, column."""
    n_lanes = 4 if width == HALF else 8 * (width - 1)
    total = word(0)
    for j in range(n_lanes):
        cumulative[j] = total
        total += popcount(matches[at + j])
    rank = ((chance >> word(32)) * total) >> word(32)
    j = -1
    for i in range(n_lanes):  # counting instead of searching: nothing to mispredict
        j += 1 if cumulative[i] <= rank else 0
    bit = int64(nth_set_bit(matches[at + j], rank - cumulative[j]))
    start = min(lane + (j & ~7), layout.n_lanes - 8) if width > SINGLE else lane
    lane = start + (j & 7)
    if layout.lanes_per_row == 1:
        in_lane = bit >> layout.log_row_bits
        return lane * layout.rows_per_lane + in_lane, bit - (in_lane << layout.log_row_bits)
    return lane // layout.lanes_per_row, lane % layout.lanes_per_row * 64 + bit


@inline
def read_patch(patches, image, row, column, tables, layout, literals):
    """Literal words of one patch, gathered from the pixel-major copy in pieces of up to 32 bits."""
    w, filled, gathered = 0, 0, word(0)
    run = layout.patch_width * layout.layers
    for line in range(layout.patch_height):
        base = image + (row + line) * layout.patch_row_bytes
        bit, left = column * layout.layers, run
        while left > 0:
            piece = min(left, 32)
            bits = load_word(patches, base + (bit >> 3)) >> word(bit & 7)
            gathered |= (bits & ((ONE << word(piece)) - ONE)) << word(filled)
            filled += piece
            bit += piece
            left -= piece
            if filled >= 32:
                literals[w] = (gathered & LOW) | ((gathered & LOW ^ LOW) << word(32))
                w += 1
                filled -= 32
                gathered >>= word(32)
    if filled:
        literals[w] = (gathered | ((gathered ^ LOW) << word(32))) & tables.pixels_only[w]
    for w in range(layout.position_word, layout.n_words):
        here = tables.row_literals[row * layout.n_words + w] | tables.column_literals[column * layout.n_words + w]
        literals[w] = here | literals[w] if w < layout.n_pixel_words else here


@kernel
def draw_patch(sample, clause, chance, scene):
    """Literals of a patch drawn from those a clause matched."""
    keep_apart()
    samples, _, layout, tables, space, windows, _ = follow(scene)
    width, lane, at = int64(windows.width[clause]), int64(windows.first_lane[clause]), space.match_at[clause]
    row, column = pick_patch(space.matches, at, width, lane, layout, space.cumulative, chance)
    read_patch(samples.patches, sample * layout.patch_image_bytes, row, column, tables, layout, space.literals)
