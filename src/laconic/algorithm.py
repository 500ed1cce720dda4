"""What a federated method is made of: Task, Site, Fleet, Algorithm. Read this first.

A whole method, in which the clients learn the mean of their labels and nobody learns a client's examples:

    class Opinion(Message):
        mean: float

    class Server: ...                # plain data: numbers, arrays, tuples, dicts, nested dataclasses
    class Client: ...

    class MeanLabel(Algorithm):      # a frozen dataclass: its fields are its settings, in TOML and on the command line
        blend: float = 0.5

        def run_round(self, server, fleet):
            replies = fleet.ask(self.tell, dict.fromkeys(fleet.sampled, EMPTY))
            server.mean = np.mean([reply.mean for reply in replies.values()])
            fleet.ask(self.install, dict.fromkeys(fleet.everyone, Opinion(server.mean)), at_least=0)

        @on_client
        def tell(self, client: Client, _: Message, site: Site) -> Opinion:
            return Opinion(site.train.y.mean())

docs/new-method.md has all of it, weighted by examples, and walks through it.
"""

from __future__ import annotations

import math
import types
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import (
    Any,
    ClassVar,
    Generic,
    Literal,
    NamedTuple,
    Protocol,
    TypeAlias,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
from numpy.typing import NDArray

from laconic.aggregate import Averaging
from laconic.models.background import Background
from laconic.models.base import PersonalModel
from laconic.records import Panel
from laconic.wire import Due, Expected, Message, Sparse, bound

FRAME_BYTES = 1  # before each message: the slot that both ends hold
ClientId: TypeAlias = int
M = TypeVar("M", bound=Message)
R = TypeVar("R", bound=Message | None)
F = TypeVar("F", bound=Callable[..., Any])
# bytes: values on 256 known levels, for banks; beside bits they stand behind them, in more layers or columns
Takes: TypeAlias = Literal["bits", "values", "bytes", "bits+bytes"]
Expect: TypeAlias = Expected | Callable[[M], Expected]


class TooFew(Exception):
    """Fewer replies than a method can do with; the round is void and the server as it was before."""


class Examples(NamedTuple):
    x: NDArray[Any]  # [example, ...]
    y: NDArray[np.int64]  # [example] classes from 0


@dataclass(frozen=True)
class Task:
    """What everyone may know."""

    input_shape: tuple[int, ...]  # of one example: (features,), (height, width) or (height, width, layers)
    n_classes: int
    n_clients: int
    levels: int = 1  # bits only: layers come in runs of so many nested thermometer levels
    peak: float = 0.0  # values only: the largest that a pixel may have; 0: values have no scale of their own
    # bits and bytes: the last so many layers, or columns of a table, are bytes; states without leave it out
    byte_layers: int = field(default=0, metadata={"later": True})


@dataclass
class Site:
    """What one client has at home during one step; its test examples are not here."""

    id: ClientId
    round: int
    train: Examples
    val: Examples
    rng: np.random.Generator  # follows from seed, round, client and call: where a step runs cannot change its result
    notes: dict[str, float] = field(default_factory=dict)
    declared: Collection[str] | None = None  # names that may be noted, its method's client_notes; None: any

    def note(self, **numbers: float) -> None:
        """For the record only, and never feeds back; leaves a real node only if its owner lets it, and is counted."""
        self._check_names(numbers)
        self.notes |= {name: float(number) for name, number in numbers.items()}

    def note_classes(self, **rows: NDArray[np.floating[Any]]) -> None:
        """For the record, as `note`: [class] this client's row of a matrix of clients and classes."""
        self._check_names(rows)
        self.notes |= {f"{name}[{k}]": float(number) for name, row in rows.items() for k, number in enumerate(row)}

    def _check_names(self, noted: Iterable[str]) -> None:
        strangers = [name for name in noted if self.declared is not None and name not in self.declared]
        if strangers:
            raise ValueError(
                f"{' and '.join(strangers)} noted, but not declared; say in the method's class what clients note: "
                f"client_notes = {(*(self.declared or ()), *strangers)!r}"
            )


@dataclass(frozen=True)
class Coded(Generic[R]):
    """A step's reply that is coded against `base`, in place of the last one: something both ends can work out."""

    reply: R
    base: R


class Fleet(Protocol):
    """The clients, as a server may address them."""

    task: Task
    round: int
    everyone: Sequence[ClientId]
    sampled: Sequence[ClientId]  # who takes part in this round
    rng: np.random.Generator
    averaging: Averaging  # how the means of what clients send are to be taken

    def ask(
        self,
        step: Callable[[Any, M, Site], R | Coded[R]],
        messages: Mapping[ClientId, M],
        at_least: int = 1,
        expect: Expect[M] | None = None,
        check: Callable[[M, Any], None] | None = None,
        against: Callable[[ClientId], R] | None = None,
    ) -> dict[ClientId, R]:
        """Replies of those who replied, by client in ascending order; TooFew if fewer than at_least.

        expect: of each field of a reply its shape, bounds and whether it is there, the same for all or by the message
        sent; a reply that is otherwise is refused before it is read. check(message, reply) is for what one field says
        of another: it raises ValueError if no honest client could have sent that reply, which is then refused.
        against(client) is what its reply may be coded against; the step returns Coded(reply, the same) where it can.
        """

    def gossip(
        self,
        publish: Callable[[Any, Message, Site], M],
        absorb: Callable[[Any, dict[ClientId, M], Site], None],
        neighbours: Mapping[ClientId, Sequence[ClientId]],
        expect: Expected | None = None,
        check: Callable[[M], None] | None = None,
    ) -> None:
        """Each client named absorbs what its neighbours publish; bytes count by pair. expect, check: as in `ask`."""

    def note(self, **numbers: float) -> None: ...

    def note_pairs(self, clients: Sequence[ClientId], **matrices: NDArray[np.float64]) -> None:
        """For the record, as `note`: [client, client] of these clients, such as how alike they are."""

    def note_matrix(self, down: str, across: str, **matrices: NDArray[np.floating[Any]]) -> None:
        """For the record, as `note`: [down, across], which say what a row and a column stand for, e.g. "class"."""


@dataclass_transform(frozen_default=True)
@dataclass(frozen=True)
class Algorithm(ABC):
    """Base of all methods; a subclass is made a frozen dataclass of its settings. No subclass of a method, but several
    may share an abstract shape, such as SharedVector.

    State (what start_server and start_client return, and say so in their annotations) is a mutable dataclass of plain
    data, so that a checkpoint is that and nothing else.
    """

    # As it is called on the command line and in TOML; "": a shape, or a method from elsewhere, which has no name here.
    name: ClassVar[str] = ""
    averagings: ClassVar[tuple[Averaging, ...]] = ("mean",)  # those that its server heeds, of fleet.averaging
    # The setting that a byte budget turns down, or several in this order; "" if there is none. A whole number, a share,
    # or a Literal whose choices take fewer bytes the further they stand back. A method with a setting budget_bytes is
    # told the budget in it, and keeps it by itself.
    budget_knob: ClassVar[str | tuple[str, ...]] = ""
    # Names of all that its clients note for the record: of numbers, and of rows with a number for each class.
    client_notes: ClassVar[tuple[str, ...]] = ()
    # How the report draws what was noted; without, numbers are curves by round and matrices are drawn as they are.
    panels: ClassVar[tuple[Panel, ...]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        dataclass(frozen=True)(cls)

    @property
    def takes(self) -> Takes:
        """What its examples are made of, with these settings."""
        return "bits"

    def check_averaging(self, averaging: Averaging) -> None:
        """ValueError if its server cannot take means in this way, with these settings."""
        able = type(self).averagings
        if averaging not in able:
            hint = f"it can do {' or '.join(able)}" if len(able) > 1 else "it does not heed it (docs/deploy.md)"
            raise ValueError(f'fleet.averaging = "{averaging}" is not for {self.name or type(self).__name__}: {hint}')

    def check_task(self, task: Task) -> None:
        """ValueError if it cannot do that task, with these settings; before anything runs."""
        self.costliest_round(task)

    @abstractmethod
    def start_server(self, task: Task, fleet: Fleet) -> Any:
        """May ask: for reference rounds, sizes, masks; these belong to round 0."""

    @abstractmethod
    def run_round(self, server: Any, fleet: Fleet) -> None: ...

    def deliver(self, server: Any, fleet: Fleet) -> None:  # noqa: B027  # most methods leave everyone up to date
        """Brings everyone up to date, after a round that is evaluated and after the last one; its bytes count too."""

    @abstractmethod
    def start_client(self, task: Task, site: Site) -> Any: ...

    def costliest_round(self, task: Task) -> Sequence[Message] | None:
        """The largest messages that one client may get and send in a round, for a byte budget; None: not known."""
        return None

    def personal_model(self, client: Any) -> PersonalModel:
        """What a client predicts by, and can leave the run with: see laconic.models. May share the state's arrays."""
        raise ValueError(
            f"{self.name or type(self).__name__} does not say what its clients' models are made of, so they cannot "
            "leave a run; give it a personal_model(client) (docs/new-method.md)"
        )

    def background(self, server: Any, client: Any) -> Background:
        """What the run knows of a client's model that the model alone does not say; for laconic explain."""
        return Background()

    def predict(self, client: Any, x: NDArray[Any]) -> NDArray[np.integer[Any]]:
        """[example] classes."""
        return self.personal_model(client).classify(x)

    def predict_also(self, client: Any, x: NDArray[Any]) -> dict[str, NDArray[np.integer[Any]]]:
        """Other predictions worth a record, by a name for each; tested beside predict, they change nothing."""
        return {}


def check_shape(name: str, array: NDArray[Any] | None, due: tuple[int, ...]) -> None:
    if array is None or array.shape != due:
        raise ValueError(f"{name} has shape {None if array is None else array.shape}, {due} was expected")


def expect_like(template: Message, most: float = math.inf, **others: Due | None) -> Expected:
    """For Fleet.ask: fields there or not, and arrays as long and as wide as the template's; others: those that are not.

    most: no number in an array of numbers, or a float, lies beyond ± this.
    """
    expected: dict[str, Due | None] = {}
    for name, kind, _ in template.schema:
        value = getattr(template, name)
        bound = most if kind in ("ints", "floats", "sparse", "float") else math.inf
        if isinstance(value, Sparse):
            expected[name] = Due(value.mask.shape, bound, None, value.values.itemsize)
        elif isinstance(value, np.ndarray):
            expected[name] = Due(value.shape, bound, None, value.itemsize)
        else:
            expected[name] = None if value is None else Due((), bound)
    return expected | others


def bound_bytes(messages: Iterable[Message]) -> int:
    """Most that messages of these shapes take on the wire, each behind its frame byte."""
    return sum(bound(message) + FRAME_BYTES for message in messages)


def count_affordable(n_bytes: int, sizes: range, list_messages: Callable[[int], Iterable[Message]]) -> int:
    """How many of the sizes, from small to large, have messages that fit, whatever is in them."""
    return bisect_right(sizes, n_bytes, key=lambda size: bound_bytes(list_messages(size)))


class Step(NamedTuple):
    """A client's step as both ends know it, so that neither names of types nor schemas travel."""

    name: str
    message: type[Message]
    reply: type[Message] | None
    may_be_silent: bool = False  # its annotation says ... | None
    hears_peers: bool = False  # its message is what neighbours published


def on_client(function: F) -> F:
    """Marks a method as a step that may be called from afar; its annotations say what travels."""
    function.__dict__["is_step"] = True
    return function


@cache
def step_of(method: type[Algorithm], name: str) -> Step:
    function = getattr(method, name, None)
    if not getattr(function, "is_step", False):
        raise ValueError(f"{method.__name__}.{name} is no step; mark it with @on_client")
    hints = get_type_hints(function)
    result = hints.pop("return", None)
    message: Any = [*hints.values(), None, None][1]  # client, message, site
    hears_peers = get_origin(message) is dict
    if hears_peers:
        message = get_args(message)[1]
    parts = get_args(result) if get_origin(result) in (Union, types.UnionType) else (result,)
    may_be_silent = len(parts) > 1 and types.NoneType in parts  # R | None
    found = dict.fromkeys(get_args(part)[0] if get_origin(part) is Coded else part for part in parts)
    reply = next((part for part in found if part not in (None, types.NoneType)), None)
    for part in (message, reply or Message):
        if not (isinstance(part, type) and issubclass(part, Message)):
            raise TypeError(
                f"{method.__name__}.{name}: {part!r} is no Message; "
                "annotate it (client: Client, message: SomeMessage, site: Site) -> SomeMessage | None"
            )
    return Step(name, message, reply, may_be_silent, hears_peers)


def steps_of(method: type[Algorithm]) -> list[Step]:
    """All of them, those of its shapes first, as they stand in the source."""
    names = dict.fromkeys(name for parent in reversed(method.__mro__) for name in vars(parent))
    return [step_of(method, name) for name in names if getattr(getattr(method, name), "is_step", False)]


def state_type(method: type[Algorithm], side: Literal["client", "server"]) -> Any:
    """What start_client or start_server says it returns."""
    return get_type_hints(getattr(method, f"start_{side}"))["return"]
