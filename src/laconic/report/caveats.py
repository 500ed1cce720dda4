"""What a reader should know before trusting the numbers."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from laconic.records import ClientScore, Round

LEAST_TEST = 20  # examples; with fewer, one more right moves a client's accuracy by more than five points


def find_caveats(
    config: Mapping[str, Any],
    rounds: Sequence[Round],
    scores: Sequence[ClientScore],
    sent_by_round: Mapping[tuple[int, str], int],
) -> Iterator[str]:
    """scores: of the last evaluated round; sent_by_round: (round, direction) -> bytes in traffic.jsonl."""
    yield from find_untested(config)
    yield from find_lost(rounds)
    yield from find_small_tests(scores)
    yield from find_unequal_bytes(rounds, sent_by_round)


def find_untested(config: Mapping[str, Any]) -> Iterator[str]:
    if config["data"].get("tested") == "validation":
        yield "Accuracies are of validation examples, by which settings may have been chosen; none is of test examples."


def find_lost(rounds: Sequence[Round]) -> Iterator[str]:
    void = [str(r.round) for r in rounds if r.is_void]
    if void:
        some = ", ".join(void[:8]) + (f" and {len(void) - 8} more" if len(void) > 8 else "")
        yield f"Too few replies: {len(void)} of {len(rounds)} rounds were void ({some})."
    n_sampled, n_replied = sum(r.n_sampled for r in rounds), sum(r.n_replied for r in rounds)
    if n_replied < n_sampled:
        yield f"Lost replies: {n_sampled - n_replied} of {n_sampled} never arrived."
    if n_refused := sum(r.n_refused or 0 for r in rounds):
        yield f"Refused replies: {n_refused} were not what an honest client sends (events.log names them)."


def find_small_tests(scores: Sequence[ClientScore]) -> Iterator[str]:
    small = [score.n_test for score in scores if score.n_test < LEAST_TEST]
    if small:
        yield (
            f"Small test sets: {len(small)} of {len(scores)} clients have fewer than {LEAST_TEST} test examples "
            f"(the smallest {min(small)}), so their own accuracies, and p10, are coarse."
        )


def find_unequal_bytes(rounds: Sequence[Round], sent_by_round: Mapping[tuple[int, str], int]) -> Iterator[str]:
    for r in rounds:
        recorded = {"up": r.upload_bytes, "down": r.download_bytes, "peer": r.peer_bytes}
        for direction, n_bytes in recorded.items():
            if sent_by_round.get((r.round, direction), 0) != n_bytes:
                yield (
                    f"The records disagree: round {r.round} has {n_bytes} B {direction} in metrics.jsonl and "
                    f"{sent_by_round.get((r.round, direction), 0)} B in traffic.jsonl; by-field figures may be off."
                )
                return
