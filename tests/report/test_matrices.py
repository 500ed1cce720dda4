import json

import pytest
from made_runs import write_run

from browser import browse
from laconic.report import read_run, write_report
from laconic.report.matrices import plot_cosines, plot_heads, plot_matrices, plot_targets, scale
from laconic.report.page import build_page
from laconic.report.tables import group_runs

TARGETS = [[0.0, 3.0, 4.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.0, -2.0, 0.0, 0.0]]
COSINES = [[1.0, 0.0, -0.6], [0.0, 1.0, 0.0], [-0.6, 0.0, 1.0]]


def write_matrices(folder, *, of_heads=None):
    """Of the made run's 3 classes and 6 clients, in rounds 2 and 4; what came first is not what is shown."""
    lines = []
    for number, factor in ((2, 0.5), (4, 1.0)):
        noted = {
            "prototypes": ("class", "dimension", [0, 1, 2], [[factor * v for v in row] for row in TARGETS]),
            "prototype_cosine": ("class", "class", [0, 1, 2], COSINES),
        }
        if of_heads is not None:
            noted["head_norm"] = ("client", "class", list(range(len(of_heads))), of_heads)
        for name, (down, across, rows, values) in noted.items():
            named = {"round": number, "name": name, "down": down, "across": across}
            lines.append(json.dumps(named | {"rows": rows, "values": values}))
    (folder / "matrices.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return folder


def read_groups(*folders):
    return group_runs([read_run(folder) for folder in folders])


def test_panels_appear_only_where_matrices_were_noted(tmp_path):
    plain, noted = write_run(tmp_path / "plain"), write_matrices(write_run(tmp_path / "noted", method="fedproto"))
    assert [plot(read_groups(plain)) for plot in (plot_targets, plot_cosines, plot_heads)] == [None] * 3
    assert plot_heads(read_groups(noted)) is None
    assert 'id="targets"' not in build_page([read_run(plain)])
    page = build_page([read_run(plain), read_run(noted)])
    assert 'id="targets"' in page
    assert 'id="heads"' not in page


def test_the_last_targets_are_drawn_dimensions_across_and_measured_in_the_table(tmp_path):
    figure = plot_targets(read_groups(write_matrices(write_run(tmp_path / "run"))))
    (view,) = figure.views
    assert view["kinds"] == ["dimension", "class"]
    assert view["across"] == [0, 1, 2, 3]
    assert view["values"][1] == [3.0, 0.0, -2.0]  # one dimension of all classes
    assert figure.tables[0].rows[0] == ["0", "2", "5", "-0.30", "-0.60", "0.00"]


def test_a_matrix_of_an_unknown_name_is_drawn_as_it_is(tmp_path):
    folder = write_matrices(write_run(tmp_path / "run"))
    assert plot_matrices(read_groups(folder)) is None
    text = (folder / "matrices.jsonl").read_text()
    (folder / "matrices.jsonl").write_text(text.replace('"prototypes"', '"centroids"'))
    (view,) = plot_matrices(read_groups(folder)).views
    assert view["label"] == "fedtm: centroids, round 4"
    assert view["values"][1] == [3.0, 0.0, -2.0]
    assert plot_targets(read_groups(folder)) is None


def test_no_target_is_set_beside_itself(tmp_path):
    (view,) = plot_cosines(read_groups(write_matrices(write_run(tmp_path / "run")))).views
    assert view["kinds"] == ["class", "class"]
    assert view["values"] == [[None, 0.0, -0.6], [0.0, None, 0.0], [-0.6, 0.0, None]]


def test_heads_that_follow_their_labels_are_at_no_distance_from_them(tmp_path):
    folder = write_run(tmp_path / "run")
    counts = [holding.train for holding in read_run(folder).partition.clients]
    same = [[5 + 0.1 * n for n in row] for row in counts]
    figure = plot_heads(read_groups(write_matrices(folder, of_heads=same)))
    labels, heads = figure.views
    assert labels["values"] == heads["values"] == [scale(row) for row in counts]
    assert figure.tables[0].rows[0][1:] == ("0.00", "6")


def test_the_distance_is_that_of_all_clients_and_classes(tmp_path):
    folder = write_run(tmp_path / "run")
    counts = [holding.train for holding in read_run(folder).partition.clients]
    flat = [[1.0] * 3 for _ in counts]  # a head that knows no class from another
    figure = plot_heads(read_groups(write_matrices(folder, of_heads=flat)))
    due = sum(value**2 for row in counts for value in scale(row)) ** 0.5
    assert figure.tables[0].rows[0][1] == f"{due:.2f}"


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('"values": [[', '"values": [[0.5, ', r"matrices\.jsonl:1: 3 rows of values; a row for each of 3, all as long"),
        ('"rows": [0', '"rows": [3, 0', r"matrices\.jsonl:1: 3 rows of values; a row for each of 4"),
        ('"values": [[', '"values": [["a", ', r"matrices\.jsonl:1: values\[0\]\[0\] is 'a'; a number was expected"),
    ],
)
def test_a_damaged_matrix_is_refused_with_its_line(tmp_path, old, new, complaint):
    folder = write_matrices(write_run(tmp_path / "run"))
    text = (folder / "matrices.jsonl").read_text()
    (folder / "matrices.jsonl").write_text(text.replace(old, new, 1))
    with pytest.raises(ValueError, match=complaint):
        write_report([folder], tmp_path / "page.html")


def test_a_browser_draws_them_with_the_names_of_both_sides(tmp_path):
    folder = write_matrices(write_run(tmp_path / "run"), of_heads=[[1.0, 2.0, 3.0]] * 6)
    write_report([folder], tmp_path / "page.html")
    drawn = browse(tmp_path / "page.html", tmp_path, "--dump-dom")
    assert "dimension (across) and class (down)" in drawn
    assert "class (across) and class (down)" in drawn
    assert "client (across) and class (down); faintest: 0, strongest: 1" in drawn
