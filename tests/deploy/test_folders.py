"""What laconic deploy init makes, and what a node accepts as its own examples."""

import io
import os
import pickle
import random
import re
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from laconic.algorithm import Examples, Task

pytest.importorskip("paho.mqtt", reason="paho-mqtt is not installed: pip install 'laconic-fl[mqtt]'")

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_ssh_private_key

from laconic.deploy.allowed import read_experiment
from laconic.deploy.examples import PARTS, read_examples, write_examples
from laconic.deploy.keys import read_public_key
from laconic.deploy.runs import begin, clear_finished, list_finished
from laconic.deploy.settings import read_settings
from laconic.files import write_atomically
from laconic.records import Deployed, Holding, Partition, read, write
from laconic.runs.config import read_config
from laconic.runs.typed_toml import ConfigError

OWN = ["--nodes", "2", "--shape", "28,28", "--classes", "10"]


def init(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return laconic("deploy", "init", *words)


def laconic(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "laconic", *map(str, words)]
    wide = os.environ | {"COLUMNS": "200", "TERMINAL_WIDTH": "200"}  # else messages are broken between words
    return subprocess.run(command, capture_output=True, text=True, env=wide, check=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lab") / "d"
    made = init(folder, *OWN, "--address", "lab.example.org:8000")
    assert made.returncode == 0, made.stderr
    return folder


@pytest.fixture(scope="module")
def flower_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("flwr", reason="flwr is not installed: pip install 'laconic-fl[flower]'")
    folder = tmp_path_factory.mktemp("flower") / "d"
    made = init(folder, *OWN, "--address", "lab.example.org:8000", "--over", "flower")
    assert made.returncode == 0, made.stderr
    return folder


def test_each_machine_gets_what_it_needs_and_no_more(folder: Path) -> None:
    for node in ("node-000", "node-001"):
        names = {path.name for path in (folder / node).iterdir()}
        assert names == {"ca.crt", "cert.crt", "cert.key", "node.toml", f"laconic-{node}.service"}
    names = {path.name for path in (folder / "server").iterdir()}
    assert names == {"ca.crt", "cert.crt", "cert.key", "server.toml", "partition.json", "laconic-server.service"}
    names = {path.name for path in (folder / "broker").iterdir()}
    assert names == {"ca.crt", "cert.crt", "cert.key", "crl.pem", "acl", "mosquitto.conf", "laconic-broker.service"}
    keys = [path.read_bytes() for path in folder.rglob("*.key")]
    assert len(set(keys)) == len(keys)  # the server has none of a node's
    for path in folder.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_the_certificate_is_for_the_brokers_name_and_signed_by_the_authority(folder: Path) -> None:
    authority, server = (
        x509.load_pem_x509_certificate((folder / name).read_bytes()) for name in ("ca.crt", "broker/cert.crt")
    )
    server.verify_directly_issued_by(authority)
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["lab.example.org", "localhost"]


def test_a_nodes_public_key_is_its_private_ones_and_no_others(flower_folder: Path) -> None:
    folder = flower_folder
    names = {path.name for path in (folder / "server").iterdir()}
    assert names >= {"ca.crt", "server.crt", "server.key", "server.toml", "nodes"}
    keys = [load_ssh_private_key((folder / f"node-00{k}" / "key").read_bytes(), None) for k in (0, 1)]
    registered = [read_public_key(folder / "server" / "nodes" / f"00{k}.pub") for k in (0, 1)]
    own = [key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo) for key in keys]
    assert own == registered
    assert own[0] != own[1]


def test_settings_read_back(folder: Path) -> None:
    settings = read_settings(folder / "node-001", "node")
    assert (settings.client, settings.host, settings.port) == (1, "lab.example.org", 8000)
    assert settings.task == Task((28, 28), 10, 2)


def test_notes_leave_a_node_only_if_its_owner_says_so(folder: Path, tmp_path: Path) -> None:
    text = (folder / "node-001" / "node.toml").read_text()
    assert "\nnotes = false\n" in text
    assert "notes" not in (folder / "server" / "server.toml").read_text()
    for given, due in (("notes = true", True), ("", False)):  # a node of before has no such line
        (tmp_path / "node.toml").write_text(text.replace("notes = false", given))
        assert read_settings(tmp_path, "node").notes is due
    (tmp_path / "node.toml").write_text(text.replace("notes = false", 'notes = "false"'))
    with pytest.raises(ConfigError, match="notes = 'false'; true or false was expected"):
        read_settings(tmp_path, "node")


def test_of_examples_that_nodes_bring_the_server_knows_whose_they_are_and_no_more(folder: Path, tmp_path: Path) -> None:
    partition = read(folder / "server", Partition)
    assert partition.clients == [Holding(0), Holding(1)]
    assert partition.is_nodes_own
    assert init(tmp_path / "d", *OWN).returncode == 0
    assert read(tmp_path / "d" / "server", Partition).sha256 != partition.sha256  # another deployment's are others


def test_units_restart_for_ever_after_a_while(folder: Path) -> None:
    for unit in folder.glob("*/*.service"):
        text = unit.read_text()
        assert "Restart=always\nRestartSec=2\n" in text
        assert "StartLimitIntervalSec=0" in text
        assert "\nUMask=0077\n" in text
        name = unit.parent.name
        starts = {"server": "deploy server /opt/laconic/server", "broker": "mosquitto -c mosquitto.conf"}
        assert starts.get(name, f"deploy node /opt/laconic/{name}") in text
    assert len([*folder.glob("*/*.service")]) == 4
    server = (folder / "server" / "laconic-server.service").read_text()
    assert "\nReadWritePaths=/opt/laconic/server -/opt/laconic/broker\n" in server  # whose broker it starts


def test_shares_of_a_data_set_are_handed_out(tmp_path: Path) -> None:
    made = init(tmp_path / "d", "--set", "data.clients=3")
    assert made.returncode == 0, made.stderr
    task = read_settings(tmp_path / "d" / "server", "server").task
    assert task.n_clients == 3
    partition = read(tmp_path / "d" / "server", Partition)
    assert [holding.client for holding in partition.clients] == [0, 1, 2]
    assert partition.data is not None
    assert (partition.data["name"], partition.data["clients"]) == ("digits", 3)
    for node in sorted((tmp_path / "d").glob("node-*")):
        assert len(read_examples(node / "data.npz", task)[0].y) > 0


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--address", "nowhere"], "write HOST:PORT"),
        (["--nodes", "2"], "there is no --shape"),
        (["--nodes", "2", "--shape", "28x28", "--classes", "10"], "--shape 28x28 has no whole numbers from 1 up"),
        (["--nodes", "2", "--shape", "0", "--classes", "10"], "--shape 0 has no whole numbers from 1 up"),
        (["--nodes", "2", "--shape", "28,28"], "--classes is missing"),
        (["--nodes", "2", "--shape", "28,28", "--classes", "1"], "--classes 1 came"),
        (["--over", "pigeon"], "mqtt or flower was expected"),
    ],
)
def test_a_mistake_is_refused_in_words(words: list[str], complaint: str, tmp_path: Path) -> None:
    made = init(tmp_path / "d", *words)
    assert made.returncode == 2
    assert complaint in made.stderr
    assert not (tmp_path / "d" / "ca.key").exists()


def test_a_folder_in_use_is_left_alone(folder: Path) -> None:
    before = (folder / "ca.key").read_bytes()
    assert init(folder, *OWN).returncode == 2
    assert (folder / "ca.key").read_bytes() == before


def test_examples_that_do_not_fit_the_task_are_refused(tmp_path: Path) -> None:
    good = Examples(np.zeros((3, 2), np.uint8), np.arange(3))
    path = tmp_path / "data.npz"
    write_examples(path, [good, good, good])
    assert len(read_examples(path, Task((2,), 3, 1))[2].y) == 3
    with pytest.raises(ValueError, match=r"x_train has shape \(3, 2\); \(3, 5\) was expected"):
        read_examples(path, Task((5,), 3, 1))
    with pytest.raises(ValueError, match="y_train reaches from 0 to 2; 0 to 1 was expected"):
        read_examples(path, Task((2,), 2, 1))


def array_bytes(array: np.ndarray) -> bytes:
    """As a lone .npy."""
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


GOOD = {f"{axis}_{part}": np.zeros((3, 2) if axis == "x" else 3) for axis in "xy" for part in PARTS}
DAMAGE = {
    "is damaged, cut short, or of Python objects": lambda path: path.write_bytes(path.read_bytes()[:-30]),
    "never unpickled": lambda path: np.savez(path, **GOOD | {"x_val": np.array([{}, {}, {}])}),
    "cut short": lambda path: path.write_bytes(b""),
    "or of Python objects": lambda path: path.write_bytes(pickle.dumps({"x_train": 1})),
    "of Python objects": lambda path: path.write_bytes(array_bytes(GOOD["x_val"])),
    "has x_train, x_val, x_test, and not y_train, y_val, y_test": lambda path: np.savez(
        path, **{name: array for name, array in GOOD.items() if name[0] == "x"}
    ),
    "y_test has nan; a whole number was expected": lambda path: np.savez(path, **GOOD | {"y_test": np.full(3, np.nan)}),
    "y_test has 0.5; a whole number was expected": lambda path: np.savez(path, **GOOD | {"y_test": np.full(3, 0.5)}),
    "y_val is <U1 (3,); one class for each": lambda path: np.savez(path, **GOOD | {"y_val": np.array(list("abc"))}),
    "x_val is float64, and not all of it finite": lambda path: np.savez(
        path, **GOOD | {"x_val": np.full((3, 2), np.inf)}
    ),
    "does not exist": lambda path: path.unlink(),
}


@pytest.mark.parametrize("words", DAMAGE)
def test_damaged_examples_are_explained_and_nobody_is_told_to_load_them_unsafely(words: str, tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    np.savez(path, **GOOD)
    assert len(read_examples(path, Task((2,), 3, 1))[0].y) == 3
    DAMAGE[words](path)
    with pytest.raises(ValueError, match=re.escape(words)) as caught:
        read_examples(path, Task((2,), 3, 1))
    assert str(path) in str(caught.value)
    assert "was expected; write it anew" in str(caught.value)
    assert "allow_pickle" not in str(caught.value)


def test_a_bit_flipped_anywhere_in_examples_is_refused_or_changes_nothing(tmp_path: Path) -> None:
    path, chance, n_refused = tmp_path / "data.npz", random.Random(0), 0
    examples = Examples(np.arange(40, dtype=np.uint8).reshape(20, 2), np.arange(20) % 3)
    write_examples(path, [examples] * 3)
    whole = path.read_bytes()
    for _ in range(300):
        data = bytearray(whole)
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        path.write_bytes(data)
        try:
            parts = read_examples(path, Task((2,), 3, 1))
        except ValueError:
            n_refused += 1
            continue
        for x, y in parts:
            assert np.array_equal(x, examples.x)
            assert np.array_equal(y, examples.y)
    assert n_refused > 150


def test_of_finished_runs_a_node_keeps_the_last_states_and_of_runs_under_way_all(tmp_path: Path) -> None:
    server, runs = tmp_path / "server", tmp_path / "node" / "runs"
    names = [digit * 32 for digit in "abcd"]
    for age, name in enumerate(names):
        (runs / name).mkdir(parents=True)
        os.utime(runs / name, (age, age))
        (tmp_path / name).mkdir()
        write_atomically(server / "begun" / name, str(tmp_path / name).encode())
    for name in names[:3]:
        (tmp_path / name / "DONE.json").touch()
    assert sorted(list_finished(server)) == names[:3]
    outside = tmp_path / "node" / "key"
    outside.mkdir()
    clear_finished(runs, [*list_finished(server), "../key", ""])
    assert sorted(path.name for path in runs.iterdir()) == names[2:]
    assert outside.exists()


STOPPED = """
import os, signal, time
from laconic.deploy import watching
watching.check_server = lambda server: None
watching.watch_run = lambda *_: (os.kill(os.getpid(), signal.{name}), time.sleep(9))
from laconic.cli import main
main()
"""


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_signal_ends_the_watch_over_a_run_and_says_how_it_is_taken_up(
    name: str, code: int, folder: Path, tmp_path: Path
) -> None:
    server = str(folder / "server")
    write(tmp_path, Deployed("ab" * 16, server))
    command = [sys.executable, "-c", STOPPED.format(name=name), "deploy", "run", server, "--out", str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == code, ended.stderr
    again = f"Watch it again: laconic deploy run {server} --out {tmp_path}"
    assert ended.stderr.splitlines()[-1] == f"stopped watching; the run goes on at its server.  {again}"
    assert (tmp_path / "events.log").read_text().endswith(f"no longer watched: {name}\n")


def test_a_node_runs_no_code_that_a_server_names_by_its_path(folder: Path, tmp_path: Path) -> None:
    model = '[method]\nname = "fedavg"\n[method.training]\nmodel = "rumour:Rumour"\n'
    for settings in ('[method]\nname = "rumour:Rumour"\n', model, '[method]\nmodels = ["mlp", "rumour:Rumour"]\n'):
        (tmp_path / "config.toml").write_text(settings)
        with pytest.raises(ConfigError, match='methods and models by name, and "rumour:Rumour" is a class'):
            read_experiment(tmp_path / "config.toml")
    config = read_config(None, ["method.name=rumour:Rumour"])
    with pytest.raises(ConfigError, match="real nodes take methods and models by name"):
        begin(folder / "server", config, tmp_path / "run", lambda line: None)
    assert not (tmp_path / "run").exists()


def test_a_folder_without_settings_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"node.toml does not exist.  Make a deployment"):
        read_settings(tmp_path, "node")


def test_a_node_allows_what_its_owner_lists(folder: Path, tmp_path: Path) -> None:
    text = (folder / "node-000" / "node.toml").read_text()
    assert '\nmethods = ["*"]\nmodels = ["*"]\n' in text
    (tmp_path / "node.toml").write_text(text.replace('methods = ["*"]', 'methods = ["fed*", "rumour:Rumour"]'))
    allowed = read_settings(tmp_path, "node")
    experiment = tmp_path / "config.toml"
    for name in ("fedtm", "rumour:Rumour"):
        experiment.write_text(f'[method]\nname = "{name}"\n')
        assert read_experiment(experiment, allowed.methods, allowed.models).method_name == name
    experiment.write_text('[method]\nname = "clausepool"\n')
    with pytest.raises(ConfigError, match=r'"clausepool" is not among the methods that this node allows: fed\*'):
        read_experiment(experiment, allowed.methods, allowed.models)
    experiment.write_text('[method]\nname = "fedavg"\n[method.training]\nmodel = "resnet-small"\n')
    with pytest.raises(ConfigError, match='"resnet-small" is not among the models that this node allows: mlp'):
        read_experiment(experiment, allowed.methods, ("mlp",))
    (tmp_path / "node.toml").write_text(text.replace('methods = ["*"]', 'methods = "fedtm"'))
    with pytest.raises(ConfigError, match="a list of names was expected"):
        read_settings(tmp_path, "node")


def test_a_node_may_make_its_own_key(folder: Path, tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())

    def ask_for(name: str) -> subprocess.CompletedProcess[str]:
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        request = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
        (tmp_path / "own.csr").write_bytes(request.public_bytes(serialization.Encoding.PEM))
        return laconic("deploy", "sign", folder, tmp_path / "own.csr")

    for stranger in ("server", "002"):
        refused = ask_for(stranger)
        assert refused.returncode == 2
        assert f"is for ['{stranger}']; one of 000 to 001 was expected" in refused.stderr
    assert ask_for("001").returncode == 0
    signed = x509.load_pem_x509_certificate((folder / "node-001" / "cert.crt").read_bytes())
    assert signed.public_key() == key.public_key()
    assert not (folder / "node-001" / "cert.key").exists()  # it is at the node alone


def test_a_method_whose_messages_the_broker_would_not_let_pass_is_refused(tmp_path: Path) -> None:
    assert init(tmp_path / "d", *OWN, "--largest", "10kB").returncode == 0
    assert "\nmax_packet_size 10000\n" in (tmp_path / "d" / "broker" / "mosquitto.conf").read_text()
    with pytest.raises(ConfigError, match=r"fedtm may send \d+ B at once, the broker takes 10000 B"):
        begin(tmp_path / "d" / "server", read_config(None), tmp_path / "run", lambda line: None)


def test_a_run_without_a_server_is_refused_at_once(folder: Path, tmp_path: Path) -> None:
    for words in (["run", folder / "server", "--out", tmp_path / "run"], ["status", folder / "server"]):
        refused = laconic("deploy", *words)
        assert refused.returncode == 2
        assert f"no server runs for {folder}/server.  Start it: laconic deploy server" in refused.stderr
    assert not (tmp_path / "run").exists()


def test_real_nodes_are_no_fleet_of_laconic_run(tmp_path: Path) -> None:
    refused = laconic("run", "--set", "fleet.name=mqtt", "--out", tmp_path / "run")
    assert refused.returncode == 2
    assert "reached through their server: laconic deploy run SERVER EXP.TOML, or laconic deploy try" in refused.stderr
    assert not (tmp_path / "run" / "config.toml").exists()


def test_help_does_not_wait_for_what_carries_messages() -> None:
    code = "import sys, laconic.cli; sys.exit(any(name.split('.')[0] in ('flwr', 'paho') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
