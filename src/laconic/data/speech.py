"""Speech Commands: one-second recordings of single words to 13 mel-frequency cepstral coefficients in 29 frames."""

import io
import wave
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.data.files import MissingFiles, walk
from laconic.data.readers import Arrays

N_COEFFICIENTS = 13
N_FRAMES = 29
_RATE = 16_000  # samples per second, and so per recording
_WINDOW = 1024  # samples, 64 ms
_STEP = (_RATE - _WINDOW) // (N_FRAMES - 1)  # samples from frame to frame: the frames just cover the second
_N_BANDS = 40
_LOWEST_HERTZ, _HIGHEST_HERTZ = 20.0, 7_600.0  # below is hum, above the microphones differ
_BATCH = 256  # recordings transformed at once: some 100 MB


def read_speech_commands(home: Path) -> Arrays:
    """Folders of WORD/SPEAKER_nohash_N.wav; testing_list.txt names the test, whose speakers are in no other list.

    What validation_list.txt names is for training here, since each client sets aside its own.
    """
    paths: list[PurePosixPath] = []
    batches: list[NDArray[np.float32]] = []
    waiting: list[NDArray[np.float32]] = []
    tested: set[str] | None = None
    for path, content in walk(home, _is_wanted):
        if path.name == "testing_list.txt":
            tested = set(content.decode().split())
            continue
        paths.append(path)
        waiting.append(read_wav(path, content))
        if len(waiting) == _BATCH:
            batches.append(mfcc(np.stack(waiting)))
            waiting = []
    if not paths or tested is None:
        raise MissingFiles(
            f"no WORD/SPEAKER_nohash_N.wav with testing_list.txt (nor an archive with them) under {home}"
        )
    if waiting:
        batches.append(mfcc(np.stack(waiting)))
    order = np.argsort([path.as_posix() for path in paths])  # an archive's own order is chance
    x = np.concatenate(batches)[order]
    paths = [paths[i] for i in order]
    words = np.array([path.parent.name for path in paths])
    speakers = np.array([path.name.split("_")[0] for path in paths])
    is_test = np.array([f"{path.parent.name}/{path.name}" in tested for path in paths])
    arrays: Arrays = {}
    for split, chosen in (("train", ~is_test), ("test", is_test)):
        arrays |= {f"x_{split}": x[chosen], f"y_{split}": words[chosen], f"speaker_{split}": speakers[chosen]}
    return arrays


def _is_wanted(path: PurePosixPath) -> bool:
    if path.suffix == ".wav":
        return path.parent.name != "_background_noise_"
    return path.name == "testing_list.txt"


def read_wav(path: PurePosixPath, content: bytes) -> NDArray[np.float32]:
    """One second [16000] of values -1 to 1; shorter recordings are filled up with silence, longer ones cut."""
    try:
        with wave.open(io.BytesIO(content)) as file:
            form = (file.getframerate(), file.getsampwidth(), file.getnchannels())
            data = file.readframes(_RATE)
    except (wave.Error, EOFError) as error:
        raise ValueError(f"{path} is no readable wav file ({error}); get it again") from error
    if form != (_RATE, 2, 1):
        raise ValueError(
            f"{path} is {form} (samples a second, bytes, channels); {(_RATE, 2, 1)} was expected: convert it"
        )
    samples = np.frombuffer(data[: len(data) // 2 * 2], "<i2")
    second = np.zeros(_RATE, np.float32)
    second[: len(samples)] = samples / np.float32(2**15)
    return second


def mfcc(seconds: NDArray[np.float32]) -> NDArray[np.float32]:
    """Recordings [n, 16000] to coefficients [n, 13, 29]: the cosine transform of the mel bands' decibels."""
    from scipy.fft import dct, rfft
    from scipy.signal.windows import hann

    frames = np.lib.stride_tricks.sliding_window_view(seconds, _WINDOW, axis=1)[:, ::_STEP][:, :N_FRAMES]
    spectrum = rfft(frames * hann(_WINDOW, sym=False).astype(np.float32), axis=2)
    power = (np.abs(spectrum) ** 2).astype(np.float32)
    decibels = 10 * np.log10(np.maximum(power @ _mel_bands().T, 1e-10))  # a floor, so that silence is a number
    coefficients: NDArray[Any] = dct(decibels, axis=2, norm="ortho")[:, :, :N_COEFFICIENTS]
    return np.ascontiguousarray(coefficients.swapaxes(1, 2), dtype=np.float32)


def _mel_bands() -> NDArray[np.float32]:
    """Triangles [bands, frequencies] of height 1, evenly spaced on the mel scale 2595 log10(1 + f / 700)."""
    lowest, highest = (2595 * np.log10(1 + hertz / 700) for hertz in (_LOWEST_HERTZ, _HIGHEST_HERTZ))
    corners = 700 * (10 ** (np.linspace(lowest, highest, _N_BANDS + 2) / 2595) - 1)
    frequencies = np.arange(_WINDOW // 2 + 1) * _RATE / _WINDOW
    rising = (frequencies - corners[:-2, None]) / np.diff(corners)[:-1, None]
    falling = (corners[2:, None] - frequencies) / np.diff(corners)[1:, None]
    bands: NDArray[np.float32] = np.maximum(0, np.minimum(rising, falling)).astype(np.float32)
    return bands
