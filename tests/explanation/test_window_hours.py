"""Gains of longer time windows: by hand, where windows close what is needed."""

from __future__ import annotations

import pytest

import datacollect as dc
from datacollect.explanation.window_hours import hours_of, longer, open_s
from datacollect.problem.windows import Window

HOUR_S = 3600.0
GBIT_HOUR = 450_000_000_000  # what 1 Gbit/s brings in an hour


def _problem(**changes):
    """Lyon sends from 22:00 to 06:00, milan's link is open from 20:00 to 07:00; both 1 Gbit/s.

    They have 20 hours' worth each, and lyon may send over milan at 0.3 Gbit/s. In the first night
    8 and 11 hours' worth arrive, in the second as many: 38 of 40, until 35 h after the start. The
    rest takes from 48 h, when milan's link opens again, to 50 h.
    """
    tree = {
        "destination": "D",
        "timezone": "UTC",
        "start": "2026-11-22T20:00:00+00:00",
        "hosts": {
            "lyon": {"backlog_bytes": 20 * GBIT_HOUR, "open": "22:00-06:00"},
            "milan": {"backlog_bytes": 20 * GBIT_HOUR},
            "D": {},
        },
        "links": [
            {"from": "lyon", "to": "D", "bandwidth_bytes_per_s": "1 Gbit/s"},
            {
                "from": "milan",
                "to": "D",
                "bandwidth_bytes_per_s": "1 Gbit/s",
                "open": "20:00-07:00",
            },
            {"from": "lyon", "to": "milan", "bandwidth_bytes_per_s": "0.3 Gbit/s"},
        ],
    }
    return dc.Problem.from_dict(tree | changes)


def test_an_hour_longer_each_night_is_tried_and_hours_without_end():
    """Lyon until 07:00: 9 + 11 hours' worth a night, all 40 after 35 h: 15 h earlier.

    Milan's link until 08:00: 8 + 12 a night, all after 36 h: 14 h earlier. With lyon always open
    all of its own is there after 20 h, and 11 of milan's; the other 9 take from 24 h to 33 h: 17 h
    earlier.
    """
    found = dc.explain(_problem())
    assert found.lower_bound_s == pytest.approx(50 * HOUR_S)
    hours = {one.names: one for one in found.advice.alone if one.resources[0].kind == "window"}
    lyon, milan = hours["hours of 'lyon'",], hours["hours of link 'milan' -> 'D'",]
    assert lyon.saves_s == pytest.approx(15 * HOUR_S)
    assert lyon.saves_unlimited_s == pytest.approx(17 * HOUR_S)
    assert milan.saves_s == pytest.approx(14 * HOUR_S)
    # Until 50 h lyon is open for two nights, and milan's link for 11 + 11 + 2 hours.
    assert lyon.relaxed[0].now == 16 * HOUR_S
    assert milan.relaxed[0].now == 24 * HOUR_S
    text = " ".join(found.text.split())
    assert (
        "1. hours of 'lyon' (open for 16 h 00 min): to close 1 h 00 min later each time saves "
        "15 h 00 min, no limit at all saves 17 h 00 min"
    ) in text


def test_windows_that_close_nothing_of_worth_are_no_candidates():
    """All is there in the first night: nothing waits for a window."""
    few = _problem(
        hosts={
            "lyon": {"backlog_bytes": GBIT_HOUR, "open": "20:00-06:00"},
            "milan": {"backlog_bytes": GBIT_HOUR},
            "D": {},
        }
    )
    kinds = {one.resources[0].kind for one in dc.explain(few).advice.alone}
    assert "window" not in kinds


def test_windows_of_a_host_are_one_constraint():
    problem = _problem()
    assert [one.name for one in hours_of(problem)] == ["'lyon'", "link 'milan' -> 'D'"]
    assert open_s(problem, 0, HOUR_S, 5 * HOUR_S) == 3 * HOUR_S
    assert hours_of(_problem(hosts={"lyon": {}, "milan": {}, "D": {}}))[0].name.startswith("link")


@pytest.mark.parametrize(
    ("opens", "closes", "expected"),
    [
        ("22:00", "06:00", ("22:00", "07:00:00")),
        ("08:00", "23:30", ("08:00", "00:30:00")),
        ("08:00", "24:00", ("08:00", "01:00:00")),
    ],
)
def test_windows_close_later(opens, closes, expected):
    (found,) = longer(Window(opens, closes, frozenset({1})), HOUR_S, "closes")
    assert (found.opens, found.closes, found.days) == (*expected, frozenset({1}))


@pytest.mark.parametrize(
    ("opens", "closes", "end", "expected", "day"),
    [
        ("08:00:30", "07:30", "closes", ("07:30:00", "08:30:00"), 2),
        ("00:00", "24:00", "closes", ("00:00:00", "01:00:00"), 2),
        ("00:30", "24:00", "closes", ("00:00:00", "01:00:00"), 2),
        ("00:00", "23:30", "closes", ("23:30:00", "00:30:00"), 1),
        ("08:00:30", "07:30", "opens", ("07:00:30", "08:00:30"), 1),
        ("00:30", "00:10", "opens", ("23:30:00", "00:30:00"), 0),
    ],
)
def test_windows_of_nearly_a_day_get_another_beside_them(opens, closes, end, expected, day):
    """A window of Tuesday lasts for less than a day: what is more is one of the day it is on."""
    window = Window(opens, closes, frozenset({1}))
    same, beside = longer(window, HOUR_S, end)
    assert same == window
    assert (beside.opens, beside.closes, beside.days) == (*expected, frozenset({day}))


@pytest.mark.parametrize(
    ("opens", "closes", "expected", "day"),
    [
        ("22:00", "06:00", ("21:00:00", "06:00"), 1),
        ("00:30", "06:00", ("23:30:00", "06:00"), 0),
        ("01:00", "06:00", ("00:00:00", "06:00"), 1),
    ],
)
def test_windows_open_earlier_if_need_be_on_the_day_before(opens, closes, expected, day):
    (found,) = longer(Window(opens, closes, frozenset({1})), HOUR_S, "opens")
    assert (found.opens, found.closes, found.days) == (*expected, frozenset({day}))


def _night():
    """Lyon and milan have an hour's worth each, and links of 1 Gbit/s; it is 20:00."""
    ends = [{"from": name, "to": "D"} for name in ("lyon", "milan")]
    link = {"bandwidth_bytes_per_s": "1 Gbit/s", "open": "22:00-06:00"}
    hosts = {name: {"backlog_bytes": GBIT_HOUR} for name in ("lyon", "milan")}
    return _problem(hosts=hosts | {"D": {}}, links=[end | link for end in ends])


def test_hours_that_several_share_are_tried_as_one_at_the_end_that_gains():
    """All is there at 23:00, 3 h after the start: from 21:00 on an hour earlier, at once two."""
    found = dc.explain(_night())
    (hours,) = (one for one in found.advice.alone if one.resources[0].kind == "window")
    assert hours.names == ("hours of all 2 links open 22:00-06:00",)
    assert hours.saves_s == pytest.approx(HOUR_S)
    assert hours.saves_unlimited_s == pytest.approx(2 * HOUR_S)
    assert hours.to_dict()["resources"][0]["end"] == "opens"
    text = " ".join(found.text.split())
    assert "to open 1 h 00 min earlier each time saves 1 h 00 min, no limit at all" in text
    assert "to close" not in text


def test_where_an_hour_gains_at_neither_end_no_end_is_named():
    """On Monday the link is open at 13:00, and D takes nothing in the hours before and after.

    Its hour's worth is there at 14:00, 18 h after the start; open all day, after the first hour.
    """
    rate = "1 Gbit/s"
    link = {"from": "lyon", "to": "D", "bandwidth_bytes_per_s": rate}
    link["open"] = "Mo 13:00-14:00, We 02:00-03:00, We 12:00-12:30, We 15:00-15:30"
    into = f"11:00 0 bit/s, 13:00 {rate}, 14:00 0 bit/s, 20:00 {rate}"
    hosts = {"lyon": {"backlog_bytes": GBIT_HOUR}, "D": {"downlink_bytes_per_s": into}}
    problem = _problem(hosts=hosts, links=[link])
    text = " ".join(dc.explain(problem).text.split())
    assert (
        "hours of link 'lyon' -> 'D' (open for 1 h 00 min): 1 h 00 min more at either end saves "
        "nothing, no limit at all saves 17 h 00 min"
    ) in text


def test_hours_of_which_one_more_gains_nothing_are_told_each_by_what_all_would_gain():
    """S → K is open before K is: no hour more at either end makes them meet.

    K always open passes on 10 MB/s from 01:00 to 08:00, beside the direct 1 MB/s: 72 GB are there
    2 h 44 min after the start. S → K always open does so from 10:00 on: after 10 h 55 min.
    """
    links = [
        {"from": "S", "to": "D", "bandwidth_bytes_per_s": "1 MB/s"},
        {"from": "S", "to": "K", "bandwidth_bytes_per_s": "10 MB/s", "open": "01:00-08:00"},
        {"from": "K", "to": "D", "bandwidth_bytes_per_s": "10 MB/s"},
    ]
    hosts = {"S": {"backlog_bytes": "72 GB"}, "K": {"open": "10:00-23:00"}, "D": {}}
    start = "2026-06-01T00:00"
    text = " ".join(dc.explain(_problem(start=start, hosts=hosts, links=links)).text.split())
    nothing = "1 h 00 min more at either end saves nothing, no limit at all saves"
    assert f"hours of 'K' (open for 10 h 00 min): {nothing} 17 h 16 min" in text
    assert f"hours of link 'S' -> 'K' (open for 7 h 00 min): {nothing} 9 h 05 min" in text


def test_what_waits_in_a_store_is_not_told_as_what_its_source_sends():
    """S1 sends 3 MB from 10:00 on, with the start; K passes them on from 22:00 on."""
    links = [
        {"from": "S1", "to": "K", "bandwidth_bytes_per_s": 1e6, "open": "10:00-12:00"},
        {"from": "K", "to": "D", "bandwidth_bytes_per_s": 1e6, "open": "22:00-24:00"},
    ]
    hosts = {"S1": {"backlog_bytes": 3_000_000}, "K": {"storage_bytes": 100_000_000}, "D": {}}
    plan = dc.coordinated(_problem(start="2026-11-28T10:00", hosts=hosts, links=links))
    assert plan.makespan_s == pytest.approx(12 * HOUR_S + 3)
    assert plan.bottleneck.text == (
        "What 'S1' sends waits at 'K', which can pass on nothing until Sat 2026-11-28 22:00:00 "
        "+00:00 and at most 8 Mbit/s from Sat 2026-11-28 22:00:00 +00:00 on (the link 'K' -> 'D')."
    )


def test_a_plan_in_slots_is_made_again_with_longer_hours():
    """In slots of an hour it ends at 23:00, with windows from 21:00 on at 22:00."""
    problem = _night()
    found = dc.explain(problem, dc.coordinated(problem, slot_s=HOUR_S))
    text = " ".join(found.text.split())
    in_plan = text[text.index("relax first, in this plan") : text.index("relax first, for the")]
    assert "to open 1 h 00 min earlier each time saves 1 h 00 min, no limit at all" in in_plan
    (hours,) = (one for one in found.plan.advice.tried if one.resources[0].kind == "window")
    assert (hours.saves_s, hours.saves_unlimited_s) == (HOUR_S, 2 * HOUR_S)


def test_ends_deadlines_and_releases_are_told_by_the_clock():
    """1 hour's worth, at 1.3 Gbit/s with milan's help: 46 min 9 s from the release at 22:00 on."""
    problem = _problem(
        hosts={
            "lyon": {"backlog_bytes": GBIT_HOUR, "release_s": "22:00"},
            "milan": {},
            "D": {},
        }
    )
    plan = dc.coordinated(problem, deadline_s=5.5 * HOUR_S)
    text = " ".join(dc.explain(problem, plan).text.split())
    assert "Earliest end of all: 2 h 46 min (Sun 2026-11-22 22:46:09 +00:00)" in text
    assert "planned to end by 5 h 30 min (Mon 2026-11-23 01:30:00 +00:00)" in text
    assert "release of 'lyon' at Sun 2026-11-22 22:00:00 +00:00" in text


def test_hours_are_tried_in_which_links_are_never_open():
    """Lyon carries 0.1 Gbit/s from 08:00 on, which a link that is open at night never shows.

    It has 20 hours' worth, at 20:00. At night 10 of 24 hours: 10 h, then 14 closed, then 10 more.
    Without windows 12 h, then 0.1 of 12 h, and the other 6.8 in the second night: 30.8 h, not 34.
    Until 09:00 in the morning 12.1 h' worth the first day: 0.1 + 7.9 in the second night, 31.9 h.
    """
    links = [
        {"from": "lyon", "to": "D", "bandwidth_bytes_per_s": ["0.1 Gbit/s", "1 Gbit/s"]},
        {"from": "milan", "to": "D", "bandwidth_bytes_per_s": ["0.5 Gbit/s", "1 Gbit/s"]},
    ]
    for window, end_h in [("20:00-06:00", 34.0), ("20:00-09:00", 31.9)]:
        hosts = {
            "lyon": {"backlog_bytes": 20 * GBIT_HOUR, "open": window},
            "milan": {"backlog_bytes": GBIT_HOUR},
            "D": {},
        }
        problem = _problem(daily_periods=["08:00", "20:00"], hosts=hosts, links=links)
        found = dc.explain(problem)
        assert found.lower_bound_s == pytest.approx(end_h * HOUR_S)
        (hours,) = (one for one in found.advice.alone if one.resources[0].kind == "window")
        assert hours.saves_unlimited_s == pytest.approx((end_h - 30.8) * HOUR_S)


def test_hours_that_never_meet_others_are_known_to_carry_nominal_rates():
    """72 GB at 1 MB/s are there after 20 h; K opens when its link from S has closed.

    With K always open 10 MB/s more from 01:00 on: 3.6 GB until then, 68.4 at 11 MB/s: 2 h 43 min.
    """
    problem = dc.Problem.from_hosts(
        [dc.Host("S", 72 * 10**9), dc.Host("K", open="10:00-23:00"), dc.Host("D")],
        [
            dc.Link("S", "D", 1e6),
            dc.Link("S", "K", 1e7, open="01:00-08:00"),
            dc.Link("K", "D", 1e7),
        ],
        "D",
        start="2026-06-01T00:00",
        timezone="UTC",
    )
    found = dc.explain(problem)
    saves = {one.names[0]: one.saves_unlimited_s for one in found.advice.alone}
    assert found.lower_bound_s == pytest.approx(72_000)
    assert saves["hours of 'K'"] == pytest.approx(72_000 - 3600 - 68.4e9 / 11e6)


def test_a_window_of_nearly_a_day_gains_nothing_where_it_closes_later():
    """Tuesday from 03:00 on, an hour's worth: to open at 02:00 gains an hour, to close nothing."""
    problem = dc.Problem.from_hosts(
        [dc.Host("S", 3_600_000_000, open="Tu 03:00-02:30"), dc.Host("D")],
        [dc.Link("S", "D", 1e6)],
        "D",
        start="2026-06-01T12:00",
        timezone="UTC",
    )
    found = dc.explain(problem)
    (hours,) = (one for one in found.advice.alone if one.resources[0].kind == "window")
    assert (hours.resources[0].end, hours.saves_s) == ("opens", pytest.approx(HOUR_S))
