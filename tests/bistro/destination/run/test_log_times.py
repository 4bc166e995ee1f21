"""Times of entries as services prove them; a service that lies or is away proves nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest
from instances.custody import custody_event, service_log

from datacollect.bistro.destination.run.log_table import Bounded
from datacollect.bistro.destination.run.log_times import SETTLED_S, LogTimes
from datacollect.errors import TransferError
from datacollect.net.http_asking import Answer

EVENT = custody_event()
A, B, C = (letter * 32 for letter in (b"a", b"b", b"c"))
IN_TIME, LATE = EVENT.deadline_s, EVENT.latest_s + 5


def log(number, *heads):
    return service_log(EVENT, number, [A, B], heads)


class Odd:
    """A service that answers otherwise, or not."""

    def __init__(self, answer) -> None:
        self.answer, self.n_asked = answer, 0

    def get(self, path, most_bytes):
        self.n_asked += 1
        if self.answer is None:
            raise TransferError("does not answer")
        return self.answer


def times_of(*services, entries=(A, B, C), **how):
    said = []
    urls = [each.url for each in EVENT.services]
    by_url = dict(zip(urls, services, strict=False))
    found = dict(LogTimes(EVENT, by_url, said.append, **how)(entries))
    return found, said


def test_each_entry_has_the_time_of_the_first_checkpoint_that_holds_it():
    assert times_of(log(0, (1, IN_TIME - 9), (2, IN_TIME))) == ({A: IN_TIME - 9, B: IN_TIME}, [])


def test_late_in_one_log_and_in_time_in_another_is_in_time():
    assert times_of(log(0, (2, LATE)), log(1, (2, IN_TIME)))[0] == {A: IN_TIME, B: IN_TIME}
    assert times_of(log(0, (2, LATE)), log(1, (2, LATE - 1)))[0] == {A: LATE - 1, B: LATE - 1}


def test_the_least_time_counts_where_several_logs_hold_an_entry():
    # Handed in at the second service, which was slow; the first holds it, too, by a minute later.
    both = log(0, (2, IN_TIME)), log(1, (2, IN_TIME - 60))
    assert times_of(*both)[0] == times_of(*reversed(both))[0] == {A: IN_TIME - 60, B: IN_TIME - 60}


def test_what_a_service_that_was_away_proves_earlier_is_told_later():
    away, first = Odd(None), log(1, (2, IN_TIME - 60))
    times = LogTimes(EVENT, {"s0": log(0, (2, IN_TIME)), "s1": away}, lambda _: None)
    assert dict(times([A])) == {A: IN_TIME}
    assert dict(times([])) == {}
    away.get = first.get
    assert dict(times([])) == {A: IN_TIME - 60}
    assert [*times([])] == [*times.left] == []


def test_a_service_that_is_away_is_asked_once_a_time():
    for answer in (None, Answer(500, b""), Answer(200, b"noise")):
        odd = Odd(answer)
        found, said = times_of(odd, log(1, (2, IN_TIME)))
        assert found == {A: IN_TIME, B: IN_TIME}
        assert odd.n_asked == len(said) == 1
        assert said[0].startswith(f"{EVENT.services[0].url}: ")


def test_late_is_said_only_once_all_services_have_answered():
    late = log(1, (2, LATE))
    assert times_of(Odd(None), late)[0] == {}
    assert times_of(late, Odd(Answer(429, b"")))[0] == {}
    assert times_of(Odd(Answer(404, b"")), late)[0] == {A: LATE, B: LATE}


def test_what_is_not_published_yet_has_no_time_yet():
    assert times_of(Odd(Answer(202, b""))) == ({}, [])


def test_the_proof_of_another_entry_or_of_too_few_witnesses_is_no_time():
    other = Odd(Answer(200, log(0, (2, IN_TIME)).proof(A).data))
    assert times_of(other, entries=[B]) == ({}, [])
    few = service_log(EVENT, 0, [A], [(1, IN_TIME)], n_witnesses=EVENT.quorum - 1)
    assert times_of(few, entries=[A]) == ({}, [])


@pytest.mark.parametrize(
    "services",
    [
        [log(0, (1, IN_TIME - 9), (2, IN_TIME))],
        [log(0, (2, LATE)), log(1, (2, IN_TIME))],
        [log(0, (2, IN_TIME)), log(1, (2, IN_TIME - 60))],
        [log(0, (2, LATE)), Odd(None)],
        [log(0, (2, IN_TIME)), Odd(Answer(500, b""))],
        [Odd(Answer(200, b"noise")), log(1, (2, LATE))],
        [log(0, (2, LATE)), log(1, (2, LATE - 1))],
    ],
)
def test_logs_that_are_read_whole_tell_the_same_as_questions_one_by_one(services):
    """But of who is away, what is said may be in other words."""
    (one_by_one, said), (whole, also) = (times_of(*services, most_asked=n) for n in (4, 3))
    assert whole == one_by_one
    assert len(said) == len(also)


def test_a_log_whose_entries_make_another_root_proves_nothing():
    lying = log(0, (2, IN_TIME))
    true = lying.get

    def get(path, most_bytes):
        answer = true(path, most_bytes)
        is_bundle = path.startswith("/tile/entries/")
        return answer._replace(body=answer.body.replace(A, C)) if is_bundle else answer

    lying.get = get
    found, said = times_of(lying, most_asked=3)
    assert found == {}
    assert "have another root" in said[0]


def test_few_are_asked_one_by_one_and_logs_are_not_read_again_at_once(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(
        "datacollect.bistro.destination.run.log_times.time.monotonic", lambda: clock[0]
    )
    asked = []
    service = log(0, (2, IN_TIME))
    true = service.get

    def get(path, most_bytes):
        asked.append(path)
        clock[0] += 1
        return true(path, most_bytes)

    service.get = get
    times = LogTimes(EVENT, {EVENT.services[0].url: service}, lambda _: None, most_asked=2)
    assert dict(times([A])) == {A: IN_TIME}
    assert asked == [f"/proof/{A.hex()}"]
    assert dict(times([A, B, C])) == {A: IN_TIME, B: IN_TIME}
    took_s, n_asked = clock[0] - 1, len(asked)
    # Meanwhile the first ones are asked for, and the others wait.
    assert dict(times([C, A, B])) == {A: IN_TIME}
    assert len(asked) == n_asked + 2
    clock[0] += 10 * took_s
    assert dict(times([C, A, B])) == {A: IN_TIME, B: IN_TIME}


def test_an_empty_log_and_one_that_puts_off_for_ever_hold_nobody(monkeypatch):
    empty = service_log(EVENT, 0, [], [(0, IN_TIME)])
    assert times_of(empty, most_asked=1)[0] == {}
    waited = []
    monkeypatch.setattr("datacollect.bistro.destination.run.log_table.time.sleep", waited.append)
    with pytest.raises(TransferError, match="delays readers"):
        Bounded(Odd(Answer(429, b"", 3600.0)), 0.0).get("/checkpoint", 100)
    assert waited == []


def test_times_are_asked_once_more_when_they_fall_no_more_and_only_then():
    first, second = log(0, (1, IN_TIME + 5)), log(0, (1, IN_TIME + 5), (2, IN_TIME + 2))
    service = Odd(None)
    service.get = first.get
    times = LogTimes(EVENT, {EVENT.services[0].url: service}, lambda _: None)
    assert dict(times([A])) == {A: IN_TIME + 5}
    service.get = second.get
    assert not times.may_settle(EVENT.latest_s + SETTLED_S)
    assert times.may_settle(EVENT.latest_s + SETTLED_S + 1)
    assert not times.are_settled
    assert dict(times.settle([A])) == {A: IN_TIME + 2}
    assert times.are_settled
    # A deadline that is moved is another end.
    times.event = replace(EVENT, deadline_s=EVENT.deadline_s + 60)
    assert not times.are_settled


def test_times_settle_before_the_collection_ends():
    event = replace(EVENT, collect_until_s=EVENT.latest_s + 3)
    times = LogTimes(event, {}, lambda _: None)
    assert [times.may_settle(event.latest_s + s) for s in (0, 3, 4)] == [False, False, True]


def test_times_are_not_settled_while_some_wait_until_logs_are_read():
    url = EVENT.services[0].url
    times = LogTimes(EVENT, {url: log(0, (2, IN_TIME))}, lambda _: None, most_asked=1)
    assert dict(times([A, B])) == {A: IN_TIME, B: IN_TIME}
    times._reading.took(1000)
    assert dict(times.settle([A, B])) == {A: IN_TIME}
    assert not times.are_settled
    assert dict(times.settle([B])) == {B: IN_TIME}
    assert times.are_settled


def test_a_log_that_no_quorum_has_signed_is_not_read():
    """Alone a service may say that it has as many entries as it likes."""
    asked = []
    few = service_log(EVENT, 0, [A], [(1, IN_TIME)], n_witnesses=EVENT.quorum - 1)
    true = few.get
    few.get = lambda path, most_bytes: asked.append(path) or true(path, most_bytes)
    found, said = times_of(few, most_asked=3)
    assert found == {}
    assert asked == ["/checkpoint"]
    assert (
        "no quorum of witnesses has signed this service's log of 1 entry, so the log is not read"
        in said[0]
    )
