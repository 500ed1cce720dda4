"""Booleanizers: equal to their definitions (and to OpenCV), nested, and able to say what each bit means."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

from laconic.tsetlin.booleanize import AdaptiveGaussianThreshold, Bit, QuantileThermometer, Thermometer, Threshold

# Made by opencv-python-headless 4.12.0 on a CPU with FMA, bit = cv2.adaptiveThreshold(image, 1,
# cv2.ADAPTIVE_THRESH_GAUSSIAN_C, cv2.THRESH_BINARY, window, offset), packed as [window, offset, image, row, column].
# Images: 8 of Fashion-MNIST's test set, 4 on which rounding a float64 mean goes wrong (at offset 2, two for window 11
# and two for 21), 2 random ones, 2 gradients, a chequerboard; and 3 random ones whose width is no multiple of 4.
OPENCV = np.load(Path(__file__).parents[1] / "golden" / "adaptive_threshold.npz")

IMAGE_BOOLEANIZERS = [Threshold(), AdaptiveGaussianThreshold(), Thermometer()]
byte_images = hnp.arrays(np.uint8, hnp.array_shapes(min_dims=3, max_dims=4, max_side=6))
finite = st.floats(-1e6, 1e6, allow_subnormal=False)
tables = hnp.arrays(np.float64, st.tuples(st.integers(2, 30), st.integers(1, 3)), elements=finite)


@pytest.mark.parametrize("size", ["28x28", "13x29"])
def test_adaptive_threshold_equals_opencv_on_every_pixel(size):
    images, windows, offsets = OPENCV[f"images_{size}"], OPENCV["windows"], OPENCV["offsets"]
    shape = len(windows), len(offsets), *images.shape
    expected = np.unpackbits(OPENCV[f"bits_{size}"], count=np.prod(shape)).reshape(shape)
    for i, window in enumerate(windows):
        for j, offset in enumerate(offsets):
            bits = AdaptiveGaussianThreshold(window, offset).transform(images)
            np.testing.assert_array_equal(bits, expected[i, j], err_msg=f"window {window}, offset {offset}")


@given(byte_images, st.sampled_from([11, 21, 31]), st.floats(-300, 300))
def test_adaptive_threshold_from_window_11_is_a_bell_curve_mean(images, window, offset):
    bits = AdaptiveGaussianThreshold(window, offset).transform(images)
    sigma = 0.3 * ((window - 1) / 2 - 1) + 0.8
    steps = np.arange(window) - window // 2
    kernel = np.exp(-((steps / sigma) ** 2) / 2)
    mean = images.astype(float)
    for axis in (1, 2):
        near = np.clip(np.arange(images.shape[axis])[:, None] + steps, 0, images.shape[axis] - 1)
        mean = np.moveaxis(np.moveaxis(mean, axis, -1)[..., near] @ (kernel / kernel.sum()), -1, axis)
    surplus = images - mean + np.ceil(offset)  # the mean is then rounded: by half at most, and float32 error
    assert bits[surplus > 0.501].all()
    assert not bits[surplus < -0.501].any()


def test_adaptive_threshold_treats_channels_apart():
    images = np.random.default_rng(0).integers(0, 256, (5, 9, 10, 3), dtype=np.uint8)
    bits = AdaptiveGaussianThreshold().transform(images)
    for channel in range(3):
        np.testing.assert_array_equal(bits[..., channel], AdaptiveGaussianThreshold().transform(images[..., channel]))


@pytest.mark.parametrize("booleanizer", IMAGE_BOOLEANIZERS)
def test_an_image_is_booleanized_alike_alone_and_in_a_large_stack(booleanizer):
    images = np.random.default_rng(1).integers(0, 256, (200, 28, 28), dtype=np.uint8)
    together = booleanizer.transform(images)
    for i in (0, 83, 84, 199):
        np.testing.assert_array_equal(together[i], booleanizer.transform(images[i : i + 1])[0])


@given(hnp.arrays(np.uint8, hnp.array_shapes(max_dims=5)), st.integers(-5, 260))
def test_threshold_is_above_in_any_shape(values, above):
    bits = Threshold(above).transform(values)
    assert bits.dtype == np.uint8
    np.testing.assert_array_equal(bits, values.astype(int) > above)


@given(byte_images, st.integers(1, 20))
def test_thermometer_levels_nest_and_count_the_thresholds_below(images, levels):
    bits = Thermometer(levels).transform(images)
    assert bits.dtype == np.uint8
    per_channel = bits.reshape(*images.shape, levels).astype(int)
    assert (np.diff(per_channel) <= 0).all()
    # x > k * 255 / (levels + 1), in whole numbers
    expected = images[..., None].astype(int) * (levels + 1) > 255 * np.arange(1, levels + 1)
    np.testing.assert_array_equal(per_channel, expected)


@pytest.mark.parametrize("levels", [1, 7, 8, 100, 254, 255])
def test_six_digit_thresholds_change_no_bit_of_any_byte(levels):
    every_byte = np.arange(256, dtype=np.uint8).reshape(1, 16, 16)
    exact = np.arange(256)[:, None] * (levels + 1) > 255 * np.arange(1, levels + 1)
    np.testing.assert_array_equal(Thermometer(levels).transform(every_byte).reshape(256, levels), exact)


@given(byte_images, st.sampled_from([np.int64, np.uint16, np.float32, np.float64]))
def test_thermometer_gives_the_same_bits_for_every_dtype(images, dtype):
    np.testing.assert_array_equal(Thermometer().transform(images.astype(dtype)), Thermometer().transform(images))


def test_thermometer_reads_scaled_images_by_their_top():
    scaled = np.array([[[0.2, 0.3, 0.6, 0.8]]])
    expected = [[[[0, 0, 0], [1, 0, 0], [1, 1, 0], [1, 1, 1]]]]
    np.testing.assert_array_equal(Thermometer(levels=3, top=1.0).transform(scaled), expected)


def test_quantile_thermometer_passes_scikit_learns_checks():
    check_estimator(QuantileThermometer(), on_skip=None)


@given(tables, st.integers(1, 9))
def test_quantile_bits_nest_and_say_what_they_do(table, levels):
    booleanizer = QuantileThermometer(levels)
    if (table == table[0]).all():
        with pytest.raises(ValueError, match="constant"):
            booleanizer.fit(table)
        return
    bits = booleanizer.fit(table).transform(table)
    described = booleanizer.describe()
    assert bits.shape == (len(table), len(described))
    for i, bit in enumerate(described):
        np.testing.assert_array_equal(bits[:, i], table[:, int(bit.feature[1:])] > bit.threshold)
        assert float(str(bit).split(" > ")[1]) == bit.threshold
        assert 0 < bits[:, i].sum() < len(table)
        if i and bit.feature == described[i - 1].feature:
            assert bit.threshold > described[i - 1].threshold
            assert (bits[:, i] <= bits[:, i - 1]).all()


@given(tables, st.integers(1, 9))
def test_quantile_thresholds_are_at_most_levels_and_part_all_values_if_few(table, levels):
    table = np.column_stack([table, np.arange(len(table))])  # a column that varies, so that fit has something to do
    for column, thresholds in zip(table.T, QuantileThermometer(levels).fit(table).thresholds_, strict=True):
        n_gaps = len(np.unique(column)) - 1
        assert len(thresholds) <= levels
        if n_gaps <= levels:
            assert len(thresholds) == n_gaps


def test_quantile_thresholds_part_distinct_values_evenly():
    column = np.random.default_rng(2).permutation(np.arange(900.0))[:, None]
    bits = QuantileThermometer(levels=8).fit_transform(column)
    np.testing.assert_array_equal(bits.sum(0), [800, 700, 600, 500, 400, 300, 200, 100])


def test_a_boolean_column_gets_one_bit_and_a_constant_one_none():
    table = np.array([[0, 7, 1.5], [1, 7, 2.5], [1, 7, 9.0]])
    booleanizer = QuantileThermometer().fit(table)
    assert booleanizer.describe(["smokes", "site", "dose"]) == [Bit("smokes", 0.5), Bit("dose", 2.0), Bit("dose", 6.0)]
    np.testing.assert_array_equal(booleanizer.transform(table), [[0, 0, 0], [1, 1, 0], [1, 1, 1]])


def test_a_column_mostly_at_its_maximum_or_minimum_keeps_a_threshold():
    mostly_at_maximum = np.array([-2.0, -1.0] + [0.0] * 20)
    table = np.column_stack([mostly_at_maximum, -mostly_at_maximum])
    assert QuantileThermometer(levels=1).fit(table).describe() == [Bit("x0", -0.5), Bit("x1", 0.5)]


def test_neighbouring_floats_are_parted():
    low = 0.1
    column = np.array([[low], [np.nextafter(low, 1)]])
    np.testing.assert_array_equal(QuantileThermometer().fit_transform(column), [[0], [1]])


def test_a_bit_words_itself_and_its_negation():
    bit = Bit("petal length", 2.45)
    assert (str(bit), bit.negated) == ("petal length > 2.45", "petal length <= 2.45")
    assert str(Bit("pixel", 85.0)) == "pixel > 85"


@pytest.mark.parametrize(
    ("booleanizer", "shape", "names", "expected"),
    [
        (Threshold(75), (2, 4, 4), None, ["pixel > 75"]),
        (Threshold(0.5), (2, 3), None, ["x0 > 0.5", "x1 > 0.5", "x2 > 0.5"]),
        (Threshold(75), (2, 4, 4, 2), ["left", "right"], ["left > 75", "right > 75"]),
        (AdaptiveGaussianThreshold(), (2, 4, 4), None, ["pixel minus its 11x11 mean > -2"]),
        (AdaptiveGaussianThreshold(5, -0.5), (2, 4, 4, 1), ["ink"], ["ink minus its 5x5 mean > 0"]),
        (Thermometer(2), (2, 4, 4), None, ["pixel > 85", "pixel > 170"]),
        (Thermometer(1), (2, 4, 4, 2), None, ["channel 0 > 127.5", "channel 1 > 127.5"]),
        (Thermometer(2), (2, 4, 4, 2), ["red", "blue"], ["red > 85", "red > 170", "blue > 85", "blue > 170"]),
    ],
)
def test_each_layer_is_worded_in_the_users_names(booleanizer, shape, names, expected):
    x = np.zeros(shape, np.uint8)
    assert list(booleanizer.fit(x).get_feature_names_out(names)) == expected
    assert [str(bit) for bit in booleanizer.describe(names)] == expected


@pytest.mark.parametrize("booleanizer", IMAGE_BOOLEANIZERS)
def test_image_booleanizers_work_cloned_in_a_pipeline(booleanizer):
    images = np.random.default_rng(3).integers(0, 256, (4, 6, 7), dtype=np.uint8)
    copy = clone(booleanizer)
    assert copy.get_params() == booleanizer.get_params()
    pipeline = make_pipeline(FunctionTransformer(), copy)
    np.testing.assert_array_equal(pipeline.fit_transform(images), booleanizer.transform(images))


@pytest.mark.parametrize("names", [["a"], ["a", "a"], ["a", "b", "c"]])
def test_names_must_be_one_per_column_and_different(names):
    with pytest.raises(ValueError, match="give 2 different ones"):
        Threshold().fit(np.zeros((3, 2))).describe(names)


IMAGES = np.zeros((2, 5, 5), np.uint8)


@pytest.mark.parametrize(
    ("booleanizer", "x", "message"),
    [
        (Threshold(float("nan")), IMAGES, "above is nan; give a finite number"),
        (Threshold("75"), IMAGES, "above is '75'; give a finite number"),
        (Threshold(), np.array(["a"]), "X is of dtype <U1; give"),
        (Threshold(), np.array([1.0, np.nan]), "X holds NaN or infinity; fill in or drop"),
        (Threshold(), np.zeros((0, 3)), r"X is empty, of shape \(0, 3\)"),
        (AdaptiveGaussianThreshold(window=4), IMAGES, "window is 4; .* odd whole number from 3 up"),
        (AdaptiveGaussianThreshold(window=1), IMAGES, "window is 1; "),
        (AdaptiveGaussianThreshold(window=5.0), IMAGES, "window is 5.0; "),
        (AdaptiveGaussianThreshold(offset=np.inf), IMAGES, "offset is inf; give a finite number"),
        (AdaptiveGaussianThreshold(), IMAGES[0], r"X is of shape \(5, 5\); give images \[n, height, width\]"),
        (AdaptiveGaussianThreshold(), IMAGES / 255, "X is float64 from 0.0 to 0.0; scale the images"),
        (AdaptiveGaussianThreshold(), IMAGES.astype(int) + 256, "X is int64 from 256 to 256; scale"),
        (AdaptiveGaussianThreshold(), IMAGES[:0], "X is empty"),
        (Thermometer(levels=0), IMAGES, "levels is 0; give a whole number from 1 up"),
        (Thermometer(top=0), IMAGES, "top is 0; give the largest pixel value"),
        (Thermometer(), IMAGES[0], r"X is of shape \(5, 5\); give images"),
        (Thermometer(), np.full((1, 2, 2), np.nan), "X holds NaN or infinity"),
        (QuantileThermometer(levels=0), np.eye(3), "levels is 0; give a whole number from 1 up"),
        (QuantileThermometer(), np.array([[1.0], [np.nan]]), "contains NaN"),
        (QuantileThermometer(), np.array([[1.0], [np.inf]]), "contains infinity"),
        (QuantileThermometer(), np.ones((4, 3)), "each of the 3 columns of X is constant; give"),
    ],
)
def test_bad_input_is_refused_with_what_came_and_what_to_do(booleanizer, x, message):
    with pytest.raises(ValueError, match=message):
        booleanizer.fit(x)
    if not isinstance(booleanizer, QuantileThermometer):
        with pytest.raises(ValueError, match=message):
            booleanizer.transform(x)
