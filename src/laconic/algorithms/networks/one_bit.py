"""What methods that send signs in place of changes do alike."""

import json
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from laconic.aggregate import Averaging
from laconic.algorithm import ClientId
from laconic.algorithms.networks.averaging import Shared, Update, find_part, merge
from laconic.networks import Part, Spec, Training, Vector


def check_training(training: Training, **unused: str) -> None:
    """unused: settings that the method cannot heed, and why."""
    check_statistics(training)
    check_unused(training, up="what goes up are bits", **unused)


def check_unused(training: Training, **unused: str) -> None:
    """Refuses what would otherwise be set to no effect."""
    for name, why in unused.items():
        given, due = (json.dumps(getattr(settings, name)) for settings in (training, Training()))
        if given != due:
            raise ValueError(f"method.training.{name} = {given} must be left at {due}: {why}")


def check_statistics(training: Training) -> None:
    if training.statistics != "local":
        raise ValueError(
            f'method.training.statistics = "{training.statistics}" must be "local": '
            "bits tell nothing of a mean or a variance"
        )


def trained_part(spec: Spec) -> Part:
    """All but the statistics of batch normalisation."""
    return find_part(spec, statistics=False)


def merge_changes(
    shared: Shared, changes: Mapping[ClientId, tuple[Vector, int]], part: Part, how: Averaging = "mean"
) -> None:
    """Adds the mean of the changes as the server made them out, by examples: (change, n_examples) each."""
    merge(shared, {client: Update(change, None, None, n) for client, (change, n) in changes.items()}, part, how=how)


def as_numbers(signs: NDArray[np.bool_]) -> Vector:
    return np.where(signs, np.float32(1), np.float32(-1))
