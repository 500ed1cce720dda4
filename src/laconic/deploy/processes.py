"""Flower's processes on this machine: started, watched, and started again after a while when they end."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType

from laconic.deploy.folders import PRIVATE, RESTART_SECONDS, read_settings

POLL_SECONDS = 0.5
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


class Keeper:
    """One process, kept alive."""

    def __init__(self, name: str, folder: Path, make_command: Callable[[], list[str]], say: Callable[[str], None]):
        self.name, self.folder, self._make_command, self._say = name, folder.resolve(), make_command, say
        self._process: subprocess.Popen[bytes] | None = None
        self._next_start, self._n_read = 0.0, 0

    def look_after(self) -> bool:
        """Whether it has just been started."""
        if self._process is not None:
            code = self._process.poll()
            if code is None and not self._has_given_up():
                return False
            self.stop()
            self._next_start = time.monotonic() + RESTART_SECONDS
            fate = "gave up" if code is None else f"ended with exit code {code}"
            self._say(f"{self.name} {fate}; again in {RESTART_SECONDS} s (see {self._log})")
        if time.monotonic() < self._next_start:
            return False
        environment = make_environment(self.folder)
        with self._log.open("ab") as log:
            self._n_read = log.tell()
            self._process = subprocess.Popen(
                self._make_command(), env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True, umask=PRIVATE,
            )  # fmt: skip
        self._say(f"{self.name} started, process {self._process.pid}")
        return True

    def stop(self) -> None:
        """It and all that it started."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def _has_given_up(self) -> bool:
        """A SuperNode that meets a broken handshake says so, and then stays without doing anything."""
        with self._log.open("rb") as log:
            log.seek(self._n_read)
            news = log.read()
        self._n_read += max(0, len(news) - len(GIVING_UP))  # it may be half written
        return GIVING_UP in news

    @property
    def _log(self) -> Path:
        return self.folder / "flower.log"


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

    keeper = Keeper("SuperLink", folder, lambda: command, say)
    with stopping([keeper]):
        while True:
            if keeper.look_after():
                is_registered = False
            register()
            time.sleep(POLL_SECONDS)


def keep_nodes(folders: Sequence[Path], say: Callable[[str], None]) -> None:
    """A SuperNode for each folder. Ends with SIGTERM or Ctrl-C."""
    keepers = [Keeper(folder.resolve().name, folder, node_command(folder), say) for folder in folders]
    with stopping(keepers):
        while True:
            for keeper in keepers:
                keeper.look_after()
            time.sleep(POLL_SECONDS)


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


@contextlib.contextmanager
def stopping(keepers: Sequence[Keeper]) -> Iterator[None]:
    """Ctrl-C and SIGTERM end what is inside, and the processes with it."""

    def leave(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGTERM, before)
        for keeper in keepers:
            keeper.stop()
