import json

import pytest
from made_runs import write_run

from laconic.report import read_run


def lines(folder, name):
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_sums_are_those_of_the_records(tmp_path):
    folder = write_run(tmp_path / "run")
    run, metrics, traffic = read_run(folder), lines(folder, "metrics.jsonl"), lines(folder, "traffic.jsonl")
    assert run.is_finished
    assert run.status == "finished, 4 rounds"
    assert not run.warnings
    assert run.accuracy_mean == metrics[-1]["accuracy_mean"]
    assert run.accuracy_best == max(line["accuracy_mean"] for line in metrics)
    assert run.accuracy_p10 == metrics[-1]["accuracy_p10"]
    assert run.upload_bytes == sum(line["upload_bytes"] for line in metrics)
    assert run.counts.sent_bytes == sum(line["sent_bytes"] for line in traffic)
    assert run.counts.paper_bytes == pytest.approx(sum(line["paper_bits"] for line in traffic) / 8)
    assert run.envelope_bytes == 9 * sum(line["field"] == "(envelope)" for line in traffic)
    assert run.sums.by_field["train", "up", "states"].sent_bytes == sum(
        line["sent_bytes"] for line in traffic if (line["direction"], line["field"]) == ("up", "states")
    )
    mine = [line for line in traffic if line["client"] == 2]
    assert run.sums.by_client[2].sent_bytes == sum(line["sent_bytes"] for line in mine if line["direction"] == "up")
    assert run.sums.by_client[2].received_bytes == sum(
        line["sent_bytes"] for line in mine if line["direction"] == "down"
    )
    last = [line for line in lines(folder, "clients.jsonl") if line["round"] == 4]
    assert [(s.client, s.n_correct) for s in run.scores] == [(line["client"], line["n_correct"]) for line in last]
    assert run.seconds == pytest.approx(sum(line["seconds"] for line in lines(folder, "times.jsonl")))


def test_what_goes_to_a_peer_is_sent_by_one_and_received_by_another(tmp_path):
    run = read_run(write_run(tmp_path / "run", gossip=True))
    assert run.upload_bytes == 0
    assert run.peer_bytes > 0
    assert sum(client.sent_bytes for client in run.sums.by_client.values()) == run.peer_bytes
    assert sum(client.received_bytes for client in run.sums.by_client.values()) == run.peer_bytes + run.download_bytes


def test_a_killed_run_is_read_up_to_its_last_whole_round(tmp_path):
    folder = write_run(tmp_path / "run", done=False)
    metrics = (folder / "metrics.jsonl").read_text().splitlines(keepends=True)
    (folder / "metrics.jsonl").write_text("".join(metrics[:3]) + metrics[3][:40])
    traffic = (folder / "traffic.jsonl").read_text()
    (folder / "traffic.jsonl").write_text(traffic[:-25])
    run = read_run(folder)
    assert run.status == "unfinished, 2 of 4 rounds"
    assert run.warnings == ("Unfinished, 2 of 4 rounds.",)
    assert run.counts.sent_bytes == run.upload_bytes + run.download_bytes


def test_a_round_without_its_time_was_not_written_whole(tmp_path):
    folder = write_run(tmp_path / "run", done=False)
    for name in ("times", "traffic"):
        whole = (folder / f"{name}.jsonl").read_text().splitlines(keepends=True)
        (folder / f"{name}.jsonl").write_text("".join(whole[:-1]))
    run = read_run(folder)
    assert run.status == "unfinished, 3 of 4 rounds"
    assert run.warnings == ("Unfinished, 3 of 4 rounds.",)
    assert len(run.scores) == 6


def test_a_run_that_has_only_begun_has_no_accuracy(tmp_path):
    folder = write_run(tmp_path / "run", done=False)
    for name in ("metrics", "clients", "traffic", "times"):
        (folder / f"{name}.jsonl").unlink()
    run = read_run(folder)
    assert run.status == "unfinished, 0 of 4 rounds"
    assert run.accuracy_mean is None
    assert run.counts.sent_bytes == 0


def test_a_failed_run_says_why(tmp_path):
    folder = write_run(tmp_path / "run", done=False)
    (folder / "FAILED.json").write_text('{"schema": 1, "round": 3, "error": "out of memory"}')
    assert read_run(folder).status == "failed after 4 of 4 rounds: out of memory"


def test_a_reader_is_warned_of_void_rounds_lost_and_refused_replies_small_tests_and_unequal_records(tmp_path):
    folder = write_run(tmp_path / "run")
    metrics = lines(folder, "metrics.jsonl")
    metrics[2] |= {"is_void": True, "n_replied": 1, "n_refused": 3}
    metrics[3]["upload_bytes"] += 5
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in metrics))
    scores = lines(folder, "clients.jsonl")
    scores[-1] |= {"n_test": 7, "n_correct": 7}
    (folder / "clients.jsonl").write_text("".join(json.dumps(line) + "\n" for line in scores))
    void, lost, refused, small, unequal = read_run(folder).warnings
    assert "1 of 5 rounds were void (2)" in void
    assert "5 of 24 never arrived" in lost
    assert "3 were not what an honest client sends" in refused
    assert "1 of 6 clients have fewer than 20 test examples (the smallest 7)" in small
    assert "round 3 has" in unequal


def test_a_reader_is_told_of_accuracies_on_validation_examples(tmp_path):
    folder = write_run(tmp_path / "run")
    assert not read_run(folder).warnings
    config = folder / "config.toml"
    config.write_text(config.read_text().replace("[data]", '[data]\ntested = "validation"'))
    (warning,) = read_run(folder).warnings
    assert "of validation examples" in warning


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"has no config\.toml, so it is no run folder; give one"):
        read_run(tmp_path)


def test_a_schema_from_the_future_is_refused(tmp_path):
    folder = write_run(tmp_path / "run")
    edit(folder / "env.json", '"schema": 1', '"schema": 7')
    with pytest.raises(ValueError, match=r"env\.json: its schema is 7, this laconic reads up to 2; upgrade laconic"):
        read_run(folder)


@pytest.mark.parametrize(
    ("name", "old", "new", "complaint"),
    [
        ("metrics.jsonl", '{"round": 1,', '{"round": 1;', r"metrics\.jsonl:2: .* one JSON object was expected"),
        ("metrics.jsonl", '"round": 1,', '"round": 3,', r"metrics\.jsonl:2: round 3; round 1 was expected"),
        (
            "metrics.jsonl",
            '"is_void": false',
            '"is_void": 0',
            r"metrics\.jsonl:1: is_void is '0'; true or false was expected",
        ),
        (
            "metrics.jsonl",
            '"upload_bytes": ',
            '"upload_bytes": -1',
            r"upload_bytes is '-1\d*'; a whole number from 0 up",
        ),
        ("clients.jsonl", '"n_correct": ', '"n_correct": 99', r"clients\.jsonl:1: 99\d* right of 36; at most"),
        ("clients.jsonl", '"accuracy"', '"acuracy"', r"clients\.jsonl:1: accuracy is missing; a number from 0 to 1"),
        ("traffic.jsonl", '"down"', '"sideways"', r"traffic\.jsonl:1: direction is 'sideways'; \"up\", \"down\" or"),
        ("traffic.jsonl", '"peer": null', '"peer": 3', r"traffic\.jsonl:1: direction 'down' and peer 3; a peer for"),
        (
            "partition.json",
            '"train": [',
            '"train": [1, ',
            r"partition\.json: client 0 has 4 counts under train; one for",
        ),
        ("partition.json", '"clients"', '"clients', r"partition\.json:1: .* JSON was expected; restore the file"),
        ("config.toml", "seed = 0", "seed = ", r"config\.toml:2: .* TOML was expected"),
        ("config.toml", "seed = 0", "seed = true", r"config\.toml: seed is 'True'; a whole number"),
        ("DONE.json", '"rounds": 4', '"rounds": null', r"DONE\.json: rounds is 'None'"),
    ],
)
def test_a_damaged_file_is_refused_with_its_line(tmp_path, name, old, new, complaint):
    folder = write_run(tmp_path / "run")
    edit(folder / name, old, new)
    with pytest.raises(ValueError, match=complaint):
        read_run(folder)


def test_bytes_that_are_no_text_are_refused_with_their_line(tmp_path):
    folder = write_run(tmp_path / "run")
    content = (folder / "times.jsonl").read_bytes().split(b"\n")
    content[2] = b"\xff\xfe"
    (folder / "times.jsonl").write_bytes(b"\n".join(content))
    with pytest.raises(ValueError, match=r"times\.jsonl:3: byte 0xff; UTF-8 text was expected"):
        read_run(folder)
