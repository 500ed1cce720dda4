from pathlib import Path

import numpy as np
import pytest

from laconic.columns import Column
from laconic.data.cells import SAMPLE
from laconic.rows import read_rows

PLAIN = "a,b\n1.5,2\n-0.25,3\n"


@pytest.mark.parametrize(
    "text", [PLAIN, PLAIN.replace(",", ";"), PLAIN.replace(",", ";").replace(".", ","), f"\ufeff{PLAIN}"]
)
def test_rows_to_predict_come_as_spreadsheets_save_them(text: str, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(text, "utf-8")
    np.testing.assert_array_equal(np.asarray(read_rows(tmp_path / "rows.csv", ["a", "b"])), [[1.5, 2], [-0.25, 3]])
    texts = read_rows(tmp_path / "rows.csv", ["a", "b"], [Column("a", may_lack=True), Column("b")])
    assert texts["a"] == ["1.5", "-0.25"]


@pytest.mark.parametrize("text", ["0,5;1,5\n", "0,5;1,5\n0,5;1,5\n", "0,5\t1,5\n0,5\t1,5\n", "0.5,1.5\n", "0.5;1.5\n"])
def test_numbers_without_names_on_top_are_rows_whatever_parts_them(text: str, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(text, "utf-8")
    n_rows = text.count("\n")
    np.testing.assert_array_equal(np.asarray(read_rows(tmp_path / "rows.csv", ["a", "b"])), [[0.5, 1.5]] * n_rows)


def test_rows_without_any_column_asked_for_are_still_rows(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("c,d\n1,2\n", "utf-8")
    rows = read_rows(tmp_path / "rows.csv", ["a", "b"])
    assert (len(rows), rows.columns) == (1, [])  # a model says which it lacks


def test_a_category_written_with_a_comma_stays_as_it_was_learned(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("dose;grade\n0,5;0,5\n1,5;1,000\n0,5;high\n", "utf-8")
    grade = Column("grade", ("0,5", "1,000", "high"))
    rows = read_rows(tmp_path / "rows.csv", ["dose", "grade"], [Column("dose"), grade])
    assert rows["dose"] == ["0.5", "1.5", "0.5"]
    assert grade.encode(rows["grade"]).tolist() == [0, 1, 2]
    assert grade.encode(["0.5", "high"]).tolist() == [0, 2]


def test_what_cannot_be_read_late_in_a_file_is_told_by_its_line(tmp_path: Path) -> None:
    n_lines = SAMPLE // 4 + 1
    (tmp_path / "rows.csv").write_bytes(b"a,b\n" + b"1,2\n" * n_lines + b"1,gr\xfcn\n")
    with pytest.raises(ValueError, match=rf"is not in UTF-8 .byte fc in line {n_lines + 2}.;"):
        read_rows(tmp_path / "rows.csv", ["a", "b"])
    (tmp_path / "rows.csv").write_text(f'a,b\n1,"{"x" * 200_000}"\n')
    with pytest.raises(ValueError, match=r"rows\.csv cannot be read: field larger than field limit"):
        read_rows(tmp_path / "rows.csv", ["a", "b"])
