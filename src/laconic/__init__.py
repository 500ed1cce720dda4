"""Laconic: personalised federated learning in few bytes."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Imported when first asked for: a Tsetlin Machine takes Numba along, an estimator scikit-learn.
_HOMES = {
    "ClientModel": "laconic.client_model",
    "CoalescedTsetlinClassifier": "laconic.tsetlin.estimators",
    "Comparison": "laconic.results",
    "FederatedClassifier": "laconic.federated",
    "Run": "laconic.results",
    "TsetlinClassifier": "laconic.tsetlin.estimators",
    "check": "laconic.api",
    "compare": "laconic.api",
    "load": "laconic.client_model",
    "load_run": "laconic.api",
    "run": "laconic.api",
    "simulate": "laconic.simulation",
}
if TYPE_CHECKING:
    from laconic.api import check, compare, load_run, run
    from laconic.client_model import ClientModel, load
    from laconic.federated import FederatedClassifier
    from laconic.results import Comparison, Run
    from laconic.simulation import simulate
    from laconic.tsetlin.estimators import CoalescedTsetlinClassifier, TsetlinClassifier

__all__ = [
    "ClientModel",
    "CoalescedTsetlinClassifier",
    "Comparison",
    "FederatedClassifier",
    "Run",
    "TsetlinClassifier",
    "__version__",
    "check",
    "compare",
    "load",
    "load_run",
    "run",
    "simulate",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'laconic' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
