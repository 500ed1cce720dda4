"""Trains and asks machines of many shapes with every aligned array between two pages that must not be touched.

Run by test_bounds.py as a program of its own, since a kernel that reads or writes past an array ends the process. What
is not initialised holds random bytes.

    python guarded.py start|end        # at which end of an array its page begins or ends
"""

import copy
import ctypes
import mmap
import sys
from math import prod
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))
import naive_tm
from laconic.tsetlin import (
    Fuzzy,
    Shape,
    build,
    build_coalesced,
    class_sums,
    clause_counts,
    clause_votes,
    failing,
    fit,
    fuzzy_inference,
    fuzzy_kernels,
    geometry,
    inference,
    kernels,
    machine,
    packing,
    windows,
)

PAGE = mmap.PAGESIZE
at_start = sys.argv[1] == "start"
junk = np.random.default_rng(0)
protect = ctypes.CDLL(None).mprotect


def aligned(shape, dtype, *, make=np.zeros):
    n_bytes = prod(shape if isinstance(shape, tuple) else (shape,)) * np.dtype(dtype).itemsize
    n_pages = max(1, -(-n_bytes // PAGE))
    pages = np.frombuffer(mmap.mmap(-1, (n_pages + 2) * PAGE), np.uint8)
    for page in (0, n_pages + 1):
        assert protect(ctypes.c_void_p(pages.ctypes.data + page * PAGE), ctypes.c_size_t(PAGE), 0) == 0
    first = PAGE if at_start else (n_pages + 1) * PAGE - n_bytes
    raw = pages[first : first + n_bytes]
    if make is np.empty:
        raw[...] = junk.integers(0, 256, n_bytes, dtype=np.uint8)
    return raw.view(dtype).reshape(shape)


for module in (failing, fuzzy_inference, fuzzy_kernels, geometry, inference, kernels, machine, packing, windows):
    module.aligned = aligned

SHAPES = [
    *(Shape.flat(n) for n in (1, 32, 33, 200)),
    *(Shape.image(5, width, patch=(2, 3)) for width in (3, 8, 9, 16, 17, 32, 33, 64, 65, 129)),
    *(Shape.image(height, 9, patch=(1, 4)) for height in (1, 2, 16, 17, 40)),
    Shape.image(40, 33, patch=(3, 3)),
    Shape.image(30, 12, patch=(30, 1)),
    Shape.image(9, 70, patch=(3, 66)),
    Shape.image(6, 9, 33, patch=(2, 2)),
    Shape.image(6, 20, 24, patch=(3, 3), levels=8),
    Shape.image(4, 100, 2, patch=(2, 2), levels=2),
]


def try_shape(shape, seed, *, coalesced, fuzzy):
    rng, settings = np.random.default_rng(seed), {"threshold": 20, "fuzzy": fuzzy}
    start = build_coalesced(shape, 3, 33, rng, **settings) if coalesced else build(shape, 3, 33, **settings)
    # some literals at random, so that windows of all kinds occur from the first event on: narrow, wide, empty ones
    start.states[:, :, shape.literal_slots] = rng.choice(
        [125, 126, 128], (*start.states.shape[:2], shape.n_literals), p=[0.5, 0.4, 0.1]
    )
    x = aligned((4, shape.height, shape.width, shape.layers), np.bool_)
    nested = np.sort(rng.random((*x.shape[:3], shape.layers // shape.levels, shape.levels)) < 0.5)
    x[...] = nested[..., ::-1].reshape(x.shape)
    y, twin = rng.integers(0, 3, len(x)), copy.deepcopy(start)
    fit(start, x, y, np.random.default_rng(seed), epochs=4)
    naive_tm.fit(twin, x, y, np.random.default_rng(seed), epochs=4)
    assert np.array_equal(start.states, twin.states), shape
    assert np.array_equal(class_sums(start, x), naive_tm.class_sums(start, x)), shape
    assert np.array_equal(clause_votes(start, x), naive_tm.clause_votes(start, x)), shape
    assert np.array_equal(clause_counts(start, x), naive_tm.clause_counts(start, x)), shape


for seed, shape in enumerate(SHAPES):
    for coalesced in (False, True):
        for fuzzy in (None, Fuzzy(failures=3, literals=8)):
            print(shape, fuzzy, flush=True)
            try_shape(shape, seed, coalesced=coalesced, fuzzy=fuzzy)
