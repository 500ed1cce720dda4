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
    events, refused, n_more = read_events(run, last)
    clients: list[Client] = []
    for holding in run.partition.clients if run.partition else ():
        number, score = holding.client, scores.get(holding.client)
        did = "sent" if number in sent else "received" if number in received else "idle"
        right = (score.accuracy, score.n_correct, score.n_test) if score else (None, 0, 0)
        did = "refused" if number in refused else did
        clients.append((number, holding.name, did, *right, sent.get(number, 0), received.get(number, 0)))
    tested = next((score.round for score in scores.values()), None)
    told = {"name": run.name, "round": last, "tested": tested, "clients": clients}
    return told | {"events": events, "n_more_events": n_more}


def read_events(run: FollowedRun, last: int) -> tuple[list[tuple[str, str]], set[int], int]:
    """When and what, the last first; whose replies were refused in that round; how many more of these there are."""
    events: list[tuple[str, str]] = []
    refused, n_more = set[int](), 0
    for line in read_backwards(run.folder / EVENTS):
        when, _, words = line.decode("utf-8", "replace").partition("  ")
        match = REFUSED.match(words)
        is_of_last = match is not None and int(match[1]) == last
        if match is not None and is_of_last:
            refused.add(int(match[2]))
        if len(events) < MOST_EVENTS:
            events.append((when, words))
        elif is_of_last:
            n_more += 1
        else:  # those of one round stand together
            break
    return events, refused, n_more
