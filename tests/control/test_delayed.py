"""Control from one place, by hand: what is known when, and when decisions act."""

from __future__ import annotations

import pickle
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from instances.planned_anew import over_k, triangle
from instances.tiny_controllers import Scripted

from datacollect.control.controller import Controller
from datacollect.control.decisions import Close, Open, PlanRemaining, Send, WakeMe
from datacollect.control.delayed import ControlDelays, DelayedController
from datacollect.control.events import (
    BytesMoved,
    ConnectionClosed,
    ConnectionHasRoom,
    ConnectionOpened,
    ConnectionStalled,
    HostLost,
    RangeArrived,
    RemainingPlanned,
    Timer,
)
from datacollect.control.planned.replanning import ReplanningController
from datacollect.schedule.progress import Progress

# Seconds from D to the others, and back.
DELAYS = ControlDelays(to_s={"S": 0.3, "K": 0.1, "D": 0.0}, from_s={"S": 0.5, "K": 0.2, "D": 0.0})


class Answers(Controller):
    """Answers each event as it was told to, and keeps what it got to know."""

    def __init__(self, first=(), **by_kind):
        self.first, self.by_kind, self.events = list(first), by_kind, []

    def start(self):
        return self.first

    def handle(self, event):
        self.events.append(event)
        return list(self.by_kind.get(type(event).__name__, ()))


def delayed(*first, **by_kind):
    inner = Answers(first, **by_kind)
    return inner, DelayedController(inner, DELAYS)


def ring(controller, decisions):
    """Let the timers of some decisions ring, in their order; return what follows."""
    wakes = sorted((d for d in decisions if isinstance(d, WakeMe)), key=lambda d: d.time_s)
    return [d for wake in wakes for d in controller.handle(Timer(wake.time_s, wake.tag))]


def test_a_decision_acts_at_the_sender_once_a_message_is_there():
    """From D it takes 0.3 s to S, 0.1 s to K, no time to D itself; one message for each host."""
    to_k = [Open(1, ("K", "D")), Send(1, "S", 0, 4)]
    to_s = [Open(0, ("S", "K")), Send(0, "S", 0, 4), Close(0)]
    _, controller = delayed(to_s[0], to_k[0], *to_s[1:], to_k[1], Open(2, ("D", "K")))
    first = controller.start()
    assert first[0] == Open(2, ("D", "K"))
    assert [d.time_s for d in first[1:]] == [0.3, 0.1]
    assert [controller.handle(Timer(d.time_s, d.tag)) for d in first[1:]] == [to_s, to_k]


@pytest.mark.parametrize(
    ("event", "known_s"),
    [
        (ConnectionOpened(2.0, 0), 2.5),
        (ConnectionStalled(2.0, 0), 2.5),
        (ConnectionClosed(2.0, 0), 2.5),
        (ConnectionHasRoom(2.0, 0, 7), 2.5),
        (RangeArrived(2.0, 0, "K", "S", 0, 4), 2.2),
        (RangeArrived(2.0, 0, "D", "S", 0, 4), 2.0),
        (HostLost(2.0, "S"), 2.5),
    ],
)
def test_what_happens_is_known_once_a_message_has_come(event, known_s):
    """Of a connection from S: 0.5 s after, of what arrives at K 0.2 s after, at D at once."""
    inner, controller = delayed(Open(0, ("S", "K")))
    ring(controller, controller.start())
    if known_s > event.time_s:
        (wake,) = controller.handle(event)
        assert inner.events == []
        assert wake.time_s == known_s
        assert controller.handle(Timer(known_s, wake.tag)) == []
    else:
        assert controller.handle(event) == []
    (known,) = inner.events
    assert type(known) is type(event)
    assert known.time_s == known_s


def test_timers_and_plans_of_the_rest_are_where_it_decides():
    wanted = PlanRemaining(0, Progress(1.0, held=[]))
    inner, controller = delayed(WakeMe(1.0, -3), Timer=[wanted], RemainingPlanned=[WakeMe(4.0, 1)])
    (wake,) = controller.start()
    assert controller.handle(Timer(1.0, wake.tag)) == [wanted]
    (again,) = controller.handle(RemainingPlanned(1.0, 0, None))
    assert again.tag != wake.tag
    controller.handle(Timer(4.0, again.tag))
    assert [getattr(e, "tag", None) for e in inner.events] == [-3, None, 1]


def test_a_connection_counts_from_the_decision_to_open_it_until_its_end_is_known():
    """0 is gone at 2 s, known at 2.5 s. Meanwhile, at 2.2 s, 1 is decided on: two at a time."""
    inner, controller = delayed(Open(0, ("S", "D")), WakeMe(2.2, 0), Timer=[Open(1, ("S", "D"))])
    wake = next(d for d in controller.start() if d.time_s == 2.2)
    assert controller.answer == {"most_connections": 1}
    (known,) = controller.handle(ConnectionClosed(2.0, 0))
    controller.handle(Timer(2.2, wake.tag))
    assert controller.answer == {"most_connections": 2}
    inner.by_kind["Timer"] = [Open(2, ("S", "D"))]
    controller.handle(Timer(known.time_s, known.tag))
    controller.handle(Timer(3.0, wake.tag))
    assert controller.answer == {"most_connections": 2}


def test_a_chain_counts_its_hops_and_is_asked_for_at_its_first_host():
    """From D it takes 0.3 s to S. S -> K -> D are two connections until the end is known."""
    chain = Open(0, ("S", "K", "D"))
    inner, controller = delayed(chain, Timer=[Open(1, ("D", "K"))])
    (asked,) = controller.start()
    assert asked.time_s == 0.3
    assert controller.answer == {"most_connections": 2}
    assert controller.handle(Timer(0.3, asked.tag)) == [chain]
    (known,) = controller.handle(ConnectionClosed(2.0, 0))
    controller.handle(Timer(known.time_s, known.tag))
    controller.handle(Timer(3.0, 0))
    assert controller.answer == {"most_connections": 2}
    assert inner.events[-1] == Timer(3.0, 0)


def test_hosts_that_there_are_not_are_the_driver_s_to_refuse():
    decided = [Open(0, ("X", "D")), Send(9, "S", 0, 1), Close(9)]
    assert delayed(*decided)[1].start() == decided


def test_it_can_be_sent_to_another_process_and_says_what_the_controller_says():
    inner = ReplanningController(triangle(), over_k(), replan_s=10.0)
    there, here = (pickle.loads(pickle.dumps(DelayedController(inner, DELAYS))) for _ in range(2))
    assert there.start() == here.start()
    assert there.answer == {**inner.answer, "most_connections": 2}


MESSAGES = st.lists(
    st.tuples(st.floats(0, 5), st.sampled_from(["room", "arrived", "timer"]), st.booleans()),
    max_size=40,
)


@given(MESSAGES, st.lists(st.sampled_from([0.0, 0.1, 1.0]), min_size=4, max_size=4))
def test_every_message_comes_once_after_its_time_and_in_order(script, delays):
    """Whatever happens in whatever order: a driver by hand, that only keeps to the time."""
    hosts = ("S", "K")
    to_s, from_s = (dict(zip(hosts, part, strict=True)) for part in (delays[:2], delays[2:]))
    inner = Scripted(Open(0, ("S", "K")), Open(1, ("K", "S")))
    controller = DelayedController(inner, ControlDelays(to_s, from_s))
    agenda = [(time_s, 0, n, kind, second) for n, (time_s, kind, second) in enumerate(script)]
    decided: Counter[int] = Counter()

    def do(decisions, now_s):
        for decision in decisions:
            if isinstance(decision, WakeMe):
                assert decision.time_s >= now_s
                agenda.append((decision.time_s, 1, len(decided) + len(agenda), decision.tag, None))
            else:
                decided[decision.connection] += 1
                at = hosts[decision.connection]
                assert now_s == pytest.approx(to_s[at])

    do(controller.start(), 0.0)
    happened = {"room": [[], []], "arrived": [[], []]}
    while agenda:
        agenda.sort()
        now_s, is_wake, number, what, second = agenda.pop(0)
        if is_wake:
            do(controller.handle(Timer(now_s, what)), now_s)
        elif what == "room":
            happened[what][second].append((number, now_s))
            do(controller.handle(ConnectionHasRoom(now_s, int(second), number)), now_s)
        elif what == "arrived":
            happened[what][second].append((number, now_s))
            event = RangeArrived(now_s, 1 - int(second), hosts[second], "S", number, 1)
            do(controller.handle(event), now_s)
    assert decided == {0: 1, 1: 1}
    for second, host in enumerate(hosts):
        rooms = [e for e in inner.events if isinstance(e, ConnectionHasRoom)]
        arrivals = [e for e in inner.events if isinstance(e, RangeArrived)]
        known = [(e.room_bytes, e.time_s) for e in rooms if e.connection == second]
        there = [(e.offset_bytes, e.time_s) for e in arrivals if e.host == host]
        for found, told in ((happened["room"], known), (happened["arrived"], there)):
            expected = [(n, at_s + from_s[host]) for n, at_s in found[second]]
            assert [n for n, _ in told] == [n for n, _ in expected]
            assert [t for _, t in told] == pytest.approx([t for _, t in expected])


@pytest.mark.parametrize(("hosts", "delay_s"), [(("S", "K", "D"), 0.0), (("S", "K"), 0.2)])
def test_what_has_arrived_is_known_once_the_receiver_has_told(hosts, delay_s):
    """At D at once, from K after 0.2 s; S, which sends, has nothing to say of it."""
    inner, controller = delayed(Open(7, hosts))
    controller.start()
    posted = controller.handle(BytesMoved(2.0, 7, 1000))
    assert [wake.time_s for wake in posted] == ([] if delay_s == 0 else [2.0 + delay_s])
    ring(controller, posted)
    assert inner.events == [BytesMoved(2.0 + delay_s, 7, 1000)]


def test_it_watches_as_often_as_the_controller_that_it_delays():
    inner = Answers()
    inner.watches_every_s = 0.5
    assert DelayedController(inner, DELAYS).watches_every_s == 0.5
