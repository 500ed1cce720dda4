"""Models by the path of what holds them: a file of one, a run folder, a node."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

if TYPE_CHECKING:
    from laconic.client_model import ClientModel


def open_model(path: Path, client: str | None = None, *, own_code: str = "") -> ClientModel:
    """client: its number or name, needed for a run and for nothing else."""
    if path.is_file():
        from laconic.client_model import load

        return check_whose(load(path, own_code=own_code), path, client)
    if (path / "config.toml").exists():
        from laconic.runs.client_models import read_client

        if client is None:
            raise ValueError(f"{path} is a run of several clients; say whose model is wanted: --client 0")
        return read_client(path, client)
    if (path / "node.toml").exists():
        from laconic.deploy.node_model import read_node

        return check_whose(read_node(path), path, client)
    what = "is there, but holds none" if path.exists() else "is not there"
    raise ValueError(f"{path} {what}; a run folder, a node or a model that laconic export wrote was expected")


def check_whose(model: ClientModel, path: Path, client: str | None) -> ClientModel:
    if client is not None and client not in (str(model.about.client), model.about.name):
        raise ValueError(f"{path} is the model of client {model.about.client}, not of {client}; leave --client out")
    return model


def predict_file(
    path: Path, rows: Path, client: str | None = None, *, own_code: str = "", as_json: bool = False
) -> str:
    """Names of classes, a line for each row of the file, or all of it as JSON."""
    from laconic.rows import read_rows

    model = open_model(path, client, own_code=own_code)
    labels = model.predict(read_rows(rows, model.about.features, model.preprocessing.text_columns)).tolist()
    return json.dumps({"client": model.about.client, "labels": labels}) if as_json else "\n".join(labels)


def find_test_rows(path: Path, model: ClientModel) -> NDArray[Any] | None:
    """Raw test examples of the model's client, where they are at hand."""
    if not (path / "config.toml").exists():
        return None
    from laconic.runs.client_models import read_test_rows

    try:
        rows = read_test_rows(path, model.about.client)
    except ValueError:  # the run may have come from a machine that has the data set
        return None
    return rows if len(rows) else None
