"""Leases of hosts: one at a time, in one order, over by their time; who waits is told how long."""

from __future__ import annotations

import pytest
from measuring.plan.lease_simulation import World

from datacollect.errors import ProblemError
from datacollect.measuring.plan.host_lease import PLACE_S, Granted, HostLease, Wait
from datacollect.measuring.plan.lease_taking import (
    ANSWER_S,
    Ask,
    Ended,
    GiveBack,
    LeaseTaking,
    Ready,
    Waiting,
)


def test_a_lease_ends_by_its_time_or_when_it_is_given_back():
    lease = HostLease(60.0)
    assert lease.ask("a", 20.0, 0.0) == Granted(20.0)
    assert lease.holder(19.9) == "a"
    assert lease.holder(20.0) is None
    assert lease.ask("b", 20.0, 20.0) == Granted(20.0)
    lease.give_back("a", 21.0)  # it has none any more
    assert lease.holder(21.0) == "b"
    lease.give_back("b", 22.0)
    assert lease.holder(22.0) is None


def test_asking_again_makes_no_lease_longer_and_none_is_longer_than_the_longest():
    lease = HostLease(60.0)
    assert lease.ask("a", 1e9, 0.0) == Granted(60.0)
    assert lease.ask("a", 1e9, 50.0) == Granted(10.0)


def test_who_waits_is_told_how_long_in_the_order_of_asking():
    """a has 20 s left; c is behind b, which may take its time to ask, 6 s, and then 30 s."""
    lease = HostLease(60.0)
    lease.ask("a", 20.0, 0.0)
    assert lease.ask("b", 30.0, 0.0) == Wait(20.0, 2.0)
    assert lease.ask("c", 5.0, 1.0) == Wait(19.0 + PLACE_S + 30.0, 2.0)
    for now_s in (2.0, 7.0, 12.0, 17.0):
        lease.ask("b", 30.0, now_s)
        lease.ask("c", 5.0, now_s)
    assert lease.ask("c", 5.0, 20.0) == Wait(PLACE_S + 30.0, 2.0)
    assert lease.ask("b", 30.0, 21.0) == Granted(30.0)


def test_who_stops_asking_loses_its_place_after_a_while():
    lease = HostLease(60.0)
    lease.ask("a", 10.0, 0.0)
    lease.ask("b", 30.0, 5.0)
    lease.ask("c", 30.0, 6.0)
    assert lease.ask("c", 30.0, 10.9) == Wait(PLACE_S + 30.0, 2.0)
    assert lease.ask("c", 30.0, 11.0) == Granted(30.0)


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan")])
def test_a_lease_for_no_time_is_refused(seconds):
    with pytest.raises(ProblemError, match="a lease must be for > 0 s, got"):
        HostLease(60.0).ask("a", seconds, 0.0)


def taking(*fingerprints, **options):
    return LeaseTaking("me", fingerprints, **{"test_s": 10.0, "hold_s": 30.0, **options})


def test_leases_are_taken_in_the_order_of_fingerprints():
    one = taking("b", "a", give_up_s=600.0)
    assert one.begin(0.0) == [Ask("a", "me/1", 1, 30.0)]
    assert one.answered("a", 1, Granted(30.0), 1.0) == [Ask("b", "me/1", 2, 30.0)]
    assert one.answered("b", 2, Granted(12.0), 2.0) == [Ready(13.0)]  # asked for at 1 s
    assert one.finish(12.0) == [GiveBack("a", "me/1"), GiveBack("b", "me/1"), Ended("")]
    assert one.finish(12.0) == []


def test_one_host_under_two_names_is_no_pair():
    with pytest.raises(ProblemError, match="two hosts of a test have the fingerprint a: they are"):
        taking("a", "a", give_up_s=600.0)


def test_a_question_without_an_answer_is_asked_again_and_either_answer_counts():
    one = taking("a", give_up_s=600.0)
    one.begin(0.0)
    assert one.tick(ANSWER_S - 0.1) == []
    assert one.tick(ANSWER_S) == [Ask("a", "me/1", 2, 30.0)]
    # The answer to the first says how long it is: counted from the first question.
    assert one.answered("a", 1, Granted(30.0), 6.0) == [Ready(30.0)]
    assert one.answered("a", 2, Granted(24.0), 6.5) == []


def test_answers_to_what_was_never_asked_are_ignored():
    one = taking("a", "b", give_up_s=600.0)
    one.begin(0.0)
    assert one.answered("a", 7, Granted(30.0), 1.0) == []
    assert one.answered("b", 1, Granted(30.0), 1.0) == []


def test_a_host_that_promises_more_than_was_asked_for_is_not_believed():
    one = taking("a", give_up_s=600.0)
    one.begin(0.0)
    assert one.answered("a", 1, Granted(1e9), 1.0) == [Ready(30.0)]


def test_who_waits_keeps_what_it_has_as_long_as_that_will_last():
    one = taking("a", "b", give_up_s=600.0)
    one.begin(0.0)
    one.answered("a", 1, Granted(30.0), 0.0)
    assert one.answered("b", 2, Wait(19.0, 2.0), 1.0) == [Waiting("b", 19.0)]
    assert one.tick(3.0) == [Ask("b", "me/1", 3, 30.0)]
    # 3 + 18 + 10 s is after 30 s: others may have a meanwhile.
    assert one.answered("b", 3, Wait(18.0, 2.0), 3.0) == [
        Waiting("b", 18.0),
        GiveBack("a", "me/1"),
        GiveBack("b", "me/1"),
    ]
    # The other may end before its time.
    assert one.tick(12.9) == []
    assert one.tick(13.0) == [Ask("a", "me/2", 4, 30.0)]


def test_a_lease_that_comes_after_its_attempt_is_given_back():
    one = taking("a", "b", give_up_s=600.0)
    one.begin(0.0)
    one.answered("a", 1, Granted(30.0), 0.0)
    one.lost("a", 1.0)
    assert one.answered("b", 2, Granted(30.0), 1.5) == [GiveBack("b", "me/1")]
    assert one.answered("b", 2, Wait(3.0, 2.0), 1.6) == []
    one.finish(2.0)
    assert one.answered("b", 2, Granted(30.0), 2.5) == [GiveBack("b", "me/1")]


def test_leases_with_too_little_left_are_taken_anew():
    one = taking("a", give_up_s=600.0)
    one.begin(0.0)
    assert one.answered("a", 1, Granted(9.0), 0.5) == [GiveBack("a", "me/1")]


def test_a_running_test_stops_with_a_connection_or_with_its_leases():
    def running():
        one = taking("a", give_up_s=600.0)
        one.begin(0.0)
        one.answered("a", 1, Granted(30.0), 0.0)
        return one

    assert running().lost("x", 5.0) == []
    assert running().lost("a", 5.0) == [
        GiveBack("a", "me/1"),
        Ended("the connection to a was lost"),
    ]
    assert running().tick(29.9) == []
    assert running().tick(30.0) == [GiveBack("a", "me/1"), Ended("the leases have ended")]


def test_all_patience_has_an_end():
    one = taking("a", give_up_s=7.0)
    one.begin(0.0)
    one.tick(5.0)
    assert one.tick(10.0) == [
        GiveBack("a", "me/1"),
        Ended("another test, or no answer, until the time to wait was over"),
    ]
    assert one.tick(11.0) == []


def test_leases_shorter_than_the_test_are_refused():
    with pytest.raises(ProblemError, match=r"hold_s must be at least test_s, .* got 5.0 and 10.0"):
        taking("a", hold_s=5.0, give_up_s=600.0)


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_many_operators_share_hosts_without_overlap_and_all_get_their_turn(first):
    """`tests/measuring/plan/lease_simulation.py` says what happens, and what must be true."""
    faults = {seed: World(seed).run() for seed in range(first, first + 50)}
    assert {seed: found for seed, found in faults.items() if found} == {}


def taken_away(lease, token, seconds, now_s):
    lease._holder, lease._until_s = token, now_s + seconds
    return Granted(seconds)


def test_the_simulation_sees_two_tests_at_a_time(monkeypatch):
    """A host that grants all, and one that never takes a lease back, are both found out."""
    with monkeypatch.context() as patch:
        patch.setattr(HostLease, "ask", taken_away)
        assert any("is in two tests" in text for seed in range(20) for text in World(seed).run())
    with monkeypatch.context() as patch:
        patch.setattr(HostLease, "holder", lambda lease, _: lease._holder)
        patch.setattr(HostLease, "give_back", lambda *_, **__: None)
        assert any("held for ever" in text for seed in range(20) for text in World(seed).run())
