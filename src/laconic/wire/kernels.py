"""The coders' inner loops, @njit only: no checks. One loop both writes and reads, so the halves cannot drift."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
compiled: Decorator = njit(nogil=True, cache=True)
# For what runs once per bit: handing over the arrays would take a third of the time.
inlined: Decorator = njit(nogil=True, cache=True, inline="always")

# All arithmetic is on integers: a float rounded otherwise at the far end would derail an adaptive reader.
REACH = 3072  # log-odds are fixed point, 1/256 nat, within +-12 nats
SQUASH = np.rint(65536 / (1 + np.exp(-np.arange(-REACH, REACH) / 256))).clip(1, 65535).astype(np.uint16)
STRETCH = (np.searchsorted(SQUASH, np.arange(65536), side="right").clip(1) - 1 - REACH).astype(np.int16)
PATIENCE = 1023  # bits after which a context only drifts, by a thousandth per bit
STEP = 2 * 65536 // (2 * np.arange(PATIENCE + 1) + 3)
LEVEL = np.array([((x + 1) ** 2).bit_length() - 1 for x in range(256)]).clip(max=15)  # of a rate: two per octave

# One array, the model, holds all that a coder remembers: the coder's own state, mixing weights, then the contexts.
LOW, HIGH, VALUE, AT, READS, WEIGHTS = range(6)
PACE = 4  # after four weights: the shift that sets how fast they learn
QUARTER = 65536 // 4  # first weight of each of four opinions
COUNT_BITS = 10  # a context is its chance of a one in 22 bits, above a count of the bits it has seen
EVEN = 1 << 31  # chance one half, nothing seen

NEW, ON_LINE, AGAIN = range(3)  # kinds of singles
NEAR = 1 << 10  # of a line: as far as the rounding of what lies on it may take it
MAX_SINGLE = 0x7F7FFFFF


@compiled
def open_model(n_weights: Any, n_contexts: Any, pace: Any, buffer: Any, reads: Any) -> Any:
    """A fresh model with n_weights sets of weights, their pace, and contexts that have seen nothing."""
    model = np.full(WEIGHTS + 5 * n_weights + n_contexts, EVEN, np.int64)
    model[WEIGHTS : WEIGHTS + 5 * n_weights] = QUARTER
    model[WEIGHTS + PACE : WEIGHTS + 5 * n_weights : 5] = pace
    model[LOW], model[HIGH], model[VALUE], model[AT], model[READS] = 0, 0xFFFFFFFF, 0, 0, reads
    if reads:
        for at in range(4):
            model[VALUE] = model[VALUE] << 8 | (buffer[at] if at < len(buffer) else 0)
        model[AT] = 4
    return model


@compiled
def close_model(model: Any, buffer: Any) -> Any:
    """Bytes written: as few as tell the last interval, trailing zeros left to the reader. Reading: bytes looked at."""
    if model[READS]:
        return model[AT]
    for n_bytes in range(5):
        value = model[HIGH] >> (32 - 8 * n_bytes) << (32 - 8 * n_bytes)
        if value >= model[LOW]:
            break
    for k in range(n_bytes):
        if model[AT] < len(buffer):
            buffer[model[AT]] = value >> (24 - 8 * k) & 255
        model[AT] += 1
    end = model[AT]
    while 0 < end <= len(buffer) and buffer[end - 1] == 0:
        end -= 1
    return end


@inlined
def code_bit(bit: Any, chance: Any, model: Any, buffer: Any) -> Any:
    """The bit, written or read; chance of a one in 1/65536. Past the buffer zeros are read, nothing is written."""
    low, high = model[LOW], model[HIGH]
    split = low + ((high - low) * chance >> 16)
    if model[READS]:
        bit = 1 if model[VALUE] <= split else 0
    if bit:
        high = split
    else:
        low = split + 1
    while (low ^ high) < 1 << 24:
        at = model[AT]
        if model[READS]:
            model[VALUE] = (model[VALUE] & 0xFFFFFF) << 8 | (buffer[at] if at < len(buffer) else 0)
        elif at < len(buffer):
            buffer[at] = low >> 24
        model[AT] = at + 1
        low = (low & 0xFFFFFF) << 8
        high = (high & 0xFFFFFF) << 8 | 255
    model[LOW], model[HIGH] = low, high
    return bit


@inlined
def learn(slot: Any, bit: Any, model: Any) -> None:
    context = model[slot]
    seen = context & PATIENCE
    moved = ((bit << 22) - bit - (context >> COUNT_BITS)) * STEP[seen] >> 16
    model[slot] = context + (moved << COUNT_BITS) + (seen < PATIENCE)


@inlined
def code_alone(bit: Any, slot: Any, model: Any, buffer: Any) -> Any:
    """One bit by a single context's chance."""
    bit = code_bit(bit, min(max(model[slot] >> 16, 1), 65535), model, buffer)
    learn(slot, bit, model)
    return bit


@inlined
def code_mixed(bit: Any, slots: Any, model: Any, buffer: Any) -> Any:
    """One bit by the weighted log-odds of four contexts; slots: where the weights are, then the contexts."""
    w, a, b, c, d = slots
    hint_a, hint_b = np.int64(STRETCH[model[a] >> 16]), np.int64(STRETCH[model[b] >> 16])
    hint_c, hint_d = np.int64(STRETCH[model[c] >> 16]), np.int64(STRETCH[model[d] >> 16])
    odds = model[w] * hint_a + model[w + 1] * hint_b + model[w + 2] * hint_c + model[w + 3] * hint_d
    chance = np.int64(SQUASH[min(max(odds >> 16, -REACH), REACH - 1) + REACH])
    bit = code_bit(bit, chance, model, buffer)
    error, pace = (bit << 16) - chance, model[w + PACE]
    model[w] += hint_a * error >> pace
    model[w + 1] += hint_b * error >> pace
    model[w + 2] += hint_c * error >> pace
    model[w + 3] += hint_d * error >> pace
    learn(a, bit, model)
    learn(b, bit, model)
    learn(c, bit, model)
    learn(d, bit, model)
    return bit


@compiled
def code_bits(bits: Any, base: Any, priors: Any, lag: Any, buffer: Any, reads: Any) -> Any:
    """Bytes used. bits, base: uint8 [row + 1, column + 2], margins of zeros left, right and above.

    lag 0: on the base, which is looked at in no other case.
    """
    n_rows, n_columns = bits.shape[0] - 1, bits.shape[1] - 2
    half = max(n_columns // 2, 1)  # a literal and its negation are half a row apart
    at_a = WEIGHTS + 4 * 5
    at_b, at_c, at_d, at_calm = at_a + 64, at_a + 576, at_a + 1600, at_a + 2112
    model = open_model(4, 2368, 16 if lag else 15, buffer, reads)
    for slot in range(at_a, len(model)):
        model[slot] = priors[0 if slot >= at_calm else slot - at_a & 1] << COUNT_BITS | 4
    # Most of a sparse array is calm; there one context does, at a third of the time. Small arrays can afford the rest.
    may_hurry = n_rows * n_columns > 1 << 19
    near = priors[0] >> 6  # rate of flips among the last 16 bits or so; slow: 64, from this row on
    rates = np.full(n_columns + 1, near, np.uint16)  # the same down each column; of one row alone it is large
    for row in range(1, n_rows + 1):
        heavy = np.int64(0)
        if not lag:
            heavy = LEVEL[min(np.int64(base[row].sum()) * 512 // n_columns, 255)]
        slow = near
        west = west_flips = 0  # the bits just coded, newest lowest
        for column in range(1, n_columns + 1):
            north = north_flip = np.int64(bits[row - 1, column])
            known = other = other_flip = np.int64(0)
            if column > half:
                other = other_flip = np.int64(bits[row, column - half])
            if not lag:
                known = np.int64(base[row, column])
                north_flip ^= base[row - 1, column]
                if column > half:
                    other_flip ^= base[row, column - half]
            flip = np.int64(bits[row, column]) ^ known
            column_rate = np.int64(rates[column])
            rate = LEVEL[column_rate >> 8]
            if may_hurry and known | west & 255 | north | other == 0:
                flip = code_alone(flip, at_calm + (rate | LEVEL[slow >> 8] << 4), model, buffer)
            else:
                if lag:
                    beside = np.int64(west >> 3 & 1 | (west >> (lag - 1) & 1) << 1)
                    heavy = LEVEL[slow >> 8]
                else:
                    beside = np.int64(base[row, column - 1] | base[row, column + 1] << 1)
                above = north | bits[row - 1, column - 1] << 1 | bits[row - 1, column + 1] << 2
                slots = (
                    WEIGHTS + 5 * (known << 1 | west_flips & 1),
                    at_a + (known | (west_flips & 7) << 1 | north_flip << 4 | other_flip << 5),
                    at_b + (known | LEVEL[near >> 8] << 1 | LEVEL[slow >> 8] << 5),
                    at_c + (known | (west & 7) << 1 | above << 4 | other << 7 | beside << 8),
                    at_d + (known | rate << 1 | heavy << 5),
                )
                flip = code_mixed(flip, slots, model, buffer)
            bits[row, column] = flip ^ known
            west, west_flips = west << 1 | flip ^ known, west_flips << 1 | flip
            near += ((flip << 16) - near) >> 4
            slow += ((flip << 16) - slow) >> 6
            rates[column] = column_rate + (((flip << 16) - column_rate) >> 4)
        if not reads and model[AT] > len(buffer):
            return model[AT]  # no gain any more
    return close_model(model, buffer)


@compiled
def code_sized(bits: Any, sizes: Any, buffer: Any, reads: Any) -> Any:
    """Bytes used. bits, sizes: uint8 [bit]; a one's chance follows from the size and from how many came just before."""
    model = open_model(0, 256 * 16, 0, buffer, reads)
    near = 1 << 15
    for i in range(len(bits)):
        bit = code_alone(np.int64(bits[i]), WEIGHTS + np.int64(sizes[i]) * 16 + (near >> 12), model, buffer)
        bits[i] = bit
        near += ((bit << 16) - near) >> 5
    return close_model(model, buffer)


@inlined
def code_number(value: Any, depth: Any, modelled: Any, tables: Any, model: Any, buffer: Any) -> Any:
    """The number and its bit length: that by a mixed binary tree, leading bits by their own, the rest plain.

    tables: where weights, four contexts, leading bits and signs start. depth: of the tree. Leading bits are modelled
    until, with a one before them, they reach `modelled`.
    """
    weights, a, b, c, d, leads, signs = tables
    size, length, node = abs(value), 0, 1
    if not model[READS]:
        while length < 64 and np.uint64(size) >> np.uint64(length):
            length += 1
    for level in range(depth - 1, -1, -1):
        slots = (weights + 5 * node, a + node, b + node, c + node, d + node)
        node = node << 1 | code_mixed(length >> level & 1, slots, model, buffer)
    length = node - (1 << depth)
    n_bits = length if length <= 64 else 0  # more is damage, which the caller refuses
    lead, read = 1, np.int64(n_bits > 0)
    for level in range(n_bits - 2, -1, -1):
        bit = size >> level & 1
        if lead < modelled:
            bit = code_alone(bit, leads + n_bits * 256 + lead, model, buffer)
            lead = lead << 1 | bit
        else:
            bit = code_bit(bit, 32768, model, buffer)
        read = read << 1 | bit
    if n_bits and code_alone(np.int64(value < 0), signs + n_bits * 2, model, buffer):
        read = -read
    return read, length


@compiled
def code_integers(values: Any, hints: Any, n_columns: Any, widest: Any, buffer: Any, reads: Any) -> Any:
    """Bytes used, -1 if impossible. hints, of the base's lengths: uint8, as are those of the numbers above."""
    at_a = WEIGHTS + 128 * 5
    at_b, at_c, at_d = at_a + 128, at_a + 128 * 66, at_a + 128 * 131
    at_lead = at_d + 128 * 65
    at_sign = at_lead + 256 * 65
    model = open_model(128, at_sign + 2 * 65 - at_a, 14, buffer, reads)
    for slot in range(at_lead, at_sign):
        model[slot] += 4  # leading bits are near even: trust that for a while
    lengths = np.zeros(n_columns, np.uint8)  # of the values just above
    depth = 0
    while widest >> depth:
        depth += 1
    before = sign = np.int64(0)
    for i in range(len(values)):
        column = i % n_columns
        around = (at_b + before * 128, at_c + np.int64(lengths[column]) * 128, at_d + np.int64(hints[i]) * 128)
        tables = (WEIGHTS, at_a, *around, at_lead, at_sign + sign)
        values[i], length = code_number(values[i], depth, 256, tables, model, buffer)
        if length > widest:
            return -1
        if length:
            sign = np.int64(values[i] < 0)
        before = lengths[column] = length
        if not reads and model[AT] > len(buffer):
            return model[AT]
    return close_model(model, buffer)


@inlined
def find_size(ordered: Any) -> Any:
    """Exponent and mantissa of a single that is an integer in the order of values."""
    return ordered ^ ordered >> 63


@inlined
def align(size: Any, shift: Any) -> Any:
    mantissa = size & 0x7FFFFF | np.int64(size > 0x7FFFFF) << 23
    return mantissa << shift if shift >= 0 else mantissa >> min(-shift, 63)


@compiled
def go_on(one: Any, two: Any) -> Any:
    """The single that follows `two` and then `one` in a straight line; all three as integers in the order of values.

    2 · one - two, both aligned to the larger; what lies far below it is left out.
    """
    power_one, power_two = max(find_size(one) >> 23, 1) + 1, max(find_size(two) >> 23, 1)
    lowest = max(power_one, power_two) - 36
    part_one, part_two = align(find_size(one), power_one - lowest), align(find_size(two), power_two - lowest)
    total = (part_one if one >= 0 else -part_one) - (part_two if two >= 0 else -part_two)
    size, shift = abs(total), -24
    while size >> (shift + 24):
        shift += 1
    shift = max(shift, 1 - lowest)  # below the least power of two there are only leading zeros
    size = (size + (1 << shift >> 1)) >> shift if shift > 0 else size << -shift
    size = min(((lowest + shift - 1) << 23) + size, MAX_SINGLE)  # rounded up to a power of two, it carries
    return size if total >= 0 else ~size


@inlined
def find_kind(value: Any, one: Any, guess: Any) -> Any:
    kind = NEW
    if value == one:
        kind = AGAIN
    elif abs(value - guess) < NEAR:
        kind = ON_LINE
    return kind


@compiled
def code_singles(values: Any, base: Any, on_base: Any, buffer: Any, reads: Any) -> Any:
    """Bytes used. values, base: singles as integers in the order of their values; base: zeros where there is none.

    A number is the one before again, or near the line through the two before, or told by its step from the base; which
    of these, is foreseen by what the last ones were and what the base's is.
    """
    at_kind = WEIGHTS + 5 * (6 + 16 + 64)
    at_line = at_kind + 2 * 131
    at_new = at_line + 16 * (1 + 16 + 16 + 3)
    at_lead = at_new + 64 * (1 + 64 + 64 + 256)
    at_sign = at_lead + 256 * 64
    model = open_model(6 + 16 + 64, at_sign + 2 * (64 + 16) - at_kind, 14, buffer, reads)
    for slot in range(at_lead, at_sign):
        model[slot] += 4  # as for integers
    one = two = held_one = held_two = np.int64(0)  # the numbers before, and the base's
    kinds = near = before = slow = sign = np.int64(0)
    for i in range(len(values)):
        value, held, guess, kind, expected = values[i], base[i], go_on(one, two), NEW, NEW
        if on_base:
            expected = find_kind(held, held_one, go_on(held_one, held_two))
        if not reads:
            kind = find_kind(value, one, guess)
        for which in range(2):
            at = at_kind + 131 * which
            slots = (
                WEIGHTS + 5 * (3 * which + expected),
                at + (kinds & 63),
                at + 64 + (kinds & 3 | expected << 2),
                at + 80 + (kinds & 15 | expected << 4),
                at + 128 + expected,
            )
            if not code_mixed(np.int64(kind > which), slots, model, buffer):
                kind = which
                break
            kind = max(kind, which + 1)
        kinds = kinds << 2 & 63 | kind
        if kind == AGAIN:
            value = one
        elif kind == ON_LINE:
            lost = (find_size(one) >> 23) - (find_size(guess) >> 23)  # digits, where the two nearly cancel
            line = (
                WEIGHTS + 5 * 6,
                at_line,
                at_line + 16 * (1 + near),
                at_line + 16 * (17 + min(max(lost, 0), 15)),
                at_line + 16 * (33 + expected),
                at_lead,
                at_sign + 2 * 64,
            )
            step, near = code_number(value - guess, 4, 0, line, model, buffer)
            value = guess + step
        else:
            tables = (
                WEIGHTS + 5 * 22,
                at_new,
                at_new + 64 * (1 + before),
                at_new + 64 * (65 + (slow >> 4)),
                at_new + 64 * (129 + (find_size(held) >> 23)),
                at_lead,
                at_sign + sign,
            )
            step, before = code_number(value - held, 6, 4 if on_base else 256, tables, model, buffer)
            value = held + step
            slow += before * 8 - (slow >> 1)
            sign = np.int64(step < 0)
        values[i] = value
        one, two, held_one, held_two = value, one, held, held_one
        if not reads and model[AT] > len(buffer):
            return model[AT]
    return close_model(model, buffer)


@compiled
def write_rice(values: Any, shift: Any, buffer: Any) -> None:
    """Each value as its high part in ones, a zero, and `shift` low bits; buffer comes zeroed and large enough."""
    at = 0
    for value in values:
        for _ in range(value >> shift):
            buffer[at >> 3] |= 128 >> (at & 7)
            at += 1
        at += 1
        for level in range(shift - 1, -1, -1):
            if value >> level & 1:
                buffer[at >> 3] |= 128 >> (at & 7)
            at += 1


@compiled
def read_rice(values: Any, shift: Any, buffer: Any, at: Any) -> Any:
    """Bits used, those before `at` among them, or -1 where the buffer ends too soon or a value would not fit."""
    end = 8 * len(buffer)
    for i in range(len(values)):
        high = 0
        while at < end and buffer[at >> 3] & 128 >> (at & 7):
            high += 1
            at += 1
        at += 1
        if at + shift > end or high >> (62 - shift):
            return -1
        low = np.int64(0)
        for _ in range(shift):
            low = low << 1 | np.int64(buffer[at >> 3] >> (7 - (at & 7)) & 1)
            at += 1
        values[i] = high << shift | low
    return at


# ---------------------------------------------------------------- counting
@compiled
def count_bytes(numbers: Any, width: Any) -> Any:
    """[byte of a number, value] how often; two tables, since equal bytes in one after the other would wait."""
    counts = np.zeros((2, width, 256), np.int64)
    for i, number in enumerate(numbers):
        for k in range(width):
            counts[i & 1, k, number >> (8 * k) & 255] += 1
    return counts[0] + counts[1]
