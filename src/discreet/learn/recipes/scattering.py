"""Image features that no data was needed for: a wavelet scattering transform."""

from math import pi
from typing import Final, final

import torch
from torch import Tensor, nn
from torch.nn import functional

from discreet._exact import whole
from discreet.errors import ParameterError

# The usual shape of a Morlet wavelet of the finest scale: its width in pixels and its frequency.
WIDTH: Final = 0.8
FREQUENCY: Final = 3 * pi / 4
CHUNK: Final = 128  # images at a time: bounds memory, changes nothing else


@final
class Scattering(nn.Module):
    """Turn images into scattering coefficients: averaged moduli of fixed wavelet transforms.

    An image ``x`` of ``size`` by ``size`` pixels becomes, at each of ``size / 2**scales`` by
    ``size / 2**scales`` places, local averages of ``x``, of ``|x * w|`` for every wavelet ``w``
    and of ``||x * w| * v|`` for every ``v`` of a coarser scale [BM13]: with ``scales=2`` and
    ``angles=8`` 81 channels for each channel of the image. Small shifts and deformations hardly
    move them, so that a linear model on top goes far; this is what makes them valuable under
    differential privacy, where a model with few weights needs little noise [TB21].

    Claim: each image's features depend on that image alone, and there is nothing to learn or to
    fit. Computing them is a fixed map of single records, so it costs no privacy, and a model
    trained on them has the guarantee of its training.

    >>> features = Scattering(size=28)
    >>> features.channels, features.places
    (81, 7)
    >>> features(torch.zeros(5, 28, 28)).shape
    torch.Size([5, 81, 7, 7])
    """

    wavelets: Tensor
    averages: Tensor

    def __init__(self, *, size: int, scales: int = 2, angles: int = 8) -> None:
        """Build the filters, which follow from the three numbers alone."""
        super().__init__()
        self.size, self.scales, self.angles = (
            whole(value, name=name, minimum=1)
            for name, value in (("size", size), ("scales", scales), ("angles", angles))
        )
        self.step: int = 2**self.scales
        if self.size % self.step or self.size < 2 * self.step:
            raise ParameterError(
                f"size must be a multiple of 2**scales = {self.step} and at least twice it, got "
                f"{self.size}. Pad the images, or take fewer scales.",
                parameter="size",
            )
        side = self.size + 2 * self.step  # each border is continued by its mirror image
        self.register_buffer("wavelets", _wavelets(side, self.scales, self.angles), False)
        self.register_buffer("averages", _averages(self.size, self.step), False)

    @property
    def channels(self) -> int:
        """Return how many channels come of one channel of the image."""
        pairs = self.scales * (self.scales - 1) // 2
        return 1 + self.scales * self.angles + pairs * self.angles * self.angles

    @property
    def places(self) -> int:
        """Return how many places there are in each direction."""
        return self.size // self.step

    def extra_repr(self) -> str:
        """Return the settings that ``print(model)`` shows."""
        return f"size={self.size}, scales={self.scales}, angles={self.angles}"

    def forward(self, images: Tensor) -> Tensor:
        """Return the features (n, channels, places, places) of images (n, size, size).

        Images with channels (n, c, size, size) give c times as many channels.
        """
        if images.shape[-2:] != (self.size, self.size) or images.ndim not in (3, 4):
            raise ParameterError(
                f"images must have the shape (n, {self.size}, {self.size}) or (n, c, {self.size}, "
                f"{self.size}), got {tuple(images.shape)}.",
                parameter="images",
            )
        flat = images.reshape(-1, 1, self.size, self.size).to(self.averages.dtype)
        if len(flat):
            found = torch.cat([self._scatter(chunk) for chunk in flat.split(CHUNK)])
        else:
            found = flat.new_zeros(0, self.channels, self.places, self.places)
        channels = self.channels * (1 if images.ndim == 3 else images.shape[1])
        return found.reshape(len(images), channels, self.places, self.places)

    def _scatter(self, images: Tensor) -> Tensor:
        padded = functional.pad(images, [self.step] * 4, mode="reflect")
        spectrum = torch.fft.fft2(padded)
        once, twice = [self._average(padded)], []
        for scale in range(self.scales):
            is_last = scale + 1 == self.scales
            moduli = self._moduli(spectrum, scale, stride=2**scale if is_last else 1)
            once.append(self._average(moduli))
            if is_last:
                break
            for angle in range(self.angles):  # one at a time: this is where memory would go
                again = torch.fft.fft2(moduli[:, angle, None])
                for coarser in range(scale + 1, self.scales):
                    twice.append(self._average(self._moduli(again, coarser, stride=2**coarser)))
        return torch.cat(once + twice, dim=1)

    def _moduli(self, spectrum: Tensor, scale: int, *, stride: int) -> Tensor:
        """Return what the wavelets of a scale see, at every ``stride``-th pixel."""
        # What a coarse wavelet sees is smooth, so that a few pixels tell it; and to fold the
        # spectrum is to take these few, before the costly transform back.
        folded = spectrum * self.wavelets[scale]
        for axis in (-2, -1):
            first, *others = folded.chunk(stride, axis)
            folded = sum(others, start=first)
        moduli: Tensor = torch.fft.ifft2(folded).abs() / (stride * stride)
        return moduli

    def _average(self, moduli: Tensor) -> Tensor:
        weights = self.averages[:, :: self.averages.shape[1] // moduli.shape[-1]]
        weights = weights / weights.sum(1, keepdim=True)
        return weights @ moduli @ weights.T


def _wavelets(side: int, scales: int, angles: int) -> Tensor:
    """Return the Fourier transforms of all wavelets: (scales, angles, side, side), real numbers."""
    # A sampled filter's transform is the sum of the continuous one over all aliases.
    aliases = 2 * pi * torch.arange(-2, 3, dtype=torch.float64)
    line = (2 * pi * torch.fft.fftfreq(side, dtype=torch.float64)[:, None] + aliases).flatten()
    down, right = torch.meshgrid(line, line, indexing="ij")

    def wavelet(scale: int, angle: float) -> Tensor:
        turn = torch.tensor(angle, dtype=torch.float64)
        along = turn.cos() * right + turn.sin() * down
        across = turn.cos() * down - turn.sin() * right
        width, slant = WIDTH * 2**scale, 4 / angles

        def bell(shift: float) -> Tensor:
            exponent = (along - shift) ** 2 + (across / slant) ** 2
            whole_plane = torch.exp(-(width**2) * exponent / 2)
            return whole_plane.reshape(side, len(aliases), side, len(aliases)).sum((1, 3))

        wave, envelope = bell(FREQUENCY / 2**scale), bell(0.0)
        # Without its mean a wavelet sees edges, not brightness.
        return wave - wave[0, 0] / envelope[0, 0] * envelope

    bank = [
        torch.stack([wavelet(scale, pi * turn / angles) for turn in range(angles)])
        for scale in range(scales)
    ]
    return torch.stack(bank).to(torch.float32)


def _averages(size: int, step: int) -> Tensor:
    """Return the matrix that averages a padded line around the middle of each of its places."""
    middles = torch.arange(size // step, dtype=torch.float64) * step + (step - 1) / 2 + step
    pixels = torch.arange(size + 2 * step, dtype=torch.float64)
    width = WIDTH * step / 2
    weights = torch.exp(-(((pixels - middles[:, None]) / width) ** 2) / 2)
    return (weights / weights.sum(1, keepdim=True)).to(torch.float32)
