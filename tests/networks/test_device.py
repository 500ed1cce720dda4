"""Networks off the CPU, as far as a machine without any other device can tell.

"cpu:0" is a device that is not called "cpu", so what is worked out there takes the way of all others, copies and all;
on "meta" a tensor has a shape and no numbers, and refuses to meet one that was left behind on the CPU.
"""

from pathlib import Path

import numpy as np
import pytest
import torch

import laconic
from laconic import device
from laconic.networks import MODELS, Spec, Training, build, fit, outputs, renew_statistics
from laconic.networks.device import find_device, run_on
from laconic.networks.pooling import HalfReLU
from laconic.networks.vector import make_live

OTHER = "cpu:0"


@pytest.fixture
def elsewhere():
    with device.restored():
        device.choose(OTHER)
        yield


def train(model: str, part: str = "all"):
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 256, (20, 32, 32, 3), np.uint8), rng.integers(0, 4, 20)
    network = build(Spec(model, (32, 32, 3), 4, peak=255.0), 0)
    fit(network, (x, y), rng, Training(model=model, batch=8, momentum=0.5, decay=1e-3), part=part)
    return renew_statistics(network, x).vector, *outputs(network, x)


@pytest.mark.parametrize("part", ["all", "head"])
@pytest.mark.parametrize("model", ["cnn-small", "resnet8"])
def test_the_way_by_another_device_gives_the_same_bits(model: str, part: str, elsewhere: None) -> None:
    there = train(model, part)
    device.choose("cpu")
    for one, other in zip(there, train(model, part), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("model", MODELS)
def test_no_built_in_model_leaves_anything_on_the_cpu(model: str) -> None:
    module = make_live(Spec(model, (32, 32, 3), 10), 0).module
    weights = {name: value.detach().to("meta").requires_grad_() for name, value in module.named_parameters()}
    buffers = {name: value.to("meta") for name, value in module.named_buffers()}
    made = torch.func.functional_call(module, weights | buffers, (torch.zeros(2, 3, 32, 32, device="meta"),))
    assert made.shape == (2, 10)
    pulled = torch.autograd.grad(made.sum(), list(weights.values()))
    assert [each.shape for each in pulled] == [value.shape for value in weights.values()]


@pytest.mark.parametrize("slope", [0.0, 0.1])
def test_torch_pools_off_the_cpu_as_our_kernels_do_on_it(slope: float, monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(3, 4, 7, 6)).astype(np.float32))
    results = []
    for ours in ("cpu", "no device at all"):
        monkeypatch.setattr("laconic.networks.pooling.CPU", ours)
        mine = x.clone().requires_grad_()
        halved = HalfReLU(slope)(mine)
        (halved * halved).sum().backward()
        results.append((halved.detach(), mine.grad))
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other)


def test_gradients_and_statistics_come_back() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    run_on(OTHER, module, torch.eye(3)).square().sum().backward()
    assert module[0].weight.grad.abs().sum() > 0
    assert module[1].num_batches_tracked == 1
    assert module[1].running_mean.abs().sum() > 0


def test_a_device_that_is_not_here_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    assert find_device("cpu") == "cpu"
    if torch.cuda.is_available() or torch.backends.mps.is_available():
        pytest.skip("there is one")
    assert find_device("auto") == "cpu"
    for name, words in {"cuda": "no card that CUDA can use", "cuda:3": "no card", "mps": "no Metal"}.items():
        with pytest.raises(ValueError, match=f'fleet.device = "{name}": torch .*{words}.*"auto"'):
            laconic.run("fedavg", data="no such data", device=name, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("method", "name", "words"),
    [("fedavg", "gpu", "must be auto, cpu, cuda"), ("fedtm", "cuda", "is for networks; fedtm works on the CPU alone")],
)
def test_a_device_that_makes_no_sense_is_refused(method: str, name: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=words):
        laconic.run(method, data="digits", device=name, out=tmp_path)


@pytest.mark.parametrize("fleet", ["local", "process"])
def test_a_run_tells_its_workers_and_leaves_this_process_as_it_was(fleet: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("laconic.networks.device.find_device", lambda name: OTHER)
    words = {"data": "digits", "clients": 2, "rounds": 1, "workers": 1, "fleet": fleet}
    there = laconic.run("fedavg", device="auto", out=tmp_path / "there", **words)
    assert device.chosen() == "cpu"
    here = laconic.run("fedavg", out=tmp_path / "here", **words)
    assert there.accuracy == here.accuracy
