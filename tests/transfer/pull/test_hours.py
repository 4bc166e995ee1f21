"""Hours of hosts and links in a collection: what is closed waits, and the pull says until when."""

import threading
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from zoneinfo import ZoneInfo

import pytest
from instances.agents import collection_tree, running, write_agent
from instances.metered import MeteredPort

import datacollect as dc
from datacollect.errors import ProblemError
from datacollect.transfer.protocol.source import Reached
from datacollect.transfer.pull import open_hours
from datacollect.transfer.pull.config.file import Collection
from datacollect.transfer.pull.open_hours import AHEAD_S, OpenHours
from datacollect.transfer.pull.planner import Planner

ZURICH = ZoneInfo("Europe/Zurich")
# Longer than a source may pause on a busy machine.
PATIENCE_S = 3.5


def tree(**more):
    return {
        "format": "datacollect-collection/1",
        "destination": "D",
        "key": "collector.key",
        "timezone": "Europe/Zurich",
        "agents": {
            name: {"url": f"https://127.0.0.1:{7443 + i}", "ca": "ca.pem"}
            for i, name in enumerate(("S", "T", "R"))
        },
    } | more


def hours_at(clock_time, **more):
    """Return the hours of a collection, by a clock that shows this in Zurich."""
    at_s = datetime.fromisoformat(clock_time).replace(tzinfo=ZURICH).timestamp()
    return OpenHours(Collection.from_dict(tree(**more)), lambda: at_s)


def link(tail, head, **more):
    return {"from": tail, "to": head, "bandwidth_bytes_per_s": 1e6} | more


NIGHTS = {"open": "20:00-06:00"}


def test_a_host_closes_all_of_its_links_and_a_link_only_itself():
    """On a Monday at noon: S is open at night, T -> D on Mondays."""
    hours = hours_at(
        "2026-11-23T12:00",
        hosts={"S": NIGHTS},
        links=[link("T", "D", open="Mo 08:00-18:00"), link("T", "R", open="Tu 08:00-18:00")],
    )
    links = [("S", "D"), ("R", "S"), ("T", "D"), ("T", "R"), ("R", "D")]
    assert [hours.is_open(each) for each in links] == [False, False, True, False, True]


def test_without_hours_nothing_is_asked_of_any_clock():
    assert not hours_at("2026-11-23T12:00", hosts={"S": {"uplink_bytes_per_s": 5.0}})


@pytest.mark.parametrize(
    ("clock_time", "is_open"),
    [
        ("2026-11-23T19:59:59", False),
        ("2026-11-23T20:00", True),
        # What closes at once is asked for nothing any more: what was asked for is to come.
        ("2026-11-24T05:59:56", True),
        ("2026-11-24T05:59:58", False),
        ("2026-11-24T06:00", False),
    ],
)
def test_it_opens_on_time_and_is_left_alone_before_it_closes(clock_time, is_open):
    assert hours_at(clock_time, hosts={"S": NIGHTS}).is_open(("S", "D")) is is_open


def test_a_limit_of_nothing_for_hours_closes_that_direction():
    hours = hours_at(
        "2026-11-23T12:00", hosts={"S": {"uplink_bytes_per_s": "8:00 0 bit/s, 20:00 1 MB/s"}}
    )
    assert not hours.is_open(("S", "D"))
    assert hours.is_open(("R", "S"))
    assert hours.text(hours.opening_s("S", [("S", "D")])) == "Mon 2026-11-23 20:00:00 +01:00"


def test_the_next_opening_is_by_the_clocks_of_that_day():
    """Clocks go forward on 2027-03-28 at 02:00: from Saturday noon to Sunday 08:00 are 19 hours."""
    begun = "2027-03-27T12:00"
    hours = hours_at(begun, hosts={"S": {"open": "Su 08:00-09:00"}})
    opens_s = hours.opening_s("S", [("S", "D")])
    assert opens_s - hours.now_s() == 19 * 3600
    assert hours.text(opens_s) == "Sun 2027-03-28 08:00:00 +02:00"


def test_an_hour_that_clocks_skip_opens_when_they_jump():
    hours = hours_at("2027-03-28T01:30", hosts={"S": {"open": "02:30-04:00"}})
    assert hours.opening_s("S", [("S", "D")]) - hours.now_s() == 30 * 60


def test_windows_of_another_zone_are_by_its_clocks():
    """20:00 in Tokyo is noon in Zurich, in winter."""
    hours = hours_at("2026-11-23T11:00", hosts={"S": {"open": "20:00-21:00 Asia/Tokyo"}})
    assert hours.text(hours.opening_s("S", [("S", "D")])) == "Mon 2026-11-23 12:00:00 +01:00"


def test_changes_come_when_something_opens_and_just_before_it_closes():
    noon = hours_at("2026-11-23T12:00", hosts={"S": NIGHTS})
    assert noon.next_change_s() - noon.now_s() == 8 * 3600
    night = hours_at("2026-11-23T21:00", hosts={"S": NIGHTS})
    assert night.next_change_s() - night.now_s() == 9 * 3600 - AHEAD_S


def test_a_way_is_open_when_all_of_its_links_are():
    """S -> R by night until 06:00, R -> D from 05:00 on: one hour a day, from 05:00."""
    links = [link("S", "R", open="20:00-06:00"), link("R", "D", open="05:00-18:00")]
    hours = hours_at("2026-11-23T12:00", links=links)
    ends = [("S", "R"), ("R", "D")]
    assert hours.open_sources(ends) == {"R"}
    assert hours.text(hours.opening_s("S", ends)) == "Tue 2026-11-24 05:00:00 +01:00"


def test_what_a_relay_would_have_to_store_is_refused_in_words():
    links = [link("S", "R", open="20:00-06:00"), link("R", "D", open="08:00-18:00")]
    hours = hours_at("2026-11-23T12:00", links=links)
    ends = [("S", "R"), ("R", "D")]
    assert hours.opening_s("S", ends) is None
    assert hours.why_never("S", ends) == (
        "S -> R and R -> D are never open at the same time: R would have to store data from Mon "
        "2026-11-23 20:00:00 +01:00 until Tue 2026-11-24 08:00:00 +01:00; give the agent of R a "
        "spool and start with --slot, let their hours overlap, or collect at R first"
    )


def test_sources_are_parted_by_whether_they_can_come_now():
    """S by day over R alone, T at night, R always: at noon S comes now, T later."""
    collection = Collection.from_dict(
        tree(
            hosts={"T": NIGHTS},
            links=[link("S", "R", open="08:00-18:00"), link("R", "D"), link("T", "D")],
        )
    )
    planner = Planner(collection, None)
    noon_s = datetime(2026, 11, 23, 12, tzinfo=ZURICH).timestamp()
    planner.hours.now_s = lambda: noon_s
    reached = {name: Reached((), serves=True, relays_to=("S",)) for name in "STR"}
    found = planner.by_hours(dict.fromkeys("STR"), reached)
    assert found.now.keys() == {"S", "R"}
    assert found.later == {"T": noon_s + 8 * 3600}
    assert not found.never
    assert planner.is_closed("T")
    assert not planner.is_closed("S")


def test_windows_stand_in_the_csv_of_links_too(tmp_path):
    (tmp_path / "grid.csv").write_text(
        'from,to,bandwidth_mbit_per_s,open\nS,D,8,"20:00-06:00"\nT,D,8,\n'
    )
    collection = Collection.from_dict(tree(bandwidth_csv="grid.csv"), tmp_path)
    noon_s = datetime(2026, 11, 23, 12, tzinfo=ZURICH).timestamp()
    hours = OpenHours(collection, lambda: noon_s)
    assert [hours.is_open((name, "D")) for name in "ST"] == [False, True]
    assert [each["from"] for each in hours.file_links()] == ["T"]
    assert [each["from"] for each in hours.file_links(closed_too=True)] == ["S", "T"]


def test_hours_of_the_csv_need_a_zone_and_the_remedy_works(tmp_path):
    (tmp_path / "grid.csv").write_text('from,to,bandwidth_mbit_per_s,open\nS,D,8,"20:00-06:00"\n')
    said = tree(bandwidth_csv="grid.csv")
    del said["timezone"]
    with pytest.raises(ProblemError, match=r"open of 'S' -> 'D': hours .* add timezone = "):
        OpenHours(Collection.from_dict(said, tmp_path))
    assert OpenHours(Collection.from_dict(said | {"timezone": "Europe/Zurich"}, tmp_path))


# A pull ---------------------------------------------------------------------------------------


def opening_in(seconds, for_s=3600.0):
    """Return a window, by UTC, that opens after a while and lasts so long."""
    begin = datetime.now(UTC) + timedelta(seconds=seconds)
    end = begin + timedelta(seconds=for_s)
    return f"{begin:%H:%M:%S}-{end:%H:%M:%S}"


@pytest.fixture
def collection_of(tmp_path):
    limits = {"patience_s": PATIENCE_S, "timeout_s": 20.0}
    return partial(collection_tree, tmp_path, timezone="UTC", limits=limits)


def served(tmp_path, name, n_bytes=100_000):
    path = write_agent(tmp_path, name, serve=f"data-{name}")
    (tmp_path / f"data-{name}/file").write_bytes(bytes(n_bytes))
    return path


class Clock:
    """The clock by which pulls know hours: a test sets it ahead, or has it stand still."""

    ahead_s, fixed_s = 0.0, None

    def time(self):
        return time.time() + self.ahead_s if self.fixed_s is None else self.fixed_s


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(open_hours, "time", made)
    return made


@pytest.mark.slow
def test_a_closed_source_is_waited_for_longer_than_patience_and_nothing_comes_before(
    tmp_path, collection_of, clock
):
    """S opens once T is there, which is open, and patience is over."""
    lines, there, begun_s = [], [], time.monotonic()

    def watch(look):
        waited_s = time.monotonic() - begun_s
        found = [(tmp_path / "into" / name / "file").exists() for name in "ST"]
        if not there and waited_s > (PATIENCE_S + 1.0 if found[1] else 60.0):
            there.append(found)
            clock.ahead_s = 3600.0

    with running(served(tmp_path, "S")) as s, running(served(tmp_path, "T")) as t:
        opens = opening_in(3600.0)
        collection = collection_of(s, t, hosts={"S": {"open": opens}})
        answer = dc.pull(collection, tmp_path / "into", tell=lines.append, watch=watch)
    assert answer.complete
    assert there == [[False, True]]
    [line] = [each for each in lines if "closed" in each]
    assert line.startswith("note: S is closed by the hours of the collection until ")
    assert f"{opens[:8]} +00:00; from then on the pull collects from it again" in line
    assert answer.predicted_makespan_s is None


@pytest.mark.slow
def test_a_source_that_closes_goes_on_when_it_opens_again(tmp_path, collection_of, clock):
    """Open until a quarter has come, closed for longer than patience, open again.

    The counter is a port before the agent, not the collector.
    """
    begun = datetime.now(UTC).replace(microsecond=0)
    closes, opens = begun + timedelta(hours=1), begun + timedelta(hours=2)
    windows = [
        f"{begun - timedelta(hours=1):%H:%M:%S}-{closes:%H:%M:%S}",
        f"{opens:%H:%M:%S}-{opens + timedelta(hours=1):%H:%M:%S}",
    ]
    n_bytes, lines, closed = 3_000_000, [], []

    def moved():
        return sum(n for _, n in port.rows)

    def hours_pass():
        while moved() < n_bytes / 4:
            yield
        clock.fixed_s = closes.timestamp() - AHEAD_S / 2
        before, since_s, until_s = 0, time.monotonic(), time.monotonic() + 60.0
        while time.monotonic() < min(since_s + 1.5, until_s):  # what was asked for is to come
            if moved() > before:
                before, since_s = moved(), time.monotonic()
            yield
        clock.fixed_s = closes.timestamp() + 1.0
        until_s = time.monotonic() + PATIENCE_S + 1.0
        while time.monotonic() < until_s:
            yield
        closed.append((before, moved()))
        clock.fixed_s = opens.timestamp() + 1.0
        while True:
            yield

    stages = hours_pass()
    with running(served(tmp_path, "S", n_bytes)) as s, MeteredPort(s.address) as port:
        collection = collection_of(
            s, hosts={"S": {"open": windows, "uplink_bytes_per_s": 400_000.0}}
        )
        collection["agents"]["S"]["url"] = port.url
        collection["limits"] |= {"piece_bytes": 65536, "connections": 2}
        into = tmp_path / "into"
        answer = dc.pull(collection, into, tell=lines.append, watch=lambda _: next(stages))
    assert answer.complete
    assert [each for each in lines if "S is closed by the hours" in each]
    [(before, after)] = closed
    # Whoever asks whether it is there learns so, at any hour.
    assert after - before < 10_000
    assert moved() - after > n_bytes / 4


@pytest.mark.slow
def test_a_host_that_does_not_answer_while_it_is_closed_is_not_given_up(
    tmp_path, collection_of, clock
):
    """Its agent starts after twice the patience, and then it opens."""
    with running(served(tmp_path, "S")) as s:
        collection = collection_of(s, hosts={"S": {"open": opening_in(3600.0)}})
        collection["agents"]["S"]["url"] = f"https://127.0.0.1:{s.address[1]}"
    listen = f"127.0.0.1:{s.address[1]}"
    path = tmp_path / "S.toml"
    path.write_text(path.read_text().replace("127.0.0.1:0", listen))
    answers = []
    pulling = threading.Thread(
        target=lambda: answers.append(dc.pull(collection, tmp_path / "into")), daemon=True
    )
    pulling.start()
    pulling.join(2 * PATIENCE_S + 1.0)
    assert pulling.is_alive()
    with running(path):
        clock.ahead_s = 3600.0
        pulling.join(60)
    assert answers[0].complete


def test_a_pull_that_would_need_a_store_at_a_relay_says_so_and_ends(tmp_path, collection_of):
    now = datetime.now(UTC)
    links = [
        link("S", "R", open=f"{now + timedelta(hours=1):%H:%M}-{now + timedelta(hours=2):%H:%M}"),
        link("R", "D", open=f"{now + timedelta(hours=3):%H:%M}-{now + timedelta(hours=4):%H:%M}"),
    ]
    with running(served(tmp_path, "S")) as s:
        relay = write_agent(tmp_path, "R", connect_to={"S": s.place})
        with running(relay) as r:
            answer = dc.pull(collection_of(s, r, links=links), tmp_path / "into")
    assert not answer.complete
    assert "R would have to store data from" in answer.missing[0].why


def test_the_last_link_to_open_says_how_long_a_plan_must_be():
    """At noon K -> D opens at 22:00 for the first time; what is open is no opening."""
    links = [link("S", "R", open="08:00-18:00"), link("R", "D", open="22:00-06:00")]
    hours = hours_at("2026-11-23T12:00", links=links)
    last, opens_s = hours.last_opening()
    assert (last, opens_s - hours.now_s()) == (("R", "D"), 10 * 3600)
    assert (
        hours_at("2026-11-23T12:00", links=[link("S", "D", open="8:00-18:00")]).last_opening()
        is None
    )


def test_ways_that_are_never_open_all_along_are_known_before_anything_opens(monkeypatch):
    """By night no link is open; that S -> R and R -> D never overlap is so all the same."""
    links = [link("S", "R", open="08:00-10:00"), link("R", "D", open="12:00-14:00")]
    planner = Planner(Collection.from_dict(tree(links=[*links, link("T", "D")])), None)
    at_s = datetime(2026, 11, 23, 3, tzinfo=ZURICH).timestamp()
    monkeypatch.setattr(planner.hours, "now_s", lambda: at_s)
    [(name, why)] = planner.never(["S", "T"]).items()
    assert name == "S"
    assert "S -> R and R -> D are never open at the same time" in why
    assert "R would have to store data" in why
