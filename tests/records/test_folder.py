"""Run folders: what is written reads back, of this version, of older ones, and of others' hands."""

import json
from dataclasses import fields, replace
from pathlib import Path

import pytest

from laconic import wire
from laconic.records import (
    ENVELOPE,
    LINES,
    SCHEMA,
    Environment,
    Failure,
    Holding,
    Letters,
    Partition,
    Round,
    Summary,
    Times,
    Traffic,
    append_lines,
    drop_torn_line,
    find_runs,
    read,
    read_lines,
    read_rounds,
    to_line,
    write,
)
from laconic.wire.ledger import COLUMNS, Hop

ROUND = Round(
    round=0,
    accuracy_mean=None,
    accuracy_p10=None,
    accuracy_min=None,
    accuracy_pooled=None,
    upload_bytes=1,
    download_bytes=2,
    peer_bytes=3,
    paper_upload_bytes=0.5,
    paper_download_bytes=0.25,
    n_sampled=0,
    n_replied=0,
    is_void=False,
    notes={"kept": 0.5},
)
PARTITION = Partition(classes=["a", "b"], clients=[Holding(0, [1, 2], [0, 0], [1, 1]), Holding(1)], sha256="ff")


def make_run(folder: Path, started: str = "") -> Path:
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text("")
    write(folder, Environment(command="laconic run", started=started))
    return folder


def test_what_is_written_reads_back(tmp_path: Path) -> None:
    write(tmp_path, PARTITION)
    assert read(tmp_path, Partition) == PARTITION
    assert json.loads((tmp_path / "partition.json").read_text())["schema"] == SCHEMA
    rows = [ROUND, replace(ROUND, round=1, n_refused=2)]
    assert append_lines(tmp_path / Round.file, map(to_line, rows)) == (tmp_path / "metrics.jsonl").read_bytes()
    assert read_rounds(tmp_path) == rows


def test_a_line_has_the_fields_in_their_order() -> None:
    assert list(json.loads(to_line(ROUND))) == [field.name for field in fields(Round)]


def test_the_ledger_writes_what_traffic_reads(tmp_path: Path) -> None:
    """The ledger knows nothing of run folders, so nobody else holds the two together."""
    assert tuple(field.name for field in fields(Traffic)) == COLUMNS
    assert wire.ledger.ENVELOPE == ENVELOPE
    ledger = wire.Ledger()
    ledger.record(Hop(1, "train", "peer", 2, 3), wire.Message(), wire.Encoded(b"abc", {}))
    append_lines(tmp_path / Traffic.file, ledger.to_jsonl())
    (row,) = read_lines(tmp_path, Traffic)
    assert (row.round, row.client, row.peer, row.field) == (1, 2, 3, ENVELOPE)


def test_every_kind_of_record_has_a_file_of_its_own() -> None:
    kinds = (*LINES, Letters, Environment, Partition, Failure, Summary)
    assert len({kind.file for kind in kinds}) == len(kinds)


def test_a_partition_of_schema_1_whose_examples_only_nodes_knew_says_so_now(tmp_path: Path) -> None:
    nothing = {part: [0, 0] for part in ("train", "val", "test")}
    old = {"schema": 1, "classes": ["0", "1"], "clients": [nothing, nothing], "sha256": "", "drift": None}
    (tmp_path / "partition.json").write_text(json.dumps(old))
    found = read(tmp_path, Partition)
    assert found.clients == [Holding(0), Holding(1)]
    assert found.is_nodes_own


def test_a_partition_of_schema_1_that_is_known_reads_as_it_is(tmp_path: Path) -> None:
    clients = [{"client": 0, "train": [1, 2], "val": [0, 0], "test": [1, 1], "quarter_turns": 3}]
    old = {"schema": 1, "classes": ["a", "b"], "clients": clients, "sha256": "ff", "drift": None}
    (tmp_path / "partition.json").write_text(json.dumps(old))
    found = read(tmp_path, Partition)
    assert found.clients == [Holding(0, [1, 2], [0, 0], [1, 1], 3)]
    assert not found.is_nodes_own


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", r"FAILED\.json:1: .*; JSON was expected; restore the file from a copy, or run again"),
        ("[]", r"FAILED\.json: schema is missing; a whole number was expected; restore"),
        ('{"schema": "1"}', r"FAILED\.json: schema is '1'; a whole number was expected"),
        ('{"schema": 1}', r"FAILED\.json: error is missing; a text was expected"),
        ('{"schema": 99, "error": 5}', rf"its schema is 99, this laconic reads up to {SCHEMA}; upgrade laconic"),
    ],
)
def test_a_file_that_is_none_of_ours_is_refused_in_words(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "FAILED.json").write_text(text)
    with pytest.raises(ValueError, match=complaint):
        read(tmp_path, Failure)


def test_the_name_of_a_new_file_of_lines_is_safe_with_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []
    monkeypatch.setattr("laconic.records.folder.sync_folder", synced.append)
    for _ in range(2):
        append_lines(tmp_path / "events.log", ["line"])
    assert synced == [tmp_path]


def test_a_line_that_was_cut_short_is_left_out_unless_others_follow(tmp_path: Path) -> None:
    line = to_line(Times(0, 1.0, 0.5))
    (tmp_path / "times.jsonl").write_text(f"{line}\n{line[:-5]}")
    assert len(list(read_lines(tmp_path, Times))) == 1
    drop_torn_line(tmp_path / "times.jsonl")
    append_lines(tmp_path / "times.jsonl", [line])
    assert len(list(read_lines(tmp_path, Times))) == 2
    (tmp_path / "times.jsonl").write_text(f"{line}\n{line[:-5]}\n{line}\n")
    with pytest.raises(ValueError, match=r"times\.jsonl:2: .* one JSON object was expected; restore the file"):
        list(read_lines(tmp_path, Times))


def test_runs_are_found_in_the_folder_of_a_run_of_seeds_and_of_a_comparison(tmp_path: Path) -> None:
    for number, name in enumerate(("local-tm/seed-0", "local-tm/seed-1", "fedtm/seed-0", "fedtm/seed-1", "single")):
        make_run(tmp_path / name, started=f"2026-11-15T22:48:0{number}")
    (tmp_path / "fedtm" / "seed-0" / "checkpoints").mkdir()
    names = [str(path.relative_to(tmp_path)) for path in find_runs(tmp_path)]
    assert names == ["local-tm/seed-0", "local-tm/seed-1", "fedtm/seed-0", "fedtm/seed-1", "single"]
    assert find_runs(tmp_path / "fedtm") == [tmp_path / "fedtm" / "seed-0", tmp_path / "fedtm" / "seed-1"]
    assert find_runs(tmp_path / "single") == [tmp_path / "single"]


def test_a_folder_without_runs_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"has no config\.toml, so it is no run folder, and no run lies in it; give"):
        find_runs(tmp_path)
    with pytest.raises(ValueError, match="is no folder; give one"):
        find_runs(tmp_path / "nowhere")
