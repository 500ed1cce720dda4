"""What a server gives to everyone, and who has it: nothing is sent to a client that is known to hold the latest."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from laconic.algorithm import ClientId, M


@dataclass(kw_only=True)
class Broadcast:
    """Part of a server's state: a method adds the thing itself, and raises the version whenever it changes."""

    version: int = 0  # clients start with 0, which both ends work out
    held_by: dict[ClientId, int] = field(default_factory=dict)  # the version that a client is known to have

    def count_missed(self, client: ClientId) -> int:
        """Versions that came after the one it has."""
        return self.version - self.held_by.get(client, 0)

    def offer(self, clients: Iterable[ClientId], latest: M, nothing: M | None = None) -> dict[ClientId, M]:
        """The latest for each who lacks it, one message for all of them; nothing: what everyone else gets, if that."""
        offered = {client: latest if self.count_missed(client) else nothing for client in clients}
        return {client: message for client, message in offered.items() if message is not None}

    def acknowledge(self, clients: Iterable[ClientId]) -> None:
        """These replied, so they have what was offered."""
        self.held_by |= dict.fromkeys(clients, self.version)
