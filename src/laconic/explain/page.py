"""An explanation as one HTML file that needs nothing else: no script, no fonts, pictures inside."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.explain.explanation import Explanation, pick_top, pick_voices
from laconic.explain.row import RowExplanation, Voice
from laconic.explain.rules import ModelRule
from laconic.explain.words import (
    WHAT_IS_CRITICAL,
    begin,
    count,
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
from laconic.files import write_atomically
from laconic.pages import Section, show_page
from laconic.tsetlin.picture import ANY, HIGH, LOW, MIDDLE, as_png, picture_panels

SHORT = 6  # literals that are shown without being asked for


def write_page(found: Explanation, out: str | Path, *, top: int) -> None:
    """top: rules of each class and part, and clauses that speak of a row."""
    write_atomically(Path(out), build_page(found, top=top).encode())


def build_page(found: Explanation, *, top: int) -> str:
    sections: list[Section] = []
    if found.row is not None:
        sections.append(Section("row", f"Row {found.row.row}", show_row(found, found.row, top)))
    if found.layers:
        sections.append(Section("layers", "Layers", show_layers(found)))
    if found.anatomy is not None:
        sections.append(Section("rules", "Rules", show_reading(found)))
    for place, (label, rules) in enumerate(found.by_class().items()):
        sections.append(Section(f"class-{place}", f"Class {label}", show_class(found, label, rules, top)))
    sections.append(Section("origin", "Where it comes from", show_origin(found), read_rule_style()))
    return show_page(
        brand="Laconic explanation",
        title=found.title,
        lead=found.lead,
        sections=sections,
        footer=f"laconic {found.portable.about.laconic}",
    )


def read_rule_style() -> str:
    """For sections that show rules."""
    return files("laconic.explain").joinpath("page.css").read_text("utf-8")


# ---------------------------------------------------------------- rules
def show_reading(found: Explanation) -> str:
    text = f'<p class="lead">{escape(word_reading(found))}</p>'
    return text + (show_legend(found) if found.draws() and found.row is None else "")


def show_legend(found: Explanation) -> str:
    cells = {"the lowest values": LOW, "middle ones": MIDDLE, "the highest": HIGH, "any": np.full(3, ANY)}
    items = "".join(
        f'<li><i style="background:rgb({",".join(map(str, rgb.tolist()))})"></i>{name}' for name, rgb in cells.items()
    )
    is_moved = any(not found.machine_of(rule).shape.is_flat for rule in found.rules)
    where = "; the small picture shows dark where in the image the patch may lie" if is_moved else ""
    return f'<p class="note">What a clause wants of each pixel{where}:</p><ul class="legend-cells">{items}</ul>'


def show_class(found: Explanation, label: str, rules: Sequence[ModelRule], top: int) -> str:
    n_for = sum(dict(rule.votes)[label] > 0 for rule in rules)
    text = f'<p class="lead">{count(n_for, "rule")} for it, {len(rules) - n_for} against it.</p>'
    parts = pick_top(rules, top)
    shown = []
    for part, some in parts.items():
        heading = f'<h3 class="after">{escape(part.capitalize())}</h3>' if len(parts) > 1 else ""
        cards = "".join(show_rule(found, rule, word_amounts(rule.votes, label), word_origin(rule)) for rule in some)
        shown.append(f'{heading}<ul class="rules">{cards}</ul>')
    return text + "".join(shown)


def show_rules(found: Explanation, top: int) -> str:
    """Those that say most for a class, of each class in turn; of one that none speaks for, against it."""
    turns = []
    for label, rules in found.by_class().items():
        chosen = [rule for rule in rules if dict(rule.votes)[label] > 0] or rules
        turns += [(place, label, rule) for place, rule in enumerate(chosen)]
    turns = sorted(turns, key=lambda entry: entry[0])[:top]
    cards = "".join(
        show_rule(found, rule, word_amounts(rule.votes, label), word_origin(rule))
        for label in found.portable.about.classes
        for _, its_label, rule in turns
        if its_label == label
    )
    return f'<ul class="rules">{cards}</ul>'


def show_rule(found: Explanation, rule: ModelRule, said: str, origin: str) -> str:
    """said: what it adds to which class."""
    big, _, more = said.partition(", ")
    extra = f'<p class="note words">{escape(more)}</p>' if more else ""
    return (
        f'<li class="rule c-{escape(rule.part)}"><header><span class="vote">{escape(big)}</span>'
        f"<small>{escape(origin)}</small></header>{extra}{show_pictures(found, rule)}{show_facts(rule)}"
        f"{show_words(found, rule)}</li>"
    )


def show_pictures(found: Explanation, rule: ModelRule) -> str:
    if not found.draws():
        return ""
    machine = found.machine_of(rule)
    *patches, place = picture_panels(machine, rule.bank, rule.clause)
    images = [show_image(panel, "what the clause wants of each pixel") for panel in patches]
    if not machine.shape.is_flat:
        images.append(show_image(place, "where in the image it may lie", "place"))
    return f'<div class="panels">{"".join(images)}</div>'


def show_image(picture: NDArray[np.uint8], alt: str, kind: str = "patch") -> str:
    data = base64.b64encode(as_png(picture)).decode()
    return f'<img class="{kind}" alt="{escape(alt)}" src="data:image/png;base64,{data}">'


def show_facts(rule: ModelRule) -> str:
    facts = {"support": rule.support, "precision": rule.precision}
    rows = "".join(
        f"<div><dt>{name}</dt><dd>{show_meter(share)}</dd><dd>{format_share(share)}</dd></div>"
        for name, share in facts.items()
        if not isnan(share)
    )
    return f'<dl class="facts">{rows}</dl>' if rows else ""


def show_meter(share: float) -> str:
    return f"<meter min=0 max=1 value={share:.4f}></meter>"


def show_words(found: Explanation, rule: ModelRule) -> str:
    words = f'<p class="words">IF {escape(rule.condition)}</p>'
    if len(rule.literals) <= SHORT or not found.draws():
        return words
    return f"<details><summary>In words, {count(len(rule.literals), 'condition')}</summary>{words}</details>"


# ---------------------------------------------------------------- a row
def show_row(found: Explanation, row: RowExplanation, top: int) -> str:
    image = "" if row.pixels is None else show_pixels(row.pixels)
    notes = "".join(f'<p class="note">{escape(begin(note))}.</p>' for note in row.notes)
    voices = pick_voices(row, found.label)
    heard = ""
    if voices:
        cards = "".join(show_voice(found, voice) for voice in voices[:top])
        said = escape(f"{word_spoken(voices, found.label)}. Those that said most:")
        legend = show_legend(found) if found.draws() else ""
        heard = f'<h3 class="after">{said}</h3>{legend}<ul class="rules">{cards}</ul>'
    verdict = f'<div class="verdict">{image}<p class="big">{escape(word_verdict(row).partition(": ")[2])}</p></div>'
    return verdict + notes + show_sums(row) + heard


def show_pixels(pixels: NDArray[Any]) -> str:
    """Of an image, the darkest of its values black and the brightest white."""
    low, high = float(pixels.min()), float(pixels.max())
    grey = ((pixels.astype(np.float64) - low) / (high - low or 1) * 255).astype(np.uint8)
    channels = grey[..., None] if grey.ndim == 2 else grey
    rgb = channels if channels.shape[2] == 3 else channels.mean(axis=2, keepdims=True).astype(np.uint8).repeat(3, 2)
    return show_image(rgb, "the row as an image")


def show_sums(row: RowExplanation) -> str:
    columns, order = list_sums(row)
    lines = []
    for k in order:
        won = ' class="won"' if row.classes[k] == row.predicted else ""
        cells = "".join(f"<td{won}>{format_sum(name, sums[k])}" for name, sums in columns.items())
        lines.append(f'<td class="w">{escape(row.classes[k])}{cells}')
    return show_table(["Class", *columns], lines, "Sums that decide", kind="sums")


def show_voice(found: Explanation, voice: Voice) -> str:
    return show_rule(found, voice.rule, word_amounts(voice.amounts, found.label), word_voice(voice))


# ---------------------------------------------------------------- a network, and where a model comes from
def show_layers(found: Explanation) -> str:
    is_known = any(layer.n_critical is not None for layer in found.layers)
    text = "A neural network has no rules: it decides by sums over all its weights."
    if is_known:
        text += f" {WHAT_IS_CRITICAL}"
    lines = [
        f'<td class="w">{escape(layer.name)}<td>{layer.n_parameters:,}'
        + "".join(f"<td>{cell}" for cell in (format_critical(layer) if is_known else ()))
        for layer in found.layers
    ]
    headings = ["Layer", "Parameters", *(["Critical", "Share"] if is_known else [])]
    tables = [show_table(headings, lines, "Layers")]
    for layer in found.layers:
        if layer.is_head and len(layer.shape) > 1 and layer.critical_rows:
            named = zip(found.portable.about.classes, layer.critical_rows, strict=True)
            rows = [
                f'<td class="w">{escape(name)}<td>{show_meter(share)}<td>{format_share(share)}' for name, share in named
            ]
            tables.append(
                show_table(["Class", f"Critical weights of {layer.name}", "Share"], rows, layer.name, n_words=2)
            )
    return f'<p class="lead">{text}</p>{"".join(tables)}'


def show_origin(found: Explanation) -> str:
    about = found.portable.about
    facts = {
        "Method": about.method,
        "Data": about.data,
        "Client": f"{about.client}" + (f" ({about.name})" if about.name else ""),
        "Seed": str(about.seed),
        "Rounds": str(about.rounds),
        "Commit": about.git or "not known",
        "Run": about.run[:16],
    }
    lines = [f'<td class="w">{name}<td class="w">{escape(value)}' for name, value in facts.items()]
    return show_table(["What", "Value"], lines, "Where the model comes from", n_words=2)


def show_table(headings: Iterable[str], lines: Iterable[str], label: str, *, n_words: int = 1, kind: str = "") -> str:
    """lines: cells of a row each, as HTML. n_words: columns at the left that hold words."""
    heads = "".join(
        f'<th scope="col"{" class=w" if k < n_words else ""}>{escape(begin(name))}' for k, name in enumerate(headings)
    )
    body = "".join(f"<tr>{line}" for line in lines)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(label)}"><table class="{kind}">'
        f"<thead><tr>{heads}<tbody>{body}</table></div>"
    )
