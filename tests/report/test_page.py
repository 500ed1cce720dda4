import html
import json
import re
from itertools import pairwise

import pytest
from made_runs import write_run

from browser import browse
from laconic.report import format_bytes, read_run, write_report
from laconic.report.tables import format_percent

ATTACK = "<script>document.title='run'</script><img src=x onerror=\"document.title='run'\">"


def report(tmp_path, *folders):
    page = tmp_path / "report.html"
    write_report(folders, page)
    return page


def write_several(tmp_path):
    """Two methods and learning alone, two seeds each; the methods of one seed share a partition."""
    return [
        write_run(tmp_path / f"{method}{seed}", method=method, seed=seed, level=level)
        for seed in (0, 1)
        for method, level in (("fedtm", 0.93), ("tpfl", 0.97), ("local-tm", 0.85))
    ]


def embedded(text):
    return json.loads(re.search(r'<script type="application/json" id="figures">(.*?)</script>', text, re.DOTALL)[1])


def root_of(document):
    return re.search(r"<html[^>]*>", document)[0]


def test_the_page_needs_no_other_file(tmp_path):
    text = report(tmp_path, *write_several(tmp_path)).read_text()
    assert not re.search(r"https?:|@import|url\(|<link|<iframe|\bsrc=", text)
    assert {target[0] for target in re.findall(r'href="([^"]*)"', text)} == {"#"}
    assert "default-src 'none'" in text


def test_its_numbers_are_those_of_the_records(tmp_path):
    folder = write_run(tmp_path / "run")
    run, text = read_run(folder), report(tmp_path, folder).read_text()
    figures = embedded(text)
    (series,) = figures["accuracy"]["views"][0]["series"]
    metrics = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    sent = 0
    for point, line in zip(series["points"], metrics, strict=True):
        sent += line["upload_bytes"] + line["download_bytes"]
        assert point[:3] == pytest.approx([line["round"], sent, line["accuracy_mean"]])
        assert f"<td>{format_percent(line['accuracy_mean'], 2)}" in text
        assert f"<td>{format_bytes(sent)}" in text
    (row,) = figures["clients"]["views"][0]["rows"]
    assert row["dots"] == [[s.client, s.accuracy, s.n_correct, s.n_test] for s in run.scores]
    assert figures["labels"]["views"][0]["values"] == [holding.train for holding in run.partition.clients]
    paper, packed, coded, entropy = (
        sum(part["value"] for part in bar["segments"]) for bar in figures["stages"]["views"][0]["rows"]
    )
    assert (paper, packed, coded, entropy) == pytest.approx(
        (run.counts.paper_bytes, run.counts.packed_bytes, run.counts.sent_bytes, run.counts.entropy_bytes)
    )
    assert f"<dd>{format_bytes(run.counts.sent_bytes)}</dd>" in text
    assert html.escape(run.env.command) in text


def test_a_band_spans_the_seeds_and_gains_are_over_the_same_clients_alone(tmp_path):
    folders = write_several(tmp_path)
    figures = embedded(report(tmp_path, *folders).read_text())
    runs = {folder.name: read_run(folder) for folder in folders}
    fedtm = figures["accuracy"]["views"][0]["series"][0]
    ends = [runs[name].accuracy_mean for name in ("fedtm0", "fedtm1")]
    assert fedtm["has_band"]
    assert fedtm["points"][-1][2:] == pytest.approx([sum(ends) / 2, min(ends), max(ends)])
    gains = figures["clients"]["views"][1]["rows"]
    assert [row["label"] for row in gains] == ["fedtm · seed 0", "fedtm · seed 1", "tpfl · seed 0", "tpfl · seed 1"]
    before, after = (runs[name].scores[3].accuracy for name in ("local-tm1", "fedtm1"))
    assert gains[1]["dots"][3][1] == pytest.approx(after - before)


def test_no_gain_is_shown_over_other_clients(tmp_path):
    alone = write_run(tmp_path / "alone", method="local-tm", partition_seed=9)
    text = report(tmp_path, alone, write_run(tmp_path / "run")).read_text()
    assert len(embedded(text)["clients"]["views"]) == 1
    assert "Seed 0: the runs divide the data in different ways" in text


def test_no_gain_is_shown_over_other_examples_of_the_same_clients(tmp_path):
    alone, run = write_run(tmp_path / "alone", method="local-tm"), write_run(tmp_path / "run")
    assert len(embedded(report(tmp_path, alone, run).read_text())["clients"]["views"]) == 2
    config = alone / "config.toml"
    config.write_text(config.read_text().replace("[data]", '[data]\ntested = "validation"'))
    assert len(embedded(report(tmp_path, alone, run).read_text())["clients"]["views"]) == 1


def test_turned_images_are_told_at_the_top(tmp_path):
    run = write_run(tmp_path / "run")
    assert "images turned" not in report(tmp_path, run).read_text()
    config = run / "config.toml"
    config.write_text(config.read_text().replace("[data]", '[data]\nshift = "turned"'))
    assert "images turned" in report(tmp_path, run).read_text()


def test_of_data_that_nodes_brought_the_page_claims_nothing(tmp_path):
    run = write_run(tmp_path / "run", own=True, method="fedproto")
    matrix = {"round": 4, "name": "head_norm", "down": "client", "across": "class", "rows": [0, 1]}
    (run / "matrices.jsonl").write_text(json.dumps(matrix | {"values": [[1.0, 2.0, 3.0]] * 2}) + "\n")
    text = report(tmp_path, run).read_text()
    assert "<h1>fedproto on the nodes’ own data</h1>" in text
    assert not re.search("digits|dirichlet|alpha 0.1", text.partition("<script")[0])
    assert f"<tr><td>0<td data-v=-1>–<td data-v=36>36<td data-v={read_run(run).scores[0].accuracy:.6g}>" in text
    figures = embedded(text)
    assert "labels" not in figures
    assert [view["label"] for view in figures["heads"]["views"]] == ["fedproto, round 4"]
    assert "<td>fedproto<td>–<td>2" in text.replace(" class=w", "")


def test_two_deployments_on_their_nodes_data_have_no_clients_in_common(tmp_path):
    first = write_run(tmp_path / "first", own=True)
    alone = write_run(tmp_path / "alone", own=True, method="local-tm")
    other = write_run(tmp_path / "other", own=True, method="local-tm", partition_seed=5)
    assert len(embedded(report(tmp_path, first, alone).read_text())["clients"]["views"]) == 2
    assert len(embedded(report(tmp_path, first, other).read_text())["clients"]["views"]) == 1
    for folder in (first, alone):  # of whose partitions nobody knows whether they are the same
        path = folder / "partition.json"
        path.write_text(re.sub(r'"sha256": "\w+"', '"sha256": ""', path.read_text()))
    assert len(embedded(report(tmp_path, first, alone).read_text())["clients"]["views"]) == 1


def test_shares_that_a_deployment_dealt_out_are_named_as_they_were_dealt(tmp_path):
    run = write_run(tmp_path / "run")
    path = run / "partition.json"
    dealt = {"schema": 2, "data": {"name": "mnist", "partition": "iid"}}
    path.write_text(json.dumps(json.loads(path.read_text()) | dealt))
    text = report(tmp_path, run).read_text()
    assert "<h1>fedtm on mnist</h1>" in text
    assert "partition iid" in text
    assert "dirichlet" not in text


def test_a_comparison_is_read_whole_from_its_folder(tmp_path):
    folders = [
        write_run(tmp_path / "all" / m / f"seed-{s}", method=m, seed=s) for m in ("tpfl", "fedtm") for s in (0, 1)
    ]
    page = report(tmp_path, tmp_path / "all", folders[0])
    assert "4 runs · seeds 0, 1" in page.read_text()
    assert "4 runs, laconic 0.1.0" in page.read_text()


def test_an_unfinished_run_says_how_far_it_came(tmp_path):
    folder = write_run(tmp_path / "run", done=False)
    metrics = (folder / "metrics.jsonl").read_text().splitlines(keepends=True)
    (folder / "metrics.jsonl").write_text("".join(metrics[:3]) + metrics[3][:40])
    assert "Unfinished, 2 of 4 rounds." in report(tmp_path, folder).read_text()


def test_a_failed_write_leaves_the_old_report(tmp_path):
    page = tmp_path / "report.html"
    page.write_text("old")
    with pytest.raises(ValueError, match="is no folder; give one"):
        write_report([tmp_path / "nothing"], page)
    with pytest.raises(ValueError, match="no run folder was given"):
        write_report([], page)
    assert page.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_five_hundred_clients_stay_small(tmp_path):
    folders = [
        write_run(tmp_path / method, method=method, clients=500, rounds=3, classes=10, bytes_scale=scale, splits=True)
        for method, scale in (("fedtm", 1), ("tpfl", 0.5), ("local-tm", 1))
    ]
    page = report(tmp_path, *folders)
    assert page.stat().st_size < 1_500_000
    document = browse(page, tmp_path, "--window-size=1400,900", "--dump-dom")
    assert 'data-ready="yes"' in root_of(document)
    assert 'data-overflow="no"' in root_of(document)


def test_a_browser_draws_every_figure(tmp_path):
    runs = [*write_several(tmp_path), write_run(tmp_path / "gossip", method="dispfl", gossip=True, drift=True)]
    runs += [write_run(tmp_path / "split", method="cs-pfedtm", splits=True)]
    document = browse(report(tmp_path, *runs), tmp_path, "--window-size=1400,900", "--dump-dom")
    assert 'data-ready="yes"' in root_of(document)
    assert "data-error" not in root_of(document)
    names = re.findall(r'data-figure="([^"]+)"', document)
    before, after = ["accuracy", "clients", "gain", "models", "split", "pairs"], ["stages", "fields", "bytes"]
    assert names[:12] == [*before, "labels", *after, "budget", "seconds"]
    for name in names:
        figure = document.split(f'data-figure="{name}"')[1].split("</figure>")[0]
        svg = re.search(r'<div class="plot".*?</svg>', figure, re.DOTALL)[0]
        assert re.search(r"<(path|rect) ", svg), name
        assert "NaN" not in svg, name
    assert len(names) == len(re.findall(r"<figure", document))
    headings = [int(level) for level in re.findall(r"<h(\d)", document)]
    assert headings[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(headings))


def test_every_view_draws_and_every_column_sorts(tmp_path):
    page = report(tmp_path, *write_several(tmp_path), write_run(tmp_path / "split", method="cs-pfedtm", splits=True))
    walk = """<script>
      for (const input of document.querySelectorAll(".views input")) input.click();
      for (const select of document.querySelectorAll("select"))
        for (const option of select.options) {
          select.value = option.value;
          select.dispatchEvent(new Event("change", { bubbles: true }));
        }
      for (const svg of document.querySelectorAll(".plot svg")) {
        svg.focus();
        for (const key of ["ArrowLeft", "ArrowUp", "ArrowRight", "ArrowDown"])
          svg.dispatchEvent(new KeyboardEvent("keydown", { key }));
        root.dataset.said = (root.dataset.said ?? "") + "|" + document.getElementById("tip").textContent;
      }
      for (const button of document.querySelectorAll("th button")) button.click();
      const table = document.querySelector(".sortable");
      table.querySelectorAll("th button")[3].click();
      root.dataset.sorted = [...table.tBodies[0].rows].map((row) => row.cells[3].dataset.v);
      root.dataset.bytes = [0, 7, 999, 12.345, 999.6, 1234, 9999, 123456, 999900, 5.5e9].map(formatBytes);
    </script></body>"""
    # the page forbids scripts but its own; this one is the test's
    text = re.sub(r"<meta http-equiv.*?>", "", page.read_text()).replace("</body>", walk)
    page.write_text(text)
    root = root_of(browse(page, tmp_path, "--dump-dom"))
    assert "data-error" not in root
    shares = [float(value) for value in re.search(r'data-sorted="([^"]*)"', root)[1].split(",")]
    assert shares == sorted(shares)
    values = [0, 7, 999, 12.345, 999.6, 1234, 9999, 123456, 999900, 5.5e9]
    assert re.search(r'data-bytes="([^"]*)"', root)[1] == ",".join(map(format_bytes, values))
    said = re.search(r'data-said="([^"]*)"', root)[1]
    assert "round 4" in said
    assert "right" in said
    assert "accuracy, shared: 58.0 %" in said
    assert re.search(r"client \d+, client \d+", said)  # a cell of how alike clients are


def test_names_from_the_records_cannot_become_code(tmp_path):
    folder = write_run(tmp_path / "run", data=ATTACK)
    for name, word in (("traffic", "weights"), ("metrics", "loss"), ("clients", "share_kept")):
        path = folder / f"{name}.jsonl"
        path.write_text(path.read_text().replace(f'"{word}"', json.dumps(ATTACK)))
    page = report(tmp_path, folder)
    assert ATTACK not in page.read_text()
    document = browse(page, tmp_path, "--dump-dom")
    assert 'data-ready="yes"' in root_of(document)
    assert "<title>run</title>" not in document
    assert "<img" not in document
    assert document.count("<script") == 2


@pytest.mark.parametrize("width", [400, 1400])
def test_nothing_is_wider_than_the_window(tmp_path, width):
    page = report(
        tmp_path, *write_several(tmp_path), write_run(tmp_path / "long", n_clauses=10**30, clients=40, splits=True)
    )
    # a window cannot be as narrow as a phone; a frame can
    frame, shot = tmp_path / "frame.html", tmp_path / "shot.png"
    inner = html.escape(page.read_text())
    frame.write_text(
        f'<iframe style="border:0;width:{width}px;height:900px" srcdoc="{inner}"></iframe><script>'
        "onload = () => { const root = frames[0].document.documentElement;"
        "Object.assign(document.documentElement.dataset, root.dataset, { width: frames[0].innerWidth }); }</script>"
    )
    size = f"--window-size={width + 100},1000"
    root = root_of(browse(frame, tmp_path, size, "--dump-dom", f"--screenshot={shot}"))
    assert 'data-ready="yes"' in root
    assert f'data-width="{width}"' in root
    assert 'data-overflow="no"' in root
    assert shot.stat().st_size > 10_000
