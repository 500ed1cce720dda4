import sys
from pathlib import Path

import pytest

from laconic.importing import import_class


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place])  # as an installed command has it
    for name in ("own_net", "own_needy", "own_package"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    (tmp_path / "own_net.py").write_text("class Net: ...\nsize = 3\n")
    (tmp_path / "own_needy.py").write_text("import no_such_library\n")
    (tmp_path / "own_package").mkdir()
    (tmp_path / "own_package" / "__init__.py").write_text("")
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_a_class_in_the_working_folder_is_found() -> None:
    assert import_class("own_net:Net").__name__ == "Net"


def test_the_working_folder_is_looked_in_first_and_added_once(folder: Path) -> None:
    import_class("own_net:Net")
    import_class("own_net:Net")
    assert sys.path.index(str(folder)) == 0
    assert sys.path.count(str(folder)) == 1


def test_an_installed_class_is_found() -> None:
    assert import_class("collections:OrderedDict").__name__ == "OrderedDict"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("own_net", "names no class; write module:Class"),
        ("own_net:", "names no class; write module:Class"),
        (":Net", "names no class; write module:Class"),
        ("nobody:Net", "there is no module nobody .*must be installed, or lie in"),
        ("own_package.nobody:Net", "there is no module own_package.nobody"),
        ("own_needy:Net", "module own_needy could not be imported .*no_such_library.*install what it needs"),
        ("own_net:Other", "own_net has no Other; classes in it: Net"),
        ("own_net:size", "size is a int, a class was expected"),
    ],
)
def test_what_is_no_class_is_refused_in_words(where: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        import_class(where)
