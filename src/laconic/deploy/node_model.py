"""The model of a node, where it was trained and offline: for predict, export and explain."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from laconic import __version__
from laconic.client_model import ClientModel
from laconic.deploy.node_runs import NodeState, open_node_state
from laconic.deploy.settings import read_settings
from laconic.models.portable import About
from laconic.models.preprocessing import Centred, Pixels, Preprocessing


def read_node(folder: Path) -> ClientModel:
    """Of the run that the node worked on last. Its rows are as its own examples are."""
    found, settings = open_node_state(folder), read_settings(folder, "node")
    about = About(
        classes=tuple(str(label) for label in range(found.task.n_classes)),
        features=(),
        input_shape=settings.task.input_shape,
        method=found.config.method_name,
        client=found.client,
        name="",
        data=folder.name,
        seed=found.config.seed,
        rounds=found.config.rounds,
        laconic=__version__,
        git=None,
        run=found.folder.name,
    )
    return ClientModel(found.method.personal_model(found.state), find_reading(found), about)


def find_reading(found: NodeState) -> Preprocessing:
    """A node's examples are values as a network takes them, pixels or centred."""
    if found.method.takes != "values":
        return found.preprocessing
    shape = found.task.input_shape
    return Pixels(found.task.peak) if found.task.peak else Centred(np.zeros(shape), np.ones(shape))
