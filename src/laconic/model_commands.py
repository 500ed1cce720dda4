"""laconic export, predict and explain: what is done with the model of one client."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from laconic.console import explained, find_width
from laconic.options import AsJson, Debug, choose

WhichClient = Annotated[str | None, typer.Option("--client", help="Number or name of a client of the run.")]
OwnCode = Annotated[
    str, typer.Option(metavar="MODULE:CLASS", help="A network of your own that a model file may have imported.")
]
FORMS = ("model", "c", "onnx", "rules")


def export(
    source: Annotated[Path, typer.Argument(metavar="RUN|NODE|MODEL")],
    client: WhichClient = None,
    to: Annotated[str, typer.Option("--to", help="As what, one of: " + ", ".join(FORMS) + ".")] = "model",
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="The file; else named after method and client.")
    ] = None,
    name: Annotated[str, typer.Option(help="What functions and tables in C begin with.")] = "model",
    evidence: Annotated[
        bool, typer.Option(help="A model takes along how often its rules fired on training examples.")
    ] = True,
    own_code: OwnCode = "",
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Take a client's model out of its run: as a file for laconic, a C header, an ONNX graph, or rules in words.

    RUN: a run folder (with --client). NODE: the folder of a node, for its own model. MODEL: a file exported before.
    What is written as C or ONNX is first compared with Python, on all test examples of the client where they are at
    hand, else on random rows; what differs is not written.
    """
    (form,) = choose("form", to, list(FORMS))
    with explained(debug=debug):
        from laconic.exporting import export_model
        from laconic.opening import find_test_rows, open_model

        model = open_model(source, client, own_code=own_code)
        rows = find_test_rows(source, model) if form in ("c", "onnx") else None
        written, lines = export_model(model, form, out, name=name, rows=rows, evidence=evidence)
        typer.echo(json.dumps(written) if as_json else "\n".join(lines))


def predict(
    source: Annotated[Path, typer.Argument(metavar="MODEL|RUN|NODE")],
    rows: Annotated[Path, typer.Argument(metavar="ROWS")],
    client: WhichClient = None,
    own_code: OwnCode = "",
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Predict rows by a client's model: a class name on each line of stdout.

    MODEL: a file that laconic export wrote. RUN: a run folder (with --client). NODE: the folder of a node.
    ROWS: a .csv, with names of columns on top or in the order of training, a .parquet, or an .npz with an array called
    rows; as raw as the data set was, for the model brings its preprocessing.
    """
    with explained(debug=debug):
        from laconic.opening import predict_file

        typer.echo(predict_file(source, rows, client, own_code=own_code, as_json=as_json))


def explain(
    source: Annotated[Path, typer.Argument(metavar="RUN|NODE|MODEL")],
    client: WhichClient = None,
    label: Annotated[str | None, typer.Option("--class", help="Of this class alone.")] = None,
    row: Annotated[int | None, typer.Option(help="What decides about this row, from 0 up.")] = None,
    rows: Annotated[
        Path | None, typer.Option(metavar="FILE", help="An .npz or .csv that the row is of; else the client's tests.")
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Rules shown of each class, clauses shown of a row.")] = 5,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="One self-contained page instead of text.")] = None,
    own_code: OwnCode = "",
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show the rules of a client's model in words and pictures, or with --row what decides about one row.

    RUN: a run folder (with --client). NODE: the folder of a node. MODEL: a file that laconic export wrote.
    """
    with explained(debug=debug):
        from laconic.explaining import explain_client
        from laconic.opening import open_model

        model = open_model(source, client, own_code=own_code)
        found = explain_client(model, source, label=label, row=row, file=rows)
        if out is not None:
            from laconic.explain.page import write_page

            write_page(found, out, top=top)
        if as_json:
            typer.echo(json.dumps(found.to_json()))
        elif out is not None:
            typer.echo(f"explanation: {out}")
        else:
            from laconic.explain.text import as_text

            typer.echo(as_text(found, width=find_width(), top=top))
