"""A real browser, without a window: what the page looks like once its script has run, and how it answers."""

import base64
import json
import os
import shutil
import subprocess
import time
from contextlib import contextmanager

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


class Tab:
    """A page that is looked at and handled, over the pipe that a browser is steered by."""

    def __init__(self, to_browser, from_browser):
        self._to, self._from, self._session, self._number = to_browser, from_browser, None, 0
        self.errors = []  # whatever went to the console as such

    def call(self, method, **params):
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        self._to.write(json.dumps(message).encode() + b"\0")
        self._to.flush()
        while True:
            told = self._hear()
            if told.get("id") == self._number:
                assert "error" not in told, told
                return told["result"]

    def _hear(self):
        parts = []
        while (byte := self._from.read(1)) != b"\0":
            assert byte, "the browser is gone"
            parts.append(byte)
        told = json.loads(b"".join(parts))
        params = told.get("params", {})
        if told.get("method") == "Runtime.exceptionThrown":
            self.errors.append(params["exceptionDetails"]["text"])
        if told.get("method") == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(params["entry"]["text"])
        if told.get("method") == "Runtime.consoleAPICalled" and params["type"] == "error":
            self.errors.append(str(params["args"]))
        return told

    def open(self, page, *, width, height=900, is_dark=False):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=page.as_uri())
        while not self.run("document.documentElement?.dataset.ready === 'yes'"):
            time.sleep(0.02)

    def run(self, script):
        """What a promise or expression of the page comes to."""
        told = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    def find(self, selector):
        """The middle of the first such thing, once it is in view."""
        return self.run(
            f"(() => {{ const one = document.querySelector({json.dumps(selector)});"
            "one.scrollIntoView({block: 'center', behavior: 'instant'}); const box = one.getBoundingClientRect();"
            "return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )

    def hover(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, selector):
        x, y = self.find(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def shoot(self, path):
        """All of the page, not what is in view alone."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        shot = self.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))


@contextmanager
def open_tab(page, folder, *, width=1200, is_dark=False):
    flags = [flag for flag in FLAGS if "virtual-time" not in flag]
    profile = folder / "profile"
    (theirs_in, ours_out), (ours_in, theirs_out) = os.pipe(), os.pipe()
    steered = ["--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"]
    shell = ["bash", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', "bash"]  # the pipe is where a browser looks
    browser = subprocess.Popen(
        [*shell, find_browser(), *flags, *steered],
        pass_fds=(theirs_in, theirs_out),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(theirs_in)
    os.close(theirs_out)
    try:
        with os.fdopen(ours_out, "wb") as to_browser, os.fdopen(ours_in, "rb") as from_browser:
            tab = Tab(to_browser, from_browser)
            tab.open(page, width=width, is_dark=is_dark)
            yield tab
    finally:
        browser.kill()
        browser.wait()
        shutil.rmtree(profile, ignore_errors=True)
