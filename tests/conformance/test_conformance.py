"""What holds for every method on every fleet. A line in the registry brings a method in here."""

import json
from collections.abc import Callable, Generator, Sequence
from pathlib import Path

import pytest

from laconic.algorithm import state_type
from laconic.algorithms import AVERAGINGS, METHODS, Method
from laconic.fleets import FLEETS, load_fleet
from laconic.fleets.host import Reply, Request
from laconic.records import Round
from laconic.runs.run import resume, run
from laconic.state import thaw
from small_runs import HARD, TWO_EACH, configure, make_data, read_all

TOYS = (
    Method("mean-label", "toys", "mean_label:MeanLabel", "none", "a mean"),
    Method("rumour", "toys", "rumour:Rumour", "none", "bits and whispers"),
)


@pytest.fixture(autouse=True)
def _fleet_can_run(request: pytest.FixtureRequest) -> None:
    if request.node.callspec.params.get("fleet") == "ray":
        request.getfixturevalue("ray_nodes")


@pytest.fixture(autouse=True)
def _toys_are_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    for method in TOYS:
        monkeypatch.setitem(METHODS, method.name, method)


every_method = pytest.mark.parametrize("method", [*METHODS, *(toy.name for toy in TOYS)])
every_fleet = pytest.mark.parametrize("fleet", FLEETS)


def read_rows(folder: Path, name: str) -> list[dict]:
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, bytes]]:
    """What a method leaves behind that runs in one thread from the first round to the last; the same for all fleets."""
    found: dict[str, dict[str, bytes]] = {}

    def read(method: str) -> dict[str, bytes]:
        if method not in found:
            folder = tmp_path_factory.mktemp("undisturbed")
            run(configure(method, "local", make_data(folder, TWO_EACH), *HARD, "fleet.workers=1"), folder / "run")
            found[method] = read_all(folder / "run")
        return found[method]

    return read


@every_method
@every_fleet
def test_same_states_and_ledger_for_any_workers_on_disk_or_in_memory(
    method: str, fleet: str, tmp_path: Path, undisturbed: Callable[[str], dict[str, bytes]]
) -> None:
    data = make_data(tmp_path, TWO_EACH)
    for workers, state in ((2, "memory"), (3, "disk")):
        out = tmp_path / f"{workers}{state}"
        run(configure(method, fleet, data, *HARD, f"fleet.workers={workers}", f"fleet.state={state}"), out)
        assert read_all(out) == undisturbed(method)


@every_method
@every_fleet
def test_resume_ends_bit_identical(
    method: str, fleet: str, tmp_path: Path, undisturbed: Callable[[str], dict[str, bytes]]
) -> None:
    config = configure(method, fleet, make_data(tmp_path, TWO_EACH), *HARD)

    class Stopper:
        """Ends the run in the middle of its second round, as a crash would."""

        def started(self, title: str, rounds: int, first_round: int) -> None: ...

        def progressed(self, round: int, done: int, total: int, what: str) -> None:
            if round == 2 and done:
                raise RuntimeError("power cut")

        def finished_round(self, row: Round, seconds: float) -> None: ...

        def said(self, line: str) -> None: ...

    with pytest.raises(RuntimeError, match="power cut"):
        run(config, tmp_path / "cut", watch=Stopper())
    assert "power cut" in (tmp_path / "cut" / "FAILED.json").read_text()
    assert len(read_rows(tmp_path / "cut", "metrics")) == 2  # rounds 0 and 1
    resume(tmp_path / "cut")
    assert read_all(tmp_path / "cut") == undisturbed(method)


@every_method
@every_fleet
def test_finishes_with_40_percent_of_replies_lost(method: str, fleet: str, tmp_path: Path) -> None:
    data = make_data(tmp_path, TWO_EACH)
    summary = run(configure(method, fleet, data, "fleet.lost_replies=0.4", "rounds=6"), tmp_path / "run")
    assert summary.rounds == 6
    assert sum(row["n_lost"] for row in read_rows(tmp_path / "run", "metrics")) > 0


@every_method
@every_fleet
def test_runs_with_one_client(method: str, fleet: str, tmp_path: Path) -> None:
    data = make_data(tmp_path, [[0, 1, 2]], n_each=10)
    assert run(configure(method, fleet, data), tmp_path / "run").accuracy_mean is not None


@every_method
@every_fleet
def test_runs_with_a_client_of_one_class_and_a_class_nobody_has(method: str, fleet: str, tmp_path: Path) -> None:
    data = make_data(tmp_path, [[0, 1], [2], [1, 2]], n_each=12)
    assert run(configure(method, fleet, data), tmp_path / "run").accuracy_mean is not None
    counts = json.loads((tmp_path / "run" / "partition.json").read_text())
    assert [sum(client["train"][3] for client in counts["clients"]), len(counts["clients"])] == [0, 3]


@every_method
@every_fleet
def test_ledger_is_what_was_handed_over_and_metrics_are_the_ledger(
    method: str, fleet: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = load_fleet(fleet)
    handed_over = {"down": 0, "up": 0, "peer": 0}

    class Weighing(kind):
        """Weighs all that passes between the server's side and the clients'."""

        def _perform(self, requests: Sequence[Request]) -> Generator[Reply]:
            is_published = {request.client: request.is_published for request in requests}
            for request in requests:
                handed_over["down"] += len(request.frame)
                handed_over["peer"] += sum(map(len, (request.heard or {}).values()))
            for reply in super()._perform(requests):
                handed_over["up"] += 0 if is_published[reply.client] else len(reply.encoded.data)
                yield reply

    monkeypatch.setattr(kind.__module__ + "." + kind.__name__, Weighing)
    summary = run(configure(method, fleet, make_data(tmp_path, TWO_EACH)), tmp_path / "run")
    traffic = read_rows(tmp_path / "run", "traffic")
    for way, n_bytes in handed_over.items():
        assert sum(row["sent_bytes"] for row in traffic if row["direction"] == way) == n_bytes
    assert (summary.upload_bytes, summary.download_bytes) == (handed_over["up"], handed_over["down"])


@pytest.mark.parametrize("method", AVERAGINGS)
def test_a_mean_is_taken_as_the_setting_says(method: str, tmp_path: Path) -> None:
    data, found = make_data(tmp_path, TWO_EACH), []
    for how in ("mean", AVERAGINGS[method][-1]):
        sums = ["method.ppa=false"] if method == "fedproto" else []  # which are no means
        run(configure(method, "local", data, f"fleet.averaging={how}", *sums), tmp_path / how)
        found.append({name: data for name, data in read_all(tmp_path / how).items() if name.endswith(".safetensors")})
    assert found[0].keys() == found[1].keys()
    assert found[0] != found[1]


@every_method
def test_state_is_plain_data_that_reads_back(method: str, tmp_path: Path) -> None:
    config = configure(method, "local", make_data(tmp_path, TWO_EACH))
    run(config, tmp_path / "run")
    (server,) = (tmp_path / "run" / "checkpoints").glob("server-*.safetensors")
    kind = state_type(type(config.method), "server")
    assert isinstance(thaw(server.read_bytes(), {"server": kind})["server"], kind)
