"""Imports point one way: who may import whom, read from the source."""

import ast
from pathlib import Path

import laconic

ROOT = Path(laconic.__file__).parent
ANYONE_MAY_IMPORT = {"files", "device", "__version__"}
# a part of the library -> the parts it may import, beside itself and these
MAY_IMPORT: dict[str, set[str]] = {
    "files": set(),
    "device": set(),
    "columns": set(),
    "importing": set(),
    "trial": set(),
    "wire": set(),
    "tsetlin": {"trial"},
    "networks": {"importing", "trial"},
    "data": {"columns", "importing"},
    "aggregate": set(),
    "banks": {"importing"},
    "linear": {"trial"},
    "state": set(),
    "models": {"columns", "tsetlin", "networks", "linear", "banks", "state", "wire"},
    "export": {"models", "tsetlin", "networks", "linear"},
    "explain": {"models", "tsetlin", "networks", "linear", "pages"},
    "client_model": {"models", "export", "explain"},
    "algorithm": {"wire", "aggregate", "models", "records"},
    "algorithms": {"algorithm", "importing", "trial", "wire", "tsetlin", "networks", "aggregate", "linear", "models"}
    | {"banks", "records"},
    "fleets": {"algorithm", "wire", "state", "aggregate"},
    "simulation": {"algorithm", "fleets", "state"},
    "records": set(),
    "pages": set(),
    "report": {"records", "pages"},
    "live": {"records", "pages", "report", "signals"},
}


def imported_parts(path: Path) -> set[str]:
    """Second words of `laconic.x` in any import of the file, those inside functions too."""
    parts = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module == "laconic":
            names = [f"laconic.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        parts |= {name.split(".")[1] for name in names if name.startswith("laconic.")}
    return parts


def test_imports_point_one_way() -> None:
    offences = {
        f"{path.relative_to(ROOT)} imports {part}"
        for name, allowed in MAY_IMPORT.items()
        for path in [ROOT / f"{name}.py", *(ROOT / name).rglob("*.py")]
        if path.exists()
        for part in imported_parts(path) - allowed - {name} - ANYONE_MAY_IMPORT
    }
    assert not offences


def test_nothing_unpickles() -> None:
    words = ("import pickle", "allow_pickle=True", "torch.load(", "cloudpickle", "joblib.load")
    offences = {
        f"{path.relative_to(ROOT)}: {word}"
        for path in ROOT.rglob("*.py")
        for word in words
        if word in path.read_text("utf-8")
    }
    assert not offences
