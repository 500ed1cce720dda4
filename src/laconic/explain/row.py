"""What decides about one row: the sums behind a model's scores, and which clauses put how much into them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from laconic.explain.parts import Anatomy, dissect
from laconic.explain.rules import ModelRule, Saying, add_amounts, add_votes, find_saying
from laconic.models.portable import PortableModel
from laconic.tsetlin import class_sums


@dataclass(frozen=True)
class Voice:
    """One clause on one row."""

    rule: ModelRule
    speaks: float  # 1; a fuzzy clause so many times, one under a head from -1 to 1
    amounts: tuple[tuple[str, float], ...]  # (class, what it adds to its score), largest first

    def adds_to(self, label: str) -> float:
        return dict(self.amounts).get(label, 0.0)


@dataclass(frozen=True)
class RowExplanation:
    row: int
    predicted: str
    label: str | None  # its class, where that is known
    classes: tuple[str, ...]  # that may be chosen
    sums: dict[str, tuple[float, ...]]  # by what adds it: [class]; the scores are what they come to
    scores: tuple[float, ...]  # [class] the highest is predicted
    voices: tuple[Voice, ...] = ()  # largest first; clauses that speak
    notes: tuple[str, ...] = ()
    pixels: NDArray[np.generic] | None = field(default=None, compare=False)  # of an image, as the data set has it


def explain_row(
    portable: PortableModel, rules: list[ModelRule], rows: NDArray[np.generic], row: int, label: str | None = None
) -> RowExplanation:
    """rules: all of the model, or some that are to be heard."""
    if not 0 <= row < len(rows):
        raise ValueError(f"row {row} is not there; there are 0 to {len(rows) - 1}")
    x = portable.read(rows[row : row + 1])
    names = portable.about.classes
    scores = portable.model.scores(x)[0]
    predicted = names[int(scores.argmax())]
    pixels = rows[row] if rows[row].ndim > 1 else None
    anatomy = dissect(portable.model)
    voices: tuple[Voice, ...] = ()
    notes: tuple[str, ...] = ()
    if anatomy is None:
        from laconic.explain.networks import list_network_sums  # takes PyTorch along

        among, sums = list_network_sums(portable.model, x)
    else:
        among, sums = anatomy.among, {name: amounts[0] for name, amounts in anatomy.add_up(x).items()}
        voices, notes = hear_voices(anatomy, names, rules, x), find_clamped(anatomy, x)
    chosen = np.flatnonzero(among)
    return RowExplanation(
        row=row,
        predicted=predicted,
        label=label,
        classes=tuple(names[c] for c in chosen),
        sums={name: tuple(amounts[chosen].tolist()) for name, amounts in sums.items()},
        scores=tuple(scores[chosen].tolist()),
        voices=voices,
        notes=notes,
        pixels=pixels,
    )


def hear_voices(
    anatomy: Anatomy, names: tuple[str, ...], rules: list[ModelRule], x: NDArray[np.uint8]
) -> tuple[Voice, ...]:
    voices = []
    for part in anatomy.parts:
        speaks, span = part.speaks(x)[0], part.spans(x)[0]
        for rule in (rule for rule in rules if rule.part == part.name and speaks[rule.bank, rule.clause]):
            how_far = float(speaks[rule.bank, rule.clause])
            amounts = part.votes[rule.bank, rule.clause] * how_far / span
            heard = [(names[c], float(amounts[c])) for c in np.flatnonzero((amounts != 0) & anatomy.among)]
            if heard:
                voices.append(Voice(rule, how_far, tuple(sorted(heard, key=lambda entry: -abs(entry[1])))))
    return tuple(sorted(voices, key=lambda voice: -abs(voice.amounts[0][1])))


def join_voices(voices: Iterable[Voice]) -> list[Voice]:
    """One for all clauses that say the same and speak as far, what they add summed; largest first."""
    groups: dict[tuple[Saying, float], list[Voice]] = {}
    for voice in voices:
        groups.setdefault((find_saying(voice.rule), voice.speaks), []).append(voice)
    joined = [
        Voice(add_votes([voice.rule for voice in same]), speaks, add_amounts(voice.amounts for voice in same))
        for (_, speaks), same in groups.items()
    ]
    return sorted(joined, key=lambda voice: -max((abs(amount) for _, amount in voice.amounts), default=0.0))


def find_clamped(anatomy: Anatomy, x: NDArray[np.uint8]) -> tuple[str, ...]:
    """Composites take sums no further than a machine's threshold; then clauses add up to more than counts."""
    if len(anatomy.parts) < 2 or any(part.scales is not None for part in anatomy.parts):
        return ()
    return tuple(
        f"votes of {part.name} clauses go beyond {part.machine.threshold}, where this model cuts them off"
        for part in anatomy.parts
        if np.abs(class_sums(part.machine, x)).max() > part.machine.threshold
    )
