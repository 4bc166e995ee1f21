"""An instant by a host's two clocks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Now:
    """An instant, as a shell tells a core.

    Attributes
    ----------
    monotonic_s : float
        For durations. It must go on while the host sleeps: CLOCK_BOOTTIME, where there is one.
    unix_s : float
        Seconds since 1970; may jump.
    is_synchronised : bool
        Whether the kernel says so, or somebody vouches for the clock.
    """

    monotonic_s: float
    unix_s: float
    is_synchronised: bool = True
