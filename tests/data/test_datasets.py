import subprocess
import sys

import numpy as np
import pytest

from laconic.data import KNOWN, from_arrays, load
from laconic.data.datasets import draw_examples

RNG = np.random.default_rng(0)


def arrays(**changes):
    made = {
        "x_train": RNG.integers(0, 256, (6, 4, 4), np.uint8),
        "y_train": np.array([0, 1, 2, 0, 1, 2]),
        "x_test": RNG.integers(0, 256, (3, 4, 4), np.uint8),
        "y_test": np.array([2, 1, 0]),
    }
    return {key: value for key, value in {**made, **changes}.items() if value is not None}


def test_import_takes_nothing_of_ours_and_nothing_heavy_along():
    code = (
        "import sys, laconic.data\n"
        "known = ('laconic.data', 'laconic.files', 'laconic.columns')\n"
        "ours = [m for m in sys.modules if m.startswith('laconic.') and not m.startswith(known)]\n"
        "heavy = [m for m in ('scipy', 'sklearn', 'numba', 'PIL', 'urllib.request') if m in sys.modules]\n"
        "sys.exit(f'{ours} {heavy}' if ours or heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_digits_come_without_files_in_a_fixed_split(tmp_path):
    np.savez(tmp_path / "digits.npz", **arrays())  # a stranger of that name is not taken for them
    digits = load("digits", tmp_path)
    assert digits.x_train.shape == (1352, 8, 8)
    assert digits.x_test.shape == (445, 8, 8)
    assert (digits.x_train.dtype, digits.x_train.max()) == (np.uint8, 16)
    assert digits.classes == tuple("0123456789")
    assert digits.booleanize == "thermometer:4:16"
    shares = np.bincount(digits.y_test) / (np.bincount(digits.y_train) + np.bincount(digits.y_test))
    assert shares.min() > 0.23
    assert shares.max() <= 0.25
    assert digits.y_test[:6].tolist() == load("digits").y_test[:6].tolist()


def test_known_names_say_how_they_are_read():
    for name, known in KNOWN.items():
        assert known.title
        assert known.booleanize.split(":")[0] in ("threshold", "adaptive", "thermometer", "quantile")
        assert name == "digits" or (known.home and known.page and known.remotes)
        for remote in known.remotes:
            algorithm, checksum = remote.checksum.split(":")
            assert len(bytes.fromhex(checksum)) == {"md5": 16, "sha256": 32}[algorithm]


def test_npz_is_found_by_name_by_path_and_by_environment(tmp_path, monkeypatch):
    np.savez(tmp_path / "mine.npz", **arrays())
    monkeypatch.setenv("LACONIC_DATA", str(tmp_path))
    for found in (load("mine"), load("mine", tmp_path), load(str(tmp_path / "mine.npz"))):
        assert found.name == "mine"
        assert found.y_test.tolist() == [2, 1, 0]
        assert found.y_train.dtype == np.int64


@pytest.mark.parametrize(
    ("y_train", "y_test", "classes", "expected"),
    [
        ([[3], [7], [7], [3], [3], [3]], [[7], [3], [3]], None, ([0, 1, 1, 0, 0, 0], [1, 0, 0], ("3", "7"))),
        (["no", "go"] * 3, ["go", "go", "no"], None, ([1, 0, 1, 0, 1, 0], [0, 0, 1], ("go", "no"))),
        ([b"b", b"a", b"a", b"a", b"b", b"b"], [b"b", b"b", b"a"], None, ([1, 0, 0, 0, 1, 1], [1, 1, 0], ("a", "b"))),
        ([0.0, 2.0, 2.0, 0.0, 0.0, 0.0], [2.0, 0.0, 0.0], None, ([0, 1, 1, 0, 0, 0], [1, 0, 0], ("0", "2"))),
        ([0, 2, 2, 0, 0, 0], [2, 0, 0], ["cat", "dog", "cow"], ([0, 1, 1, 0, 0, 0], [1, 0, 0], ("cat", "cow"))),
        ([True, False] * 3, [True, True, False], ["no", "yes"], ([1, 0] * 3, [1, 1, 0], ("no", "yes"))),
    ],
)  # fmt: skip
def test_labels_of_any_kind_become_numbers_with_names(y_train, y_test, classes, expected):
    named = None if classes is None else np.array(classes)
    made = from_arrays("mine", arrays(y_train=np.array(y_train), y_test=np.array(y_test), class_names=named))
    assert (made.y_train.tolist(), made.y_test.tolist(), made.classes) == expected


def test_known_npz_without_names_gets_the_usual_ones():
    y_train = np.arange(10, dtype=np.uint8)
    x = RNG.integers(0, 256, (10, 28, 28), np.uint8)
    made = from_arrays("fashion_mnist", {"x_train": x, "y_train": y_train, "x_test": x, "y_test": y_train[:, None]})
    assert made.classes[8:] == ("bag", "ankle boot")
    assert made.booleanize == "adaptive:11:2"


@pytest.mark.parametrize(
    ("name", "x", "rule"),
    [
        ("cifar100_sub12k", np.full((6, 4, 4, 3), 200, np.uint8), "thermometer:8"),
        ("cifar10_bits", np.ones((6, 4, 4, 3), np.uint8), "none"),
        ("mine", np.ones((6, 9), bool), "none"),
        ("mine", np.full((6, 4, 4), 255, np.uint8), "thermometer:8"),
        ("mine", np.full((6, 4, 4), 5, np.uint8), "thermometer:5:5"),
        ("mine", np.full((6, 4, 4), 0.5), "thermometer:8:1"),
        ("mine", np.full((6, 4), -1.5), "quantile:4"),
        ("speechcommands9_mfcc", np.full((6, 13, 29), -9.5, np.float16), "quantile:4"),
        ("mnist_features", np.full((6, 20), 2.5), "quantile:4"),
    ],
)
def test_default_booleanization_follows_name_and_values(name, x, rule):
    assert from_arrays(name, arrays(x_train=x, x_test=x[:3])).booleanize == rule


def test_lists_will_do():
    made = from_arrays(
        "mine", {"x_train": [[0, 1], [1, 1]], "y_train": ["a", "b"], "x_test": [[1, 0]], "y_test": ["b"]}
    )
    assert (made.y_test.tolist(), made.booleanize) == ([1], "none")


def test_columns_beside_x_and_y_are_groups():
    speakers = np.array(["a", "b", "a", "b", "c", "c"])
    made = from_arrays("mine", arrays(speaker_train=speakers, speaker_test=speakers[:3]))
    assert [part.tolist() for part in made.groups["speaker"]] == [speakers.tolist(), ["a", "b", "a"]]


def test_name_at_column_tests_every_group_on_its_own(tmp_path):
    x = np.arange(48, dtype=np.float64)[:, None]
    speakers = np.repeat(["a", "b", "c"], 16)
    y = np.tile([0, 1, 1], 16)
    halves = {"x": x, "y": y, "speaker": speakers}
    parted = {f"{key}_train": value[:32] for key, value in halves.items()}
    parted |= {f"{key}_test": value[32:] for key, value in halves.items()}
    np.savez(tmp_path / "words.npz", **parted, classes=np.array(["no", "yes"]))
    assert set(load("words", tmp_path).groups["speaker"][1]) == {"c"}
    for name in ("words@speaker", f"{tmp_path}/words.npz@speaker"):
        made = load(name, tmp_path)
        assert made.name == "words@speaker"
        assert np.unique(made.groups["speaker"][1], return_counts=True)[1].tolist() == [4, 4, 4]
        assert sorted(np.concatenate([made.x_train, made.x_test]).ravel()) == sorted(x.ravel())
        assert made.y_train.tolist() == [y[int(i)] for i in made.x_train.ravel()]
        assert made.classes == ("no", "yes")
    with pytest.raises(ValueError, match="no column room; there are: label, speaker"):
        load("words@room", tmp_path)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"y_test": None, "x_test": None}, "mine has no x_test, y_test; there are x_train, y_train"),
        ({"y_train": np.arange(5)}, r"y_train is of shape \(5,\), x_train has 6 examples"),
        ({"y_train": np.zeros((6, 3))}, r"y_train is of shape \(6, 3\)"),
        ({"y_train": np.array([0.5] * 6)}, "y_train is not whole numbers"),
        ({"y_train": np.array([np.inf] * 6)}, "y_train is not whole numbers"),
        ({"y_train": np.array([0j] * 6)}, "y_train is of dtype complex128"),
        ({"y_test": np.array([0, 5, 9])}, "y_test holds labels that y_train does not: 5, 9"),
        ({"y_test": np.array(["0", "1", "2"])}, "one is text and one is numbers"),
        ({"classes": np.array(["a", "b"])}, "labels go from 0 to 2 but there are 2 classes"),
        ({"x_train": np.zeros((0, 4, 4))}, r"x_train is of shape \(0, 4, 4\); give at least one example"),
        ({"x_test": np.zeros((3, 5, 5))}, r"examples are \(4, 4\) in x_train and \(5, 5\) in x_test"),
        ({"x_train": np.array([[["a"] * 4] * 4] * 6)}, "x_train is of dtype <U1"),
        ({"x_train": np.where(np.arange(6) == 2, np.nan, 1.0)[:, None]}, "NaN or infinity in 1 of 6 examples"),
        ({"speaker_train": np.arange(6)}, "mine has no speaker_test, only the other half"),
        ({"speaker_train": np.arange(6), "speaker_test": np.arange(2)}, r"speaker_test is of shape \(2,\)"),
    ],
)
def test_bad_arrays_are_refused_by_name(changes, words):
    with pytest.raises(ValueError, match=words):
        from_arrays("mine", arrays(**changes))


def test_files_that_are_no_npz_are_refused(tmp_path):
    text, cut, objects = (tmp_path / f"{name}.npz" for name in ("text", "cut", "objects"))
    text.write_text("hello")
    with pytest.raises(ValueError, match=r"text\.npz is no \.npz, a zip"):
        load("text", tmp_path)
    np.savez(cut, **arrays())
    cut.write_bytes(cut.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"cut\.npz is no \.npz"):
        load("cut", tmp_path)
    np.savez(objects, **arrays(x_train=np.array([{}] * 6, dtype=object)))
    with pytest.raises(ValueError, match=r"objects\.npz cannot be read: .*no objects"):
        load(str(objects))
    with pytest.raises(ValueError, match=r"absent\.npz is not there; give the path of an \.npz with x_train"):
        load(str(tmp_path / "absent.npz"))


def test_damage_inside_an_npz_is_refused(tmp_path):
    path = tmp_path / "mine.npz"
    np.savez_compressed(path, **arrays())
    content = bytearray(path.read_bytes())
    content[60:90] = bytes(30)
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"mine\.npz cannot be read"):
        load("mine", tmp_path)


def test_missing_set_says_where_it_was_looked_for_and_how_to_get_it(tmp_path):
    with pytest.raises(ValueError, match="train-images-idx3-ubyte") as caught:
        load("mnist", tmp_path)
    for words in (f"mnist is not in {tmp_path}", "no mnist.npz", str(tmp_path / "mnist"), "data.download=true", "http"):
        assert words in str(caught.value)


def test_unknown_name_gets_suggestions(tmp_path):
    np.savez(tmp_path / "garden.npz", **arrays())
    with pytest.raises(ValueError, match=r"unknown data set 'fashion_mnits'. Closest: fashion_mnist"):
        load("fashion_mnits", tmp_path)
    with pytest.raises(ValueError, match="Closest: garden"):
        load("gardn", tmp_path)


def test_label_as_the_column_pools_the_set_and_tests_on_a_quarter_of_each_class() -> None:
    whole, parted = load("digits"), load("digits@label")
    counts = np.bincount(whole.y_train) + np.bincount(whole.y_test)
    assert np.bincount(parted.y_test).tolist() == (counts // 4).tolist()
    assert (np.bincount(parted.y_train) + np.bincount(parted.y_test)).tolist() == counts.tolist()
    assert parted.classes == whole.classes


def test_fewer_examples_are_the_same_ones_every_time_with_the_same_share_of_each_class() -> None:
    digits = load("digits")
    some = draw_examples(digits, 300)
    assert np.array_equal(some.x_train, draw_examples(digits, 300).x_train)
    assert 300 <= len(some.y_train) <= 310
    whole, drawn = np.bincount(digits.y_train), np.bincount(some.y_train)
    assert np.array_equal(drawn, np.ceil(whole * 300 / len(digits.y_train)))
    assert len(some.y_test) / len(digits.y_test) == pytest.approx(300 / len(digits.y_train), abs=0.02)
    assert "training" in some.notes[-1]


def test_owners_of_examples_stay_with_them_when_fewer_are_taken() -> None:
    x = np.arange(40).reshape(-1, 1)
    y, owner = x.ravel() % 2, np.array([f"who{number}" for number in range(40)])
    arrays = {"x_train": x, "y_train": y, "x_test": x, "y_test": y, "who_train": owner, "who_test": owner}
    some = draw_examples(from_arrays("named", arrays), 10)
    assert [f"who{number}" for number in some.x_train.ravel()] == some.groups["who"][0].tolist()
    assert np.array_equal(some.y_train, some.x_train.ravel() % 2)


@pytest.mark.parametrize("n_train", [0, 1352, 10**6])
def test_all_examples_are_taken_unless_fewer_are_asked_for(n_train: int) -> None:
    digits = load("digits")
    assert draw_examples(digits, n_train) is digits
