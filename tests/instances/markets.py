"""A market that is known by heart: what probes of its links got, and how its hosts look."""

from __future__ import annotations

from datacollect.control.adaptive.market import Market
from datacollect.control.connections import Recovery
from datacollect.problem.hosts import Host, Link
from datacollect.problem.problem import Problem


def market_of(links, views=(), *, active=None, rates=None, connections=20, free=0, chains=False):
    """Return a market to D.

    Parameters
    ----------
    links : mapping of (str, str) to float
        What a probe of each got.
    views : sequence of HostView
    active : mapping of Link to int, optional
        How many connections of each link and chain there are.
    rates : LinkRates, optional
        What has been observed; by default nothing.
    connections, free : int
        Most at a time, and how many of them nobody has.
    chains : bool
    """
    names = dict.fromkeys([*(host for ends in links for host in ends), "D"])
    problem = Problem.from_hosts(
        [Host(name) for name in names], [Link(*ends, rate) for ends, rate in links.items()], "D"
    )
    market = Market(problem, connections, Recovery(), chains=chains, piece_bytes=10)
    market.views = lambda: list(views)
    market.rates = rates or market.rates
    market.pulls.active.update(active or {})
    market.pulls.held = connections - free
    return market
