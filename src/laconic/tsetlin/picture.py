"""Convolutional clauses as pictures: an RGB array, a PNG file, or text for a terminal."""

import struct
import zlib
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.tsetlin.machine import Machine, include_bits
from laconic.tsetlin.rules import best_places, patch_places

# blue, pale yellow and red are told apart with any colour vision; grey leaves a value open, black admits none
LOW, MIDDLE, HIGH = (np.array(rgb) for rgb in ((33, 102, 172), (255, 255, 191), (178, 24, 43)))
ANY, NONE, COVERED, PAPER = 220, 0, 90, 255


def wanted_values(machine: Machine, bank: int, clause: int) -> NDArray[np.float64]:
    """[row, column, channel]: middle of the values 0..1 a clause accepts; nan where all are, inf where none is.

    A fuzzy clause may want more than can be; what is between its wishes is then the middle.
    """
    shape = machine.shape
    if shape.height * shape.width == 1:
        raise ValueError("a flat machine's clauses have no picture; train on images with patch=(height, width)")
    includes, negates = np.split(include_bits(machine)[bank, clause], 2)
    size = (shape.patch_height, shape.patch_width, shape.layers // shape.levels, shape.levels)
    level = np.arange(shape.levels)
    low = np.where(includes[: shape.n_pixels].reshape(size), level + 1, 0).max(-1)
    high = np.where(negates[: shape.n_pixels].reshape(size), level, shape.levels).min(-1)
    values: NDArray[np.float64] = (low + high) / (2 * shape.levels)
    values[(low == 0) & (high == shape.levels)] = np.nan
    if machine.fuzzy is None:
        values[low > high] = np.inf
    return values


def match_map(machine: Machine, bank: int, clause: int) -> NDArray[np.bool_]:
    """[row, column] of the image: may the clause's patch cover it; of a fuzzy clause, does it do so best."""
    shape, include = machine.shape, include_bits(machine)[bank, clause]
    rows, columns = patch_places(shape, include) if machine.fuzzy is None else best_places(shape, include)
    covered = np.zeros((shape.height, shape.width), np.bool_)
    for row, column in product(rows, columns):
        covered[row : row + shape.patch_height, column : column + shape.patch_width] = True
    return covered


def picture_panels(machine: Machine, bank: int, clause: int) -> list[NDArray[np.uint8]]:
    """RGB, unscaled: the patch, a panel per channel (red: high, blue: low, grey: any), then where it may lie."""
    values = wanted_values(machine, bank, clause)[..., None]
    colours = np.where(values < 0.5, LOW + (MIDDLE - LOW) * 2 * values, HIGH + (MIDDLE - HIGH) * 2 * (1 - values))
    colours = np.select([np.isnan(values), np.isinf(values)], [ANY, NONE], default=colours)
    covered = match_map(machine, bank, clause)
    place = np.where(covered, COVERED, ANY)[..., None].repeat(3, axis=2)
    return [panel.astype(np.uint8) for panel in (*np.moveaxis(colours, 2, 0), place)]


def clause_picture(machine: Machine, bank: int, clause: int, *, scale: int = 8) -> NDArray[np.uint8]:
    """All panels side by side."""
    *patches, place = picture_panels(machine, bank, clause)
    patch_scale = scale * max(1, len(place) // len(patches[0]))  # about as tall as the map
    panels = [enlarge(panel, patch_scale) for panel in patches] + [enlarge(place, scale)]
    height = max(map(len, panels)) + scale
    framed = [np.pad(p, ((scale, height - len(p)), (scale, 0), (0, 0)), constant_values=PAPER) for p in panels]
    return np.pad(np.hstack(framed), ((0, 0), (0, scale), (0, 0)), constant_values=PAPER)


def enlarge(picture: NDArray[Any], by: int) -> NDArray[Any]:
    """Every pixel becomes a square of by × by."""
    return picture.repeat(by, axis=0).repeat(by, axis=1)


def text_panels(machine: Machine, bank: int, clause: int) -> list[list[str]]:
    """The same for a terminal: fuller cells want higher values, empty ones take any; the map has two rows a line."""
    values = wanted_values(machine, bank, clause)
    level = np.nan_to_num(values * 4, nan=5, posinf=6).round().astype(np.intp)
    cells = np.array(["· ", "░░", "▒▒", "▓▓", "██", "  ", "!!"])[level]
    covered = match_map(machine, bank, clause)
    covered = np.pad(covered, ((0, len(covered) % 2), (0, 0)))
    halves = np.array([" ", "▀", "▄", "█"])[covered[::2] + 2 * covered[1::2]]
    return [_frame(panel) for panel in (*np.moveaxis(cells, 2, 0), halves)]


def clause_text(machine: Machine, bank: int, clause: int) -> str:
    """All panels side by side."""
    return set_side_by_side(text_panels(machine, bank, clause))


def set_side_by_side(panels: list[list[str]], gap: str = " ") -> str:
    """Blocks of lines as wide as each other in one block."""
    height = max(map(len, panels))
    filled = [panel + [" " * len(panel[0])] * (height - len(panel)) for panel in panels]
    return "\n".join(gap.join(line).rstrip() for line in zip(*filled, strict=True))


def _frame(cells: NDArray[np.str_]) -> list[str]:
    lines = ["".join(row) for row in cells]
    edge = "─" * len(lines[0])
    return [f"┌{edge}┐", *(f"│{line}│" for line in lines), f"└{edge}┘"]


def save_png(picture: NDArray[np.uint8], path: str | Path) -> None:
    Path(path).write_bytes(as_png(picture))


def as_png(picture: NDArray[np.uint8]) -> bytes:
    """Of an RGB [row, column, 3] array."""
    if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 3:
        raise ValueError(f"picture is {picture.dtype} {picture.shape}; give uint8 [row, column, 3]")
    height, width, _ = picture.shape
    scanlines = np.pad(picture.reshape(height, width * 3), ((0, 0), (1, 0)))  # each line begins with filter type 0
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),  # 8 bits per channel, RGB
        (b"IDAT", zlib.compress(scanlines.tobytes(), 9)),
        (b"IEND", b""),
    ]
    framed = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(framed)
