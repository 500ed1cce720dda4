"""All that is told of one client's model: what its parts are, its rules or layers, and what decides about a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from laconic.explain.parts import Anatomy, dissect
from laconic.explain.row import RowExplanation, Voice, explain_row, join_voices
from laconic.explain.rules import ModelRule, join_alike, list_rules
from laconic.models.background import Background
from laconic.models.machines import ClauseHeads
from laconic.models.portable import Evidences, PortableModel
from laconic.models.seeds import SeededHeads
from laconic.tsetlin import Machine

if TYPE_CHECKING:
    from laconic.explain.networks import Layer

KINDS = {
    "ballot": "the votes of one Tsetlin Machine decide",
    "composite": "the votes of two Tsetlin Machines decide together, each divided by how far they spread",
    "clause-heads": "linear heads on clauses decide; a clause speaks from -1 to 1, the more often it holds",
    "seed-head": "a linear head on features made from a seed decides",
    "seeded-heads": "linear heads decide, on clauses and on features made from a seed; a clause speaks from -1 to 1, "
    "the more often it holds",
    "network": "the largest logit of a neural network decides",
    "prototypes": "the class decides whose target is nearest to the features of a neural network",
}


@dataclass(frozen=True)
class Explanation:
    portable: PortableModel
    anatomy: Anatomy | None  # None: a network
    rules: list[ModelRule]
    layers: list[Layer]
    row: RowExplanation | None
    label: str | None  # the one class asked for
    n_examples: int | None  # that support and precision are over; None: nothing was counted

    @property
    def title(self) -> str:
        about = self.portable.about
        who = f"client {about.client}" + (f" ({about.name})" if about.name else "")
        return f"{about.method} model of {who} on {about.data}"

    @property
    def lead(self) -> str:
        about = self.portable.about
        rounds = f"{about.rounds} round{'s' if about.rounds != 1 else ''}"
        more = f"; its images are turned by {about.turns} quarters to the left" if about.turns else ""
        model = self.portable.model
        heads = model.heads if isinstance(model, SeededHeads) else model
        if isinstance(heads, ClauseHeads) and heads.pooled is not None:
            more += f"; the client's own head has weight {heads.blend:g} beside the pooled one"
        return f"{rounds}, seed {about.seed}; {KINDS[model.kind]}{more}."

    def by_class(self) -> dict[str, list[ModelRule]]:
        """By the class that a rule says most of, or the one asked for; those that say most on the examples first."""
        found: dict[str, list[ModelRule]] = {}
        for rule in self.rules:
            found.setdefault(self.label or rule.label, []).append(rule)
        return {label: sorted(rules, key=lambda rule: -measure(rule, label)) for label, rules in found.items()}

    def list_choices(self) -> list[str]:
        """Classes that may be predicted."""
        among = np.ones(len(self.portable.about.classes), np.bool_) if self.anatomy is None else self.anatomy.among
        return [name for name, may_be in zip(self.portable.about.classes, among, strict=True) if may_be]

    def draws(self) -> bool:
        """Whether its clauses look at images."""
        return bool(self.rules) and len(self.portable.about.input_shape) > 1

    def machine_of(self, rule: ModelRule) -> Machine:
        assert self.anatomy is not None
        return next(part.machine for part in self.anatomy.parts if part.name == rule.part)

    def to_json(self) -> dict[str, Any]:
        about = asdict(self.portable.about)
        row = None if self.row is None else describe_row(self.row)
        return {
            "about": about,
            "kind": self.portable.model.kind,
            "class": self.label,
            "n_examples": self.n_examples,
            "rules": [describe_rule(rule) for rule in self.rules],
            "layers": [asdict(layer) for layer in self.layers],
            "row": row,
        }


def explain_model(
    portable: PortableModel,
    *,
    evidence: Evidences | None = None,
    background: Background | None = None,
    label: str | None = None,
    rows: NDArray[Any] | None = None,
    row: int | None = None,
    truth: str | None = None,
) -> Explanation:
    """label: of this class alone. rows, row: raw ones, and which of them is to be explained; truth: its class."""
    label = None if label is None else find_class(label, portable.about.classes)
    anatomy = dissect(portable.model)
    rules: list[ModelRule] = []
    layers: list[Layer] = []
    if anatomy is None:
        from laconic.explain.networks import list_layers  # takes PyTorch along

        layers = list_layers(portable.model, background)
    else:
        rules = list_rules(portable, evidence, background)
    told = None if row is None or rows is None else explain_row(portable, rules, rows, row, truth)
    rules = join_alike(rules)
    if label is not None:
        rules = [rule for rule in rules if label in dict(rule.votes)]
    n_examples = None if not evidence else next(iter(evidence.values())).n_examples
    return Explanation(portable, anatomy, rules, layers, told, label, n_examples)


def find_class(given: str, classes: Sequence[str]) -> str:
    """By its name, or by its number from 0 up where no class is called so."""
    if given in classes:
        return given
    if given.isdecimal() and int(given) < len(classes):
        return classes[int(given)]
    raise ValueError(f"class {given!r} is not there; the classes are {', '.join(classes)}")


def measure(rule: ModelRule, label: str) -> float:
    """How much it says of a class in all: on each example on which it fires."""
    vote: float = dict(rule.votes)[label]
    return abs(vote) * (rule.support if isfinite(rule.support) else 1)


def pick_top(rules: Sequence[ModelRule], top: int) -> dict[str, list[ModelRule]]:
    """The first so many of each part."""
    parts: dict[str, list[ModelRule]] = {}
    for rule in rules:
        parts.setdefault(rule.part, []).append(rule)
    return {part: some[:top] for part, some in parts.items()}


def pick_voices(row: RowExplanation, label: str | None) -> list[Voice]:
    """Those that add to a class, largest first, clauses that say the same as one; of no class in particular: all."""
    voices = join_voices(row.voices)
    if label is None:
        return voices
    return sorted((v for v in voices if v.adds_to(label)), key=lambda voice: -abs(voice.adds_to(label)))


def describe_rule(rule: ModelRule) -> dict[str, Any]:
    return asdict(rule) | {
        "votes": dict(rule.votes),
        "alike": [describe_rule(other) for other in rule.alike],
        "support": rule.support if isfinite(rule.support) else None,
        "precision": rule.precision if isfinite(rule.precision) else None,
        "text": str(rule),
    }


def describe_row(row: RowExplanation) -> dict[str, Any]:
    return {
        "row": row.row,
        "predicted": row.predicted,
        "label": row.label,
        "scores": dict(zip(row.classes, row.scores, strict=True)),
        "sums": {name: dict(zip(row.classes, sums, strict=True)) for name, sums in row.sums.items()},
        "voices": [
            {
                "part": voice.rule.part,
                "bank": voice.rule.bank,
                "clause": voice.rule.clause,
                "speaks": voice.speaks,
                "adds": dict(voice.amounts),
            }
            for voice in row.voices
        ],
        "notes": list(row.notes),
    }
