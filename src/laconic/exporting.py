"""What `laconic export` does once it has a model: write it in one of the forms, and tell what was written."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from laconic.files import write_atomically
from laconic.report import format_bytes

if TYPE_CHECKING:
    from laconic.client_model import ClientModel

ENDINGS = {"model": ".safetensors", "c": ".h", "onnx": ".onnx", "rules": ".json"}


def export_model(
    model: ClientModel, form: str, out: Path | None, *, name: str = "model", rows: NDArray[Any] | None = None
) -> dict[str, Any]:
    """rows: raw ones, to compare what is written with. `lines` of what comes back are for people."""
    path = out or Path(f"{model.about.method}-client-{model.about.client}{ENDINGS[form]}")
    told: dict[str, Any] = {}
    if form == "model":
        model.save(path)
    elif form == "c":
        told = asdict(model.export_c(path, name=name, rows=rows))
    elif form == "onnx":
        told = asdict(model.export_onnx(path, rows=rows))
    else:
        write_rules(model, path)
    n_bytes = path.stat().st_size
    written = {"path": str(path), "form": form, "client": model.about.client, "bytes": n_bytes} | told
    details = [f"{key.replace('_', ' ')}: {value}" for key, value in told.items()]
    return written | {"lines": [f"{path}: {format_bytes(n_bytes)}, {model!r}", *details]}


def write_rules(model: ClientModel, path: Path) -> None:
    """As JSON where the name ends so, else as lines of text."""
    from laconic.explain.explanation import describe_rule

    rules = model.rules()
    described = json.dumps([describe_rule(rule) for rule in rules], indent=1)
    text = described if path.suffix == ".json" else "\n".join(map(str, rules))
    write_atomically(path, text.encode())
