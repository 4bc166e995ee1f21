"""Decisions that no driver can carry out are refused, in the same words by all of them."""

import pytest

from datacollect.control.decisions import Close, Open, Send, WakeMe, require_possible
from datacollect.errors import SimulationError

KNOWN = {"hosts": {"S", "K", "D"}, "backlog_bytes": {"S": 10}, "opened": {0}}


@pytest.mark.parametrize(
    "decision",
    [
        Open(1, ("S", "D")),
        Open(1, ("D", "S"), 5000, 0.5),
        Open(1, ("S", "K", "D"), 5000, 0.5),
        Send(0, "S", 0, 10),
        Send(0, "S", 9, 1),
        Close(0),
        WakeMe(0.0, -1),
    ],
)
def test_what_is_possible_is_let_through(decision):
    require_possible(decision, **KNOWN)


@pytest.mark.parametrize(
    ("decision", "words"),
    [
        (Open(0, ("S", "D")), "number 0 has been used before; take a new one"),
        (Open(1, ("S", "SS")), "host 'SS' is not in the network; did you mean 'S'"),
        (Open(1, ("X", "D")), "host 'X' is not in the network"),
        (Open(1, ("S", "K", "X", "D")), "host 'X' is not in the network"),
        (Open(1, ("S", "K", "S", "D")), "a chain must pass a host once, got 'S' 2 times"),
        (Open(1, ("S",)), "hosts must be a tuple of two or more, got ('S',)"),
        (Open(1, ()), "hosts must be a tuple of two or more, got ()"),
        (Open(1, "SD"), "hosts must be a tuple of two or more, got 'SD'"),
        (Open(1, ("S", "D"), None, 0.0), "pace_bytes_per_s must be > 0"),
        (Open(1, ("S", "D"), None, float("nan")), "pace_bytes_per_s must be > 0"),
        (Send(4, "S", 0, 10), "connection 4 was never opened; open it first"),
        (Close(4), "connection 4 was never opened"),
        (Send(0, "S", 5, 10), "must lie within the source's 10 bytes; is this a schedule for"),
        (Send(0, "S", -1, 5), "must lie within the source's 10 bytes"),
        (Send(0, "S", 5, 0), "must lie within the source's 10 bytes"),
        (Send(0, "X", 0, 1), "must lie within the source's 0 bytes"),
        (WakeMe(-1.0, 0), "time_s must be >= 0"),
        (WakeMe(float("nan"), 0), "time_s must be >= 0"),
        ("stop", "must be one of Open"),
    ],
)
def test_what_is_not_is_refused_with_the_decision_itself(decision, words):
    with pytest.raises(SimulationError) as caught:
        require_possible(decision, **KNOWN)
    assert str(caught.value).startswith(
        f"the controller's decision cannot be carried out: {decision}: "
    )
    assert words in str(caught.value)
