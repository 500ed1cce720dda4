"""Makes rows of a results JSON of runs.

python benchmarks/collect.py RUN...              one for each folder, finished
python benchmarks/collect.py --clients RUN...    likewise, with how many test examples each client got right
python benchmarks/collect.py --best RUN...       likewise, in the round that was best, as some papers have it; of what
                                                clients note beside, the mean in the round that was best by it
python benchmarks/collect.py --points RUN...     one for each round that was tested, with the bytes until then
"""

import argparse
import json
import re
import tomllib
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from statistics import fmean
from typing import Any


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def read_origin(folder: Path) -> dict[str, str]:
    env = json.loads((folder / "env.json").read_text("utf-8"))
    _, command, given = re.split(r" (run|reproduce) ", env["command"], maxsplit=1)
    told = re.sub(r" --(out \S+|workers \d+|set fleet\.workers=\d+|resume|quiet)", "", f" {given}")
    return {"commit": env["git"][:7], "command": f"laconic {command}{told}"}


def describe(folder: Path) -> dict[str, Any]:
    done = json.loads((folder / "DONE.json").read_text("utf-8"))
    rounds = read_lines(folder / "metrics.jsonl")
    tested = {str(row["round"]): row for row in rounds if row["accuracy_mean"] is not None}
    sent = accumulate(row["upload_bytes"] + row["download_bytes"] for row in rounds)
    sent_by = {str(row["round"]): n_bytes for row, n_bytes in zip(rounds, sent, strict=True)}
    last = tested[max(tested, key=int)]
    return {
        "run": "/".join(folder.parts[-2:]) if folder.name.startswith("seed-") else folder.name,
        "method": done["method"],
        "tested": done["tested"],
        **read_origin(folder),
        "last_round": done["rounds"],
        "last": round(100 * last["accuracy_mean"], 2),
        "p10": round(100 * last["accuracy_p10"], 1),
        "upload_bytes": done["upload_bytes"],
        "download_bytes": done["download_bytes"],
        "paper_upload_bytes": round(done["paper_upload_bytes"]),
        "paper_download_bytes": round(done["paper_download_bytes"]),
        "by_round": {number: round(100 * row["accuracy_mean"], 2) for number, row in tested.items()},
        "bytes_by_round": {number: sent_by[number] for number in tested},
        "notes": last["notes"],
        "seconds": round(done["seconds"]),
    }


def describe_clients(folder: Path, *, is_best: bool = False) -> dict[str, Any]:
    row = describe(folder)
    chosen = max(row["by_round"], key=row["by_round"].__getitem__) if is_best else row["last_round"]
    every = read_lines(folder / "clients.jsonl")
    clients = [client for client in every if client["round"] == int(chosen)]
    clients.sort(key=lambda client: client["client"])
    of_clients = {key: [client[key] for client in clients] for key in ("n_test", "n_correct")}
    best = {"best_round": int(chosen), "best_notes": find_best_notes(every)} if is_best else {}
    return row | best | of_clients


def find_best_notes(clients: list[dict[str, Any]]) -> dict[str, float]:
    noted: dict[str, dict[int, list[float]]] = {}
    for client in clients:
        for name, value in client["notes"].items():
            noted.setdefault(name, {}).setdefault(client["round"], []).append(value)
    return {name: round(max(map(fmean, by_round.values())), 4) for name, by_round in noted.items()}


def tell_settings(config: dict[str, Any]) -> str:
    """Of a network and its rounds, those that are chosen."""
    method, training = config["method"], config["method"].get("training", {})
    told = {key: training[key] for key in ("model", "rate", "epochs", "prior", "down", "up") if key in training}
    told |= {"head_epochs": method["head_epochs"]} if "head_epochs" in method else {}
    told["participation"] = config["fleet"]["participation"]
    return ", ".join(f"{key} {value}" for key, value in told.items())


def list_points(folder: Path) -> Iterator[dict[str, Any]]:
    """As ruler.json has them."""
    config = tomllib.loads((folder / "config.toml").read_text("utf-8"))
    rounds, data = read_lines(folder / "metrics.jsonl"), config["data"]
    sent = accumulate(row["upload_bytes"] + row["download_bytes"] for row in rounds)
    for row, so_far in zip(rounds, sent, strict=True):
        if row["accuracy_mean"] is not None:
            yield {
                "method": config["method"]["name"],
                "data": data["name"],
                "alpha": data["alpha"],
                "seed": config["seed"],
                "rounds": row["round"],
                "accuracy": round(100 * row["accuracy_mean"], 2),
                "p10": round(100 * row["accuracy_p10"], 1),
                "kilobytes": round(so_far / data["clients"] / 1000, 1),
                "settings": tell_settings(config),
                **read_origin(folder),
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--clients", action="store_true", help="with each client's right answers")
    how.add_argument("--best", action="store_true", help="with each client's right answers in the best round")
    how.add_argument("--points", action="store_true", help="a row for each tested round")
    given = parser.parse_args()
    if given.points:
        rows = [row for folder in given.runs for row in list_points(folder)]
    elif given.clients or given.best:
        rows = [describe_clients(folder, is_best=given.best) for folder in given.runs]
    else:
        rows = [describe(folder) for folder in given.runs]
    print(",\n".join(json.dumps(row, ensure_ascii=False) for row in rows))


if __name__ == "__main__":
    main()
