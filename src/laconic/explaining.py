"""What `laconic explain` does once it has a model: find the row that is asked for, and all that is known beside it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from laconic.explain.explanation import Explanation, explain_model

if TYPE_CHECKING:
    from laconic.client_model import ClientModel


def explain_client(
    model: ClientModel, source: Path, *, label: str | None = None, row: int | None = None, file: Path | None = None
) -> Explanation:
    """source: where the model is from. file: of rows; without, they are the client's test examples in a run."""
    rows, truth = None, None
    if file is not None:
        row = 0 if row is None else row
        rows = read_file(model, file)
    elif row is not None:
        rows, truths = find_test_examples(model, source)
        truth = truths[row] if 0 <= row < len(truths) else None
    return explain_model(
        model,
        evidence=model.find_evidence(),
        background=model.find_background(),
        label=label,
        rows=rows,
        row=row,
        truth=truth,
    )


def read_file(model: ClientModel, file: Path) -> NDArray[Any]:
    from laconic.rows import read_rows

    return model.encode(read_rows(file, model.about.features, model.preprocessing.text_columns))


def find_test_examples(model: ClientModel, source: Path) -> tuple[NDArray[Any], list[str]]:
    """Raw rows and the names of their classes."""
    if not (source / "config.toml").exists():
        raise ValueError(f"{source} has no examples; say whose row is meant: --rows FILE.npz or --rows FILE.csv")
    from laconic.runs.client_models import read_examples

    rows, labels = read_examples(source, model.about.client, "test")
    return rows, [model.classes[label] for label in labels]
