"""The fluid engine beside others' traffic, against arithmetic."""

import pandas as pd
import pytest
from instances.hand_made_plans import plan_of
from instances.small_networks import PLACES, line_network
from instances.tiny_controllers import sends_of

from datacollect.control.planned.scheduled import AsapController
from datacollect.simulation.fluid.engine import simulate_fluid
from datacollect.simulation.network import BackgroundFlow


def background(kind, **options):
    return BackgroundFlow(kind, 0, 2, **options)


def goodput(run):
    return run.background.set_index(["flow", "phase"])["goodput_bytes_per_s"]


def test_others_lose_while_the_collection_lasts_and_recover():
    """One TCP flow on a wire of 100 bytes/s: 100 before, 50 beside the collection, 100 after."""
    network = line_network([100.0, 1e6], PLACES, background=[background("tcp")])
    run = simulate_fluid(network, {"S": 500}, "D", sends_of(backlog={"S": 500}))
    assert run.makespan_s == pytest.approx(10.0)
    flow = goodput(run)[0]
    assert (flow["before"], flow["during"], flow["after"]) == pytest.approx((100, 50, 100))
    used = run.wires.set_index(["from", "to"])["utilisation"]
    assert used["n0", "n1"] == pytest.approx(1.0)
    assert used["n1", "n0"] == 0


def test_late_flow_leaves_the_wire_until_it_starts():
    """100 bytes/s alone until 4 s, then 50: 1000 bytes take 4 + 12 s; it gets 600 / 16."""
    network = line_network([100.0, 1e6], PLACES, background=[background("tcp", start_s=4.0)])
    run = simulate_fluid(network, {"S": 1000}, "D", sends_of(backlog={"S": 1000}))
    assert run.makespan_s == pytest.approx(16.0)
    assert goodput(run)[0, "during"] == pytest.approx(600 / 16)


def test_warm_up_counts_from_the_background_s_start():
    network = line_network([100.0, 1e6], PLACES, background=[background("tcp", start_s=4.0)])
    run = simulate_fluid(network, {"S": 500}, "D", sends_of(backlog={"S": 500}), warm_up_s=8.0)
    assert run.makespan_s == pytest.approx(10.0)
    assert goodput(run)[0, "before"] == pytest.approx(50.0)


UDP = {"rate_bytes_per_s": 80.0, "mean_on_s": 1.0, "mean_off_s": 3.0}


def test_udp_takes_its_mean_first():
    """80 bytes/s a quarter of the time: 20 of 100."""
    network = line_network([100.0, 1e6], PLACES, background=[background("udp", **UDP)])
    run = simulate_fluid(network, {"S": 800}, "D", sends_of(backlog={"S": 800}))
    assert run.makespan_s == pytest.approx(10.0)
    assert goodput(run)[0, "during"] == pytest.approx(20.0)


@pytest.mark.slow
def test_udp_on_and_off_takes_its_mean_in_the_long_run():
    """Over 1000 cycles the share of on-time is within 10 % of a quarter (3 standard deviations)."""
    network = line_network([100.0, 1e6], PLACES, background=[background("udp", **UDP)])
    runs = [
        simulate_fluid(
            network, {"S": 320_000}, "D", sends_of(backlog={"S": 320_000}), udp_on_off=True, seed=s
        )
        for s in (1, 2)
    ]
    for run in runs:
        assert goodput(run)[0, "during"] == pytest.approx(20.0, rel=0.1)
        # What the one does not take the other does.
        assert 320_000 / run.makespan_s + goodput(run)[0, "during"] == pytest.approx(100.0)
    assert runs[0].makespan_s != runs[1].makespan_s


def test_overload_by_udp_leaves_one_percent():
    flow = background("udp", rate_bytes_per_s=500.0, mean_on_s=1.0, mean_off_s=0.0)
    network = line_network([100.0, 1e6], PLACES, background=[flow])
    run = simulate_fluid(network, {"S": 10}, "D", sends_of(backlog={"S": 10}))
    assert run.makespan_s == pytest.approx(10.0)
    assert goodput(run)[0, "during"] == pytest.approx(99.0)


def test_no_flows_is_no_background():
    runs = [
        simulate_fluid(
            line_network([100.0, 50.0], PLACES, background=flows),
            {"S": 500},
            "D",
            sends_of(backlog={"S": 500}),
        )
        for flows in ([], ())
    ]
    assert runs[0].makespan_s == runs[1].makespan_s == pytest.approx(10.0)
    assert len(runs[0].background) == 0


def test_same_seed_same_result():
    def run():
        flows = [background("tcp"), background("udp", **UDP)]
        network = line_network([100.0, 60.0], PLACES, background=flows)
        plan = plan_of([("S", "K", "D")], [(0, 0, 0, 500, 0.0, 5.0), (0, 1, 0, 500, 0.0, 5.0)])
        return simulate_fluid(
            network, {"S": 500}, "D", AsapController(plan), seed=3, udp_on_off=True
        )

    first, second = run(), run()
    assert first.makespan_s == second.makespan_s
    for name in ("storage", "routes", "background", "wires", "connections"):
        pd.testing.assert_frame_equal(getattr(first, name), getattr(second, name))


def test_run_ends_when_only_others_go_on():
    """With its only source lost at 1 s, on and off times for a day are not worth following."""
    network = line_network([100.0, 1e6], PLACES, background=[background("udp", **UDP)])
    run = simulate_fluid(
        network,
        {"S": 500},
        "D",
        sends_of(backlog={"S": 500}),
        lost_hosts_s={"S": 1.0},
        time_limit_s=86_400.0,
        udp_on_off=True,
    )
    assert not run.complete
    assert run.events < 100
