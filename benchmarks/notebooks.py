"""Runs the notebooks of docs/notebooks from top to bottom and keeps what their cells show.

python benchmarks/notebooks.py               # all of them, in place
python benchmarks/notebooks.py --check       # the same, but nothing is written: what the tests do
"""

import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

HOME = Path(__file__).parent.parent / "docs" / "notebooks"
TIMEOUT_SECONDS = 300  # of one cell


def execute(path: Path) -> nbformat.NotebookNode:
    """In a folder of its own, for notebooks write files."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(notebook, timeout=TIMEOUT_SECONDS, resources={"metadata": {"path": folder}})
        client.execute()
    for cell in notebook.cells:  # the clock and the kernel's version would make a new file of every execution
        cell.metadata.pop("execution", None)
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return notebook


def main() -> None:
    for path in sorted(HOME.glob("*.ipynb")):
        executed = execute(path)
        if "--check" not in sys.argv:
            nbformat.write(executed, path)
        print(f"{path.name}: {len(executed.cells)} cells")


if __name__ == "__main__":
    main()
