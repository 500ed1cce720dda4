"""A client's model outside its run: raw rows in, class names out, and the files it can leave in."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from laconic.models.base import Scores
from laconic.models.file import read_model, write_model
from laconic.models.portable import Evidences, PortableModel

if TYPE_CHECKING:
    from laconic.explain.rules import ModelRule
    from laconic.export.c import CExport
    from laconic.export.onnx import OnnxExport
    from laconic.models.background import Background


class NotInstalled(ImportError, ValueError):
    """Of an extra; also a ValueError, for the command line ends as it does after anything that cannot be done."""


class ClientModel(PortableModel):
    """Of one client: `predict`, `scores` and `rules`, `save`, `export_c` and `export_onnx`.

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

    def rules(self, rows: ArrayLike | None = None, labels: ArrayLike | None = None) -> list[ModelRule]:
        """By class, heaviest first, one for all clauses that say the same.

        Support and precision are over these rows, whose labels are names of classes.

        Without rows they are over the client's training examples, as these were counted when the model left its run.
        """
        from laconic.explain.rules import count_evidence, join_alike, list_rules

        if rows is None:
            return join_alike(list_rules(self, self.find_evidence(), self.find_background()))
        x, y = self.read(rows), self.number(labels)
        if len(x) != len(y):
            raise ValueError(f"{len(x)} rows came with {len(y)} labels; give a label for each row")
        return join_alike(list_rules(self, count_evidence(self.model, x, y), self.find_background()))

    def number(self, labels: ArrayLike | None) -> NDArray[np.int64]:
        """[row] places of these names among the classes."""
        places = {name: place for place, name in enumerate(self.classes)}
        given = [str(label) for label in np.asarray([] if labels is None else labels).tolist()]
        if strange := [label for label in given if label not in places]:
            raise ValueError(f"labels hold {strange[0]!r}; the classes are {', '.join(self.classes)}")
        return np.array([places[label] for label in given], np.int64)

    def find_evidence(self) -> Evidences | None:
        """How clauses fared on the client's training examples; None where nobody counted."""
        return self.evidence

    def find_background(self) -> Background | None:
        """What a run knows beside the model; None outside of it."""
        return None

    def save(self, path: str | Path, *, evidence: bool = True) -> None:
        """One safetensors file; laconic.load reads it anywhere, without data set and run.

        evidence: with how often each clause fired on the client's training examples and was right, which are counts of
        private data; rules() then knows support and precision wherever the file goes.
        """
        write_model(replace(self, evidence=self.find_evidence() if evidence else None), Path(path))

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
    return ClientModel(found.model, found.preprocessing, found.about, found.evidence)
