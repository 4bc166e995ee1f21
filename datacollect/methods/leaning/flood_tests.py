"""Floods that tell whether a host can do what a plan has it do: which links at once, how, how much.

A flood shows what a host can do where all its links are busy to its end, for 5 s: so each may send
more bytes than the fastest of them carries in that time.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from datacollect.schedule.data.use import bytes_by_link

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacollect.problem.problem import Problem
    from datacollect.schedule.data.assumptions import Direction, HostLoad
    from datacollect.schedule.schedule import Schedule

# The file of hosts by which operators measure.
HOSTS_FILE = "hosts.toml"
# Connections of each link: so many fill a line that one does not.
STREAMS = 4
# What hosts are shown to do lasts so long.
FLOOD_S = 5.0
# No link sends more than so many times what it carries alone: nobody gets more beside others.
MORE_THAN_ALONE = 1.25
# As many tests as agents take part in at once; a flood of so many counts as one of all.
MOST_AT_ONCE = 64


@dataclass(frozen=True)
class FloodTest:
    """A flood of some links of one host.

    Attributes
    ----------
    host : str
    direction : {"out", "in"}
        Whether it sends or receives.
    rates_bytes_per_s : mapping of (str, str) to float
        Of each of these links, what it carries alone.

    Examples
    --------
    >>> flood = FloodTest("S", "out", {("S", "D"): 1e6, ("S", "K"): 2e6})
    >>> flood.most_bytes_each, flood.most_bytes
    (12500001, 25000002)
    >>> print(flood.command("h.toml"))
    datacollect measure flood h.toml --from S --to D --to K
      --streams 4 --seconds 5 --bytes 12500001
    """

    host: str
    direction: Direction
    rates_bytes_per_s: Mapping[tuple[str, str], float]

    @property
    def most_bytes_each(self) -> int:
        """The bytes that each link may send, of the fastest one: the command has one number."""
        return max(map(most_bytes_of, self.rates_bytes_per_s.values()))

    @property
    def most_bytes(self) -> int:
        """Return what the command takes at most."""
        return len(self.rates_bytes_per_s) * self.most_bytes_each

    def command(self, hosts_file: str = HOSTS_FILE) -> str:
        """Return the command that runs it, with a file of hosts."""
        sends = self.direction == "out"
        one, others = ("--from", "--to") if sends else ("--to", "--from")
        words = [one, self.host]
        for pair in self.rates_bytes_per_s:
            words += [others, pair[sends]]
        words += ["--streams", str(STREAMS), "--seconds", f"{FLOOD_S:g}"]
        words += ["--bytes", str(self.most_bytes_each)]
        return shlex.join(["datacollect", "measure", "flood", hosts_file, *words])


def most_bytes_of(rate_bytes_per_s: float) -> int:
    """Return the bytes that keep a link busy until a flood's end, by what it carries alone."""
    return int(MORE_THAN_ALONE * rate_bytes_per_s * FLOOD_S) + 1


def flood_of(problem: Problem, plan: Schedule, load: HostLoad) -> FloodTest:
    """Return the flood that tells whether a host can do what a plan has it do.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(
    ...     ["S", "K", "D"], [[0, 1e6, 1e6], [0, 0, 1e6], [0, 0, 0]], [4_000_000, 0, 0], "D"
    ... )
    >>> plan = dc.coordinated(problem)
    >>> flood_of(problem, plan, plan.assumptions.leans_on[0]).rates_bytes_per_s
    {('S', 'D'): 1000000.0, ('S', 'K'): 1000000.0}
    """
    rate = problem.bandwidth_bytes_per_s.max(axis=0)
    if problem.capacity_bytes_per_s is not None:
        # Several connections get up to that.
        rate = np.fmax(rate, problem.capacity_bytes_per_s)
    index = problem.host_index
    links = busiest_links(bytes_by_link(plan), load)[:MOST_AT_ONCE]
    rates = {
        (tail, head): float(rate[int(problem.link_indices(index[tail], index[head]))])
        for tail, head in links
    }
    return FloodTest(load.host, load.direction, rates)


def busiest_links(
    carried_bytes: Mapping[tuple[str, str], int], load: HostLoad
) -> list[tuple[str, str]]:
    """Return the links by which a host sends, or receives, what a plan has it do; busiest first."""
    end = 0 if load.direction == "out" else 1
    of_host = [pair for pair in carried_bytes if pair[end] == load.host]
    return sorted(of_host, key=lambda pair: (-carried_bytes[pair], pair))
