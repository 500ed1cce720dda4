"""The data sets with a name: what each is, how it is read, where it comes from. Nothing is loaded here."""

import difflib
import os
import string
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from laconic.data import readers, speech
from laconic.data.files import Progress, Remote, fetch

ARRAYS = ("x_train", "y_train", "x_test", "y_test")  # what every .npz of a data set holds
EMBEDDED = ("digits",)  # in scikit-learn: the same everywhere, whatever lies in the data folder


@dataclass(frozen=True)
class Known:
    """A data set with a name: what it is, how it is read, where it comes from."""

    title: str
    booleanize: str
    read: Callable[[Path], readers.Arrays]
    home: str = ""  # folder of its raw files within the data folder; "" = comes with scikit-learn
    page: str = ""  # where people get it
    remotes: tuple[Remote, ...] = ()
    classes: tuple[str, ...] = ()  # names of the labels 0, 1, ... where the files do not say
    is_slow: bool = False  # reading takes minutes, so the arrays are kept as NAME.npz


def _mnist_remotes(base: str, *checksums: str) -> tuple[Remote, ...]:
    names = [f"{s}-{kind}-ubyte.gz" for s in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")]
    return tuple(Remote(base + name, f"md5:{checksum}") for name, checksum in zip(names, checksums, strict=True))


def _emnist(variant: str, title: str, classes: str) -> Known:
    return Known(
        title=f"EMNIST {variant}: {title}, 28x28 grey",
        booleanize="threshold:40",
        read=partial(readers.read_emnist, variant=variant),
        home="emnist",
        page="https://www.nist.gov/itl/products-and-services/emnist-dataset",
        remotes=(
            Remote("https://biometrics.nist.gov/cs_links/EMNIST/gzip.zip", "md5:58c8d27c78d21e728a6bc7b3cc06412e"),
        ),
        classes=tuple(classes),
    )


_CIFAR_PAGE = "https://www.cs.toronto.edu/~kriz/cifar.html"
_CIFAR = "https://www.cs.toronto.edu/~kriz/"
_SVHN = "http://ufldl.stanford.edu/housenumbers/"

KNOWN: dict[str, Known] = {
    "digits": Known("Digits: 1,352 + 445 of 10 digits, 8x8 grey 0..16", "thermometer:4:16", readers.read_digits),
    "mnist": Known(
        title="MNIST: 60,000 + 10,000 of 10 digits, 28x28 grey",
        booleanize="threshold:75",
        read=readers.read_mnist,
        home="mnist",
        page="http://yann.lecun.com/exdb/mnist/",
        remotes=_mnist_remotes(
            "https://ossci-datasets.s3.amazonaws.com/mnist/",
            "f68b3c2dcbeaaa9fbdd348bbdeb94873",
            "d53e105ee54ea40749a09fcbcd1e9432",
            "9fb629c4189551a2d022fa330f9573f3",
            "ec29112dd5afa0611ce80d1b7f02629c",
        ),
    ),
    "fashion_mnist": Known(
        title="Fashion-MNIST: 60,000 + 10,000 of 10 kinds of clothes, 28x28 grey",
        booleanize="adaptive:11:2",
        read=readers.read_mnist,
        home="fashion_mnist",
        page="https://github.com/zalandoresearch/fashion-mnist",
        remotes=_mnist_remotes(
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
            "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
            "25c81989df183df01b3e8a0aad5dffbe",
            "bef4ecab320f06d8554ea6380940ec79",
            "bb300cfdad3c16e7a12a480ee83cd310",
        ),
        classes=(
            *("T-shirt", "trousers", "pullover", "dress", "coat"),
            *("sandal", "shirt", "sneaker", "bag", "ankle boot"),
        ),
    ),
    "emnist_letters": _emnist("letters", "124,800 + 20,800 of 26 letters", string.ascii_lowercase),
    "emnist_balanced": _emnist(
        "balanced", "112,800 + 18,800 of 47 digits and letters", string.digits + string.ascii_uppercase + "abdefghnqrt"
    ),
    "emnist_byclass": _emnist(
        "byclass",
        "697,932 + 116,323 of 62 digits and letters",
        string.digits + string.ascii_uppercase + string.ascii_lowercase,
    ),
    "emnist_digits": _emnist("digits", "240,000 + 40,000 of 10 digits", string.digits),
    "cifar10": Known(
        title="CIFAR-10: 50,000 + 10,000 of 10 things, 32x32 colour",
        booleanize="thermometer:8",
        read=readers.read_cifar10,
        home="cifar10",
        page=_CIFAR_PAGE,
        remotes=(Remote(f"{_CIFAR}cifar-10-binary.tar.gz", "md5:c32a1d4ab5d03f1284b67883e8d87530"),),
        classes=("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
    ),
    "cifar100": Known(
        title="CIFAR-100: 50,000 + 10,000 of 100 things, 32x32 colour",
        booleanize="thermometer:8",
        read=readers.read_cifar100,
        home="cifar100",
        page=_CIFAR_PAGE,
        remotes=(Remote(f"{_CIFAR}cifar-100-binary.tar.gz", "md5:03b5dce01913d631647c71ecec9e9cb8"),),
    ),
    "svhn": Known(
        title="SVHN: 73,257 + 26,032 of 10 digits on houses, 32x32 colour",
        booleanize="adaptive:11:2",
        read=readers.read_svhn,
        home="svhn",
        page=_SVHN,
        remotes=(
            Remote(f"{_SVHN}train_32x32.mat", "md5:e26dedcc434d2e4c54c9b2d4a06d8373"),
            Remote(f"{_SVHN}test_32x32.mat", "md5:eb5a983be6a315427106f1b164d9cef3"),
        ),
    ),
    "tiny_imagenet": Known(
        title="Tiny ImageNet: 100,000 + 10,000 of 200 things, scaled to 32x32 colour (needs Pillow)",
        booleanize="thermometer:8",
        read=readers.read_tiny_imagenet,
        home="tiny_imagenet",
        page="http://cs231n.stanford.edu/tiny-imagenet-200.zip",
        remotes=(Remote("http://cs231n.stanford.edu/tiny-imagenet-200.zip", "md5:90528d7ca1a48142e341f4ef8d21d0de"),),
        is_slow=True,
    ),
    "speechcommands": Known(
        title="Speech Commands 2: 94,824 + 11,005 of 35 words by 2,618 speakers, MFCC 13x29",
        booleanize="quantile:4",
        read=speech.read_speech_commands,
        home="speechcommands",
        page="https://arxiv.org/abs/1804.03209",
        remotes=(
            Remote(
                "https://storage.googleapis.com/download.tensorflow.org/data/speech_commands_v0.02.tar.gz",
                "sha256:af14739ee7dc311471de98f5f9d2c9191b18aedfe957f4a6ff791c709868ff58",
            ),
        ),
        is_slow=True,
    ),
}


def data_folder(folder: Path | None = None) -> Path:
    """The folder given, else $LACONIC_DATA, else ~/.cache/laconic."""
    return Path(folder or os.environ.get("LACONIC_DATA") or "~/.cache/laconic").expanduser()


def find(name: str, folder: Path) -> Known:
    """The entry of KNOWN; the error for a stranger counts the .npz files in the folder as names too."""
    if name in KNOWN:
        return KNOWN[name]
    names = sorted({*KNOWN, *(path.stem for path in folder.glob("*.npz"))})
    closest = difflib.get_close_matches(name, names, n=3)
    hint = f"Closest: {', '.join(closest)}. " if closest else ""
    raise ValueError(
        f"unknown data set {name!r}. {hint}All: {', '.join(names)}; or give the path of an .npz, or put {name}.npz "
        f"with {', '.join(ARRAYS)} into {folder}"
    )


def download(name: str, folder: Path | None = None, progress: Progress | None = None) -> list[Path]:
    """Fetches the files of a name of KNOWN to where `load` looks for them; those already there whole stay."""
    folder = data_folder(folder)
    known = find(name, folder)
    return [fetch(remote, folder / known.home, progress) for remote in known.remotes]
