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
            "fedper",
            "networks",
            "laconic.algorithms.networks.fed_per:FedPer",
            "Federated Learning with Personalization Layers, 2019",
            "down: the body; up: how training changed it",
            "nn",
        ),
        Method(
            "fedbn",
            "networks",
            "laconic.algorithms.networks.fed_bn:FedBN",
            "FedBN: Federated Learning on Non-IID Features via Local Batch Normalization, 2021",
            "down: all but batch normalisations; up: how training changed it",
            "nn",
        ),
        Method(
            "lg-fedavg",
            "networks",
            "laconic.algorithms.networks.lg_fedavg:LGFedAvg",
            "Think Locally, Act Globally: Federated Learning with Local and Global Representations, 2020",
            "down: the head; up: how training changed it",
            "nn",
        ),
        Method(
            "fedrep",
            "networks",
            "laconic.algorithms.networks.fed_rep:FedRep",
            "Exploiting Shared Representations for Personalized Federated Learning, 2021",
            "down: the body; up: how training changed it",
            "nn",
        ),
        Method(
            "fedbabu",
            "networks",
            "laconic.algorithms.networks.fed_babu:FedBABU",
            "FedBABU: Towards Enhanced Representation for Federated Image Classification, 2022",
            "down: the body; up: how training changed it",
            "nn",
        ),
        Method(
            "fedavg-ft",
            "networks",
            "laconic.algorithms.networks.fed_avg_ft:FedAvgFT",
            "none: FedAvg, then local fine-tuning (FedAvg++)",
            "down: the network; up: how training changed it",
            "nn",
        ),
        Method(
            "ditto",
            "networks",
            "laconic.algorithms.networks.ditto:Ditto",
            "Ditto: Fair and Robust Federated Learning Through Personalization, 2021",
            "down: the network; up: how training changed it",
            "nn",
        ),
        Method(
            "pfedme",
            "networks",
            "laconic.algorithms.networks.pfedme:PFedMe",
            "Personalized Federated Learning with Moreau Envelopes, 2020",
            "down: the network; up: how training changed it",
            "nn",
        ),
        Method(
            "pfedsd",
            "networks",
            "laconic.algorithms.networks.pfedsd:PFedSD",
            "Personalized Edge Intelligence via Federated Self-Knowledge Distillation, 2022",
            "down: the network; up: how training changed it",
            "nn",
        ),
        Method(
            "fedpac",
            "networks",
            "laconic.algorithms.networks.fed_pac:FedPAC",
            "Personalized Federated Learning with Feature Alignment and Classifier Collaboration, 2023",
            "down: body, prototypes, head; up: the body's change, head, prototypes, mean features",
            "nn",
        ),
        Method(
            "pfedfda",
            "networks",
            "laconic.algorithms.networks.pfedfda:PFedFDA",
            "pFedFDA: Personalized Federated Learning via Feature Distribution Adaptation, 2024",
            "down: body, class means, covariance; up: the body's change, class means, covariance",
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
        Method(
            "pfed1bs",
            "networks",
            "laconic.algorithms.networks.pfed_1bs:PFed1BS",
            "pFed1BS: Personalized Federated Learning with Bidirectional Communication Compression via One-Bit Random "
            "Sketching, 2026",
            "up: the signs of a sketch of a client's own network; down: their majority",
            "nn",
        ),
        Method(
            "obda",
            "networks",
            "laconic.algorithms.networks.obda:OBDA",
            "One-Bit Over-the-Air Aggregation for Communication-Efficient Federated Edge Learning, 2021",
            "up: signs of a gradient; down: their majority",
            "nn",
        ),
        Method(
            "obcsaa",
            "networks",
            "laconic.algorithms.networks.obcsaa:OBCSAA",
            "1-Bit Compressive Sensing for Efficient Federated Learning Over the Air, 2021",
            "up: signs of a sketch of a change's largest entries; down: the network",
            "nn",
        ),
        Method(
            "zsignfed",
            "networks",
            "laconic.algorithms.networks.zsign_fed:ZSignFed",
            "z-SignFedAvg: A Unified Stochastic Sign-Based Compression for Federated Learning, 2024",
            "up: signs of a change after noise; down: the network",
            "nn",
        ),
        Method(
            "eden",
            "networks",
            "laconic.algorithms.networks.eden:Eden",
            "EDEN: Communication-Efficient and Robust Distributed Mean Estimation for Federated Learning, 2022",
            "up: a rotated change in 1 to 4 bits an entry; down: the network",
            "nn",
        ),
        Method(
            "fedbat",
            "networks",
            "laconic.algorithms.networks.fed_bat:FedBAT",
            "FedBAT: Communication-Efficient Federated Learning via Learnable Binarization, 2024",
            "up: signs of a change, a size for each layer; down: the network",
            "nn",
        ),
        Method(
            "bifl-full",
            "networks",
            "laconic.algorithms.networks.bifl_full:BiFLFull",
            "Communication-Efficient Federated Learning With Binary Neural Networks, 2021",
            "down: the latent weights of a binary network; up: how training changed them",
            "nn",
        ),
        Method(
            "bifl-updown",
            "networks",
            "laconic.algorithms.networks.bifl_up_down:BiFLUpDown",
            "Communication-Efficient Federated Learning With Binary Neural Networks, 2021",
            "up: a binary network; down: the majority",
            "nn",
        ),
        Method(
            "bifl-ml",
            "networks",
            "laconic.algorithms.networks.bifl_ml:BiFLML",
            "Communication-Efficient Federated Learning With Binary Neural Networks, 2021",
            "up: a binary network; down: the votes for each weight",
            "nn",
        ),
    )
}


# Methods whose server takes no mean but what fleet.averaging says; all others refuse to be told.
ROBUST = ("mean", "clipped", "trimmed", "median")
AVERAGINGS = {"clausepool": ("mean", "clipped")} | dict.fromkeys(
    (
        *("fedtm", "cs-pfedtm", "tpfl"),
        *("fedavg", "fedavg-ft", "fedper", "fedrep", "fedbabu", "fedbn", "lg-fedavg", "ditto", "pfedme", "pfedsd"),
        *("fedpurin", "fedcac", "spafl", "fedproto", "feddistill", "fml", "fedkd"),
        *("zsignfed", "eden", "fedbat", "bifl-full"),
    ),
    ROBUST,
)


def load_method(name: str) -> "type[Algorithm]":
    """Imports a method of METHODS."""
    module, _, class_name = METHODS[name].where.partition(":")
    found: type[Algorithm] = getattr(import_module(module), class_name)
    return found
