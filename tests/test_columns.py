import datetime

import numpy as np
import pandas as pd
import pytest

from laconic.columns import Column, Origin, encode_rows, fit_column, is_frame

HERE = Origin("cells.csv", 1)


def fit(cells, name="size"):
    column, (numbers,), odd = fit_column(name, [(cells, HERE)])
    return column, numbers, odd


def test_a_column_may_be_called_as_what_polars_does() -> None:
    assert is_frame(pd.DataFrame({"collect": [1.0]}))


def test_numbers_are_themselves_and_gaps_nan() -> None:
    column, numbers, odd = fit(np.array([1.5, np.nan, -2]))
    assert column == Column("size", (), True)
    np.testing.assert_array_equal(numbers, [1.5, np.nan, -2])
    assert odd == ""


def test_text_is_its_place_among_sorted_values_and_what_stands_for_nothing_is_a_gap() -> None:
    column, numbers, _ = fit(["small", "large ", "NA", None, "small"])
    assert column == Column("size", ("large", "small"), True)
    np.testing.assert_array_equal(numbers, [1, 0, np.nan, np.nan, 1])


def test_values_and_gaps_of_a_second_table_count_too() -> None:
    column, numbers, _ = fit_column("size", [(["s", "m"], HERE), (["l", ""], HERE)])
    assert column == Column("size", ("l", "m", "s"), True)
    np.testing.assert_array_equal(numbers[1], [0, np.nan])


def test_equal_numbers_are_one_value_however_they_are_written() -> None:
    column, numbers, _ = fit_column("code", [(np.array([3.0, 7.5, 10.0**15 + 1]), HERE), (["03", "7.50", "x"], HERE)])
    assert column.values == ("03", "1000000000000001", "7.50", "x")
    assert [each.tolist() for each in numbers] == [[0, 2, 1], [0, 2, 3]]
    assert column.encode(["3", "7.5", "x"]).tolist() == column.encode(["3.0", "07.5", "x"]).tolist() == [0, 2, 3]
    with pytest.raises(ValueError, match=r"code holds 9007199254740992\.0 in row 1 .*run together"):
        fit_column("code", [(np.array([2.0**53]), HERE), (["x"], HERE)])


def test_truth_is_a_text_like_any_other() -> None:
    column, numbers, _ = fit(np.array([True, False]))
    assert column.values == ("False", "True")
    assert numbers.tolist() == column.encode(["True", "False"]).tolist() == [1, 0]


def test_a_few_texts_among_numbers_make_a_column_text_and_are_told() -> None:
    column, _, odd = fit(["1", "2", "3", "soon", "4"])
    assert column.values == ("1", "2", "3", "4", "soon")
    assert odd == "column size is read as text, for it holds 'soon' in row 4 of cells.csv"


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (["2024-01-05", "2024-02-05"], "'2024-01-05' in row 1 of cells.csv, counted from 1; make numbers of dates"),
        (["5.1.2024", "6/1/2024"], "make numbers of dates"),
        (np.array(["2024-01-05"], "M8[D]"), "make numbers of dates"),
        ([None, datetime.date(2024, 1, 5)], r"row 2 .*make numbers of dates"),
        ([f"name {k}" for k in range(101)], "101 different texts; 100 are the most"),
        ([*map(str, range(200)), "many"], "'many' in row 201 .*all the others are numbers"),
        ([1, "one"], "1 in row 1 .*numbers or text were expected, alike in all rows"),
        (["a", ["b"]], r"\['b'\] in row 2 .*a number or a text"),
        (np.array([1, np.inf]), "inf in row 2 .*a finite number"),
        (np.array([np.nan, np.nan]), "no value in any row"),
    ],
)
def test_what_cannot_be_learned_from_is_refused_by_row_and_column(cells, words: str) -> None:
    with pytest.raises(ValueError, match=f"^column size .*{words}"):
        fit(cells)


@pytest.mark.parametrize(
    ("column", "cells", "words"),
    [
        (Column("eyes", ("blue", "grey")), ["blue", "red"], "eyes holds 'red' in row 1 .*known are blue, grey"),
        (Column("age"), ["1", "old"], "age holds 'old' in row 1 .*a number was expected"),
        (Column("age"), ["1", ""], "age holds no value in row 1 .*fill it in"),
    ],
)
def test_rows_that_are_not_as_those_learned_from_are_refused(column: Column, cells: list[str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        column.encode(cells)


def test_rows_come_as_frames_lists_or_numbers_to_the_same_end() -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    columns = [Column("age", (), True), Column("eyes", ("blue", "grey"))]
    expected = [[30, 1], [np.nan, 0]]
    table = {"eyes": ["grey", "blue"], "age": [30, None]}
    lines = [[30, "grey"], [None, "blue"]]
    for rows in (pandas.DataFrame(table), polars.DataFrame(table), lines, np.array(expected)):
        np.testing.assert_array_equal(encode_rows(rows, columns), expected)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (np.array([[1.0, 2.0]]), "eyes holds 2.0 in row 0 .*or as text: blue, grey"),
        (np.array([[np.nan, 1.0]]), "age holds no value in row 0"),
        (np.zeros((1, 3)), r"shape \(1, 3\), \[row, 2\] was expected"),
    ],
)
def test_encoded_rows_are_checked(rows, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        encode_rows(rows, [Column("age"), Column("eyes", ("blue", "grey"))])
