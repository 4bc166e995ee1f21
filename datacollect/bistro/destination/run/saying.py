"""Lines that an operator reads for weeks: each once in a while, and nobody's flood."""

from __future__ import annotations

import time
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# What was said is said again after this time, if it is still so.
SAY_AGAIN_S = 3600.0
# So many different lines about one host, or about none, are read in that time.
MOST_LINES = 50


class SayingOnce:
    """Says what is new; what was said is said again after a while, if it is still so.

    Somebody whose answers are never the same fills no log: of what is said about one of `names`,
    so many lines are told in an hour, and the last says so.

    Parameters
    ----------
    say : callable
        Takes lines.
    names : sequence of str
        Of hosts; may be replaced by more of them.

    Examples
    --------
    >>> said = SayingOnce(print, ["north"])
    >>> for _ in range(2):
    ...     said("north: does not answer")
    north: does not answer
    """

    def __init__(self, say: Callable[[str], None], names: Sequence[str]) -> None:
        self._say, self.names = say, names
        self._said_s: defaultdict[str, dict[str, float]] = defaultdict(dict)

    def __call__(self, line: str) -> None:
        """Take a line, from any thread."""
        now_s = time.monotonic()
        name = next((each for each in self.names if each in line), "")
        said_s = self._said_s[name]
        for old, at_s in [*said_s.items()]:
            if now_s - at_s > SAY_AGAIN_S:
                said_s.pop(old, None)
        if line in said_s or len(said_s) >= MOST_LINES:
            return
        said_s[line] = now_s
        self._say(line)
        if len(said_s) == MOST_LINES:
            self._say(f"{name or 'others'}: what else is said of it within the hour is left out")
