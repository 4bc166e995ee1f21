"""Back-off from a server, on a clock that stands still."""

from contextlib import ExitStack

import pytest

from datacollect.errors import TransferError
from datacollect.transfer.sources.web.pace import (
    FIRST_DISTANCE_S,
    LONGEST_DISTANCE_S,
    SHORTEST_RUN,
    SPREAD_S,
    ServerPace,
)


class WaitsError(Exception):
    """Somebody waits, until then."""


class StoppedPace(ServerPace):
    """A pace on a clock of ours: who would wait says until when."""

    def __init__(self):
        self.now_s = 0.0
        super().__init__(lambda: self.now_s)

    def _wait_until(self, at_s):
        raise WaitsError(at_s)

    def asks(self, n=1):
        """So many ask at once, and all end well; return when the next would be let in, or None."""
        with ExitStack() as turns:
            try:
                for _ in range(n):
                    turns.enter_context(self.turn("W", 100.0))
            except WaitsError as waits:
                return waits.args[0]
        return None

    def is_refused(self, n=1, wait_s=0.0):
        """So many ask at once, and are all told to come later."""
        with ExitStack() as turns:
            for number in [turns.enter_context(self.turn("W", 100.0)) for _ in range(n)]:
                self.busy(wait_s, number)

    def width(self):
        """How many may ask at once by now."""
        return next(n for n in range(1000) if self.asks(n + 1) is not None)


def test_at_first_nobody_waits():
    pace = StoppedPace()
    assert pace.asks(100) is None
    assert not pace.is_narrow


def test_whoever_waited_comes_by_himself():
    """Eight that wait for the same pause do not come at once."""
    pace = StoppedPace()
    pace.is_refused(8, wait_s=30.0)
    assert [pace.asks() for _ in range(8)] == pytest.approx([30 + n * SPREAD_S for n in range(8)])
    pace.now_s = 31.0
    assert pace.asks() is None


def test_those_that_were_refused_together_halve_their_number_once():
    pace = StoppedPace()
    for n in (8, 4, 2, 1):
        pace.is_refused(n)
        pace.now_s += 1.0
        assert pace.width() == max(1, n // 2)
    assert pace.is_narrow


def test_one_more_is_let_in_after_a_run_of_good_answers_a_longer_one_after_each_refusal():
    pace = StoppedPace()
    pace.is_refused(4)
    for run, width in ((SHORTEST_RUN, 2), (2 * SHORTEST_RUN, 1)):
        for _ in range(run):
            assert pace.width() == width
            pace.went_well()
        assert pace.width() == width + 1
        pace.is_refused(width + 1)
        pace.now_s += 1.0


def test_where_one_at_a_time_is_too_much_requests_keep_a_distance():
    pace = StoppedPace()
    pace.is_refused(1)
    for n in range(12):
        pace.now_s += 100.0
        pace.is_refused(1)
        pace.now_s += 100.0
        assert pace.asks() is None
        assert pace.asks() == pytest.approx(
            pace.now_s + min(FIRST_DISTANCE_S * 2**n, LONGEST_DISTANCE_S)
        )
    for _ in range(20_000):
        pace.went_well()
    pace.now_s += 100.0
    assert pace.asks() is None
    assert pace.asks() is None, "all goes well again"


def test_nobody_waits_longer_than_patience():
    pace = StoppedPace()
    pace.is_refused(1, wait_s=101.0)
    with pytest.raises(
        TransferError, match=r"asks to wait 101 s more \(Retry-After\), and patience_s is 100"
    ):
        pace.asks()


def test_who_is_over_waits_no_more():
    pace = StoppedPace()
    pace.is_refused(1, wait_s=10.0)
    with (
        pytest.raises(TransferError, match="the session was ended"),
        pace.turn(is_over=lambda: True),
    ):
        pass
    pace.pause(10.0, lambda: True)
