"""Settings: what is read is what was meant, what is written reads back, and what is wrong is named with its place."""

import dataclasses
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, Literal, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laconic.algorithms import METHODS, Method
from laconic.catalogue import list_rows
from laconic.runs.config import (
    Config,
    ConfigError,
    DataSettings,
    FleetSettings,
    commented_template,
    find_method,
    method_keys,
    parse_bytes,
    read_config,
    write_config,
)
from laconic.runs.typed_toml import Given, convert_given, toml_value

TM_METHODS = [name for name, method in METHODS.items() if not method.extra]
WITH_CLAUSES = [name for name in TM_METHODS if "n_clauses" in method_keys(name)]


def read_text(folder: Path, text: str, *typed: str) -> Config:
    (folder / "exp.toml").write_text(text)
    return read_config(folder / "exp.toml", typed)


# ---------------------------------------------------------------- reading
def test_settings_beat_the_file_and_the_file_beats_defaults(tmp_path: Path) -> None:
    config = read_text(tmp_path, "rounds = 3\nseed = 4\n[data]\nclients = 7\n", "seed=5", "data.name=mnist")
    assert (config.rounds, config.seed, config.evaluate_every) == (3, 5, 1)
    assert (config.data.clients, config.data.name) == (7, "mnist")


def test_settings_are_toml_values_and_bare_words_text() -> None:
    config = read_config(None, ["method.patch=3", "data.alpha=1", 'budget="2kB"', "fleet.state=disk"])
    assert config.method.patch == 3  # type: ignore[attr-defined]
    assert type(config.data.alpha) is float  # a whole number is fine where a number is due
    assert (config.budget, config.fleet.state) == ("2kB", "disk")
    assert read_config(None, ["budget=5000"]).budget == "5000"  # text was expected, so what was typed is text
    assert read_config(None, ["method.patch=none"]).method.patch is None  # type: ignore[attr-defined]


def test_switching_the_method_leaves_the_settings_of_the_former_behind(tmp_path: Path) -> None:
    text = '[method]\nname = "fedtm"\nblend = 0.9\n'
    assert read_text(tmp_path, text).method == find_method("fedtm")(blend=0.9)
    switched = read_text(tmp_path, text, "method.name=local-tm", "method.epochs=2")
    assert switched.method == find_method("local-tm")(epochs=2)


def test_method_settings_without_a_name_go_to_the_method_chosen(tmp_path: Path) -> None:
    assert read_text(tmp_path, "[method]\nepochs = 2\n", "method.name=local-tm").method == find_method("local-tm")(
        epochs=2
    )


def test_empty_sections_are_fine(tmp_path: Path) -> None:
    assert read_text(tmp_path, "[method]\n[data]\n[fleet]\n") == read_config(None)


@pytest.mark.parametrize("module", ["laconic.runs.config", "laconic.runs.plan"])
def test_reading_settings_needs_no_compiler(module: str) -> None:
    script = f"import sys, {module}; print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# ---------------------------------------------------------------- writing
@st.composite
def configs(draw: st.DrawFn) -> Config:
    name = draw(st.sampled_from(WITH_CLAUSES))
    text = st.text(st.characters(exclude_categories=["Cs"]))
    share = st.floats(0, 1, exclude_min=True, exclude_max=True)
    method = dataclasses.replace(find_method(name)(), n_clauses=draw(st.integers(1, 10**9)))  # type: ignore[call-arg]
    fleet = FleetSettings(
        name=draw(st.sampled_from(["local", "process"])), participation=draw(share), lost_replies=draw(share)
    )
    return Config(
        rounds=draw(st.integers(1, 10**6)),
        seed=draw(st.integers(0, 2**63)),
        budget=draw(st.sampled_from(["", "10kB", "4KiB", "800"])),
        method_name=name,
        method=method,
        data=DataSettings(name=draw(text), booleanize=draw(text), alpha=draw(st.floats(1e-300, 1e300))),
        fleet=fleet,
    )


@given(config=configs())
@settings(max_examples=50, deadline=None)
def test_what_is_written_reads_back(config: Config, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "written.toml"
    path.write_text(write_config(config), encoding="utf-8")
    assert read_config(path) == config


VALUES = {
    int: st.integers(),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    str: st.text(st.characters(exclude_categories=["Cs"])),
    float | None: st.none() | st.floats(allow_nan=False, allow_infinity=False),
    tuple[int, ...]: st.lists(st.integers()).map(tuple),
    tuple[int, int]: st.tuples(st.integers(), st.integers()),
    tuple[float, ...] | None: st.none() | st.lists(st.floats(0, 1)).map(tuple),
    Literal["a", "b", 3]: st.sampled_from(["a", "b", 3]),
    int | str: st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
}


@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_values_of_every_kind_read_back(data: st.DataObject) -> None:
    annotation = data.draw(st.sampled_from([*VALUES]))
    value = data.draw(VALUES[annotation])
    read = tomllib.loads(f"key = {toml_value(value)}")["key"]
    back = convert_given("key", annotation, Given(read, "here"))
    assert (type(back), back) == (type(value), value)


@pytest.mark.parametrize("name", TM_METHODS)
def test_the_template_reads_back_as_the_defaults_and_explains_each_setting(name: str, tmp_path: Path) -> None:
    template = commented_template(name)
    assert read_text(tmp_path, template) == read_config(None, [f"method.name={name}"])
    lines = [line for line in template.splitlines() if " = " in line and not line.startswith("#")]
    assert {line.partition(" = ")[0] for line in lines} >= {f.name for f in dataclasses.fields(find_method(name))}  # type: ignore[arg-type]
    assert [line for line in lines if "  # " not in line] == []


# ---------------------------------------------------------------- what is wrong
@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ('rounds = "5"', "E102", ['exp.toml:1  rounds = "5" must be a whole number']),
        ("\nrounds = 5.0", "E102", ["exp.toml:2  rounds = 5.0 must be a whole number"]),
        ("rounds = true", "E102", ["rounds = true must be a whole number"]),
        ("rounds = 0", "E102", ["exp.toml:1  rounds = 0 must be at least 1"]),
        ("budget = 5000", "E102", ['budget = 5000 must be a text in "quotes"']),
        ('budget = "10kg"', "E102", ['exp.toml:1  budget = "10kg"', "10kB", "4KiB"]),
        ("clients = 5", "E101", ["exp.toml:1  unknown key clients", "Did you mean data.clients?"]),
        ("[method]\n\nclausses = 5", "E101", ["exp.toml:3", "method.clausses", "n_clauses?", "laconic list fedtm"]),
        ("method.clausses = 5", "E101", ["exp.toml:1", "method.clausses"]),
        ("method = { clausses = 5 }", "E101", ["exp.toml:1", "method.clausses"]),
        ("[method]\nn_clauses = 0", "E102", ["exp.toml:2  method.n_clauses = 0 must be at least 1"]),
        ("[method]\nblend = nan", "E102", ["exp.toml:2  method.blend = nan must be a number"]),
        ("[method]\npatch = [3, 3]", "E102", ['method.patch = [3, 3] must be a whole number or "none"']),
        ('[method]\nname = "fedtmm"', "E110", ["exp.toml:2", '"fedtmm"', "Closest: fedtm", "laconic list methods"]),
        ('method = "fedtm"', "E102", ["exp.toml:1  method is a section; write method.name="]),
        ("[data]\nalpha = -0.1", "E102", ["exp.toml:2", "data.alpha = -0.1 must be"]),
        ("[data]\n[data.alpha]\nx = 1", "E102", ["exp.toml:3", "data.alpha is a setting and no section"]),
        ("[dta]\nalpha = 1", "E101", ["exp.toml:2", "unknown section dta", "Did you mean data?"]),
        ('[fleet]\nname = "proces"', "E102", ["exp.toml:2", "local, process", "Did you mean process?"]),
        ("[fleet]\nparticipation = 0", "E102", ["fleet.participation = 0.0 must be above 0"]),
        ("rounds = [", "E103", ["exp.toml", "is no TOML"]),
        ("rounds = 3\nseed = = 4\n", "E103", ["exp.toml:2", "is no TOML"]),
    ],
)
def test_wrong_files_are_refused_with_line_and_remedy(text: str, code: str, words: list[str], tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read_text(tmp_path, text)
    assert caught.value.code == code
    assert all(part in str(caught.value) for part in words)


@pytest.mark.parametrize(
    ("setting", "code", "words"),
    [
        ("rounds", "E102", "--set rounds must be key=value"),
        ("rounds=many", "E102", '--set rounds  rounds = "many" must be a whole number'),
        ("rounds=5.0", "E102", "rounds = 5.0 must be a whole number"),
        ("method=fedtm", "E102", "method is a section; write method.name="),
        ("method.clausses=5", "E101", "--set method.clausses  unknown key method.clausses  Did you mean n_clauses?"),
        ("data.alpha=-1", "E102", "--set data.alpha  data.alpha = -1.0 must be"),
        ("data.tested=val", "E102", 'data.tested = "val" must be one of test, validation'),
        ("method.name=xyz", "E110", 'unknown method "xyz"'),
        ("rounds=1\nseed=2", "E102", "must be a whole number"),
    ],
)
def test_wrong_settings_are_refused_by_name(setting: str, code: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_config(None, [setting])
    assert caught.value.code == code
    assert words in str(caught.value)


def test_testing_on_validation_examples_needs_some() -> None:
    assert read_config(None, ["data.tested=validation"]).data.tested == "validation"
    with pytest.raises(ConfigError, match="needs some set aside"):
        read_config(None, ["data.tested=validation", "data.validation=0"])


def test_a_missing_file_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent.toml does not exist.  Make one: laconic init"):
        read_config(tmp_path / "absent.toml")


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        *((bool, 1), (int, True), (int, 1.0), (float, True), (float, "1"), (str, 1), (float, float("inf"))),
        *((tuple[int, int], [1]), (tuple[int, ...], [1, "2"]), (Literal["a", 1], True), (int | None, "nothing")),
    ],
)
def test_nothing_else_is_converted(annotation: Any, value: Any) -> None:
    with pytest.raises(ConfigError, match=r"key = .* must be"):
        convert_given("key", annotation, Given(value, "here"))


@pytest.mark.parametrize(
    ("text", "n_bytes"),
    [("800", 800), ("10kB", 10_000), ("10 kB", 10_000), ("1.5MB", 1_500_000), ("4KiB", 4096), ("1MiB", 2**20)],
)
def test_sizes_are_read_in_thousands_and_in_1024s(text: str, n_bytes: int) -> None:
    assert parse_bytes(text) == n_bytes


@pytest.mark.parametrize("text", ["", "kB", "-1", "10kb", "1e3", "ten", "0", "0.4", "nan", "10 k B"])
def test_other_sizes_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"write e\.g\. 800, 10kB"):
        parse_bytes(text)


def test_a_method_whose_extra_is_missing_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    needy = Method("needy", "networks", "package_that_nobody_has.needy:Needy", "", "none", "nothing", extra="nn")
    monkeypatch.setitem(METHODS, "needy", needy)
    with pytest.raises(ConfigError, match=r'needs .*pip install "laconic-fl\[nn\]"') as caught:
        read_config(None, ["method.name=needy"])
    assert caught.value.code == "E140"


def test_a_fleet_whose_extra_is_missing_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)  # as if it were not installed
    monkeypatch.delitem(sys.modules, "laconic.fleets.ray", raising=False)
    with pytest.raises(ConfigError, match=r'fleet "ray" needs ray, .*pip install "laconic-fl\[ray\]"') as caught:
        read_config(None, ["fleet.name=ray"])
    assert caught.value.code == "E140"


# ---------------------------------------------------------------- groups of settings
def test_a_group_is_read_from_its_section_and_from_settings(tmp_path: Path) -> None:
    text = '[method]\nname = "fedrep"\nhead_epochs = 3\n[method.training]\nrate = 0.2\nmodel = "mlp"\n'
    method: Any = read_text(tmp_path, text, "method.training.epochs=4").method
    assert (method.head_epochs, method.training.rate, method.training.epochs) == (3, 0.2, 4)
    assert (method.training.model, method.training.batch) == ("mlp", 32)
    dotted: Any = read_text(tmp_path, 'method.name = "fedrep"\nmethod.training.rate = 0.2\n').method
    assert dotted.training.rate == 0.2


def test_a_group_keeps_the_defaults_that_its_method_gives_it() -> None:
    method: Any = read_config(None, ["method.name=fedpac", "method.training.rate=0.5"]).method
    assert (method.training.rate, method.training.momentum) == (0.5, find_method("fedpac")().training.momentum)  # type: ignore[attr-defined]
    assert method.training.momentum != find_method("fedavg")().training.momentum  # type: ignore[attr-defined]


def test_a_group_is_written_as_a_section_and_reads_back(tmp_path: Path) -> None:
    settings = [
        "method.name=fedrep",
        "method.head_epochs=2",
        "method.training.rate=0.125",
        "method.training.prior=true",
    ]
    config = read_config(None, settings)
    written = write_config(config)
    document = tomllib.loads(written)
    assert document["method"]["head_epochs"] == 2
    assert (document["method"]["training"]["rate"], document["method"]["training"]["prior"]) == (0.125, True)
    assert read_text(tmp_path, written) == config


def test_a_groups_template_explains_each_of_its_settings(tmp_path: Path) -> None:
    template, method = commented_template("fedrep"), cast(Any, find_method("fedrep")())
    assert read_text(tmp_path, template) == read_config(None, ["method.name=fedrep"])
    section = template.partition("[method.training]")[2].partition("\n[")[0].strip().splitlines()
    settings = [line for line in section if not line.startswith("#")]
    assert {line.partition(" = ")[0] for line in settings} == {f.name for f in dataclasses.fields(method.training)}
    assert [line for line, above in zip(section[1:], section, strict=False) if is_bare(line, above)] == []


def is_bare(line: str, above: str) -> bool:
    return not line.startswith("#") and "  # " not in line and not above.startswith("#")


def test_a_groups_settings_are_listed_by_their_full_keys() -> None:
    rows = {row["key"]: row for row in list_rows("fedrep")}
    assert rows["method.training.rate"]["default"] == 0.05
    assert rows["method.training.rate"]["meaning"] == "learning rate"
    assert rows["method.head_epochs"]["default"] == 10
    assert "method.training" not in rows


@pytest.mark.parametrize(
    ("setting", "code", "words"),
    [
        ("method.training.ratee=1", "E101", "unknown key method.training.ratee  Did you mean rate?"),
        ("method.rate=1", "E101", "unknown key method.rate  Did you mean method.training.rate?"),
        ("method.training.head_epochs=1", "E101", "Did you mean method.head_epochs?"),
        ("method.training=1", "E101", "unknown key method.training"),
        ("method.trainin.rate=1", "E101", "unknown section method.trainin"),
        ("method.training.rate=-1", "E102", "--set method.training.rate  method.training.rate = -1.0"),
        ("method.training.epochs=1.5", "E102", "method.training.epochs = 1.5 must be a whole number"),
        ("method.training.down=int3", "E102", "method.training.down"),
    ],
)
def test_wrong_settings_of_a_group_are_refused_with_a_hint(setting: str, code: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_config(None, ["method.name=fedrep", setting])
    assert caught.value.code == code
    assert words in str(caught.value)
