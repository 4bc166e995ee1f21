"""Progress of a pull: files and bytes, done and of all, and who cannot be had at present."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from transfer.pull.fake_sources import World
from transfer.pull.test_core import MB, core_of

import datacollect as dc
from datacollect.numbers.pace import Pace
from datacollect.transfer.pull import notices
from datacollect.transfer.pull.config.file import Limits
from datacollect.transfer.pull.core.messages import CollectorTicked, SessionEnded
from datacollect.transfer.pull.core.patience import Patience
from datacollect.transfer.pull.notices import SILENT_S, Notices
from datacollect.transfer.pull.progress.pull_progress import PullProgress

FILES = {f"{n}": bytes([n]) * 100_000 for n in range(8)}


def test_whoever_watches_sees_files_and_bytes_of_all(agents, collection_of, tmp_path):
    """Eight files of 100 kB, each of two pieces; each look is between none and all."""
    agent = agents("S1", FILES, slow_s=0.02)
    seen = []
    collection = collection_of(agent, limits={"piece_bytes": 65536, "connections": 1})
    answer = dc.pull(collection, tmp_path / "into", watch=lambda look: seen.append(look()))
    assert answer.complete
    known = [far for far in seen if far.all_files]
    assert {(far.all_files, far.all_bytes) for far in known} == {(8, 800_000)}
    amounts = [(far.n_files, far.n_bytes) for far in known]
    assert amounts == sorted(amounts)
    assert all(n_bytes <= 800_000 for _, n_bytes in amounts)
    # Started again, all is there.
    again = []
    dc.pull(collection, tmp_path / "into", watch=lambda look: again.append(look()))
    assert all((far.n_files, far.n_bytes) == (8, 800_000) for far in again)


def test_words_say_who_is_not_listed_yet_and_who_was_given_up():
    far = PullProgress(0, 0, 0, 0, ("A", "B", "C", "D"), ("E",))
    assert far.words(Pace()) == (
        "nothing is listed yet; not listed yet: A, B, C and 1 more; given up: E"
    )
    done = PullProgress(2, 5_000, 2, 5_000)
    assert done.words(Pace()) == "100 %: 5 kB of 5 kB, 2 of 2 files"


def test_where_nothing_comes_that_is_said_with_the_rates_before():
    pace = Pace()
    for at_s, million_bytes in [(0.0, 0), (2.0, 1), (4.0, 3), (6.0, 4), (8.0, 4)]:
        pace.note(at_s, million_bytes * 1_000_000)
    assert PullProgress(1, 4_000_000, 4, 9_000_000).words(pace) == (
        "44 %: 4 MB of 9 MB, 1 of 4 files, nothing comes, 5 s to 10 s left"
    )


@pytest.fixture
def clock(monkeypatch):
    """Seconds, as a test wants them."""
    now = [100.0]
    monkeypatch.setattr(notices.time, "monotonic", lambda: now[0])
    return now


def test_who_does_not_answer_is_named_within_three_seconds_and_once(clock):
    """Of these a second may pass from one look to the next."""
    assert SILENT_S + 1.0 <= 3.0
    said = []
    notices = Notices(Limits(patience_s=60.0, timeout_s=20.0), said.append)
    with notices.asking("S1", "answer"):
        with notices.asking("S2", "answer"):
            notices.look(None)
            assert said == []
        clock[0] += SILENT_S
        notices.look(None)
        notices.look(None)
    assert said == ["note: S1: no answer yet; a try may take 20 s, and it is tried for 60 s"]
    notices.has_failed("S1", "cannot be reached")
    notices.has_failed("S1", "cannot be reached")
    assert said[1:] == ["note: S1: cannot be reached; the pull tries it again for 60 s"]


def test_who_answers_and_then_sends_no_list_is_named_too(clock):
    """Each page has its own time: S2 sends one a second."""
    said = []
    notices = Notices(Limits(patience_s=60.0, timeout_s=20.0), said.append)
    with notices.asking("S1", "answer"):
        clock[0] += 1.0
    with notices.asking("S1", "list of its files"):
        for _ in range(5):
            with notices.asking("S2", "list of its files"):
                clock[0] += 1.0
                notices.look(None)
    until = "it is given up where too little comes for 60 s"
    assert said == [
        f"note: S1: no list of its files yet; each part of it may take 20 s, and {until}"
    ]


def test_a_source_of_which_nothing_comes_any_more_is_named_with_the_reason():
    """Its connection ends at 5 s; nothing had come since 4 s."""
    said = []
    notices = Notices(Limits(patience_s=60.0, timeout_s=20.0), said.append)
    patience = Patience(["S1", "S2"], 60.0)
    patience.answered("S1", 4.0)
    patience.failed("S1", "connection lost")

    def at(now_s):
        found = patience.troubles(SILENT_S, now_s)
        notices.look(SimpleNamespace(troubles=lambda _: found, awaited=lambda _: {}))

    at(5.0)
    assert said == []
    at(5.5)
    at(6.0)
    line = "note: S1: connection lost; it is tried again, and given up after 60 s without data"
    assert said == [line]
    # It comes back; what it said before is no trouble any more.
    patience.answered("S1", 7.0)
    assert patience.troubles(SILENT_S, 9.0) == {}
    assert patience.why_over("S1", 70.0) == "no data for 63 s: no answer"


def told_in(world, core):
    """Carry out; return what is said, and when, by the clock of the world."""
    said, now_s = [], [0.0]
    notices = Notices(
        Limits(patience_s=60.0, timeout_s=20.0), lambda line: said.append((now_s[0], line))
    )
    handle = core.handle

    def watched(event):
        if isinstance(event, CollectorTicked):
            now_s[0] = event.time_s
            notices.look(core)
        return handle(event)

    core.handle = watched
    world.run(core, until_s=4.9)
    return said


@pytest.mark.parametrize(
    ("faults", "words"),
    [
        ({"latency_s": 5.0}, "no connection for 2 s; it is tried again after 20 s at most"),
        ({"silent": {("S", 7)}}, "no data for 2 s; it is tried again after 20 s at most"),
        ({"silent": {("S", 7)}, "begun_bytes": 2**16}, "no data for 2 s; it is tried again after"),
    ],
    ids=["connect", "silent", "stops"],
)
def test_whose_packets_are_swallowed_in_a_round_is_named_within_three_seconds(faults, words):
    """Four ticks a second, and a look before each; of T bytes come all the time, once they do."""
    links = {("S", "D"): 5.0 * MB, ("T", "D"): 5.0 * MB}
    world = World(links, **faults)
    said = told_in(world, core_of(links, {"S": 8, "T": 100}))
    ((at_s, line),) = [each for each in said if each[1].startswith("note: S: ")]
    assert line.startswith(f"note: S: {words}")
    assert line.endswith("and given up after 60 s without data")
    assert at_s <= 3.0 + max((came[3] for came in world.came if came[0] == "S"), default=0.0)
    is_heard = "latency_s" not in faults
    assert any(line.startswith("note: T: ") for _, line in said) != is_heard


@pytest.mark.parametrize(("pause_s", "n_lines"), [(30.0, 0), (0.0, 1)])
def test_a_pause_that_a_source_asks_for_is_no_silence(pause_s, n_lines):
    """It refuses once; the next connection is not made in a hurry."""
    links = {("S", "D"): 5.0 * MB}
    world = World(links, down={"S": [(0.0, 0.2)]}, pauses_s={"S": pause_s})
    core = core_of(links, {"S": 8})
    handle = core.handle

    def later(event):
        if isinstance(event, SessionEnded):
            world.latency_s = 100.0
        return handle(event)

    core.handle = later
    said = told_in(world, core)
    assert sum("no connection for 2 s" in line for _, line in said) == n_lines
