"""Clients' models out of a run folder: what its last checkpoint says of a client, and how its rows were read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from laconic import __version__
from laconic.algorithm import Algorithm
from laconic.client_model import ClientModel
from laconic.data import Dataset
from laconic.data import Partition as Shares
from laconic.data.sources import name_source
from laconic.files import write_atomically
from laconic.models.background import Background
from laconic.models.file import NETWORKS
from laconic.models.portable import About, Evidences
from laconic.models.preprocessing import KINDS, Preprocessing, Rows
from laconic.records import Deployed, Environment, Holding, Partition, read
from laconic.runs import checkpoint as checkpoints
from laconic.runs.config import Config, DataSettings, read_config
from laconic.runs.prepare import Prepared, load_for, prepare
from laconic.runs.typed_toml import ConfigError
from laconic.state import Frozen, freeze

INPUTS = "preprocessing.safetensors"


@dataclass(frozen=True)
class Inputs:
    """How a run reads raw rows."""

    preprocessing: Preprocessing
    features: tuple[str, ...]
    input_shape: tuple[int, ...]  # of one raw row

    @classmethod
    def of(cls, prepared: Prepared) -> Inputs:
        return cls(prepared.preprocessing, prepared.dataset.features, prepared.dataset.x_train.shape[1:])


def write_inputs(folder: Path, prepared: Prepared) -> None:
    inputs = Inputs.of(prepared)
    write_atomically(folder / INPUTS, freeze({"kind": inputs.preprocessing.kind} | vars(inputs)))


def read_inputs(folder: Path, config: Config) -> Inputs:
    """Folders made before they held this say it by their data set."""
    if not (folder / INPUTS).exists():
        return Inputs.of(prepare(config, Shares.load(folder / "partition.npz")))
    checkpoints.verify(folder, INPUTS)
    frozen = Frozen((folder / INPUTS).read_bytes())
    kind = KINDS[frozen.thaw({"kind": str})["kind"]]
    expected: dict[str, Any] = {"preprocessing": kind, "features": tuple[str, ...], "input_shape": tuple[int, ...]}
    return Inputs(**frozen.thaw(expected))


@dataclass(frozen=True, repr=False, eq=False)
class ClientOfRun(ClientModel):
    """Knows what its run folder knows, and what its clauses do on the client's examples if the data set is at hand."""

    folder: Path = Path()
    method: Algorithm | None = None
    state: Any = None  # of the client

    @cached_property
    def counted(self) -> Evidences | None:
        from laconic.explain.rules import count_evidence

        if self.model.kind in NETWORKS:
            return None
        try:
            rows, labels = read_examples(self.folder, self.about.client, "train")
        except ConfigError:  # the data set is not at hand
            return None
        return count_evidence(self.model, self.read(rows), labels)

    def find_evidence(self) -> Evidences | None:
        return self.counted

    def find_background(self) -> Background | None:
        assert self.method is not None
        return self.method.background(checkpoints.read_server(self.folder, self.method), self.state)


def read_client(folder: Path, client: int | str) -> ClientOfRun:
    """client: its number, or its name where it has one."""
    if (folder / Deployed.file).exists():
        raise ValueError(f"{folder} is a run on real nodes, where its models stay; laconic export NODE takes one there")
    config = read_config(folder / "config.toml")
    partition, environment = read(folder, Partition), read(folder, Environment)
    holding = find_client(folder, partition, client)
    state = checkpoints.read_state(folder, config.method, holding.client)
    if state is None:
        raise ValueError(f"client {client} of {folder} has no model: nobody has asked it for anything so far")
    inputs = read_inputs(folder, config)
    about = About(
        classes=tuple(partition.classes),
        features=inputs.features,
        input_shape=inputs.input_shape,
        method=config.method_name,
        client=holding.client,
        name=holding.name,
        data=name_source(config.data.name),
        seed=config.seed,
        rounds=config.rounds,
        laconic=environment.laconic or __version__,
        git=environment.git,
        run=checkpoints.find_digest(folder),
        turns=holding.quarter_turns,
    )
    model = config.method.personal_model(state)
    if config.renew_statistics:  # as it was tested
        model = model.renew(prepare(config).source.at(holding.client, config.rounds)[0].x)
    return ClientOfRun(model, inputs.preprocessing, about, folder=folder, method=config.method, state=state)


def read_test_rows(folder: Path, client: int) -> Rows:
    """A client's test examples as its data set has them."""
    return read_examples(folder, client, "test")[0]


def read_examples(
    folder: Path,
    client: int,
    part: Literal["train", "test"],
    load: Callable[[DataSettings], Dataset] = load_for,
) -> tuple[Rows, NDArray[np.int64]]:
    """A client's rows as its data set has them, and their classes; ConfigError if the data set is not at hand."""
    data = load(read_config(folder / "config.toml").data)
    share = Shares.load(folder / "partition.npz").at(checkpoints.find_round(folder))[client]
    if part == "train":
        return data.x_train[share.train], data.y_train[share.train]
    return data.x_test[share.test], data.y_test[share.test]


def find_client(folder: Path, partition: Partition, client: int | str) -> Holding:
    for holding in partition.clients:
        if client in (holding.client, str(holding.client), holding.name) and client != "":
            return holding
    names = [holding.name for holding in partition.clients if holding.name]
    some = f"0 to {len(partition.clients) - 1}" + (f", or {', '.join(names[:5])} …" if names else "")
    raise ValueError(f"client is {client!r}; {folder} has {some}")
