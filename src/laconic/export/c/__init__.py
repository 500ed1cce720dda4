"""A Tsetlin model as one C99 header, that was compiled and compared with Python before it was written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from laconic.export.c.check import check_c
from laconic.export.c.header import write_header
from laconic.export.c.toolchain import Footprint, find_compiler, measure
from laconic.export.c.values import Values, draw_rows
from laconic.files import write_atomically
from laconic.models.portable import PortableModel

__all__ = ["CExport", "Footprint", "export_c"]

N_DRAWN = 10_000


@dataclass(frozen=True)
class CExport:
    """How what was written was compared, and what it takes."""

    row_type: str  # of the numbers that it reads
    n_compared: int  # rows on which C and Python agree
    footprints: tuple[Footprint, ...]  # on this machine, and on Cortex-M where arm-none-eabi-gcc is


def export_c(portable: PortableModel, path: Path, name: str = "model", rows: Any = None) -> CExport:
    """rows: raw ones to compare on, whose numbers say what C reads, bytes or floats; None: 10,000 random ones.

    Raises ValueError, and writes nothing, where C and Python differ or the model is of a kind that C does not know.
    """
    find_compiler()
    about = portable.about
    if rows is None:
        rows = draw_rows(portable, N_DRAWN, np.random.default_rng(about.seed))
    rows = portable.encode(rows)
    if not len(rows):
        raise ValueError("rows are none; give some to compare on, or leave rows out to have them drawn")
    values = Values.of(rows)
    text = write_header(portable, values, name, len(rows))
    with TemporaryDirectory(prefix="laconic-c-") as folder:
        draft = Path(folder) / f"{name}.h"
        draft.write_text(text, "utf-8")
        check_c(draft, name, portable, values, rows)
        footprints = measure(draft, name)
    write_atomically(path, text.encode())
    return CExport(values.ctype, len(rows), footprints)
