"""`laconic live` as a process: its page for whoever has the token, news as they come, and nothing else."""

import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import quote

import pytest
from followed import LIAR, Events, Start

from laconic.live.address import listen, make_url, warn
from laconic.records import ClientScore, Times
from test_cli import in_turn

pytest.importorskip("starlette", reason='starlette is not installed: pip install "laconic-fl[web]"')


def read_url(live: "subprocess.Popen[str]") -> str:
    assert live.stdout is not None
    return live.stdout.readline().strip()


def fetch(url: str) -> tuple[int, str, dict[str, str]]:
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return answer.status, answer.read().decode(), dict(answer.headers)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode(), dict(error.headers)


def test_a_live_server_tells_of_runs_to_whoever_has_its_token_and_ends_quietly(folder: Path, start: Start) -> None:
    live = start("live")
    url = read_url(live)
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=\S{22}", url)
    bare = url.partition("?")[0]
    for wrong in (bare, f"{bare}?token=", f"{url}x", f"{url[:-1]}", f"{bare}events", f"{bare}clients?run=one&token=ü"):
        code, text, headers = fetch(quote(wrong, safe=":/?=&"))
        assert code == 403
        assert "Open the whole URL that <code>laconic live</code> printed" in text
        assert "one" not in re.findall(r"<h1>.*</h1>", text)[0]
        assert headers["referrer-policy"] == "no-referrer"

    code, text, headers = fetch(url)
    assert code == 200
    assert not re.search(r"https?:|@import|url\(|<iframe|\bsrc=", text)  # needs nothing from elsewhere
    assert re.findall(r'href="([^"]*)"', text) == ["data:,"]
    assert url.partition("token=")[2] not in text
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; ")
    assert re.search(r"script-src 'sha256-\S+'; connect-src 'self'", policy)
    assert (headers["referrer-policy"], headers["cache-control"]) == ("no-referrer", "no-store")
    assert fetch(url.replace("/?", "/one/config.toml?"))[0] == 404

    events, others = Events(url), Events(url)
    assert events.type.startswith("text/event-stream")
    for viewer in (events, others):
        kind, found = viewer.next()
        assert kind == "all"
        assert [(run["name"], run["state"], len(run["rows"])) for run in found["runs"]] == [("one", "finished", 4)]
    code, text, _ = fetch(url.replace("/?", "/clients?run=one&"))
    assert code == 200
    assert [client[0] for client in json.loads(text)["clients"] if client[2] == "refused"] == [LIAR]
    path = folder / ClientScore.file
    whole = path.read_text()
    path.write_text(whole.replace('"n_test": ', '"n_test": -'))
    code, text, _ = fetch(url.replace("/?", "/clients?run=one&"))
    assert (code, "n_test is" in json.loads(text)["error"]) == (200, True)
    path.write_text(whole)
    for name in ("", "../runs/one", str(folder)):
        assert fetch(url.replace("/?", f"/clients?run={quote(name)}&"))[0] == 404

    shutil.copytree(folder, folder.parent / "two")
    assert events.wait_for(lambda news: [run["name"] for run in news["runs"]] == ["two"])
    (folder.parent / "two" / "DONE.json").unlink()
    times = folder.parent / "two" / Times.file
    times.write_text("".join(times.read_text().splitlines(keepends=True)[:2]))
    for viewer in (events, others):
        news = viewer.wait_for(lambda news: any(run["n_kept"] == 2 for run in news["runs"]))
        assert [(run["name"], run["rows"]) for run in news["runs"]] == [("two", [])]

    live.send_signal(signal.SIGINT)  # while two are connected
    out, err = live.communicate(timeout=60)
    assert (live.returncode, out, err) == (0, "", "following runs; Ctrl-C ends it.  Open:\n")
    events.close()
    others.close()


def test_a_port_that_is_taken_is_passed_over_unless_it_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr("laconic.live.address.FIRST_PORT", port)
        with listen("127.0.0.1", None) as other:
            assert other.getsockname()[1] != port
        with pytest.raises(ValueError, match=f"port {port} is taken; give another --port, or none"):
            listen("127.0.0.1", port)


def test_only_where_others_reach_the_page_one_is_warned(monkeypatch: pytest.MonkeyPatch) -> None:
    with listen("localhost", None) as listener:
        assert warn(listener) == ""
    with listen("0.0.0.0", 0) as listener:
        assert "whoever has its URL sees runs" in warn(listener)
        assert make_url(listener, "secret").startswith(f"http://{socket.gethostname()}:")
    with pytest.raises(ValueError, match=r"--host no\.such\.host: .*give an address of this machine"):
        listen("no.such.host", None)
    with pytest.raises(ValueError, match=r"192\.0\.2\.1 port 8470: .*; give another --host"):
        listen("192.0.2.1", None)


def test_what_cannot_be_followed_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    commands = ["live", "none"], ["live", "empty"], ["live", "--port", "70000"]
    (none, empty, port), _ = in_turn(*commands, folder=tmp_path)
    assert (none.code, none.err) == (
        2,
        "error: none is no folder; give one that laconic run, compare, sweep or deploy init made\n",
    )
    assert (empty.code, empty.err.partition(";")[0]) == (2, "error: empty holds no run")
    assert port.code == 2


def test_without_its_extra_the_command_says_which(tmp_path: Path) -> None:
    code = "import sys; sys.modules['uvicorn'] = None; from laconic.cli import main; sys.argv[1:] = ['live']; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert done.stderr == (
        'error[E140] laconic live needs uvicorn, which is not installed.  pip install "laconic-fl[web]"\n'
    )
