import json

import pytest
from made_runs import write_run

from laconic.report import read_run, write_report
from laconic.report.page import build_page
from laconic.report.panels import (
    MOST_DRAWN,
    plot_budget,
    plot_gain,
    plot_models,
    plot_pairs,
    plot_split,
)
from laconic.report.plots import plot_notes
from laconic.report.tables import group_runs

PANELS = (plot_budget, plot_gain, plot_models, plot_pairs, plot_split)


def read_groups(*folders):
    return group_runs([read_run(folder) for folder in folders])


def lines(folder, name):
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def test_a_panel_appears_only_where_the_records_hold_what_it_shows(tmp_path):
    plain, split = write_run(tmp_path / "plain"), write_run(tmp_path / "split", method="cs-pfedtm", splits=True)
    assert [plot(read_groups(plain)) for plot in PANELS] == [None] * 5
    found = [figure.name for plot in PANELS if (figure := plot(read_groups(plain, split))) is not None]
    assert found == ["budget", "models", "pairs", "split"]  # nobody learns alone
    assert 'id="pairs"' not in build_page([read_run(plain)])


def test_gains_are_paired_by_client_and_counted(tmp_path):
    alone = write_run(tmp_path / "alone", method="local-tm", level=0.85)
    helped = write_run(tmp_path / "helped", method="fedtm", level=0.95)
    figure = plot_gain(read_groups(helped, alone))
    scores = {folder.name: read_run(folder).scores for folder in (alone, helped)}
    (series,) = figure.views[0]["series"]
    assert series["dots"] == [
        (before.client, pytest.approx(before.accuracy), after.accuracy)
        for before, after in zip(scores["alone"], scores["helped"], strict=True)
    ]
    gains = [after.accuracy - before.accuracy for before, after in zip(*scores.values(), strict=True)]
    n_better, n_worse = sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)
    assert f"of 6 clients {n_better} gain, {n_worse} lose" in series["label"]
    assert figure.tables[0].rows[0][1:4] == (str(n_better), str(n_worse), str(6 - n_better - n_worse))


def test_two_models_of_a_client_are_set_against_each_other_as_it_noted_them_last(tmp_path):
    folder = write_run(tmp_path / "run", splits=True)
    scores = lines(folder, "clients.jsonl")
    for line in scores:
        if (line["round"], line["client"]) == (4, 2):
            line["notes"] = {}  # not asked in the last round
    (folder / "clients.jsonl").write_text("".join(json.dumps(line) + "\n" for line in scores))
    (view,) = plot_models(read_groups(folder)).views
    assert view["label"] == "shared against private"
    (series,) = view["series"]
    assert series["dots"][1] == (1, 0.66, 0.58)
    assert series["dots"][2] == (2, 0.72, 0.56)
    assert "of 6 clients 0 do better with shared, 6 with private" in series["label"]


def test_the_split_is_shown_by_round_beside_what_the_papers_count_would_share(tmp_path):
    groups = read_groups(write_run(tmp_path / "run", splits=True))
    clauses, similarity = plot_split(groups).views
    assert [(one["label"], one["points"][-1][2]) for one in clauses["series"]] == [
        ("shared", 24),
        ("private", 76),
        ("shared, by the paper’s count of these bytes", 20),
    ]
    assert similarity["series"][0]["points"][0][:3] == [1, 1, 0.4]
    noted = [figure.title for figure in plot_notes(groups, left_out={"n_shared"})]
    assert "n_private" in noted
    assert "n_shared" not in noted


def test_a_matrix_is_drawn_with_like_clients_side_by_side_and_none_beside_itself(tmp_path):
    folder = write_run(tmp_path / "run", splits=True)
    (view,) = plot_pairs(read_groups(folder)).views
    (noted,) = lines(folder, "pairs.jsonl")
    assert sorted(view["across"]) == noted["clients"]
    assert [client % 3 for client in view["across"][::2]] == [client % 3 for client in view["across"][1::2]]
    assert all(view["values"][k][k] is None for k in range(6))
    a, b = view["across"][:2]
    assert view["values"][0][1] == noted["values"][a][b]


def test_of_many_clients_a_matrix_draws_some_and_says_so(tmp_path):
    figure = plot_pairs(read_groups(write_run(tmp_path / "run", clients=150, rounds=1, splits=True)))
    assert len(figure.views[0]["across"]) == 75 <= MOST_DRAWN
    assert "some are left out here" in figure.text


def test_a_matrix_of_one_client_is_not_drawn(tmp_path):
    assert plot_pairs(read_groups(write_run(tmp_path / "run", clients=1, splits=True))) is None


def test_the_budget_stands_over_what_the_busiest_client_took(tmp_path):
    folder = write_run(tmp_path / "run", splits=True)
    figure = plot_budget(read_groups(folder))
    spent, budget = figure.views[0]["series"]
    assert [point[2] for point in spent["points"]] == [line["busiest_bytes"] for line in lines(folder, "metrics.jsonl")]
    assert {point[2] for point in budget["points"]} == {2_000_000}
    assert budget["label"] == "budget of 2.00 MB"
    most = max(point[2] for point in spent["points"])
    assert figure.tables[0].rows[0][-3:] == ("24", "20", f"{24 * 2_000_000 // most:.4g}")


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('"values": [[', '"values": [[0.5, ', r"pairs\.jsonl:1: 6 rows of values; a row and a column for each of 6"),
        ('"values": [[', '"values": [["a", ', r"pairs\.jsonl:1: values\[0\]\[0\] is 'a'; a number was expected"),
        ('"clients": [0', '"clients": [-1', r"pairs\.jsonl:1: clients\[0\] is '-1'; a whole number from 0 up"),
    ],
)
def test_a_damaged_matrix_is_refused_with_its_line(tmp_path, old, new, complaint):
    folder = write_run(tmp_path / "run", splits=True)
    text = (folder / "pairs.jsonl").read_text()
    assert old in text
    (folder / "pairs.jsonl").write_text(text.replace(old, new, 1))
    with pytest.raises(ValueError, match=complaint):
        write_report([folder], tmp_path / "page.html")
