"""Rounds of FedAvg in Flower's simulator, one at a time when told: two Ray actors, a thread each."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterable
from multiprocessing.connection import Connection
from typing import Any

import torch

from laconic.bench.loops import N_CLIENTS, N_SAMPLED, draw_batches, train, write_network
from laconic.bench.networks import N_WORKERS, draw_images

PATIENCE_SECONDS = 30  # for Ray to go away


class FlowerRounds:
    def __init__(self, n_examples: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=simulate, args=(theirs, n_examples))
        self.process.start()
        theirs.close()

    def run(self) -> None:
        self.pipe.send(None)
        trouble = self.pipe.recv()
        if trouble is not None:
            raise RuntimeError(f"Flower's simulator stopped: {trouble}; leave it out with --against loop,serial")

    def close(self) -> None:
        self.pipe.close()
        self.process.join(PATIENCE_SECONDS)
        self.process.kill()


def simulate(pipe: Connection, n_examples: int) -> None:
    os.dup2(2, 1)  # Flower and Ray talk; what we print must stay readable
    os.environ |= {"FLWR_TELEMETRY_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    import ray
    from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
    from flwr.clientapp import ClientApp
    from flwr.serverapp import Grid, ServerApp
    from flwr.serverapp.strategy import FedAvg
    from flwr.simulation import run_simulation

    class TakingTurns(FedAvg):  # type: ignore[misc]
        def configure_train(self, *args: Any, **kwargs: Any) -> Iterable[Message]:
            try:
                pipe.recv()
            except EOFError:  # no more rounds
                ray.shutdown()
                os._exit(0)
            letters: Iterable[Message] = super().configure_train(*args, **kwargs)
            return letters

        def aggregate_train(self, *args: Any, **kwargs: Any) -> Any:
            merged = super().aggregate_train(*args, **kwargs)
            pipe.send(None)
            return merged

    server, client = ServerApp(), ClientApp()

    @server.main()  # type: ignore[untyped-decorator]
    def serve(grid: Grid, context: Context) -> None:
        first = [parameter.detach().numpy() for parameter in write_network().parameters()]
        strategy = TakingTurns(fraction_train=N_SAMPLED / N_CLIENTS, fraction_evaluate=0.0)
        strategy.start(grid, ArrayRecord(first), num_rounds=1 << 20)

    @client.train()  # type: ignore[untyped-decorator]
    def train_client(letter: Message, context: Context) -> Message:
        torch.set_num_threads(1)
        module = write_network().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        images, labels = draw_images(int(context.node_config["partition-id"]), n_examples)
        trained = train(module, letter.content["arrays"].to_numpy_ndarrays(), draw_batches(images, labels))
        reply = {"arrays": ArrayRecord(trained), "metrics": MetricRecord({"num-examples": n_examples})}
        return Message(RecordDict(reply), reply_to=letter)

    resources = {"client_resources": {"num_cpus": 1, "num_gpus": 0.0}, "init_args": {"num_cpus": N_WORKERS}}
    try:
        run_simulation(server, client, N_CLIENTS, backend_config=resources)
    except Exception as error:  # the server's thread would wait for ever
        pipe.send(str(error.__cause__ or error))
        os._exit(1)
