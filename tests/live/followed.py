"""What tests of live say of their run, and the events a live server sends."""

import json
import subprocess
import urllib.request
from collections.abc import Callable
from typing import Any

SMALL = ["method.epochs=1", "method.n_clauses=4", "data.clients=4"]
N_ROUNDS, LIAR = 3, 2
Start = Callable[..., "subprocess.Popen[str]"]


class Events:
    """What a live server sends, one event after the other."""

    def __init__(self, url: str) -> None:
        self._stream = urllib.request.urlopen(url.replace("/?", "/events?"), timeout=60)
        self.type = self._stream.headers["content-type"]

    def next(self) -> tuple[str, dict[str, Any]]:
        kind = ""
        while line := self._stream.readline().decode():
            name, _, rest = line.rstrip("\n").partition(": ")
            if name == "event":
                kind = rest
            elif name == "data":
                return kind, json.loads(rest)
        raise AssertionError("the stream has ended")

    def wait_for(self, is_due: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        while not is_due(found := self.next()[1]):
            pass
        return found

    def close(self) -> None:
        self._stream.close()
