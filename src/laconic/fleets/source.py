"""Where clients' examples come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from laconic.algorithm import ClientId, Examples

Parts: TypeAlias = tuple[Examples, Examples, Examples]  # train, validation, test


class Source(Protocol):
    """Every client's examples."""

    def at(self, client: ClientId, round: int) -> Parts: ...

    def only(self, clients: Sequence[ClientId]) -> Source:
        """The same for these clients, without the others' examples."""


@dataclass(frozen=True)
class ClientData:
    """Examples in memory, from each of these rounds on."""

    phases: tuple[tuple[int, dict[ClientId, Parts]], ...]

    @classmethod
    def of(cls, clients: Sequence[Parts]) -> ClientData:
        """The same in all rounds; clients are numbered as they come."""
        return cls(((0, dict(enumerate(clients))),))

    def at(self, client: ClientId, round: int) -> Parts:
        owned: dict[ClientId, Parts] = next(owned for first, owned in reversed(self.phases) if round >= first)
        return owned[client]

    def only(self, clients: Sequence[ClientId]) -> ClientData:
        return ClientData(tuple((first, {client: parts[client] for client in clients}) for first, parts in self.phases))
