import html
import json
import re
from contextlib import contextmanager
from itertools import pairwise

import pytest
from made_runs import write_json, write_run

from browser import browse, open_browser
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


@contextmanager
def open_tab(page, folder, *, width=1200, is_dark=False):
    with open_browser(folder) as tab:
        tab.resize(width)
        tab.set_look(is_dark=is_dark)
        tab.open(page.as_uri())
        tab.wait("document.documentElement.dataset.ready === 'yes'")
        yield tab


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
    for dot, score in zip(row["dots"], run.scores, strict=True):
        assert dot == [score.client, pytest.approx(score.accuracy, rel=1e-5), score.n_correct, score.n_test]
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
    assert [row["label"] for row in gains] == ["fedtm", "tpfl"]
    before, after = (runs[name].scores[3].accuracy for name in ("local-tm1", "fedtm1"))
    _, gain, _, _, seed = gains[0]["dots"][6 + 3]
    assert (gain, seed) == (pytest.approx(after - before, rel=1e-4), 1)
    for name in ("bytes", "seconds"):
        assert all(series["has_band"] for series in figures[name]["views"][0]["series"])


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
    write_json(run / "panels.json", panels=[{"kind": "labels", "title": "Heads", "notes": {"head_norm": "lengths"}}])
    text = report(tmp_path, run).read_text()
    assert "<h1>fedproto on the nodes’ own data</h1>" in text
    assert not re.search("digits|dirichlet|alpha 0.1", text.partition("<script")[0])
    assert f"<tr><td>0<td data-v=-1>–<td data-v=36>36<td data-v={read_run(run).scores[0].accuracy:.6g}>" in text
    figures = embedded(text)
    assert "labels" not in figures
    assert [view["label"] for view in figures["panel-heads"]["views"]] == ["fedproto, round 4"]
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


@pytest.mark.parametrize(("n_clients", "most_bytes"), [(500, 1_500_000), (1000, 2_500_000)])
def test_hundreds_of_clients_stay_small_and_in_pages(tmp_path, n_clients, most_bytes):
    folders = [
        write_run(tmp_path / m, method=m, clients=n_clients, rounds=2, classes=10, bytes_scale=scale, splits=True)
        for m, scale in (("fedtm", 1), ("tpfl", 0.5), ("local-tm", 1))
    ]
    page = report(tmp_path, *folders)
    assert page.stat().st_size < most_bytes
    with open_tab(page, tmp_path) as tab:
        assert tab.get("root.dataset.overflow") == "no"
        assert tab.get("document.querySelectorAll('svg *').length") < 8000
        shown = "[...document.querySelector('.sortable').tBodies[0].rows].filter((row) => !row.hidden).length"
        told = "document.querySelector('.pager [role=status]').textContent"
        assert (tab.get(shown), tab.get(told)) == (50, f"1 to 50 of {n_clients}")
        tab.click(".pager button:last-child")
        assert tab.get(told) == f"51 to 100 of {n_clients}"
        tab.click(".pager input")
        tab.call("Input.insertText", text=str(n_clients - 1))
        assert (tab.get(shown), tab.get(told)) == (1, "1 to 1 of 1")
        assert not tab.errors


def test_a_browser_draws_every_figure(tmp_path):
    runs = [*write_several(tmp_path), write_run(tmp_path / "gossip", method="dispfl", gossip=True, drift=True)]
    runs += [write_run(tmp_path / "split", method="cs-pfedtm", splits=True)]
    document = browse(report(tmp_path, *runs), tmp_path, "--window-size=1400,900", "--dump-dom")
    assert 'data-ready="yes"' in root_of(document)
    assert "data-error" not in root_of(document)
    names = re.findall(r'data-figure="([^"]+)"', document)
    before = [
        "accuracy",
        "clients",
        "fairness",
        "gain",
        "panel-two-models",
        "panel-shared-and-private",
        "pairs",
        "labels",
    ]
    assert names[:14] == [*before, "stages", "fields", "bytes", "budget", "links", "seconds"]
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
    folder = write_run(tmp_path / "run", data=ATTACK, names=[ATTACK] * 6, splits=True)
    panels = folder / "panels.json"
    panels.write_text(panels.read_text().replace('"Donors"', json.dumps(ATTACK)))
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


# ---------------------------------------------------------------- what bit its first readers
def test_of_a_natural_partition_the_page_names_the_column_and_no_alpha(tmp_path):
    run = write_run(tmp_path / "run")
    config = run / "config.toml"
    config.write_text(config.read_text().replace('"dirichlet"', '"natural"\ngroup = "clinic"'))
    head = report(tmp_path, run).read_text().partition("<main>")[0]
    assert "6 clients · partition natural by clinic · 1 run" in head
    assert "alpha" not in head


def test_a_warning_says_whom_it_holds_for_in_few_words(tmp_path):
    folders = write_several(tmp_path)
    edit_scores(folders)
    assert "<li>Small test sets: 1 of 6" in report(tmp_path, *folders).read_text()  # all of them, so none by name
    methods = ("fedtm", "tpfl", "fedavg", "local-tm")
    more = [write_run(tmp_path / "more" / f"{m}{s}", method=m, seed=s) for s in (0, 1) for m in methods]
    edit_scores([folder for folder in more if folder.name.endswith("1")])
    assert "<li>seed 1: Small test sets" in report(tmp_path, *more).read_text()
    edit_scores([tmp_path / "more" / "fedtm0"])
    assert "<li>seed 1, fedtm · seed 0: Small test sets" in report(tmp_path, *more).read_text()


def edit_scores(folders):
    """Their last client has few test examples."""
    for folder in folders:
        path = folder / "clients.jsonl"
        *others, last = path.read_text().splitlines()
        short = json.loads(last) | {"n_test": 7, "n_correct": 7, "accuracy": 1.0}
        path.write_text("\n".join([*others, json.dumps(short)]) + "\n")


def test_what_is_said_of_bytes_begins_with_a_method_that_sent_some(tmp_path):
    alone, run = write_run(tmp_path / "alone", method="local-tm"), write_run(tmp_path / "run")
    figures = embedded(report(tmp_path, alone, run).read_text())
    assert [view["label"] for view in figures["fields"]["views"]] == ["fedtm"]
    assert [view["label"] for view in figures["stages"]["views"]] == ["fedtm"]
    assert [series["label"] for series in figures["bytes"]["views"][0]["series"]] == ["fedtm"]


def test_the_set_up_does_not_squeeze_the_rounds(tmp_path):
    folder = write_run(tmp_path / "run")
    path = folder / "metrics.jsonl"
    first, *others = path.read_text().splitlines()
    path.write_text("\n".join([json.dumps(json.loads(first) | {"download_bytes": 10**9}), *others]) + "\n")
    text = report(tmp_path, folder).read_text()
    both = embedded(text)["bytes"]["views"][0]
    assert [point[0] for point in both["series"][0]["points"]] == [1, 2, 3, 4]
    assert not both["y"]["log"]
    assert "in the table alone: fedtm 1.00 GB" in text
    assert "<td>0<td>1.00 GB" in text


@pytest.mark.parametrize("width", [400, 1200])
def test_the_page_answers_to_pointer_buttons_and_keys(tmp_path, width):
    names = ["north", "south", "east", "west", "centre", "harbour"]
    runs = [
        write_run(tmp_path / f"{m}{s}", method=m, seed=s, names=names, splits=m == "cs-pfedtm", n_fields=10)
        for m in ("local-tm", "fedtm", "cs-pfedtm")
        for s in (0, 1, 2)
    ]
    page = report(tmp_path, *runs)
    tip = "document.getElementById('tip').hidden ? '' : document.getElementById('tip').innerText"
    with open_tab(page, tmp_path, width=width, is_dark=width == 400) as tab:
        assert tab.get("[innerWidth, root.dataset.overflow]") == [width, "no"]
        # no label of an axis is cut off at either side
        cut = """[...document.querySelectorAll('.plot svg')].flatMap((svg) => {
          const frame = svg.getBoundingClientRect();
          return [...svg.querySelectorAll('text.tick, text.label')].filter((text) => {
            const box = text.getBoundingClientRect();
            return box.left < frame.left - 1 || box.right > frame.right + 1;
          }).map((text) => text.textContent);
        })"""
        assert tab.get(cut) == []
        # one entry of the legend for each method, however many seeds
        entries = "[...document.querySelectorAll('[data-figure=accuracy] .legend li')].map((item) => item.textContent)"
        assert tab.get(entries) == ["local-tm (sends nothing)", "fedtm", "cs-pfedtm"]
        # a client is known by its name, and its seed
        tab.hover("[data-figure=clients] path.dot")
        assert re.search(r"client (north|south|east|west|centre|harbour), seed [012]", tab.get(tip))
        # another view, by its button
        label = "document.querySelector('[data-figure=accuracy] .plot text.label.end').textContent"
        assert tab.get(label) == "bytes so far, all clients, both"
        tab.click("[data-figure=accuracy] .views label:last-of-type span")
        assert tab.get(label) == "round"
        # from value to value by keys, with the pointer out of the way of what scrolls by
        tab.call("Input.dispatchMouseEvent", type="mouseMoved", x=1, y=1)
        tab.get("document.querySelector('[data-figure=fairness] .plot svg').focus()")
        tab.press("ArrowLeft")
        said = tab.get(tip)
        assert "clients below:" in said
        tab.press("ArrowLeft")
        assert tab.get(tip) not in ("", said)
        tab.press("Escape")
        assert tab.get(tip) == ""
        # fields that share a colour differ in their stripes
        looks = """[...document.querySelectorAll('[data-figure=fields] .legend svg')].map((key) =>
          key.querySelector('rect').getAttribute('fill') + (key.querySelector('path')?.getAttribute('d') ?? ''))"""
        drawn = tab.get(looks)
        assert len(drawn) == len(set(drawn)) == 14
        # a table sorts by its column
        tab.click(".sortable th:nth-child(4) button")
        values = "[...document.querySelector('.sortable').tBodies[0].rows].map((row) => Number(row.cells[3].dataset.v))"
        shares = tab.get(values)
        assert shares == sorted(shares)
        wide = """[...document.querySelectorAll('[data-figure=clients] .scroll')].filter((box) => {
          box.closest('details').open = true;
          return box.scrollWidth > box.clientWidth;
        }).length"""
        if width == 1200:
            assert tab.get(wide) == 0
        assert not tab.errors


def test_the_page_is_dark_where_the_reader_wants_it(tmp_path):
    page, paper = report(tmp_path, write_run(tmp_path / "run")), "getComputedStyle(document.body).backgroundColor"
    seen = []
    for is_dark in (False, True):
        with open_tab(page, tmp_path, is_dark=is_dark) as tab:
            seen.append(tab.get(paper))
    assert seen == ["rgb(251, 251, 249)", "rgb(20, 22, 26)"]


def test_one_round_has_an_axis_of_one_round(tmp_path):
    page = report(tmp_path, write_run(tmp_path / "run", rounds=1))
    ticks = "[...document.querySelectorAll('[data-figure=seconds] .plot text.tick.middle')].map((t) => t.textContent)"
    with open_tab(page, tmp_path) as tab:
        assert tab.get(ticks) == ["1"]


def test_a_seed_that_has_nothing_in_a_round_leaves_a_logarithmic_axis_whole(tmp_path):
    runs = [write_run(tmp_path / f"run{seed}", seed=seed) for seed in (0, 1)]
    for run, seconds in zip(runs, ((1, 1, 1, 500, 1), (1, 1, 0, 500, 1)), strict=True):
        path = run / "times.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        path.write_text(
            "".join(json.dumps(line | {"seconds": s}) + "\n" for line, s in zip(lines, seconds, strict=True))
        )
    page = report(tmp_path, *runs)
    assert embedded(page.read_text())["seconds"]["views"][0]["y"]["log"]
    with open_tab(page, tmp_path) as tab:
        assert tab.get("document.querySelectorAll('[data-figure=seconds] .plot path').length") > 0
