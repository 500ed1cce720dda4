"""What clients of a method on networks cost in memory: FedAvg's CNN of 582,026 weights, ten clients a round.

    python benchmarks/memory.py [METHOD [CLIENTS ...]]       e.g. fedavg 20 1000

Each number of clients runs in a process of its own: 40 rounds, then everyone gets the latest network and is tested.
"""

import resource
import subprocess
import sys

import numpy as np

from laconic.algorithm import Examples, Task
from laconic.algorithms import load_method
from laconic.fleets.base import Conditions
from laconic.fleets.source import ClientData
from laconic.networks import Training
from laconic.simulation import federate

ROUNDS, N_SAMPLED, N_EXAMPLES = 40, 10, 8


def main(method_name: str, n_clients: int) -> None:
    method = load_method(method_name)(**{"training": Training(model="cnn")})
    rng = np.random.default_rng(0)
    mine = Examples(rng.integers(0, 256, (N_EXAMPLES, 28, 28), np.uint8), rng.integers(0, 10, N_EXAMPLES))
    nothing = Examples(mine.x[:0], mine.y[:0])
    source = ClientData.of([(mine, nothing, mine)] * n_clients)
    task, conditions = Task((28, 28), 10, n_clients, peak=255.0), Conditions(N_SAMPLED / n_clients)
    with federate(method, task, source, 0, workers=2, conditions=conditions) as federation:
        for number in range(ROUNDS + 1):
            federation.play(number, is_evaluated=number == ROUNDS)
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    print(f"{method_name}, {n_clients} clients: peak {peak_mb:.0f} MB")


if __name__ == "__main__":
    if sys.argv[-1] == "--here":
        main(sys.argv[1], int(sys.argv[2]))
    else:
        name, *counts = [*sys.argv[1:], "fedavg"][: max(len(sys.argv) - 1, 1)]
        for count in counts or ["20", "1000"]:
            subprocess.run([sys.executable, __file__, name, count, "--here"], check=True)
