"""How many literals of a clause fail, on all patches of an image at once, or on 512 flat samples.

Counts stand upright: bit p of all counts makes one vector (a plane), so that adding a literal's bitmap to 512 counts is
a few operations on bits. Eight bitmaps at a time go through a tree of full adders; planes up to 32 stay in registers.
"""

from numba import int64
from numba import uint64 as word

from laconic.tsetlin.compiling import inline
from laconic.tsetlin.vectors import (
    and8,
    and_not8,
    any8,
    leading_zeros,
    load8,
    or8,
    popcount,
    splat8,
    store8,
    xor8,
)
from laconic.tsetlin.windows import list_word

GROUP = 8  # literals added at once; lists are whole groups
IN_REGISTERS = 6  # planes
MOST_PLANES = 24
LITERALS_AT_ONCE = 64  # then a look whether it is worth while to go on: young clauses include half of all literals


@inline
def count_planes(number):
    """That hold counts up to this one."""
    return max(IN_REGISTERS, 64 - int64(leading_zeros(word(number))))


@inline
def list_failing(lists, start, includes, n_words, failing):
    """Writes where a clause's literals fail, by their include bits, in whole groups; where the list ends."""
    entry = start
    for w in range(n_words):
        if includes[w]:
            entry = list_word(lists, entry, failing.offsets, w * 64, includes[w])
    end = start + (entry - start + GROUP - 1) // GROUP * GROUP
    for i in range(GROUP - 1):
        lists[entry + i] = failing.nowhere
    return end


@inline
def full_add(a, b, c):
    """Sum and carry."""
    half = xor8(a, b)
    return xor8(half, c), or8(and8(a, b), and8(half, c))


@inline
def find_fewest(planes, n_planes, patches):
    """The smallest count on any of these patches, and the patches that have it; there must be some."""
    fewest = int64(0)
    for k in range(n_planes):
        without = and_not8(patches, load8(planes, 8 * (n_planes - 1 - k)))
        some = any8(without)
        # those without this bit, if there are any; no branch, for nobody could guess
        patches = xor8(patches, and8(splat8(word(some)), xor8(patches, without)))
        fewest += fewest + 1 + some
    return fewest, patches


@inline
def count_failures(bitmaps, literals, planes, n_planes, patches, enough):
    """planes[8 * p:] = bit p of how many literals of a list fail; literals are (lists, first entry, end).

    Counting ends before the list does once so many fail on all of these patches.
    """
    lists, entry, end = literals
    nothing = splat8(word(0))
    for p in range(IN_REGISTERS, n_planes):
        store8(planes, 8 * p, nothing)
    ones, twos, fours, eights, sixteens, thirty_twos = nothing, nothing, nothing, nothing, nothing, nothing
    while True:
        stop = min(entry + LITERALS_AT_ONCE, end)
        while entry < stop:
            ones, two = full_add(ones, load8(bitmaps, int64(lists[entry])), load8(bitmaps, int64(lists[entry + 1])))
            ones, more = full_add(
                ones, load8(bitmaps, int64(lists[entry + 2])), load8(bitmaps, int64(lists[entry + 3]))
            )
            twos, four = full_add(twos, two, more)
            ones, two = full_add(ones, load8(bitmaps, int64(lists[entry + 4])), load8(bitmaps, int64(lists[entry + 5])))
            ones, more = full_add(
                ones, load8(bitmaps, int64(lists[entry + 6])), load8(bitmaps, int64(lists[entry + 7]))
            )
            twos, more = full_add(twos, two, more)
            fours, carry = full_add(fours, four, more)
            eights, carry = xor8(eights, carry), and8(eights, carry)
            sixteens, carry = xor8(sixteens, carry), and8(sixteens, carry)
            thirty_twos, carry = xor8(thirty_twos, carry), and8(thirty_twos, carry)
            for p in range(IN_REGISTERS, n_planes):
                plane = load8(planes, 8 * p)
                store8(planes, 8 * p, xor8(plane, carry))
                carry = and8(plane, carry)
            entry += GROUP
        store8(planes, 0, ones)
        store8(planes, 8, twos)
        store8(planes, 16, fours)
        store8(planes, 24, eights)
        store8(planes, 32, sixteens)
        store8(planes, 40, thirty_twos)
        if entry >= end or find_fewest(planes, n_planes, patches)[0] >= enough:
            break


@inline
def turn_to_votes(planes, n_planes, top):
    """Counts become votes, max(0, top - count); whether a vote is above 0, as a vector."""
    borrow = splat8(word(0))
    for p in range(n_planes):
        bit, count = splat8(word(0) - ((word(top) >> word(p)) & word(1))), load8(planes, 8 * p)
        store8(planes, 8 * p, xor8(xor8(bit, count), borrow))
        borrow = or8(and_not8(or8(count, borrow), bit), and8(count, borrow))
    votes = splat8(word(0))
    for p in range(n_planes):
        plane = and_not8(load8(planes, 8 * p), borrow)
        store8(planes, 8 * p, plane)
        votes = or8(votes, plane)
    return votes


@inline
def count_included(includes, first, n_words):
    included = word(0)
    for w in range(n_words):
        included += popcount(includes[first + w])
    return int64(included)
