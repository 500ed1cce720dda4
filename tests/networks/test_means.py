import numpy as np

from laconic.aggregate import average
from laconic.networks.means import BLOCK, average_some_of


def test_average_some_of_are_to_the_bit_those_of_each_choice_alone() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(5, 2 * BLOCK + 3)).astype(np.float32)
    vectors[:, :7] = -0.0
    joins = rng.random((4, 5)) < 0.5
    joins[:, 0], joins[0] = True, True
    for mean, some in zip(average_some_of(vectors, joins), joins, strict=True):
        alone = average(list(vectors[some]), [1] * int(some.sum())).astype(np.float32)
        assert mean.tobytes() == alone.tobytes()
