"""Where the live page is found: a port that is free, and what it means to let others than this machine see it."""

import errno
import ipaddress
import socket

FIRST_PORT, N_PORTS = 8470, 20  # that are tried where none was asked for; then any


def listen(host: str, port: int | None) -> socket.socket:
    """port: None: the first that is free. ValueError for one that is taken, and for a host that is not this machine."""
    try:
        family, _, _, _, place = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except OSError as error:
        raise ValueError(f"--host {host}: {error.strerror}; give an address of this machine, or leave it out") from None
    for candidate in [port] if port is not None else [*range(FIRST_PORT, FIRST_PORT + N_PORTS), 0]:
        try:
            return socket.create_server((str(place[0]), candidate), family=family)
        except OSError as error:
            if error.errno not in (
                errno.EADDRINUSE,
                *([] if port is not None else [errno.EACCES]),
            ):  # or kept by the system
                raise ValueError(f"{host} port {candidate}: {error.strerror}; give another --host or --port") from None
    raise ValueError(f"port {port} is taken; give another --port, or none to get one that is free")


def make_url(listener: socket.socket, token: str) -> str:
    host, port = listener.getsockname()[:2]
    address = ipaddress.ip_address(host)
    name = socket.gethostname() if address.is_unspecified else f"[{host}]" if address.version == 6 else host
    return f"http://{name}:{port}/?token={token}"


def warn(listener: socket.socket) -> str:
    """What it means that others reach the page; nothing where they do not."""
    host, port = listener.getsockname()[:2]
    if ipaddress.ip_address(host).is_loopback:
        return ""
    return (
        "others reach this page: whoever has its URL sees runs, their results and paths, and it travels unencrypted.\n"
        f"Safer: without --host here, and on the other machine  ssh -L {port}:127.0.0.1:{port} {socket.gethostname()}"
    )
