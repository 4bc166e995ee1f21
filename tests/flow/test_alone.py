"""Each source alone: as soon as the problem in which nobody else has data."""

import numpy as np
import pytest

import datacollect as dc
from datacollect.flow import alone as alone_room
from datacollect.flow.alone import Alone
from datacollect.solvers.budget import Budget


@pytest.mark.parametrize("seed", range(20))
def test_each_is_as_soon_and_as_limited_as_if_it_alone_had_data(seed):
    rng = np.random.default_rng(seed)
    n_hosts = int(rng.integers(3, 9))
    names = [f"h{i}" for i in range(n_hosts)]
    bandwidth = rng.integers(1, 9, (n_hosts, n_hosts)) * (rng.random((n_hosts, n_hosts)) < 0.6)
    bandwidth[1:, 0] += 1
    backlog = rng.integers(1, 99, n_hosts) * (np.arange(n_hosts) > 0)
    problem = dc.Problem.from_matrix(names, bandwidth.astype(float), backlog, "h0")
    alone = Alone(problem, Budget())
    for host, source in enumerate(names[1:], start=1):
        only = problem.replace(backlog_bytes=np.where(np.arange(n_hosts) == host, backlog, 0))
        assert alone.of(source) == dc.lower_bound(only)


def test_a_mesh_takes_no_flow(monkeypatch):
    """A sends 5 bytes a second to D and 2 to K, which carries more: 10 bytes take 10/7 s."""
    bandwidth = [[0, 2.0, 5.0], [0, 0, 9.0], [0, 0, 0]]
    problem = dc.Problem.from_matrix(["A", "K", "D"], bandwidth, [10, 0, 0], "D")
    monkeypatch.setattr(alone_room, "fluid_optimum", pytest.fail)
    seconds, bottleneck = Alone(problem, Budget()).of("A")
    assert (seconds, bottleneck.kind) == (10 / 7, "source")


def test_three_hops_are_left_to_a_flow():
    """A's only link leads to J, J's to K, K's to D, at 4, 2 and 3 bytes a second."""
    hosts = [dc.Host("A", 12), dc.Host("J"), dc.Host("K"), dc.Host("D")]
    links = [dc.Link("A", "J", 4.0), dc.Link("J", "K", 2.0), dc.Link("K", "D", 3.0)]
    problem = dc.Problem.from_hosts(hosts, links, "D")
    assert Alone(problem, Budget()).of("A")[0] == pytest.approx(6.0)
