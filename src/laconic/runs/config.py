"""What is to be run: dataclasses <-> TOML. The annotations are the types, the comments behind the fields the help."""

from __future__ import annotations

import difflib
import inspect
import os
import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_type_hints

from laconic.aggregate import Averaging
from laconic.algorithms import METHODS, installed_methods, load_method
from laconic.data.partition import Partitioning
from laconic.data.reading import Reading
from laconic.device import CPU, NAMES
from laconic.fleets import FLEETS, REMOTE, load_fleet
from laconic.runs.typed_toml import ConfigError, Given, convert_given, lacking, read_file, read_setting, toml_value

if TYPE_CHECKING:
    from laconic.algorithm import Algorithm

MAX_COLUMNS = 120  # of a template
STATES = ("memory", "disk")
SHIFTS = ("none", "turned")
TESTED = ("test", "validation")
UNITS = {"": 1, "B": 1, "kB": 1000, "KB": 1000, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}

T = TypeVar("T")


@dataclass(frozen=True)
class DataSettings(Partitioning):
    name: str = "digits"  # laconic list datasets, a .csv, .parquet, .npz, folder of images, hf:NAME or module:function
    label: str = ""  # tables: the column to predict
    features: tuple[str, ...] = ()  # tables: the columns to learn from; [] = all but label and group
    test: float | str = ""  # what comes without a test set: share of each owner's rows, or a file; "" = a quarter
    size: int = 0  # images: pixels to a side that they are brought to; 0 = as they are
    examples: int = 0  # training examples to take, of each class and of the test the same share; 0 = all
    download: bool = False  # fetch the data set if it is missing; else nothing goes online
    booleanize: str = "auto"  # numbers to bits: auto, threshold:75, adaptive:11:2, thermometer:8, quantile:4 or none
    shift: str = "none"  # how clients' images differ: none, or turned, client k's by k quarter turns
    tested: str = "test"  # examples that accuracies are of: test, or validation, to choose settings by

    def __post_init__(self) -> None:
        super().__post_init__()
        self.reading  # noqa: B018  # checks its part
        check_least("data.examples", self.examples, 0)
        check_choice("data.shift", self.shift, SHIFTS)
        check_choice("data.tested", self.tested, TESTED)
        if self.tested == "validation" and not self.validation:
            raise ValueError(
                'data.tested = "validation" needs some set aside: data.validation = 0.1, say, in place of 0'
            )

    @property
    def reading(self) -> Reading:
        return Reading(self.label, self.group, self.features, self.test, self.size)


@dataclass(frozen=True)
class FleetSettings:
    name: str = "local"  # where clients run: local (threads), process, ray (several machines) or mqtt (laconic deploy)
    workers: int = 0  # how many at once; 0: one per core
    device: str = "cpu"  # of networks: cpu, cuda, cuda:1, mps, or auto for what there is; see docs/gpu.md
    participation: float = 1.0  # share of the clients that take part in a round
    lost_replies: float = 0.0  # share of replies that never arrive
    state: str = "memory"  # where clients rest between rounds: memory or disk
    averaging: Averaging = "mean"  # of what clients send; some who lie are borne with clipped, trimmed or median

    @property
    def n_workers(self) -> int:
        return self.workers or os.cpu_count() or 1

    def __post_init__(self) -> None:
        check_choice("fleet.name", self.name, [*FLEETS, *REMOTE])
        check_choice("fleet.state", self.state, STATES)
        check_least("fleet.workers", self.workers, 0)
        if not NAMES.fullmatch(self.device):
            raise ValueError(f'fleet.device = "{self.device}" must be auto, cpu, cuda, cuda:1 (and so on) or mps')
        if not 0 < self.participation <= 1:
            raise ValueError(f"fleet.participation = {self.participation} must be above 0 and at most 1 (1: everyone)")
        if not 0 <= self.lost_replies < 1:
            raise ValueError(f"fleet.lost_replies = {self.lost_replies} must be at least 0 and below 1 (0: none)")


@dataclass(frozen=True, kw_only=True)
class Config:
    rounds: int = 10  # how many rounds
    seed: int = 0  # everything random follows from it, the partition too
    budget: str = ""  # most bytes per client and round, up and down together, e.g. "10kB"; "": no limit
    evaluate_every: int = 1  # rounds from one evaluation to the next; the last is always evaluated
    checkpoint_every: int = 1  # rounds from one checkpoint to the next
    renew_statistics: bool = False  # before a test, batch normalisation looks at a client's own training examples
    method_name: str = "fedtm"
    method: Algorithm
    data: DataSettings = field(default_factory=DataSettings)
    fleet: FleetSettings = field(default_factory=FleetSettings)

    def __post_init__(self) -> None:
        check_least("seed", self.seed, 0)
        for name in ("rounds", "evaluate_every", "checkpoint_every"):
            check_least(name, getattr(self, name), 1)
        if self.budget:
            try:
                parse_bytes(self.budget)
            except ValueError as error:
                raise ValueError(f"budget = {error}") from None
        if self.renew_statistics and self.method.takes == "bits":
            raise ValueError(
                f"renew_statistics = true is for networks; {self.method_name} has no batch normalisation.  Leave it out"
            )
        if self.fleet.device not in ("auto", CPU) and self.method.takes != "values":
            raise ValueError(
                f'fleet.device = "{self.fleet.device}" is for networks; {self.method_name} works on the CPU alone.  '
                'Say "auto", which leaves it there'
            )
        self.method.check_averaging(self.fleet.averaging)


TOP_KEYS = tuple(f.name for f in fields(Config) if f.name not in ("method_name", "method", "data", "fleet"))
SECTIONS = ("method", "data", "fleet")


def read_config(path: Path | None, settings: Sequence[str] = (), own_method: type[Algorithm] | None = None) -> Config:
    """The file, `key=value` settings above it, defaults below. own_method: a class at hand, whatever it is called.

    Keys of a [method] that names its method belong to that one: settings that switch to another leave them behind.
    """
    in_file = read_file(path) if path is not None else {}
    in_file = {key: given for key, given in in_file.items() if key not in SECTIONS or given.value != {}}
    typed = dict(read_setting(setting) for setting in settings)
    names = [given["method.name"].value for given in (in_file, typed) if "method.name" in given]
    if len(names) == 2 and names[0] != names[1]:
        in_file = {key: given for key, given in in_file.items() if not key.startswith("method.")}
    given = in_file | typed

    named = given.pop("method.name", Given("fedtm", ""))
    name = convert_given("method.name", str, named)
    classes: dict[str, type[Any]] = {
        "": Config,
        "method": own_method or find_method(name, named.where),
        "data": DataSettings,
        "fleet": FleetSettings,
    }
    keys = {key: hint for section, cls in classes.items() for key, hint in list_keys(section, cls).items()}
    for key in given:
        if key not in keys:
            raise unknown_key(key, given[key].where, keys, name)
    values = {key: convert_given(key, keys[key], entry) for key, entry in given.items()}

    def make(cls: type[T], section: str, **more: Any) -> T:
        mine = {
            key.removeprefix(f"{section}."): value for key, value in values.items() if key in list_keys(section, cls)
        }
        try:
            return cls(**gather(cls, mine), **more)
        except ValueError as error:
            culprit = next((key for key in re.findall(r"[\w.]+", str(error)) if key in given), None)
            raise ConfigError("E102", str(error), given[culprit].where if culprit else "") from error

    method, data, fleet = (make(classes[section], section) for section in SECTIONS)
    check_fleet(fleet.name)
    return make(Config, "", method_name=name, method=method, data=data, fleet=fleet)


def write_config(config: Config) -> str:
    """Resolved TOML: every key, also those left at their default."""
    return render(config, with_comments=False)


def commented_template(method: str) -> str:
    """What `laconic init` writes: every key with its default and what it means."""
    head = "# An experiment: laconic run FILE. Every key is here with its default; any may be left out.\n\n"
    return head + render(Config(method_name=method, method=find_method(method)()), with_comments=True)


def parse_bytes(text: str) -> int:
    """kB = 1000, KiB = 1024, likewise M and G; a plain number is bytes."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", text)
    if match is None or match[2] not in UNITS or (n_bytes := int(Decimal(match[1]) * UNITS[match[2]])) < 1:
        raise ValueError(f'"{text}" is no number of bytes; write e.g. 800, 10kB, 1.5MB or 4KiB')
    return n_bytes


def find_method(name: str, where: str = "") -> type[Algorithm]:
    """By name, or from elsewhere as package.module:Class."""
    try:
        return load_method(name)
    except KeyError:
        close = difflib.get_close_matches(name.lower(), [*METHODS, *installed_methods()], n=3, cutoff=0.5)
        closest = f"  Closest: {', '.join(close)}." if close else ""
        own = "  One of your own: module:Class."
        raise ConfigError(
            "E110", f'unknown method "{name}".{closest}  All: laconic list methods.{own}', where
        ) from None
    except ValueError as error:
        raise ConfigError("E110", f"method {error}", where) from error
    except ImportError as error:
        if name not in METHODS or not METHODS[name].extra:
            raise
        raise lacking(f'method "{name}"', METHODS[name].extra, error) from error


def check_fleet(name: str) -> None:
    try:
        load_fleet(name)
    except ImportError as error:
        raise lacking(f'fleet "{name}"', name, error) from error


def gather(cls: type, flat: dict[str, Any]) -> dict[str, Any]:
    """Arguments for cls: settings of a group, `training.epochs`, change what the group is by default."""
    gathered = {key: value for key, value in flat.items() if "." not in key}
    for f in fields(cls):
        inner = {key.removeprefix(f"{f.name}."): value for key, value in flat.items() if key.startswith(f"{f.name}.")}
        if inner:
            gathered[f.name] = replace(cast(Any, f.default), **inner)
    return gathered


def method_keys(name: str) -> list[str]:
    return [key.removeprefix("method.") for key in list_keys("method", find_method(name))]


def value_at(settings: Any, key: str) -> Any:
    """Of a key that may lead into a group."""
    for name in key.split("."):
        settings = getattr(settings, name)
    return settings


def read_comments(cls: type) -> dict[str, str]:
    """What the source says behind each field, `n_clauses: int = 100  # this`, or in lines of comment above it."""
    comments: dict[str, str] = {}
    for parent in reversed(cls.__mro__[:-1]):
        try:
            lines = inspect.getsource(parent).splitlines()
        except (OSError, TypeError):  # no source at hand, e.g. in a zip
            continue
        found: dict[str, str] = {}
        above = ""
        for line in lines:
            if match := re.match(r"\s+(\w+)\s*:[^#]*(?:#\s*(.*\S))?", line):
                found.setdefault(match[1], match[2] or above)
            above = f"{above} {line.strip('# ')}".strip() if line.lstrip().startswith("#") else ""
        comments |= {name: meaning for name, meaning in found.items() if meaning or name not in comments}
    meanings = {f.name: comments.get(f.name, "") for f in fields(cls)}
    for f in fields(cls):
        if is_dataclass(f.default):
            inner = read_comments(type(f.default))
            meanings |= {f"{f.name}.{name}": meaning for name, meaning in inner.items()}
    return meanings


def list_keys(section: str, cls: type) -> dict[str, Any]:
    """Full key -> annotation of everything that may stand in a section; a group of settings is a section in it."""
    hints = get_type_hints(cls, localns={"Algorithm": object})  # not needed, and its module is slow to import
    if not section:
        return {name: hints[name] for name in TOP_KEYS}
    keys: dict[str, Any] = {}
    for f in fields(cls):
        is_group = is_dataclass(hints[f.name])
        keys |= list_keys(f"{section}.{f.name}", hints[f.name]) if is_group else {f"{section}.{f.name}": hints[f.name]}
    return keys


def unknown_key(key: str, where: str, keys: Iterable[str], method: str) -> ConfigError:
    section, _, name = key.rpartition(".")
    if key in SECTIONS:
        return ConfigError(
            "E102", f"{key} is a section; write {key}.name=..., or [{key}] and under it name = ...", where
        )
    if section in keys:
        return ConfigError("E102", f"{section} is a setting and no section; write {section} = ...", where)
    groups = {other.rpartition(".")[0] for other in keys}
    if section and section not in {*SECTIONS, *groups}:
        close = difflib.get_close_matches(section, SECTIONS, n=1)
        hint = f"Did you mean {close[0]}?" if close else f"There are: {', '.join(SECTIONS)}."
        return ConfigError("E101", f"unknown section {section} of {key}  {hint}", where)
    neighbours = [other.rpartition(".")[2] for other in keys if other.rpartition(".")[0] == section]
    elsewhere = [other for other in keys if other.rpartition(".")[2] == name]
    close = elsewhere or difflib.get_close_matches(name, neighbours, n=1)
    hint = f"Did you mean {close[0]}?" if close else f"There are: {', '.join(neighbours)}."
    command = f"laconic list {method}" if section == "method" else "laconic init FILE writes all keys"
    return ConfigError("E101", f"unknown key {key}  {hint}  ({command})", where)


def render(config: Config, *, with_comments: bool) -> str:
    parts = []
    for section, settings in {"": config, "method": config.method, "data": config.data, "fleet": config.fleet}.items():
        keys = [key.removeprefix(f"{section}.") for key in list_keys(section, type(settings))]
        values = {key: value_at(settings, key) for key in keys}
        comments = read_comments(type(settings))
        if section == "method":
            values, comments["name"] = {"name": config.method_name} | values, "laconic list methods"
        lines, group = [f"[{section}]"] if section else [], ""
        # the name first, then single settings, then groups, each as declared
        for key in sorted(values, key=lambda key: ("." in key, key != "name")):
            inner, _, name = key.rpartition(".")
            if inner != group:
                lines += ["", f"[{section}.{inner}]"]
                group = inner
            lines += render_line(f"{name} = {toml_value(values[key])}", comments[key] if with_comments else "")
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def render_line(setting: str, comment: str) -> list[str]:
    """The comment behind the setting, or above it if it is long."""
    if not comment:
        return [setting]
    if len(setting) + len(comment) < MAX_COLUMNS - 4:
        return [f"{setting}  # {comment}"]
    return [*textwrap.wrap(comment, MAX_COLUMNS, initial_indent="# ", subsequent_indent="# "), setting]


def check_least(key: str, value: int, least: int) -> None:
    if value < least:
        raise ValueError(f"{key} = {value} must be at least {least}")


def check_choice(key: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        close = difflib.get_close_matches(value, choices, n=1)
        hint = f"  Did you mean {close[0]}?" if close else ""
        raise ValueError(f'{key} = "{value}" must be one of {", ".join(choices)}.{hint}')
