"""Weights as products of thin matrices: singular values are kept until they hold a given share of the energy."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from laconic.networks.vector import Layout, Part, Piece, Vector


class Thin(NamedTuple):
    ranks: NDArray[np.integer[Any]]  # [piece of the part] 0: the piece itself follows
    values: NDArray[np.floating[Any]]  # the pieces' factors, one after the other


def thin_out(vector: Vector, layout: Layout, part: Part, energy: float) -> Thin:
    """vector: [entry of the part]. Pieces that would not get smaller stay whole."""
    ranks, values = [], list[Vector]()
    for segment, matrices in zip(*cut(vector, layout, part), strict=True):
        if matrices is None or not np.isfinite(matrices).all():  # no singular values where training has run away
            ranks.append(0)
            values.append(segment)
            continue
        left, sizes, right = np.linalg.svd(matrices, full_matrices=False)  # [place, row, rank], [place, rank] ...
        held = np.cumsum((sizes.astype(np.float64) ** 2).sum(axis=0))
        rank = int(np.searchsorted(held, energy * held[-1])) + 1 if held[-1] > 0 else 1
        n_places, n_rows, n_columns = matrices.shape
        if n_places * rank * (n_rows + n_columns) >= segment.size:
            ranks.append(0)
            values.append(segment)
        else:
            ranks.append(rank)
            values += [(left[:, :, :rank] * sizes[:, None, :rank]).ravel(), right[:, :rank].ravel()]
    return Thin(np.array(ranks), np.concatenate(values).astype(np.float32))


def fill_out(thin: Thin, layout: Layout, part: Part) -> Vector:
    """[entry of the part]"""
    whole, start = list[Vector](), 0
    for (piece, _), rank in zip(layout.locate(part), thin.ranks.tolist(), strict=True):
        n_places, n_rows, n_columns = as_matrices(piece) if rank else (0, 0, 0)
        n_left, n_right = n_places * n_rows * rank, n_places * rank * n_columns
        size = n_left + n_right if rank else piece.stop - piece.start
        values = thin.values[start : start + size]
        start += size
        if rank:
            left = values[:n_left].reshape(n_places, n_rows, rank)
            product = left @ values[n_left:].reshape(n_places, rank, n_columns)
            values = np.moveaxis(product, 0, 1).ravel()  # [row, place, column], as the vector has it
        whole.append(values)
    return np.concatenate(whole).astype(np.float32)


def check_thin(thin: Thin, layout: Layout, part: Part) -> None:
    """ValueError unless ranks are such as pieces can have, and values as many as that takes."""
    pieces, due = [piece for piece, _ in layout.locate(part)], 0
    if thin.ranks.shape != (len(pieces),):
        raise ValueError(f"ranks has shape {thin.ranks.shape}, {(len(pieces),)} was expected")
    for piece, rank in zip(pieces, thin.ranks.tolist(), strict=True):
        n_places, n_rows, n_columns = as_matrices(piece) if len(piece.shape) > 1 else (0, 0, 0)
        if not 0 <= rank <= min(n_rows, n_columns):
            raise ValueError(f"{piece.name} has rank {rank}, 0 to {min(n_rows, n_columns)} was expected")
        due += n_places * rank * (n_rows + n_columns) if rank else piece.stop - piece.start
    if thin.values.shape != (due,):
        raise ValueError(f"values has shape {thin.values.shape}, {(due,)} was expected")


def as_matrices(piece: Piece) -> tuple[int, int, int]:
    """Places of a kernel, output and input channels; a layer that is no convolution has one place."""
    n_out, n_in, *sides = piece.shape
    return int(np.prod(sides, dtype=int)), n_out, n_in


def cut(vector: Vector, layout: Layout, part: Part) -> tuple[list[Vector], list[Vector | None]]:
    """The part's pieces, and each as matrices [place, row, column]; None where it is a plain vector."""
    segments, matrices = list[Vector](), list[Vector | None]()
    for piece, place in layout.locate(part):
        segment = vector[place]
        segments.append(segment)
        if len(piece.shape) < 2:
            matrices.append(None)
        else:
            n_places, n_rows, n_columns = as_matrices(piece)
            matrices.append(np.moveaxis(segment.reshape(n_rows, n_places, n_columns), 1, 0))
    return segments, matrices
