"""What holds for every method on every fleet; a file with a method in it brings it in here."""

from pathlib import Path

import pytest

from laconic.algorithms import METHODS, load_method
from laconic.conformance import CLAIMS, TWO_EACH, Claim, configure, make_data, read_all
from laconic.fleets import FLEETS
from laconic.runs.run import run

TOYS = ("mean_label:MeanLabel", "rumour:Rumour", "lending:Lending")
HEEDFUL = [name for name in METHODS if len(load_method(name).averagings) > 1]


@pytest.fixture(autouse=True)
def _fleet_can_run(request: pytest.FixtureRequest) -> None:
    if request.node.callspec.params.get("fleet") == "ray":
        request.getfixturevalue("ray_nodes")


@pytest.mark.parametrize("method", [*METHODS, *TOYS])
@pytest.mark.parametrize("fleet", FLEETS)
@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.__name__)
def test_every_method_keeps_on_every_fleet(claim: Claim, fleet: str, method: str, tmp_path: Path) -> None:
    claim(method, fleet, tmp_path)


@pytest.mark.parametrize("method", HEEDFUL)
def test_a_mean_is_taken_as_the_setting_says(method: str, tmp_path: Path) -> None:
    data, found = make_data(tmp_path, TWO_EACH), []
    for averaging in ("mean", load_method(method).averagings[-1]):
        sums = ["method.ppa=false"] if method == "fedproto" else []  # which are no means
        run(configure(method, "local", data, f"fleet.averaging={averaging}", *sums), tmp_path / averaging)
        files = read_all(tmp_path / averaging)
        found.append({name: data for name, data in files.items() if name.endswith(".safetensors")})
    assert found[0].keys() == found[1].keys()
    assert found[0] != found[1]
