"""What the settings of many methods on networks need: the network they choose, and checks of their training."""

import json

from laconic.algorithm import ClientId, Task
from laconic.networks import Spec, Training, layout
from laconic.networks.precision import DTYPES


def choose_spec(
    task: Task, training: Training, models: tuple[str, ...] = (), n_features: int = 0, client: ClientId = 0
) -> Spec:
    """models: taken by clients in turn, all of them ending in n_features; none: training.model."""
    model = models[client % len(models)] if models else training.model
    return Spec(
        model,
        task.input_shape,
        task.n_classes,
        task.peak,
        training.head,
        n_features,
        training.floor,
        training.start,
    )


def check_networks(task: Task, training: Training, models: tuple[str, ...], n_features: int) -> None:
    """ValueError if one of the networks that clients take in turn cannot take the task's examples."""
    for client in range(max(1, len(models))):
        layout(choose_spec(task, training, models, n_features, client))


def check_bits(training: Training, **unused: str) -> None:
    """Of a method that sends bits up; unused: other settings that it cannot heed, and why."""
    check_local(training, "bits tell nothing of a mean or a variance")
    check_unused(training, up="what goes up are bits", **unused)


def check_unused(training: Training, **unused: str) -> None:
    """Refuses what would otherwise be set to no effect."""
    for name, why in unused.items():
        given, due = (json.dumps(getattr(settings, name)) for settings in (training, Training()))
        if given != due:
            raise ValueError(f"method.training.{name} = {given} must be left at {due}: {why}")


def check_local(training: Training, why: str) -> None:
    if training.shares_statistics:
        raise ValueError(f'method.training.statistics = "{training.statistics}" must be "local": {why}')


def check_precision(training: Training) -> None:
    for name in ("up", "down"):
        if getattr(training, name) not in DTYPES:
            raise ValueError(
                f'method.training.{name} = "{getattr(training, name)}": what is sent here has no rows to scale by; '
                f"choose {' or '.join(DTYPES)}"
            )
