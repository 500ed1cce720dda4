"""FedPer: one body for all, a head for each.

paper   Federated Learning with Personalization Layers, 2019
round   sampled clients get the body, train it together with their own head and send how the body changed
merge   the mean change, by examples, is added
sent    down: the body, to whom lacks the latest; up: its change
"""

from laconic.algorithms.networks.shared_vector import SharedPart, Tested
from laconic.networks import Part, Spec, Training, find_part


class FedPer(SharedPart):
    name = "fedper"

    training: Training = Training()
    tested: Tested = "averaged"  # with the latest mean, or as last trained, before it was averaged

    def part(self, spec: Spec) -> Part:
        return find_part(spec, head=False, statistics=self.training.shares_statistics)
