"""A toy that uses all a fleet offers: gossip, optional replies, bits coded against earlier ones, notes, randomness."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from laconic.algorithm import Algorithm, ClientId, Fleet, Site, Task, on_client
from laconic.wire import Bits, Due, Floats, Message


class Board(Message):
    bits: Bits


class Guess(Message):
    bits: Bits
    score: float


class Whisper(Message):
    values: Floats


@dataclass
class Server:
    bits: NDArray[np.bool_]
    told: dict[ClientId, float] = field(default_factory=dict)
    silent: set[ClientId] = field(default_factory=set)


@dataclass
class Client:
    bits: NDArray[np.bool_]
    values: NDArray[np.float32]
    heard: list[ClientId] = field(default_factory=list)


class Rumour(Algorithm):
    client_notes = ("n_equal",)

    n_bits: int = 2000
    n_neighbours: int = 2

    def start_server(self, task: Task, fleet: Fleet) -> Server:
        return Server(np.zeros(self.n_bits, np.bool_))

    def run_round(self, server: Server, fleet: Fleet) -> None:
        expected = {"bits": Due((self.n_bits,)), "score": Due(most=1e3)}
        boards = dict.fromkeys(fleet.sampled, Board(server.bits))
        guesses = fleet.ask(self.guess, boards, at_least=2, expect=expected)
        server.silent |= {client for client, guess in guesses.items() if guess is None}
        server.told |= {client: guess.score for client, guess in guesses.items() if guess is not None}
        for guess in guesses.values():
            if guess is not None:
                server.bits ^= guess.bits  # in place: what was sent before must not change
        fleet.note(n_set=int(server.bits.sum()))
        ring = {
            k: [(k + step) % len(fleet.everyone) for step in range(1, self.n_neighbours + 1)] for k in fleet.sampled
        }
        fleet.gossip(self.whisper, self.listen, ring, {"values": Due((5,), 1e3)})

    def start_client(self, task: Task, site: Site) -> Client:
        return Client(site.rng.random(self.n_bits) < 0.1, site.rng.random(5, dtype=np.float32))

    @on_client
    def guess(self, client: Client, board: Board, site: Site) -> Guess | None:
        client.bits ^= site.rng.random(self.n_bits) < 0.01
        site.note(n_equal=int((client.bits == board.bits).sum()))
        if site.rng.random() < 0.2:
            return None
        return Guess(client.bits, float(client.values.sum()))

    @on_client
    def whisper(self, client: Client, _: Message, site: Site) -> Whisper:
        return Whisper(client.values)

    @on_client
    def listen(self, client: Client, whispers: dict[ClientId, Whisper], site: Site) -> None:
        client.heard += sorted(whispers)
        for whisper in whispers.values():
            client.values = (client.values + whisper.values) / 2

    def predict(self, client: Client, x: NDArray[np.uint8]) -> NDArray[np.int64]:
        return np.zeros(len(x), np.int64)
