"""An explanation for a terminal: folded to its width, clauses of images as pictures made of characters."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from laconic.explain.explanation import Explanation, pick_top, pick_voices
from laconic.explain.parts import CLAUSES
from laconic.explain.row import RowExplanation
from laconic.explain.rules import ModelRule
from laconic.explain.words import (
    WHAT_IS_CRITICAL,
    begin,
    count,
    format_amount,
    format_critical,
    format_share,
    format_sum,
    list_sums,
    word_amounts,
    word_origin,
    word_reading,
    word_spoken,
    word_verdict,
    word_voice,
)
from laconic.tsetlin.picture import set_side_by_side, text_panels

MOST_CLASSES = 12  # in a table of sums
GAP = "   "  # between pictures
HOW_TO_READ = "Fuller cells want higher values, dots the lowest, blank ones take any."


def as_text(found: Explanation, *, width: int, top: int) -> str:
    """top: rules of each class, and clauses that speak of a row."""
    lines = [found.title, *fold(found.lead, width)]
    if found.row is not None:
        lines += ["", *tell_row(found, found.row, width, top)]
    elif found.anatomy is None:
        lines += ["", *tell_layers(found, width)]
    else:
        lines += [*fold(word_reading(found), width), *tell_rules(found, width, top)]
    return "\n".join(line.rstrip() for line in lines)


# ---------------------------------------------------------------- rules
def tell_rules(found: Explanation, width: int, top: int) -> Iterator[str]:
    if found.draws():
        yield from fold(HOW_TO_READ, width)
    for label, rules in found.by_class().items():
        n_for = sum(dict(rule.votes)[label] > 0 for rule in rules)
        yield from ("", f"class {label}: {count(n_for, 'rule')} for it, {len(rules) - n_for:,} against it")
        for shown in pick_top(rules, top).values():
            if found.draws():
                yield from draw_rules(found, [(rule, list_facts(rule, label)) for rule in shown], width)
            if not found.draws() or found.label is not None:  # words of many pixels are long
                for rule in shown:
                    yield from tell_rule(rule, label, width)


def tell_rule(rule: ModelRule, label: str, width: int) -> Iterator[str]:
    facts = [f"support {format_share(rule.support)}", f"precision {format_share(rule.precision)}", word_origin(rule)]
    yield from fold(" · ".join(filter(None, [word_amounts(rule.votes, label), *facts])), width, "  ")
    yield from fold(f"IF {rule.condition}", width, "      ")


def list_facts(rule: ModelRule, label: str) -> list[str]:
    """As lines above its picture."""
    return [
        f"{format_amount(dict(rule.votes)[label])} {'' if rule.part == CLAUSES else rule.part}",
        f"{format_share(rule.support)} support",
        f"{format_share(rule.precision)} right",
    ]


def draw_rules(found: Explanation, rules: Sequence[tuple[ModelRule, list[str]]], width: int) -> Iterator[str]:
    """As many side by side as there is room for, with these lines above each."""
    line: list[list[str]] = []
    for rule, facts in rules:
        block = draw_rule(found, rule, facts)
        if line and sum(len(other[0]) + len(GAP) for other in line) + len(block[0]) > width:
            yield from set_side_by_side(line, GAP).splitlines()
            line = []
        line.append(block)
    if line:
        yield from set_side_by_side(line, GAP).splitlines()


def draw_rule(found: Explanation, rule: ModelRule, facts: Sequence[str]) -> list[str]:
    machine = found.machine_of(rule)
    panels = text_panels(machine, rule.bank, rule.clause)
    if machine.shape.is_flat:
        panels = panels[:-1]  # where it lies goes without saying
    picture = set_side_by_side(panels).splitlines()
    broad = max(map(len, picture))
    place = [] if rule.place == "anywhere" else [rule.place]
    told = [line for fact in (*facts, *place) for line in textwrap.wrap(fact, broad)]
    return [f"{line:{broad}}" for line in told + picture]


# ---------------------------------------------------------------- a row
def tell_row(found: Explanation, row: RowExplanation, width: int, top: int) -> Iterator[str]:
    yield from fold(f"{word_verdict(row)}.", width)
    for note in row.notes:
        yield from fold(f"{begin(note)}.", width)
    yield ""
    yield from tell_sums(row)
    voices = pick_voices(row, found.label)
    if not voices:
        return
    yield from ("", *fold(f"{word_spoken(voices, found.label)}. Those that said most:", width))
    if found.draws():
        yield from fold(HOW_TO_READ, width)
        blocks = [
            (v.rule, word_amounts(v.amounts, found.label).split(", ")[:2] + word_voice(v).split(" · "))
            for v in voices[:top]
        ]
        yield from draw_rules(found, blocks, width)
    if not found.draws() or found.label is not None:
        for voice in voices[:top]:
            said = [word_amounts(voice.amounts, found.label), word_voice(voice)]
            yield from fold(" · ".join(filter(None, said)), width, "  ")
            yield from fold(f"IF {voice.rule.condition}", width, "      ")


def tell_sums(row: RowExplanation) -> Iterator[str]:
    """Classes by score, best first."""
    columns, order = list_sums(row)
    table = [["class", *columns]]
    for k in order[:MOST_CLASSES]:
        mark = " <" if row.classes[k] == row.predicted else "  "
        table.append([row.classes[k] + mark, *(format_sum(name, sums[k]) for name, sums in columns.items())])
    yield from align(table)
    if len(order) > MOST_CLASSES:
        yield f"  and {len(order) - MOST_CLASSES} more, of lower scores"


# ---------------------------------------------------------------- a network
def tell_layers(found: Explanation, width: int) -> Iterator[str]:
    yield from fold(
        "A neural network has no rules: it decides by sums over all its weights. --row N tells what it makes of a row.",
        width,
    )
    is_known = any(layer.n_critical is not None for layer in found.layers)
    if is_known:
        yield from fold(WHAT_IS_CRITICAL, width)
    yield ""
    table = [["layer", "parameters", *(["critical", ""] if is_known else [])]]
    for layer in found.layers:
        table.append([layer.name, f"{layer.n_parameters:,}", *(format_critical(layer) if is_known else ())])
    yield from align(table)
    for layer in found.layers:
        if layer.is_head and len(layer.shape) > 1 and layer.critical_rows:
            names = found.portable.about.classes
            yield from ("", f"Critical weights of {layer.name}, class by class:")
            shares = (f"{name} {format_share(each)}" for name, each in zip(names, layer.critical_rows, strict=True))
            yield from fold(", ".join(shares), width, "  ")


def align(table: Sequence[Sequence[str]]) -> Iterator[str]:
    """A name at the left of each line, numbers behind it; words of headings stand below each other."""
    words = [heading.split() for heading in table[0]]
    height = max(map(len, words))
    heads = [[""] * (height - len(heading)) + heading for heading in words]
    lines = [*zip(*heads, strict=True), *table[1:]]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for name, *cells in lines:
        numbers = (f"{cell:>{broad}}" for cell, broad in zip(cells, widths[1:], strict=True))
        yield "  ".join([f"  {name:{widths[0]}}", *numbers])


def fold(text: str, width: int, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text,
        max(width, 30),
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=True,
        break_on_hyphens=False,
    )
