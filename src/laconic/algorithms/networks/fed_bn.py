"""FedBN: one network for all, but for its batch normalisations, which fit each client's own inputs.

paper   FedBN: Federated Learning on Non-IID Features via Local Batch Normalization, 2021
round   sampled clients get all else, train everything and send how all else changed
merge   the mean change, by examples, is added
sent    down: what is no batch normalisation, to whom lacks the latest; up: its change
"""

from laconic.algorithm import Task
from laconic.algorithms.networks.shared_vector import SharedPart, Tested
from laconic.networks import Part, Spec, Training, find_part, layout


class FedBN(SharedPart):
    name = "fedbn"

    training: Training = Training(model="resnet-small")
    tested: Tested = "averaged"  # with the latest mean, or as last trained, before it was averaged

    def part(self, spec: Spec) -> Part:
        return find_part(spec, norms=False, statistics=False)

    def check_task(self, task: Task) -> None:
        super().check_task(task)
        if not any(piece.is_norm for piece in layout(self.choose_spec(task)).pieces):
            raise ValueError(
                f'method.training.model = "{self.training.model}" has no batch normalisation, so fedbn would be '
                "fedavg; choose resnet-small, resnet8 or vgg8, or run fedavg"
            )
