"""Files of which nothing comes, beside others of their source: times computed by hand."""

from dataclasses import replace

import pytest
from transfer.pull.fake_sources import World
from transfer.pull.test_core import MB, core_of

from datacollect.transfer.protocol.source import Verdict
from datacollect.transfer.pull.core.messages import CloseSession
from datacollect.transfer.pull.core.patience import Patience
from datacollect.transfer.pull.core.todo import Remains, Todo

LINK = {("S", "D"): 5.0 * MB}


def rounds(world, n_pieces, *, kin=None, most=20, **options):
    """Let cores fetch pieces of S, round after round as `Collecting` does; return the last core."""
    took_s, remains = 0.0, Remains()
    for _ in range(most):
        core = core_of(LINK, {"S": n_pieces}, before=remains, **options)
        if kin is not None:
            core.work["S"] = replace(core.work["S"], kin=kin)
        core.todo.pieces["S"] = set(remains.needed("S", range(n_pieces)))
        came = world.came if took_s else []
        took_s += world.run(core)
        world.came = [*came, *world.came]
        core.leave(remains)
        if not remains.pieces["S"] or core.todo.given_up:
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
    assert core.todo.given_up == {"S": "nothing has come for 60 s: stuck"}
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
        "what was late is left",
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
    assert core.todo.given_up == {"S": "nothing has come for 60 s: stuck"}
    assert core.todo.pieces == {"S": {0}}
    closed = [action for action in world.actions if isinstance(action, CloseSession)]
    assert sum(action.is_stuck for action in closed) >= 4


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
    assert "nothing has come for 110 s" in core.todo.given_up["S"]


def test_what_begins_again_and_again_and_never_goes_on_is_given_up():
    """Each round asks for the pieces anew, and 6000 bytes of one come: that is news once."""
    silent = {("S", 0), ("S", 1)}
    world = World({("S", "D"): 5 * MB}, silent=silent, begun_bytes=6000)
    core, took_s = rounds(world, 2, connections=2)
    assert "nothing has come for 60 s" in core.todo.given_up["S"]
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
