"""What holds for every method on every fleet, as claims that can be tried on any method: `laconic conform METHOD`."""

from laconic.conformance.claims import CLAIMS, Claim, try_claims
from laconic.conformance.small_runs import HARD, TWO_EACH, configure, make_data, read_all

__all__ = ["CLAIMS", "HARD", "TWO_EACH", "Claim", "configure", "make_data", "read_all", "try_claims"]
