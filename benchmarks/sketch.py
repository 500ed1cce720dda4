"""The Hadamard transform against NumPy, SciPy's FFT and a plain copy of memory, in turns; then sketches of networks.

python benchmarks/sketch.py
NUMBA_CACHE_DIR=$(mktemp -d) python benchmarks/sketch.py cold
"""

import sys
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import fft, linalg

from laconic.networks.hadamard import hadamard
from laconic.networks.sketch import Sketch, _rows, _signs, rotate, unrotate

N_TURNS = 20
Work = Callable[[], object]


def numpy_butterfly(x: NDArray[np.float32]) -> None:
    """As short as NumPy allows, in place, one temporary per step."""
    size = 1
    while size < len(x):
        low, high = x.reshape(-1, 2, size).swapaxes(0, 1)
        difference = low - high
        low += high
        high[:] = difference
        size *= 2


def milliseconds(works: dict[str, Work], n: int) -> dict[str, float]:
    """Processor time of one thread, the best of many turns; a turn does each work, so all see the same machine."""
    best, repeats = dict.fromkeys(works, np.inf), max(1, 2**16 // n)  # short works would drown in reading the clock
    for _ in range(N_TURNS):
        for name, work in works.items():
            work()  # brings its own data back into the caches: the work before it may have used them
            start = time.thread_time_ns()
            for _ in range(repeats):
                work()
            best[name] = min(best[name], (time.thread_time_ns() - start) / repeats / 1e6)
    return best


def transforms() -> None:
    print("| n | ours, ms | NumPy butterfly | SciPy rfft | dense product | copy | ours to copy | GB/s of copy |")
    print("|---|---|---|---|---|---|---|---|")
    for power in (10, 12, 16, 18, 20, 22):
        n = 1 << power
        x, y = np.zeros((2, n), np.float32)  # zeros stay finite however often they are transformed
        works: dict[str, Work] = {
            "ours": lambda x=x: hadamard(x),
            "numpy": lambda x=x: numpy_butterfly(x),
            "scipy": lambda x=x: fft.rfft(x),
            "copy": lambda x=x, y=y: np.copyto(y, x),
        }
        if n <= 4096:
            matrix = linalg.hadamard(n, dtype=np.float32)
            works["dense"] = lambda x=x, matrix=matrix: matrix @ x
        took = milliseconds(works, n)
        ours, copy = took["ours"], took["copy"]
        others = [f"{took[k]:.3f} ({took[k] / ours:.1f}×)" if k in took else "–" for k in ("numpy", "scipy", "dense")]
        print(f"| 2^{power} | **{ours:.4f}** | {' | '.join(others)} | {copy:.4f} | {ours / copy:.1f} |", end="")
        print(f" {8 * n / copy / 1e6:.0f} |")  # 4 bytes read and 4 written


def sketches() -> None:
    print("\n| n, m | forward, ms | adjoint | transform alone | draw signs and rows | rotate | unrotate |")
    print("|---|---|---|---|---|---|---|")
    for n in (203_530, 280_074, 1 << 20):
        sketch, w, buffer = Sketch(n, n // 10, 0), np.zeros(n, np.float32), np.zeros(1 << (n - 1).bit_length(), "f4")
        z, rotated = sketch.forward(w), rotate(w, 0)

        def draw(n: int = n, m: int = n // 10, n_padded: int = len(buffer)) -> None:
            _signs.__wrapped__(n, 0)
            _rows.__wrapped__(n_padded, m, 0)

        works: dict[str, Work] = {
            "forward": lambda sketch=sketch, w=w: sketch.forward(w),
            "adjoint": lambda sketch=sketch, z=z: sketch.adjoint(z),
            "transform": lambda buffer=buffer: hadamard(buffer),
            "draw": draw,
            "rotate": lambda w=w: rotate(w, 0),
            "unrotate": lambda rotated=rotated, n=n: unrotate(rotated, n, 0),
        }
        print(f"| {n}, {n // 10} | " + " | ".join(f"{took:.2f}" for took in milliseconds(works, n).values()) + " |")


if __name__ == "__main__":
    start = time.process_time()
    hadamard(np.zeros(64, np.float32))
    if sys.argv[1:] == ["cold"]:
        print(f"first transform of a process: {time.process_time() - start:.2f} s of processor time")
    else:
        transforms()
        sketches()
