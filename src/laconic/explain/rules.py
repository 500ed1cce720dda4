"""The clauses of a client's model as rules in the user's words, with how they fared on some examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from laconic.explain.parts import POOLED, Part, dissect
from laconic.models.background import UNKNOWN, Background
from laconic.models.base import PersonalModel
from laconic.models.portable import About, Evidences, PortableModel
from laconic.models.preprocessing import Preprocessing, name_columns
from laconic.tsetlin.booleanize import Bit
from laconic.tsetlin.geometry import Shape
from laconic.tsetlin.rules import Evidence, Rule, read_rules

Saying = tuple[str, str, str, bool]


@dataclass(frozen=True)
class ModelRule(Rule):
    part: str = ""  # clauses, private, shared or pooled
    offered_by: int | None = None  # a pooled clause: the client that offered it, where a run knows that
    n_holders: int | None = None  # clients that have it
    alike: tuple[ModelRule, ...] = ()  # of other clauses that say the same; their votes are among its own


def list_rules(
    portable: PortableModel, evidence: Evidences | None, background: Background | None = None
) -> list[ModelRule]:
    """Of each clause, by class, heaviest first, part by part. evidence: by part; None: nothing was counted."""
    anatomy = dissect(portable.model)
    if anatomy is None:
        raise ValueError(
            f"a {portable.model.kind} model has no rules: a neural network decides by sums over all its weights; "
            "methods on Tsetlin Machines have rules, and laconic explain --row N shows what decides about a row"
        )
    rules: list[ModelRule] = []
    for part in anatomy.parts:
        counted = None if evidence is None else evidence[part.name]
        check_fits(part, counted)
        rules += [add_origin(rule, part.name, background) for rule in read_part(portable, part, counted)]
    order = {name: place for place, name in enumerate(portable.about.classes)}
    return sorted(rules, key=lambda rule: order[rule.label])  # stable, so parts and weights keep their order


def join_alike(rules: Iterable[ModelRule]) -> list[ModelRule]:
    """One for all clauses of a part that say the same, their votes added up; in the order of list_rules."""
    groups: dict[tuple[str, str], dict[Saying, list[ModelRule]]] = {}
    for rule in rules:
        groups.setdefault((rule.label, rule.part), {}).setdefault(find_saying(rule), []).append(rule)
    return [
        rule
        for group in groups.values()
        for rule in sorted(map(add_votes, group.values()), key=lambda rule: -rule.weight)
    ]


def find_saying(rule: ModelRule) -> Saying:
    """Equal for rules that say the same, as to the same class."""
    return rule.part, rule.condition, rule.label, rule.is_for


def add_votes(same: Sequence[ModelRule]) -> ModelRule:
    """What they say most of stays so, for there they all agree."""
    first, *others = same
    return replace(first, votes=add_amounts(rule.votes for rule in same), alike=tuple(others)) if others else first


def add_amounts(some: Iterable[Sequence[tuple[str, float]]]) -> tuple[tuple[str, float], ...]:
    """By class, largest first."""
    sums = Counter[str]()
    for amounts in some:
        sums.update(dict(amounts))
    told = [(label, amount) for label, amount in sums.items() if amount]
    return tuple(sorted(told, key=lambda each: -abs(each[1])))


def read_part(portable: PortableModel, part: Part, evidence: Evidence | None) -> list[Rule]:
    bits = name_bits(portable.preprocessing, portable.about, part.machine.shape)
    labels = portable.about.classes
    return read_rules(part.machine, labels, bits, evidence, votes=part.votes, least=part.least)


def add_origin(rule: Rule, part: str, background: Background | None) -> ModelRule:
    found = ModelRule(**vars(rule), part=part)
    if part != POOLED or background is None or background.owners is None or background.n_holders is None:
        return found
    owner, n_holders = int(background.owners[rule.clause]), int(background.n_holders[rule.clause])
    return found if owner == UNKNOWN else replace(found, offered_by=owner, n_holders=n_holders)


def check_fits(part: Part, evidence: Evidence | None) -> None:
    if evidence is not None and evidence.fired.shape != part.votes.shape[:2]:
        raise ValueError(
            f"evidence of {list(evidence.fired.shape)} clauses came for a part with {list(part.votes.shape[:2])}; "
            "export the model again"
        )


def count_evidence(model: PersonalModel, x: NDArray[np.uint8], y: NDArray[np.int64]) -> Evidences | None:
    """Of each part, on examples as the model takes them; None: the model is not made of clauses."""
    anatomy = dissect(model)
    if anatomy is None:
        return None
    return {part.name: Evidence.count(part.fires(x), y, part.votes) for part in anatomy.parts}


def name_bits(preprocessing: Preprocessing, about: About, shape: Shape) -> list[Bit]:
    """What each bit of a patch says, in the user's words; pixels are counted from the patch's upper left corner."""
    if len(about.input_shape) == 1:
        names = name_columns(about.features, *about.input_shape)
        return [bit for column, name in enumerate(names) for bit in preprocessing.describe(name, column)]
    n_channels = prod(about.input_shape[2:])
    channels = [f" channel {k}" for k in range(n_channels)] if n_channels > 1 else [""]
    pixels = [f"pixel({row},{column})" for row, column in np.ndindex(shape.patch_height, shape.patch_width)]
    return [bit for pixel in pixels for channel in channels for bit in preprocessing.describe(pixel + channel)]
