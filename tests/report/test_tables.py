import statistics

import pytest
from made_runs import write_run
from rich.console import Console

from laconic.report import compare_table, format_bytes, read_run, render


@pytest.mark.parametrize(
    ("n_bytes", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (12.345, "12.3 B"),
        (999.6, "1.00 kB"),
        (1000, "1.00 kB"),
        (1234, "1.23 kB"),
        (9999, "10.0 kB"),
        (123_456, "123 kB"),
        (999_900, "1.00 MB"),
        (5.5e9, "5.50 GB"),
        (None, "–"),
    ],
)
def test_bytes_are_written_with_three_digits_and_thousands(n_bytes, text):
    assert format_bytes(n_bytes) == text


def test_seeds_of_one_configuration_make_one_row(tmp_path):
    runs = [read_run(write_run(tmp_path / f"fedtm{seed}", seed=seed)) for seed in range(3)]
    other = read_run(write_run(tmp_path / "other", method="tpfl"))
    first, second = compare_table([*runs, other])
    accuracies = [run.accuracy_mean for run in runs]
    assert (first.method, first.n_seeds) == ("fedtm", 3)
    assert first.accuracy == pytest.approx(statistics.fmean(accuracies))
    assert first.accuracy_sd == pytest.approx(statistics.stdev(accuracies))
    assert first.upload_bytes == pytest.approx(statistics.fmean(run.upload_bytes for run in runs))
    assert (second.n_seeds, second.accuracy_sd) == (1, None)


def test_bytes_per_client_and_round_leave_out_the_set_up(tmp_path):
    run = read_run(write_run(tmp_path / "run"))
    (row,) = compare_table([run])
    assert row.download_bytes_per_client_round == sum(r.download_bytes for r in run.rounds[1:]) / (6 * 4)
    assert row.download_bytes == run.rounds[0].download_bytes + 6 * 4 * row.download_bytes_per_client_round
    assert row.ratio == pytest.approx(run.counts.paper_bytes / run.counts.sent_bytes)


def test_gains_are_of_each_client_over_itself_in_the_first_row(tmp_path):
    alone, shared = (
        [read_run(write_run(tmp_path / f"{method}{seed}", method=method, seed=seed, level=level)) for seed in (0, 1)]
        for method, level in (("local-tm", 0.6), ("fedtm", 0.9))
    )
    base, row = compare_table([*alone, *shared])
    gains = [
        after.accuracy - before.accuracy
        for run, other in zip(shared, alone, strict=True)
        for after, before in zip(run.scores, other.scores, strict=True)
    ]
    assert (base.gain, base.gain_error) == (None, None)
    assert row.gain == pytest.approx(statistics.fmean(gains))
    assert row.gain_error == pytest.approx(statistics.stdev(gains) / len(gains) ** 0.5)


def test_clients_with_other_examples_have_no_gain(tmp_path):
    first = read_run(write_run(tmp_path / "first"))
    other = read_run(write_run(tmp_path / "other", method="tpfl", partition_seed=5))
    assert compare_table([first, other])[1].gain is None


def test_runs_of_one_method_are_told_apart_by_what_differs(tmp_path):
    runs = [read_run(write_run(tmp_path / f"{n}", n_clauses=n)) for n in (100, 200)]
    assert [row.method for row in compare_table(runs)] == ["fedtm (n_clauses = 100)", "fedtm (n_clauses = 200)"]


def test_a_repeated_seed_does_not_count_as_another(tmp_path):
    runs = [read_run(write_run(tmp_path / name)) for name in ("once", "twice")]
    rows = compare_table(runs)
    assert [(row.method, row.n_seeds) for row in rows] == [("fedtm", 1), ("fedtm (again, 2)", 1)]


@pytest.mark.parametrize("columns", [80, 140])
def test_the_rendered_table_cuts_nothing_off(tmp_path, columns):
    runs = [read_run(write_run(tmp_path / f"{seed}", method="cs-pfedtm", seed=seed)) for seed in (0, 1)]
    runs.append(read_run(write_run(tmp_path / "local", method="local-tm", done=False)))
    rows, console = compare_table(runs), Console(width=columns)
    with console.capture() as capture:
        console.print(render(rows))
    words = capture.get().split()
    assert {"cs-pfedtm", "local-tm*", f"{100 * rows[0].p10:.1f}", f"{rows[0].ratio:.2f}×", "–"} <= set(words)
    assert format_bytes(rows[0].upload_bytes).split()[0] in words
    assert all(len(line) <= columns for line in capture.get().splitlines())
