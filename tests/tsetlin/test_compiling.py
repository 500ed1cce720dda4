"""Machine code in the cache is never that of sources that have changed since."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import laconic
from laconic.tsetlin import compiling

PACKAGE = Path(laconic.__file__).parent
TRAIN = """
import hashlib, numpy as np
from laconic.tsetlin import Shape, build, fit
rng, machine = np.random.default_rng(0), build(Shape.flat(30), 2, 10, threshold=5)
fit(machine, rng.random((40, 30)) < 0.5, rng.integers(0, 2, 40), rng, epochs=3)
print(hashlib.sha256(machine.states.tobytes()).hexdigest())
"""
# modules with functions that Python calls
ENTRIES = {"kernels", "inference", "packing", "fuzzy_kernels", "fuzzy_inference"}


class Copy:
    """Of the package's engine, whose sources a test may edit; it trains in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.sources, self.caches = folder / "laconic" / "tsetlin", folder / "caches"
        shutil.copytree(PACKAGE / "tsetlin", self.sources, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("__init__.py", "trial.py", "files.py"):  # what the engine imports beside itself
            shutil.copy(PACKAGE / name, self.sources.parent)
        self.environment = os.environ | {"PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(self.caches)}

    def train(self) -> tuple[str, bool]:
        """A digest of what was learned, and whether it said that it compiles."""
        done = subprocess.run(
            [sys.executable, "-c", TRAIN], env=self.environment, capture_output=True, text=True, check=True
        )
        return done.stdout, "compiling" in done.stderr

    def edit(self, module: str, old: str, new: str) -> None:
        file = self.sources / f"{module}.py"
        text = file.read_text("utf-8")
        assert text.count(old) == 1
        file.write_text(text.replace(old, new), "utf-8")

    def list_cached(self, module: str) -> set[str]:
        return {path.name for path in self.caches.rglob(f"{module}.*.nb[ic]")}


def test_an_edit_to_a_file_of_kernels_that_is_no_entry_point_is_compiled_and_leaves_no_old_code(tmp_path: Path) -> None:
    copy = Copy(tmp_path)
    first, has_compiled = copy.train()
    assert has_compiled
    kept = copy.list_cached("kernels")
    assert copy.train() == (first, False)
    assert copy.list_cached("kernels") == kept
    copy.edit("feedback", "mask_of(excluded & ~literals[w])", "mask_of(excluded & literals[w])")
    other, has_compiled = copy.train()
    assert has_compiled
    assert other != first
    assert len(copy.list_cached("kernels")) == len(kept)
    assert not copy.list_cached("kernels") & kept


@pytest.mark.parametrize(
    ("edited", "stale"),
    [
        *((module, ENTRIES) for module in ("kernels", "windows", "agenda", "evaluation", "feedback", "patches")),
        *((module, ENTRIES) for module in ("vectors", "geometry", "compiling")),
        ("inference", {"inference", "fuzzy_inference"}),
        *((module, {"fuzzy_kernels", "fuzzy_inference"}) for module in ("counting", "failing")),
        ("fuzzy_kernels", {"fuzzy_kernels"}),
        ("fuzzy_inference", {"fuzzy_inference"}),
        ("packing", {"packing"}),
        ("rules", set()),
    ],
)
def test_entry_points_are_stamped_with_all_that_they_import_and_with_nothing_else(
    edited: str, stale: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {module: compiling.hash_sources(module) for module in ENTRIES}
    read = compiling.read_source
    monkeypatch.setattr(compiling, "read_source", lambda name: read(name) + "# a comment" * (name == edited))
    assert {module for module in ENTRIES if compiling.hash_sources.__wrapped__(module) != before[module]} == stale


def test_two_processes_that_compile_at_once_never_mix_up_their_code(tmp_path: Path) -> None:
    """Each found an empty index, as it does when both start together, and keeps another variant of one function."""
    first, second = (compiling.EntryFile(str(tmp_path), "kernels.train", "stamp") for _ in range(2))
    empty = first._load_index()
    with pytest.MonkeyPatch.context() as patch:
        for file in (first, second):
            patch.setattr(file, "_load_index", lambda: dict(empty))
        first.save("flat", "code of flat")
        second.save("images", "code of images")
    reader = compiling.EntryFile(str(tmp_path), "kernels.train", "stamp")
    assert reader.load("images") == "code of images"
    assert reader.load("flat") is None  # lost from the index, so that it is compiled again
    first.save("flat", "code of flat")
    assert [reader.load(key) for key in ("flat", "images")] == ["code of flat", "code of images"]


def test_variants_of_a_function_have_names_of_their_own() -> None:
    def make(is_flat: bool):
        def train() -> bool:
            return is_flat

        return compiling.tell_apart(train)

    assert make(True).__qualname__ != make(False).__qualname__
    assert make(True).__qualname__ == make(True).__qualname__
