import gzip
import io
import pickle
import sys
import tarfile
import zipfile

import numpy as np
import pytest
from scipy.io import savemat

from laconic.data import load
from laconic.data.readers import read_tiny_imagenet

RNG = np.random.default_rng(1)


def idx(array):
    head = bytes([0, 0, 8, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape)
    return head + array.astype(np.uint8).tobytes()


def mnist_files(prefixes=("train", "t10k"), n_classes=10, first=0):
    """Content by file name, and the arrays within."""
    files, made = {}, {}
    for split, prefix, n in (("train", prefixes[0], 3 * n_classes), ("test", prefixes[1], n_classes)):
        made[f"x_{split}"] = RNG.integers(0, 256, (n, 28, 28), np.uint8)
        made[f"y_{split}"] = np.arange(n) % n_classes
        files[f"{prefix}-images-idx3-ubyte"] = idx(made[f"x_{split}"])
        files[f"{prefix}-labels-idx1-ubyte"] = idx(made[f"y_{split}"] + first)
    return files, made


def cifar_records(y, images):
    """y [n, labels], images [n, 32, 32, 3]."""
    return np.concatenate([y, images.transpose(0, 3, 1, 2).reshape(len(y), -1)], axis=1).astype(np.uint8).tobytes()


def write_tar(path, files):
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))


def write_files(folder, files):
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def assert_holds(dataset, made):
    for key, value in made.items():
        np.testing.assert_array_equal(getattr(dataset, key), value)


@pytest.mark.parametrize("name", ["mnist", "fashion_mnist"])
@pytest.mark.parametrize("is_packed", [True, False])
def test_idx_files_are_read_plain_and_gzipped(tmp_path, name, is_packed):
    files, made = mnist_files()
    packed = {f"raw/{key}.gz": gzip.compress(value) for key, value in files.items()}
    write_files(tmp_path / name, packed if is_packed else files)
    assert_holds(load(name, tmp_path), made)


@pytest.mark.parametrize(
    ("variant", "n_classes", "first"), [("letters", 26, 1), ("balanced", 47, 0), ("byclass", 62, 0)]
)
def test_emnist_is_read_from_its_zip_and_turned_upright(tmp_path, variant, n_classes, first):
    files, made = mnist_files((f"emnist-{variant}-train", f"emnist-{variant}-test"), n_classes, first)
    (tmp_path / "emnist").mkdir()
    with zipfile.ZipFile(tmp_path / "emnist" / "gzip.zip", "w") as archive:
        archive.writestr("gzip/", b"")
        for name, content in files.items():
            archive.writestr(f"gzip/{name}.gz", gzip.compress(content))
    dataset = load(f"emnist_{variant}", tmp_path)
    for key in ("x_train", "x_test"):
        np.testing.assert_array_equal(getattr(dataset, key), made.pop(key).transpose(0, 2, 1))
    assert_holds(dataset, made)
    assert len(set(dataset.classes)) == n_classes
    assert "".join(dataset.classes)[:11] == ("abcdefghijk" if variant == "letters" else "0123456789A"[:n_classes])
    assert dataset.booleanize == "threshold:40"


def cifar10_files():
    made = {"x_train": RNG.integers(0, 256, (50, 32, 32, 3), np.uint8), "y_train": np.arange(50) % 10}
    made |= {"x_test": RNG.integers(0, 256, (10, 32, 32, 3), np.uint8), "y_test": np.arange(10)[::-1]}
    files = {
        f"cifar-10-batches-bin/data_batch_{i + 1}.bin": cifar_records(
            made["y_train"][10 * i : 10 * i + 10, None], made["x_train"][10 * i : 10 * i + 10]
        )
        for i in range(5)
    }
    return files | {"cifar-10-batches-bin/test_batch.bin": cifar_records(made["y_test"][:, None], made["x_test"])}, made


@pytest.mark.parametrize("is_archive", [True, False])
def test_cifar10_is_read_from_batches_and_from_their_archive(tmp_path, is_archive):
    files, made = cifar10_files()
    if is_archive:
        write_tar(tmp_path / "cifar10" / "cifar-10-binary.tar.gz", files)
    else:
        write_files(tmp_path / "cifar10", files)
    dataset = load("cifar10", tmp_path)
    assert_holds(dataset, made)
    assert dataset.classes[3] == "cat"


def test_cifar100_takes_the_fine_labels_and_their_names(tmp_path):
    x = RNG.integers(0, 256, (100, 32, 32, 3), np.uint8)
    fine = np.arange(100)
    records = cifar_records(np.stack([fine // 5, fine], axis=1), x)
    names = "".join(f"thing_{i}\n" for i in range(100)).encode()
    files = {"train.bin": records, "test.bin": records, "fine_label_names.txt": names}
    write_tar(tmp_path / "cifar100" / "any.tar.gz", {f"cifar-100-binary/{key}": value for key, value in files.items()})
    dataset = load("cifar100", tmp_path)
    assert_holds(dataset, {"x_train": x, "y_train": fine, "x_test": x, "y_test": fine})
    assert dataset.classes[42] == "thing_42"


def test_pickled_cifar_is_never_opened_but_explained(tmp_path):
    class Bomb:
        def __reduce__(self):
            return pytest.fail, ("unpickled",)

    write_files(tmp_path / "cifar10", {"cifar-10-batches-py/data_batch_1": pickle.dumps(Bomb())})
    write_tar(tmp_path / "cifar100" / "cifar-100-python.tar.gz", {"cifar-100-python/train": pickle.dumps(Bomb())})
    for name, archive in (("cifar10", "cifar-10-binary.tar.gz"), ("cifar100", "cifar-100-binary.tar.gz")):
        with pytest.raises(ValueError, match=f"made of pickles, .*take the binary version, {archive}"):
            load(name, tmp_path)


def test_svhn_is_read_from_its_mat_files_with_ten_as_zero(tmp_path):
    (tmp_path / "svhn").mkdir()
    x = RNG.integers(0, 256, (10, 32, 32, 3), np.uint8)
    stored = np.arange(1, 11, dtype=np.uint8)[:, None]
    for split in ("train", "test"):
        savemat(tmp_path / "svhn" / f"{split}_32x32.mat", {"X": x.transpose(1, 2, 3, 0), "y": stored})
    dataset = load("svhn", tmp_path)
    assert_holds(dataset, {"x_train": x, "y_train": [1, 2, 3, 4, 5, 6, 7, 8, 9, 0], "x_test": x})


def tiny_imagenet_files(encode):
    grey_of = {"n01": 10, "n02": 200}
    files = {
        f"tiny-imagenet-200/train/{key}/images/{key}_{i}.JPEG": encode(value)
        for key, value in grey_of.items()
        for i in range(2)
    }
    files |= {
        "tiny-imagenet-200/val/images/val_0.JPEG": encode(200),
        "tiny-imagenet-200/val/images/val_1.JPEG": encode(10),
    }
    files["tiny-imagenet-200/test/images/test_0.JPEG"] = b"not looked at"
    files["tiny-imagenet-200/val/val_annotations.txt"] = b"val_0.JPEG\tn02\t0\t0\t9\t9\nval_1.JPEG\tn01\t0\t0\t9\t9\n"
    files["tiny-imagenet-200/words.txt"] = b"n01\tgoldfish, Carassius auratus\nn02\ttarantula\nn03\tnone of these\n"
    return files


@pytest.mark.parametrize("is_archive", [True, False])
def test_tiny_imagenet_takes_its_validation_images_for_the_test(tmp_path, is_archive):
    files = tiny_imagenet_files(lambda grey: bytes([grey]))
    if is_archive:
        with zipfile.ZipFile(tmp_path / "tiny-imagenet-200.zip", "w") as archive:
            for name, content in files.items():
                archive.writestr(name, content)
    else:
        write_files(tmp_path, files)
    arrays = read_tiny_imagenet(tmp_path, decode=lambda content: np.full((32, 32, 3), content[0], np.uint8))
    assert arrays["x_train"][:, 0, 0, 0].tolist() == [10, 10, 200, 200]
    assert arrays["y_train"].tolist() == [0, 0, 1, 1]
    assert arrays["x_test"][:, 0, 0, 0].tolist() == [200, 10]
    assert arrays["y_test"].tolist() == [1, 0]
    assert arrays["classes"].tolist() == ["goldfish", "tarantula"]


def test_tiny_imagenet_without_pillow_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    write_files(tmp_path / "tiny_imagenet", tiny_imagenet_files(lambda grey: bytes([grey])))
    with pytest.raises(ValueError, match="pip install pillow"):
        load("tiny_imagenet", tmp_path)


def test_tiny_imagenet_jpegs_are_halved_and_the_arrays_kept(tmp_path):
    image = pytest.importorskip("PIL.Image")

    def encode(grey):
        out = io.BytesIO()
        image.new("L", (64, 64), grey).save(out, "JPEG")
        return out.getvalue()

    write_files(tmp_path / "tiny_imagenet", tiny_imagenet_files(encode))
    first = load("tiny_imagenet", tmp_path)
    assert first.x_train.shape == (4, 32, 32, 3)
    np.testing.assert_allclose(first.x_test.mean(axis=(1, 2, 3)), [200, 10], atol=2)
    np.testing.assert_array_equal(first.x_train, np.load(tmp_path / "tiny_imagenet.npz")["x_train"])


def test_broken_files_are_named(tmp_path):
    files, _ = mnist_files()
    write_files(tmp_path / "mnist", files | {"train-images-idx3-ubyte": files["train-images-idx3-ubyte"][:-1]})
    with pytest.raises(ValueError, match=r"train-images-idx3-ubyte says \(30, 28, 28\) but holds 23519 values"):
        load("mnist", tmp_path)
    write_files(tmp_path / "mnist", {"train-images-idx3-ubyte": b"<html>"})
    with pytest.raises(ValueError, match="starts with 3c 68 74 6d; an IDX file of bytes starts with 00 00 08"):
        load("mnist", tmp_path)
    packed = gzip.compress(files["train-images-idx3-ubyte"])
    (tmp_path / "mnist" / "train-images-idx3-ubyte").unlink()
    write_files(tmp_path / "mnist", {"train-images-idx3-ubyte.gz": packed[: len(packed) // 2]})
    with pytest.raises(ValueError, match=r"train-images-idx3-ubyte\.gz is broken or cut short"):
        load("mnist", tmp_path)


def test_archive_cut_short_is_named(tmp_path):
    files, _ = cifar10_files()
    path = tmp_path / "cifar10" / "cifar-10-binary.tar.gz"
    write_tar(path, files)
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(ValueError, match=r"cifar-10-binary\.tar\.gz is broken or cut short"):
        load("cifar10", tmp_path)


def test_lacking_file_is_named(tmp_path):
    files, _ = mnist_files()
    del files["t10k-labels-idx1-ubyte"]
    write_files(tmp_path / "mnist", files)
    with pytest.raises(ValueError, match=r"no t10k-labels-idx1-ubyte \(nor"):
        load("mnist", tmp_path)
