"""The live page in a real browser, beside a real run that is killed and resumed."""

import os
import signal
from pathlib import Path

import pytest
from followed import LIAR, N_ROUNDS, SMALL, Start

from browser import Page, open_browser
from laconic.live.clients import MOST_EVENTS
from laconic.records import Round, Times, log_event, read_lines

pytest.importorskip("starlette", reason='starlette is not installed: pip install "laconic-fl[web]"')

SHOTS = os.environ.get("LACONIC_SHOTS")  # a folder for pictures of the page, to look at


def shoot(page: Page, name: str) -> None:
    if SHOTS:
        page.shoot(Path(SHOTS) / f"{name}.png")


def drawn_rounds(page: Page) -> list[int]:
    """Of the run that is opened, as its table has them."""
    found = page.get(
        "[...document.querySelectorAll('#rounds-table tbody tr')].map((row) => Number(row.cells[0].textContent))"
    )
    return sorted(found)


def test_the_page_follows_a_run_through_a_kill_and_its_resumption(folder: Path, tmp_path: Path, start: Start) -> None:
    settings = [
        word
        for setting in [*SMALL, "rounds=100000", "checkpoint_every=100000", "seed=7"]
        for word in ("--set", setting)
    ]
    for _ in range(MOST_EVENTS + 50):
        log_event(folder, f"error[E210] round {N_ROUNDS}, client {LIAR}: reply to train refused once more")
    run = start("run", *settings, "--budget", "100kB", "--out", "runs/two", "--quiet")
    live = start("live", "runs")
    assert live.stdout is not None
    url = live.stdout.readline().strip()
    with open_browser(tmp_path) as page:
        # ---- load
        page.resize(1300)
        page.set_look()
        page.open(url)
        page.wait("document.querySelectorAll('#ended-list li').length === 1")  # the one that is over, beside
        page.wait("document.querySelector('.card .state')?.textContent === 'running'")
        page.wait("Number(document.querySelector('.card progress').value) >= 80")
        facts = dict(
            page.get(
                "[...document.querySelectorAll('.card dl div')].map((d) => [...d.children].map((e) => e.innerText))"
            )
        )
        assert facts["Budget left"].endswith(" of 100 kB")
        assert ", in " in facts["End foreseen"] or facts["End foreseen"] == "any moment"
        assert page.get("document.querySelector('#link').textContent") == "Following: 1 of 2 runs under way"
        page.wait("document.querySelectorAll('[data-figure=clients] .tile').length")
        assert page.get("document.querySelectorAll('[data-figure=accuracy] svg path.line').length") == 2

        # ---- the run is killed: it stands still, and its page says how to go on
        run.kill()
        run.wait()
        page.wait("document.querySelector('.card .state').textContent === 'stopped'")
        assert page.get("document.querySelector('#one-command code').textContent") == "laconic run --resume runs/two"
        page.click("#rounds-table summary")
        n_before = page.wait("document.querySelectorAll('#rounds-table tbody tr').length")
        assert n_before > 80
        shoot(page, "killed")

        # ---- hover, toggle, keyboard
        before = page.get("document.querySelector('[data-figure=accuracy] .plot').innerHTML")
        page.hover("[data-figure=clients] .plot svg", 0.01)
        assert page.wait(
            "!document.getElementById('tip').hidden && document.getElementById('tip').textContent"
        ).startswith("client 0")
        page.click("[data-figure=accuracy] .views label:nth-of-type(2)")
        assert page.get("document.querySelector('[data-figure=accuracy] .plot').innerHTML") != before
        assert "bytes so far" in page.get("document.querySelector('[data-figure=accuracy] .plot').textContent")
        page.click("#ended-list .drawn input")
        page.wait("document.querySelectorAll('[data-figure=accuracy] svg path.line').length === 1")
        page.get("document.querySelector('[data-figure=accuracy] .plot svg').focus()")
        page.press("ArrowLeft", "ArrowLeft")
        assert "fedtm · seed 7" in page.get("document.getElementById('tip').textContent")
        shoot(page, "keyboard")
        page.press("Escape", "Tab")
        assert page.get("document.getElementById('tip').hidden")
        page.get("document.querySelector('#ended-list .open').focus()")
        page.press("Enter")
        page.wait("document.querySelector('#one-title').textContent === 'fedtm on digits · seed 0'")
        page.wait("document.querySelectorAll('[data-figure=clients] .tile.refused').length === 1")
        note = page.wait(
            "!document.getElementById('events-note').hidden && document.getElementById('events-note').innerText"
        )
        assert note == f"50 more replies were refused in round {N_ROUNDS}; they stand in events.log."
        shoot(page, "refused")
        page.get("document.querySelector('.card .open').focus()")
        page.press(" ")
        page.wait("document.querySelector('#one-title').textContent === 'fedtm on digits · seed 7'")

        # ---- it goes on from its checkpoint, which is that of the start: all rounds are played again
        again = start("run", "--resume", "runs/two", "--quiet")
        page.wait("document.querySelector('.card .state').textContent === 'running'")
        page.wait(f"document.querySelectorAll('#rounds-table tbody tr').length < {n_before}")
        page.wait(f"document.querySelectorAll('#rounds-table tbody tr').length > {n_before}")
        shown = drawn_rounds(page)
        assert shown == [*range(len(shown))]  # none twice
        again.send_signal(signal.SIGINT)
        again.wait()
        page.wait("document.querySelector('.card .state').textContent === 'stopped'")
        times, rounds = (list(read_lines(tmp_path / "runs" / "two", kind)) for kind in (Times, Round))
        page.wait(f"document.querySelectorAll('#rounds-table tbody tr').length === {len(times)}")
        last = page.get("document.querySelector('#rounds-table tbody tr').cells[1].textContent")
        assert last == f"{100 * rounds[len(times) - 1].accuracy_mean:.1f}"

        # ---- a phone at night, and one who wants nothing to move
        page.resize(400)
        page.set_look(is_dark=True, is_still=True)
        page.wait("document.querySelector('[data-figure=accuracy] .plot svg').clientWidth <= 400")
        assert page.get("document.documentElement.scrollWidth") <= 400
        assert page.get("getComputedStyle(document.body).backgroundColor") == "rgb(20, 22, 26)"
        assert page.get("getComputedStyle(document.documentElement).scrollBehavior") == "auto"
        shoot(page, "phone")

        # ---- the server goes, and the page says so
        assert page.errors == []
        assert page.get("document.documentElement.dataset.error") is None
        live.send_signal(signal.SIGINT)
        live.wait()
        page.wait("document.querySelector('#link').textContent.startsWith('laconic live does not answer')")
