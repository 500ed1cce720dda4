"""What macOS and Windows lack is asked for before it is used; and what is there instead works."""

import ast
import os
import signal
import sys
import types
from pathlib import Path

import pytest

import laconic
from laconic import files, signals

ROOT = Path(laconic.__file__).parent
POSIX_MODULES = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog"}
POSIX_NAMES = {
    ("os", name)
    for name in (
        "sync",
        "fork",
        "killpg",
        "getuid",
        "geteuid",
        "uname",
        "setsid",
        "nice",
        "sched_getaffinity",
        "mkfifo",
    )
} | {("signal", name) for name in ("SIGHUP", "SIGKILL", "SIGPIPE", "SIGUSR1", "SIGUSR2", "SIGALRM", "alarm")}
GUARDS = ("sys.platform", "hasattr", "getattr")


def find_unguarded(path: Path) -> list[str]:
    """Uses of what only POSIX has, with no question in the same block or function whether it is there."""
    text = path.read_text("utf-8")
    tree = ast.parse(text)
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}

    def is_guarded(node: ast.AST) -> bool:
        while (node := parents.get(node)) is not None:
            if isinstance(node, ast.If | ast.FunctionDef) and any(
                guard in (ast.get_source_segment(text, node) or "") for guard in GUARDS
            ):
                return True
        return False

    found = []
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        is_posix = bool({*names} & POSIX_MODULES)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            is_posix = (node.value.id, node.attr) in POSIX_NAMES
        if is_posix and not is_guarded(node):
            found.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    return found


def test_nothing_that_windows_lacks_is_used_unasked() -> None:
    assert [place for path in ROOT.rglob("*.py") for place in find_unguarded(path)] == []


def test_the_search_finds_what_it_looks_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    (tmp_path / "bad.py").write_text("import fcntl\nimport os\nos.sync()\nif hasattr(os, 'fork'):\n    os.fork()\n")
    assert find_unguarded(tmp_path / "bad.py") == ["bad.py:1", "bad.py:3"]


def test_text_is_read_and_written_in_one_encoding_everywhere() -> None:
    """Windows has another by default; what the system itself wrote for us is plain ASCII."""
    found = []
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            is_plain = not node.args and not node.keywords
            if (node.func.attr == "read_text" and is_plain) or (
                node.func.attr == "write_text" and len(node.args) == 1 and not node.keywords
            ):
                found.append(path.relative_to(ROOT).as_posix())
    assert {*found} <= {"runs/record.py", "bench/worker.py", "bench/tsetlin.py"}  # /proc, and a log of ours


def test_many_files_are_safe_where_the_system_has_no_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sync", raising=False)
    synced = []
    monkeypatch.setattr(files, "sync_file", synced.append)
    paths = [tmp_path / f"{k}" for k in range(files.MANY + 1)]
    for path in paths:
        path.touch()
    files.make_safe(paths)
    assert synced == paths


def test_a_folder_that_cannot_be_opened_is_left_to_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError

    monkeypatch.setattr(os, "open", refuse)  # as on Windows
    files.sync_folder(tmp_path)


def test_signals_that_a_system_lacks_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(signal, "SIGHUP", raising=False)
    before = signal.getsignal(signal.SIGTERM)
    with signals.heeded():
        assert signal.getsignal(signal.SIGTERM) != before or before != signal.SIG_DFL
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.skipif(sys.platform == "win32", reason="there the real one is used")
def test_locks_of_windows_keep_a_second_process_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held: set[int] = set()

    def locking(handle: int, how: int, n_bytes: int) -> None:
        place = os.lseek(handle, 0, os.SEEK_CUR)
        assert (how in (7, 8), n_bytes) == (True, 1)
        if (how == 7) == (place in held):
            raise OSError("locked, or not locked")
        held.symmetric_difference_update({place})

    windows = types.SimpleNamespace(LK_NBLCK=7, LK_UNLCK=8, locking=locking)
    monkeypatch.setitem(sys.modules, "msvcrt", windows)  # type: ignore[arg-type]
    monkeypatch.setattr(sys, "platform", "win32")
    text = Path(files.__file__).read_text("utf-8")
    there = types.ModuleType("files_on_windows")
    exec(compile(text, files.__file__, "exec"), there.__dict__)
    (tmp_path / "lock").write_text("process 1 on here since yesterday: laconic run")
    assert not there.is_in_use(tmp_path)  # who looks lets go
    with there.lock(tmp_path), pytest.raises(there.InUse, match="in use by process"), there.lock(tmp_path):
        pass
