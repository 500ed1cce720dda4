"""Tables with text and gaps: bits and values, their words, and the same path for rows to predict."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import laconic
from clinics import write_clinics
from laconic.columns import Column
from laconic.models.table import TableBits, TableValues
from laconic.tsetlin.rules import read_literals

pandas = pytest.importorskip("pandas")
COLUMNS = (Column("dose", (), may_lack=True), Column("eyes", ("blue", "grey")))
ROWS = np.array([[1.0, 0], [2.0, 1], [np.nan, 1], [4.0, 0]])


def test_a_bit_for_each_threshold_each_value_and_each_gap() -> None:
    bits = TableBits.fit(COLUMNS, ROWS, 1)
    words = [str(bit) for k, column in enumerate(COLUMNS) for bit in bits.describe(column.name, k)]
    assert words == ["dose > 3", "dose is missing", "eyes is blue", "eyes is grey"]
    assert [bit.negated for bit in bits.describe("eyes", 1)] == ["eyes is not blue", "eyes is not grey"]
    assert bits.transform(ROWS).tolist() == [[0, 0, 1, 0], [0, 0, 0, 1], [0, 1, 0, 1], [1, 0, 1, 0]]


WORDS = {  # 0, 1: dose above 2 or 4; 2: no dose; 3, 4: blue, grey; 5: no eyes; ~: not so
    (1, ~2): ("dose > 4",),
    (0, ~1, ~2): ("2 < dose <= 4",),
    (~0,): ("(dose <= 2 or missing)",),
    (~0, ~2): ("dose <= 2",),
    (~0, ~1, 2): ("dose is missing",),
    (~2,): ("dose is not missing",),
    (3, ~4, ~5, ~0, ~2): ("dose <= 2", "eyes is blue"),
    (~3, ~5): ("eyes is not blue", "eyes is not missing"),
    (0, 2): None,
    (3, 4): None,
    (4, 5): None,
}


@pytest.mark.parametrize("literals", WORDS)
def test_a_rule_says_nothing_that_follows_from_its_other_words(literals: tuple[int, ...]) -> None:
    columns = (Column("dose", (), may_lack=True), Column("eyes", ("blue", "grey"), may_lack=True))
    bits = TableBits(columns, ((2.0, 4.0), ()))
    named = [bit for k, column in enumerate(columns) for bit in bits.describe(column.name, k)]
    include = np.zeros(12, np.bool_)
    include[[literal if literal >= 0 else 6 + ~literal for literal in literals]] = True
    assert read_literals(named, include) == WORDS[literals]


def test_values_are_centred_and_gaps_are_zero_with_a_mark() -> None:
    values = TableValues.fit(COLUMNS, ROWS).transform(ROWS)
    assert values.dtype == np.float32
    known = values[[0, 1, 3], 0]
    assert known.mean() == pytest.approx(0, abs=1e-6)
    assert known.std() == pytest.approx(1)
    assert values[2].tolist() == [0, 1, 0, 1]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> laconic.Run:
    folder = tmp_path_factory.mktemp("clinics")
    csv = write_clinics(folder / "clinics.csv")
    return laconic.run("local-tm", data=csv, label="finding", group="clinic", rounds=1, out=folder / "run", epochs=5)


def test_clients_are_called_as_in_the_table_and_who_has_no_part_is_told(run: laconic.Run) -> None:
    assert run.clients.name.tolist() == ["east", "north", "south"]
    told = (run.folder / "events.log").read_text("utf-8")
    assert "1 of 4 values of clinic have no part, with 1 rows to learn from (data.min_samples = 2): tiny" in told


def test_a_saved_model_reads_raw_rows_as_the_run_did(run: laconic.Run, tmp_path: Path) -> None:
    model = run.client("north")
    model.save(tmp_path / "north.safetensors")
    frame = pandas.read_csv(run.folder.parent / "clinics.csv", keep_default_na=False, na_values=["", "NA"])
    expected = model.predict(frame).tolist()
    loaded = laconic.load(tmp_path / "north.safetensors")
    assert loaded.predict(frame).tolist() == expected
    command = [sys.executable, "-m", "laconic", "predict", "--json", tmp_path / "north.safetensors"]
    done = subprocess.run([*command, run.folder.parent / "clinics.csv"], capture_output=True, check=True)
    assert json.loads(done.stdout)["labels"] == expected
    north = frame[frame.clinic == "north"]
    assert (model.predict(north) == north.finding).mean() > 0.85


def test_rows_of_another_kind_are_refused_by_row_and_column(run: laconic.Run) -> None:
    with pytest.raises(ValueError, match=r"column eyes holds 'red' in row 0 .*known are brown, green, grey"):
        run.client("north").predict(pandas.DataFrame({"age": [3], "dose": [1.0], "eyes": ["red"]}))
    with pytest.raises(ValueError, match="no column dose"):
        run.client("north").predict(pandas.DataFrame({"age": [3], "eyes": ["grey"]}))


def test_networks_learn_from_such_tables_too(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    csv = write_clinics(tmp_path / "clinics.csv")
    run = laconic.run("separate", data=csv, label="finding", group="clinic", rounds=2, out=tmp_path / "run")
    run.client("south").save(tmp_path / "south.safetensors")
    row = pandas.DataFrame({"age": [80], "dose": [None], "eyes": ["green"]})
    assert laconic.load(tmp_path / "south.safetensors").predict(row) in (["ill"], ["well"])


def test_frames_are_kept_with_their_run_and_give_the_same(run: laconic.Run, tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.read_csv(run.folder.parent / "clinics.csv", null_values=["", "NA"])
    again = laconic.run(
        "local-tm", data=frame, label="finding", group="clinic", rounds=1, out=tmp_path / "run", epochs=5
    )
    assert again.clients.accuracy.tolist() == run.clients.accuracy.tolist()
    assert (tmp_path / "run" / "data.npz").exists()
    assert laconic.load_run(tmp_path / "run").client("east").predict(frame).tolist() == (
        run.client("east").predict(frame).tolist()
    )


def test_a_group_means_clients_that_own_their_rows() -> None:
    from laconic.runs.config import read_config
    from laconic.runs.typed_toml import ConfigError

    assert read_config(None, ["data.group=clinic"]).data.partition == "natural"
    with pytest.raises(ConfigError, match=r"data.group = 'clinic' says who owns a row, data.partition = 'iid' deals"):
        read_config(None, ["data.group=clinic", "data.partition=iid"])
