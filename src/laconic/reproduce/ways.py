"""Where a figure's recipe is found."""

from __future__ import annotations

from laconic.reproduce.papers import cs_pfedtm, fedpurin, fedtm, pbfl, pfed1bs
from laconic.reproduce.published import Figure
from laconic.reproduce.recipe import Scale, Way

PAPERS = {
    "cs-pfedtm": cs_pfedtm.find_way,
    "fedpurin": fedpurin.find_way,
    "pbfl": pbfl.find_way,
    "fedtm": fedtm.find_way,
    "pfed1bs": pfed1bs.find_way,
}


def find_way(figure: Figure) -> Way:
    return PAPERS[figure.paper](figure)


def name_command(figure: Figure, scale: Scale = "paper", seeds: int = 3) -> str:
    return f"laconic reproduce {figure.name} --scale {scale} --seeds {seeds}"
