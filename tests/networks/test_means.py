import numpy as np

from laconic.aggregate import mean_of
from laconic.networks.means import BLOCK, means_of_some


def test_means_of_some_are_to_the_bit_those_of_each_choice_alone() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(5, 2 * BLOCK + 3)).astype(np.float32)
    vectors[:, :7] = -0.0
    joins = rng.random((4, 5)) < 0.5
    joins[:, 0], joins[0] = True, True
    for mean, some in zip(means_of_some(vectors, joins), joins, strict=True):
        alone = mean_of(list(vectors[some]), [1] * int(some.sum())).astype(np.float32)
        assert mean.tobytes() == alone.tobytes()
