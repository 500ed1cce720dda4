from pathlib import Path

import pytest

from laconic.fleets.store import Store


def open_store(folder: Path, *, on_disk: bool) -> Store[str]:
    return Store(folder, "word", str.encode, lambda data: data.decode(), on_disk=on_disk)


either = pytest.mark.parametrize("on_disk", [False, True])


@either
def test_a_checkpoint_stays_whole_while_records_change_after_it(tmp_path: Path, on_disk: bool) -> None:
    store = open_store(tmp_path, on_disk=on_disk)
    store.put(1, "one")
    store.put(2, "two")
    files = store.save(3)
    store.settle(3)
    store.put(1, "changed")  # and then the power goes
    again = open_store(tmp_path, on_disk=on_disk)
    again.open(files, 3)
    assert [again.get(1), again.get(2), again.get(5)] == ["one", "two", None]


@either
def test_a_crash_between_saving_and_settling_loses_neither_checkpoint(tmp_path: Path, on_disk: bool) -> None:
    store = open_store(tmp_path, on_disk=on_disk)
    store.put(1, "old")
    old = store.save(1)
    store.settle(1)
    store.put(1, "new")
    new = store.save(2)  # the manifest may or may not have been written
    for files, word in ((old, "old"), (new, "new")):
        again = open_store(tmp_path, on_disk=on_disk)
        again.open(files, 1)
        assert again.get(1) == word


@either
def test_what_no_checkpoint_names_is_removed(tmp_path: Path, on_disk: bool) -> None:
    store = open_store(tmp_path, on_disk=on_disk)
    for number in range(5):
        store.put(1, f"version {number}")
        store.put(1, f"version {number}, again")
        store.save(number)
        store.settle(number)
    assert len(list(tmp_path.iterdir())) == 1
    assert store.get(1) == "version 4, again"


def test_disk_without_a_folder_is_refused() -> None:
    with pytest.raises(ValueError, match="no folder was given"):
        Store(None, "word", str.encode, lambda data: "", on_disk=True)
