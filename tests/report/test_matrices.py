import json

import pytest
from made_runs import write_json, write_run

from browser import browse
from laconic.report import read_run, write_report
from laconic.report.matrices import MOST_DRAWN, plot_matrices, plot_pairs, scale
from laconic.report.noted import plot_declared
from laconic.report.page import build_page
from laconic.report.tables import group_runs

TARGETS = [[0.0, 3.0, 4.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.0, -2.0, 0.0, 0.0]]
COSINES = [[1.0, 0.0, -0.6], [0.0, 1.0, 0.0], [-0.6, 0.0, 1.0]]
PANELS = [
    {"kind": "matrix", "title": "Targets", "notes": {"prototypes": ""}},
    {"kind": "matrix", "title": "Cosines", "notes": {"cosine": ""}},
    {"kind": "labels", "title": "Heads", "notes": {"head_norm": "lengths"}},
]


def write_matrices(folder, *, of_heads=None, panels=PANELS):
    """Of the made run's 3 classes and 6 clients, in rounds 2 and 4; what came first is not what is shown."""
    lines = []
    for number, factor in ((2, 0.5), (4, 1.0)):
        noted = {
            "prototypes": ("class", "dimension", [0, 1, 2], [[factor * v for v in row] for row in TARGETS]),
            "cosine": ("class", "class", [0, 1, 2], COSINES),
        }
        if of_heads is not None:
            noted["head_norm"] = ("client", "class", list(range(len(of_heads))), of_heads)
        for name, (down, across, rows, values) in noted.items():
            named = {"round": number, "name": name, "down": down, "across": across}
            lines.append(json.dumps(named | {"rows": rows, "values": values}))
    (folder / "matrices.jsonl").write_text("".join(f"{line}\n" for line in lines))
    write_json(folder / "panels.json", panels=panels)
    return folder


def read_groups(*folders):
    return group_runs([read_run(folder) for folder in folders])


def find(groups, title):
    return next((figure for figure in plot_declared(groups)[0] if figure.title == title), None)


def test_panels_appear_only_where_matrices_were_noted(tmp_path):
    plain, noted = write_run(tmp_path / "plain"), write_matrices(write_run(tmp_path / "noted", method="fedproto"))
    assert plot_declared(read_groups(plain)) == ([], [])
    figures, lacking = plot_declared(read_groups(noted))
    assert [figure.title for figure in figures] == ["Targets", "Cosines"]
    assert lacking == ["fedproto: head_norm for “Heads”"]
    assert "Declared, but not noted in these runs: fedproto: head_norm" in build_page([read_run(noted)])


def test_the_last_matrix_is_drawn_by_the_names_of_its_rows_and_measured_in_the_table(tmp_path):
    figure = find(read_groups(write_matrices(write_run(tmp_path / "run"))), "Targets")
    (view,) = figure.views
    assert view["kinds"] == ["dimension", "class"]
    assert view["across"] == ["0", "1", "2", "3"]
    assert view["values"][1] == [3.0, 0.0, -2.0]  # one dimension of all classes
    assert figure.tables[0].rows[0] == ["0", "2", "5", "0", "4"]


def test_a_matrix_that_nobody_declared_is_drawn_as_it_is(tmp_path):
    folder = write_matrices(write_run(tmp_path / "run"), of_heads=[[1.0, 2.0, 3.0]] * 6)
    assert plot_matrices(read_groups(folder)) is None
    text = (folder / "matrices.jsonl").read_text()
    (folder / "matrices.jsonl").write_text(text.replace('"prototypes"', '"centroids"'))
    (view,) = plot_matrices(read_groups(folder)).views
    assert view["label"] == "fedtm: centroids, round 4"
    assert view["values"][1] == [3.0, 0.0, -2.0]
    assert find(read_groups(folder), "Targets") is None
    assert "prototypes for “Targets”" in build_page([read_run(folder)])


def test_nothing_is_set_beside_itself(tmp_path):
    (view,) = find(read_groups(write_matrices(write_run(tmp_path / "run"))), "Cosines").views
    assert view["kinds"] == ["class", "class"]
    assert view["values"] == [[None, 0.0, -0.6], [0.0, None, 0.0], [-0.6, 0.0, None]]


def test_heads_that_follow_their_labels_are_at_no_distance_from_them(tmp_path):
    folder = write_run(tmp_path / "run")
    counts = [holding.train for holding in read_run(folder).partition.clients]
    same = [[5 + 0.1 * n for n in row] for row in counts]
    figure = find(read_groups(write_matrices(folder, of_heads=same)), "Heads")
    labels, heads = figure.views
    assert labels["values"] == heads["values"] == [scale(row) for row in counts]
    assert figure.tables[0].rows[0][1:] == ("0.00", "6")


def test_the_distance_is_that_of_all_clients_and_classes(tmp_path):
    folder = write_run(tmp_path / "run")
    counts = [holding.train for holding in read_run(folder).partition.clients]
    flat = [[1.0] * 3 for _ in counts]  # a head that knows no class from another
    figure = find(read_groups(write_matrices(folder, of_heads=flat)), "Heads")
    due = sum(value**2 for row in counts for value in scale(row)) ** 0.5
    assert figure.tables[0].rows[0][1] == f"{due:.2f}"


def test_of_several_seeds_the_first_matrix_is_drawn(tmp_path):
    folders = [write_run(tmp_path / f"{seed}", seed=seed, splits=True) for seed in (0, 1)]
    figure = plot_pairs(read_groups(*folders))
    assert [view["label"] for view in figure.views] == ["fedtm · seed 0: similarity, round 0"]
    assert "Of several seeds the first is shown." in figure.text


def test_a_matrix_of_clients_is_drawn_with_like_ones_side_by_side_and_none_beside_itself(tmp_path):
    folder = write_run(tmp_path / "run", splits=True)
    (view,) = plot_pairs(read_groups(folder)).views
    noted = json.loads((folder / "pairs.jsonl").read_text())
    ids = [int(name) for name in view["across"]]
    assert sorted(ids) == noted["clients"]
    assert [client % 3 for client in ids[::2]] == [client % 3 for client in ids[1::2]]
    assert all(view["values"][k][k] is None for k in range(6))
    assert view["values"][0][1] == noted["values"][ids[0]][ids[1]]


def test_of_many_clients_a_matrix_draws_some_and_says_so(tmp_path):
    figure = plot_pairs(read_groups(write_run(tmp_path / "run", clients=150, rounds=1, splits=True)))
    assert len(figure.views[0]["across"]) == 75 <= MOST_DRAWN
    assert "some are left out here" in figure.text


def test_a_matrix_of_one_client_is_not_drawn(tmp_path):
    assert plot_pairs(read_groups(write_run(tmp_path / "run", clients=1, splits=True))) is None


@pytest.mark.parametrize(
    ("name", "old", "new", "complaint"),
    [
        ("matrices", '"values": [[', '"values": [[0.5, ', "3 rows of values; a row for each of 3, all as long"),
        ("matrices", '"rows": [0', '"rows": [3, 0', "3 rows of values; a row for each of 4"),
        ("matrices", '"values": [[', '"values": [["a", ', r"values\[0\]\[0\] is 'a'; a number was expected"),
        ("pairs", '"values": [[', '"values": [[0.5, ', "6 rows of values; a row and a column for each of 6"),
        ("pairs", '"values": [[', '"values": [["a", ', r"values\[0\]\[0\] is 'a'; a number was expected"),
        ("pairs", '"clients": [0', '"clients": [-1', r"clients\[0\] is '-1'; a whole number from 0 up"),
    ],
)
def test_a_damaged_matrix_is_refused_with_its_line(tmp_path, name, old, new, complaint):
    folder = write_matrices(write_run(tmp_path / "run", splits=True))
    text = (folder / f"{name}.jsonl").read_text()
    assert old in text
    (folder / f"{name}.jsonl").write_text(text.replace(old, new, 1))
    with pytest.raises(ValueError, match=rf"{name}\.jsonl:1: {complaint}"):
        write_report([folder], tmp_path / "page.html")


def test_a_browser_draws_them_with_the_names_of_both_sides(tmp_path):
    folder = write_matrices(write_run(tmp_path / "run"), of_heads=[[1.0, 2.0, 3.0]] * 6)
    write_report([folder], tmp_path / "page.html")
    drawn = browse(tmp_path / "page.html", tmp_path, "--dump-dom")
    assert "dimension (across) and class (down)" in drawn
    assert "class (across) and class (down)" in drawn
    assert "client (across) and class (down); faintest: 0, strongest: 1" in drawn
