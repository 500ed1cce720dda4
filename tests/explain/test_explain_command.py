"""laconic explain: what a terminal shows, what a page holds, what is refused."""

import html
import json
import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest
from explained import CASES

import laconic
from browser import browse
from laconic.explain.page import build_page
from laconic.explain.text import as_text
from laconic.explaining import explain_client
from laconic.runs.client_models import read_client, read_examples
from test_cli import in_turn, start


def explain(*commands: list[object]) -> list[str]:
    """What each command line says, all of them in one process, as most of a short one's time goes into imports."""
    answers, _ = in_turn(*(["explain", *map(str, command)] for command in commands))
    assert all(answer.code == 0 for answer in answers), answers
    return [answer.out for answer in answers]


# ---------------------------------------------------------------- on a terminal
def test_rules_of_a_table_are_told_in_the_names_of_its_columns(cellar: Path) -> None:
    (text,) = explain([cellar, "--client", "cellar 1", "--top", 2])
    assert text.startswith("fedtm model of client 1 (cellar 1) on wine\n")
    assert re.search(r"-?\+?\d+ to Barolo · support \d+ % · precision \d+ %", text)
    assert re.search(r"IF .*(alcohol|proline|flavanoids|hue) (<=|>) [\d.]+", text)
    assert text.count("IF ") == 6  # two of each class


def test_one_class_may_be_asked_for_by_name_or_by_number(cellar: Path) -> None:
    by_name, by_number = explain(*([cellar, "--client", 1, "--class", given] for given in ("Grignolino", 1)))
    assert [line.split(":")[0] for line in by_name.splitlines() if line.startswith("class ")] == ["class Grignolino"]
    assert by_name == by_number


def test_clauses_of_images_are_drawn_side_by_side(runs) -> None:
    command = [runs["patches"], "--client", 0, "--top", 3]
    text, of_class = explain(command, [*command, "--class", 0])
    assert "┌──────┐" in text  # a patch of three pixels, two characters each
    assert text.count("┌──────┐") >= 6
    assert "IF" not in text
    assert "IF" in of_class


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("row", [None, 0])
def test_every_kind_of_model_is_told_within_the_width(row, case, runs) -> None:
    found = explain_client(read_client(runs[case], 0), runs[case], row=row)
    for width in (80, 118):
        lines = as_text(found, width=width, top=3).splitlines()
        assert max(map(len, lines)) <= width
        assert lines[0].startswith(f"{CASES[case][0]} model of client 0")


def test_a_row_shows_private_beside_pooled(runs) -> None:
    (text,) = explain([runs["pooled-patches"], "--client", 0, "--row", 1, "--top", 50])
    assert re.search(r"class +pooled +private +bias +shares +score", text)
    assert re.search(r"\d+ clauses spoke: (\d+ pooled, \d+ private|\d+ private, \d+ pooled)", text)
    assert re.search(r"offered by\s+client \d", text)


def test_a_row_out_of_a_file_is_explained_by_a_model_alone(cellar: Path, tmp_path: Path) -> None:
    model = read_client(cellar, 1)
    model.save(tmp_path / "m.safetensors")
    rows, _ = read_examples(cellar, 1, "test")
    np.savez(tmp_path / "rows.npz", rows=rows)
    table = [",".join(model.about.features), *(",".join(map(repr, row)) for row in rows.tolist())]
    (tmp_path / "rows.csv").write_text("\n".join(table))
    told = explain(
        *([tmp_path / "m.safetensors", "--rows", tmp_path / f"rows.{kind}", "--row", 2] for kind in ("npz", "csv"))
    )
    assert told[0] == told[1]
    assert f"Row 2: {model.predict(rows)[2]} is predicted." in told[0]


def test_json_has_all_rules_and_the_row(runs) -> None:
    (text,) = explain([runs["cs-pfedtm"], "--client", 0, "--row", 0, "--json"])
    told = json.loads(text)
    assert len(told["rules"]) == len(read_client(runs["cs-pfedtm"], 0).rules())
    assert {"part", "votes", "literals", "support", "precision", "text"} <= told["rules"][0].keys()
    assert set(told["row"]["sums"]) == {"private", "shared"}


def test_export_leaves_counts_of_private_examples_out_if_told_to(runs, tmp_path: Path) -> None:
    command = ["export", str(runs["fedtm"]), "--client", "0", "-o"]
    (with_counts, without), _ = in_turn(
        [*command, str(tmp_path / "with.safetensors")], [*command, str(tmp_path / "not.safetensors"), "--no-evidence"]
    )
    assert (with_counts.code, without.code) == (0, 0)
    assert laconic.load(tmp_path / "with.safetensors").evidence
    assert laconic.load(tmp_path / "not.safetensors").evidence is None


# ---------------------------------------------------------------- refused
def test_what_is_not_there_is_answered_with_what_is(runs, cellar: Path, tmp_path: Path) -> None:
    read_client(cellar, 1).save(tmp_path / "m.safetensors")
    fedtm, alone = str(runs["fedtm"]), str(tmp_path / "m.safetensors")
    refused = {
        (fedtm, "--client", "77"): "has 0 to 4",
        (fedtm,): "say whose model is wanted: --client 0",
        (str(cellar), "--client", "0", "--class", "Merlot"): "the classes are Barolo, Grignolino",
        (str(cellar), "--client", "0", "--row", "500"): r"row 500 is not there; there are 0 to \d+",
        (alone, "--row", "0"): "--rows FILE.npz",
        (alone, "--client", "2"): "is the model of client 1, not of 2",
    }
    answers, _ = in_turn(*(["explain", *command] for command in refused))
    for answer, due in zip(answers, refused.values(), strict=True):
        assert (answer.code, answer.out) == (2, "")
        assert re.search(due, answer.err)


# ---------------------------------------------------------------- as a page
def root_of(document: str) -> str:
    return re.search(r"<html[^>]*>", document)[0]


@pytest.mark.parametrize("case", CASES)
def test_a_page_needs_no_other_file(case, runs) -> None:
    page = build_page(explain_client(read_client(runs[case], 0), runs[case], row=0), top=2)
    assert not re.search(r"https?:|@import|url\(|<link|<iframe|<script", page)
    assert all(source.startswith("data:image/png;base64,") for source in re.findall(r'src="([^"]*)"', page))
    assert {target[0] for target in re.findall(r'href="([^"]*)"', page)} == {"#"}
    assert "default-src 'none'" in page


def test_a_page_has_the_rules_with_pictures_and_words(runs, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    assert explain([runs["patches"], "--client", 0, "--top", 2, "-o", out]) == [f"explanation: {out}\n"]
    page = out.read_text()
    rules = read_client(runs["patches"], 0).rules()
    assert page.count('<li class="rule') == sum(
        min(2, [r.label for r in rules].count(c)) for c in {r.label for r in rules}
    )
    assert page.count('<img class="patch"') == page.count('<img class="place"') == page.count('<li class="rule')
    assert "pixel(" in page


def test_names_from_the_data_cannot_become_code(cellar: Path) -> None:
    page = build_page(explain_client(read_client(cellar, 0), cellar, row=0), top=3)
    assert "<b>" not in page
    assert "&lt;b&gt;Barbera" in page


@pytest.mark.parametrize("width", [400, 1300])
@pytest.mark.parametrize("case", ["pooled-patches", "fedpurin"])
def test_nothing_is_wider_than_the_window(case, width, runs, tmp_path: Path) -> None:
    page = build_page(explain_client(read_client(runs[case], 0), runs[case], row=0), top=4)
    frame, shot = tmp_path / "frame.html", tmp_path / "shot.png"
    frame.write_text(
        f'<iframe style="border:0;width:{width}px;height:900px" srcdoc="{html.escape(page)}"></iframe><script>'
        "onload = () => { const root = frames[0].document.documentElement;"
        "document.documentElement.dataset.overflow = root.scrollWidth > root.clientWidth ? 'yes' : 'no';"
        "document.documentElement.dataset.drawn = [...frames[0].document.images].every(i => i.naturalWidth); }</script>"
    )
    root = root_of(browse(frame, tmp_path, f"--window-size={width + 100},1000", "--dump-dom", f"--screenshot={shot}"))
    assert 'data-overflow="no"' in root
    assert 'data-drawn="true"' in root
    assert shot.stat().st_size > 10_000


def test_the_guide_says_what_its_example_prints(tmp_path: Path) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "explain.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", guide, re.DOTALL)
    done = start([sys.executable, "-c", code[0]], tmp_path)
    assert done.code == 0, done.err
    assert done.out == code[1]
    shown = re.search(r"\$ laconic (explain runs/wine .*)\n([^`]*)```", guide)
    (answer,), _ = in_turn(shlex.split(shown[1]), folder=tmp_path)
    assert answer.out == shown[2]
