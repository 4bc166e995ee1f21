"""Neighbouring sources can be distinguished, by colour-blind readers, too."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest

from datacollect.pictures.colours import HATCHES, MAX_SERIES, OTHERS, PALETTE, look_of

# What people without one kind of cones see, in linear RGB: G. M. Machado, M. M. Oliveira and
# L. A. F. Fernandes, "A physiologically-based model for simulation of color vision deficiency",
# IEEE TVCG 15 (6), 2009, for severity 1.
SIGHTS = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritanopia": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}
# From linear sRGB to XYZ, and the white of D65 (IEC 61966-2-1).
TO_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
WHITE = TO_XYZ @ np.ones(3)


def seen(colour: str, sight: str) -> np.ndarray:
    """Return how a colour looks to some sight, in CIELAB."""
    srgb = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    x, y, z = TO_XYZ @ np.clip(SIGHTS[sight] @ linear, 0, 1) / WHITE

    def f(t):
        return np.cbrt(t) if t > 216 / 24389 else (24389 / 27 * t + 16) / 116

    return np.array([116 * f(y) - 16, 500 * (f(x) - f(y)), 200 * (f(y) - f(z))])


def apart(one: str, two: str, sight: str) -> float:
    return float(np.linalg.norm(seen(one, sight) - seen(two, sight)))


def test_the_measure_knows_black_white_and_confusion():
    """Black and white are 100 apart; to red-blind eyes this red and this green are much nearer."""
    assert apart("#000000", "#FFFFFF", "normal") == pytest.approx(100, abs=0.1)
    red, green = "#D00000", "#508000"
    assert apart(red, green, "protanopia") < 0.4 * apart(red, green, "normal")


@pytest.mark.parametrize("sight", SIGHTS)
def test_neighbours_differ_much_and_any_two_enough(sight):
    ring = [*pairwise(PALETTE), (PALETTE[-1], PALETTE[0])]
    assert min(apart(a, b, sight) for a, b in ring) > 38
    assert min(apart(a, b, sight) for a, b in combinations(PALETTE, 2)) > 16


def test_more_series_than_colours_are_hatched():
    looks = [look_of(i, MAX_SERIES) for i in range(MAX_SERIES)]
    assert len(set(looks)) == MAX_SERIES == len(PALETTE) * len(HATCHES)
    assert [look.hatch for look in looks[:8]] == [""] * 8
    assert all(look.hatch for look in looks[8:])
    assert look_of(MAX_SERIES, 99).colour == OTHERS
    # Letters and hatching on it stand out.
    for look in looks:
        assert apart(look.colour, look.ink, "normal") > 40
