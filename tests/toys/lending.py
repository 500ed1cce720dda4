"""lending: FedTM whose clauses come whole from one of three donors each.

paper   none: an example of a method that is another with settings of its own
round   as FedTM's
sent    as FedTM's
"""

from typing import Literal

from laconic.algorithms.tsetlin.fed_tm import FedTM


class Lending(FedTM):
    name = "lending"

    merging: Literal["or", "lend"] = "lend"
    n_donors: int = 3
    epochs: int = 5
