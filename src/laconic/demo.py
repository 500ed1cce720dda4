"""`laconic demo`: learning together against learning alone on scikit-learn's digits, in bytes and in rules."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import typer

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
    from laconic.console import find_width
    from laconic.explain.explanation import explain_model
    from laconic.explain.text import HOW_TO_READ, draw_rules
    from laconic.runs.client_models import read_client

    model = read_client(folder, client)
    found = explain_model(model, evidence=model.find_evidence())
    rules = [rule for rule in found.rules if rule.is_for and rule.precision > LEAST_PRECISION]
    rules.sort(key=lambda rule: rule.support)
    shown = list({rule.label: rule for rule in rules}.values())[-N_SHOWN:]  # at most one of each digit
    typer.echo(f"\nRules of client {client}. {HOW_TO_READ}")
    typer.echo("Support and precision are those on its own training images.\n")
    blocks = [
        (rule, [f"digit {rule.label}", f"support {rule.support:.2f}", f"precision {rule.precision:.2f}"])
        for rule in shown
    ]
    for line in draw_rules(found, blocks, find_width()):
        typer.echo(line)
