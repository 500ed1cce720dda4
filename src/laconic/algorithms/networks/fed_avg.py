"""FedAvg: one network for all, the mean of what each client makes of it.

paper   Communication-Efficient Learning of Deep Networks from Decentralized Data, 2017
round   sampled clients get the network, train it on their own examples and send how it changed
merge   the mean change, by examples, is added
sent    down: the network, to whom lacks the latest; up: its change
"""

from laconic.algorithms.networks.shared_vector import SharedPart, Tested
from laconic.networks import Training


class FedAvg(SharedPart):
    """Nothing but the shape: the shared part is the whole network."""

    name = "fedavg"

    training: Training = Training()
    tested: Tested = "averaged"  # with the latest mean, or as last trained, before it was averaged
