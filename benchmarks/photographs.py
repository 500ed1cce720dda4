"""Makes src/laconic/banks/photographs.npz of the two photographs that scikit-learn ships.

    python benchmarks/photographs.py

Needs Pillow. The file is part of the package, so that banks do not depend on who decodes a JPEG, or how.
"""

from pathlib import Path

import numpy as np
from sklearn.datasets import load_sample_images

SHRINKING = 3
TARGET = Path(__file__).parent.parent / "src" / "laconic" / "banks" / "photographs.npz"


def main() -> None:
    shrunk = []
    for image in load_sample_images().images:
        height, width = image.shape[0] // SHRINKING, image.shape[1] // SHRINKING
        cut = image[: height * SHRINKING, : width * SHRINKING].astype(np.int64)
        sums = cut.reshape(height, SHRINKING, width, SHRINKING, 3).sum(axis=(1, 3))
        shrunk.append((sums + SHRINKING**2 // 2) // SHRINKING**2)
    np.savez_compressed(TARGET, photographs=np.array(shrunk, np.uint8))
    print(f"{TARGET.name}: {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main()
