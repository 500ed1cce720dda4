"""Networks by name. Each is a body that turns an example into features, and a head that turns these into logits."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod

import torch
from torch import Tensor, nn

from laconic.importing import import_class
from laconic.networks.mobile import EFFICIENTNET, MOBILENET_V2, inverted_body, shuffled_body
from laconic.networks.pooling import HalfReLU

Maker = Callable[[tuple[int, ...], int], nn.Module]
SMALL_IMAGE = 20  # pixels; convolutions without padding leave nothing of a smaller one


class BodyAndHead(nn.Module):
    """What every model here is; one of your own needs only a forward and a last layer called head.

    Its forward gets float32: [example, feature], or images [example, channel, row, column], grey ones with one channel.
    Pixels come as -1 to 1 where their peak is known, or as 0 to 1: Training.inputs.
    """

    def __init__(self, body: nn.Module, input_shape: tuple[int, ...], n_classes: int) -> None:
        super().__init__()
        self.body = body
        self.head = nn.Linear(count_features(body, input_shape), n_classes)

    def resize_features(self, n_features: int) -> None:
        """Makes bodies of any kind tell so many features: neighbours are averaged, or repeated if there are too few."""
        self.body = nn.Sequential(self.body, nn.AdaptiveAvgPool1d(n_features))
        self.head = nn.Linear(n_features, self.head.out_features)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.body(x))
        return logits


def make_module(name: str, input_shape: tuple[int, ...], n_classes: int, n_features: int = 0) -> nn.Module:
    """name: of MODELS, or package.module:Class of one's own, made as Class(input_shape, n_classes).

    n_features: of what the head gets, whatever the body makes; 0: as the body makes it.
    """
    maker = find_maker(name)
    try:
        made = maker(input_shape, n_classes)
        if n_features and isinstance(made, BodyAndHead):
            made.resize_features(n_features)
        return made
    except RuntimeError as error:  # torch's, of shapes
        raise ValueError(f'model "{name}" takes no examples of shape {input_shape}: {error}') from error


def find_maker(name: str) -> Maker:
    if name in MODELS:
        return MODELS[name]
    if ":" not in name:
        raise ValueError(f'model "{name}" is unknown; there are {", ".join(MODELS)}, or package.module:Class')
    try:
        return import_class(name)
    except ValueError as error:
        raise ValueError(f"model {error}") from error


def choose_model(input_shape: tuple[int, ...]) -> str:
    """What "auto" stands for."""
    if len(input_shape) == 1:
        return "mlp"
    return "cnn-small" if min(input_shape[:2]) < SMALL_IMAGE else "cnn-fedpac"


def example_tensor_shape(input_shape: tuple[int, ...]) -> tuple[int, ...]:
    """As torch has it: channels before height and width."""
    if len(input_shape) == 1:
        return input_shape
    height, width, channels = (*input_shape, 1)[:3]
    return channels, height, width


def count_features(body: nn.Module, input_shape: tuple[int, ...]) -> int:
    was_training = body.training
    with torch.no_grad():
        features = body.eval()(torch.zeros(1, *example_tensor_shape(input_shape)))
    body.train(was_training)
    return prod(features.shape[1:])


# ---------------------------------------------------------------- plain ones
def multilayer(*hidden: int) -> Maker:
    def make(input_shape: tuple[int, ...], n_classes: int) -> nn.Module:
        sizes = (prod(input_shape), *hidden)
        layers = [nn.Sequential(nn.Linear(a, b), nn.ReLU()) for a, b in pairwise(sizes)]
        return BodyAndHead(nn.Sequential(nn.Flatten(), *layers), input_shape, n_classes)

    return make


def convolutions(input_shape: tuple[int, ...], layers: Sequence[tuple[int, int, int]], slope: float) -> nn.Module:
    """layers: channels, side of the kernel, padding; each halves the image. slope: of activations below 0."""
    n_in, parts = example_tensor_shape(input_shape)[0], list[nn.Module]()
    for n_out, side, padding in layers:
        parts += [nn.Conv2d(n_in, n_out, side, padding=padding), HalfReLU(slope)]
        n_in = n_out
    return nn.Sequential(*parts, nn.Flatten())


def convolutional(*layers: tuple[int, int, int], hidden: int, leaky: bool = False, deeper: int = 0) -> Maker:
    """deeper: how many of the layers only colour images get, at the end."""

    def make(input_shape: tuple[int, ...], n_classes: int) -> nn.Module:
        activation = nn.LeakyReLU() if leaky else nn.ReLU()
        is_colour = example_tensor_shape(input_shape)[0] == 3
        slope = activation.negative_slope if isinstance(activation, nn.LeakyReLU) else 0.0
        body = convolutions(input_shape, layers if is_colour else layers[: len(layers) - deeper], slope)
        if hidden:
            body = nn.Sequential(body, nn.Linear(count_features(body, input_shape), hidden), activation)
        return BodyAndHead(body, input_shape, n_classes)

    return make


# ---------------------------------------------------------------- with batch normalisation
class Block(nn.Module):
    """Two convolutions and a way around them."""

    def __init__(self, n_in: int, n_out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(n_in, n_out, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(n_out)
        self.conv2 = nn.Conv2d(n_out, n_out, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(n_out)
        self.around: nn.Module = nn.Identity()
        if stride > 1 or n_in != n_out:
            self.around = nn.Sequential(nn.Conv2d(n_in, n_out, 1, stride, bias=False), nn.BatchNorm2d(n_out))

    def forward(self, x: Tensor) -> Tensor:
        inner = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(inner + self.around(x))


def residual(*widths: int) -> Maker:
    """A 7×7 stem and a block for each width, as FedPURIN has it."""

    def make(input_shape: tuple[int, ...], n_classes: int) -> nn.Module:
        n_in = example_tensor_shape(input_shape)[0]
        stem = nn.Sequential(
            nn.Conv2d(n_in, widths[0], 7, 2, padding=3, bias=False),
            nn.BatchNorm2d(widths[0]),
            nn.MaxPool2d(3, 2, padding=1),
            nn.ReLU(),  # before the pooling it would give the same numbers, from four times as many
        )
        before = (widths[0], *widths)
        blocks = [Block(a, b, 1 if k == 0 else 2) for k, (a, b) in enumerate(zip(before, widths, strict=False))]
        body = nn.Sequential(stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        return BodyAndHead(body, input_shape, n_classes)

    return make


def vgg(*stages: Sequence[int], hidden: Sequence[int], side: int = 3, padding: int = 1, is_lean: bool = False) -> Maker:
    """Stages of convolutions, each halving the image, then fully connected layers; lean: normalised, without biases."""

    def make(input_shape: tuple[int, ...], n_classes: int) -> nn.Module:
        n_in, parts = example_tensor_shape(input_shape)[0], list[nn.Module]()
        for stage in stages:
            for n_out in stage:
                parts += [
                    nn.Conv2d(n_in, n_out, side, padding=padding, bias=not is_lean),
                    nn.BatchNorm2d(n_out),
                    nn.ReLU(),
                ]
                n_in = n_out
            parts.append(nn.MaxPool2d(2, ceil_mode=True))
        body = nn.Sequential(*parts, nn.Flatten())
        sizes = (count_features(body, input_shape), *hidden)
        norms = [[nn.BatchNorm1d(b)] if is_lean else [] for b in hidden]
        layers = [
            nn.Sequential(nn.Linear(a, b, bias=not is_lean), *norm, nn.ReLU())
            for (a, b), norm in zip(pairwise(sizes), norms, strict=True)
        ]
        return BodyAndHead(nn.Sequential(body, *layers), input_shape, n_classes)

    return make


def mobile(stages: Sequence[tuple[int, int, int, int, int]], n_last: int, *, squeeze: bool = False) -> Maker:
    def make(input_shape: tuple[int, ...], n_classes: int) -> nn.Module:
        body = inverted_body(example_tensor_shape(input_shape)[0], stages, n_last, squeeze=squeeze)
        return BodyAndHead(body, input_shape, n_classes)

    return make


def shuffled(widths: Sequence[int], n_blocks: Sequence[int], n_last: int) -> Maker:
    def make(input_shape: tuple[int, ...], n_classes: int) -> nn.Module:
        body = shuffled_body(example_tensor_shape(input_shape)[0], widths, n_blocks, n_last)
        return BodyAndHead(body, input_shape, n_classes)

    return make


MODELS: dict[str, Maker] = {
    "mlp": multilayer(256),
    "cnn": convolutional((32, 5, 0), (64, 5, 0), hidden=512),  # FedAvg's
    "cnn-fedpac": convolutional((16, 5, 0), (32, 5, 1), (64, 3, 1), hidden=128, leaky=True, deeper=1),
    "cnn-small": convolutional((8, 3, 1), (16, 3, 1), hidden=32),
    "lenet": convolutional((6, 5, 2), (16, 5, 0), hidden=84),
    "lenet-caffe": convolutional((20, 5, 0), (50, 5, 0), hidden=500),  # what those who prune call LeNet-5
    "cnn-speech": convolutional((32, 3, 1), (64, 3, 1), hidden=128),
    "resnet8": residual(64, 128, 256),
    "resnet10": residual(64, 128, 256, 512),
    "resnet-small": residual(8, 16),
    "mobilenetv2": mobile(MOBILENET_V2, 1280),
    "efficientnet": mobile(EFFICIENTNET, 1280, squeeze=True),
    "shufflenetv2": shuffled((24, 116, 232, 464), (4, 8, 4), 1024),
    "mobile-small": mobile(((1, 8, 1, 1, 3), (2, 16, 1, 2, 3)), 32),
    "shuffle-small": shuffled((8, 16), (2,), 32),
    # the four kinds of Table 1 of CPS, PPA and CPKD, slim: a fifth of the time, for comparisons on a small machine
    "resnet8-slim": residual(16, 32, 64),
    "mobilenetv2-slim": mobile(((1, 8, 1, 1, 3), (4, 16, 1, 2, 3), (4, 32, 1, 2, 3)), 256),
    "efficientnet-slim": mobile(((1, 8, 1, 1, 3), (4, 16, 1, 2, 5), (4, 32, 1, 2, 5)), 256, squeeze=True),
    "shufflenetv2-slim": shuffled((16, 32, 64), (2, 2), 256),
    "vgg8": vgg([16], [32], [64], [128], [128], hidden=[128, 128]),
    "conv4": vgg([64] * 2, [128] * 2, hidden=[128] * 2, side=5, padding=0, is_lean=True),  # SpaFL's
    "vgg16": vgg([64] * 2, [128] * 2, [256] * 3, [512] * 3, [512] * 3, hidden=[512, 512]),
}
