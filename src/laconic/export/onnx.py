"""A network's model as an ONNX file: raw rows in, labels and scores out, preprocessing inside.

What is written has been run in onnxruntime and compared. PyTorch's exporter that follows the code (dynamo) is used, not
the older one that follows one example: that one makes constants of what it cannot see, without a word.
"""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import onnxscript  # noqa: F401  # torch.onnx needs it, and says so late
import torch
from numpy.typing import NDArray

from laconic import __version__
from laconic.export.pipeline import Pipeline, draw_rows, find_row_type
from laconic.files import write_atomically
from laconic.models.portable import PortableModel

INPUT, OUTPUTS = "rows", ("label", "scores")
OPSET = 20  # onnxruntime 1.17 and later
N_DRAWN = 512  # rows, where none are given
BLOCK = 512  # rows run at once
NEAR = 1e-4  # of the winner's score: less between two classes is left to rounding
FAR = 1e-3  # of the winner's score: more is another model
N_NAMED = 5  # rows in a message


@dataclass(frozen=True)
class OnnxExport:
    """What was written, and how it was compared."""

    row_type: str  # of the numbers that the graph takes
    n_compared: int  # rows whose labels are the same in onnxruntime
    largest_error: float  # of a winner's score, as a share of the largest such score


def export_onnx(portable: PortableModel, path: Path, rows: Any = None) -> OnnxExport:
    """rows: raw ones to compare labels on, as many as there are; None: drawn at random.

    Raises ValueError, and writes nothing, where onnxruntime and Python differ or the graph does not heed its rows.
    """
    drawn = draw_rows(portable, N_DRAWN)
    given = drawn if rows is None else portable.encode(rows)
    if not len(given):
        raise ValueError("rows are none; give some to compare on, or leave rows out to have them drawn")
    data = make_graph(portable, drawn[:2])
    check_dependence(data, drawn)
    error = compare(portable, data, given)
    write_atomically(path, data)
    return OnnxExport(np.dtype(find_row_type(portable.preprocessing)).name, len(given), error)


def make_graph(portable: PortableModel, example: NDArray[Any]) -> bytes:
    pipeline, any_number = Pipeline(portable), ({0: torch.export.Dim("row")},)
    with quiet_exporter(), torch.no_grad():
        try:
            # torch.onnx would try other ways where this one fails, some of which hold for the example alone
            program = torch.export.export(
                pipeline, (torch.from_numpy(example),), dynamic_shapes=any_number, strict=False
            )
        except Exception as error:  # of many kinds, and any that a network of one's own may raise
            why = str(error).partition("\n")[0].rstrip(".")
            raise ValueError(
                f"the network {pipeline.live.spec.model} cannot be written as ONNX: {why}; a "
                "forward of torch's own operations, the same ones for any rows, was expected"
            ) from error
        made = torch.onnx.export(
            program,
            dynamo=True,
            input_names=[INPUT],
            output_names=list(OUTPUTS),
            dynamic_shapes=any_number,
            opset_version=OPSET,
            verbose=False,
        )
    assert made is not None
    data: bytes = describe(made.model_proto, portable).SerializeToString()
    return data


@contextmanager
def quiet_exporter() -> Iterator[None]:
    """PyTorch warns of packages that nobody asked for and of its own old code."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", r"`isinstance\(treespec, LeafSpec\)` is deprecated", FutureWarning)
            yield
    finally:
        logger.setLevel(level)


def describe(model: onnx.ModelProto, portable: PortableModel) -> onnx.ModelProto:
    """The model says what it is and where it comes from, in place of which lines of code each node comes from."""
    for part in (*model.graph.node, *model.graph.value_info, *model.graph.input, *model.graph.output, model.graph):
        part.ClearField("metadata_props")
        part.ClearField("doc_string")
    model.producer_name, model.producer_version = "laconic", __version__
    told = vars(portable.about)
    onnx.helper.set_model_props(
        model, {name: value if isinstance(value, str) else json.dumps(value) for name, value in told.items()}
    )
    return model


# ---------------------------------------------------------------- is it the same model?
def check_dependence(data: bytes, drawn: NDArray[Any]) -> None:
    """ValueError if the outputs do not depend on the input: by the graph, and by what comes out."""
    model = onnx.load_from_string(data)
    onnx.checker.check_model(model)
    reached = {INPUT}
    for node in model.graph.node:  # in the order of their use
        if not reached.isdisjoint(node.input):
            reached.update(node.output)
    if not reached.issuperset(OUTPUTS):
        raise ValueError("the network's graph does not depend on its rows; nothing was written")
    _, scores = run(data, drawn)
    if (scores == scores[0]).all():
        raise ValueError(
            f"{len(drawn)} different rows get the same scores: the network ignores them; nothing was written"
        )


def compare(portable: PortableModel, data: bytes, rows: NDArray[Any]) -> float:
    """The largest error of a winner's score; ValueError unless labels are the same and scores nearly so."""
    expected = portable.model.scores(portable.read(rows))
    labels, scores = run(data, rows.astype(find_row_type(portable.preprocessing)))
    size = float(np.abs(expected.max(axis=1)).max()) or 1.0
    due = expected.argmax(axis=1)
    wrong = np.flatnonzero(labels != due)
    gaps = expected[wrong, due[wrong]] - expected[wrong, labels[wrong]]
    if not np.isclose(scores, expected, rtol=FAR, atol=FAR * size).all() or (gaps > NEAR * size).any():
        raise ValueError(
            f"in onnxruntime the network gives other scores, {len(wrong)} of {len(rows)} labels differ; "
            "nothing was written"
        )
    if len(wrong):
        named = ", ".join(map(str, wrong[:N_NAMED])) + (" …" if len(wrong) > N_NAMED else "")
        raise ValueError(
            f"in onnxruntime {len(wrong)} of {len(rows)} labels differ, where the two best classes are so near that "
            f"rounding decides: rows {named}; nothing was written. If you can do with that, leave them out of `rows`"
        )
    return float(np.abs(scores.max(axis=1) - expected.max(axis=1)).max()) / size


def run(data: bytes, rows: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Labels and scores; the first row alone, for a graph may only know one number of rows."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    starts = [0, *range(1, len(rows), BLOCK), len(rows)]
    blocks = [rows[start:stop] for start, stop in pairwise(starts)]
    labels, scores = zip(*(session.run(OUTPUTS, {INPUT: block}) for block in blocks), strict=True)
    return np.concatenate(labels), np.concatenate(scores)
