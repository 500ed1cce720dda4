"""A table as clinics have them: owners, text, empty cells, labels in words."""

from pathlib import Path

import numpy as np


def write_clinics(path: Path, n_rows: int = 400, seed: int = 0) -> Path:
    """Columns clinic, age, dose (some empty), eyes (some NA), finding; a clinic called tiny has one row."""
    rng = np.random.default_rng(seed)
    clinic = rng.choice(["north", "south", "east"], n_rows)
    age, dose = rng.integers(20, 90, n_rows), rng.normal(5, 2, n_rows).round(2)
    eyes = rng.choice(["brown", "green", "grey"], n_rows)
    finding = np.where((age > 50) & (eyes == "green") | (dose > 7), "ill", "well")
    shown_dose = np.where(rng.random(n_rows) < 0.1, "", dose.astype(str))
    shown_eyes = np.where(rng.random(n_rows) < 0.05, "NA", eyes)
    rows = zip(clinic, age, shown_dose, shown_eyes, finding, strict=True)
    lines = ["clinic,age,dose,eyes,finding", *(",".join(map(str, row)) for row in rows), "tiny,40,5.0,grey,well"]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
