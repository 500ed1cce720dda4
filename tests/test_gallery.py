"""Clauses on the page of a report, as its commands hand them over."""

import re
import shutil
from pathlib import Path

import pytest

from clinics import write_clinics
from laconic.gallery import MOST_EXAMPLES, N_CLIENTS, N_RULES, report
from laconic.report import read_runs
from laconic.runs.config import read_config
from laconic.runs.run import run

FEW = ["rounds=1", "method.n_clauses=10", "method.threshold=20", "method.epochs=2"]


def run_small(folder: Path, *settings: str) -> Path:
    run(read_config(None, [*FEW, *settings]), folder)
    return folder


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_small(tmp_path_factory.mktemp("gallery") / "digits", "method.name=local-tm", "data.clients=5")


@pytest.fixture(scope="module")
def clinics(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("gallery")
    table = write_clinics(home / "clinics.csv", 300)
    data = [f"data.name={table}", "data.label=finding", "data.group=clinic"]
    return run_small(home / "run", "method.name=fedtm", *data)


def read_section(folder: Path, out: Path, clients: list[str] | None = None) -> str:
    report(read_runs([folder]), out, clients)
    found = re.search(r'<section id="clauses".*?</section>', out.read_text("utf-8"), re.DOTALL)
    return found[0] if found else ""


def test_clauses_of_images_are_pictures_of_who_does_worst_best_and_between(digits: Path, tmp_path: Path) -> None:
    section = read_section(digits, tmp_path / "page.html")
    shares = [float(share) for share in re.findall(r"<h3[^>]*>Client \d+ · accuracy ([\d.]+) %", section)]
    assert len(shares) == N_CLIENTS
    assert shares == sorted(shares)
    assert section.count('<li class="rule') == section.count('src="data:image/png;base64,') == N_CLIENTS * N_RULES
    assert section.count("<dt>precision</dt>") == N_CLIENTS * N_RULES
    assert "data:" not in re.sub(r'src="data:image/png;base64,[\w+/=]+"', "", section)


def test_clauses_of_tables_are_rules_in_the_words_of_the_columns(clinics: Path, tmp_path: Path) -> None:
    section = read_section(clinics, tmp_path / "page.html", ["north"])
    assert re.findall(r"<h3[^>]*>Client (\w+) · accuracy", section) == ["north"]
    assert re.search(r"IF .*\b(age|dose|eyes)\b", section)
    assert "<img" not in section


def test_a_clinic_goes_by_its_name_all_over_the_page(clinics: Path, tmp_path: Path) -> None:
    report(read_runs([clinics]), tmp_path / "page.html", [])
    text = (tmp_path / "page.html").read_text("utf-8")
    assert "<td class=w data-v=1>north" in text
    assert '"across":["east","north","south"]' in text
    assert re.search(r'"dots":\[\["east",', text)
    assert "partition natural by clinic" in text


def test_nobodys_clauses_are_shown_where_none_are_wanted(digits: Path, tmp_path: Path) -> None:
    assert read_section(digits, tmp_path / "page.html", []) == ""


def test_a_client_that_is_not_there_is_refused_and_no_page_written(digits: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="client is '77'"):
        report(read_runs([digits]), tmp_path / "page.html", ["77"])
    assert not (tmp_path / "page.html").exists()


def test_a_run_whose_models_are_gone_has_a_page_that_says_so(digits: Path, tmp_path: Path) -> None:
    shutil.copytree(digits, tmp_path / "bare", ignore=shutil.ignore_patterns("checkpoints"))
    section = read_section(tmp_path / "bare", tmp_path / "page.html")
    assert '<p class="note">' in section
    assert "<img" not in section
    assert "Accuracy against bytes" in (tmp_path / "page.html").read_text("utf-8")


def test_large_data_are_not_read_again(digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MOST_EXAMPLES > 1000
    monkeypatch.setattr("laconic.gallery.MOST_EXAMPLES", 1000)  # digits have more
    section = read_section(digits, tmp_path / "page.html")
    assert '<li class="rule' in section
    assert "<dt>precision</dt>" not in section
