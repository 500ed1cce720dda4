"""`laconic demo`: learning together against learning alone on scikit-learn's digits, in bytes and in rules."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from laconic.algorithms.tsetlin.own_model import OwnModel

METHODS = ("local-tm", "fedtm", "clausepool")
SETTINGS = (
    *("rounds=10", "data.name=digits", "data.clients=10", "data.partition=dirichlet", "data.alpha=0.1"),
    *("method.n_clauses=100", "method.threshold=150", "local-tm.epochs=10", "fedtm.epochs=10"),
    "local-tm.own_negatives=true",  # as clausepool's machines have it
)
N_SHOWN = 3  # rules
LEAST_PRECISION = 0.9  # of a rule worth showing


def demo() -> None:
    """Prints a comparison and a few rules; progress goes to stderr."""
    typer.echo("loading, and compiling for this CPU (slow the first time only)", err=True)
    from laconic.console import carry_out
    from laconic.runs.plan import plan_comparison

    out = Path("runs") / f"demo-{datetime.now():%Y-%m-%d_%H%M%S}"
    plan = plan_comparison(METHODS, None, SETTINGS, (), out)
    carry_out(plan, as_json=False, quiet=False, as_list=True)
    show_rules(out / METHODS[-1], client=0)


def show_rules(folder: Path, client: int) -> None:
    from laconic.runs.config import read_config
    from laconic.runs.prepare import prepare
    from laconic.tsetlin.machine import clause_outputs
    from laconic.tsetlin.picture import clause_text
    from laconic.tsetlin.rules import Evidence, Flag, read_rules

    config, own = read_config(folder / "config.toml"), read_own_model(folder, client)
    machine = own.machine  # a bank for each class that the client holds
    prepared = prepare(config)
    examples, _, _ = prepared.source.at(client, config.rounds)
    evidence = Evidence.count(clause_outputs(machine, examples.x), own.places(examples.y), machine.n_classes)
    bits = [Flag(f"bit {k}") for k in range(machine.shape.n_pixels)]
    every = read_rules(machine, [prepared.dataset.classes[label] for label in own.classes], bits, evidence)
    rules = [rule for rule in every if rule.is_for and rule.precision > LEAST_PRECISION]
    rules.sort(key=lambda rule: rule.support)
    shown = list({rule.label: rule for rule in rules}.values())[-N_SHOWN:]  # at most one of each digit
    typer.echo(f"\nRules of client {client}. Fuller cells want more ink, dots none, blank ones take any.")
    typer.echo("Support and precision are those on its own training images.\n")
    width = 2 * machine.shape.width + 2  # of a picture; where in the image it may lie needs no telling here
    columns = [
        [
            *(f"digit {rule.label}", f"support {rule.support:.2f}", f"precision {rule.precision:.2f}"),
            *clause_text(machine, rule.bank, rule.clause).splitlines(),
        ]
        for rule in shown
    ]
    for cells in zip(*columns, strict=True):
        typer.echo("   ".join(f"{cell[:width]:{width}}" for cell in cells).rstrip())


def read_own_model(folder: Path, client: int) -> OwnModel:
    """Out of the checkpoint of a finished run."""
    from laconic.algorithm import state_type
    from laconic.runs.config import read_config
    from laconic.state import thaw

    manifest = json.loads((folder / "checkpoints" / "manifest.json").read_text("utf-8"))
    frozen = (folder / "checkpoints" / manifest["clients"][str(client)]).read_bytes()
    method = type(read_config(folder / "config.toml").method)
    own: OwnModel = thaw(frozen, {"state": state_type(method, "client")})["state"].own
    return own
