"""How long a message of a run may be, by what its method declares: nothing longer passes the broker, or either end.

At rest a broker of our own takes what every run needs, and the server raises that for the time of a run.
"""

from __future__ import annotations

from collections.abc import Iterable

from laconic.algorithm import Algorithm, Task, bound_bytes, steps_of
from laconic.fleets.notes import list_names
from laconic.runs.typed_toml import ConfigError
from laconic.wire import bound

AT_REST_BYTES = 4096  # births, what nodes say in words, scores
LEAST_BYTES = 2 * AT_REST_BYTES  # that any broker has to take, for the settings of a run
ROOM_BYTES = 64  # for a head, a topic and what MQTT puts before them
PEER_BYTES = 8  # before each message of a neighbour, of those that are heard together


def find_limit(method: Algorithm, task: Task, others: Iterable[float] = ()) -> int | None:
    """Bytes of the longest payload; None: the method declares nothing. others: of what else travels in the run."""
    messages = method.costliest_round(task)
    if messages is None:
        return None
    notes = 9 * len(list_names(method.client_notes, task.n_classes))  # 8 bytes each, and a bit whether it is there
    whole = bound_bytes(messages) + PEER_BYTES * len(messages) + notes  # of a round, for neighbours are heard at once
    return int(max(AT_REST_BYTES, whole, *others)) + ROOM_BYTES


def check_longest(method: Algorithm, task: Task, most_bytes: int) -> None:
    """ConfigError if the method's longest message is longer than the owner of the broker lets any be."""
    bounds = [bound(message) for message in method.costliest_round(task) or ()]
    is_gossip = any(step.hears_peers for step in steps_of(type(method)))
    longest = (sum(bounds) if is_gossip else max(bounds, default=0)) + ROOM_BYTES
    if longest > most_bytes:
        who = method.name or type(method).__name__
        raise ConfigError(
            "E102",
            f"{who} may send {longest} B at once, the broker takes {most_bytes} B.  Raise largest_bytes in server.toml "
            "and max_packet_size in mosquitto.conf, or choose smaller settings",
        )


def check_reply(reply: bytes, method: Algorithm, task: Task) -> None:
    """At a node; ValueError for one that the broker would not let pass."""
    if len(reply) <= AT_REST_BYTES:
        return
    limit = find_limit(method, task)
    if limit is not None and len(reply) > limit - ROOM_BYTES:
        due = limit - ROOM_BYTES
        raise ValueError(f"the reply has {len(reply)} B, but its method declares at most {due} B; it was not sent")
