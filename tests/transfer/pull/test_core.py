"""The collector's core in a world of steady rates: answers computed by hand."""

import copy

import pytest
from transfer.pull.fake_sources import World

import datacollect as dc
from datacollect.control.chained.controller import ChainedController
from datacollect.control.connections import Recovery
from datacollect.transfer.protocol.source import Verdict
from datacollect.transfer.pull.core.core import DRAIN_S, CollectorCore, SourceWork
from datacollect.transfer.pull.core.messages import (
    Abandon,
    Answered,
    OpenSession,
    Request,
    SessionEnded,
    SessionOpened,
)

MB = 2**20


def core_of(links, n_pieces, *, shares=None, connections=None, **options):
    """Sources of so many pieces of 1 MiB each, planned by coordinated on the links' rates."""
    names = list(dict.fromkeys([*(name for pair in links for name in pair), "D"]))
    problem = dc.Problem.from_dict(
        {
            "destination": "D",
            "hosts": {name: {"backlog_bytes": n_pieces.get(name, 0) * MB} for name in names},
            "links": [
                {"from": a, "to": b, "bandwidth_bytes_per_s": rate}
                for (a, b), rate in links.items()
            ],
        }
    )
    controller = ChainedController(
        problem,
        dc.coordinated(problem),
        piece_bytes=MB,
        recovery=Recovery(retry_s=0.5),
        connections=connections,
    )
    work = {
        name: SourceWork(tuple(range(0, n * MB, MB)), (MB,) * n, frozenset(range(n)))
        for name, n in n_pieces.items()
    }
    return CollectorCore(work, controller, **options)


def all_came(world, n_pieces):
    came = sorted(piece[:2] for piece in world.came)
    return came == sorted((name, i) for name, n in n_pieces.items() for i in range(n))


def test_one_source_takes_as_long_as_its_bytes():
    world = World({("S", "D"): 10 * MB})
    took_s = world.run(core_of({("S", "D"): 10.0 * MB}, {"S": 100}))
    assert all_came(world, {"S": 100})
    assert took_s == pytest.approx(10.0, abs=0.5)


def test_two_routes_share_a_source():
    """2 and 6 MiB/s together: 80 MiB in 10 s, whatever was planned."""
    links = {("S", "D"): 5.0 * MB, ("S", "R"): 5.0 * MB, ("R", "D"): 5.0 * MB}
    world = World({("S", "D"): 2 * MB, ("S", "R", "D"): 6 * MB})
    took_s = world.run(core_of(links, {"S": 80}))
    assert all_came(world, {"S": 80})
    assert took_s == pytest.approx(10.0, abs=1.0)


def test_a_lost_relay_is_gone_round():
    links = {("S", "R"): 5.0 * MB, ("R", "D"): 5.0 * MB, ("S", "D"): 1.0}
    world = World({("S", "D"): 2 * MB, ("S", "R", "D"): 6 * MB}, down={"R": [(2.0, 1e9)]})
    core = core_of(links, {"S": 40})
    took_s = world.run(core)
    assert all_came(world, {"S": 40})
    # 2 s at 6 MiB/s, what was on its way again, the rest at 2 MiB/s
    assert took_s == pytest.approx(2 + (40 - 12) / 2, abs=2.0)


def test_a_relay_that_comes_back_is_used_again():
    links = {("S", "R"): 5.0 * MB, ("R", "D"): 5.0 * MB}
    world = World({("S", "R", "D"): 6 * MB}, down={"R": [(2.0, 5.0)]})
    took_s = world.run(core_of(links, {"S": 40}))
    assert all_came(world, {"S": 40})
    assert 9.0 < took_s < 14.0


def silent_core(n_pieces):
    """S and T, directly; after two silent seconds there is another route to S."""
    links = {("S", "D"): 1.0 * MB, ("T", "D"): 1.0 * MB}
    world = World({("S", "D"): MB, ("T", "D"): MB}, silent={("S", 0), ("S", 1)})
    return world, core_of(links, n_pieces, stranded_after_s={"S": 2.0})


def test_a_round_ends_at_once_where_only_a_stranded_source_is_asked():
    """Of which nothing has come: the next round has another route to it."""
    world, core = silent_core({"S": 2})
    assert 2.0 < world.run(core) <= 2.5
    assert (core.finished, core.stranded) == ("more is to be planned", {"S"})


def test_what_others_than_a_stranded_source_were_asked_for_comes_first():
    world, core = silent_core({"S": 2, "T": 20})
    assert 2.5 < world.run(core) <= 2.0 + DRAIN_S + 0.5
    assert (core.finished, core.stranded) == ("more is to be planned", {"S"})
    asked = [a for a in world.actions if isinstance(a, Request) and a.source == "T"]
    assert {a.piece for a in asked} == {piece for source, piece, *_ in world.came if source == "T"}


def test_a_source_that_stays_away_is_given_up_and_others_are_not():
    links = {("S", "D"): 5.0 * MB, ("T", "D"): 5.0 * MB}
    world = World({("S", "D"): 5 * MB, ("T", "D"): 5 * MB}, down={"T": [(1.0, 1e9)]})
    core = core_of(links, {"S": 400, "T": 400}, patience_s=20.0)
    world.run(core)
    assert len([piece for piece in world.came if piece[0] == "S"]) == 400
    assert core.todo.given_up == {"T": "no data for 20 s: broken"}
    assert core.finished == "nothing more can be fetched"


def test_a_source_that_refuses_for_good_is_given_up_at_once():
    core = core_of({("S", "D"): 5.0 * MB}, {"S": 4})
    core.start()
    core.handle(SessionEnded(0.1, 0, "who are you?", is_final=True))
    assert core.todo.given_up == {"S": "who are you?"}
    assert core.finished


def test_corrupt_answers_are_asked_for_again():
    world = World({("S", "D"): 5 * MB}, verdicts={("S", 3): [Verdict.CORRUPT, Verdict.CORRUPT]})
    core = core_of({("S", "D"): 5.0 * MB}, {"S": 10})
    world.run(core)
    assert all_came(world, {"S": 10})
    assert core.refetched == {"corrupt": 2 * MB}


def test_an_answer_that_is_told_after_the_end_counts():
    """Of two answers for a piece the second may be told first, and with it all is there."""
    core = core_of({("S", "D"): 10.0 * MB}, {"S": 1})
    (number,) = (a.session for a in core.start() if isinstance(a, OpenSession))
    core.handle(SessionOpened(0.1, number))
    core.handle(Answered(0.2, number, "S", 0, MB, Verdict.VERIFIED, is_new=False))
    assert core.finished is not None
    core.handle(SessionEnded(0.3, number, ""))
    core.count(Answered(0.3, number, "S", 0, MB, Verdict.VERIFIED))
    assert core.route_bytes == {("S", "D"): MB}
    assert core.refetched == {"sent twice": MB}


def test_a_piece_that_is_always_corrupt_is_given_up():
    world = World({("S", "D"): 5 * MB}, verdicts={("S", 3): [Verdict.CORRUPT] * 99})
    core = core_of({("S", "D"): 5.0 * MB}, {"S": 10})
    world.run(core)
    assert len(world.came) == 9
    (given_up,) = [action for action in world.actions if isinstance(action, Abandon)]
    assert given_up.piece == 3
    assert "source's hashes" in given_up.why
    assert core.finished == "all there"


def test_a_changed_file_is_retired_and_the_rest_of_its_piece_fetched():
    world = World({("S", "D"): 5 * MB}, verdicts={("S", 3): [Verdict.CHANGED]})
    core = core_of({("S", "D"): 5.0 * MB}, {"S": 10})
    world.run(core)
    (retired,) = world.retired()
    assert retired.files == (7,)
    assert all_came(world, {"S": 10})


def test_so_many_bytes_are_in_flight_at_most():
    world = World({("S", "D"): 500 * MB}, latency_s=1.0)
    core = core_of({("S", "D"): 5.0 * MB}, {"S": 300}, connections=8, in_flight_bytes=6 * MB)
    seen = []
    handle = core.handle

    def watched(event):
        actions = handle(event)
        seen.append(sum(session.asked_bytes for session in core.under_way.values()))
        return actions

    core.handle = watched
    world.run(core)
    assert all_came(world, {"S": 300})
    assert max(seen) <= (6 + 8) * MB  # each session may have one piece in any case


@pytest.mark.parametrize("at", [1, 5, 20, 60])
def test_a_copy_goes_on_as_the_original(at):
    links = {("S", "D"): 5.0 * MB, ("S", "R"): 5.0 * MB, ("R", "D"): 5.0 * MB}

    def run(copy_at):
        world = World({("S", "D"): 2 * MB, ("S", "R", "D"): 6 * MB}, down={"R": [(2.0, 5.0)]})
        core = core_of(links, {"S": 40})
        world.core = core
        handled = 0

        class Copied:
            def __getattr__(self, name):
                return getattr(core, name)

            def handle(self, event):
                nonlocal core, handled
                handled += 1
                if handled == copy_at:
                    core = copy.deepcopy(core)
                return core.handle(event)

        took_s = world.run(Copied())
        return took_s, world.came

    assert run(at) == run(None)
