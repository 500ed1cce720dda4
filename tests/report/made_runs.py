"""Run folders of schema 1, invented but consistent: what the files say of one another is true."""

import hashlib
import json
from pathlib import Path

import numpy as np

CONFIG = """rounds = {rounds}
seed = {seed}
budget = "2MB"
evaluate_every = 1
checkpoint_every = 10

[method]
name = "{method}"
n_clauses = {n_clauses}

[data]
name = {data}
partition = "dirichlet"
alpha = 0.1
clients = {clients}

[fleet]
name = "local"
workers = 2
participation = 1.0
lost_replies = 0.0
state = "memory"
"""
SPLIT = {"n_shared": "shared", "n_private": "private", "n_shared_by_paper": "by the paper"}
PANELS = [  # what a method with a split declares
    {"kind": "models", "title": "Two models", "notes": {"private_accuracy": "private", "shared_accuracy": "shared"}},
    {"kind": "lines", "title": "Shared and private", "notes": SPLIT, "text": "How much.", "axis": "clauses"},
    {"kind": "lines", "title": "Shared and private", "notes": {"similarity": "similarity"}, "axis": "similarity"},
    {"kind": "clients", "title": "Donors", "notes": {"donor_1": "first"}},
    {"kind": "budget", "title": "", "notes": {"n_shared": "Clauses shared", "n_shared_by_paper": "by the paper"}},
]
FIELDS = {  # (step, direction) -> field -> (packed bytes, share sent, share by entropy, paper's bits)
    ("train", "down"): {"weights": (120, 0.7, 0.68, 3200), "states": (900, 0.3, 0.28, 9000)},
    ("train", "up"): {"weights": (120, 0.75, 0.7, 3200), "states": (900, 0.33, 0.31, 9000), "accuracy": (8, 1, 1, 0)},
}


def write_run(
    folder: Path,
    *,
    method="fedtm",
    seed=0,
    clients=6,
    rounds=4,
    data="digits",
    n_clauses=100,
    classes=3,
    partition_seed=None,
    done=True,
    bytes_scale=1.0,
    level=0.93,
    drift=False,
    gossip=False,
    splits=False,
    own=False,
    names=(),
    n_fields=0,
):
    """level is the accuracy it tends to; the partition is that of the seed unless partition_seed says otherwise.

    own: its examples are its nodes', who alone know them.
    splits: its clients have a private and a shared model, of whose split it notes and declares all a method may, under
    a budget. names: of its clients. n_fields: so many more in each message, of a byte each.
    """
    folder.mkdir(parents=True)
    rng = np.random.default_rng([seed, len(method)])
    text = CONFIG.format(
        rounds=rounds, seed=seed, method=method, n_clauses=n_clauses, data=json.dumps(data), clients=clients
    )
    (folder / "config.toml").write_text(text)
    write_json(
        folder / "env.json",
        laconic="0.1.0",
        python="3.11.2",
        numpy="2.4.6",
        numba="0.68.1",
        cpu="x86_64",
        cores=2,
        git="abc1234",
        command=f"laconic run --set method.name={method} --set seed={seed}",
        started="2026-11-15T22:48:00",
    )
    parts = write_partition(
        folder, clients, classes, seed if partition_seed is None else partition_seed, drift=drift, own=own, names=names
    )
    if splits:
        write_json(folder / "panels.json", panels=PANELS)
    n_test = [sum(part["test"]) for part in parts]

    metrics, scores, traffic, times = [], [], [], []
    silent = method == "local-tm"
    taste = rng.normal(0, 0.05, clients)  # how far a client is from the mean
    for number in range(rounds + 1):
        rows = (
            []
            if silent
            else make_traffic(number, clients, bytes_scale * (0.97**number), rng, gossip=gossip, n_fields=n_fields)
        )
        traffic += rows
        evaluated = []
        for client in range(clients):
            hoped = level * (1 - 0.75 * np.exp(-0.35 * number)) + taste[client]
            right = int(np.clip(round(hoped * n_test[client]), 0, n_test[client]))
            evaluated.append(
                {
                    "round": number,
                    "client": client,
                    "n_test": n_test[client],
                    "n_correct": right,
                    "accuracy": right / n_test[client],
                    "notes": {"share_kept": round(0.5 + 0.4 * np.exp(-0.1 * number), 4)},
                }
            )
        scores += evaluated
        if splits:
            for line in evaluated:
                private = round(0.6 + 0.06 * line["client"] % 0.4, 4)
                line["notes"] |= {"private_accuracy": private, "shared_accuracy": round(0.5 + 0.02 * number, 4)}
        shares = np.array([line["accuracy"] for line in evaluated])
        sums = {way: [r for r in rows if r["direction"] == way] for way in ("up", "down", "peer")}
        metrics.append(
            {
                "round": number,
                "accuracy_mean": shares.mean(),
                "accuracy_p10": np.quantile(shares, 0.1),
                "accuracy_min": shares.min(),
                "accuracy_pooled": sum(line["n_correct"] for line in evaluated) / sum(n_test),
                "upload_bytes": sum(r["sent_bytes"] for r in sums["up"]),
                "download_bytes": sum(r["sent_bytes"] for r in sums["down"]),
                "peer_bytes": sum(r["sent_bytes"] for r in sums["peer"]),
                "paper_upload_bytes": sum(r["paper_bits"] for r in sums["up"]) / 8,
                "paper_download_bytes": sum(r["paper_bits"] for r in sums["down"]) / 8,
                "n_sampled": clients if number else 0,
                "n_replied": clients if number else 0,
                "is_void": False,
                "notes": {"clauses_shared": 80 + 4 * number, "loss": float(np.exp(-number / 9)), "odd": float("nan")},
            }
        )
        if splits:
            spent = [sum(r["sent_bytes"] for r in rows if r["client"] == client) for client in range(clients)]
            metrics[-1] |= {"busiest_bytes": max(spent), "budget_bytes": 2_000_000}
            if number:
                metrics[-1]["notes"]["donor_1"] = (number + seed) % clients
                split = {"n_shared": 20 + number, "n_private": 80 - number, "n_shared_by_paper": 20, "similarity": 0.4}
                metrics[-1]["notes"] |= split
            else:
                kinds = np.arange(clients) % 3
                values = np.where(kinds[:, None] == kinds, 0.8, 0.1) + 0.1 * rng.random((clients, clients))
                pairs = {"round": 0, "name": "similarity", "clients": list(range(clients))}
                (folder / "pairs.jsonl").write_text(json.dumps(pairs | {"values": values.round(4).tolist()}) + "\n")
        times.append({"round": number, "seconds": 1.5 + rng.random(), "evaluate_seconds": 0.1})
    for name, lines in (("metrics", metrics), ("clients", scores), ("traffic", traffic), ("times", times)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    if done:
        last = metrics[-1]
        done = {key: last[key] for key in ("accuracy_mean", "accuracy_p10")} | {"accuracy_best": last["accuracy_mean"]}
        done |= {key: sum(line[key] for line in metrics) for key in last if key.endswith("load_bytes")}
        write_json(folder / "DONE.json", run=folder.name, method=method, rounds=rounds, seconds=1.0, **done)
    return folder


def write_json(path, **content):
    path.write_text(json.dumps({"schema": 1, **content}))


def write_partition(folder, clients, classes, seed, *, drift, own, names):
    rng = np.random.default_rng(seed)

    def divide():
        mix = rng.dirichlet(np.full(classes, 0.3), clients)
        return [
            {
                "client": client,
                "train": rng.multinomial(120, mix[client]).tolist(),
                "val": rng.multinomial(12, mix[client]).tolist(),
                "test": rng.multinomial(36 + client % 30, mix[client]).tolist(),
            }
            for client in range(clients)
        ]

    parts = divide()
    for part, name in zip(parts, names, strict=False):
        part["name"] = name
    known = [{"client": part["client"], "train": None, "val": None, "test": None} for part in parts] if own else parts
    write_json(
        folder / "partition.json",
        classes=[str(k) for k in range(classes)],
        clients=known,
        sha256=hashlib.sha256(json.dumps(parts).encode()).hexdigest(),
        drift={"round": 2, "clients": divide()} if drift else None,
    )
    return parts


def make_traffic(number, clients, scale, rng, *, gossip, n_fields):
    rows = []
    for client in range(clients):
        for (step, direction), fields in FIELDS.items():
            way = {"round": number, "step": step, "direction": direction, "client": client, "peer": None}
            if gossip and direction == "up":
                way |= {"step": "gossip", "direction": "peer", "peer": (client + 1) % clients}
            if number == 0 and direction == "up":
                continue  # the set-up only goes down
            for field, (packed, sent, entropy, bits) in fields.items():
                packed_bytes = int(packed * scale * (1 + 0.1 * rng.random()))
                rows.append(
                    way
                    | {
                        "field": field,
                        "sent_bytes": int(packed_bytes * sent),
                        "packed_bytes": packed_bytes,
                        "entropy_bytes": packed_bytes * entropy,
                        "paper_bits": bits * scale,
                    }
                )
            for k in range(n_fields):
                one = {"sent_bytes": 1, "packed_bytes": 1, "entropy_bytes": 1.0, "paper_bits": 8.0}
                rows.append(way | {"field": f"extra_{k}"} | one)
            counts = {"sent_bytes": 9, "packed_bytes": 0, "entropy_bytes": 0.0, "paper_bits": 0.0}
            rows.append(way | {"field": "(envelope)"} | counts)
    return rows
