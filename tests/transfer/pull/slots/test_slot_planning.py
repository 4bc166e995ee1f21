"""Plans in slots of a collection: what is kept counts as held, and is stored as soon as it can."""

from datetime import UTC, datetime

import pytest

import datacollect as dc
from datacollect.methods.planning_options import PlanningOptions
from datacollect.transfer.pull.answer import Wait
from datacollect.transfer.pull.config.file import Collection
from datacollect.transfer.pull.core.todo import SourceWork
from datacollect.transfer.pull.open_hours import OpenHours
from datacollect.transfer.pull.slots.slot_planning import HopTask, slotted_plan, slotted_problem

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)
# Ten pieces of 100 bytes.
ALL = SourceWork(tuple(range(0, 1000, 100)), (100,) * 10, frozenset(range(10)))


def planned(
    work=ALL, kept=None, rooms=None, rate=50.0, slot_s=10.0, begins=NOON, zone="UTC", **hosts
):
    """Plan from noon on: S -> K is open until 12:02, K -> D from 12:10 on; 500 bytes a slot."""
    links = [
        {"from": "S", "to": "K", "bandwidth_bytes_per_s": rate, "open": "11:00-12:02"},
        {"from": "K", "to": "D", "bandwidth_bytes_per_s": rate, "open": "12:10-13:00"},
    ]
    collection = Collection.from_dict(
        {
            "format": "datacollect-collection/1",
            "destination": "D",
            "key": "collector.key",
            "timezone": zone,
            "agents": {n: {"url": "https://127.0.0.1:7443", "ca": "ca.pem"} for n in ("S", "K")},
            "links": links,
            "hosts": hosts,
        }
    )
    hours = OpenHours(collection, begins.timestamp)
    rooms = {"K": float("inf")} if rooms is None else rooms
    problem = slotted_problem(collection, hours, {"S": work}, kept or {}, rooms, begins)
    plan = slotted_plan(problem, PlanningOptions("adaptive"), slot_s, {"S": work})
    plan.schedule.check(problem)
    return plan


def test_a_relay_stores_at_once_and_gives_when_its_link_opens():
    """1000 bytes in two slots of 500 bytes each: from 12:00:00 on, and from 12:10:00 on."""
    assert planned().tasks == {
        0: [HopTask("S", "S", "K", tuple(range(5)))],
        1: [HopTask("S", "S", "K", tuple(range(5, 10)))],
        60: [HopTask("S", "K", "D", tuple(range(5)))],
        61: [HopTask("S", "K", "D", tuple(range(5, 10)))],
    }


def test_hours_are_those_of_the_collections_zone_whatever_zone_the_instant_comes_in():
    """Noon in Zurich is 11:00 UTC in winter: the same plan."""
    begins = NOON.replace(hour=11)
    assert planned(begins=begins, zone="Europe/Zurich").tasks == planned().tasks


def test_what_is_kept_is_not_stored_again_and_what_came_is_not_moved():
    work = SourceWork(ALL.starts, ALL.sizes, frozenset(range(2, 10)))
    plan = planned(work, {"S": dict.fromkeys(range(2, 7), "K")})
    moved = {(each.tail, each.head): each.pieces for of in plan.tasks.values() for each in of}
    assert moved["S", "K"] == (7, 8, 9)
    assert sorted(
        p for of in plan.tasks.values() for e in of if e.head == "D" for p in e.pieces
    ) == [*range(2, 10)]


@pytest.mark.parametrize("more", [{"rooms": {}}, {"K": {"storage_bytes": 0}}])
def test_without_a_store_no_plan_leads_there(more):
    with pytest.raises(dc.InfeasibleError):
        planned(**more)


def test_little_room_at_the_relay_is_kept_to():
    """Room for 300 bytes a night: the rest would have to come the next nights."""
    plan = planned(rooms={"K": 300.0}, slot_s=60.0)
    assert max(plan.schedule.peak_storage_bytes.values()) <= 300


def test_what_waits_where_is_known_from_the_plan():
    """1000 bytes are stored from noon on; K -> D takes them until 12:10:20."""
    begins_s = NOON.timestamp()
    assert planned().waits(begins_s) == (Wait("S", "K", 1000, begins_s, begins_s + 620),)


def test_what_waits_already_waits_from_now_on():
    work = SourceWork(ALL.starts, ALL.sizes, frozenset(range(4)))
    plan = planned(work, {"S": dict.fromkeys(range(4), "K")})
    assert plan.waits(0.0) == (Wait("S", "K", 400, 0.0, 610.0),)
