"""Files of which nothing comes, beside others of their source: times computed by hand."""

from dataclasses import replace

import pytest
from transfer.pull.fake_sources import World
from transfer.pull.test_core import MB, core_of

from datacollect.transfer.protocol.source import Verdict
from datacollect.transfer.pull.core.messages import CloseSession, CollectorTicked, RegroupAsked
from datacollect.transfer.pull.core.patience import Patience
from datacollect.transfer.pull.core.todo import Remains, Todo
from datacollect.transfer.pull.core.under_way import Session

LINK = {("S", "D"): 5.0 * MB}


def rounds(world, n_pieces, *, kin=None, most=20, until_s=600.0, **options):
    """Let cores fetch pieces of S, round after round as `Collecting` does; return the last core."""
    took_s, remains = 0.0, Remains()
    for _ in range(most):
        core = core_of(LINK, {"S": n_pieces}, before=remains, **options)
        if kin is not None:
            core.work["S"] = replace(core.work["S"], kin=kin)
        came = world.came if took_s else []
        left = set(range(n_pieces)) - {piece for _, piece, _, _ in came}
        core.todo.pieces["S"] = set(remains.needed("S", left))
        took_s += world.run(core, until_s)
        world.came = [*came, *world.came]
        core.leave(remains)
        if core.todo.ending == "all there" or core.todo.given_up:
            return core, took_s
    raise AssertionError(f"{most} rounds")


def pieces_of(world):
    return sorted(piece for _, piece, _, _ in world.came)


def test_good_files_behind_silent_ones_come_in_the_same_start():
    """Two connections: five silent pieces take three turns of 10 s; then come the good ones."""
    silent = {("S", piece) for piece in range(5)}
    world = World({("S", "D"): 5 * MB}, silent=silent)
    core, took_s = rounds(world, 8, connections=2)
    assert pieces_of(world) == [5, 6, 7]
    assert max(came_s for *_, came_s in world.came) < 36.0
    assert core.todo.given_up == {"S": "no data for 60 s: stuck"}
    assert core.todo.late["S"] >= set(range(5))
    assert took_s < 36.0 + 60.0 + 10.0  # patience counts once, whatever the number of files


def test_the_first_silence_of_a_file_is_none_of_a_source_that_proves_to_be_there():
    """Thirty silent pieces take two connections 150 s and more: patience would be over by then."""
    silent = {("S", piece) for piece in range(30)}
    world = World({("S", "D"): 5 * MB}, silent=silent, is_proved=True)
    rounds(world, 32, connections=2)
    assert pieces_of(world) == [30, 31]
    world = World({("S", "D"): 5 * MB}, silent=silent)
    _, took_s = rounds(world, 32, connections=2)
    assert pieces_of(world) == []
    assert took_s == pytest.approx(60.0, abs=1.0)


def test_a_file_of_many_pieces_is_silent_once():
    """Pieces 0 to 19 are one file: both connections wait 10 s for it, and not for each piece."""
    silent = {("S", piece) for piece in range(20)}
    world = World({("S", "D"): 5 * MB}, silent=silent)
    kin = lambda piece: range(20) if piece < 20 else range(piece, piece + 1)  # noqa: E731
    rounds(world, 24, kin=kin, connections=2)
    assert pieces_of(world) == [20, 21, 22, 23]
    assert max(came_s for *_, came_s in world.came) < 15.0


def test_a_file_that_was_silent_for_a_while_comes_when_it_is_asked_for_again():
    silent = {("S", 0), ("S", 1)}
    world = World({("S", "D"): 5 * MB}, silent=silent)
    first = core_of(LINK, {"S": 4}, connections=2)
    world.run(first)
    assert (first.finished, first.todo.pieces, first.todo.put_off) == (
        "what was late remains",
        {"S": set()},
        {"S": {0, 1}},
    )
    world.silent = set()
    again = core_of(LINK, {"S": 4}, connections=2, before=Remains(late=first.todo.late))
    again.todo.pieces["S"] &= {0, 1}
    world.run(again)
    assert pieces_of(world) == [0, 1]
    assert again.finished == "all there"


def test_the_only_file_that_is_left_is_asked_for_until_patience_ends():
    world = World({("S", "D"): 5 * MB}, silent={("S", 0)})
    core = core_of(LINK, {"S": 1}, connections=1)
    world.run(core)
    assert core.todo.given_up == {"S": "no data for 60 s: stuck"}
    assert core.todo.pieces == {"S": {0}}
    closed = [action for action in world.actions if isinstance(action, CloseSession)]
    # At 20 s and 41 s: each try has the whole time-out, and the third ends with patience.
    assert sum(action.is_stuck for action in closed) == 2


@pytest.mark.parametrize("first_byte_s", [10.5, 59.0])
@pytest.mark.parametrize("n_pieces", [1, 3, 40])
def test_a_first_byte_below_the_time_out_always_comes(n_pieces, first_byte_s):
    """As from a tape. Forty pieces that wait 10 s each would be longer than patience."""
    world = World({("S", "D"): 5 * MB}, first_byte_s=first_byte_s)
    limits = {"timeout_s": 60.0, "patience_s": 300.0, "connections": 1}
    core, _ = rounds(world, n_pieces, until_s=3000.0, **limits)
    assert core.todo.given_up == {}
    assert pieces_of(world) == list(range(n_pieces))


def test_a_first_byte_above_the_time_out_never_comes():
    world = World({("S", "D"): 5 * MB}, first_byte_s=60.5)
    core, took_s = rounds(world, 1, timeout_s=60.0, patience_s=100.0, connections=1)
    assert core.todo.given_up == {"S": "no data for 100 s: stuck"}
    assert took_s == pytest.approx(100.0, abs=1.0)


def test_while_others_wait_a_silent_piece_has_ten_seconds_or_twice_what_was_needed():
    """Patience is 300 s, the time-out 60 s: 230 s are for short waits, the rest for a whole one."""
    patience = Patience(["S"], 300.0, timeout_s=60.0)
    assert patience.first_byte_s("S", 0.0, others_wait=False) == 60.0
    assert patience.first_byte_s("S", 230.0, others_wait=True) == 10.0
    assert patience.first_byte_s("S", 230.1, others_wait=True) == 60.0
    patience.begun("S", 12.0)
    assert patience.first_byte_s("S", 216.0, others_wait=True) == 24.0
    # The next round knows it, too.
    patience = Patience(["S"], 300.0, patience.silences(0.0), timeout_s=60.0)
    assert patience.first_byte_s("S", 0.0, others_wait=True) == 24.0
    patience.begun("S", 50.0)
    assert patience.first_byte_s("S", 0.0, others_wait=True) == 60.0
    # Where patience ends before a time-out does, others have their turn.
    patience = Patience(["S"], 30.0, timeout_s=60.0)
    assert patience.first_byte_s("S", 25.0, others_wait=True) == 10.0


def session_asked_for(n_bytes, now_s=0.0):
    session = Session(0, ("S", "D"), now_s, is_open=True)
    session.ask(7, n_bytes)
    return session


def test_what_comes_of_the_answer_before_is_no_beginning_of_the_next():
    """Of a piece of 1 MB half was seen at the last look; the other half is no first byte."""
    session = session_asked_for(1_000_000)
    assert session.observe(0.25, 500_000, is_waiting=False) == 0.25
    session.answered(7, 1_000_000, 0.4)
    session.ask(8, 1_000_000)
    assert session.observe(0.5, 1_000_000, is_waiting=False) is None
    assert not session.has_begun
    assert session.observe(19.0, 1_000_000, is_waiting=False) is None
    assert not session.is_silent(60.0, 10.0)
    assert session.observe(20.5, 1_000_001, is_waiting=False) == 20.0
    # From the first byte on it is 512 bytes a second, over ten seconds.
    session.observe(30.25, 1_000_001 + 5_000, is_waiting=False)
    assert not session.is_silent(60.0, 10.0)
    session.observe(30.5, 1_000_001 + 5_119, is_waiting=False)
    assert session.is_silent(60.0, 10.0)


def test_what_stalls_within_its_answer_again_has_the_whole_time_out():
    """Nothing comes behind the first bytes: 10 s are the limit at first, then 60 s."""
    world = World({("S", "D"): 5 * MB}, silent={("S", 0)}, begun_bytes=6000)
    rounds(world, 1, timeout_s=60.0, patience_s=200.0, connections=1)
    ends = [event.time_s for event in world.ended if event.why == ""]
    assert ends[:3] == pytest.approx([10.0, 70.0, 130.0], abs=3.0)


def test_a_wait_that_a_new_plan_cuts_off_is_no_silence():
    """More is to be planned at 9 s, and the round ends 3 s later: of patience nothing is used."""
    world = World({("S", "D"): 5 * MB}, silent={("S", 0)})
    core = core_of(LINK, {"S": 1}, connections=1)
    world.run(core, until_s=9.0)
    core.handle(RegroupAsked(9.0))
    core.handle(CollectorTicked(12.0, dict.fromkeys(world.sessions, 0)))
    assert core.finished == "more is to be planned"
    core.leave(remains := Remains())
    silence = remains.silences["S"]
    assert silence.silent_s == 12.0
    assert silence.silent_s - silence.pause_s == pytest.approx(0.0, abs=0.5)


def rounds_that_others_end(world, n_pieces, *, most=40):
    """Return the last core, and how long all rounds took that another source ends after 3.5 s."""
    took_s, remains = 0.0, Remains()
    for _ in range(most):
        core = core_of(LINK, {"S": n_pieces}, connections=1, before=remains)
        core.todo.pieces["S"] = set(remains.needed("S", range(n_pieces)))
        took_s += world.run(core, until_s=0.5)
        core.handle(RegroupAsked(0.5))
        core.handle(CollectorTicked(3.5, dict.fromkeys(world.sessions, 0)))
        took_s += 3.0
        core.leave(remains)
        if core.todo.given_up or not core.todo.pieces["S"]:
            return core, took_s
    raise AssertionError(f"{most} rounds")


def test_a_source_is_not_waited_for_without_end_because_others_end_each_round():
    """Of each wait that is cut off nothing counts, until that is as long as patience itself."""
    core, took_s = rounds_that_others_end(World({("S", "D"): 5 * MB}, silent={("S", 0)}), 1)
    assert core.todo.given_up.keys() == {"S"}
    assert 60.0 < took_s < 60.0 + 60.0 + 3.5 + 1.0


def test_answers_that_are_no_good_count_through_all_rounds():
    """Two come in each round: the sixth is the last."""
    verdicts = {("S", 0): [Verdict.CORRUPT] * 100}
    core, _ = rounds_that_others_end(World({("S", "D"): 5 * MB}, verdicts=verdicts), 1, most=6)
    assert core.todo.refused == {"S": {0}}
    assert len(verdicts[("S", 0)]) == 100 - 6


def test_what_is_known_of_a_source_outlasts_a_round_without_it():
    remains = Remains()
    of_s, of_r = Todo({}), Todo({})
    remains.note(of_s, Patience(["S"], 60.0).silences(50.0))
    remains.note(of_r, Patience(["R"], 60.0).silences(5.0))
    assert {name: each.silent_s for name, each in remains.silences.items()} == {"S": 50.0, "R": 5.0}
    remains.listed("S")
    assert remains.silences.keys() == {"R"}


def test_where_patience_is_short_another_file_is_tried_before_it_is_over():
    world = World({("S", "D"): 5 * MB}, silent={("S", 0)})
    core = core_of(LINK, {"S": 2}, connections=1, patience_s=6.0)
    world.run(core)
    assert pieces_of(world) == [1]


def test_a_file_that_others_are_waited_for_before_is_put_off_as_its_source_says():
    """It fails twice, and others come in between."""
    verdicts = {("S", 0): [Verdict.LATER, Verdict.LATER]}
    world = World({("S", "D"): 5 * MB}, verdicts=verdicts)
    core = core_of(LINK, {"S": 4}, connections=1)
    world.run(core)
    assert core.todo.put_off == {"S": {0}}
    assert pieces_of(world) == [1, 2, 3]


def test_one_connection_that_is_stuck_is_not_its_files_fault():
    """All pieces are of one file, of which others come: none waits for another round."""
    work = core_of(LINK, {"S": 8}).work
    others = range(1, 8)
    todo = Todo({"S": replace(work["S"], kin=lambda _: range(8))})
    todo.came("S", 0, 5.0)
    assert not todo.is_newly_late("S", 1, 12.0)
    assert todo.pieces["S"] == set(others)
    todo.pieces["S"].add(9)
    assert todo.is_newly_late("S", 1, 17.0)
    assert todo.put_off["S"] == set(others)


def test_the_pause_that_a_source_asks_for_does_not_count_once():
    """It is away, and asks for 50 s each time: it is given up after 60 s of its own, and these."""
    world = World({("S", "D"): 5 * MB}, down={"S": [(0.0, 1e9)]}, pauses_s={"S": 50.0})
    core = core_of(LINK, {"S": 1})
    took_s = world.run(core)
    assert took_s == pytest.approx(110.0, abs=1.0)
    assert "no data for 110 s" in core.todo.given_up["S"]


def test_what_begins_again_and_again_and_never_goes_on_is_given_up():
    """Each round asks for the pieces again, and 6000 bytes of one come: that is news once."""
    silent = {("S", 0), ("S", 1)}
    world = World({("S", "D"): 5 * MB}, silent=silent, begun_bytes=6000)
    core, took_s = rounds(world, 2, connections=2)
    assert "no data for 60 s" in core.todo.given_up["S"]
    assert took_s < 60.0 + 10.0 + 5.0


def test_a_pause_is_taken_off_once_in_all_rounds():
    """Rounds of 20 s, each with a pause of 50 s that the source asks for; patience is 60 s."""
    silences, counted_s = {}, []
    for _ in range(6):
        patience = Patience(["S"], 60.0, silences)
        patience.asked_to_wait("S", 50.0)
        counted_s.append(patience.counted_s("S", 20.0))
        is_over = patience.is_over("S", 20.0)
        silences = patience.silences(20.0)
    assert counted_s == [-30.0, -10.0, 10.0, 30.0, 50.0, 70.0]
    assert is_over
    assert silences["S"].silent_s == 120.0
