"""The clients of a run after its last round: how well each does, what each sent and received, and whose replies were
refused.
"""

import re
from collections import defaultdict
from typing import Any

from laconic.live.run import FollowedRun
from laconic.live.tail import read_backwards, read_last
from laconic.records import ClientScore, Traffic

EVENTS = "events.log"
MOST_EVENTS = 100  # the last
REFUSED = re.compile(r"error\[E210\] round (\d+), client (\d+): ")

Client = tuple[int, str, str, float | None, int, int, int, int]  # see describe_clients


def describe_clients(run: FollowedRun) -> dict[str, Any]:
    """Of each client: number, name, what it did, accuracy, right of how many, bytes sent and received in that round."""
    last = int(run.rows[-1][0] or 0) if run.rows else -1
    scores = {score.client: score for score in read_last(run.folder, ClientScore, last)}
    sent, received = defaultdict[int, int](int), defaultdict[int, int](int)
    for row in read_last(run.folder, Traffic, last):
        if row.round != last:  # nothing travelled in the last one
            break
        if row.direction != "down":
            sent[row.client] += row.sent_bytes
        if row.direction != "up":
            received[row.client if row.peer is None else row.peer] += row.sent_bytes
    events = read_events(run)
    found = (REFUSED.match(words) for _, words in events)
    refused = {int(match[2]) for match in found if match and int(match[1]) == last}
    clients: list[Client] = []
    for holding in run.partition.clients if run.partition else ():
        number, score = holding.client, scores.get(holding.client)
        did = "sent" if number in sent else "received" if number in received else "idle"
        right = (score.accuracy, score.n_correct, score.n_test) if score else (None, 0, 0)
        did = "refused" if number in refused else did
        clients.append((number, holding.name, did, *right, sent.get(number, 0), received.get(number, 0)))
    tested = next((score.round for score in scores.values()), None)
    return {"name": run.name, "round": last, "tested": tested, "clients": clients, "events": events}


def read_events(run: FollowedRun) -> list[tuple[str, str]]:
    """When and what, the last first."""
    events = []
    for line in read_backwards(run.folder / EVENTS):
        when, _, words = line.decode("utf-8", "replace").partition("  ")
        events.append((when, words))
        if len(events) == MOST_EVENTS:
            break
    return events
