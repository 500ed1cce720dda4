"""Laconic: personalised federated learning in few bytes."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0.dev0"

# Imported when first asked for: a Tsetlin Machine takes Numba along, an estimator scikit-learn.
_HOMES = {
    "TsetlinClassifier": "laconic.tsetlin.estimators",
    "CoalescedTsetlinClassifier": "laconic.tsetlin.estimators",
    "FederatedClassifier": "laconic.federated",
    "simulate": "laconic.simulation",
}
__all__ = ["CoalescedTsetlinClassifier", "FederatedClassifier", "TsetlinClassifier", "__version__", "simulate"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'laconic' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
