"""A broker of our own: mosquitto with TLS, where a certificate of the deployment opens a node's own topics alone."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
from pathlib import Path

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
# mosquitto says only among its debugging lines who was denied what; the two below come with every message
COMMAND = "{mosquitto} -c mosquitto.conf 2>&1 | grep --line-buffered -vE ': (Sending|Received) '"


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


def is_listening(host: str, port: int, patience_seconds: float = 2.0) -> bool:
    try:
        socket.create_connection((host, port), patience_seconds).close()
    except OSError:
        return False
    return True
