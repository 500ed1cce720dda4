"""A run as its folder tells of it: how far it is, how it stands, and back again with it to its checkpoint."""

import json
import os
import shutil
import time
from pathlib import Path

import pytest
from followed import LIAR, N_ROUNDS, SMALL

from laconic.files import lock
from laconic.live.clients import MOST_EVENTS, describe_clients, read_events
from laconic.live.run import COLUMNS, FollowedRun
from laconic.live.watch import Watch, check_folder
from laconic.records import Failure, Partition, Progress, Pulse, Round, Summary, Times, log_event, read_lines, write
from laconic.runs.config import read_config
from laconic.runs.run import resume, run


def follow(folder: Path) -> FollowedRun:
    followed = FollowedRun(folder, "one")
    followed.look()
    return followed


def unfinish(folder: Path) -> None:
    (folder / Summary.file).unlink()


def test_a_finished_run_is_told_whole_once(folder: Path) -> None:
    followed = FollowedRun(folder, "one")
    news = followed.look()
    assert news is not None
    assert (news["state"], news["method"], news["data"], news["rounds"]) == ("finished", "fedtm", "digits", N_ROUNDS)
    (rows,) = [news["rows"]]
    recorded = list(read_lines(folder, Round))
    for row, record in zip(rows, recorded, strict=True):
        told = dict(zip(COLUMNS, row, strict=True))
        assert (told["round"], told["up"], told["down"]) == (record.round, record.upload_bytes, record.download_bytes)
        assert (told["busiest"], told["budget"]) == (record.busiest_bytes, 100_000)
    assert rows[-1][1] == pytest.approx(recorded[-1].accuracy_mean, abs=1e-5)
    assert followed.look() is None


def test_a_round_counts_once_its_time_is_written(folder: Path) -> None:
    unfinish(folder)
    times = folder / Times.file
    whole = times.read_text()
    times.write_text("".join(whole.splitlines(keepends=True)[:-1]))
    followed = follow(folder)
    assert [row[0] for row in followed.rows] == [0, 1, 2]
    times.write_text(whole)
    news = followed.look()
    assert news is not None
    assert (news["n_kept"], [row[0] for row in news["rows"]]) == (3, [3])


def test_after_a_crash_and_its_resumption_no_round_is_there_twice_and_none_that_was_lost(tmp_path: Path) -> None:
    """The page is told how many rounds to keep, also if the run has gone on beyond before the next look."""
    config = read_config(None, [*SMALL, "rounds=3", "checkpoint_every=100"])
    run(config, tmp_path / "run")
    folder = tmp_path / "run"
    lines = {name: (folder / name).read_text().splitlines(keepends=True) for name in (Round.file, Times.file)}
    later = {name: [*some, some[-1].replace('"round": 3', '"round": 4')] for name, some in lines.items()}
    unfinish(folder)
    for name, some in later.items():  # a fourth round that a crash left behind the last checkpoint
        (folder / name).write_text("".join(some))
    followed = follow(folder)
    assert [row[0] for row in followed.rows] == [0, 1, 2, 3, 4]
    assert followed.standing.state == "stopped"
    resume(folder, rounds=6)
    news = followed.look()
    assert news is not None
    assert news["n_kept"] == 4
    assert [row[0] for row in news["rows"]] == [4, 5, 6]
    assert [row[0] for row in followed.rows] == [*range(7)]
    assert followed.rows == follow(folder).rows
    assert news["rounds"] == 6


def test_a_run_is_running_while_its_folder_is_in_use_and_says_where_it_is(folder: Path) -> None:
    unfinish(folder)
    followed = follow(folder)
    assert (followed.standing.state, followed.standing.ends_at) == ("stopped", None)
    pulse = Pulse(folder)
    with lock(folder):
        pulse.beat(Progress(N_ROUNDS + 1, "train", 0, 4))
        pulse.beat(Progress(N_ROUNDS + 1, "train", 1, 4))  # too soon after the one before
        followed.look()
        assert followed.standing.state == "running"
        assert followed.standing.progress == (N_ROUNDS + 1, "train", 0, 4)
        (folder / Progress.file).write_text('{"round": 4, "st')  # half written: as it was
        followed.look()
        assert followed.standing.progress == (N_ROUNDS + 1, "train", 0, 4)
        pulse.beat(Progress(N_ROUNDS, "evaluate", 0, 4))  # of a round that has ended
        followed.look()
        assert followed.standing.progress is None
    pulse.end()
    assert not (folder / Progress.file).exists()
    followed.look()
    assert followed.standing.state == "stopped"


def test_a_run_tells_its_progress_while_it_goes_and_leaves_no_trace_of_it(tmp_path: Path) -> None:
    seen: list[str] = []

    class Watching:
        def started(self, title: str, rounds: int, first_round: int) -> None: ...

        def finished_round(self, row: Round, seconds: float) -> None: ...

        def said(self, line: str) -> None: ...

        def progressed(self, round: int, done: int, total: int, what: str) -> None:
            seen.append((tmp_path / "run" / Progress.file).read_text())

    run(read_config(None, [*SMALL, "rounds=1"]), tmp_path / "run", watch=Watching())
    assert {"round": 1, "step": "train", "n_done": 0, "n_asked": 4} in map(json.loads, seen)
    assert not (tmp_path / "run" / Progress.file).exists()


def test_the_end_is_foreseen_from_the_rounds_so_far(folder: Path) -> None:
    unfinish(folder)
    config = folder / "config.toml"
    config.write_text(config.read_text().replace(f"rounds = {N_ROUNDS}", "rounds = 13"))
    times = [Times(number, 100.0 if number == 0 else 6.0, 0.0) for number in range(N_ROUNDS + 1)]
    (folder / Times.file).write_text("".join(json.dumps(vars(row)) + "\n" for row in times))
    with lock(folder):
        ends_at = follow(folder).standing.ends_at
        since = max((folder / name).stat().st_mtime for name in (Times.file, "lock"))
    assert ends_at is not None
    assert ends_at - since == pytest.approx(10 * 6.0)


def test_a_failed_run_says_why_and_a_damaged_one_where(folder: Path) -> None:
    unfinish(folder)
    write(folder, Failure("ValueError: no such luck"))
    followed = follow(folder)
    assert (followed.standing.state, followed.standing.words) == ("failed", "ValueError: no such luck")
    path = folder / Round.file
    whole = path.read_text()
    path.write_text(whole.replace('"round": 2', '"round": -2'))
    news = followed.look()
    assert news is not None
    assert (news["state"], news["rows"]) == ("unreadable", [])
    assert f"{path}:3: round is '-2'" in news["words"]
    assert followed.look() is None
    path.write_text(whole)
    os.utime(path, ns=(0, time.time_ns() + 1))
    followed.look()
    assert (followed.standing.state, len(followed.rows)) == ("failed", N_ROUNDS + 1)


def test_a_file_that_is_brought_back_makes_a_run_readable_again(folder: Path) -> None:
    path = folder / Partition.file
    whole = path.read_text()
    path.write_text("{")
    followed = follow(folder)
    assert followed.standing.state == "unreadable"
    path.write_text(whole)
    followed.look()
    assert followed.standing.state == "finished"


def test_a_run_is_followed_once_however_it_is_reached(folder: Path) -> None:
    (folder.parent / "latest").symlink_to(folder)
    watch = Watch(folder.parent)
    watch.look()
    assert len(watch.runs) == 1


def test_clients_are_told_with_what_they_did_and_whose_reply_was_refused(folder: Path) -> None:
    told = describe_clients(follow(folder))
    assert (told["round"], told["tested"]) == (N_ROUNDS, N_ROUNDS)
    did = {client[0]: client[2] for client in told["clients"]}
    assert did == {number: "refused" if number == LIAR else "sent" for number in range(4)}
    last = list(read_lines(folder, Round))[-1]
    assert sum(client[6] for client in told["clients"]) == last.upload_bytes
    assert sum(client[7] for client in told["clients"]) == last.download_bytes
    accuracies = [client[3] for client in told["clients"]]
    assert sum(accuracies) / len(accuracies) == pytest.approx(last.accuracy_mean)
    assert told["events"][0][1] == "done"


def test_all_whose_replies_were_refused_are_told_though_not_every_line_is_shown(folder: Path) -> None:
    (folder / "events.log").write_text("2026-01-01  error[E210] round 2, client 7: of the round before\n")
    for client in range(300):
        log_event(folder, f"error[E210] round {N_ROUNDS}, client {client}: reply to train refused")
    log_event(folder, "done")
    events, refused, n_more = read_events(follow(folder), N_ROUNDS)
    assert refused == {*range(300)}
    assert (len(events), n_more) == (MOST_EVENTS, 301 - MOST_EVENTS)
    assert describe_clients(follow(folder))["n_more_events"] == n_more


# ---------------------------------------------------------------- folders
def test_runs_that_appear_later_show_up_and_those_that_go_away_go(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("SEARCH_SECONDS", 0.0), ("SEARCH_SHARE", 1e9)):
        monkeypatch.setattr(f"laconic.live.watch.{name}", value)
    root = folder.parent
    watch = Watch(root / "none yet")
    assert watch.look() is None
    watch = Watch(root)
    news = watch.look()
    assert news is not None
    assert [run["name"] for run in news["runs"]] == ["one"]
    shutil.copytree(folder, root / "compare" / "fedtm" / "seed-1")
    news = watch.look()
    assert news is not None
    assert [run["name"] for run in news["runs"]] == ["compare/fedtm/seed-1"]
    assert [run["name"] for run in watch.show()["runs"]] == ["one", "compare/fedtm/seed-1"]
    shutil.rmtree(folder)
    news = watch.look()
    assert news is not None
    assert news["gone"] == ["one"]


def test_a_folder_without_runs_is_refused_unless_one_is_being_prepared(tmp_path: Path) -> None:
    for path, words in ((tmp_path / "none", "is no folder"), (tmp_path, "holds no run")):
        with pytest.raises(ValueError, match=f"{words}; give one that laconic run"):
            check_folder(path)
    with lock(tmp_path / "compare" / "fedtm"):
        check_folder(tmp_path / "compare")
