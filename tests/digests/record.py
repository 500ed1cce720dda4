"""Digests of short runs of every method: states, ledger and records, by which any change of behaviour shows.

    python tests/digests/record.py            # compares with recorded.json, and says what differs
    python tests/digests/record.py --write    # after a change that is meant; the commit says why

Floating-point kernels are chosen by the CPU at hand, so runs take place in a process that is held to the oldest ones:
the same digests come from any x86-64 machine with the versions in constraints.txt. `probe` tells whether they hold.
"""

import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
RECORDED = HERE / "recorded.json"
OLD_KERNELS = {
    "ATEN_CPU_CAPABILITY": "default",
    "MKL_CBWR": "COMPATIBLE",
    "ONEDNN_MAX_CPU_ISA": "SSE41",
    "OPENBLAS_CORETYPE": "Nehalem",
    "OMP_NUM_THREADS": "1",
    "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR",
}
NETWORK = "method.training."
# what a method does beyond its defaults, a run for each; the first word names it
VARIANTS = {
    "fedtm": [
        ["median", "fleet.averaging=median"],
        ["patch", "method.patch=3"],
        ["fuzzy", "method.fuzzy=[3,8]"],
        ["lend", "method.merging=lend", "method.n_donors=3", "method.fuzzy=[3,8]"],
    ],
    "local-tm": [["fuzzy", "method.fuzzy=[3,8]", "method.patch=3"]],
    "tpfl": [["fuzzy", "method.fuzzy=[3,8]"]],
    "cs-pfedtm": [
        ["bit", "method.similarity=bit", "method.reestimate_every=2", "method.gate=true"],
        ["samples", "method.donors=samples", "method.holders_only=true", "method.normaliser=sample"],
        ["budget", "budget=2kB", "method.keep_depth=true", "method.mask=false", "method.present_only=false"],
        ["fixed", "method.n_shared=4", "fleet.averaging=trimmed"],
        ["alone", "method.n_shared=0"],
        ["fuzzy", "method.n_shared=4", "method.fuzzy=[3,8]"],
    ],
    "clausepool": [
        ["alone", "method.share=false"],
        ["drift", "method.refresh_every=1", "method.patience=1", "method.precision=coarse", "fleet.averaging=clipped"],
        ["budget", "budget=1500B"],
        ["seeds", "method.n_seed=20", "method.own_seed=true", "method.precision=signs"],
    ],
    "seedhead": [
        ["alone", "method.share=false"],
        ["once", "method.one_shot=true"],
        ["fine", "method.precision=fine", "fleet.averaging=clipped"],
    ],
    "fedavg": [
        ["int8", f"{NETWORK}up=int4", f"{NETWORK}down=int8", f"{NETWORK}statistics=local"],
        ["trained", "method.tested=trained", f"{NETWORK}up=fp16", f"{NETWORK}prior=true"],
        ["median", "fleet.averaging=median"],
    ],
    "fedper": [["trained", "method.tested=trained", f"{NETWORK}statistics=local"]],
    "fedbn": [["trained", "method.tested=trained"]],
    "lg-fedavg": [["int8", f"{NETWORK}up=int8"]],
    "fedrep": [["local", f"{NETWORK}statistics=local"]],
    "fedbabu": [["fp16", f"{NETWORK}down=fp16"]],
    "pfedme": [["blend", "method.blend=0.5", f"{NETWORK}momentum=0.5"]],
    "fedpurin": [["fp16", f"{NETWORK}up=fp16", f"{NETWORK}down=fp16"], ["median", "fleet.averaging=median"]],
    "fedcac": [["trimmed", "fleet.averaging=trimmed"]],
    "fedproto": [
        ["means", "method.ppa=false", "method.cpkd=false", "method.cps_loss=masked", "fleet.averaging=median"],
        ["int8", "method.kept=int8", "method.tested=head", 'method.models=["shuffle-small","resnet-small"]'],
    ],
    "fedtgp": [["means", "method.ppa=false", "method.cps_dims=20", "method.kept=fp16"]],
    "feddistill": [["median", "fleet.averaging=median", "method.kept=int8"]],
    "fedkd": [["clipped", "fleet.averaging=clipped"]],
    "fml": [["int8", f"{NETWORK}up=int8", f"{NETWORK}down=fp16"]],
    "eden": [["bits", "method.bits=3", f"{NETWORK}down=fp16"], ["median", "fleet.averaging=median"]],
    "fedbat": [["warm", "method.warm=0.0", "fleet.averaging=trimmed"]],
    "zsignfed": [["median", "fleet.averaging=median"]],
    "pfed1bs": [["halve", "method.halve_every=1"]],
    "bifl-full": [["drop", "method.drop_every=1"]],
    "bifl-updown": [["drop", "method.drop_every=1"]],
    "bifl-ml": [["drop", "method.drop_every=1"]],
    "dispfl": [["fp16", f"{NETWORK}up=fp16", "method.n_neighbours=2"]],
    "spafl": [["median", "fleet.averaging=median"]],
    "fedpac": [["local", f"{NETWORK}statistics=local"]],
    "pfedfda": [["int8", f"{NETWORK}up=int8"]],
    "separate": [["models", 'method.models=["shuffle-small","resnet-small"]']],
}


def list_cases() -> dict[str, list[str]]:
    """Name -> settings."""
    from laconic.algorithms import METHODS
    from laconic.conformance import HARD

    cases = {method: [method, *HARD] for method in METHODS}
    for method, variants in VARIANTS.items():
        cases |= {f"{method}, {name}": [method, *HARD, *settings] for name, *settings in variants}
    return cases


def probe() -> str:
    """Of arithmetic that is none of ours: equal where digests can be."""
    import numpy as np
    import torch

    rng = np.random.default_rng(0)
    x = rng.normal(size=(37, 53)).astype(np.float32)
    some = [x @ x.T, np.exp(x), np.tanh(x), x.sum(axis=0), np.linalg.inv(x.T @ x + 9 * np.eye(53, dtype=np.float32))]
    images = torch.from_numpy(rng.normal(size=(8, 3, 9, 9)).astype(np.float32)).requires_grad_()
    made = torch.nn.functional.conv2d(images, torch.from_numpy(rng.normal(size=(5, 3, 3, 3)).astype(np.float32)))
    torch.nn.functional.log_softmax(made.flatten(1), dim=1).std().backward()
    assert images.grad is not None
    parts = [*some, made.detach().numpy(), images.grad.numpy()]
    return hashlib.sha256(b"".join(map(np.ndarray.tobytes, parts))).hexdigest()[:16]


def digest(folder: Path) -> dict[str, str]:
    """Of each record as it stands, and of all states by name, whatever order a file has them in."""
    from laconic.state import Frozen

    found = {name: (folder / f"{name}.jsonl").read_bytes() for name in ("metrics", "clients", "pairs", "matrices")}
    found["ledger"] = (folder / "traffic.jsonl").read_bytes()
    for kind in ("server", "client", "link"):
        parts = []
        for file in sorted((folder / "checkpoints").glob(f"{kind}-*.safetensors")):
            frozen = Frozen(file.read_bytes())
            parts += [f"{file.name}{name}{array.dtype}{array.shape}".encode() + array.tobytes()
                      for name, array in sorted(frozen.arrays.items())]  # fmt: skip
            parts.append(json.dumps(frozen.tree, sort_keys=True).encode())
        found[kind] = b"".join(parts)
    return {name: hashlib.sha256(data).hexdigest()[:16] for name, data in found.items()}


def run_all(names: list[str]) -> None:
    """Prints a line for each: its name, and its digests or what came of it."""
    from laconic.conformance import TWO_EACH, configure, make_data
    from laconic.runs.run import run

    cases = list_cases()
    with tempfile.TemporaryDirectory() as scratch:
        data = make_data(Path(scratch), TWO_EACH)
        print(json.dumps(["probe", probe()]), flush=True)
        for number, name in enumerate(names or cases):
            method, *settings = cases[name]
            folder = Path(scratch) / str(number)
            run(configure(method, "local", Path(os.path.relpath(data)), *settings), folder)
            print(json.dumps([name, digest(folder)]), flush=True)


def find_digests(*names: str) -> dict[str, object]:
    """Of these cases, or of all, from a process that computes as old CPUs do."""
    paths = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-W", "ignore", __file__, "--run", *names]
    done = subprocess.run(
        command, env=os.environ | OLD_KERNELS | {"PYTHONPATH": paths}, stdout=subprocess.PIPE, text=True, check=True
    )
    return dict(json.loads(line) for line in done.stdout.splitlines())


def main() -> None:
    if "--run" in sys.argv:
        run_all(sys.argv[sys.argv.index("--run") + 1 :])
        return
    names = [name for name in sys.argv[1:] if name != "--write"]
    found = find_digests(*names)
    if "--write" in sys.argv:
        known = json.loads(RECORDED.read_text()) if names else {}
        lines = [f" {json.dumps(name)}: {json.dumps(each)}" for name, each in (known | found).items()]
        RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        return
    recorded = json.loads(RECORDED.read_text())
    different = [name for name, each in found.items() if each != recorded.get(name)]
    for name in different:
        before, now = recorded.get(name), found[name]
        parts = [part for part in now if before and now[part] != before[part]] if isinstance(now, dict) else now
        print(f"{name}: {parts if before else 'new'}")
    print(f"{len(found) - len(different)} as recorded, {len(different)} others, on {platform.machine()}")


if __name__ == "__main__":
    main()
