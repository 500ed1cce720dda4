"""A client's model outside its run: raw rows in, class names out, and the files it can leave in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from laconic.models.base import Scores
from laconic.models.file import read_model, write_model
from laconic.models.portable import PortableModel


class ClientModel(PortableModel):
    """Of one client: `predict(rows)`, `scores(rows)`, `save(path)`. Rows are as the data set has them.

    Made by Run.client(7), or read from a file by laconic.load.
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
