"""The three kinds of feedback to a clause; tests/naive_tm.py says the same slowly."""

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


@inline
def note_change(states, includes, at, pixels, moved):
    """Include bits of one word from its new states; adds what changed to (position literals, pixel literals)."""
    now = top_bits(states)
    change = now ^ includes[at]
    includes[at] = now
    return moved[0] | (change & ~pixels), moved[1] | (change & pixels)


@inline
def erase_word(bank, includes, pixels, clause, w, forgotten, moved):
    at = (clause * bank.n_words + w) * 64
    states = subtract_where(load_bytes(bank.states, at), forgotten)
    store_bytes(bank.states, at, states)
    return note_change(states, includes, clause * bank.stride + w, pixels[w], moved)


@inline
def erase(bank, includes, pixels, clause, limit, low, high):
    """Type I, clause false: each automaton steps towards exclusion with probability 1/s."""
    moved = word(0), word(0)
    for w in range(0, bank.n_words, 2):
        noise, more, low, high = next_random(low, high)
        moved = erase_word(bank, includes, pixels, clause, w, bytes_at_most(noise, limit), moved)
        if w + 1 < bank.n_words:
            moved = erase_word(bank, includes, pixels, clause, w + 1, bytes_at_most(more, limit), moved)
    return moved, low, high


@inline
def recognise_word(bank, includes, pixels, clause, w, forgotten, literals, plain, moved):
    true = mask_of(literals)
    at = (clause * bank.n_words + w) * 64
    states = add_where(load_bytes(bank.states, at), mask_and_not(true, mask_and(forgotten, plain)))
    states = subtract_where(states, mask_and_not(forgotten, true))
    store_bytes(bank.states, at, states)
    return note_change(states, includes, clause * bank.stride + w, pixels[w], moved)


@inline
def recognise(bank, includes, pixels, clause, limit, low, high, literals, plain):
    """Type I, clause true: true literals step towards inclusion (with 1 - 1/s if plain), false ones away with 1/s."""
    moved, last, at_all = (word(0), word(0)), uint8(limit - 1), every_byte(limit > 0)
    for w in range(0, bank.n_words, 2):
        noise, more, low, high = next_random(low, high)
        forgotten = mask_and(bytes_at_most(noise, last), at_all)
        moved = recognise_word(bank, includes, pixels, clause, w, forgotten, literals[w], plain, moved)
        if w + 1 < bank.n_words:
            forgotten = mask_and(bytes_at_most(more, last), at_all)
            moved = recognise_word(bank, includes, pixels, clause, w + 1, forgotten, literals[w + 1], plain, moved)
    return moved, low, high


@inline
def reject(bank, includes, pixels, valid, clause, literals):
    """Type II, clause true: excluded false literals step towards inclusion."""
    moved = word(0), word(0)
    for w in range(bank.n_words):
        excluded = ~includes[clause * bank.stride + w] & valid[w]
        at = (clause * bank.n_words + w) * 64
        states = add_where(load_bytes(bank.states, at), mask_of(excluded & ~literals[w]))
        store_bytes(bank.states, at, states)
        moved = note_change(states, includes, clause * bank.stride + w, pixels[w], moved)
    return moved
