"""Each source of data, on real files made here."""

import datetime
import decimal
import sys
from pathlib import Path

import numpy as np
import pytest

from clinics import write_clinics
from laconic.columns import Column
from laconic.data.memory import from_memory
from laconic.data.reading import Reading, pick_test
from laconic.data.sources import name_source, open_source

pandas = pytest.importorskip("pandas")
BY_CLINIC = Reading(label="finding", group="clinic")


@pytest.fixture(scope="module")
def csv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_clinics(tmp_path_factory.mktemp("tables") / "clinics.csv")


def same(one, other) -> bool:
    arrays = ("x_train", "y_train", "x_test", "y_test")
    return all(np.array_equal(getattr(one, key), getattr(other, key), equal_nan=True) for key in arrays) and (
        (one.classes, one.features, one.columns) == (other.classes, other.features, other.columns)
    )


def test_a_csv_has_owners_text_and_gaps(csv: Path) -> None:
    clinics = open_source(str(csv), BY_CLINIC)
    assert clinics.name == "clinics"
    assert clinics.classes == ("ill", "well")
    assert clinics.columns == (
        Column("age"),
        Column("dose", (), may_lack=True),
        Column("eyes", ("brown", "green", "grey"), may_lack=True),
    )
    in_train, in_test = clinics.groups["clinic"]
    assert {*in_train} == {"north", "south", "east", "tiny"}
    assert 0.2 < len(in_test) / len(in_train) < 0.35
    assert np.isnan(clinics.x_train[:, 1]).mean() == pytest.approx(0.1, abs=0.05)


def test_parquet_frames_and_npz_give_the_same_as_csv(csv: Path, tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    expected = open_source(str(csv), BY_CLINIC)
    frame = pandas.read_csv(csv, keep_default_na=False, na_values=["", "NA"])
    frame.to_parquet(tmp_path / "clinics.parquet")
    assert same(open_source(str(tmp_path / "clinics.parquet"), BY_CLINIC), expected)
    assert same(from_memory(frame, BY_CLINIC), expected)
    assert same(from_memory(polars.read_csv(csv, null_values=["", "NA"]), BY_CLINIC), expected)
    from laconic.data.datasets import to_arrays

    np.savez(tmp_path / "clinics.npz", **to_arrays(expected))
    assert same(open_source(str(tmp_path / "clinics.npz"), Reading(group="clinic")), expected)


def test_the_test_is_a_share_or_a_file_of_its_own(csv: Path, tmp_path: Path) -> None:
    half = open_source(str(csv), Reading(label="finding", group="clinic", test=0.5))
    assert abs(len(half.y_train) - len(half.y_test)) <= 4
    other = write_clinics(tmp_path / "later.csv", 50, seed=1)
    later = open_source(str(csv), Reading(label="finding", group="clinic", test=str(other)))
    assert (len(later.y_train), len(later.y_test)) == (401, 51)


def test_only_the_features_named_are_learned_from(csv: Path) -> None:
    chosen = open_source(str(csv), Reading(label="finding", group="clinic", features=("eyes",)))
    assert chosen.features == ("eyes",)
    assert chosen.x_train.shape[1] == 1


def test_a_table_of_plain_numbers_is_read_as_arrays_are(tmp_path: Path) -> None:
    (tmp_path / "plain.csv").write_text("a,b,y\n" + "".join(f"{k},{k % 3},{k % 2}\n" for k in range(20)))
    plain = open_source(str(tmp_path / "plain.csv"), Reading(label="y"))
    assert plain.columns == ()
    assert plain.booleanize == "quantile:4"
    (tmp_path / "bits.csv").write_text("a,b,y\n" + "".join(f"{k % 2},1,{k % 2}\n" for k in range(20)))
    assert open_source(str(tmp_path / "bits.csv"), Reading(label="y")).booleanize == "none"


@pytest.mark.parametrize(
    ("reading", "words"),
    [
        (Reading(), r"data\.label is empty; which column is to be predicted\? columns of clinics.csv are clinic, age"),
        (Reading(label="result"), r"data\.label: there is no column result"),
        (Reading(label="finding", group="ward"), r"data\.group: there is no column ward"),
        (Reading(label="finding", features=("size",)), r"data\.features: there is no column size"),
        (Reading(label="finding", group="finding"), "must be different columns"),
        (
            Reading(label="dose", group="clinic"),
            "dose holds .* in row 1 of clinics.csv, counted from 1; a name or a whole",
        ),
        (Reading(label="finding", size=3), r"data\.size is given, but .* knows only of data\.label"),
        (Reading(label="finding", test="no.csv"), "no.csv is not there"),
    ],
)
def test_what_does_not_fit_a_table_is_refused_in_its_words(csv: Path, reading: Reading, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        open_source(str(csv), reading)


ROWS = "".join(f"{k},{k % 5},{'no' if k % 3 else 'yes'}\n" for k in range(12))


def write(path: Path, text: str | bytes) -> str:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty; names of columns on top"),
        ("\n\n", "empty; names of columns on top"),
        ("a,b,y\n", "has no rows"),
        ("y\nyes\nno\n", "no column beside y to learn from; columns of odd.csv are y"),
        (f"a,b,y\n{ROWS}1,2,yes,4\n", "row 13 of odd.csv, counted from 1, has 4 cells, 3 were expected"),
        (f"y,a,b\n{ROWS}yes,1\n", "row 13 of odd.csv, counted from 1, has 2 cells, 3 were expected"),
        (f"b,y\n{ROWS}", "row 1 of odd.csv, counted from 1, has 3 cells, 2 were expected"),
        (f'a,b,y\n"p\nq",2,yes\n{ROWS}1,"x,z"\n', "row 14 of odd.csv, counted from 1, has 2 cells"),
        (f"a,a,y\n{ROWS}", "more than one column called a"),
        (f"a,b,y\n{ROWS}1,2,\n", "column y holds no value in row 13 of odd.csv"),
        ("a,b,y\n" + 9 * "1,2,\n", "column y holds no value in row 1 of odd.csv"),
        ("a,b,y\n" + 9 * "1,2,yes\n", "column y holds yes in every row; there is nothing to tell apart"),
        (f"a,b,y\n{ROWS}inf,2,yes\n", "column a holds inf in row 13 of odd.csv"),
        (f"a,b,y\n{ROWS}1e999,2,yes\n", "column a holds inf in row 13 of odd.csv"),
        ("a,b,y\n" + 6 * '"0,5",1,no\n"1,5",2,yes\n', "column a holds '0,5' in row 1 of odd.csv.*with a point"),
        ("a,b,y\n" + 6 * "12:00,1,no\n13:30,2,yes\n", "column a holds '12:00' in row 1 .*make numbers of dates"),
        (
            "a,b,y\n" + "".join(f"{k},1,{k}\n" for k in range(20)),
            "a share of 0.25 of each y leaves no row for the test",
        ),
        (f"a,größe,y\n{ROWS}".encode("latin-1"), "is not in UTF-8 .byte f6 in line 1.; save it anew"),
        (f"a,b,y\n{ROWS}".encode() + b"1,gr\xfcn,yes\n", "is not in UTF-8 .byte fc in line 14."),
        (f"a,b,y\n{ROWS}".encode("utf-16"), "is not in UTF-8"),
    ],
)
def test_a_file_that_is_no_good_table_is_refused_by_row_and_column(
    text: str | bytes, words: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=words):
        open_source(write(tmp_path / "odd.csv", text), Reading(label="y"))


@pytest.mark.parametrize(
    "text",
    [
        f"\ufeffa,b,y\n{ROWS}",
        f"a, b , y\n{ROWS}\n\n",
        f"a,b,y\n{ROWS}".replace(",", ";"),
        f"a,b,y\n{ROWS}".replace(",", "\t").replace("\n", "\r\n"),
        "a;b;y\n" + ROWS.replace(",", ",0;"),
        f"a,b,y\n{ROWS}".replace("yes", '" yes"'),
    ],
    ids=["mark", "spaces", "semicolons", "tabs", "decimal commas", "quotes"],
)
def test_files_of_spreadsheets_give_the_same(text: str, tmp_path: Path) -> None:
    expected = open_source(write(tmp_path / "plain.csv", f"a,b,y\n{ROWS}"), Reading(label="y"))
    assert same(open_source(write(tmp_path / "other.csv", text), Reading(label="y")), expected)


def test_a_column_without_a_name_is_left_out_and_told(tmp_path: Path) -> None:
    found = open_source(write(tmp_path / "saved.csv", f",b,y\n{ROWS}"), Reading(label="y"))
    assert found.features == ("b",)
    assert found.notes == ("columns without a name are left out of saved.csv, by their place: 1",)


def test_a_column_that_turns_to_text_late_is_text_from_the_start(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("laconic.data.cells.PIECE", 5)
    text = "a,b,y\n" + "".join(f"{k % 2}.50,{k},{k % 3}\n" for k in range(12)) + "soon,1,0\n,2,1\n"
    found = open_source(write(tmp_path / "late.csv", text), Reading(label="y"))
    assert found.columns[0] == Column("a", ("0.50", "1.50", "soon"), may_lack=True)
    assert found.notes == ("column a is read as text, for it holds 'soon' in row 13 of late.csv",)
    with pytest.raises(ValueError, match=r"column b holds inf in row 15 of late\.csv"):
        open_source(write(tmp_path / "late.csv", text + "0.50,inf,2\n"), Reading(label="y"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\tb\n950\tx\n1,200\ty\n12,500\tx\n7\ty\n", "column a holds '1,200'"),  # thousands, not decimals
        ("a,b\n31,x\n  ,y\n45,x\n52,y\n", ()),
        ("a,b\nDecile 1,x\nMarket 2,y\nDecile 1,x\nMarket 2,y\n", ("Decile 1", "Market 2")),
        ("a,b\nTRUE,x\nFALSE,y\nTRUE,x\nunknown,y\n", ("False", "True", "unknown")),
    ],
)
def test_cells_mean_what_people_mean_by_them(text: str, expected: str | tuple[str, ...], tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("laconic.data.cells.PIECE", 2)
    path = tmp_path / "table.csv"
    path.write_text(text, "utf-8")
    reading = Reading(label="b", test=0.5)
    if isinstance(expected, str):
        with pytest.raises(ValueError, match=expected):
            open_source(str(path), reading)
    else:
        found = open_source(str(path), reading).columns
        assert [column.values for column in found] == [expected]


def test_pieces_of_a_file_give_the_same_as_all_at_once(csv: Path, monkeypatch) -> None:
    expected = open_source(str(csv), BY_CLINIC)
    monkeypatch.setattr("laconic.data.cells.PIECE", 7)
    assert same(open_source(str(csv), BY_CLINIC), expected)


def test_a_test_file_has_the_same_columns_and_some_rows(csv: Path, tmp_path: Path) -> None:
    for text, words in {"clinic,finding,age\nnorth,ill,3\n": "has no column dose, eyes", "\n": "is empty"}.items():
        other = write(tmp_path / "later.csv", text)
        with pytest.raises(ValueError, match=words):
            open_source(str(csv), Reading(label="finding", group="clinic", test=other))


def test_other_kinds_of_files_are_told_what_is_taken(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"is of kind \.xlsx; \.csv, \.parquet, \.npz or a folder of images"):
        open_source(write(tmp_path / "table.xlsx", "x"), Reading(label="y"))
    with pytest.raises(ValueError, match="unknown data set 'nothing'"):
        open_source("nothing", Reading(label="y"))
    with pytest.raises(ValueError, match=r"data\.name is empty"):
        open_source("")


def test_numbers_of_one_file_are_the_text_of_another(tmp_path: Path) -> None:
    rows = "".join(f"{k},{code},{code}\n" for k, code in enumerate(["007", "1.50", "ward", "12"] * 4))
    train = write(tmp_path / "train.csv", f"a,code,y\n{rows}")
    test = write(tmp_path / "test.csv", "a,code,y\n1,7,12\n2,1.5,7\n3,012,12\n")
    found = open_source(train, Reading(label="y", test=test))
    assert found.columns[1].values == ("007", "1.50", "12", "ward")
    assert found.x_test[:, 1].tolist() == [0, 1, 2]
    assert [found.classes[label] for label in found.y_test] == ["12", "007", "12"]
    unclear = write(tmp_path / "unclear.csv", f"a,code,y\n{rows}1,07,12\n")
    with pytest.raises(ValueError, match=r"column code holds '7' in row 1 of test\.csv.*known are 007, 07, 1\.50"):
        open_source(unclear, Reading(label="y", test=test))
    unclear = write(tmp_path / "unclear.csv", f"a,code,y\n{rows}1,12,07\n")
    with pytest.raises(ValueError, match=r"column y holds '7' in row 2 of test\.csv.*elsewhere that is 007 or 07"):
        open_source(unclear, Reading(label="y", test=test))


LARGE = [2**53 + k for k in range(4)]  # as floats, two would be one


@pytest.mark.parametrize("offset", [0, 2**63, 2**64], ids=["64 bits", "unsigned", "more"])
def test_names_that_are_large_numbers_stay_apart(offset: int, tmp_path: Path) -> None:
    names = [offset + name for name in LARGE]
    text = "a,who,y\n" + "".join(f"{k},{names[k % 4]},{names[k % 2]}\n" for k in range(16))
    reading = Reading(label="y", group="who")
    for found in (
        open_source(write(tmp_path / "large.csv", text), reading),
        from_memory(pandas.DataFrame({"a": range(16), "who": names * 4, "y": names[:2] * 8}), reading),
    ):
        assert [int(name) for name in np.unique(found.groups["who"][0])] == names
        assert [int(name) for name in found.classes] == names[:2]


def test_names_that_came_as_large_floats_are_refused() -> None:
    frame = pandas.DataFrame({"a": range(16), "who": np.array(LARGE * 4, np.float64), "y": [0, 1] * 8})
    with pytest.raises(ValueError, match=r"column who holds 9007199254740992\.0 in row 0 .*run together as floats"):
        from_memory(frame, Reading(label="y", group="who"))


# ---------------------------------------------------------------- frames and parquet
@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ([None, *[datetime.datetime(2024, 1, 1)] * 11], "in row 2 of odd.parquet.*make numbers of dates"),
        ([datetime.time(1)] * 12, "make numbers of dates"),
        ([[1, 2]] * 12, "a number or a text was expected"),
        ([{"p": 1}] * 12, "a number or a text was expected"),
        ([b"x"] * 12, "numbers or text were expected, alike in all rows"),
        ([None] * 12, "has no value in any row"),
    ],
)
def test_cells_of_parquet_that_are_no_number_or_text_are_refused(cells, words: str, tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table({"a": range(12), "c": cells, "y": [0, 1] * 6}), tmp_path / "odd.parquet")
    with pytest.raises(ValueError, match=f"^column c .*{words}"):
        open_source(str(tmp_path / "odd.parquet"), Reading(label="y"))
    with pytest.raises(ValueError, match="cannot be read"):
        open_source(write(tmp_path / "junk.parquet", "PAR1"), Reading(label="y"))


def test_decimals_dictionaries_and_columns_called_by_numbers_are_taken(tmp_path: Path) -> None:
    frame = pandas.DataFrame({0: [decimal.Decimal(k) / 4 for k in range(12)], 1: ["u", "v"] * 6, "y": [0, 1] * 6})
    frame[1] = frame[1].astype("category")
    found = from_memory(frame, Reading(label="y"))
    assert found.columns == (Column("0"), Column("1", ("u", "v")))
    assert found.x_train[1, 0] == 0.25


def test_frames_with_names_twice_nested_or_not_yet_worked_out_are_refused() -> None:
    polars = pytest.importorskip("polars")
    table = {"a": range(12), "b": range(12), "y": [0, 1] * 6}
    twice = pandas.DataFrame(table).set_axis(["a", "a", "y"], axis=1)
    with pytest.raises(ValueError, match="more than one column called a"):
        from_memory(twice, Reading(label="y"))
    with pytest.raises(ValueError, match=r"LazyFrame came, not worked out yet; give what its collect"):
        from_memory(polars.LazyFrame(table), Reading(label="y"))
    with pytest.raises(ValueError, match=r"column b holds \[0.*one number or text was expected"):
        from_memory(polars.DataFrame(table).with_columns(b=polars.struct("a", "b")), Reading(label="y"))


def test_a_folder_called_as_a_known_set_does_not_stand_in_its_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "digits").mkdir()
    monkeypatch.chdir(tmp_path)
    assert open_source("digits").x_train.shape[1:] == (8, 8)
    with pytest.raises(ValueError, match="digits has no images"):
        open_source("./digits")


def test_labels_of_known_sets_and_npz_are_not_asked_for() -> None:
    with pytest.raises(ValueError, match=r"data\.label is given, but digits knows only of data\.group; leave it out"):
        open_source("digits", Reading(label="y"))


@pytest.mark.parametrize("share", [0.1, 0.25, 0.3, 0.5])
def test_a_share_of_each_group_is_picked(share: float) -> None:
    groups = np.repeat([0, 1, 2], [10, 100, 1])
    picked = pick_test(groups, share)
    assert picked[:10].sum() == round(10 * share - 0.01)
    assert picked[10:110].sum() == round(100 * share)
    assert not picked[110]


# ---------------------------------------------------------------- images
@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    for label in ("cat", "dog"):
        (tmp_path / "pets" / label).mkdir(parents=True)
        for k in range(8):
            pixels = rng.integers(0, 256, (12, 10, 3), np.uint8)
            image.fromarray(pixels).save(tmp_path / "pets" / label / f"{k}.{'png' if k % 2 else 'JPG'}")
    return tmp_path / "pets"


def test_a_folder_of_images_is_brought_to_one_size(pictures: Path) -> None:
    pets = open_source(str(pictures), Reading(size=6))
    assert pets.classes == ("cat", "dog")
    assert pets.x_train.shape == (12, 6, 6, 3)
    assert pets.x_test.shape == (4, 6, 6, 3)
    assert open_source(str(pictures)).x_train.shape == (12, 12, 10, 3)


def test_grey_images_have_no_colours_and_train_and_test_may_be_folders(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    for half, n_images in {"train": 3, "test": 2}.items():
        for label in ("no", "yes"):
            (tmp_path / half / label).mkdir(parents=True)
            for k in range(n_images):
                image.fromarray(np.full((4, 4), k, np.uint8)).save(tmp_path / half / label / f"{k}.png")
    found = open_source(str(tmp_path))
    assert found.x_train.shape == (6, 4, 4)
    assert found.x_test[:, 0, 0].tolist() == [0, 1, 0, 1]


def test_images_that_cannot_be_read_or_differ_are_named(pictures: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    image.fromarray(np.zeros((5, 5, 3), np.uint8)).save(pictures / "dog" / "odd.png")
    with pytest.raises(ValueError, match=r"odd\.png is of 5x5 pixels, not 10x12 as the first; .*data\.size"):
        open_source(str(pictures))
    (pictures / "dog" / "odd.png").write_text("no image")
    with pytest.raises(ValueError, match=r"odd\.png is no image that Pillow can read"):
        open_source(str(pictures))
    (pictures / "empty").mkdir()
    with pytest.raises(ValueError, match=r"has no images; files such as .*CLASS.*NAME\.png"):
        open_source(str(pictures / "empty"))


def test_photographs_stand_upright_and_16_bits_are_brought_to_8(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    for label in ("a", "b"):
        (tmp_path / label).mkdir()
        for k in range(4):
            image.fromarray(np.full((2, 3), 1000 * k, np.uint16)).save(tmp_path / label / f"{k}.png")
    assert {*open_source(str(tmp_path)).x_train.ravel()} == {0, 3, 7}
    lying = image.fromarray(np.zeros((3, 2), np.uint8))
    tags = lying.getexif()
    tags[0x0112] = 6
    lying.save(tmp_path / "a" / "0.jpg", exif=tags)
    assert open_source(str(tmp_path)).x_train.shape[1:] == (2, 3)


def test_hidden_files_are_passed_over_and_others_told(pictures: Path) -> None:
    (pictures / "dog" / "._1.png").write_text("a system's own")
    (pictures / ".trash").mkdir()
    (pictures / "dog" / "notes.txt").write_text("of a person")
    (note,) = open_source(str(pictures)).notes
    assert note.startswith("files left out, for only CLASS/NAME.png and .jpg are read: 1, first ")
    assert note.endswith("notes.txt")


def test_an_image_cut_short_behind_its_head_is_named(pictures: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(0).integers(0, 256, (12, 10, 3), np.uint8)
    image.fromarray(pixels).save(pictures / "dog" / "cut.png")
    whole = (pictures / "dog" / "cut.png").read_bytes()
    (pictures / "dog" / "cut.png").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"cut\.png is no image that Pillow can read"):
        open_source(str(pictures))


# ---------------------------------------------------------------- hubs
@pytest.fixture
def hub_table(csv: Path):
    datasets = pytest.importorskip("datasets")
    frame = pandas.read_csv(csv, keep_default_na=False, na_values=["", "NA"])
    found = datasets.Dataset.from_pandas(frame)
    return found.class_encode_column("finding")


def test_a_set_saved_by_hugging_face_is_read_with_names_of_its_labels(hub_table, csv: Path, tmp_path: Path) -> None:
    hub_table.save_to_disk(str(tmp_path / "clinics"))
    found = open_source(f"hf:{tmp_path / 'clinics'}", Reading(group="clinic"))
    assert same(found, open_source(str(csv), BY_CLINIC))


def test_splits_of_a_hub_are_train_and_test(hub_table) -> None:
    datasets = pytest.importorskip("datasets")
    both = datasets.DatasetDict(train=hub_table.select(range(300)), test=hub_table.select(range(300, 350)))
    found = from_memory(both, Reading(group="clinic"))
    assert (len(found.y_train), len(found.y_test)) == (300, 50)


def test_partitions_of_flwr_datasets_are_clients(hub_table, tmp_path: Path) -> None:
    partitioning = pytest.importorskip("flwr_datasets.partitioner")
    partitioner = partitioning.IidPartitioner(num_partitions=4)
    partitioner.dataset = hub_table.remove_columns("clinic")
    found = from_memory([partitioner.load_partition(k) for k in range(4)], Reading())
    assert [int((found.groups["client"][0] == k).sum()) for k in range(4)] == [76, 75, 75, 75]


def test_pictures_of_a_hub_become_arrays(pictures: Path) -> None:
    datasets = pytest.importorskip("datasets")
    files = sorted(map(str, pictures.rglob("*.png")))
    table = {"image": files, "label": [int("dog" in file) for file in files]}
    kinds = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=["cat", "dog"])})
    found = from_memory(datasets.Dataset.from_dict(table, features=kinds), Reading(size=5))
    assert found.x_train.shape[1:] == (5, 5, 3)
    assert found.classes == ("cat", "dog")


# ---------------------------------------------------------------- a function of one's own
def test_a_function_in_the_working_folder_gives_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "my_rows", raising=False)
    code = "import numpy as np\nrows = 3\nx = np.arange(40.0).reshape(20, 2)\n"
    code += "def read():\n    return x, x[:, 0] > 20, x[:, 0] % 4\n"
    (tmp_path / "my_rows.py").write_text(code)
    found = open_source("my_rows:read")
    assert found.name == "my_rows.read"
    assert {*found.groups} == {"client"}
    with pytest.raises(ValueError, match="my_rows has no raed; functions in it: read"):
        open_source("my_rows:raed")
    with pytest.raises(ValueError, match="rows is a int, a function was expected"):
        open_source("my_rows:rows")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("raise RuntimeError('no disk')", r"rubbish:read\(\) raised RuntimeError: no disk \(rubbish\.py, line 4\)"),
        ("return None", "data is a NoneType; give the name or path"),
        ("return [[1], [1, 2]], [0, 1]", "x is no array, its rows differ in length"),
        ("return x, np.array(['a', None] * 10, object)", "column y holds no value in row 1"),
        ("return x, y, np.where(y == 1, np.nan, 1)", "column client holds no value in row 1"),
        ("return x, np.eye(2)[y]", r"y is of shape \(20, 2\); one value for each row"),
        ("return x, y[:3]", "rows do not match: x has 20, y has 3"),
        ("return x * np.nan, y", "x_train holds NaN or infinity in 16 of 16 examples"),
        ("return {'x_train': x}", "has no y_train, x_test, y_test; there are x_train"),
    ],
)
def test_a_function_that_fails_or_gives_rubbish_is_told(body: str, words: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "rubbish", raising=False)
    code = "import numpy as np\nx, y = np.arange(40.0).reshape(20, 2), np.arange(20) % 2\n"
    (tmp_path / "rubbish.py").write_text(f"{code}def read():\n    {body}\n")
    with pytest.raises(ValueError, match=words):
        open_source("rubbish:read")


@pytest.mark.parametrize(
    ("name", "called"),
    [("digits", "digits"), ("some/clinics.csv", "clinics"), ("my.data:read", "my.data.read"), ("hf:a/b:c", "a.b.c")],
)
def test_a_source_has_a_short_name_that_any_system_takes(name: str, called: str) -> None:
    assert name_source(name) == called
