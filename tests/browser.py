"""A real browser, without a window: what the page looks like once its script has run."""

import os
import shutil
import subprocess

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=5000",
)


def find_browser():
    found = os.environ.get("LACONIC_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is on PATH; install one or set LACONIC_CHROMIUM")
    return found


def browse(page, folder, *flags):
    """The document as it stands after its script ran."""
    profile = folder / "profile"
    command = [find_browser(), *FLAGS, f"--user-data-dir={profile}", *flags, page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    shutil.rmtree(profile, ignore_errors=True)
    return done.stdout
