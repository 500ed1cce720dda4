"""Images as arrays, all brought to one size: a folder of them, folder/class/*.png or .jpg, as a data set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from laconic.data.datasets import Dataset, from_arrays
from laconic.data.reading import Lacking, Reading, split

if TYPE_CHECKING:
    from PIL.Image import Image

ENDINGS = (".png", ".jpg", ".jpeg")
GREY = ("1", "L", "I", "F")  # how Pillow's modes without colour begin
ORIENTATION, LYING = 0x0112, range(5, 9)  # a tag of photographs, and where it means a quarter turn

Opener = Callable[[], "Image"]


def from_folder(folder: Path, reading: Reading) -> Dataset:
    """With train/ and test/ in it, or data.test naming a second folder, these are the halves; else a share is."""
    reading.refuse_others(str(folder), "test", "size")
    halves = [folder / "train", folder / "test"]
    if reading.test_file:
        halves = [folder, Path(reading.test_file).expanduser()]
    elif not all(half.is_dir() for half in halves):
        halves = [folder]
    files = [list_images(half) for half in halves]
    x = read_images({str(path): opener(path) for half in files for path in half}, reading.size)
    y = np.array([path.parent.name for half in files for path in half])
    n_first = len(files[0])
    arrays = {"x_train": x[:n_first], "y_train": y[:n_first], "x_test": x[n_first:], "y_test": y[n_first:]}
    if len(files) == 1:
        arrays = split({"x": x, "y": y}, ["y"], reading.share)
    return replace(from_arrays(folder.name, arrays), notes=tell_left_out(halves, {*chain(*files)}))


def list_images(folder: Path) -> list[Path]:
    """In an order that is the same everywhere."""
    homes = [home for home in list_seen(folder) if home.is_dir()] if folder.is_dir() else []
    found = [path for home in homes for path in list_seen(home) if path.suffix.lower() in ENDINGS]
    if not found:
        raise ValueError(
            f"{folder} has no images; files such as {folder / 'CLASS' / 'NAME.png'} (or .jpg) were expected"
        )
    return found


def list_seen(folder: Path) -> list[Path]:
    """Not what systems hide there."""
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def tell_left_out(folders: Sequence[Path], taken: Set[Path]) -> tuple[str, ...]:
    """Of files that are no images in the folder of a class."""
    left = [path for folder in folders for path in list_files(folder) if path not in taken]
    return (f"files left out, for only CLASS/NAME.png and .jpg are read: {len(left)}, first {left[0]}",) if left else ()


def list_files(folder: Path) -> Iterator[Path]:
    for path in list_seen(folder):
        yield from list_files(path) if path.is_dir() else [path]


def opener(path: Path) -> Opener:
    def open_image() -> Image:
        try:
            from PIL import Image
        except ImportError as error:
            raise Lacking("images", "images", error) from None
        return Image.open(path)

    return open_image


def read_images(openers: Mapping[str, Opener], size: int) -> NDArray[np.uint8]:
    """[image, row, column], with colours [..., 3] unless all are grey. openers: by what errors call an image."""
    sizes, is_grey = {}, True
    for name, open_image in openers.items():
        with naming(name), open_image() as image:
            sizes[name], is_grey = upright_size(image), is_grey and image.mode.startswith(GREY)
    wanted = (size, size) if size else next(iter(sizes.values()))
    for name, came in sizes.items():
        if not size and came != wanted:
            others = f"{wanted[0]}x{wanted[1]} as the first"
            raise ValueError(f"{name} is of {came[0]}x{came[1]} pixels, not {others}; bring all to one: data.size = 32")
    pixels = np.empty((len(openers), wanted[1], wanted[0], *([] if is_grey else [3])), np.uint8)
    for k, (name, open_image) in enumerate(openers.items()):
        with naming(name), open_image() as image:
            pixels[k] = fit_image(image, wanted, "L" if is_grey else "RGB")
    return pixels


@contextmanager
def naming(name: str) -> Iterator[None]:
    try:
        yield
    except Lacking:
        raise
    except Exception as error:  # of broken files Pillow raises a dozen kinds
        raise ValueError(f"{name} is no image that Pillow can read: {error}; remove or replace it") from error


def upright_size(image: Image) -> tuple[int, int]:
    """Cameras lie some photographs on their side and say so."""
    is_lying = image.getexif().get(ORIENTATION, 1) in LYING
    return (image.height, image.width) if is_lying else image.size


def fit_image(image: Image, wanted: tuple[int, int], mode: str) -> NDArray[np.uint8]:
    from PIL import ImageOps
    from PIL.Image import Resampling, fromarray

    image = ImageOps.exif_transpose(image)
    if image.mode.startswith("I;16") or (image.mode == "I" and np.asarray(image).max() > 255):
        # 16 bits, which Pillow would cut off at 255
        image = fromarray((np.asarray(image) // 257).astype(np.uint8))
    image = image.convert(mode)
    if image.size != wanted:
        # each pixel the mean of those it covers, as the sets with a name are scaled
        image = image.resize(wanted, Resampling.BOX if image.width >= wanted[0] else Resampling.BILINEAR)
    return np.asarray(image)
