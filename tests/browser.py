"""A real browser, without a window: what a page looks like once its script has run, or a page that is driven."""

import base64
import fcntl
import json
import os
import shutil
import subprocess
import sys
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
)
PATIENCE_SECONDS = 60.0
# Chromium reads its commands from 3 and answers to 4
PLACE = "import os, sys; [os.dup2(int(sys.argv[k]), 2 + k) for k in (1, 2)]; os.execvp(sys.argv[3], sys.argv[3:])"
KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}


def find_browser():
    found = os.environ.get("LACONIC_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is on PATH; install one or set LACONIC_CHROMIUM")
    return found


def browse(page, folder, *flags):
    """The document as it stands after its script ran."""
    profile = folder / "profile"
    command = [
        find_browser(),
        *FLAGS,
        "--virtual-time-budget=5000",
        f"--user-data-dir={profile}",
        *flags,
        page.as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    shutil.rmtree(profile, ignore_errors=True)
    return done.stdout


# ---------------------------------------------------------------- a page that is driven
@contextmanager
def open_browser(folder):
    """A Page in a browser that ends with the block; it is driven by Chromium's own protocol, over two pipes."""
    profile = folder / "profile"
    command = [find_browser(), *FLAGS, "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"]
    (their_end, writer), (reader, other_end) = os.pipe(), os.pipe()
    handles = [fcntl.fcntl(handle, fcntl.F_DUPFD, 10) for handle in (their_end, other_end)]  # out of the way of 3 and 4
    placed = [sys.executable, "-c", PLACE, *map(str, handles), *command]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(placed, pass_fds=handles, **quiet) as process:
        for handle in (their_end, other_end, *handles):
            os.close(handle)
        try:
            with os.fdopen(writer, "wb") as to_browser, os.fdopen(reader, "rb") as from_browser:
                yield Page(to_browser, from_browser)
        finally:
            process.kill()
    shutil.rmtree(profile, ignore_errors=True)


class Page:
    """errors: what the browser's console complained of; requests: the addresses that it asked for."""

    def __init__(self, writer, reader):
        self._writer, self._reader, self._number, self._session = writer, reader, 0, None
        self.errors, self.requests = [], []
        (target,) = [one for one in self.call("Target.getTargets")["targetInfos"] if one["type"] == "page"]
        self._session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        message |= {"sessionId": self._session} if self._session else {}
        self._writer.write(json.dumps(message).encode() + b"\0")
        self._writer.flush()
        while True:
            told = json.loads(self._read())
            self._note(told)
            if told.get("id") == self._number:
                assert "error" not in told, told
                return told["result"]

    def _read(self):
        found = bytearray()
        while (byte := self._reader.read(1)) != b"\0":
            assert byte, "the browser has ended"
            found += byte
        return bytes(found)

    def _note(self, told):
        content = told.get("params", {})
        if told.get("method") == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(content["exceptionDetails"]))
        elif told.get("method") == "Runtime.consoleAPICalled" and content["type"] in ("error", "warning", "assert"):
            self.errors.append(json.dumps(content["args"]))
        elif told.get("method") == "Log.entryAdded" and content["entry"]["level"] in ("error", "warning"):
            self.errors.append(json.dumps(content["entry"]))
        elif told.get("method") == "Network.requestWillBeSent":
            self.requests.append(content["request"]["url"])

    def open(self, url):
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")

    def get(self, expression):
        """What it is worth in the page, as plain data."""
        done = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def wait(self, expression, patience_seconds=PATIENCE_SECONDS):
        """What it is worth once that counts as true."""
        deadline = time.monotonic() + patience_seconds
        while not (found := self.get(expression)):
            assert time.monotonic() < deadline, f"{expression} is {found}; {self.get('document.body.innerText')}"
            time.sleep(0.05)
        return found

    def hover(self, selector, across=0.5, down=0.5):
        """At that share of the element's width and height."""
        element = f"document.querySelector({json.dumps(selector)})"
        self.get(f"{element}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
        left, top, width, height = self.get(
            f"(({{x, y, width, height}}) => [x, y, width, height])({element}.getBoundingClientRect())"
        )
        x, y = left + across * width, top + down * height
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        return x, y

    def click(self, selector):
        x, y = self.hover(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, *keys):
        for key in keys:
            names = {"key": key, "code": "Space" if key == " " else key, "windowsVirtualKeyCode": KEYS[key]}
            text = {"Enter": {"text": "\r"}, " ": {"text": " "}}.get(key, {})
            self.call("Input.dispatchKeyEvent", type="keyDown", **names, **text)
            self.call("Input.dispatchKeyEvent", type="keyUp", **names)

    def resize(self, width, height=900):
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )

    def set_look(self, *, is_dark=False, is_still=False):
        look = {"prefers-color-scheme": "dark" if is_dark else "light"}
        look |= {"prefers-reduced-motion": "reduce" if is_still else "no-preference"}
        features = [{"name": name, "value": value} for name, value in look.items()]
        self.call("Emulation.setEmulatedMedia", features=features)

    def shoot(self, path, *, is_whole=False):
        """A picture of what is in sight, or of the whole page."""
        done = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=is_whole)
        path.write_bytes(base64.b64decode(done["data"]))
