"""Rounds told to programs that draw curves: `laconic.run(..., on_round=TensorBoard("logs"))`."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from laconic.records import Round


def list_numbers(row: Round) -> dict[str, float]:
    """What of a round's record is a number."""
    found = {key: value for key, value in asdict(row).items() if key != "round"}
    return {key: float(value) for key, value in found.items() if isinstance(value, int | float)}


class TensorBoard:
    """Event files in a folder, for  tensorboard --logdir FOLDER."""

    def __init__(self, folder: str | Path) -> None:
        try:
            from tensorboard.summary.writer.event_file_writer import EventFileWriter
        except ImportError as error:
            raise ImportError(f'TensorBoard needs {error.name}.  pip install "laconic-fl[loggers]"') from None
        self._writer = EventFileWriter(str(folder))

    def __call__(self, row: Round) -> None:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary

        values = [Summary.Value(tag=tag, simple_value=number) for tag, number in list_numbers(row).items()]
        self._writer.add_event(Event(step=row.round, wall_time=time.time(), summary=Summary(value=values)))
        self._writer.flush()


class MLflow:
    """Metrics of the run that is active in MLflow, or of a new one; where to is MLflow's own setting."""

    def __init__(self) -> None:
        try:
            import mlflow
        except ImportError as error:
            raise ImportError(f'MLflow needs {error.name}.  pip install "laconic-fl[loggers]"') from None
        self._log: Any = mlflow.log_metrics

    def __call__(self, row: Round) -> None:
        self._log(list_numbers(row), step=row.round)


class WandB:
    """History of the run that is active in W&B, or of a new one: that stays here until  wandb sync  sends it off.

    words: of wandb.init, for a new one.
    """

    def __init__(self, **words: Any) -> None:
        try:
            import wandb
        except ImportError as error:
            raise ImportError(f'WandB needs {error.name}.  pip install "laconic-fl[loggers]"') from None
        self._run: Any = wandb.run or wandb.init(**({"project": "laconic", "mode": "offline"} | words))

    def __call__(self, row: Round) -> None:
        self._run.log(list_numbers(row), step=row.round)
