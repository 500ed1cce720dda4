"""What a measured figure says of a published one."""

from __future__ import annotations

from typing import Literal

from laconic.reproduce.published import Figure

Verdict = Literal["reached", "near", "missed", "refuted", "impossible", "not run"]
VERDICTS: tuple[Verdict, ...] = ("reached", "near", "missed", "refuted", "impossible", "not run")
NEAR_POINTS = 1.5
ROUNDED = 0.015  # points that printing may have cost
NEAR_BYTES = 1.05  # times as many

ONE_BIT = "one bit up and 32 down are 48.4 % less; no count of the method's own messages gives what is printed"
REFUTED = {  # figures that contradict others of their paper
    "pfed1bs:2:eden/mnist/less": ONE_BIT,
    "pfed1bs:2:fedbat/mnist/less": ONE_BIT,
    "fedpurin:3:fedcac/cifar100/0.1/up-before": (
        "18.91 MiB of weights and a bit for each of them are 19.50; what is printed adds a quarter of the mask"
    ),
}


def compare(figure: Figure, ours: float) -> tuple[Verdict, str]:
    """The verdict, and the gap in words."""
    gap = ours - figure.published
    if figure.unit in ("%", "% less", "points"):
        words = f"{gap:+.2f} points".replace("-", "−")
        return ("reached" if gap >= -ROUNDED else "near" if gap >= -NEAR_POINTS else "missed"), words
    if figure.unit == "clauses":
        return ("reached" if not gap else "near" if abs(gap) <= 2 else "missed"), f"{gap:+.0f} clauses"
    ratio = ours / figure.published  # of bytes, storage and variance the less the better
    if figure.unit == "variance":
        return ("reached" if ratio <= 1 else "missed"), f"{ratio:.2f} times as large"
    is_less = ours <= figure.published + half_a_digit(figure.published)
    return ("reached" if is_less else "near" if ratio <= NEAR_BYTES else "missed"), f"{ratio:.2f} times as many"


def half_a_digit(printed: float) -> float:
    """What printing may have cut off: 0.005 of 0.13."""
    _, _, decimals = f"{printed:g}".partition(".")
    return 0.5 / 10.0 ** len(decimals)
