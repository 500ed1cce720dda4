"""Flower's processes on this machine."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from laconic.deploy.folders import FLOWER_RESTART_SECONDS
from laconic.deploy.keeper import POLL_SECONDS, Keeper, keep, stopping
from laconic.deploy.settings import read_settings

GIVING_UP = b"SSL/TLS handshake error detected"
# Nothing is sent to Flower's makers, nothing is looked up there, and nothing is installed when a run starts.
QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
}


def make_environment(folder: Path) -> dict[str, str]:
    """In which Flower's programs run for the server or node of this folder."""
    home = folder / "flower"
    home.mkdir(mode=0o700, exist_ok=True)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return {**os.environ, **QUIET, **spare_loopback(), "FLWR_HOME": str(home), "PATH": path}


def spare_loopback() -> dict[str, str]:
    """This machine is behind no proxy, whatever the environment says of others."""
    spared = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    return dict.fromkeys(("no_proxy", "NO_PROXY"), ",".join(filter(None, [spared, "127.0.0.1", "localhost"])))


class FlowerKeeper(Keeper):
    def __init__(self, name: str, folder: Path, make_command: Callable[[], list[str]], say: Callable[[str], None]):
        folder = folder.resolve()
        log, environment = folder / "flower.log", make_environment(folder)
        super().__init__(name, log, make_command, say, FLOWER_RESTART_SECONDS, environment)
        self._n_read = log.stat().st_size if log.exists() else 0

    def _has_given_up(self) -> bool:
        """A SuperNode that meets a broken handshake says so, and then stays without doing anything."""
        with self.log.open("rb") as log:
            log.seek(self._n_read)
            news = log.read()
        has_given_up = GIVING_UP in news
        self._n_read += len(news) if has_given_up else max(0, len(news) - len(GIVING_UP))  # it may be half written
        return has_given_up


def keep_server(folder: Path, say: Callable[[str], None]) -> None:
    """The SuperLink of this folder; nodes are registered whenever it has started. Ends with SIGTERM or Ctrl-C."""
    from laconic.deploy.control import UNREACHABLE, Control

    settings = read_settings(folder, "server")
    folder = folder.resolve()
    host = settings.host if settings.host in ("127.0.0.1", "localhost") else "0.0.0.0"
    files = {"--ssl-ca-certfile": "ca.crt", "--ssl-certfile": "server.crt", "--ssl-keyfile": "server.key"}
    command = ["flower-superlink", "--host", host, "--port", str(settings.port), "--enable-supernode-auth"]
    command += ["--disable-runtime-dependency-installation", "--database", str(folder / "superlink.db")]
    command += [word for flag, name in files.items() for word in (flag, str(folder / name))]
    is_registered = False

    def register() -> None:
        nonlocal is_registered
        if not is_registered:
            with contextlib.suppress(UNREACHABLE), Control(folder) as control:
                n_nodes = len(control.register())
                is_registered = True
                say(f"{n_nodes} nodes are registered; listening on {host}:{settings.port}")

    keeper = FlowerKeeper("SuperLink", folder, lambda: command, say)
    with stopping([keeper]):
        while True:
            if keeper.look_after():
                is_registered = False
            register()
            time.sleep(POLL_SECONDS)


def keep_nodes(folders: Sequence[Path], say: Callable[[str], None]) -> None:
    """A SuperNode for each folder. Ends with SIGTERM or Ctrl-C."""
    keep([FlowerKeeper(folder.resolve().name, folder, node_command(folder), say) for folder in folders])


def node_command(folder: Path) -> Callable[[], list[str]]:
    settings, folder = read_settings(folder, "node"), folder.resolve()

    def make() -> list[str]:
        with socket.socket() as probe:  # any free port will do, for this machine's own processes
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        command = ["flower-supernode", "--superlink", settings.address, "--root-certificates", str(folder / "ca.crt")]
        command += ["--auth-supernode-private-key", str(folder / "key"), "--host", "127.0.0.1", "--port", str(port)]
        return [*command, "--node-config", f'folder="{folder}"']

    return make
