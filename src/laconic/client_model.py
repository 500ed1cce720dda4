"""A client's model outside its run: raw rows in, class names out, and the files it can leave in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from laconic.models.base import Scores
from laconic.models.file import read_model, write_model
from laconic.models.portable import PortableModel

if TYPE_CHECKING:
    from laconic.export.c import CExport
    from laconic.export.onnx import OnnxExport


class NotInstalled(ImportError, ValueError):
    """Of an extra; also a ValueError, for the command line ends as it does after anything that cannot be done."""


class ClientModel(PortableModel):
    """Of one client: `predict(rows)`, `scores(rows)`, `save(path)`, `export_onnx(path)`.

    Rows are as the data set has them. Made by Run.client(7), or read from a file by laconic.load.
    """

    @property
    def classes(self) -> tuple[str, ...]:
        return self.about.classes

    def predict(self, rows: ArrayLike) -> NDArray[np.str_]:
        """[row] names of classes."""
        return np.array(self.classes)[self.model.classify(self.read(rows))]

    def scores(self, rows: ArrayLike) -> Scores:
        """[row, class] the higher the likelier; -inf for classes that this client does not choose among."""
        return self.model.scores(self.read(rows))

    def save(self, path: str | Path) -> None:
        """One safetensors file; laconic.load reads it anywhere, without data set and run."""
        write_model(self, Path(path))

    def export_c(self, path: str | Path, name: str = "model", rows: ArrayLike | None = None) -> CExport:
        """One C99 header, once it was compiled and found equal on these raw rows; None: on 10,000 random ones."""
        from laconic.export.c import export_c

        return export_c(self, Path(path), name, rows)
    def export_onnx(self, path: str | Path, rows: ArrayLike | None = None) -> OnnxExport:
        """A network's graph from raw rows to `label` and `scores`, once onnxruntime gives the same labels on these.

        rows: None: on some hundred random ones.
        """
        if self.model.kind not in ("network", "prototypes"):
            raise ValueError(f"{self!r} is made of Tsetlin Machines, ONNX takes networks; export it as C or as rules")
        try:
            from laconic.export.onnx import export_onnx
        except ImportError as error:
            raise NotInstalled(
                f'export_onnx needs {error.name or error}, which is not installed.  pip install "laconic-fl[export]"'
            ) from error
        return export_onnx(self, Path(path), rows)

    def __repr__(self) -> str:
        about = self.about
        who = f"client {about.client}" + (f" ({about.name})" if about.name else "")
        return f"<{about.method} model of {who}: {self.model.kind}, {len(about.classes)} classes, from {about.data}>"


def load(path: str | Path, *, own_code: str = "") -> ClientModel:
    """A model that ClientModel.save or laconic export wrote.

    own_code: the module:Class of a network of your own that may be imported for it; else none is.
    """
    found = read_model(Path(path), own_code=own_code)
    return ClientModel(found.model, found.preprocessing, found.about)
