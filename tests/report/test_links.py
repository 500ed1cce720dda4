"""Counted by hand from the figures that the page cites."""

import re
from functools import partial

import pytest
from made_runs import write_run

from laconic.report import read_run
from laconic.report.links import LINKS, estimate, lora, lora_frame_seconds
from laconic.report.page import build_page
from laconic.report.run import ClientBytes
from laconic.report.tables import format_duration, format_joules, group_runs
from laconic.report.traffic import add_up, plot_links

SF12, SF7, NB_IOT, TWO_G, FOUR_G = LINKS


def test_a_lora_frame_is_as_long_on_the_air_as_semtech_counts():
    # SF12, 64 bytes: 8 + 5 * ceil((512 - 48 + 44) / 40) = 73 symbols behind 12.25, of 32.768 ms each
    assert lora_frame_seconds(12, 64, has_checksum=True) == pytest.approx(85.25 * 0.032768)
    # SF7, 235 bytes: 8 + 5 * ceil((1880 - 28 + 44) / 28) = 348 symbols behind 12.25, of 1.024 ms each
    assert lora_frame_seconds(7, 235, has_checksum=True) == pytest.approx(360.25 * 0.001024)


def test_what_goes_down_by_lora_has_no_checksum_of_its_payload():
    # SF7, 14 bytes: 8 + 5 * ceil((112 - 28 + 44) / 28) = 33 symbols up, 8 + 5 * ceil((112 - 28 + 28) / 28) = 28 down
    assert estimate(SF7, {(1, 0): ClientBytes(1, 0)}).seconds[1] == pytest.approx(45.25 * 0.001024 * 100)
    assert estimate(SF7, {(1, 0): ClientBytes(0, 1)}).seconds[1] == pytest.approx(40.25 * 0.001024 * 10)


@pytest.mark.parametrize("has_checksum", [True, False])
def test_what_does_not_fit_a_frame_goes_in_several_each_with_its_header(has_checksum):
    on_air, frame = lora(7, 222, has_checksum=has_checksum), partial(lora_frame_seconds, 7, has_checksum=has_checksum)
    assert on_air(500) == pytest.approx(2 * frame(235) + frame(56 + 13))
    assert on_air(222) == pytest.approx(frame(235))
    assert on_air(0) == 0


def test_lorawan_waits_out_its_duty_cycle_but_spends_energy_on_the_air_alone():
    found = estimate(SF7, {(1, 0): ClientBytes(222, 222)})
    frame = 360.25 * 0.001024
    assert found.seconds == {1: pytest.approx(100 * frame + 10 * frame)}
    assert found.joules == {0: pytest.approx(frame * 3.3 * (0.029 + 0.0108))}


@pytest.mark.parametrize(
    ("link", "seconds", "joules"),
    [
        # 10 kB up, 20 kB down
        (NB_IOT, 80_000 / 62_500 + 160_000 * 0.026 / 680, 0.716 * 1.28 + 0.213 * 160_000 * 0.026 / 680),
        (TWO_G, 80_000 / 26_800 + 160_000 / 53_600, 30 * 0.036 + 1.7 + 1.5),
        (
            FOUR_G,
            0.2601 + 0.08 / 5.64 + 0.16 / 12.74,
            0.31490 + 12.27056 + 3.76056 * 0.08 / 5.64 + 1.95014 * 0.16 / 12.74,
        ),
    ],
)
def test_a_cellular_link_takes_what_its_rates_and_powers_come_to(link, seconds, joules):
    found = estimate(link, {(1, 0): ClientBytes(10_000, 20_000)})
    assert found.seconds[1] == pytest.approx(seconds, rel=1e-4)
    assert found.joules[0] == pytest.approx(joules, rel=1e-4)


def test_a_round_lasts_as_long_as_its_slowest_client_and_who_is_silent_takes_nothing():
    carried = {(1, 0): ClientBytes(6250, 0), (1, 1): ClientBytes(62_500, 0), (2, 0): ClientBytes(0, 0)}
    found = estimate(NB_IOT, carried)
    assert found.seconds == {1: pytest.approx(8.0)}
    assert found.joules == {0: pytest.approx(0.8 * 0.716), 1: pytest.approx(8 * 0.716)}


def test_time_so_far_is_that_of_all_rounds_up_to_one():
    assert add_up({0: 1.0, 2: 4.0, 3: 8.0}, [0, 1, 2, 9]) == [1.0, 1.0, 5.0, 13.0]


def test_the_page_says_which_figures_could_not_be_checked():
    assert all("not checked against its source" in link.source for link in LINKS)
    assert all("in the second window (869.525 MHz)" in link.down.words for link in (SF12, SF7))


def test_every_link_cites_its_figures_with_a_year():
    assert all(len(re.findall(r"\((19|20)\d\d\)", link.source)) >= 1 for link in LINKS)


def test_the_page_sets_accuracy_against_time_on_the_air_and_calls_it_an_estimate(tmp_path):
    silent, sender = write_run(tmp_path / "alone", method="local-tm"), write_run(tmp_path / "run")
    groups = group_runs([read_run(silent), read_run(sender)])
    figure = plot_links(groups)
    assert [view["label"] for view in figure.views] == [link.name for link in LINKS]
    (series,) = figure.views[2]["series"]
    assert series["colour"] == 1  # as everywhere else
    run = groups[1].runs[0]
    whole = sum(estimate(NB_IOT, run.sums.by_client_round).seconds.values())
    assert series["points"][-1][:2] == [4, pytest.approx(whole, rel=1e-5)]
    assert figure.tables[0].rows[2][:3] == ("NB-IoT", "fedtm", format_duration(whole))
    page = build_page([read_run(silent), read_run(sender)])
    assert "An estimate, not a measurement" in page
    assert "Balasubramanian et al., IMC (2009)" in page


def test_where_nothing_was_sent_nothing_is_said_of_bytes(tmp_path):
    page = build_page([read_run(write_run(tmp_path / "alone", method="local-tm"))])
    sections = set(re.findall(r'<section id="([^"]+)"', page))
    assert not sections & {"links", "fields", "stages", "bytes"}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0123, "12.3 ms"), (1.5, "1.5 s"), (90, "90 s"), (150, "2.5 min"), (7200, "2 h"), (3e5, "3.47 days")],
)
def test_durations_are_in_a_unit_of_which_there_are_some(seconds, text):
    assert format_duration(seconds) == text


def test_energy_is_in_a_unit_that_fits():
    assert [format_joules(value) for value in (0.0123, 3.456, 999.7, 1234)] == [
        "12.3 mJ",
        "3.46 J",
        "1000 J",
        "1.23 kJ",
    ]
