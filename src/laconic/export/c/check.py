"""C beside Python: the same scores and the same classes of the same rows, or none of it is written."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.export.c.toolchain import compile_c, find_compiler
from laconic.export.c.values import Values
from laconic.models.portable import PortableModel

# rows come in and answers go out as they lie in memory: for each row its class, then a score for each class
MAIN = """#include <stdio.h>
#include "HEADER"

int main(void)
{
    NAME_value row[UPPER_VALUES];
    while (fread(row, sizeof row, 1, stdin) == 1) {
        NAME_score scores[UPPER_CLASSES];
        double told[1 + UPPER_CLASSES];
        int k;
        NAME_scores(row, scores);
        told[0] = NAME_predict(row);
        for (k = 0; k < UPPER_CLASSES; k++)
            told[1 + k] = scores[k] == UPPER_NEVER ? -HUGE : (double)scores[k];
        if (fwrite(told, sizeof told, 1, stdout) != 1)
            return 1;
    }
    return 0;
}
"""


def check_c(header: Path, name: str, portable: PortableModel, values: Values, rows: NDArray[Any]) -> None:
    """ValueError where C says anything else than Python of any of the rows."""
    classes, scores = ask_c(header, name, values, rows, len(portable.about.classes))
    x = portable.read(rows)
    expected, winners = np.asarray(portable.model.scores(x), np.float64), portable.model.classify(x)
    differs = (classes != winners) | (scores != expected).any(axis=1)
    if differs.any():
        row = int(differs.argmax())
        raise ValueError(
            f"C and Python differ on {np.count_nonzero(differs)} of {len(rows)} rows, so nothing was written: of row "
            f"{row} C says {classes[row]} by {scores[row].tolist()}, Python {winners[row]} by "
            f"{expected[row].tolist()}; please report this with the model's file"
        )


def ask_c(
    header: Path, name: str, values: Values, rows: NDArray[Any], n_classes: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """[row] classes and [row, class] scores, -inf for those not to be chosen."""
    program = header.with_name("main.c")
    text = MAIN.replace("HEADER", header.name).replace("HUGE", "(1e308 * 10)")
    program.write_text(text.replace("NAME", name).replace("UPPER", name.upper()), "utf-8")
    compile_c(find_compiler(), program, header.with_name("main"), "-O2")
    done = subprocess.run([header.with_name("main")], input=values.write(rows), capture_output=True, check=True)
    told = np.frombuffer(done.stdout, np.float64).reshape(len(rows), 1 + n_classes)
    return told[:, 0].astype(np.int64), told[:, 1:]
