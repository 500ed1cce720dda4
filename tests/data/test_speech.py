import io
import tarfile
import wave

import numpy as np
import pytest

from laconic.data import load
from laconic.data.speech import mfcc

SECOND = np.arange(16_000) / 16_000


def wav(samples, rate=16_000, width=2):
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(width)
        file.setframerate(rate)
        file.writeframes((samples * 32_000).astype("<i2").tobytes())
    return out.getvalue()


def tone(hertz, seconds=1.0):
    return 0.5 * np.sin(2 * np.pi * hertz * SECOND[: int(16_000 * seconds)])


FILES = {
    "yes/aa11_nohash_0.wav": wav(tone(300)),
    "yes/bb22_nohash_0.wav": wav(tone(310, 0.6)),
    "yes/cc33_nohash_1.wav": wav(tone(305)),
    "no/aa11_nohash_0.wav": wav(tone(2000)),
    "no/bb22_nohash_0.wav": wav(tone(2100)),
    "no/cc33_nohash_0.wav": wav(tone(2050)),
    "_background_noise_/hum.wav": wav(np.tile(tone(50), 3)),
    "testing_list.txt": b"yes/cc33_nohash_1.wav\nno/cc33_nohash_0.wav\n",
    "validation_list.txt": b"no/bb22_nohash_0.wav\nyes/bb22_nohash_0.wav\n",
}


def write_folder(home, files):
    for name, content in files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_bytes(content)


def test_folder_tree_and_archive_give_the_same_words_and_speakers(tmp_path):
    write_folder(tmp_path / "tree" / "speechcommands" / "speech_commands_v0.02", FILES)
    home = tmp_path / "packed" / "speechcommands"
    home.mkdir(parents=True)
    with tarfile.open(home / "speech_commands_v0.02.tar.gz", "w:gz") as tar:
        for name, content in reversed(FILES.items()):
            member = tarfile.TarInfo(f"./{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    tree, packed = (load("speechcommands", tmp_path / part) for part in ("tree", "packed"))
    assert tree.classes == ("no", "yes")
    assert tree.x_train.shape == (4, 13, 29)
    assert tree.y_train.tolist() == [0, 0, 1, 1]
    assert tree.groups["speaker"][0].tolist() == ["aa11", "bb22", "aa11", "bb22"]
    assert tree.groups["speaker"][1].tolist() == ["cc33", "cc33"]
    for key in ("x_train", "y_train", "x_test", "y_test"):
        np.testing.assert_array_equal(getattr(tree, key), getattr(packed, key))


def test_arrays_are_kept_so_that_recordings_are_read_once(tmp_path):
    write_folder(tmp_path / "speechcommands", FILES)
    first = load("speechcommands", tmp_path)
    for path in (tmp_path / "speechcommands").rglob("*.wav"):
        path.unlink()
    again = load("speechcommands", tmp_path)
    np.testing.assert_array_equal(first.x_test, again.x_test)
    assert (first.classes, first.booleanize) == (again.classes, again.booleanize)
    assert again.groups["speaker"][1].tolist() == ["cc33", "cc33"]


def test_folder_that_cannot_keep_them_still_serves(tmp_path):
    write_folder(tmp_path / "speechcommands", FILES)
    (tmp_path / "speechcommands.npz").mkdir()
    assert len(load("speechcommands", tmp_path).y_train) == 4


def test_coefficients_are_those_of_the_textbook():
    """One frame, written out: Hann window, power, mel triangles, decibels, orthonormal cosine transform."""
    second = (tone(440) + 0.1 * np.random.default_rng(0).normal(size=16_000)).astype(np.float32)
    frame, start = 5, 5 * 534
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(1024) / 1024)
    power = np.abs(np.fft.rfft(second[start : start + 1024] * window)) ** 2
    mel = np.linspace(2595 * np.log10(1 + 20 / 700), 2595 * np.log10(1 + 7600 / 700), 42)
    corners = 700 * (10 ** (mel / 2595) - 1)
    bands = np.zeros(40)
    for b in range(40):
        for i in range(513):
            hertz = i * 15.625
            left, middle, right = corners[b : b + 3]
            height = (hertz - left) / (middle - left) if hertz < middle else (right - hertz) / (right - middle)
            bands[b] += max(0.0, height) * power[i]
    decibels = 10 * np.log10(np.maximum(bands, 1e-10))
    coefficients = mfcc(second[None])[0, :, frame]
    for k in range(13):
        wave_k = np.cos(np.pi * k * (2 * np.arange(40) + 1) / 80)
        scale = np.sqrt((1 if k == 0 else 2) / 40)
        assert coefficients[k] == pytest.approx(scale * (decibels @ wave_k), abs=1e-3)


def test_silence_gives_numbers():
    assert np.isfinite(mfcc(np.zeros((1, 16_000), np.float32))).all()


def test_recordings_of_another_kind_are_refused(tmp_path):
    write_folder(tmp_path / "speechcommands", FILES | {"no/dd44_nohash_0.wav": wav(tone(300), rate=8000)})
    with pytest.raises(ValueError, match=r"no/dd44_nohash_0\.wav is \(8000, 2, 1\)"):
        load("speechcommands", tmp_path)
    write_folder(tmp_path / "speechcommands", {"no/dd44_nohash_0.wav": b"RIFF"})
    with pytest.raises(ValueError, match=r"no/dd44_nohash_0\.wav is no readable wav file"):
        load("speechcommands", tmp_path)


def test_missing_list_is_named(tmp_path):
    write_folder(tmp_path / "speechcommands", {key: value for key, value in FILES.items() if "testing" not in key})
    with pytest.raises(ValueError, match=r"no WORD/SPEAKER_nohash_N\.wav with testing_list\.txt"):
        load("speechcommands", tmp_path)
