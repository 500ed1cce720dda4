"""Claims about pictures of clauses set by hand."""

import struct
import zlib

import numpy as np
import pytest

from laconic.tsetlin import Machine, Shape, build, load_include_bits
from laconic.tsetlin.picture import clause_picture, clause_text, enlarge, match_map, save_png, wanted_values

RED, BLUE, GREY, DARK, WHITE = [178, 24, 43], [33, 102, 172], [220] * 3, [90] * 3, [255] * 3


def one_clause(shape: Shape, literals: list[int]) -> Machine:
    """Clause (0, 0) includes the literals; a negated feature is literal ~feature."""
    machine = build(shape, 1, 2)
    bits = np.zeros((1, 2, shape.n_literals), np.bool_)
    bits[0, 0, [k if k >= 0 else shape.n_features + ~k for k in literals]] = True
    load_include_bits(machine, bits)
    return machine


def corner_clause() -> Machine:
    """2 × 2 patch: top left on, bottom right off; patch row > 0, patch column <= 1."""
    shape = Shape.image(4, 5, patch=(2, 2))
    return one_clause(shape, [0, ~3, shape.n_pixels, ~(shape.n_pixels + shape.n_rows - 1 + 1)])


def test_a_positive_pixel_is_red_a_negated_one_blue_and_an_open_one_grey():
    picture = clause_picture(corner_clause(), 0, 0, scale=1)
    assert picture.dtype == np.uint8
    assert picture[1:5, 1:5].tolist() == enlarge(np.array([[RED, GREY], [GREY, BLUE]]), 2).tolist()


def test_the_map_shows_where_the_patch_may_lie():
    covered = match_map(corner_clause(), 0, 0)
    expected = np.zeros((4, 5), bool)
    expected[1:4, 0:3] = True  # rows from 1, columns 0 and 1 and the one the patch reaches
    assert covered.tolist() == expected.tolist()
    place = clause_picture(corner_clause(), 0, 0, scale=1)[1:5, 6:11]
    assert place.tolist() == np.where(expected[..., None], DARK, GREY).tolist()


def test_panels_are_framed_by_white():
    picture = clause_picture(corner_clause(), 0, 0, scale=3)
    assert picture.shape == (3 * (4 + 2), 3 * (4 + 5 + 3), 3)
    assert (picture[:3] == WHITE).all()
    assert (picture[:, -3:] == WHITE).all()


def test_a_thermometer_field_shows_the_middle_of_its_interval_for_each_channel():
    shape = Shape.image(2, 1, 8, patch=(1, 1), levels=4)  # two channels of four levels
    values = wanted_values(one_clause(shape, [0, 1, ~6]), 0, 0)
    assert values.tolist() == [[[(2 + 4) / 8, (0 + 2) / 8]]]


def test_a_pixel_that_nothing_can_match_is_black():
    shape = Shape.image(3, 3, 4, patch=(1, 1), levels=4)
    assert clause_picture(one_clause(shape, [2, ~1]), 0, 0, scale=1)[1, 1].tolist() == [0, 0, 0]


def test_the_text_form_has_a_patch_panel_and_a_map_with_two_rows_a_line():
    assert clause_text(corner_clause(), 0, 0).splitlines() == [
        "┌────┐ ┌─────┐",
        "│██  │ │▄▄▄  │",
        "│  · │ │███  │",
        "└────┘ └─────┘",
    ]


def test_a_flat_clause_has_no_picture():
    with pytest.raises(ValueError, match="patch="):
        clause_picture(build(Shape.flat(4), 1, 2), 0, 0)


def test_a_saved_png_holds_the_pixels(tmp_path):
    picture = np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    save_png(picture, tmp_path / "picture.png")
    data, at, chunks = (tmp_path / "picture.png").read_bytes(), 8, {}
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert struct.unpack_from(">I", data, at + 8 + length) == (zlib.crc32(kind + body),)
        chunks[kind] = body
        at += length + 12
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">IIBBBBB", chunks[b"IHDR"]) == (7, 5, 8, 2, 0, 0, 0)
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(5, 1 + 7 * 3)
    assert (lines[:, 0] == 0).all()
    assert (lines[:, 1:].reshape(5, 7, 3) == picture).all()


def test_only_rgb_bytes_are_saved(tmp_path):
    with pytest.raises(ValueError, match="uint8"):
        save_png(np.zeros((2, 2, 3)), tmp_path / "picture.png")
