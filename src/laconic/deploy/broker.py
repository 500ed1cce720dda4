"""A broker of our own: mosquitto with TLS, where a certificate of the deployment opens a node's own topics alone."""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import socket
import time
from pathlib import Path

from laconic.files import write_atomically
from laconic.runs.typed_toml import ConfigError

LOOPBACK = ("127.0.0.1", "localhost")
# who connects is who its certificate says, whatever it calls itself; nothing is stored: who was away is asked again
CONFIGURATION = """\
listener {port} {bound_to}
cafile ca.crt
certfile cert.crt
keyfile cert.key
crlfile crl.pem
tls_version tlsv1.3
require_certificate true
use_identity_as_username true
use_username_as_clientid true
allow_anonymous false
acl_file acl
max_packet_size {largest_bytes}
max_inflight_messages 60000
max_queued_messages 100000
set_tcp_nodelay true
persistence false
pid_file broker.pid
log_dest stderr
log_type all
user {user}
"""
# l/NODE/q: requests, l/NODE/r: replies, l/NODE/s: whether the node is there
RIGHTS = """\
user server
topic write l/+/q
topic read l/+/r
topic read l/+/s

pattern read l/%u/q
pattern write l/%u/r
pattern write l/%u/s
"""
# As many connections as the system allows. mosquitto says only among its debugging lines who was denied what; the two
# below come with every message.
COMMAND = (
    "ulimit -n $(ulimit -Hn); "
    "{mosquitto} -c mosquitto.conf 2>&1 | grep --line-buffered -vE ': (Sending|Received) ' >>broker.log"
)
LIMIT = "message_size_limit"  # of payloads; mosquitto reads it again on SIGHUP, and max_packet_size only at its start
PID = "broker.pid"  # as the configuration has it
RELOADED, RELOAD_SECONDS = b"Reloading config.", 5.0


def write_broker(folder: Path, host: str, port: int, largest_bytes: int) -> None:
    bound_to = "127.0.0.1" if host in LOOPBACK else "0.0.0.0"
    settings = {"port": port, "bound_to": bound_to, "largest_bytes": largest_bytes, "user": getpass.getuser()}
    (folder / "mosquitto.conf").write_text(CONFIGURATION.format(**settings), "utf-8")
    (folder / "acl").write_text(RIGHTS, "utf-8")


def broker_command() -> list[str]:
    """To be started in the broker's folder."""
    found = shutil.which(
        "mosquitto", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
    )
    if found is None:
        raise ConfigError(
            "E140",
            "a broker of our own needs mosquitto 2, which is not installed.  apt install mosquitto, "
            "or name a broker that runs elsewhere (docs/deploy.md)",
        )
    return ["/bin/sh", "-c", COMMAND.format(mosquitto=found)]


def limit_messages(folder: Path, most_bytes: int | None) -> bool:
    """From now on, and at its next start: the broker of this folder lets no longer payload pass. None: any it can read.

    False if it does not run. PermissionError if it runs as somebody else, TimeoutError if it does not heed.
    """
    path, log = folder / "mosquitto.conf", folder / "broker.log"
    lines = [line for line in path.read_text("utf-8").splitlines() if not line.startswith(LIMIT)]
    lines += [] if most_bytes is None else [f"{LIMIT} {most_bytes}"]
    write_atomically(path, ("\n".join(lines) + "\n").encode())
    at = log.stat().st_size if log.exists() else 0
    if not reload(folder):
        return False
    deadline = time.monotonic() + RELOAD_SECONDS
    while time.monotonic() < deadline:  # a message that came before it would be measured by what was
        if log.exists():
            with log.open("rb") as file:
                file.seek(at)
                if RELOADED in file.read():
                    return True
        time.sleep(0.01)
    raise TimeoutError(f"{log} has said nothing of it for {RELOAD_SECONDS:g} s")


def reload(folder: Path) -> bool:
    """Whether the broker runs; it reads its configuration again. One that is only starting may end instead."""
    if not hasattr(signal, "SIGHUP"):  # Windows
        return False
    try:
        pid = int((folder / PID).read_text("utf-8"))
        if Path("/proc/self").exists() and Path(f"/proc/{pid}/cwd").resolve() != folder.resolve():
            return False  # another process has its number by now
        os.kill(pid, signal.SIGHUP)
    except (FileNotFoundError, ProcessLookupError, ValueError):
        return False
    return True


def is_listening(host: str, port: int, patience_seconds: float = 2.0) -> bool:
    try:
        socket.create_connection((host, port), patience_seconds).close()
    except OSError:
        return False
    return True
