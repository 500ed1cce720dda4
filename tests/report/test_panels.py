import json

import pytest
from made_runs import PANELS, write_json, write_run

from laconic.report import read_run
from laconic.report.budget import plot_budget
from laconic.report.noted import plot_declared, plot_notes
from laconic.report.page import build_page
from laconic.report.tables import group_runs


def read_groups(*folders):
    return group_runs([read_run(folder) for folder in folders])


def lines(folder, name):
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def find(groups, title):
    return next((figure for figure in plot_declared(groups)[0] if figure.title == title), None)


def test_a_panel_appears_where_a_method_declares_it_and_the_records_hold_what_it_shows(tmp_path):
    plain, split = write_run(tmp_path / "plain"), write_run(tmp_path / "split", method="anything", splits=True)
    assert plot_declared(read_groups(plain)) == ([], [])
    assert plot_budget(read_groups(plain)) is None
    figures, lacking = plot_declared(read_groups(plain, split))
    assert [figure.title for figure in figures] == ["Two models", "Shared and private", "Donors"]
    assert not lacking
    assert plot_budget(read_groups(plain, split)).views[0]["series"][0]["label"] == "anything"


def test_a_note_that_was_renamed_is_drawn_plainly_and_the_page_says_what_lacks(tmp_path):
    folder = write_run(tmp_path / "run", splits=True)
    metrics = folder / "metrics.jsonl"
    metrics.write_text(metrics.read_text().replace('"similarity"', '"likeness"'))
    page = build_page([read_run(folder)])
    assert "Declared, but not noted in these runs: fedtm: similarity for “Shared and private”." in page
    assert "likeness" in [figure.title for figure in plot_notes(read_groups(folder))[0]]


def test_a_run_of_before_panels_were_declared_has_its_notes_as_curves(tmp_path):
    folder = write_run(tmp_path / "run", splits=True)
    (folder / "panels.json").unlink()
    groups = read_groups(folder)
    assert plot_declared(groups) == ([], [])
    assert {"n_shared", "n_private", "similarity"} <= {figure.title for figure in plot_notes(groups)[0]}


def test_panels_of_one_title_have_places_of_their_own(tmp_path):
    folder = write_run(tmp_path / "run", splits=True)
    write_json(folder / "panels.json", panels=[PANELS[0], PANELS[3] | {"title": "Two models"}])
    figures, _ = plot_declared(read_groups(folder))
    assert [figure.name for figure in figures] == ["panel-two-models", "panel-two-models-1"]


def test_a_damaged_declaration_is_refused(tmp_path):
    folder = write_run(tmp_path / "run")
    write_json(folder / "panels.json", panels=[PANELS[0] | {"kind": "pie"}])
    with pytest.raises(ValueError, match=r"panels\.json: panels\[0\].kind is 'pie'; \"lines\", \"clients\""):
        read_run(folder)


def test_two_models_of_a_client_are_set_against_each_other_as_it_noted_them_last(tmp_path):
    folder = write_run(tmp_path / "run", splits=True)
    scores = lines(folder, "clients.jsonl")
    for line in scores:
        if (line["round"], line["client"]) == (4, 2):
            line["notes"] = {}  # not asked in the last round
    (folder / "clients.jsonl").write_text("".join(json.dumps(line) + "\n" for line in scores))
    (view,) = find(read_groups(folder), "Two models").views
    assert view["label"] == "shared against private"
    (series,) = view["series"]
    assert series["dots"][1] == [1, 0.66, 0.58]
    assert series["dots"][2] == [2, 0.72, 0.56]
    assert "of 6 clients 0 do better with shared, 6 with private" in series["label"]


def test_seeds_have_one_entry_of_the_legend_and_their_clients_say_which(tmp_path):
    groups = read_groups(*(write_run(tmp_path / f"{seed}", seed=seed, splits=True) for seed in (0, 1, 2)))
    (series,) = find(groups, "Two models").views[0]["series"]
    assert len(series["dots"]) == 18
    assert {dot[3] for dot in series["dots"]} == {0, 1, 2}


def test_numbers_declared_together_are_one_picture_and_not_shown_again(tmp_path):
    groups = read_groups(write_run(tmp_path / "run", splits=True))
    clauses, similarity = find(groups, "Shared and private").views
    assert [(one["label"], one["points"][-1][2]) for one in clauses["series"]] == [
        ("shared", 24),
        ("private", 76),
        ("by the paper", 20),
    ]
    assert clauses["y"]["label"] == "clauses"
    assert similarity["series"][0]["points"][0][:3] == [1, 1, 0.4]
    plain = {figure.title for figure in plot_notes(groups)[0]}
    assert "loss" in plain
    assert not plain & {"n_shared", "n_private", "similarity", "donor_1"}


def test_numbers_of_clients_are_named_seed_by_seed_and_never_averaged(tmp_path):
    names = [f"ward {k}" for k in range(6)]
    folders = [write_run(tmp_path / f"{seed}", seed=seed, splits=True, names=names) for seed in (0, 1)]
    figure = find(read_groups(*folders), "Donors")
    assert figure.kind == "none"
    assert [[row[1] for row in cells.rows] for cells in figure.tables] == [
        ["ward 1", "ward 2", "ward 3", "ward 4"],
        ["ward 2", "ward 3", "ward 4", "ward 5"],
    ]


def test_classes_that_clients_noted_are_named(tmp_path):
    folder = write_run(tmp_path / "run", names=["north"])
    scores = [line | {"notes": {"surest": line["client"] % 3}} for line in lines(folder, "clients.jsonl")]
    (folder / "clients.jsonl").write_text("".join(json.dumps(line) + "\n" for line in scores))
    write_json(folder / "panels.json", panels=[{"kind": "classes", "title": "Surest", "notes": {"surest": "class"}}])
    partition = folder / "partition.json"
    partition.write_text(partition.read_text().replace('["0", "1", "2"]', '["cat", "dog", "owl"]'))
    figure = find(read_groups(folder), "Surest")
    assert [[cell if isinstance(cell, str) else cell.text for cell in row] for row in figure.tables[0].rows[:3]] == [
        ["north", "cat"],
        ["1", "dog"],
        ["2", "owl"],
    ]
    assert not plot_notes(read_groups(folder))[0][3:]  # beside what the server noted: no mean of class numbers


def test_what_was_noted_in_one_round_is_a_number_and_no_curve(tmp_path):
    folder = write_run(tmp_path / "run")
    metrics = lines(folder, "metrics.jsonl")
    metrics[0]["notes"]["n_affordable"] = 14
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in metrics))
    figures, once = plot_notes(read_groups(folder))
    assert "n_affordable" not in [figure.title for figure in figures]
    assert once.rows == [["n_affordable", "0", "14"]]


def test_a_note_has_a_band_over_seeds(tmp_path):
    folders = [write_run(tmp_path / f"{seed}", seed=seed) for seed in (0, 1)]
    metrics = lines(folders[1], "metrics.jsonl")
    for line in metrics:
        line["notes"]["clauses_shared"] += 10
    (folders[1] / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in metrics))
    (series,) = next(f for f in plot_notes(read_groups(*folders))[0] if f.title == "clauses_shared").views[0]["series"]
    assert series["has_band"]
    assert series["points"][0] == [0, 0, 85, 80, 90]


def test_the_budget_stands_over_what_the_busiest_client_took(tmp_path):
    folder = write_run(tmp_path / "run", splits=True)
    figure = plot_budget(read_groups(folder))
    spent, budget = figure.views[0]["series"]
    busiest = [line["busiest_bytes"] for line in lines(folder, "metrics.jsonl")]
    assert [point[2] for point in spent["points"]] == busiest[1:]  # beside the set-up rounds would look alike
    assert {point[2] for point in budget["points"]} == {2_000_000}
    assert budget["is_limit"]
    assert budget["label"] == "budget of 2.00 MB"
    most = max(busiest)
    assert figure.tables[0].headings[-3:] == ["Clauses shared", "by the paper", "at the worst round’s bytes, about"]
    assert figure.tables[0].rows[0][-3:] == ["24", "20", f"{24 * 2_000_000 // most:.4g}"]


def test_methods_under_one_budget_share_its_line(tmp_path):
    folders = [write_run(tmp_path / method, method=method, splits=True) for method in ("fedtm", "tpfl")]
    labels = [one["label"] for one in plot_budget(read_groups(*folders)).views[0]["series"]]
    assert labels == ["fedtm", "tpfl", "budget of 2.00 MB"]
