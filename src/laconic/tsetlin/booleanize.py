"""Numbers to the 0/1 features a Tsetlin Machine reads: scikit-learn transformers that can say what each bit means."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

_CHUNK_VALUES = 2**16  # keeps the temporaries of one chunk in a core's cache

# Windows 3 to 9 have OpenCV's own kernels, in 1/256: the left half and the middle.
_SMALL_KERNELS = {3: (64, 128), 5: (16, 64, 96), 7: (8, 28, 56, 72), 9: (4, 13, 30, 51, 60)}


@dataclass(frozen=True)
class Bit:
    """One Boolean feature, `feature > threshold`: str(bit) words it, `negated` words its negation."""

    feature: str
    threshold: float
    rivals: tuple[str, ...] = ()  # features that are false wherever this one is true
    gap: str = ""  # the one of these, if any, that says that there is no value: one that is above no threshold either

    def __str__(self) -> str:
        return f"{self.feature} > {_shortest(self.threshold)}"

    @property
    def below(self) -> str:
        """Its negation where there is a value."""
        return f"{self.feature} <= {_shortest(self.threshold)}"

    @property
    def negated(self) -> str:
        return f"({self.below} or missing)" if self.gap else self.below


class _Booleanizer(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """After fit, `names_` holds the columns' or channels' names and `thresholds_` the ascending thresholds of each."""

    names_: list[str]
    thresholds_: list[list[float]]

    def describe(self, names: Sequence[str] | None = None) -> list[Bit]:
        """One Bit per output column (tables) or layer (images); names are the columns' or the channels', in order."""
        check_is_fitted(self)
        names = self.names_ if names is None else list(names)
        if len(names) != len(self.names_) or len(set(names)) < len(names):
            raise ValueError(f"names are {names}; give {len(self.names_)} different ones, one per column or channel")
        if hasattr(self, "feature_names_in_") and names != self.names_:
            # scikit-learn's rule and words: names in another order would silently mislabel the bits
            raise ValueError(f"input_features is not equal to feature_names_in_, {self.names_}; leave it out")
        return [Bit(str(name), t) for name, levels in zip(names, self.thresholds_, strict=True) for t in levels]

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> NDArray[np.object_]:
        """The bits of `describe`, worded."""
        return np.array([str(bit) for bit in self.describe(input_features)], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # always uint8
        return tags

    def _set_names(self, x: NDArray[Any], thresholds: list[float]) -> Self:
        if x.ndim == 2:
            self.names_ = [f"x{i}" for i in range(x.shape[1])]
        elif x.ndim == 4 and x.shape[3] > 1:
            self.names_ = [f"channel {i}" for i in range(x.shape[3])]
        else:
            self.names_ = ["pixel"]
        self.thresholds_ = [thresholds] * len(self.names_)
        return self


class Threshold(_Booleanizer):
    """x > above, whatever the shape; no fit needed but for the names."""

    def __init__(self, above: float = 75) -> None:
        self.above = above

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Learns only the number of columns or channels."""
        _check_real("above", self.above)
        return self._set_names(_check_numbers(X), [float(self.above)])

    def transform(self, X: ArrayLike) -> NDArray[np.uint8]:
        """0/1 in the shape of X."""
        _check_real("above", self.above)
        return (_check_numbers(X) > self.above).view(np.uint8)


class AdaptiveGaussianThreshold(_Booleanizer):
    """A pixel against the Gaussian mean around it, as cv2.adaptiveThreshold does; no fit needed but for the names.

    1 where pixel - mean > -offset, both whole numbers (mean rounded half to even, offset up), edges repeated outwards.
    """

    def __init__(self, window: int = 11, offset: float = 2) -> None:
        self.window = window
        self.offset = offset

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Learns only the number of channels."""
        self._check_parameters()
        return self._set_names(_check_bytes(X), [float(-math.ceil(self.offset))])

    def transform(self, X: ArrayLike) -> NDArray[np.uint8]:
        """0/1 in the shape of X, 8-bit images [n, h, w] or [n, h, w, channels]."""
        self._check_parameters()
        x = _check_bytes(X)
        bits = np.empty(x.shape, np.uint8)
        for part in _chunks(x):
            # images last, so that one numpy call runs over many of them without a break
            pixels = np.ascontiguousarray(np.moveaxis(x[part], 0, -1), dtype=np.float32)
            above = pixels - np.rint(_gaussian_mean(pixels, self.window)) > -math.ceil(self.offset)
            bits[part] = np.moveaxis(above, -1, 0)
        return bits

    def describe(self, names: Sequence[str] | None = None) -> list[Bit]:
        """One Bit per channel."""
        of_mean = f"minus its {self.window}x{self.window} mean"
        return [Bit(f"{bit.feature} {of_mean}", bit.threshold) for bit in super().describe(names)]

    def _check_parameters(self) -> None:
        if not isinstance(self.window, Integral) or self.window < 3 or self.window % 2 == 0:
            raise ValueError(f"window is {self.window!r}; it needs a middle pixel: give an odd whole number from 3 up")
        _check_real("offset", self.offset)


class Thermometer(_Booleanizer):
    """Each channel against k * top / (levels + 1), k = 1..levels, to six digits; no fit needed but for the names."""

    def __init__(self, levels: int = 8, top: float = 255) -> None:
        self.levels = levels
        self.top = top

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Learns only the number of channels."""
        return self._set_names(_check_images(X), self.list_thresholds())

    def transform(self, X: ArrayLike) -> NDArray[np.uint8]:
        """Images [n, h, w] or [n, h, w, c] to 0/1 [n, h, w, c * levels]: channel by channel, levels ascending."""
        thresholds = np.array(self.list_thresholds())
        x = _check_images(X)
        bits = np.empty((*x.shape, self.levels), np.uint8)
        # one row of bits per byte value: a look-up beats `levels` comparisons
        table = (np.arange(256)[:, None] > thresholds).view(np.uint8)
        for part in _chunks(x):
            if x.dtype == np.uint8:
                np.take(table, x[part], axis=0, out=bits[part], mode="clip")  # "raise" would buffer the output
            else:
                np.greater(x[part][..., None], thresholds, out=bits[part].view(np.bool_))
        return bits.reshape(*x.shape[:3], -1)

    def list_thresholds(self) -> list[float]:
        _check_levels(self.levels)
        _check_real("top", self.top)
        if self.top <= 0:
            raise ValueError(f"top is {self.top}; give the largest pixel value, e.g. 255, or 1.0 for scaled images")
        # six digits, so that a rule prints the very threshold in use; for 8-bit images no bit changes up to 255 levels
        return [float(f"{k * self.top / (self.levels + 1):.6g}") for k in range(1, self.levels + 1)]


class QuantileThermometer(_Booleanizer):
    """Each column of a table against up to `levels` of its quantiles; a 0/1 column gets one bit, a constant one none.

    A threshold is the shortest decimal that parts two neighbouring training values, so rules print it whole.
    """

    def __init__(self, levels: int = 8) -> None:
        self.levels = levels

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Learns each column's thresholds from X [n, features]."""
        _check_levels(self.levels)
        x = validate_data(self, X, dtype=[np.float64, np.float32], ensure_min_samples=2)
        self.names_ = list(getattr(self, "feature_names_in_", [f"x{i}" for i in range(x.shape[1])]))
        self.thresholds_ = [_choose_thresholds(column, self.levels) for column in x.T]
        if not any(self.thresholds_):
            raise ValueError(f"each of the {x.shape[1]} columns of X is constant; give at least one that varies")
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.uint8]:
        """0/1 [n, bits]: column by column, thresholds ascending."""
        check_is_fitted(self)
        x = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        bits = [column[:, None] > np.array(levels) for column, levels in zip(x.T, self.thresholds_, strict=True)]
        return np.concatenate(bits, axis=1).view(np.uint8)


def choose_booleanizer(given: Any, rows: NDArray[Any], *, are_images: bool) -> Any:
    """An unfitted copy of the transformer given, or None for 0/1 data; "auto" decides by what the rows hold."""
    if not isinstance(given, str):
        return None if given is None else clone(given)
    if given != "auto":
        raise ValueError(f"booleanizer is {given!r}; give a transformer, None for 0/1 data, or 'auto'")
    if rows.dtype.kind in "bui" and rows.min() >= 0 and rows.max() <= 1:
        return None
    return Thermometer(top=float(rows.max())) if are_images else QuantileThermometer()


def _choose_thresholds(column: NDArray[np.floating[Any]], levels: int) -> list[float]:
    values = np.unique(column)
    below = values[:-1]
    if len(below) > levels:
        shares = np.arange(1, levels + 1) / (levels + 1)
        quantiles = np.quantile(column, shares, method="inverted_cdf")
        below = np.unique(np.minimum(quantiles, values[-2]))  # a column mostly at its maximum keeps a threshold
    above = values[np.searchsorted(values, below, side="right")]
    return [_shortest_between(float(a), float(b)) for a, b in zip(below, above, strict=True)]


def _shortest_between(low: float, high: float) -> float:
    """The middle of low <= t < high, to as few digits as stay inside."""
    middle = low / 2 + high / 2
    rounded = (float(f"{middle:.{n_digits}g}") for n_digits in range(1, 18))
    return next((t for t in rounded if low <= t < high), low)


def _shortest(number: float) -> str:
    return repr(float(number)).removesuffix(".0")


def _gaussian_mean(pixels: NDArray[np.float32], window: int) -> NDArray[np.float32]:
    """Mean around each pixel of [h, w, ...], in the very float32 operations of OpenCV 4.5 to 4.12 on CPUs with FMA.

    A plain float64 mean, next to a half, rounds the other way at some 4 pixels in a million.
    """
    height, width = pixels.shape[:2]
    # OpenCV does not blur along an axis of one pixel
    row_kernel, column_kernel = (gaussian_kernel(window if size > 1 else 1) for size in (width, height))
    product = np.empty(pixels.shape)  # float64 holds a float32 product whole: rounding only after the sum is an FMA

    mean = np.zeros_like(pixels)
    spread = pixels[:, _repeat_edges(width, len(row_kernel) // 2)]
    for i, weight in enumerate(row_kernel):
        np.multiply(spread[:, i : i + width], weight, out=product, dtype=np.float64)
        np.add(product, mean, out=mean, casting="same_kind")

    middle = len(column_kernel) // 2
    spread = mean[_repeat_edges(height, middle)]
    np.multiply(mean, column_kernel[middle], out=mean, casting="same_kind")
    for i in range(1, middle + 1):
        pair = spread[middle - i : middle - i + height] + spread[middle + i : middle + i + height]
        np.multiply(pair, column_kernel[middle + i], out=product, dtype=np.float64)
        np.add(product, mean, out=mean, casting="same_kind")
    return mean


def gaussian_kernel(window: int) -> NDArray[np.float64]:
    """OpenCV's kernel for a window with no sigma given: float32 weights, held as float64."""
    if window in _SMALL_KERNELS:
        half = np.array(_SMALL_KERNELS[window]) / 256
        return np.concatenate([half, half[-2::-1]])
    sigma = 0.3 * ((window - 1) * 0.5 - 1) + 0.8
    bell = np.exp(-0.5 * ((np.arange(window) - window // 2) / sigma) ** 2)
    weights: NDArray[np.float32] = (bell / bell.sum()).astype(np.float32)
    return weights.astype(np.float64)


def _repeat_edges(size: int, margin: int) -> NDArray[np.intp]:
    return np.clip(np.arange(-margin, size + margin), 0, size - 1)


def _chunks(x: NDArray[Any]) -> Iterator[slice]:
    step = max(1, _CHUNK_VALUES // math.prod(x.shape[1:]))
    return (slice(i, i + step) for i in range(0, len(x), step))


def _check_numbers(X: ArrayLike) -> NDArray[Any]:
    x = np.asarray(X)
    if x.dtype.kind not in "buif":
        raise ValueError(f"X is of dtype {x.dtype}; give Booleans, integers or floats")
    if x.size == 0:
        raise ValueError(f"X is empty, of shape {x.shape}; give at least one value")
    if x.dtype.kind == "f" and not np.isfinite(x).all():
        raise ValueError("X holds NaN or infinity; fill in or drop those values first")
    return x


def _check_images(X: ArrayLike) -> NDArray[Any]:
    x = _check_numbers(X)
    if x.ndim not in (3, 4):
        raise ValueError(f"X is of shape {x.shape}; give images [n, height, width] or [n, height, width, channels]")
    return x


def _check_bytes(X: ArrayLike) -> NDArray[Any]:
    x = _check_images(X)
    if x.dtype.kind not in "ui" or x.min() < 0 or x.max() > 255:
        raise ValueError(
            f"X is {x.dtype} from {x.min()} to {x.max()}; scale the images to whole numbers 0 to 255 (uint8)"
        )
    return x


def _check_levels(levels: object) -> None:
    if not isinstance(levels, Integral) or levels < 1:
        raise ValueError(f"levels is {levels!r}; give a whole number from 1 up")


def _check_real(name: str, number: object) -> None:
    if not isinstance(number, Real) or not math.isfinite(number):
        raise ValueError(f"{name} is {number!r}; give a finite number")
