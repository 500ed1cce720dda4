"""What both ends hold of the exchanges between them, and how a message is coded against it.

A message is coded against the last complete exchange of the same step. The server may miss a reply, so a client keeps
two exchanges of each step, in two slots, and one byte before a request says which of them the server holds too: an
alternating bit. `stateless` messages are held by neither end.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from laconic import wire
from laconic.algorithm import Algorithm, ClientId, Coded, Step, state_type, step_of
from laconic.state import Frozen, freeze
from laconic.wire import ENVELOPE, Counts, Encoded, Message, WireError

NOTHING = Encoded(b"", {})  # what a message without fields takes


class Exchange(NamedTuple):
    """A request and its reply: what later ones of the same step are coded against."""

    down: Message | None
    up: Message | None

    def after(self, down: Message, up: Message | None) -> Exchange:
        """Without what nothing is coded against; a message with nothing in it leaves the one before."""
        return Exchange(down if is_base(down) else self.down, up if up is not None and is_base(up) else self.up)


NONE_YET = Exchange(None, None)


def is_base(message: Message) -> bool:
    return not message.stateless and any(getattr(message, name) is not None for name, _, _ in message.schema)


# ---------------------------------------------------------------- the two ends
@dataclass
class ServerEnd:
    """What the server holds of one client: for each step the slot and messages of the last complete exchange."""

    held: dict[str, tuple[int, Exchange]] = field(default_factory=dict)

    def slot(self, step: Step) -> int | None:
        return self.held[step.name][0] if step.name in self.held else None

    def last(self, step: Step) -> Exchange:
        return self.held[step.name][1] if step.name in self.held else NONE_YET

    def complete(self, step: Step, down: Message, up: Message | None) -> None:
        """The reply came, so both ends know of this exchange."""
        self.held[step.name] = (free_slot(self.slot(step)), self.last(step).after(down, up))

    def freeze(self) -> bytes:
        messages = {
            f"{step}/{way}": getattr(exchange, way)
            for step, (_, exchange) in self.held.items()
            for way in Exchange._fields
        }
        return freeze({"slots": {step: slot for step, (slot, _) in self.held.items()}} | messages)

    @classmethod
    def thaw(cls, method: type[Algorithm], data: bytes) -> ServerEnd:
        frozen = Frozen(data)
        slots = frozen.thaw({"slots": dict[str, int]})["slots"]
        return cls({name: (slot, _thaw_exchange(frozen, method, name, name)) for name, slot in slots.items()})


@dataclass
class ClientEnd:
    """All that one client keeps: its state, and two slots of exchanges for each step. One holds an exchange that both
    ends know to be complete, the other one whose reply may be lost; the server's next request says which is which."""

    state: Any
    held: dict[str, list[Exchange | None]] = field(default_factory=dict)

    def agreed(self, step: Step, slot: int | None) -> Exchange:
        """What the server holds too, as it says; WireError if it is not here."""
        base = NONE_YET if slot is None else self.held.get(step.name, [None, None])[slot]
        if base is None:
            raise WireError(f"the client holds no earlier {step.name}, which this one builds on")
        return base

    def keep(self, step: Step, slot: int | None, exchange: Exchange) -> None:
        """Beside the one in the agreed slot; what was in the other one is of no use any more."""
        self.held.setdefault(step.name, [None, None])[free_slot(slot)] = exchange

    def freeze(self) -> bytes:
        messages = {
            f"{step}/{slot}/{way}": getattr(exchange, way)
            for step, slots in self.held.items()
            for slot, exchange in enumerate(slots)
            if exchange is not None
            for way in Exchange._fields
        }
        return freeze({"state": self.state, "held": list(messages)} | messages)

    @classmethod
    def thaw(cls, method: type[Algorithm], data: bytes) -> ClientEnd:
        frozen = Frozen(data)
        found = frozen.thaw({"state": state_type(method, "client"), "held": list[str]})
        end = cls(found["state"])
        for key in found["held"][:: len(Exchange._fields)]:
            name, slot, _ = key.split("/")
            slots = end.held.setdefault(name, [None, None])
            slots[int(slot)] = _thaw_exchange(frozen, method, name, f"{name}/{slot}")
        return end


def _thaw_exchange(frozen: Frozen, method: type[Algorithm], name: str, key: str) -> Exchange:
    step = step_of(method, name)
    kinds: dict[str, Any] = {f"{key}/down": step.message | None, f"{key}/up": (step.reply or Message) | None}
    return Exchange(*(found and found.snapshot() for found in frozen.thaw(kinds).values()))


# ---------------------------------------------------------------- the byte before a request
def write_slot(step: Step, agreed: int | None) -> bytes:
    """The slot that both ends hold. None is sent where nothing could be coded against it."""
    if not step.message.schema and step.reply is None:
        return b""
    return bytes([0 if agreed is None else agreed + 1])


def read_slot(step: Step, frame: bytes) -> tuple[int | None, bytes]:
    if not step.message.schema and step.reply is None:
        return None, frame
    if not frame or frame[0] > 2:
        raise WireError(f"a request for {step.name} starts with {frame[:1]!r}; a byte from 0 to 2 was expected")
    return frame[0] - 1 if frame[0] else None, frame[1:]


def free_slot(agreed: int | None) -> int:
    return 0 if agreed is None else 1 - agreed


# ---------------------------------------------------------------- messages on their way
class Frame(NamedTuple):
    """A message on its way, as both ends will hold it."""

    encoded: Encoded
    message: Message
    counts: dict[str, Counts]

    @classmethod
    def of(cls, encoded: Encoded, message: Message) -> Frame:
        return cls(encoded, message, wire.count_fields(message, encoded))

    def behind(self, slot: bytes) -> Frame:
        """With what goes before it."""
        encoded = Encoded(slot + self.encoded.data, self.encoded.fields)
        return Frame(encoded, self.message, self.counts | {ENVELOPE: Counts(encoded.envelope_bytes)})


def encode_requests(
    step: Step, messages: Mapping[ClientId, Message], ends: Mapping[ClientId, ServerEnd]
) -> dict[ClientId, Frame]:
    """A message that goes to many is encoded once, and its bytes are held once; different ones side by side."""

    def encode(message: Message, base: Message | None) -> Frame:
        if type(message) is not step.message:
            raise TypeError(f"{step.name} got a {type(message).__name__}; its annotation says {step.message.__name__}")
        kept = message.snapshot()
        return Frame.of(wire.encode_detailed(kept, base) if message.schema else NOTHING, kept)

    jobs, keys = {}, {}
    for client, message in messages.items():
        base = ends[client].last(step).down
        key = (id(message), id(base))
        keys[client], jobs[key] = (key, ends[client].slot(step)), (message, base)
    with ThreadPoolExecutor(min(len(jobs), os.cpu_count() or 1) or 1) as pool:
        frames = dict(zip(jobs, pool.map(encode, *zip(*jobs.values(), strict=True)), strict=True)) if jobs else {}
    slotted = {(key, slot): frames[key].behind(write_slot(step, slot)) for key, slot in set(keys.values())}
    return {client: slotted[key] for client, key in keys.items()}


def encode_reply(step: Step, told: Message | Coded[Any] | None, last: Message | None) -> tuple[Encoded, Message | None]:
    """The bytes, and the reply as both ends will hold it; last: what it is coded against, if it says nothing else."""
    reply, base = (told.reply, told.base) if isinstance(told, Coded) else (told, last)
    if reply is None or step.reply is None:
        return NOTHING, None
    if type(reply) is not step.reply:
        raise TypeError(f"{step.name} returned a {type(reply).__name__}; its annotation says {step.reply.__name__}")
    kept = reply.snapshot()
    return wire.encode_detailed(kept, base), kept
