"""Standard files of the usual image sets to arrays named x_train, y_train, x_test, y_test (and classes)."""

import io
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.data.files import MissingFiles, collect, walk
from laconic.data.reading import pick_test

Arrays = dict[str, NDArray[Any]]

_CIFAR10_BATCHES = tuple(f"data_batch_{i}.bin" for i in range(1, 6))
_TINY_SIDE = 32  # pixels; what the Tsetlin Machine papers scale Tiny ImageNet's 64 to


def read_digits(_home: Path) -> Arrays:
    """Scikit-learn's 8x8 digits, values 0 to 16; every fourth example of a digit is for the test."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    x, y = digits.images.astype(np.uint8), digits.target
    is_test = pick_test(y)
    return {"x_train": x[~is_test], "y_train": y[~is_test], "x_test": x[is_test], "y_test": y[is_test]}


def read_mnist(home: Path) -> Arrays:
    return _read_idx_set(home, "train", "t10k")


def read_emnist(home: Path, variant: str) -> Arrays:
    arrays = _read_idx_set(home, f"emnist-{variant}-train", f"emnist-{variant}-test")
    for key in ("x_train", "x_test"):
        arrays[key] = np.ascontiguousarray(arrays[key].swapaxes(1, 2))  # stored column by column
    if variant == "letters":  # counted from 1
        arrays |= {key: arrays[key].astype(np.int64) - 1 for key in ("y_train", "y_test")}
    return arrays


def _read_idx_set(home: Path, train: str, test: str) -> Arrays:
    names = {
        f"{axis}_{split}": f"{stem}-{kind}-ubyte"
        for split, stem in (("train", train), ("test", test))
        for axis, kind in (("x", "images-idx3"), ("y", "labels-idx1"))
    }
    found = collect(home, list(names.values()))
    return {key: read_idx(name, found[name]) for key, name in names.items()}


def read_idx(name: str, content: bytes) -> NDArray[np.uint8]:
    """The array of an IDX file of bytes, the format of MNIST."""
    if len(content) < 4 or content[:3] != b"\0\0\x08":
        raise ValueError(f"{name} starts with {content[:4].hex(' ')}; an IDX file of bytes starts with 00 00 08")
    n_axes = content[3]
    shape = tuple(int(n) for n in np.frombuffer(content[: 4 + 4 * n_axes], ">u4")[1:])
    values = np.frombuffer(content, np.uint8, offset=4 + 4 * n_axes)
    if values.size != np.prod(shape, dtype=np.int64):
        raise ValueError(f"{name} says {shape} but holds {values.size} values; it is cut short: get it again")
    return values.reshape(shape)


def read_cifar10(home: Path) -> Arrays:
    try:
        found = collect(home, [*_CIFAR10_BATCHES, "test_batch.bin"])
    except MissingFiles as error:
        raise _explain_pickles(home, error, "cifar-10-binary.tar.gz") from None
    train = [_read_cifar_records(name, found[name], 1) for name in _CIFAR10_BATCHES]
    x_train, y_train = (np.concatenate(parts) for parts in zip(*train, strict=True))
    x_test, y_test = _read_cifar_records("test_batch.bin", found["test_batch.bin"], 1)
    return {"x_train": x_train, "y_train": y_train, "x_test": x_test, "y_test": y_test}


def read_cifar100(home: Path) -> Arrays:
    try:
        found = collect(home, ["train.bin", "test.bin"], optional=["fine_label_names.txt"])
    except MissingFiles as error:
        raise _explain_pickles(home, error, "cifar-100-binary.tar.gz") from None
    arrays: Arrays = {}
    for split in ("train", "test"):
        arrays[f"x_{split}"], arrays[f"y_{split}"] = _read_cifar_records(f"{split}.bin", found[f"{split}.bin"], 2)
    if names := found.get("fine_label_names.txt", b"").decode().split():
        arrays["classes"] = np.array(names)
    return arrays


def _read_cifar_records(name: str, content: bytes, n_labels: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Records of label bytes (CIFAR-100: coarse, then fine) and 32x32 red, green and blue planes."""
    n_bytes = n_labels + 3 * 32 * 32
    if not content or len(content) % n_bytes:
        raise ValueError(f"{name} has {len(content)} bytes, no multiple of {n_bytes}; it is cut short: get it again")
    records = np.frombuffer(content, np.uint8).reshape(-1, n_bytes)
    planes = records[:, n_labels:].reshape(-1, 3, 32, 32)
    return np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), records[:, n_labels - 1]


def _explain_pickles(home: Path, error: MissingFiles, archive: str) -> MissingFiles:
    pickled = {"data_batch_1", "cifar-10-python.tar.gz", "cifar-100-python.tar.gz", "cifar-100-python"}
    if any(path.name in pickled for path in home.rglob("*")):
        return MissingFiles(
            f"{error}. What is there is the Python version, made of pickles, which can run any code when read: "
            f"take the binary version, {archive}"
        )
    return error


def read_svhn(home: Path) -> Arrays:
    from scipy.io import loadmat

    found = collect(home, ["train_32x32.mat", "test_32x32.mat"])
    arrays: Arrays = {}
    for split in ("train", "test"):
        content = loadmat(io.BytesIO(found[f"{split}_32x32.mat"]))  # type: ignore[arg-type]  # takes files too
        arrays[f"x_{split}"] = np.ascontiguousarray(np.moveaxis(content["X"], -1, 0))
        arrays[f"y_{split}"] = content["y"] % 10  # the digit 0 is stored as 10
    return arrays


def decode_jpeg(content: bytes) -> NDArray[np.uint8]:
    """uint8 [32, 32, 3], each pixel the mean of those it covers."""
    try:
        from PIL import Image  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise ValueError("Tiny ImageNet is made of JPEG files, which need Pillow:  pip install pillow") from None
    image = Image.open(io.BytesIO(content)).convert("RGB")
    return np.asarray(image.resize((_TINY_SIDE, _TINY_SIDE), Image.Resampling.BOX))


def read_tiny_imagenet(home: Path, decode: Callable[[bytes], NDArray[np.uint8]] = decode_jpeg) -> Arrays:
    """train/CLASS/images/*.JPEG, and for the test val/images/*.JPEG with val/val_annotations.txt."""
    images: dict[str, list[NDArray[np.uint8]]] = {"train": [], "val": []}
    labels: dict[str, list[str]] = {"train": [], "val": []}  # of val, file names until the annotations are read
    texts: dict[str, str] = {}
    for path, content in walk(home, _is_of_tiny_imagenet):
        if path.suffix == ".txt":
            texts[path.name] = content.decode()
        else:
            split = "train" if "train" in path.parts else "val"
            images[split].append(decode(content))
            labels[split].append(path.parts[-3] if split == "train" else path.name)
    if not images["train"] or not images["val"] or "val_annotations.txt" not in texts:
        raise MissingFiles(
            f"no train/*/images/*.JPEG, val/images/*.JPEG and val/val_annotations.txt (nor an archive with them) "
            f"under {home}"
        )
    class_of = dict(line.split("\t")[:2] for line in texts["val_annotations.txt"].splitlines())
    word_of = dict(line.split("\t")[:2] for line in texts.get("words.txt", "").splitlines())
    ids, y_train = np.unique(np.array(labels["train"]), return_inverse=True)
    number_of = {wordnet_id: number for number, wordnet_id in enumerate(ids.tolist())}
    y_test = [number_of.get(class_of.get(name, ""), -1) for name in labels["val"]]
    if -1 in y_test:
        stranger = labels["val"][y_test.index(-1)]
        raise ValueError(f"val_annotations.txt gives {stranger} the class {class_of.get(stranger)}, unknown to train/")
    return {
        "x_train": np.stack(images["train"]),
        "y_train": y_train,
        "x_test": np.stack(images["val"]),
        "y_test": np.array(y_test),
        "classes": np.array([word_of.get(wordnet_id, wordnet_id).split(",")[0] for wordnet_id in ids.tolist()]),
    }


def _is_of_tiny_imagenet(path: PurePosixPath) -> bool:
    if path.suffix == ".JPEG":
        return "train" in path.parts or "val" in path.parts
    return path.name in ("val_annotations.txt", "words.txt")
