"""Real nodes for all tests of them; one that fails shows what their processes said last."""

import contextlib
from collections.abc import Generator, Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Three nodes over MQTT, alive from test to test, so that imports are paid once. Tests of Flower have their own."""
    pytest.importorskip("paho.mqtt", reason="paho-mqtt is not installed: pip install 'laconic-fl[mqtt]'")
    import mqtt_nodes

    if not mqtt_nodes.find_broker():
        pytest.skip("mosquitto is not installed: apt install mosquitto")
    folder = tmp_path_factory.mktemp("deployment")
    words = mqtt_nodes.set_all(mqtt_nodes.make_data(folder / "made.npz"))
    with contextlib.closing(mqtt_nodes.Deployment(folder / "d", words)) as deployment:
        with (deployment.folder / "broker" / "acl").open("a") as rights:
            rights.write("\nuser wiretap\ntopic read l/#\n")  # for tests that say again what was said
        deployment.start()
        yield deployment


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    deployment = getattr(item, "funcargs", {}).get("deployment")
    if report.failed and deployment is not None:
        report.sections.append(("processes of the deployment", deployment.describe()))
    return report
