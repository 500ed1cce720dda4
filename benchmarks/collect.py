"""Makes rows of a results JSON of finished runs, one for each folder.

python benchmarks/collect.py RUN...
"""

import json
import sys
from pathlib import Path
from typing import Any


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def describe(folder: Path) -> dict[str, Any]:
    done, env = (json.loads((folder / name).read_text("utf-8")) for name in ("DONE.json", "env.json"))
    rounds = read_lines(folder / "metrics.jsonl")
    tested = {str(row["round"]): row for row in rounds if row["accuracy_mean"] is not None}
    sent = [row["upload_bytes"] + row["download_bytes"] for row in rounds]
    sent_by = {str(row["round"]): sum(sent[: k + 1]) for k, row in enumerate(rounds)}
    last = tested[max(tested, key=int)]
    return {
        "run": folder.name,
        "method": done["method"],
        "tested": done["tested"],
        "commit": env["git"][:7],
        "command": env["command"].partition(" run ")[2].partition(" --out")[0],
        "last_round": done["rounds"],
        "last": round(100 * last["accuracy_mean"], 2),
        "p10": round(100 * last["accuracy_p10"], 1),
        "upload_bytes": done["upload_bytes"],
        "download_bytes": done["download_bytes"],
        "by_round": {number: round(100 * row["accuracy_mean"], 2) for number, row in tested.items()},
        "bytes_by_round": {number: sent_by[number] for number in tested},
        "notes": last["notes"],
        "seconds": round(done["seconds"]),
    }


if __name__ == "__main__":
    print(",\n".join(json.dumps(describe(Path(name)), ensure_ascii=False) for name in sys.argv[1:]))
