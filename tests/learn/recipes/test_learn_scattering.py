"""The scattering transform is what its definition says, and every image is on its own."""

from math import pi

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import ParameterError
from discreet.learn.recipes import scattering
from discreet.learn.recipes.scattering import FREQUENCY, WIDTH, Scattering

SMALL, USUAL = Scattering(size=16), Scattering(size=28)


def images(n, size=28):
    return torch.rand(n, size, size, generator=torch.Generator().manual_seed(n))


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 3), st.integers(1, 5), st.integers(2, 4))
def test_shapes_are_as_promised(scales, angles, places):
    features = Scattering(size=places * 2**scales, scales=scales, angles=angles)
    found = features(images(2, features.size))
    assert found.shape == (2, features.channels, features.places, features.places)
    assert features.places == places
    assert torch.isfinite(found).all()
    assert (found >= 0).all()


def test_the_usual_setting_has_81_channels_of_7_by_7():
    assert USUAL(images(1)).shape == (1, 81, 7, 7)


def test_channels_of_an_image_are_transformed_one_by_one():
    features, colours = SMALL, images(6, 16).reshape(2, 3, 16, 16)
    found = features(colours).reshape(2, 3, 81, 4, 4)
    for channel in range(3):
        torch.testing.assert_close(found[:, channel], features(colours[:, channel]))


def test_no_image_depends_on_another():
    features, batch = SMALL, images(scattering.CHUNK + 3, 16)
    found = features(batch)
    for i in (0, 1, scattering.CHUNK - 1, scattering.CHUNK, scattering.CHUNK + 2):
        torch.testing.assert_close(found[i], features(batch[i : i + 1])[0])


def test_an_empty_batch_has_no_features():
    assert USUAL(images(0)).shape == (0, 81, 7, 7)


def test_there_is_nothing_to_learn_or_to_save():
    features = USUAL
    assert list(features.parameters()) == []
    assert features.state_dict() == {}
    assert "scales=2" in repr(features)


@pytest.mark.parametrize("scale", [0, 1])
@pytest.mark.parametrize("turn", [0, 1, 5])
def test_wavelets_are_morlets(scale, turn):
    side, angles = 36, 8
    found = torch.fft.ifft2(scattering._wavelets(side, 2, angles)[scale, turn].to(torch.complex128))
    # A plane wave under a bell, on the periodic plane, less as much of the bell as makes its sum 0.
    line = torch.arange(-3 * side, 3 * side, dtype=torch.float64)
    down, right = torch.meshgrid(line, line, indexing="ij")
    angle = torch.tensor(pi * turn / angles, dtype=torch.float64)
    along = angle.cos() * right + angle.sin() * down
    across = angle.cos() * down - angle.sin() * right
    width, slant = WIDTH * 2**scale, 4 / angles
    bell = torch.exp(-(along**2 + (slant * across) ** 2) / (2 * width**2))
    bell *= slant / (2 * pi * width**2)
    wave = bell * torch.exp(1j * FREQUENCY / 2**scale * along)
    wanted = wave - wave.sum() / bell.sum() * bell
    wanted = wanted.reshape(6, side, 6, side).sum((0, 2))
    torch.testing.assert_close(found, wanted, atol=1e-6, rtol=0)


def test_coefficients_are_averaged_moduli_of_convolutions():
    size, step = 16, 4
    features, picture = SMALL, images(1, size).double()
    bank = torch.fft.ifft2(features.wavelets.to(torch.complex128))
    side = size + 2 * step
    padded = torch.nn.functional.pad(picture[None], [step] * 4, mode="reflect")[0, 0]

    def convolved(signal, kernel):  # by the definition, one shift after the other
        total = torch.zeros(side, side, dtype=torch.complex128)
        for i in range(side):
            for j in range(side):
                total += kernel[i, j] * signal.roll((i, j), (0, 1))
        return total

    def averaged(signal, row, column):
        near = torch.exp(
            -((torch.arange(side) - step * torch.tensor([[row + 1], [column + 1]]) - 1.5) ** 2)
            / (2 * (2 * WIDTH) ** 2)
        ).double()
        return near[0] @ signal @ near[1] / near.sum(1).prod()

    found = features(picture.float())[0].double()
    once = convolved(padded, bank[0, 3]).abs()
    torch.testing.assert_close(found[0, 1, 2], averaged(padded, 1, 2), atol=1e-5, rtol=0)
    torch.testing.assert_close(found[1 + 3, 2, 0], averaged(once, 2, 0), atol=1e-5, rtol=0)
    # From every second pixel the average of a coarse wavelet is a close estimate.
    twice = convolved(once, bank[1, 5]).abs()
    channel = 1 + 2 * 8 + 3 * 8 + 5
    torch.testing.assert_close(found[channel, 1, 1], averaged(twice, 1, 1), atol=0, rtol=0.05)


def test_a_folded_spectrum_gives_every_second_pixel():
    features = USUAL
    spectrum = torch.fft.fft2(torch.rand(3, 1, 36, 36))
    every = features._moduli(spectrum, 1, stride=1)
    torch.testing.assert_close(features._moduli(spectrum, 1, stride=2), every[..., ::2, ::2])


@settings(max_examples=20, deadline=None)
@given(st.floats(0.01, 100))
def test_brightness_is_an_average_and_no_wavelet_sees_it(level):
    found = SMALL(torch.full((1, 16, 16), level))[0]
    torch.testing.assert_close(found[0], torch.full((4, 4), level))
    assert found[1:].max() <= 1e-5 * level


@settings(max_examples=20, deadline=None)
@given(st.floats(0.01, 100))
def test_contrast_scales_all_features(factor):
    features, picture = SMALL, images(1, 16)
    torch.testing.assert_close(features(factor * picture), factor * features(picture))


def test_a_turned_image_has_turned_features():
    features, picture = USUAL, images(1)
    found, turned = features(picture)[0], features(picture.rot90(dims=(1, 2)))[0]
    back = turned.rot90(-1, dims=(1, 2))
    torch.testing.assert_close(back[0], found[0], atol=1e-5, rtol=0)
    # A quarter turn is four of the eight angles, which go round once in half a turn.
    fine = slice(1, 9)
    torch.testing.assert_close(back[fine].roll(4, 0), found[fine], atol=1e-5, rtol=0)
    assert not torch.allclose(back[fine], found[fine], atol=1e-2)


def test_a_small_shift_moves_features_less_than_pixels():
    features, picture = USUAL, torch.zeros(1, 28, 28)
    picture[0, 8:20, 12:15] = 1
    shifted = picture.roll(1, 2)
    moved = (features(shifted) - features(picture)).norm() / features(picture).norm()
    assert moved < 0.5 * (shifted - picture).norm() / picture.norm()


@pytest.mark.parametrize(
    "wrong",
    [
        {"size": 30},
        {"size": 4},
        {"size": 0},
        {"size": 28.5},
        {"size": 28, "scales": 0},
        {"size": 28, "scales": 3},
        {"size": 28, "angles": 0},
    ],
)
def test_settings_that_do_not_fit_are_refused(wrong):
    with pytest.raises(ParameterError):
        Scattering(**wrong)


@pytest.mark.parametrize("shape", [(28, 28), (2, 16, 28), (2, 1, 1, 28, 28), (2, 14, 14)])
def test_images_of_another_shape_are_refused(shape):
    with pytest.raises(ParameterError, match="shape"):
        USUAL(torch.zeros(shape))
