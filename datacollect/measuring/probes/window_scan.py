"""Chooses the window and the connections of a path: most of its rate by the fewest of them.

Each connection costs both hosts memory and time, so a path is given the fewest that get 80 to 90 %
of the most that any number got (Cottrell, Antony, Logg and Navratil, iGrid2002 Demonstration:
Bandwidth from the Low Lands, 2003, section III.D).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

# The tool that measures what is chosen from.
SCAN = "scan"
ENOUGH = 0.8


@dataclass(frozen=True)
class Cell:
    """Rate that some connections with a window got.

    Attributes
    ----------
    streams : int
    window_bytes : int or None
        None: as the sender's kernel decides.
    bandwidth_bytes_per_s : float
    """

    streams: int
    window_bytes: int | None
    bandwidth_bytes_per_s: float


@dataclass(frozen=True)
class Choice:
    """The cell to use, and the one that got the most."""

    chosen: Cell
    most: Cell

    @property
    def part(self) -> float:
        """Of the most."""
        return self.chosen.bandwidth_bytes_per_s / self.most.bandwidth_bytes_per_s


def choose(cells: Iterable[Cell]) -> Choice | None:
    """Return the cell with the fewest connections that gets enough; None where none got anything.

    Of windows with that number the kernel's own counts first, as nobody has to set it, then the
    smallest.

    Examples
    --------
    >>> rates = {1: 30.0, 2: 55.0, 4: 85.0, 8: 100.0}
    >>> found = choose(Cell(n, None, rate) for n, rate in rates.items())
    >>> found.chosen.streams, found.part, found.most.streams
    (4, 0.85, 8)
    """
    got = [cell for cell in cells if cell.bandwidth_bytes_per_s > 0]
    if not got:
        return None
    most = max(got, key=lambda cell: cell.bandwidth_bytes_per_s)
    enough = [c for c in got if c.bandwidth_bytes_per_s >= ENOUGH * most.bandwidth_bytes_per_s]
    return Choice(min(enough, key=lambda cell: (cell.streams, cell.window_bytes or 0)), most)
