"""laconic live beside real nodes: who is there and who is away, and a run that waits, goes on and ends."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from laconic.live.watch import Watch, check_folder

pytest.importorskip("paho.mqtt", reason="paho-mqtt is not installed: pip install 'laconic-fl[mqtt]'")

from mqtt_nodes import MACHINE, N_NODES, Deployment

pytestmark = pytest.mark.deployment


def test_nodes_that_are_there_or_away_and_the_run_they_are_in_are_followed(
    deployment: Deployment, tmp_path: Path
) -> None:
    watch, out = Watch(deployment.folder), tmp_path / "followed"
    check_folder(deployment.folder)

    def wait_for(what: str, is_due: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        def look() -> dict[str, Any] | None:
            watch.look()
            shown = watch.show()
            return shown if is_due(shown) else None

        return deployment.wait_for(what, look)

    def statuses(shown: dict[str, Any]) -> list[str]:
        (server,) = shown["servers"]
        return [node[2] for node in server["nodes"]]

    def state(shown: dict[str, Any]) -> str:
        return next((run["state"] for run in shown["runs"] if run["folder"] == str(out)), "")

    shown = wait_for("three nodes", lambda shown: statuses(shown) == ["online"] * N_NODES)
    assert shown["servers"][0]["is_running"]
    assert shown["servers"][0]["has_broker"]
    settings = ["method.name=fedtm", *MACHINE, "rounds=2"]
    with deployment.hold(0) as wait_for_step:
        running = deployment.begin(settings, out, "--absent", "0")
        wait_for_step()
        shown = wait_for("a run under way", lambda shown: state(shown) == "running")
        (run,) = (run for run in shown["runs"] if run["folder"] == str(out))
        assert (run["server"], run["n_clients"]) == (shown["servers"][0]["folder"], N_NODES)
        assert run["progress"] is not None
        deployment.end("node-002")
        wait_for("a node that is away", lambda shown: statuses(shown) == ["online", "online", "offline"])
    wait_for("the run's end", lambda shown: state(shown) == "finished")
    deployment.wait_for("its watcher's end", lambda: running.poll() is not None)
    deployment.keep("node-002")
    wait_for("it to be back", lambda shown: statuses(shown) == ["online"] * N_NODES)
    # by its own folder a run is followed with the nodes that it is on
    alone = Watch(out)
    alone.look()
    assert [run["state"] for run in alone.show()["runs"]] == ["finished"]
    assert statuses(alone.show()) == ["online"] * N_NODES
