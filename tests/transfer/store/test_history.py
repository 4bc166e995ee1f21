"""Rates over time from a log, and the picture of them."""

import json

import numpy as np
import pytest

import datacollect as dc
from datacollect.pictures.pull import plot_history, save_history
from datacollect.transfer.pull.held import why_late
from datacollect.transfer.store.history import MOVED, PlannedRoute, history_of, planned_routes


@pytest.fixture
def logged(tmp_path):
    """Return a function that writes a log of lines (seconds, what, more)."""

    def write(*lines):
        folder = tmp_path / "into/.datacollect"
        folder.mkdir(parents=True, exist_ok=True)
        text = [json.dumps({"s": s, "what": what, **more}) for s, what, more in lines]
        (folder / "log.jsonl").write_text("\n".join([*text, '{"s": 9, "wha']))  # killed
        return tmp_path / "into"

    return write


BEGIN = (0, "pull begins", {"method": "direct"})


def came(s, **routes):
    return s, MOVED, {"routes": [[name.split("_"), n] for name, n in routes.items()]}


def test_rates_are_what_came_between_two_notes(logged):
    """S1: 100 bytes in 1 s, then 300 in 2 s; a route that opens later had brought nothing."""
    folder = logged(
        BEGIN, came(1, S1=0), came(2, S1=100), came(4, S1=400, S2_R=50), (5, "pull ends", {})
    )
    history = history_of(folder)
    rates = history.rates()
    assert rates.keys() == {("S1",), ("S2", "R")}
    np.testing.assert_allclose(rates["S1",], [100.0, 150.0])
    np.testing.assert_allclose(rates["S2", "R"], [0.0, 25.0])
    assert history.ended_s == 5


def test_a_second_round_counts_on(logged):
    plan = {"makespan_s": None}
    folder = logged(
        BEGIN,
        (0, "planned", plan),
        came(1, S1=10),
        came(2, S1=30),
        (3, "planned", plan),
        came(4, S1=5, S2=1),
        came(5, S1=7, S2=2),
    )
    history = history_of(folder)
    assert history.arrived_bytes == {("S1",): [10, 30, 35, 37], ("S2",): [0, 0, 1, 2]}
    assert history.ended_s is None


def test_the_plan_is_told_by_its_first_round(logged):
    """Two routes side by side at 10 and 20 bytes/s, planned 2 s after the start."""
    expected = [[["S1"], 100, 0.0, 10.0], [["S2"], 100, 0.0, 5.0]]
    folder = logged(
        BEGIN,
        (2, "planned", {"makespan_s": 10.0, "expected": expected}),
        came(2.5, S1=1),
        came(3, S1=2),
        (4, "session ended", {"why": "reset"}),
        (5, "session ended", {"why": ""}),
        (6, "planned", {"makespan_s": 99.0, "expected": []}),
    )
    history = history_of(folder)
    assert history.predicted_s == 12.0
    assert history.planned[0] == PlannedRoute(("S1",), 100, 2.0, 12.0)
    assert [history.planned_rate(t) for t in (1.9, 2, 6.9, 7, 12)] == [0, 30, 30, 10, 0]
    assert history.troubles == [(4.0, "connection lost")]


def planned(s, makespan_s, *expected, promises):
    more = {"makespan_s": makespan_s, "expected": list(expected), "promises": promises}
    return s, "planned", more


def test_a_plan_that_promises_anew_takes_the_place_of_the_one_before(logged):
    """10 bytes/s for 3 s, as promised until then; then 5 + 5; what is planned later counts not."""
    folder = logged(
        BEGIN,
        planned(0, 10, [["S1"], 100, 0, 10], promises=True),
        came(1, S1=10),
        came(2, S1=20),
        planned(3, 14, [["S1"], 70, 0, 14], [["S2"], 70, 0, 14], promises=True),
        came(4, S1=5, S2=5),
        planned(5, 90, [["S1"], 1, 0, 90], promises=False),
    )
    history = history_of(folder)
    assert history.predicted_s == 17.0
    assert history.planned == [
        PlannedRoute(("S1",), 30, 0.0, 3.0),
        PlannedRoute(("S1",), 70, 3.0, 17.0),
        PlannedRoute(("S2",), 70, 3.0, 17.0),
    ]
    assert [history.planned_rate(t) for t in (2, 3, 16)] == [10, 10, 10]


def test_why_a_pull_is_late_is_told_by_the_plan_that_promised_last(logged):
    """S1 is alone with 10 bytes/s, then beside S2 with 5 each: S1 gets its 5, S2 3.8."""
    lines = [BEGIN, planned(0, 10, [["S1"], 100, 0, 10], promises=True)]
    lines += [came(i, S1=10 * i) for i in range(1, 4)]
    lines += [(2.5, "session ended", {"why": "reset"})]
    both = [["S1"], 70, 0, 14], [["S2"], 70, 0, 14]
    lines += [planned(3, 14, *both, promises=True)]
    lines += [came(3 + i, S1=min(70, 5 * i), S2=min(70.0, 3.8 * i)) for i in range(1, 20)]
    (why,) = why_late(history_of(logged(*lines)), "D")
    assert why.startswith("S2 → D carried")


def _drawn(logged, *, ended_s, makespan_s, **more):
    """A pull of 400 bytes, planned at 1000 in `makespan_s` seconds."""
    expected = [[["S1"], 1000, 0.0, makespan_s]]
    folder = logged(
        BEGIN,
        (0, "planned", {"makespan_s": makespan_s, "expected": expected}),
        came(1, S1=0),
        came(3, S1=400),
        (ended_s, "pull ends", more),
    )
    return plot_history(history_of(folder))


def test_the_picture_has_the_scale_of_what_happened(logged):
    """The plan expected 500 s, and 500 000 times the rate: neither squeezes what happened."""
    slow = _drawn(logged, ended_s=4, makespan_s=500.0)
    above, below = slow.axes
    assert above.get_xlim() == below.get_xlim() == (0, pytest.approx(4.08))
    assert "predicted 8 min 20 s (beyond the right edge)" in above.get_title(loc="left")
    fast = _drawn(logged, ended_s=4, makespan_s=1e-5).axes[0]
    assert fast.get_ylim()[1] == pytest.approx(1.05 * 200 * 8 / 1e6)
    plans = [text.get_text() for text in fast.get_legend().get_texts()]
    assert plans == ["S1", "plan, all routes, up to 800 Mbit/s"]
    assert fast.yaxis.get_major_formatter()(0.0016, 0) == "1.6 kbit/s"
    assert below.get_ylim()[1] == pytest.approx(1.05 * 400 / 1e6)
    near = _drawn(logged, ended_s=4, makespan_s=5.0).axes[0]
    assert near.get_xlim()[1] == pytest.approx(5.1)
    assert "predicted 5 s (dotted)" in near.get_title(loc="left")


def test_bytes_that_were_received_twice_are_named(logged):
    figure = _drawn(logged, ended_s=4, makespan_s=4.0, refetched={"sent twice": 150, "changed": 0})
    labels = [text.get_text() for text in figure.axes[1].get_legend().get_texts()]
    assert labels == ["received, of that twice: 150 B sent twice", "plan"]
    plain = _drawn(logged, ended_s=4, makespan_s=4.0).axes[1]
    assert [text.get_text() for text in plain.get_legend().get_texts()] == ["came", "plan"]


def test_only_the_last_start_that_brought_something_counts(logged):
    folder = logged(BEGIN, came(1, S1=0), came(2, S1=9), BEGIN, came(1, S1=0))
    assert history_of(folder).arrived_bytes == {("S1",): [0, 9]}


def test_where_nothing_has_come_there_is_nothing_to_draw(logged, tmp_path):
    with pytest.raises(dc.ProblemError, match="nothing has arrived in this folder"):
        history_of(logged(BEGIN))
    with pytest.raises(dc.ProblemError, match="nothing has arrived in this folder"):
        history_of(tmp_path / "nowhere")
    with pytest.raises(dc.ProblemError, match=r"must end in .*\.jpg"):
        save_history(tmp_path, tmp_path / "x.jpg")


def test_a_schedule_is_told_route_by_route():
    problem = dc.Problem.from_dict(
        {
            "destination": "D",
            "hosts": {"S": {"backlog_bytes": 3000}, "D": {}},
            "links": [{"from": "S", "to": "D", "bandwidth_bytes_per_s": 1000.0}],
        }
    )
    assert planned_routes(dc.direct(problem)) == [[["S"], 3000, 0.0, 3.0]]


def test_a_real_pull_draws_all_that_came(agents, collection_of, tmp_path):
    one = agents("S1", {"a": bytes(300_000)})
    links = [{"from": "S1", "to": "D", "bandwidth_bytes_per_s": 1e6}]
    dc.pull(collection_of(one, links=links), tmp_path / "into", "direct")
    history = history_of(tmp_path / "into")
    assert history.arrived_bytes["S1",][-1] >= 300_000
    assert [each.n_bytes for each in history.planned] == [300_000]
    figure = plot_history(history)
    above, below = figure.axes
    labels = [text.get_text() for text in above.get_legend().get_texts()]
    assert labels == ["S1", "plan, all routes"]
    assert below.lines[0].get_ydata()[-1] == pytest.approx(history.arrived_bytes["S1",][-1] / 1e6)
    save_history(tmp_path / "into", tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes()[:4] == b"\x89PNG"
