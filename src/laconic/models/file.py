"""A personal model as one safetensors file: what it predicts by, how raw rows are read, and where it comes from.

Nothing in the file names code: it is read by the annotations of the kind of model that it says it is. Of a Tsetlin
Machine it has the literals that clauses include and their votes, in the codec that messages travel in, and no automata.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from laconic import tsetlin as tm
from laconic.files import write_atomically
from laconic.models.base import PersonalModel
from laconic.models.portable import About, Evidences, PortableModel
from laconic.models.preprocessing import KINDS as PREPROCESSING
from laconic.state import REMEDY as STATE_REMEDY
from laconic.state import Frozen, Substitute, freeze, pack
from laconic.tsetlin.rules import Evidence
from laconic.wire import Bits, Count, CountArray, Ints, Message, WireError, decode, encode

FORMAT = "laconic-model-1"
# kind -> its home; imported when it is met, for networks take PyTorch along
HOMES = {
    "ballot": "laconic.models.machines:Ballot",
    "composite": "laconic.models.machines:Composite",
    "clause-heads": "laconic.models.machines:ClauseHeads",
    "seed-head": "laconic.models.seeds:SeedHead",
    "seeded-heads": "laconic.models.seeds:SeededHeads",
    "network": "laconic.models.networks:Logits",
    "prototypes": "laconic.models.networks:NearestTarget",
}
NETWORKS = ("network", "prototypes")


class Voters(Message):
    """A machine's clauses and their votes."""

    includes: Bits  # [bank, clause, literal]
    weights: Ints  # [class, clause]


@dataclass
class StoredMachine:
    shape: tm.Shape
    threshold: int
    coalesced: bool
    voters: NDArray[np.uint8]  # an encoded message
    rivalry: NDArray[np.float64] | None
    fuzzy: tm.Fuzzy | None


def store_machine(machine: tm.Machine) -> StoredMachine:
    voters = np.frombuffer(encode(Voters(tm.include_bits(machine), machine.weights)), np.uint8)
    return StoredMachine(machine.shape, machine.threshold, machine.coalesced, voters, machine.rivalry, machine.fuzzy)


def restore_machine(stored: StoredMachine) -> tm.Machine:
    try:
        voters = decode(Voters, stored.voters.tobytes())
        n_classes, n_clauses = voters.weights.shape
        machine = tm.build(stored.shape, n_classes, n_clauses, threshold=stored.threshold, fuzzy=stored.fuzzy)
    except WireError as error:
        raise ValueError(f"its clauses cannot be read: {error}") from error
    machine.coalesced, machine.states = stored.coalesced, machine.states[: len(voters.includes)].copy()
    machine.weights[...], machine.rivalry = voters.weights, stored.rivalry
    tm.load_include_bits(machine, voters.includes)
    return machine


class Tallies(Message):
    """Of each clause."""

    fired: CountArray  # [bank, clause]
    right: CountArray  # [bank, clause]
    n_examples: Count


@dataclass
class StoredEvidence:
    tallies: NDArray[np.uint8]  # an encoded message


def store_evidence(evidence: Evidence) -> StoredEvidence:
    tallies = Tallies(evidence.fired, evidence.right, evidence.n_examples)
    return StoredEvidence(np.frombuffer(encode(tallies), np.uint8))


def restore_evidence(stored: StoredEvidence) -> Evidence:
    try:
        tallies = decode(Tallies, stored.tallies.tobytes())
    except WireError as error:
        raise ValueError(f"the evidence of its rules cannot be read: {error}") from error
    return Evidence(tallies.fired.astype(np.int64), tallies.right.astype(np.int64), tallies.n_examples)


SUBSTITUTES = {
    tm.Machine: Substitute(StoredMachine, store_machine, restore_machine),
    Evidence: Substitute(StoredEvidence, store_evidence, restore_evidence),
}


def write_model(portable: PortableModel, path: Path) -> None:
    kinds = {"kind": portable.model.kind, "preprocessing_kind": portable.preprocessing.kind}
    parts = {name: getattr(portable, name) for name in ("model", "preprocessing", "about")}
    values = {"format": FORMAT} | kinds | parts | ({"evidence": portable.evidence} if portable.evidence else {})
    digest = hashlib.sha256(freeze(values, SUBSTITUTES)).hexdigest()
    write_atomically(path, freeze(values | {"sha256": digest}, SUBSTITUTES))


def read_model(path: Path, *, own_code: str = "") -> PortableModel:
    """own_code: the one module:Class or module:function that a file may name as its network or bank."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not there; give a file that laconic export or ClientModel.save wrote")
    try:
        frozen = Frozen(path.read_bytes(), SUBSTITUTES)
        check_whole(frozen)
        kinds = frozen.thaw({"kind": str, "preprocessing_kind": str})
        if kinds["kind"] not in HOMES or kinds["preprocessing_kind"] not in PREPROCESSING:
            raise ValueError(f"it holds a {kinds['kind']} on {kinds['preprocessing_kind']}, made by a later laconic")
        if kinds["kind"] in NETWORKS:
            check_code(path, "network", frozen.tree["model"]["network"]["spec"]["model"], own_code)
        if kinds["kind"] in ("seed-head", "seeded-heads"):
            check_code(path, "bank", frozen.tree["model"]["bank"]["where"], own_code)
        preprocessing = PREPROCESSING[kinds["preprocessing_kind"]]
        expected = {"model": find_kind(kinds["kind"]), "preprocessing": preprocessing, "about": About}
        if "evidence" in frozen.tree:
            expected["evidence"] = Evidences
        found = frozen.thaw(expected)
    except (ValueError, KeyError, TypeError) as error:
        what = str(error).removesuffix(f"; {STATE_REMEDY}")
        raise ValueError(
            f"{path} is no sound model: {what}; a file that laconic export wrote was expected, export it again"
        ) from error
    return PortableModel(**found)


def check_whole(frozen: Frozen) -> None:
    came = frozen.tree.get("format") if isinstance(frozen.tree, dict) else None
    if came != FORMAT:
        raise ValueError(f"its format is {came!r}, {FORMAT!r} was expected")
    tree = {name: value for name, value in frozen.tree.items() if name != "sha256"}
    if hashlib.sha256(pack(tree, frozen.arrays)).hexdigest() != frozen.tree.get("sha256"):
        raise ValueError("its SHA-256 does not fit what is in it")


def check_code(path: Path, part: str, model: str, own_code: str) -> None:
    if ":" in model and model != own_code:
        raise ValueError(
            f"its {part} is {model}, code that is not laconic's; if you trust it, laconic.load({str(path)!r}, "
            f"own_code={model!r})"
        )


def find_kind(kind: str) -> type[PersonalModel]:
    module, _, name = HOMES[kind].partition(":")
    found: type[PersonalModel] = getattr(import_module(module), name)
    return found
