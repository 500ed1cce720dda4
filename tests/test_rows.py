from pathlib import Path

import numpy as np
import pytest

from laconic.rows import read_rows

PLAIN = "a,b\n1.5,2\n-0.25,3\n"


@pytest.mark.parametrize(
    "text", [PLAIN, PLAIN.replace(",", ";"), PLAIN.replace(",", ";").replace(".", ","), f"\ufeff{PLAIN}"]
)
def test_rows_to_predict_come_as_spreadsheets_save_them(text: str, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(text, "utf-8")
    np.testing.assert_array_equal(np.asarray(read_rows(tmp_path / "rows.csv", ["a", "b"])), [[1.5, 2], [-0.25, 3]])
    texts = read_rows(tmp_path / "rows.csv", ["a", "b"], as_text=True)
    assert texts["a"] == ["1.5", "-0.25"]
