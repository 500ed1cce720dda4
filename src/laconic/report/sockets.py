"""Bytes on the sockets of real nodes, apart: by node and by round."""

from collections import Counter
from collections.abc import Iterator
from typing import Literal

from laconic.report.run import Run

MOST_ROWS = 200  # of a table; the rest is one row, and stands in sockets.jsonl


def list_sockets(run: Run, by: Literal["client", "round"]) -> Iterator[tuple[str, list[int]]]:
    """Of each client or round: bytes up and down of its messages, of connecting, of staying connected."""
    sums: dict[int, Counter[str]] = {}
    for row in run.sockets:
        sums.setdefault(getattr(row, by), Counter()).update(
            {f"{row.kind} up": row.up_bytes, f"{row.kind} down": row.down_bytes}
        )
    keys = [f"{kind} {way}" for kind in ("exchange", "connect", "idle") for way in ("up", "down")]
    shown = sorted(sums)
    for number in shown[:MOST_ROWS]:
        yield run.name_client(number) if by == "client" else str(number), [sums[number][key] for key in keys]
    if rest := shown[MOST_ROWS:]:
        yield f"{len(rest)} others", [sum(sums[number][key] for number in rest) for key in keys]
