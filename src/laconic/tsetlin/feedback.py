"""The three kinds of feedback to a clause; tests/naive_tm.py says the same slowly."""

from typing import Any, NamedTuple

from numba import uint8
from numba import uint64 as word

from laconic.tsetlin.compiling import inline
from laconic.tsetlin.vectors import (
    add_where,
    bytes_at_most,
    every_byte,
    load_bytes,
    mask_and,
    mask_and_not,
    mask_of,
    next_random,
    store_bytes,
    subtract_where,
    top_bits,
)


class Pupils(NamedTuple):
    """The clauses of a bank, and which of their literals are what."""

    states: Any  # [clause, word of 64 automata]
    includes: Any  # [clause, word]
    n_words: int
    stride: int  # of includes
    pixels: Any  # [word] slots of pixel literals
    valid: Any  # [word] slots of literals


@inline
def set_states(pupils, clause, w, states, moved):
    """New states of one word, and its include bits; adds what changed to (position literals, pixel literals)."""
    store_bytes(pupils.states, (clause * pupils.n_words + w) * 64, states)
    at, pixels, now = clause * pupils.stride + w, pupils.pixels[w], top_bits(states)
    change = now ^ pupils.includes[at]
    pupils.includes[at] = now
    return moved[0] | (change & ~pixels), moved[1] | (change & pixels)


@inline
def states_of(pupils, clause, w):
    return load_bytes(pupils.states, (clause * pupils.n_words + w) * 64)


@inline
def erase(pupils, clause, limit, dice):
    """Type I, clause false: each automaton steps towards exclusion with probability 1/s."""
    moved, (low, high) = (word(0), word(0)), dice
    for w in range(0, pupils.n_words, 2):
        noise, more, low, high = next_random(low, high)
        states = subtract_where(states_of(pupils, clause, w), bytes_at_most(noise, limit))
        moved = set_states(pupils, clause, w, states, moved)
        if w + 1 < pupils.n_words:
            states = subtract_where(states_of(pupils, clause, w + 1), bytes_at_most(more, limit))
            moved = set_states(pupils, clause, w + 1, states, moved)
    return moved, (low, high)


@inline
def recognise_word(pupils, clause, w, literals, forgotten, plain, moved):
    true = mask_of(literals[w])
    states = add_where(states_of(pupils, clause, w), mask_and_not(true, mask_and(forgotten, plain)))
    return set_states(pupils, clause, w, subtract_where(states, mask_and_not(forgotten, true)), moved)


@inline
def recognise(pupils, clause, limit, dice, literals, plain):
    """Type I, clause true: true literals step towards inclusion (with 1 - 1/s if plain), false ones away with 1/s."""
    moved, (low, high) = (word(0), word(0)), dice
    last, at_all = uint8(limit - 1), every_byte(limit > 0)
    for w in range(0, pupils.n_words, 2):
        noise, more, low, high = next_random(low, high)
        forgotten = mask_and(bytes_at_most(noise, last), at_all)
        moved = recognise_word(pupils, clause, w, literals, forgotten, plain, moved)
        if w + 1 < pupils.n_words:
            forgotten = mask_and(bytes_at_most(more, last), at_all)
            moved = recognise_word(pupils, clause, w + 1, literals, forgotten, plain, moved)
    return moved, (low, high)


@inline
def reject(pupils, clause, literals):
    """Type II, clause true: excluded false literals step towards inclusion."""
    moved = word(0), word(0)
    for w in range(pupils.n_words):
        excluded = ~pupils.includes[clause * pupils.stride + w] & pupils.valid[w]
        states = add_where(states_of(pupils, clause, w), mask_of(excluded & ~literals[w]))
        moved = set_states(pupils, clause, w, states, moved)
    return moved
