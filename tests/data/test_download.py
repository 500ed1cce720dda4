import hashlib
import threading
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from test_readers import mnist_files

from laconic.data import KNOWN, download, load
from laconic.data.files import Remote, fetch

CONTENT = bytes(range(256)) * 9000  # more than two chunks


class Server(SimpleHTTPRequestHandler):
    def log_message(self, *_args):
        pass

    def do_GET(self):
        if self.path != "/cut.bin":
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        self.wfile.write(CONTENT[:1000])
        return None


@pytest.fixture
def server(tmp_path):
    """Address of a server with one file, set.bin."""
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "set.bin").write_bytes(CONTENT)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Server, directory=tmp_path / "served")) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_address[1]}"
        running.shutdown()
        thread.join()


@pytest.mark.parametrize("algorithm", ["md5", "sha256"])
def test_right_file_arrives_whole_and_alone(server, tmp_path, algorithm):
    seen = []
    remote = Remote(f"{server}/set.bin", f"{algorithm}:{hashlib.new(algorithm, CONTENT).hexdigest()}")
    path = fetch(remote, tmp_path / "new" / "home", progress=lambda *step: seen.append(step))
    assert path.read_bytes() == CONTENT
    assert list(path.parent.iterdir()) == [path]
    assert seen[-1] == ("set.bin", len(CONTENT), len(CONTENT))
    assert len(seen) > 1


def test_wrong_checksum_names_both_and_leaves_nothing(server, tmp_path):
    came = hashlib.md5(CONTENT).hexdigest()
    with pytest.raises(ValueError, match=f"has md5 {came}, {'0' * 32} was expected; the download is removed"):
        fetch(Remote(f"{server}/set.bin", f"md5:{'0' * 32}"), tmp_path / "home")
    assert list((tmp_path / "home").iterdir()) == []


def test_file_already_there_is_fetched_again_only_if_wrong(server, tmp_path):
    remote = Remote(f"{server}/set.bin", f"md5:{hashlib.md5(CONTENT).hexdigest()}")
    path = fetch(remote, tmp_path)
    steps = []
    fetch(remote, tmp_path, progress=lambda *step: steps.append(step))
    assert not steps
    path.write_bytes(b"half a file")
    assert fetch(remote, tmp_path).read_bytes() == CONTENT


def test_failing_server_is_named_and_leaves_nothing(server, tmp_path):
    for url in (f"{server}/absent.bin", "http://127.0.0.1:9/set.bin"):
        with pytest.raises(ValueError, match=f"cannot download {url}: .*bring the file to {tmp_path / 'home'}"):
            fetch(Remote(url, "md5:00"), tmp_path / "home")
        assert list((tmp_path / "home").iterdir()) == []


def test_connection_cut_midway_leaves_nothing(server, tmp_path):
    with pytest.raises(ValueError, match=r"cut\.bin"):
        fetch(Remote(f"{server}/cut.bin", f"md5:{hashlib.md5(CONTENT).hexdigest()}"), tmp_path / "home")
    assert list((tmp_path / "home").iterdir()) == []


def test_download_puts_files_where_load_looks(server, tmp_path, monkeypatch):
    files, made = mnist_files()
    for name, content in files.items():
        (tmp_path / "served" / name).write_bytes(content)
    remotes = tuple(Remote(f"{server}/{key}", f"md5:{hashlib.md5(value).hexdigest()}") for key, value in files.items())
    monkeypatch.setitem(KNOWN, "mnist", replace(KNOWN["mnist"], remotes=remotes))
    paths = download("mnist", tmp_path / "a")
    assert {path.name for path in paths} == set(files)
    assert load("mnist", tmp_path / "a").y_train.tolist() == made["y_train"].tolist()
    assert load("mnist", tmp_path / "b", download=True).y_test.tolist() == made["y_test"].tolist()
    with pytest.raises(ValueError, match=r"unknown data set 'mnits'. Closest: mnist"):
        download("mnits", tmp_path)
