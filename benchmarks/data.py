"""A large table into clients: seconds, CPU seconds and peak memory from a file to every client's examples.

    python benchmarks/data.py [--rows 1000000] [--turns 3] [--folder DIR] [--out docs/results/data.json]

The table has 50 columns: an owner out of 100, a label in words, 38 numbers of five digits, four of them with gaps, four
whole numbers and six texts of up to 20 values. Each measurement is a process of its own, imports included, as people
meet it; peak memory is what the system counts for it. Beside it: each library's reading alone, of the same .csv, and
what `laconic --help` and `import laconic` take. In turns, so that all see the same machine; the best of them counts.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from laconic.runs.record import describe_environment

N_OWNERS, N_NUMBERS, N_GAPPY, N_WHOLE, N_TEXTS = 100, 38, 4, 4, 6
CHUNK = 100_000  # rows made at once
METHODS = ("fedtm", "separate")  # which take bits and values


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
    return {"seconds": round(time.perf_counter() - started, 2), **json.loads(said.splitlines()[-1])}


def into_clients(path: str, method: str) -> dict[str, float]:
    from laconic.runs.config import read_config
    from laconic.runs.prepare import prepare

    settings = [f"method.name={method}", f"data.name={path}", "data.label=finding", "data.group=clinic"]
    prepared = prepare(read_config(None, settings))
    rows = sum(len(part.y) for client in range(prepared.task.n_clients) for part in prepared.source.at(client, 0))
    return {"clients": prepared.task.n_clients, "rows": rows}


def read_alone(path: str, library: str) -> dict[str, float]:
    missing = ["", "NA", "?"]
    match library:
        case "pandas":
            import pandas

            return {"rows": len(pandas.read_csv(path, keep_default_na=False, na_values=missing, low_memory=False))}
        case "pyarrow":
            from pyarrow import csv

            options = csv.ConvertOptions(null_values=missing, strings_can_be_null=True)
            return {"rows": csv.read_csv(path, convert_options=options).num_rows}
        case _:
            import polars

            n_looked_at = 100 if library == "polars" else None
            return {"rows": len(polars.read_csv(path, null_values=missing, infer_schema_length=n_looked_at))}


def start(words: str) -> dict[str, float]:
    """CPU seconds of a command's start are those of this process's child."""
    code = "import laconic" if words == "import laconic" else "import sys; from laconic.cli import main; main()"
    command = [sys.executable, "-c", code, *words.split()[1:]]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"cpu_seconds": round(used.ru_utime + used.ru_stime, 3), "peak_gb": round(used.ru_maxrss * 1024 / 1e9, 3)}


READERS = ("pandas", "pyarrow", "polars", "polars, all rows looked at first")
WORKS = {work.__name__: work for work in (into_clients, read_alone, start)}


def do(work: str, *arguments: str) -> None:
    found = WORKS[work](*arguments)
    used = resource.getrusage(resource.RUSAGE_SELF)
    mine = {
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 2),
        "peak_gb": round(used.ru_maxrss * 1024 / 1e9, 3),  # kilobytes on Linux
    }
    print(json.dumps(mine | found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where the table is kept for the next time")
    parser.add_argument("--out", type=Path, help="a JSON file for what was measured")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        path = (given.folder or Path(scratch)) / f"table-{given.rows}.csv"
        columns = path.with_suffix(".parquet")
        if not path.exists():
            write_table(path, given.rows)
        if not columns.exists():
            import pandas

            pandas.read_csv(path, low_memory=False).to_parquet(columns)
        csv_mb = round(path.stat().st_size / 1e6)
        jobs = [("into_clients", file, method) for file in (path, columns) for method in METHODS]
        jobs += [("read_alone", path, library) for library in READERS]
        jobs += [("start", words) for words in ("import laconic", "laconic --help", "laconic list")]
        found: dict[tuple[object, ...], list[dict[str, float]]] = {job: [] for job in jobs}
        for _ in range(given.turns):
            for job in jobs:
                found[job].append(measure(*job) | {"load": round(os.getloadavg()[0], 1)})
                print(*(getattr(word, "name", word) for word in job), found[job][-1], file=sys.stderr)
    here = describe_environment()
    results = {
        "command": "python benchmarks/data.py --out docs/results/data.json",
        "commit": here.git,
        "machine": f"{here.cores} cores, {here.cpu}, Python {here.python}",
        "versions": {name: version(name) for name in ("numpy", "pandas", "polars", "pyarrow")},
        "csv_mb": csv_mb,
        "turns": given.turns,
        "found": [
            {"job": [getattr(word, "suffix", word) for word in job], "best": best(turns), "turns": turns}
            for job, turns in found.items()
        ],
    }
    text = json.dumps(results, indent=1)
    print(text) if given.out is None else given.out.write_text(text + "\n", "utf-8")


def best(turns: list[dict[str, float]]) -> dict[str, float]:
    return {key: min(turn[key] for turn in turns) for key in ("seconds", "cpu_seconds", "peak_gb")}


if __name__ == "__main__":
    if sys.argv[1:2] == ["--do"]:
        do(*sys.argv[2:])
    else:
        main()
