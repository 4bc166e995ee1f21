"""Clocks of agents: whether a ticket may have been refused for its time alone.

Tickets are written by the agent's clock, as it was when the agent was asked last. Which tickets
count is for the agent alone to say; here is decided only whether to write a new one.
"""

from __future__ import annotations

from typing import NamedTuple

from datacollect.net.tickets import AHEAD_S

# A clock that has moved by less refuses nothing: a ticket may be ahead of it by twice as much.
MOVED_S = AHEAD_S / 2


class Issue(NamedTuple):
    """Time at which a ticket was written, and by which clock.

    Attributes
    ----------
    clock_ahead_s : float
        The agent's clock less ours, which never jumps, as it was known then.
    expires_s : float
        By the agent's clock.
    """

    clock_ahead_s: float
    expires_s: float

    def why_out_of_time(self, clock_ahead_s: float, now_s: float) -> str | None:
        """Return why the ticket may not count any more; None: its time is no reason.

        Parameters
        ----------
        clock_ahead_s : float
            The agent's clock less ours, as it was said after the refusal.
        now_s : float
            By our clock.

        Examples
        --------
        >>> issue = Issue(clock_ahead_s=1000.0, expires_s=1600.0)
        >>> issue.why_out_of_time(980.0, now_s=10.0)
        'its clock was set by -20 s'
        >>> issue.why_out_of_time(1000.5, now_s=599.0)
        'its ticket has expired'
        >>> issue.why_out_of_time(1000.5, now_s=10.0)
        """
        moved_s = clock_ahead_s - self.clock_ahead_s
        if abs(moved_s) > MOVED_S:
            return f"its clock was set by {moved_s:+.0f} s"
        if now_s + clock_ahead_s > self.expires_s - MOVED_S:
            return "its ticket has expired"
        return None
