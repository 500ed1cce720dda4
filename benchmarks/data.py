"""A large table into clients: seconds, CPU seconds and peak memory from a .csv or .parquet to every client's examples.

    python benchmarks/data.py [--rows 1000000] [--methods fedtm,separate] [--readers] [--folder DIR]

The table has 50 columns: an owner out of 100, a label in words, 38 numbers of five digits, four of them with gaps, four
whole numbers and six texts of up to 20 values. Each measurement is a process of its own, imports included, as people
meet it; peak memory is what the system counts for it. --readers: each library's reading alone, of the same .csv.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

N_OWNERS, N_NUMBERS, N_GAPPY, N_WHOLE, N_TEXTS = 100, 38, 4, 4, 6
CHUNK = 100_000  # rows made at once


def write_table(path: Path, n_rows: int) -> None:
    import pandas

    rng = np.random.default_rng(0)
    for start in range(0, n_rows, CHUNK):
        n = min(CHUNK, n_rows - start)
        table: dict[str, Any] = {"clinic": [f"clinic-{k:03}" for k in rng.integers(N_OWNERS, size=n)]}
        numbers = rng.normal(50, 20, (N_NUMBERS, n)).round(3)
        numbers[:N_GAPPY][rng.random((N_GAPPY, n)) < 0.05] = np.nan
        table |= {f"number_{k}": column for k, column in enumerate(numbers)}
        table |= {f"whole_{k}": rng.integers(10 ** (k + 1), size=n) for k in range(N_WHOLE)}
        table |= {f"text_{k}": [f"value {v}" for v in rng.integers(5 + 3 * k, size=n)] for k in range(N_TEXTS)}
        table["finding"] = np.where(numbers[-1] + rng.normal(0, 10, n) > 60, "ill", "well")
        pandas.DataFrame(table).to_csv(path, mode="a", header=start == 0, index=False)


def measure(work: str, *arguments: object) -> dict[str, float]:
    """work: a function below; it runs in a process of its own and prints what it adds."""
    started = time.perf_counter()
    command = [sys.executable, __file__, "--do", work, *map(str, arguments)]
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return {"seconds": round(time.perf_counter() - started, 2), **json.loads(said)}


def into_clients(path: str, method: str) -> dict[str, float]:
    from laconic.runs.config import read_config
    from laconic.runs.prepare import prepare

    settings = [f"method.name={method}", f"data.name={path}", "data.label=finding", "data.group=clinic"]
    prepared = prepare(read_config(None, settings))
    rows = sum(len(part.y) for client in range(prepared.task.n_clients) for part in prepared.source.at(client, 0))
    return {"clients": prepared.task.n_clients, "rows": rows}


def read_alone(path: str, library: str) -> dict[str, float]:
    missing = ["", "NA", "?"]
    if library == "pandas":
        import pandas

        frame = pandas.read_csv(path, keep_default_na=False, na_values=missing)
    elif library == "pandas, pyarrow's reader":
        import pandas

        frame = pandas.read_csv(path, keep_default_na=False, na_values=missing, engine="pyarrow")
    elif library == "polars":
        import polars

        frame = polars.read_csv(path, null_values=missing)
    else:
        from pyarrow import csv

        options = csv.ConvertOptions(null_values=missing, strings_can_be_null=True)
        return {"rows": csv.read_csv(path, convert_options=options).num_rows}
    return {"rows": len(frame)}


READERS = ("pandas", "pandas, pyarrow's reader", "pyarrow", "polars")
WORKS = {work.__name__: work for work in (into_clients, read_alone)}


def do(work: str, *arguments: str) -> None:
    found = WORKS[work](*arguments)
    used = resource.getrusage(resource.RUSAGE_SELF)
    peak = used.ru_maxrss / 1e6 * (1 if sys.platform == "darwin" else 1024) / 1e3
    print(json.dumps(found | {"cpu_seconds": round(used.ru_utime + used.ru_stime, 2), "peak_gb": round(peak, 3)}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--methods", default="fedtm,clausepool,separate")
    parser.add_argument("--readers", action="store_true")
    parser.add_argument("--folder", type=Path, help="where the table is kept for the next time")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        path = (given.folder or Path(scratch)) / f"table-{given.rows}.csv"
        if not path.exists():
            write_table(path, given.rows)
        print(f"{path.stat().st_size / 1e6:.0f} MB", file=sys.stderr)
        for method in given.methods.split(","):
            print(json.dumps({"method": method, **measure("into_clients", path, method)}))
        for library in READERS if given.readers else ():
            print(json.dumps({"reader": library, **measure("read_alone", path, library)}))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--do"]:
        do(*sys.argv[2:])
    else:
        main()
