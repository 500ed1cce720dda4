"""Two public photographs, the same bytes wherever this package is: from them all filters are made.

They are the two that scikit-learn ships, three by three pixels averaged; a JPEG may be decoded otherwise by another
library, these are plain numbers. `python benchmarks/photographs.py` made the file. Both are by Daniel Büchele and
vultilion on Flickr, licensed CC BY 2.0 (https://creativecommons.org/licenses/by/2.0/), and were made smaller.
"""

from functools import cache
from importlib.resources import as_file, files

import numpy as np
from numpy.typing import NDArray

LARGEST_SHRINKING = 4  # that leaves a photograph larger than the usual image of 32 pixels


@cache
def load_photographs() -> NDArray[np.uint8]:
    """[photograph, row, column, colour]"""
    with as_file(files("laconic.banks").joinpath("photographs.npz")) as path, np.load(path, allow_pickle=False) as file:
        photographs: NDArray[np.uint8] = file["photographs"]
    return photographs


def draw(stream: np.random.PCG64, n: int, below: int) -> NDArray[np.int64]:
    """[n] whole numbers from 0; straight from the bits, whose sequence NumPy promises to keep."""
    return (stream.random_raw(n) >> np.uint64(11)).astype(np.int64) % below


def cut_pieces(stream: np.random.PCG64, n: int, height: int, width: int, n_layers: int) -> NDArray[np.uint8]:
    """[n, row, column, layer] at several scales, some mirrored; what would leave a photograph comes in again."""
    photographs = load_photographs()
    which, shrinking, mirrored = (
        draw(stream, n, len(photographs)),
        draw(stream, n, LARGEST_SHRINKING),
        draw(stream, n, 2),
    )
    tops, lefts = draw(stream, n, photographs.shape[1]), draw(stream, n, photographs.shape[2])
    pieces = np.empty((n, height, width, n_layers), np.uint8)
    for k in range(n):
        f = 1 + int(shrinking[k])
        rows = (tops[k] + np.arange(height * f)) % photographs.shape[1]
        columns = (lefts[k] + np.arange(width * f)) % photographs.shape[2]
        piece = photographs[which[k]][np.ix_(rows, columns)].reshape(height, f, width, f, 3)
        mean = piece.astype(np.int64).sum(axis=(1, 3)) // f**2
        mean = mean if n_layers == 3 else (mean @ (77, 150, 29) // 256)[..., None]  # how bright colours seem
        pieces[k] = mean[:, ::-1] if mirrored[k] else mean
    return pieces
