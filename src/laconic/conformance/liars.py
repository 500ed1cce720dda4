"""One client of six lies, a field of a reply at a time, in every way of a list: what becomes of run and others.

A lie is a reply in sound bytes, with a true checksum, that no honest client would send. `try_lies` plays one run for a
field of a step's reply, a lie a round, and tells what each did.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import fields
from functools import wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from laconic.algorithm import Algorithm, Coded, step_of
from laconic.conformance.small_runs import configure, make_data
from laconic.fleets.base import Conditions
from laconic.fleets.host import Reply, Request
from laconic.fleets.local import LocalFleet
from laconic.runs.config import Config
from laconic.runs.prepare import prepare
from laconic.simulation import Federation, federate
from laconic.state import find_not_finite
from laconic.wire import Encoded, Message, Sparse
from laconic.wire.codec import assemble, checksum
from laconic.wire.message import CARRIERS, Field

LIAR, N_CLIENTS = 5, 6
OWNED = [[k % 3, (k + 1) % 3] for k in range(N_CLIENTS)]
GREAT = 10**15


class Found(NamedTuple):
    """What one lie did."""

    method: str
    step: str
    field: str
    lie: str
    outcome: str  # refused, accepted, void or ended
    words: str
    honest_refused: int
    not_finite: str  # where; "": nowhere


# ---------------------------------------------------------------- lies
def scale_by(factor: float) -> Callable[[Any], Any]:
    return lambda a: (a.astype(np.float64) * factor).astype(a.dtype if a.dtype.kind == "f" else np.int64)


def fill_with(number: float) -> Callable[[Any], Any]:
    def fill(a: Any) -> Any:
        kind = np.float64 if abs(number) > 3.4e38 and np.isfinite(number) else np.float32
        return np.full(a.shape, number, kind if a.dtype.kind == "f" else np.int64)

    return fill


SHAPES: dict[str, Callable[[Any], Any]] = {
    "one entry short": lambda a: a[:-1] if a.ndim else a,
    "one long": lambda a: np.concatenate([a, a[-1:]]) if len(a) else np.zeros((1, *a.shape[1:]), a.dtype),
    "empty": lambda a: a[:0],
    "transposed": lambda a: np.ascontiguousarray(a.T) if a.ndim > 1 else a[:, None],
    "another rank": lambda a: a[None],
}
NUMBERS: dict[str, Callable[[Any], Any]] = {
    "zeros": np.zeros_like,
    "ones": np.ones_like,
    "negative": scale_by(-1),
    "-100x": scale_by(-100),
}
INTEGERS = NUMBERS | {
    "10^15": fill_with(GREAT),
    "-10^15": fill_with(-GREAT),
    "highest": lambda a: np.full(a.shape, np.iinfo(np.int64).max),
    "lowest": lambda a: np.full(a.shape, np.iinfo(np.int64).min),
}
REALS = NUMBERS | {
    "1e30": fill_with(1e30),
    "3e38": fill_with(3e38),
    "1e300": fill_with(1e300),
    "NaN": fill_with(np.nan),
    "inf": fill_with(np.inf),
    "half width": lambda a: np.clip(a, -6e4, 6e4).astype(np.float16),
    "double width": lambda a: a.astype(np.float64),
}
BITS: dict[str, Callable[[Any], Any]] = {
    "zeros": np.zeros_like,
    "ones": np.ones_like,
    "inverted": lambda a: ~a,
}
WHOLE: dict[str, Callable[[Any], Any]] = {
    "zero": lambda n: 0,
    "negative": lambda n: -abs(n) - 1,
    "10^15": lambda n: GREAT,
    "highest": lambda n: 2**63 - 1,
    "lowest": lambda n: -(2**63),
}
REAL: dict[str, Callable[[Any], Any]] = {
    "zero": lambda x: 0.0,
    "negative": lambda x: -abs(x) - 1,
    "1e30": lambda x: 1e30,
    "1e300": lambda x: 1e300,
    "NaN": lambda x: np.nan,
    "inf": lambda x: np.inf,
}
TEXTS: dict[str, Callable[[Any], Any]] = {"control": lambda t: "\x1b[2J\x00", "markup": lambda t: "<script>[red]"}


def choose(mask: Any, like: Sparse) -> Sparse:
    return Sparse(mask, np.ones(np.count_nonzero(mask), like.values.dtype))


def lie_of_mask(lie: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda sparse: choose(lie(sparse.mask), sparse)


def lie_of_values(lie: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda sparse: Sparse(sparse.mask, lie(sparse.values))


SPARSE: dict[str, Callable[[Any], Any]] = {
    "nothing chosen": lambda sparse: choose(np.zeros_like(sparse.mask), sparse),
    "all chosen": lambda sparse: choose(np.ones_like(sparse.mask), sparse),
    "mask inverted": lambda sparse: choose(~sparse.mask, sparse),
    **{f"mask {name}": lie_of_mask(lie) for name, lie in SHAPES.items()},
    **{name: lie_of_values(lie) for name, lie in REALS.items()},
}
OF_KIND = {
    "bits": SHAPES | BITS,
    "ints": SHAPES | INTEGERS,
    "floats": SHAPES | REALS,
    "sparse": SPARSE,
    "int": WHOLE,
    "float": REAL,
    "str": TEXTS,
}


def list_lies(field: Field) -> dict[str, Callable[[Any], Any]]:
    """By name; of a field that may be None also to leave it out."""
    lies = OF_KIND.get(CARRIERS.get(field.kind, field.kind), {})
    return lies | ({"missing": lambda value: None} if field.optional else {})


def make_up(field: Field) -> Any:
    """Something for a field that was not sent."""
    kind = CARRIERS.get(field.kind, field.kind)
    made = {
        "bits": np.ones(3, np.bool_),
        "ints": np.ones(3, np.int64),
        "floats": np.ones(3, np.float32),
        "int": 1,
        "float": 1.0,
    }
    return made.get(kind)


def encode_lie(message: Message, field: str, value: Any) -> bytes:
    """As an honest end would code it that takes anything for this field."""
    cls = type(message)
    twin: Any = type("Twin", (), {"schema": tuple(f._replace(kind=CARRIERS.get(f.kind, f.kind)) for f in cls.schema)})()
    for f in cls.schema:
        setattr(twin, f.name, value if f.name == field else getattr(message, f.name))
    data = assemble(twin, None, tight=True).data
    body = data[: -2 if len(data) < 258 else -4]
    return body + checksum(cls, body, None)


# ---------------------------------------------------------------- a run with a liar in it
class Interview:
    """The liar's honest replies to a step, and what it says in their place."""

    def __init__(self, config: Config, step: str) -> None:
        self.step, self.honest = step, dict[tuple[str, int], Message]()  # by step and round
        self.lie: Callable[[Message], bytes | None] = lambda message: None
        kind = type(config.method)
        about = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
        overheard = {name: self.overhear(getattr(kind, name)) for name in list_steps(kind)}
        lying = type(kind.__name__, (kind,), overheard | about)
        self.method: Algorithm = lying(**{f.name: getattr(config.method, f.name) for f in fields(kind)})

    def overhear(self, tell: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(tell)
        def overheard(method: Any, client: Any, message: Any, site: Any) -> Any:
            try:
                told = tell(method, client, message, site)
            except Exception:  # over what its own lies have led to; on a real node that is its own affair
                if site.id != LIAR:
                    raise
                return next((reply for (step, _), reply in self.honest.items() if step == tell.__name__), None)
            reply = told.reply if isinstance(told, Coded) else told
            if site.id == LIAR and reply is not None:
                self.honest[tell.__name__, site.round] = reply.snapshot()
            return told

        return overheard

    def meddle(self, fleet: LocalFleet) -> None:
        perform = fleet._perform

        def meddled(requests: Sequence[Request]) -> Generator[Reply]:
            for reply in perform(requests):
                told = self.honest.get((self.step, fleet.round))
                if reply.client == LIAR and requests[0].step == self.step and told is not None:
                    data = self.lie(told)
                    reply = reply if data is None else reply._replace(encoded=Encoded(data, {}))  # noqa: PLW2901
                yield reply

        fleet._perform = meddled  # type: ignore[method-assign]


def list_steps(method: type[Algorithm]) -> list[str]:
    return sorted(name for name in dir(method) if getattr(getattr(method, name, None), "is_step", False))


def list_fields(method: type[Algorithm]) -> list[tuple[str, Field]]:
    """Every field of every reply, with its step."""
    replies = {name: step_of(method, name).reply for name in list_steps(method)}
    return [(name, field) for name, reply in replies.items() if reply for field in reply.schema]


def try_lies(name: str, step: str, field: Field, *settings: str) -> Iterator[Found]:
    """A lie a round; those that end the run are followed by a new one."""
    lies = list(list_lies(field).items())
    with TemporaryDirectory(prefix="laconic-") as folder:
        config = configure(name, "local", make_data(Path(folder), OWNED, n_each=5), *settings)
        while lies:
            done = 0
            for found in play_lies(config, name, step, field, lies):
                yield found
                done += 1
                if found.outcome == "ended" or found.not_finite:
                    break
            lies = lies[max(done, 1) :]


def play_lies(
    config: Config, name: str, step: str, field: Field, lies: Sequence[tuple[str, Callable[[Any], Any]]]
) -> Iterator[Found]:
    interview, prepared = Interview(config, step), prepare(config)
    conditions = Conditions(averaging=config.fleet.averaging)
    with federate(interview.method, prepared.task, prepared.source, 0, workers=1, conditions=conditions) as federation:
        assert isinstance(federation.fleet, LocalFleet)
        interview.meddle(federation.fleet)
        federation.play(0, is_evaluated=False)
        federation.play(1, is_evaluated=False)  # all are met
        for number, (words, lie) in enumerate(lies, start=2):

            def tell(message: Message, lie: Callable[[Any], Any] = lie) -> bytes | None:
                value = getattr(message, field.name)
                try:
                    return encode_lie(message, field.name, lie(make_up(field) if value is None else value))
                except (TypeError, IndexError, AttributeError):  # nothing to lie about in this way
                    return None

            interview.lie = tell
            yield try_round(federation, number, (name, step, field.name, words))


def try_round(federation: Federation, number: int, what: tuple[str, str, str, str]) -> Found:
    fleet = federation.fleet
    assert isinstance(fleet, LocalFleet)
    try:
        played = federation.play(number, is_evaluated=True)
    except Exception as error:
        return Found(*what, "ended", f"{type(error).__name__}: {error}", 0, "")
    mine = [line for line in fleet.refused if f"client {LIAR}:" in line]
    not_finite = find_not_finite(federation.server, "server")
    for client in range(N_CLIENTS):
        not_finite = not_finite or (
            find_not_finite(fleet.state(client), f"client {client}") if client != LIAR else None
        )
    outcome = "void" if played.trouble else "refused" if mine else "accepted"
    fleet.barred.clear()  # so that the next lie is heard
    words = str(played.trouble or (mine or [""])[0])
    return Found(*what, outcome, words, len(fleet.refused) - len(mine), not_finite or "")
