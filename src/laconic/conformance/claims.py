"""What holds for every method on every fleet, as claims that can be tried on any method: `laconic conform METHOD`.

Clients are few and their images small, so that all claims about a method take seconds. A claim is a function of a
method's name, a fleet's name and an empty folder, and raises AssertionError where it does not hold.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from laconic.algorithm import state_type
from laconic.algorithms import load_method
from laconic.conformance.liars import list_fields, try_lies
from laconic.conformance.small_runs import HARD, TWO_EACH, configure, make_data, read_all, read_rows
from laconic.fleets.base import BaseFleet
from laconic.fleets.host import Reply, Request
from laconic.runs.run import resume, run
from laconic.runs.typed_toml import ConfigError
from laconic.state import thaw

Claim = Callable[[str, str, Path], None]


@cache
def run_undisturbed(method: str) -> dict[str, bytes]:
    """What a method leaves behind that runs in one thread from the first round to the last; the same for all fleets."""
    with TemporaryDirectory(prefix="laconic-") as name:
        folder = Path(name)
        run(configure(method, "local", make_data(folder, TWO_EACH), *HARD, "fleet.workers=1"), folder / "run")
        return read_all(folder / "run")


def expect_same(found: dict[str, bytes], due: dict[str, bytes], where: str) -> None:
    others = sorted(name for name in {*found, *due} if found.get(name) != due.get(name))
    assert not others, f"{where}: {', '.join(others)} differ from those of an undisturbed run in one thread"


def same_states_and_ledger_for_any_workers_on_disk_or_in_memory(method: str, fleet: str, folder: Path) -> None:
    data = make_data(folder, TWO_EACH)
    for workers, state in ((2, "memory"), (3, "disk")):
        out = folder / f"{workers}{state}"
        run(configure(method, fleet, data, *HARD, f"fleet.workers={workers}", f"fleet.state={state}"), out)
        where = f"{workers} workers, states {'on' if state == 'disk' else 'in'} {state}"
        expect_same(read_all(out), run_undisturbed(method), where)


def resume_ends_bit_identical(method: str, fleet: str, folder: Path) -> None:
    config, out = configure(method, fleet, make_data(folder, TWO_EACH), *HARD), folder / "cut"
    try:
        run(config, out, watch=PowerCut(round=2))
    except PowerCut:
        pass
    else:
        raise AssertionError("the run went on through a power cut")
    assert len(read_rows(out, "metrics")) == 2, "rounds 0 and 1 should be on record"
    resume(out)
    expect_same(read_all(out), run_undisturbed(method), "resumed after a power cut in round 2")


def finishes_with_40_percent_of_replies_lost(method: str, fleet: str, folder: Path) -> None:
    config = configure(method, fleet, make_data(folder, TWO_EACH), "fleet.lost_replies=0.4", "rounds=6")
    assert run(config, folder / "run").rounds == 6
    assert sum(row["n_lost"] for row in read_rows(folder / "run", "metrics")) > 0


def runs_with_one_client(method: str, fleet: str, folder: Path) -> None:
    data = make_data(folder, [[0, 1, 2]], n_each=10)
    assert run(configure(method, fleet, data), folder / "run").accuracy_mean is not None


def runs_with_a_client_of_one_class_and_a_class_nobody_has(method: str, fleet: str, folder: Path) -> None:
    data = make_data(folder, [[0, 1], [2], [1, 2]], n_each=12)
    assert run(configure(method, fleet, data), folder / "run").accuracy_mean is not None
    counts = json.loads((folder / "run" / "partition.json").read_text("utf-8"))
    assert [sum(client["train"][3] for client in counts["clients"]), len(counts["clients"])] == [0, 3]


def runs_without_validation_examples(method: str, fleet: str, folder: Path) -> None:
    config = configure(method, fleet, make_data(folder, TWO_EACH), "data.validation=0")
    assert run(config, folder / "run").accuracy_mean is not None


def ledger_is_what_was_handed_over_and_metrics_are_the_ledger(method: str, fleet: str, folder: Path) -> None:
    handed_over = {"down": 0, "up": 0, "peer": 0}

    def weigh(opened: BaseFleet) -> None:
        """All that passes between the server's side and the clients'."""
        perform = opened._perform

        def weighing(requests: Sequence[Request]) -> Generator[Reply]:
            is_published = {request.client: request.is_published for request in requests}
            for request in requests:
                handed_over["down"] += len(request.frame)
                handed_over["peer"] += sum(map(len, (request.heard or {}).values()))
            for reply in perform(requests):
                handed_over["up"] += 0 if is_published[reply.client] else len(reply.encoded.data)
                yield reply

        opened._perform = weighing  # type: ignore[method-assign]

    summary = run(configure(method, fleet, make_data(folder, TWO_EACH)), folder / "run", on_open=weigh)
    traffic = read_rows(folder / "run", "traffic")
    for way, n_bytes in handed_over.items():
        counted = sum(row["sent_bytes"] for row in traffic if row["direction"] == way)
        assert counted == n_bytes, f"{way}: {n_bytes} bytes were handed over, {counted} counted"
    assert (summary.upload_bytes, summary.download_bytes) == (handed_over["up"], handed_over["down"])


def state_is_plain_data_that_reads_back(method: str, fleet: str, folder: Path) -> None:
    config = configure(method, fleet, make_data(folder, TWO_EACH))
    run(config, folder / "run")
    (server,) = (folder / "run" / "checkpoints").glob("server-*.safetensors")
    kind = state_type(type(config.method), "server")
    assert isinstance(thaw(server.read_bytes(), {"server": kind})["server"], kind)


def no_lie_ends_or_spoils_a_run_or_has_honest_clients_refused(method: str, fleet: str, folder: Path) -> None:
    """On one fleet, for all read replies alike."""
    if fleet != "local":
        return
    for step, field in list_fields(load_method(method)):
        for found in try_lies(method, step, field):
            harm = found.outcome == "ended" or found.not_finite or found.honest_refused
            words = found.words or found.not_finite or "honest clients were refused"
            assert not harm, f"{step}, {field.name}, {found.lie}: {words}"


CLAIMS: tuple[Claim, ...] = (
    same_states_and_ledger_for_any_workers_on_disk_or_in_memory,
    resume_ends_bit_identical,
    finishes_with_40_percent_of_replies_lost,
    runs_with_one_client,
    runs_with_a_client_of_one_class_and_a_class_nobody_has,
    runs_without_validation_examples,
    ledger_is_what_was_handed_over_and_metrics_are_the_ledger,
    state_is_plain_data_that_reads_back,
    no_lie_ends_or_spoils_a_run_or_has_honest_clients_refused,
)


def try_claims(method: str, fleets: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """A line about each claim on each fleet, and whether it holds."""
    for claim in CLAIMS:
        for fleet in fleets:
            words = f"{method} on {fleet}: {claim.__name__.replace('_', ' ')}"
            with TemporaryDirectory(prefix="laconic-") as folder:
                try:
                    claim(method, fleet, Path(folder))
                except ConfigError:  # about what was asked, not about the claim
                    raise
                except Exception as error:
                    yield f"no   {words}: {type(error).__name__} {error}", False
                else:
                    yield f"yes  {words}", True


class PowerCut(RuntimeError):
    """Watches a run and ends it in the middle of a round."""

    def __init__(self, round: int) -> None:
        super().__init__(f"power cut in round {round}")
        self.round = round

    def started(self, title: str, rounds: int, first_round: int) -> None: ...

    def progressed(self, round: int, done: int, total: int, what: str) -> None:
        if round == self.round and done:
            raise self

    def finished_round(self, row: Any, seconds: float) -> None: ...

    def said(self, line: str) -> None: ...
