"""How numbers and facts of an explanation read, on a terminal and on a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import isnan
from typing import TYPE_CHECKING

from laconic.explain.explanation import Explanation
from laconic.explain.parts import CLAUSES
from laconic.explain.row import RowExplanation, Voice
from laconic.explain.rules import ModelRule

if TYPE_CHECKING:
    from laconic.explain.networks import Layer

MOST_VOTES = 4  # classes named beside a rule
WHAT_IS_CRITICAL = "Critical parameters are those that the method found this client to need most when it last trained."


def format_amount(amount: float) -> str:
    """With its sign, to three digits; whole votes whole."""
    if not amount:
        return "0"
    return f"{amount:+.0f}" if float(amount).is_integer() else f"{amount:+.3g}"


def format_share(share: float) -> str:
    return "–" if isnan(share) else f"{100 * share:.0f} %"


def format_critical(layer: Layer) -> tuple[str, str]:
    """How many of its parameters are critical, and their share."""
    return ("–", "–") if layer.n_critical is None else (f"{layer.n_critical:,}", format_share(layer.share))


def word_amounts(amounts: Sequence[tuple[str, float]], label: str | None) -> str:
    """What is added to which classes, the one in question first."""
    ordered = sorted(amounts, key=lambda entry: entry[0] != label)
    more = [f"{len(ordered) - MOST_VOTES} more"] if len(ordered) > MOST_VOTES else []
    return ", ".join([f"{format_amount(amount)} to {name}" for name, amount in ordered[:MOST_VOTES]] + more)


def word_origin(rule: ModelRule) -> str:
    """Nothing of one clause where a model has but one part."""
    n_clauses = f"{1 + len(rule.alike)} clauses" if rule.alike else ""
    told = ", ".join(filter(None, ["" if rule.part == CLAUSES else rule.part, n_clauses]))
    if rule.offered_by is None:
        return told
    owners, n_holders = list_owners([rule]), max(each.n_holders or 0 for each in (rule, *rule.alike))
    who = f"client{'s' if owners[1:] else ''} {', '.join(map(str, owners))}"
    return f"{told}, offered by {who}, held by {count(n_holders, 'client')}"


def list_owners(rules: Iterable[ModelRule]) -> list[int]:
    """Clients that offered their clauses, as far as that is known."""
    return sorted({each.offered_by for rule in rules for each in (rule, *rule.alike) if each.offered_by is not None})


def word_evidence(found: Explanation) -> str:
    if found.n_examples is None:
        return "Support and precision are not known: no examples are at hand, and the model carries no counts of any."
    examples = count(found.n_examples, "training example")
    return (
        f"Support is the share of the client's {examples} on which a rule fires, precision the share of these about "
        "which it is right, as to the class that it says most of."
    )


def word_reading(found: Explanation) -> str:
    """How many rules there are, and how to read them."""
    return f"{word_parts(found)}." + (f" {word_evidence(found)}" if found.rules else "")


def word_parts(found: Explanation) -> str:
    """How many rules each part has."""
    n_rules = Counter(rule.part for rule in found.rules)
    owners = list_owners(found.rules)
    of = f", offered by {count(len(owners), 'client')}" if owners else ""
    if found.anatomy is not None and not found.anatomy.parts:
        return "There are no clauses, so there are no rules; --row N tells what the features of a row add up to"
    if found.label is not None and not found.rules:
        return f"No rule speaks of class {found.label}; this client chooses among {', '.join(found.list_choices())}"
    speak = f" that speak of class {found.label}" if found.label is not None else ""
    total = f"{count(len(found.rules), 'rule')}{speak}"
    if len(n_rules) < 2:
        return f"{total}{of}"
    parts = ", ".join(f"{n:,} {part}{of if part == 'pooled' else ''}" for part, n in n_rules.items())
    return f"{total}: {parts}"


def word_voice(voice: Voice) -> str:
    """Where a clause is from, and how far it speaks where that is not once and for all."""
    how_far = f"{voice.speaks:g} times" if voice.speaks > 1 else f"speaks {format_amount(voice.speaks)}"
    return " · ".join(filter(None, [word_origin(voice.rule), "" if voice.speaks == 1 else how_far]))


def word_verdict(row: RowExplanation) -> str:
    if row.label is None:
        return f"Row {row.row}: {row.predicted} is predicted"
    truth = "which it is" if row.label == row.predicted else f"but it is {row.label}"
    return f"Row {row.row}: {row.predicted} is predicted, {truth}"


def word_spoken(voices: Sequence[Voice], label: str | None) -> str:
    """How many clauses of each part spoke."""
    parts = Counter[str]()
    for voice in voices:
        parts[voice.rule.part] += 1 + len(voice.rule.alike)
    of = f" of class {label}" if label is not None else ""
    named = ", ".join(f"{n:,} {part}" for part, n in parts.items()) if len(parts) > 1 else ""
    return f"{count(parts.total(), 'clause')} spoke{of}" + (f": {named}" if named else "")


def list_sums(row: RowExplanation) -> tuple[dict[str, tuple[float, ...]], list[int]]:
    """Columns by name, and classes in the order of their scores, the best first."""
    says_all = len(row.sums) == 1 or "logit" in row.sums
    columns = row.sums if says_all else row.sums | {"score": row.scores}
    return columns, sorted(range(len(row.classes)), key=lambda k: -row.scores[k])


def format_sum(name: str, amount: float) -> str:
    if name == "chance":
        return format_share(amount)
    return f"{amount:.3g}" if name == "distance" else format_amount(amount)


def count(n: int, thing: str) -> str:
    return f"{n:,} {thing}" if n == 1 else f"{n:,} {thing}s"


def begin(text: str) -> str:
    """As a sentence does."""
    return text[:1].upper() + text[1:]
