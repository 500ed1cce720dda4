"""The one list of methods. A line here adds a method to the command line, the tests and the documentation."""

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from laconic.algorithm import Algorithm


@dataclass(frozen=True)
class Method:
    name: str
    family: str  # tsetlin or networks
    where: str  # module:Class
    paper: str
    travels: str
    extra: str = ""  # what to install beside the core: pip install "laconic[extra]"


METHODS = {
    method.name: method
    for method in (
        Method(
            "local-tm",
            "tsetlin",
            "laconic.algorithms.tsetlin.local_tm:LocalTM",
            "none: the control without sharing",
            "nothing",
        ),
        Method(
            "fedtm",
            "tsetlin",
            "laconic.algorithms.tsetlin.fed_tm:FedTM",
            "FedTM: Memory and Communication Efficient Federated Learning with Tsetlin Machine, 2023",
            "up: clause weights, and include bits from the 2 clients richest in a class; down: the merged machine",
        ),
        Method(
            "cs-pfedtm",
            "tsetlin",
            "laconic.algorithms.tsetlin.cs_pfedtm:CSpFedTM",
            "CS-pFedTM: Communication-Efficient and Similarity-Based Personalized Federated Learning with Tsetlin "
            "Machine",
            "first, up: which clauses of a small machine are used; then, up: weights of the shared machine, and its "
            "include bits from the 2 best clients; down: the merged one",
        ),
        Method(
            "tpfl",
            "tsetlin",
            "laconic.algorithms.tsetlin.tpfl:TPFL",
            "TPFL: Tsetlin-Personalized Federated Learning with Confidence-Based Clustering, 2024",
            "up: the class a client is surest of and its clause weights; down: the mean of those who named that class",
        ),
        Method(
            "clausepool",
            "tsetlin",
            "laconic.algorithms.tsetlin.clause_pool:ClausePool",
            "none: Laconic's own, see docs/methods/clausepool.md",
            "up: a few clauses once, then 4-bit changes of a linear head; down: everyone's clauses once, then the head",
        ),
        Method(
            "separate",
            "networks",
            "laconic.algorithms.networks.separate:Separate",
            "none: the control without sharing",
            "nothing",
            "nn",
        ),
        Method(
            "fedavg",
            "networks",
            "laconic.algorithms.networks.fed_avg:FedAvg",
            "Communication-Efficient Learning of Deep Networks from Decentralized Data, 2017",
            "down: the network; up: how training changed it",
            "nn",
        ),
        Method(
            "fedpurin",
            "networks",
            "laconic.algorithms.networks.fed_purin:FedPURIN",
            "FedPURIN: Programmed Update and Reduced INformation for Sparse Personalized Federated Learning, 2025",
            "up: the critical half of the parameters and where they are; down: the mix, where it is not 0",
            "nn",
        ),
        Method(
            "fedcac",
            "networks",
            "laconic.algorithms.networks.fed_cac:FedCAC",
            "Bold but Cautious: Unlocking the Potential of Personalized Federated Learning through Cautiously "
            "Aggressive Collaboration, 2023",
            "up: the network, and which half of it is critical; down: the mix",
            "nn",
        ),
        Method(
            "fedselect",
            "networks",
            "laconic.algorithms.networks.fed_select:FedSelect",
            "FedSelect: Personalized Federated Learning with Customized Selection of Parameters for Fine-Tuning, 2024",
            "down and up: the parameters that are still shared with the client, fewer every few rounds",
            "nn",
        ),
        Method(
            "dispfl",
            "networks",
            "laconic.algorithms.networks.dispfl:DisPFL",
            "DisPFL: Towards Communication-Efficient Personalized Federated Learning via Decentralized Sparse "
            "Training, 2022",
            "to each neighbour: the kept half of the parameters and where they are",
            "nn",
        ),
        Method(
            "spafl",
            "networks",
            "laconic.algorithms.networks.spafl:SpaFL",
            "SpaFL: Communication-Efficient Federated Learning with Sparse Models and Low Computational Overhead, 2024",
            "up and down: a threshold for each filter or neuron",
            "nn",
        ),
        Method(
            "fedproto",
            "networks",
            "laconic.algorithms.networks.fed_proto:FedProto",
            "FedProto: Federated Prototype Learning across Heterogeneous Clients, 2022; sparse and private prototypes",
            "up: mean features of each class held, some dimensions with cps_dims; down: their means over clients",
            "nn",
        ),
        Method(
            "fedtgp",
            "networks",
            "laconic.algorithms.networks.fed_tgp:FedTGP",
            "FedTGP: Trainable Global Prototypes with Adaptive-Margin-Enhanced Contrastive Learning, 2024",
            "up: mean features of each class held, some dimensions with cps_dims; down: targets trained at the server",
            "nn",
        ),
        Method(
            "feddistill",
            "networks",
            "laconic.algorithms.networks.fed_distill:FedDistill",
            "Federated Knowledge Distillation, 2020",
            "up: mean logits of each class held; down: their means over clients",
            "nn",
        ),
        Method(
            "fml",
            "networks",
            "laconic.algorithms.networks.fml:FML",
            "Federated Mutual Learning, 2020",
            "both ways: a network that all clients train beside their own",
            "nn",
        ),
        Method(
            "fedkd",
            "networks",
            "laconic.algorithms.networks.fed_kd:FedKD",
            "Communication-efficient federated learning via knowledge distillation, 2022",
            "both ways: a network that all clients train beside their own, as thin matrices",
            "nn",
        ),
    )
}


def load_method(name: str) -> "type[Algorithm]":
    """Imports a method of METHODS."""
    module, _, class_name = METHODS[name].where.partition(":")
    found: type[Algorithm] = getattr(import_module(module), class_name)
    return found
