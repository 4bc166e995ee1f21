"""A fluid plan: in which pieces of time data move, and by which paths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.flow.network.pools import Pool
    from datacollect.flow.routes.routes import PathFlow
    from datacollect.numbers.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class FluidPlan:
    """Pieces of time, and the paths that data take in them.

    Attributes
    ----------
    starts_s, lengths_s : ndarray of float, shape (n_pieces,)
        Data move during the first ``lengths_s[k]`` seconds of piece k.
    pools : tuple of Pool
    paths : sequence of PathFlow
    solver : str
    gap : float
        By the preference another plan is better by at most this part; 0 where that is proved.
    is_whole : bool
        Amounts of paths are bytes: where storage is full to the byte, see
        `datacollect.flow.whole_flow`.
    """

    starts_s: FloatArray
    lengths_s: FloatArray
    pools: tuple[Pool, ...]
    paths: Sequence[PathFlow]
    solver: str
    gap: float = 0.0
    is_whole: bool = False
