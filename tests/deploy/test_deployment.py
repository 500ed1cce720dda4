"""Real processes on this machine: a SuperLink with TLS, three SuperNodes with keys, and what becomes of them.

Flower starts a Python process for every message, so an exchange takes seconds: few rounds, one deployment for all, and
several runs on it at a time. `make test` has these tests in a pytest of their own, beside the others.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from laconic.fleets.source import ClientData
from laconic.report.page import build_page
from laconic.report.run import read_run
from laconic.runs.config import read_config
from laconic.runs.run import drive, find_conditions
from laconic.simulation import Federation, federate

pytest.importorskip("flwr", reason="flwr is not installed: pip install 'laconic-fl[flower]'")

import httpx
from cryptography.hazmat.primitives.serialization import load_ssh_private_key, load_ssh_public_key
from flower_nodes import N_NODES, PATIENCE_SECONDS, Deployment, set_all
from flwr.proto.fleet_pb2 import ActivateNodeRequest
from flwr.supercore.interceptors.http.runtime_version import RuntimeVersionHttpInterceptor
from flwr.supernode.fleet_http_client import FleetHttpClient
from flwr.supernode.node_auth_http_interceptor import NodeAuthHttpInterceptor

from laconic.deploy.examples import read_examples
from laconic.deploy.keys import make_node_key, read_public_key
from laconic.deploy.processes import make_environment, node_command, spare_loopback
from laconic.deploy.settings import read_settings

pytestmark = pytest.mark.deployment
N_ROUNDS, AT_A_TIME = 2, 2
COMMON = [f"rounds={N_ROUNDS}", f"evaluate_every={N_ROUNDS}"]
MACHINE = ["method.epochs=1", "method.threshold=20", "method.n_clauses=8"]
NETWORK = ["method.training.model=resnet-small", "method.training.batch=8", "method.training.epochs=1"]
OF_EACH_FAMILY = {
    "fedtm": MACHINE,
    "cs-pfedtm": [*MACHINE, "method.n_shared=4"],
    "clausepool": [*MACHINE, "method.min_examples=2"],
    "fedpurin": NETWORK,
    "fedtgp": [*NETWORK, "method.cps_dims=5", "method.ppa=true", "method.server_epochs=3", "method.n_features=20"],
    "pfed1bs": NETWORK,
}


def configure(method: str) -> list[str]:
    return [f"method.name={method}", *OF_EACH_FAMILY[method], *COMMON]


def make_data(path: Path) -> list[str]:
    """8 by 8 bit images of 3 classes; each client has two of them."""
    rng = np.random.default_rng(0)
    patterns, arrays = rng.random((3, 8, 8)) < 0.5, {}
    for part in ("train", "test"):
        owners = np.repeat(np.arange(N_NODES), 24)
        labels = (owners + np.arange(len(owners)) % 2) % 3
        x = patterns[labels] ^ (rng.random((len(labels), 8, 8)) < 0.1)
        arrays |= {f"x_{part}": x.astype(np.uint8), f"y_{part}": labels, f"owner_{part}": owners}
    np.savez(path, **arrays)
    return [f"data.name={path}", "data.partition=natural", "data.group=owner", "data.min_samples=10"]


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    folder = tmp_path_factory.mktemp("deployment")
    with contextlib.closing(Deployment(folder / "d", set_all(make_data(folder / "made.npz")))) as deployment:
        for method in OF_EACH_FAMILY:  # first: the nodes then find kernels compiled, and none compiles beside another
            run_here(deployment, method, folder / method)
        deployment.start_nodes()
        yield deployment


@pytest.fixture(scope="module")
def runs(deployment: Deployment, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[Path]]]:
    """One of each family, under way; a node that is served by several has less time to wait."""
    folder = tmp_path_factory.mktemp("runs")
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        started = {name: pool.submit(deployment.run, configure(name), folder / name) for name in OF_EACH_FAMILY}
        try:
            yield started
        finally:  # after Ctrl-C
            pool.shutdown(wait=False, cancel_futures=True)
            deployment.end_runs()


def run_here(deployment: Deployment, method: str, out: Path) -> None:
    """On the local fleet, with the nodes' own files."""
    config, source = read_config(None, configure(method)), {}
    for client in range(N_NODES):
        settings = read_settings(deployment.node(client), "node")
        source[client] = read_examples(deployment.node(client) / settings.data, settings.task)

    @contextlib.contextmanager
    def open_here(on_progress) -> Iterator[Federation]:
        with federate(
            config.method,
            settings.task,
            ClientData(((0, source),)),
            config.seed,
            workers=1,
            conditions=find_conditions(config),
            folder=out / "checkpoints",
            on_progress=on_progress,
        ) as federation:
            federation.fleet._take_notes = lambda hop, reply: None  # owners of nodes let none go, unless they say so
            yield federation

    out.mkdir()
    drive(config, out, open_here, None)


def assert_same_as_here(deployment: Deployment, method: str, out: Path, elsewhere: Deployment | None = None) -> None:
    """elsewhere: where it ran, if not there."""
    here = deployment.folder.parent / method
    names = [f"{name}.jsonl" for name in ("metrics", "clients", "pairs", "matrices", "traffic")]
    for name in [*names, f"checkpoints/server-{N_ROUNDS:06d}.safetensors"]:
        assert (out / name).read_bytes() == (here / name).read_bytes(), name
    run_id = json.loads((out / "deployed.json").read_text())["run"]
    for client in range(N_NODES):
        newest = sorted(((elsewhere or deployment).node(client) / "runs" / run_id).glob("round-*"))[-1]
        (local,) = (here / "checkpoints").glob(f"client-{client:05d}-*")
        assert (newest / "client.safetensors").read_bytes() == local.read_bytes(), client


@pytest.mark.parametrize("method", OF_EACH_FAMILY)
def test_states_ledger_and_records_equal_the_local_fleets_bit_for_bit(
    method: str, deployment: Deployment, runs: dict[str, Future[Path]]
) -> None:
    assert_same_as_here(deployment, method, runs[method].result())


def test_the_ledger_is_less_than_flowers_letters_and_these_than_what_crossed_the_socket(
    deployment: Deployment, runs: dict[str, Future[Path]]
) -> None:
    """pytest -s prints them; the report of a run states its own."""
    crossed, rows = deployment.proxy.count(), []
    for name, future in runs.items():
        run = read_run(future.result())
        assert run.carried is not None
        rows.append([run.upload_bytes, run.download_bytes, run.carried.up_bytes, run.carried.down_bytes])
        print(f"{name}: up and down, coded {rows[-1][:2]} B; {run.carried.n_letters} letters {rows[-1][2:]} B")
        assert f"{run.carried.n_letters} messages of Flower carried it" in build_page([run])
    up_bytes, down_bytes, up_letters, down_letters = np.sum(rows, axis=0)
    print(f"socket {crossed} B in {time.monotonic() - deployment.started:.0f} s")
    assert 0 < up_bytes < up_letters < crossed[0]
    assert 0 < down_bytes < down_letters < crossed[1]


def test_a_run_on_data_that_nodes_bring_ends_with_a_report_that_claims_no_other(
    deployment: Deployment, runs: dict[str, Future[Path]], tmp_path: Path
) -> None:
    for future in runs.values():  # so that nodes of another deployment do not slow them
        future.result()
    folder, out = tmp_path / "own", tmp_path / "run"
    words = ["--nodes", str(N_NODES), "--shape", "8,8", "--classes", "3"]
    with contextlib.closing(Deployment(folder, words)) as own:
        for client in range(N_NODES):
            shutil.copy(deployment.node(client) / "data.npz", own.node(client))
        own.start_nodes()
        own.run(configure("fedtm"), out)
    run, page = read_run(out), (out / "report.html").read_text()
    assert run.is_finished
    assert run.partition.is_nodes_own
    for score in run.scores:
        assert f"<tr><td>{score.client}<td data-v=-1>–<td data-v=24>24<td" in page
    assert "<h1>fedtm on the nodes’ own data</h1>" in page
    shown = page.partition("<script")[0]
    assert "digits" not in shown  # the configuration's, which nobody has
    assert "dirichlet" not in shown
    assert_same_as_here(deployment, "fedtm", out, own)


@pytest.mark.parametrize(("has_key", "words"), [(True, "Failed to activate"), (False, "must be registered")])
def test_a_node_that_was_not_registered_is_refused(
    deployment: Deployment, has_key: bool, words: str, tmp_path: Path
) -> None:
    stranger = tmp_path / "node-000"
    shutil.copytree(deployment.node(0), stranger, ignore=shutil.ignore_patterns("runs", "flower*", "key"))
    make_node_key(stranger / "key", tmp_path / "key.pub")
    command = node_command(stranger)()
    if not has_key:
        at = command.index("--auth-supernode-private-key")
        del command[at : at + 2]
    command[0] = str(Path(sys.executable).parent / command[0])
    with (tmp_path / "log").open("w") as log:
        options = {"env": make_environment(stranger), "stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
        node = subprocess.Popen(command, **options, start_new_session=True)
    try:
        assert node.wait(PATIENCE_SECONDS) != 0
    finally:  # its SuperExec may outlive it
        with contextlib.suppress(ProcessLookupError):
            os.killpg(node.pid, signal.SIGKILL)
        node.wait()
    assert words in (tmp_path / "log").read_text()


def test_a_node_that_names_anothers_key_without_having_it_is_refused(
    deployment: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in spare_loopback().items():
        monkeypatch.setenv(name, value)
    make_node_key(tmp_path / "key", tmp_path / "key.pub")
    public, settings = deployment.server / "nodes" / "000.pub", read_settings(deployment.server, "server")
    wrong = load_ssh_private_key((tmp_path / "key").read_bytes(), None)
    signing = NodeAuthHttpInterceptor(wrong, load_ssh_public_key(public.read_bytes()))
    authority = (deployment.server / "ca.crt").read_bytes()
    version = RuntimeVersionHttpInterceptor(component_name="SuperNode")
    request = ActivateNodeRequest(public_key=read_public_key(public), heartbeat_interval=30.0)
    with (
        FleetHttpClient.from_server_address(settings.address, False, authority, [version, signing]) as client,
        pytest.raises(httpx.HTTPStatusError, match="401 Unauthorized"),
    ):
        client.ActivateNode(request)


def test_a_run_ends_the_same_though_app_node_and_superlink_are_killed(deployment: Deployment, tmp_path: Path) -> None:
    """Each of them in the midst of the first round's training; no round is applied twice."""
    out, method = tmp_path / "run", "fedpurin"

    def has_noticed(words: str) -> bool:
        return (out / "events.log").exists() and words in (out / "events.log").read_text()

    with ThreadPoolExecutor() as pool, contextlib.ExitStack() as stack:
        stack.callback(deployment.end_runs)
        with deployment.hold(2) as wait_for_third:  # so that the round cannot end meanwhile
            with deployment.hold(0) as wait_for_first, deployment.hold(1) as wait_for_second:
                running = pool.submit(deployment.run, configure(method), out)
                wait_for_first()
                deployment.kill("flwr-clientapp", deployment.node(0))
                wait_for_second()
                deployment.kill("flower-supernode", deployment.node(1))
                wait_for_third()
            for words in ("client 0: error 8", "client 1: error 5"):
                deployment.wait_for(words, lambda words=words: has_noticed(words))
            deployment.kill("flower-superlink", deployment.server)
        running.result()
    assert json.loads((out / "attempts.json").read_text()) > 1  # the run was lost with the SuperLink
    rounds = [json.loads(line)["round"] for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert rounds == [*range(N_ROUNDS + 1)]
    assert_same_as_here(deployment, method, out)
