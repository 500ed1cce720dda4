"""Figures and tables as HTML."""

from collections.abc import Sequence
from html import escape

from laconic.report.figure import Amount, Cells, Figure
from laconic.report.tables import NONE

MOST_RADIOS = 5  # more views than this are chosen from a list
MOST_NOTES = 24  # small plots; the tables hold the rest
MOST_ROWS = 60  # of a table; the script shows more page by page


def show_figure(figure: Figure) -> str:
    text = f'<p class="lead">{escape(figure.text)}</p>' if figure.text else ""
    if figure.kind == "none":
        first, *others = (show_table(cells) for cells in figure.tables)
        more = f"<details><summary>{len(others)} more</summary>{''.join(others)}</details>" if others else ""
        return text + first + more
    return f'{text}<figure data-figure="{figure.name}">{show_plot(figure)}{show_folded(figure.tables)}</figure>'


def show_plot(figure: Figure) -> str:
    label = escape(f"{figure.title}. Arrow keys step through the values; the table holds them all.")
    return f'{show_views(figure)}<ul class="legend"></ul><div class="plot" data-label="{label}"></div>'


def show_views(figure: Figure) -> str:
    labels = [escape(view["label"]) for view in figure.views]
    if len(labels) < 2:
        return ""
    if len(labels) > MOST_RADIOS:
        options = "".join(f'<option value="{k}">{label}</option>' for k, label in enumerate(labels))
        return f'<label class="views">Show <select name="{figure.name}">{options}</select></label>'
    radios = "".join(
        f'<label><input type="radio" name="{figure.name}" value="{k}"{" checked" if k == 0 else ""}>'
        f"<span>{label}</span></label>"
        for k, label in enumerate(labels)
    )
    return f'<fieldset class="views"><legend>Show</legend>{radios}</fieldset>'


def show_notes(figures: Sequence[Figure], once: Cells | None, lacking: Sequence[str]) -> str:
    """once: numbers of one round. lacking: what methods declare and did not note."""
    small = "".join(
        f'<figure data-figure="{figure.name}" data-small><h3>{escape(figure.title)}</h3>{show_plot(figure)}</figure>'
        for figure in figures[:MOST_NOTES]
    )
    parts = [f'<div class="smalls">{small}</div>'] if small else []
    if len(figures) > MOST_NOTES:
        parts.append(f'<p class="note">{len(figures) - MOST_NOTES} more are in the tables.</p>')
    if figures:
        parts.append(show_folded([cells for figure in figures for cells in figure.tables]))
    if once is not None:
        parts.append(show_table(once))
    if lacking:
        parts.append(f'<p class="note">Declared, but not noted in these runs: {escape("; ".join(lacking))}.</p>')
    return "".join(parts)


def show_folded(tables: Sequence[Cells]) -> str:
    """The first that sorts is worth seeing at once."""
    shown = [show_table(cells) for cells in tables]
    if tables[0].is_sortable:
        return "".join(
            f"<details{' open' if k == 0 else ''}><summary>{escape(cells.caption)}</summary>{table}</details>"
            for k, (cells, table) in enumerate(zip(tables, shown, strict=True))
        )
    title = "As a table" if len(tables) == 1 else f"As {len(tables)} tables"
    return f"<details><summary>{title}</summary>{''.join(shown)}</details>"


def show_table(cells: Cells) -> str:
    """Without the end tags HTML lets us leave out: a partition has a cell for each client and class."""
    is_wordy = [not all(is_numeric(row[k]) for row in cells.rows) for k in range(len(cells.headings))]
    heads = "".join(
        f'<th scope="col"{" class=w" if wordy else ""}>'
        + (f'<button type="button">{show_heading(heading)}</button>' if cells.is_sortable else show_heading(heading))
        for heading, wordy in zip(cells.headings, is_wordy, strict=True)
    )
    body = "".join(
        "<tr>" + "".join(show_cell(cell, wordy) for cell, wordy in zip(row, is_wordy, strict=True))
        for row in cells.rows
    )
    caption = f"<caption>{escape(cells.caption)}</caption>" if cells.caption else ""
    kind = ' class="sortable"' if cells.is_sortable else ""
    paged = " data-paged" if len(cells.rows) > MOST_ROWS else ""
    label = escape(cells.caption or "Table")
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{label}"{paged}><table{kind}>{caption}'
        f"<thead><tr>{heads}<tbody>{body}</table></div>"
    )


def show_heading(heading: str) -> str:
    """What stands before a line break goes above, as the name of several columns."""
    over, _, name = heading.rpartition("\n")
    return f"<span>{escape(over)}</span>{escape(name)}" if over else escape(name)


def is_numeric(cell: str | Amount) -> bool:
    """Also what has a sign before it or a unit behind it, or is missing."""
    text = cell.text if isinstance(cell, Amount) else cell
    return text.lstrip("+-")[:1].isdigit() or text == NONE


def show_cell(cell: str | Amount, wordy: bool) -> str:
    kind = " class=w" if wordy else ""
    if isinstance(cell, Amount):
        return f"<td{kind} data-v={cell.value:.6g}>{escape(cell.text)}"
    return f"<td{kind}>{escape(cell)}"
