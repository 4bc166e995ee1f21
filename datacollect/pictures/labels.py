"""Labels of maps: where their letters stand, and what they would lie on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from datacollect.pictures.writing import width_of

# Inches of a letter, across and along.
LETTER, TALL = 0.075, 0.13


class Label(NamedTuple):
    """A text, and where its letters stand.

    Attributes
    ----------
    text : str
    x, y : float
        Inches, half-way between the feet and the heads of the letters.
    ha : {"left", "center", "right"}
        Which part of the text is at `x`.
    """

    text: str
    x: float
    y: float
    ha: str

    @property
    def left(self) -> float:
        """Return where its letters begin."""
        wide = LETTER * width_of(self.text)
        return self.x - {"left": 0.0, "center": wide / 2, "right": wide}[self.ha]

    def overlaps(self, other: Label) -> bool:
        """Return whether it lies on another.

        >>> one = Label("8 Mbit/s", 1.0, 1.0, "left")
        >>> one.overlaps(one._replace(y=1.1)), one.overlaps(one._replace(y=1.2))
        (True, False)
        """
        ends = self.left + LETTER * width_of(self.text), other.left + LETTER * width_of(other.text)
        is_beside = self.left >= ends[1] or other.left >= ends[0]
        return not is_beside and abs(self.y - other.y) < TALL

    def crosses(self, begin: np.ndarray, end: np.ndarray, width: float) -> bool:
        """Return whether it lies on a line that is so wide.

        >>> one = Label("8 Mbit/s", 1.0, 1.0, "left")
        >>> line = np.array([1.2, 0.0]), np.array([1.2, 2.0])
        >>> one.crosses(*line, 0.1), one._replace(ha="right").crosses(*line, 0.1)
        (True, False)
        """
        wide = LETTER * width_of(self.text)
        low = np.array([self.left - width / 2, self.y - TALL / 2 - width / 2])
        high = np.array([self.left + wide + width / 2, self.y + TALL / 2 + width / 2])
        # The part of the line that is within both pairs of sides (Liang and Barsky, 1984).
        first, last = 0.0, 1.0
        for k in range(2):
            step = float(end[k] - begin[k])
            if step == 0:
                if not low[k] < begin[k] < high[k]:
                    return False
                continue
            one, other = sorted([(low[k] - begin[k]) / step, (high[k] - begin[k]) / step])
            first, last = max(first, float(one)), min(last, float(other))
        return first < last or (first == last and bool(np.all(begin == end)))


def label_beside(text: str, beside: np.ndarray, aside: np.ndarray, distance: float) -> Label:
    """Return where a text stands on one side of an arrow, so far away from a point of it."""
    x, y = (beside + distance * aside).tolist()
    ha = "left" if aside[0] > 0.3 else "right" if aside[0] < -0.3 else "center"
    return Label(text, x, y, ha)
