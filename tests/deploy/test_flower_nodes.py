"""Real processes on this machine: a SuperLink with TLS and three SuperNodes with keys.

Flower starts a Python process for every message, so an exchange takes seconds: one short run, for what is Flower's
own. Families of methods, kills and long absence are tested over MQTT, and below both is the same node.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from laconic.report.page import build_page
from laconic.report.run import read_run

pytest.importorskip("flwr", reason="flwr is not installed: pip install 'laconic-fl[flower]'")
pytest.importorskip("paho.mqtt", reason="paho-mqtt is not installed: pip install 'laconic-fl[mqtt]'")

import httpx
from cryptography.hazmat.primitives.serialization import load_ssh_private_key, load_ssh_public_key
from flower_nodes import PATIENCE_SECONDS, Deployment
from flwr.proto.fleet_pb2 import ActivateNodeRequest
from flwr.supercore.interceptors.http.runtime_version import RuntimeVersionHttpInterceptor
from flwr.supernode.fleet_http_client import FleetHttpClient
from flwr.supernode.node_auth_http_interceptor import NodeAuthHttpInterceptor
from mqtt_nodes import MACHINE, assert_same, make_data, run_here, set_all

from laconic.deploy.keys import make_node_key, read_public_key
from laconic.deploy.processes import make_environment, node_command, spare_loopback
from laconic.deploy.settings import read_settings

pytestmark = pytest.mark.deployment
SETTINGS = ["method.name=fedtm", *MACHINE, "rounds=1"]


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    folder = tmp_path_factory.mktemp("flower")
    with contextlib.closing(Deployment(folder / "d", set_all(make_data(folder / "made.npz")))) as deployment:
        deployment.start_nodes()
        yield deployment


def test_a_run_is_the_same_as_on_one_machine_and_what_carried_it_is_told(
    deployment: Deployment, tmp_path: Path
) -> None:
    """The ledger is less than Flower's letters, and these than what crossed the socket; pytest -s prints them."""
    here = run_here(deployment, SETTINGS, tmp_path / "here")
    out = deployment.run(SETTINGS, tmp_path / "run")
    assert_same(deployment, out, here)
    run, crossed = read_run(out), deployment.proxy.count()
    assert run.carried is not None
    letters = [run.carried.up_bytes, run.carried.down_bytes]
    print(f"coded {[run.upload_bytes, run.download_bytes]} B; {run.carried.n_letters} letters {letters} B")
    print(f"socket {crossed} B in {time.monotonic() - deployment.started:.0f} s")
    assert 0 < run.upload_bytes < letters[0] < crossed[0]
    assert 0 < run.download_bytes < letters[1] < crossed[1]
    assert f"{run.carried.n_letters} messages of Flower carried it" in build_page([run])


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
