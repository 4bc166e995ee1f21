"""Style of all drawn parts of a picture: lengths in inches, and inks."""

from __future__ import annotations

WIDTH, MARGIN = 12.0, 0.15
# matplotlib's text sizes are in points, 1/72 inch.
LABEL_POINTS = 7.5
CHARACTER = 0.6 * LABEL_POINTS / 72  # about what a character is wide
INK, FAINT = "#222222", "#5A5A5A"
STORED, GROUND = "#D8D8D8", "#F5F5F5"
