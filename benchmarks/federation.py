"""Where a FedTM run spends its time: share of the engine's kernels in all CPU time of the process.

    python benchmarks/federation.py [SETTING=VALUE ...]       e.g. rounds=3 data.clients=20

Uses experiments/fedtm-mnist.toml with one worker thread, profiled.
"""

import cProfile
import pstats
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import process_time

from laconic.fleets import local
from laconic.runs.config import read_config
from laconic.runs.run import run

KERNELS = ("tsetlin/kernels.py", "tsetlin/inference.py", "tsetlin/packing.py")
EXPERIMENT = Path(__file__).parent.parent / "experiments" / "fedtm-mnist.toml"


def main(settings: list[str]) -> None:
    profile = cProfile.Profile(process_time)

    class ProfiledPool(ThreadPoolExecutor):
        def __init__(self, workers: int) -> None:
            super().__init__(1, initializer=profile.enable)

    with tempfile.TemporaryDirectory() as folder:
        warm_up = ["rounds=1", "data.clients=2", "method.epochs=1", "fleet.workers=1"]
        run(read_config(EXPERIMENT, [*settings, *warm_up]), Path(folder) / "warm-up")  # compiles
        local.ThreadPoolExecutor = ProfiledPool  # type: ignore[misc]
        started = process_time()
        run(read_config(EXPERIMENT, [*settings, "fleet.workers=1"]), Path(folder) / "run")
        total_seconds = process_time() - started
    stats = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    rows = sorted(((own, path, name) for (path, _, name), (_, _, own, _, _) in stats.items()), reverse=True)
    kernel_seconds = sum(own for own, path, _ in rows if path.endswith(KERNELS))
    print(f"{kernel_seconds / total_seconds:.1%} of {total_seconds:.1f} CPU seconds in the engine's kernels")
    for own, path, name in rows[:12]:
        print(f"{own / total_seconds:7.1%}  {Path(path).name}  {name}")


if __name__ == "__main__":
    main(sys.argv[1:])
