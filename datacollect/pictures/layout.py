"""Layout of a picture's bands, and their scales."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from datacollect.pictures.picture import Area, Picture


@dataclass(frozen=True)
class BandPlace:
    """Position of a band, in inches below the picture's top, and its scale.

    From `top` to `line` stands what the host sends, from `line` to `low` what it receives, and
    from `low` to `bottom` what it stores.
    """

    top: float
    line: float
    low: float
    bottom: float
    bytes_per_s_per_inch: float

    @property
    def middle(self) -> float:
        """Middle of what it sends and receives."""
        return (self.top + self.low) / 2


def lay_out(picture: Picture, top: float = 0.0) -> tuple[list[BandPlace], bool]:
    """Place the bands below `top`; the second result tells whether all have one scale.

    One scale for all makes areas comparable: an area is an amount of data. Where rates differ too
    much for that, each host has its own.
    """
    few = len(picture.bands) <= 12
    # Inches: half a band at the biggest rate; the least for lines of text; between bands.
    half, least, least_both, gap = (0.58, 0.38, 0.52, 0.17) if few else (0.3, 0.2, 0.44, 0.1)
    peaks = [
        (peak_bytes_per_s(band.sends), peak_bytes_per_s(band.receives)) for band in picture.bands
    ]
    biggest = max(max(peak) for peak in peaks[:-1])
    smallest = min(max(peak) for peak in peaks[:-1])
    # The destination may be higher than others by as much as its links carry more.
    one_scale = smallest >= biggest / 6 and max(peaks[-1]) <= 5 * biggest
    places = []
    for band, (sends, receives) in zip(picture.bands, peaks, strict=True):
        times = 1 if band is not picture.bands[-1] else 2 if few else 4
        scale = (biggest if one_scale else max(sends, receives) / times) / half
        up, down = sends / scale, receives / scale
        missing = max(0.0, (least_both if up and down else least) - up - down)
        up += missing / 2 if up and down else missing if up else 0.0
        down += missing / 2 if up and down else missing if down else 0.0
        low = top + up + down
        bottom = low + (0.6 * half if band.shows_storage else 0.0)
        places.append(BandPlace(top, top + up, low, bottom, scale))
        top = bottom + gap
    return places, one_scale


def peak_bytes_per_s(areas: tuple[Area, ...]) -> float:
    """Return the highest sum of the areas' rates."""
    return float(np.sum([area.bytes_per_s for area in areas], axis=0).max()) if areas else 0.0
