"""Models of clients in C: time for an image beside Python's, flash and RAM; into docs/results/models.json.

    pip install unicorn                       emulates Cortex-M chips
    python benchmarks/c_export.py RUN...      run folders of Tsetlin methods; of each, the model of client 0

Every model is compared with Python on all test examples of its data set and 10,000 random ones before it is measured.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from chip import Chip
from numpy.typing import NDArray

from laconic import tsetlin as tm
from laconic.client_model import ClientModel
from laconic.export.c.scores import list_machines
from laconic.export.c.toolchain import CHIPS, compile_c, find_compiler
from laconic.export.c.toolchain import measure as link_for_chips
from laconic.export.c.values import Values
from laconic.runs.client_models import read_client
from laconic.runs.config import read_config
from laconic.runs.prepare import load_for

RESULTS = Path(__file__).parent.parent / "docs" / "results" / "models.json"
N_TIMED = 2000  # images, in one go
N_ALONE = 200  # images given to Python one by one
N_EMULATED = 200  # images, on an emulated chip
N_COUNTED = 5  # of them, instruction by instruction
N_TURNS = 7  # of which the best counts

TIMED = """#include <stdio.h>
#include <time.h>
#include "model.h"

static model_value rows[N][MODEL_VALUES];

int main(void)
{
    clock_t start;
    int k, sum = 0;
    if (fread(rows, sizeof rows, 1, stdin) != 1)
        return 1;
    start = clock();
    for (k = 0; k < N; k++)
        sum += model_predict(rows[k]);
    printf("%.3f %d\\n", 1e6 * (double)(clock() - start) / CLOCKS_PER_SEC / N, sum);
    return 0;
}
"""


def measure(folder: Path) -> dict[str, Any]:
    model, config = read_client(folder, 0), read_config(folder / "config.toml")
    rows = load_for(config.data).x_test
    with TemporaryDirectory() as made:
        header = Path(made) / "model.h"
        drawn = model.export_c(header)
        done = model.export_c(header, rows=rows)
        c_time = time_c(header, rows)
        link_for_chips(header, "model")
        instructions = {chip: run_on_chip(header.with_name(chip), model, rows) for chip in CHIPS}
    return {
        "method": model.about.method,
        "data": model.about.data,
        "seed": model.about.seed,
        "clients": config.data.clients,
        "rounds": config.rounds,
        "options": f"T = {config.method.threshold}",
        "clauses": count_clauses(model),
        "compared_rows": done.n_compared,
        "compared_random_rows": drawn.n_compared,
        "c_microseconds": c_time,
        "python_microseconds": time_python(lambda: model.predict(rows[:N_TIMED])) / min(N_TIMED, len(rows)),
        "python_alone_microseconds": time_python(lambda: [model.predict(rows[k : k + 1]) for k in range(N_ALONE)])
        / N_ALONE,
        "instructions": instructions,
        "emulated_rows": min(N_EMULATED, len(rows)),
        "chips": {each.target: [each.flash_bytes, each.ram_bytes, each.stack_bytes] for each in done.footprints},
    }


def count_clauses(model: ClientModel) -> int:
    return sum(int(tm.clause_activity(machine).sum()) for machine in list_machines(model.model))


def time_c(header: Path, rows: NDArray[Any]) -> float:
    """Microseconds of processor time for an image."""
    source, program = header.with_name("timed.c"), header.with_name("timed")
    timed = np.resize(rows, (N_TIMED, *rows.shape[1:]))
    source.write_text(
        TIMED.replace("N]", f"{N_TIMED}]").replace("< N;", f"< {N_TIMED};").replace("/ N,", f"/ {N_TIMED},")
    )
    compile_c(find_compiler(), source, program, "-O2")
    data = Values.of(rows).write(timed)
    told = [subprocess.run([program], input=data, capture_output=True, check=True).stdout for _ in range(N_TURNS)]
    return min(float(line.split()[0]) for line in told)


def run_on_chip(program: Path, model: ClientModel, rows: NDArray[Any]) -> int:
    """Instructions for an image, in the mean of some; the classes of more are compared with Python's."""
    chip, written = Chip(program), [Values.of(rows).write(row) for row in rows[:N_EMULATED]]
    said = [chip.predict(row) for row in written]
    if said != model.model.classify(model.read(rows[:N_EMULATED])).tolist():
        sys.exit(f"{program.name} does not say what Python says")
    return round(np.mean([chip.count_instructions(row) for row in written[:N_COUNTED]]))


def time_python(work: Callable[[], object]) -> float:
    """Microseconds of processor time."""
    best = np.inf
    for _ in range(N_TURNS):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return 1e6 * best


def main(folders: list[str]) -> None:
    found = [measure(Path(folder)) for folder in folders]
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
    known = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    RESULTS.write_text(json.dumps(known | {"c": found, "c_commit": commit.stdout.strip()}, indent=1) + "\n", "utf-8")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
