"""A model in C says what it says in Python, of every row; nothing else is written."""

import json
import re
import shutil
import subprocess
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tsetlin_models import DIGITS, FEW, PATCH, SHAPES, WHOLE, build_flat, build_layered, build_pool, carry, train

from laconic import tsetlin as tm
from laconic.client_model import ClientModel
from laconic.export.c import CExport, export_c
from laconic.export.c.check import ask_c, check_c
from laconic.export.c.header import write_header
from laconic.export.c.values import Values, draw_rows
from laconic.exporting import export_model
from laconic.models.machines import Ballot, ClauseHeads, Composite
from laconic.models.portable import PortableModel
from laconic.models.preprocessing import Adaptive, PlaceQuantiles, Preprocessing, Quantiles, Thermometer, Threshold
from laconic.models.preprocessing import Unchanged as Bits

RNG = np.random.default_rng(0)
each_shape = pytest.mark.parametrize("shape", SHAPES)


@pytest.fixture(scope="module")
def headers(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("headers")


@cache
def build(shape: str) -> PortableModel:
    return SHAPES[shape]()


@cache
def export(folder: Path, shape: str) -> CExport:
    """Compared on all test examples and 10,000 random rows."""
    model = build(shape)
    rows = np.concatenate([DIGITS.x_test, draw_rows(model, 10_000, np.random.default_rng(0))])
    return export_c(model, folder / f"{shape}.h", rows=rows)


@each_shape
def test_c_equals_python_on_all_test_examples_and_ten_thousand_random_rows(headers: Path, shape: str) -> None:
    assert export(headers, shape).n_compared == len(DIGITS.x_test) + 10_000


def test_shapes_are_what_they_are_called() -> None:
    machines, by_example, pool = (build(k).model for k in ("two-machines", "two-machines-by-example", "pool"))
    assert isinstance(machines, Composite)
    assert len(machines.machines) == 2
    assert machines.spans is not None
    assert isinstance(by_example, Composite)
    assert by_example.spans is None
    assert by_example.among is not None
    assert isinstance(pool, ClauseHeads)
    assert pool.pooled is not None
    assert not pool.holds.all()


@each_shape
def test_a_header_is_cpp_too(headers: Path, shape: str) -> None:
    source = headers / f"{shape}.cpp"
    source.write_text(f'#include "{shape}.h"\nint main() {{ static model_value row[MODEL_VALUES]; '
                      "return model_predict(row) + !model_class_names[0]; }\n", "utf-8")  # fmt: skip
    strict = ["-std=c++11", "-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only"]
    export(headers, shape)
    subprocess.run(["g++", *strict, source], check=True)


@each_shape
def test_a_header_needs_no_library(headers: Path, shape: str) -> None:
    source, made = headers / f"{shape}.c", headers / f"{shape}.o"
    source.write_text(f'#include "{shape}.h"\nint chosen(const model_value *row) {{ return model_predict(row); }}\n')
    export(headers, shape)
    subprocess.run(["cc", "-std=c99", "-O2", "-c", source, "-o", made], check=True)
    lacking = subprocess.run(["nm", "-u", made], check=True, capture_output=True, text=True).stdout.split()
    assert set(lacking) - {"U"} <= {"memset"}  # which compilers make of a loop


def test_a_chip_of_each_kind_is_measured(headers: Path) -> None:
    sizes = {each.target: each for each in export(headers, "flat").footprints}
    assert {"cortex-m0plus", "cortex-m4"} <= set(sizes) or not shutil.which("arm-none-eabi-gcc")
    assert all(each.ram_bytes == 0 and each.flash_bytes > 500 and each.stack_bytes > 10 for each in sizes.values())


PLACES = np.sort(RNG.random((8, 8, 3)).astype(np.float32) * 16, axis=-1)
READERS: dict[str, tuple[Preprocessing, type]] = {
    "bits": (Bits(), np.uint8),
    "bytes": (Threshold(6.5), np.uint8),
    "floats": (Threshold(0.1), np.float32),
    "doubles": (Threshold(0.1), np.float64),
    "means": (Adaptive(5, 1.5), np.uint8),
    "wide-means": (Adaptive(), np.uint8),
    "levels": (Thermometer(3, 16.0), np.uint8),
    "float-levels": (Thermometer(3, 0.7), np.float32),
    "places": (PlaceQuantiles(PLACES), np.float32),
    "places-of-bytes": (PlaceQuantiles(PLACES), np.uint8),
}


def draw(shape: tuple[int, ...], kind: type, reader: Preprocessing) -> np.ndarray:
    top = 1 if isinstance(reader, Bits) else 255 if isinstance(reader, Adaptive) else 16
    if kind is np.uint8:
        return RNG.integers(0, top, (FEW, *shape), endpoint=True).astype(np.uint8)
    rows = RNG.random((FEW, *shape)) * 2 - 0.5
    rows[RNG.random(rows.shape) < 0.1] = np.float32(0.1)  # on and next to a threshold
    rows[RNG.random(rows.shape) < 0.1] = 0.1
    return rows.astype(kind)


@pytest.mark.parametrize("turns", [0, 1, 2, 3])
@pytest.mark.parametrize("patch", [None, PATCH])
def test_turned_images_are_read_alike(tmp_path: Path, patch: tuple[int, int] | None, turns: int) -> None:
    """By neighbours and place by place: what differs once rows and columns are mixed up."""
    for reader in (Adaptive(5, 1.5), PlaceQuantiles(PLACES[:, :6])):
        raw = draw((8, 6), np.uint8, reader)
        machine = train(reader, patch, x=raw, turns=turns)
        model = carry(Ballot(machine), reader, input_shape=(8, 6), turns=turns)
        assert export_c(model, tmp_path / "turned.h", rows=raw).n_compared == FEW


@pytest.mark.parametrize("reader", READERS)
def test_every_way_to_read_rows_is_the_same_in_c(tmp_path: Path, reader: str) -> None:
    preprocessing, kind = READERS[reader]
    raw = draw(WHOLE, kind, preprocessing)
    for patch in (None, PATCH):
        model = carry(Ballot(train(preprocessing, patch, x=raw)), preprocessing)
        assert export_c(model, tmp_path / "read.h", rows=raw).n_compared == FEW


@pytest.mark.parametrize(("kind", "ctype"), [(np.float64, "double"), (np.float32, "float")])
def test_columns_of_a_table_are_read_alike(tmp_path: Path, kind: type, ctype: str) -> None:
    rows = np.round(RNG.random((FEW, 5)) * [1, 10, 100, 1, 1], 1).astype(kind)
    rows[:, 4] = 3  # a constant column has no bits
    preprocessing = Quantiles.fit(rows, 4)
    model = carry(Ballot(train(preprocessing, x=rows)), preprocessing, input_shape=(5,))
    assert export_c(model, tmp_path / "table.h", rows=rows).row_type == ctype
    assert export_c(model, tmp_path / "table.h").n_compared == 10_000


@pytest.mark.parametrize("width", [33, 40, 70])
def test_images_wider_than_a_word_are_read_alike(tmp_path: Path, width: int) -> None:
    raw = RNG.integers(0, 16, (FEW, 12, width, 2)).astype(np.uint8)
    model = carry(Ballot(train(Thermometer(2, 15), (3, 4), x=raw)), Thermometer(2, 15), input_shape=(12, width, 2))
    assert export_c(model, tmp_path / "wide.h", rows=raw).n_compared == FEW


def test_clauses_that_fill_few_words_are_kept_as_masks(tmp_path: Path) -> None:
    machine = train(Threshold(7))
    includes = RNG.random((10, 20, 128)) < 0.4
    includes[:, :, 64:] &= ~includes[:, :, :64]
    tm.load_include_bits(machine, includes)
    export_c(carry(Ballot(machine), Threshold(7)), tmp_path / "full.h")
    assert "mask" in (tmp_path / "full.h").read_text("utf-8")


def test_a_machine_that_has_learned_nothing_is_written_too(tmp_path: Path) -> None:
    machine = tm.build(tm.Shape.flat(64), 10, 2)
    assert export_c(carry(Ballot(machine), Threshold(7), input_shape=(64,)), tmp_path / "fresh.h").n_compared == 10_000


def test_a_200_clause_digits_model_takes_less_than_12_kb(tmp_path: Path) -> None:
    done = export_c(build_layered(None), tmp_path / "digits.h", "digits")
    assert all(each.flash_bytes < 12_000 for each in done.footprints)


def test_a_client_model_is_exported_by_its_own_name(tmp_path: Path) -> None:
    model = build_pool()
    ClientModel(model.model, model.preprocessing, model.about).export_c(tmp_path / "mine.h", "mine")
    assert "mine_predict" in (tmp_path / "mine.h").read_text("utf-8")
    assert [each.name for each in tmp_path.iterdir()] == ["mine.h"]


def test_what_the_command_tells_is_json_and_a_line_for_each_chip(tmp_path: Path) -> None:
    model = build_flat()
    told, lines = export_model(ClientModel(model.model, model.preprocessing, model.about), "c", tmp_path / "mine.h")
    assert json.loads(json.dumps(told))["path"] == str(tmp_path / "mine.h")
    assert [line.split(":")[0] for line in lines if "flash" in line] == [each["target"] for each in told["footprints"]]


# ---------------------------------------------------------------- refusals
def test_what_differs_is_refused_with_the_row_and_nothing_is_written(tmp_path: Path) -> None:
    model, rows = build_flat(), DIGITS.x_test
    header = tmp_path / "model.h"
    header.write_text(write_header(model, Values.of(rows), "model", len(rows)).replace("{\n    7\n}", "{\n    9\n}"))
    with pytest.raises(ValueError, match=r"differ on \d+ of 445 rows, so nothing was written: of row \d+ C says"):
        check_c(header, "model", model, Values.of(rows), rows)


def test_a_refused_export_leaves_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "model.h").write_text("old")
    with pytest.raises(ValueError, match="rows are none"):
        export_c(build_flat(), tmp_path / "model.h", rows=DIGITS.x_test[:0])
    assert (tmp_path / "model.h").read_text() == "old"


def test_without_a_compiler_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(FileNotFoundError, match="apt install gcc"):
        export_c(build_flat(), tmp_path / "model.h")
    assert not (tmp_path / "model.h").exists()


@pytest.mark.parametrize("name", ["", "7up", "my-model", "a b"])
def test_a_name_that_c_cannot_take_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="give a word such as model"):
        export_c(build_flat(), tmp_path / "model.h", name)


def test_weights_off_the_grid_are_refused(tmp_path: Path) -> None:
    model = build_pool()
    assert isinstance(model.model, ClauseHeads)
    own = replace(model.model.own, head=model.model.own.head / 3)
    with pytest.raises(ValueError, match="grid"):
        export_c(replace(model, model=replace(model.model, own=own)), tmp_path / "model.h")


@dataclass
class Wavy(tm.Machine):
    wave: int = 3


def test_a_machine_of_a_kind_to_come_is_refused_by_name(tmp_path: Path) -> None:
    machine = train(Threshold(7))
    with pytest.raises(ValueError, match="a machine has wave, which C export does not know"):
        export_c(carry(Ballot(Wavy(**vars(machine))), Threshold(7)), tmp_path / "model.h")


def test_fuzzy_clauses_on_wide_images_are_refused(tmp_path: Path) -> None:
    machine = tm.build(tm.Shape.image(8, 40, patch=(3, 3)), 10, 2, fuzzy=tm.Fuzzy(3, 5))
    with pytest.raises(ValueError, match="images are 40 pixels wide; C export of fuzzy clauses takes up to 32"):
        export_c(carry(Ballot(machine), Threshold(7), input_shape=(8, 40)), tmp_path / "model.h")


def test_nothing_that_a_file_says_of_itself_becomes_code(tmp_path: Path) -> None:
    spell = "*/\nint spell;\n/*"
    told = dict.fromkeys(("method", "name", "data", "laconic", "run"), spell)
    export_c(carry(build_flat().model, Threshold(7), **told), tmp_path / "model.h")
    assert "\nint spell;" not in (tmp_path / "model.h").read_text("utf-8")


def test_names_of_classes_come_out_as_they_are(tmp_path: Path) -> None:
    model = carry(build_flat().model, Threshold(7), classes=('a"\\??/b*/', "é", *"23456789"))
    export_c(model, tmp_path / "model.h")
    source = tmp_path / "names.c"
    source.write_text('#include <stdio.h>\n#include "model.h"\nint main(void) { int k; '
                      "for (k = 0; k < MODEL_CLASSES; k++) puts(model_class_names[k]); return 0; }\n")  # fmt: skip
    subprocess.run(["cc", "-std=c99", source, "-o", tmp_path / "names"], check=True)
    said = subprocess.run([tmp_path / "names"], capture_output=True, check=True, text=True, encoding="utf-8").stdout
    assert tuple(said.splitlines()) == model.about.classes


def test_the_program_of_the_documentation_says_what_python_says(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "export.md").read_text("utf-8")
    (program,) = re.findall(r"```c\n(.*?)```", page, re.DOTALL)
    model, rows = build_layered(None), DIGITS.x_test
    export_c(model, tmp_path / "digits.h", "digits", rows=rows)
    (tmp_path / "main.c").write_text(program, "utf-8")
    strict = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror"]
    subprocess.run(["cc", *strict, "main.c", "-o", "digits"], check=True, cwd=tmp_path)
    said = subprocess.run([tmp_path / "digits"], input=rows.tobytes(), capture_output=True, check=True).stdout
    assert said.decode().split() == [DIGITS.classes[k] for k in model.model.classify(model.read(rows))]


def test_scores_are_those_of_python(tmp_path: Path) -> None:
    model, rows = build_pool(), DIGITS.x_test
    header = tmp_path / "pool.h"
    export_c(model, header, "pool", rows=rows)
    classes, scores = ask_c(header, "pool", Values.of(rows), rows, 10)
    assert np.array_equal(scores, model.model.scores(model.read(rows)))
    assert np.array_equal(classes, model.model.classify(model.read(rows)))
