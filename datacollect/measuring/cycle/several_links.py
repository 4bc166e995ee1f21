"""Tests of several links at once: all into the destination, and two that may share a wire."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from datacollect.measuring.cycle.choosing import BETWEEN_S
from datacollect.measuring.operator.ends import is_by_agents, measure_ends
from datacollect.measuring.operator.flood_tests import measure_at_once, measure_flood
from datacollect.measuring.operator.pair_tests import measure_pair
from datacollect.measuring.operator.tcp_tests import TcpSettings
from datacollect.measuring.operator.tool import most_bytes
from datacollect.measuring.plan.budget import Cost
from datacollect.measuring.probes.shared_wires import CONNECTIONS
from datacollect.measuring.results.shared_links import RUNS, SHARED
from datacollect.methods.leaning.flood_tests import MORE_THAN_ALONE, MOST_AT_ONCE
from datacollect.net.agent_entries import AgentEntry

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from datacollect.measuring.operator.ends import End
    from datacollect.measuring.operator.tool import HasCost
    from datacollect.measuring.plan.rounds import Pair
    from datacollect.net.keys import PrivateKey

FLOOD_S = 10.0
COMPARED_S = 4.0


@dataclass(frozen=True)
class Flood:
    """A test of all pairs at once that have one receiver, or one sender.

    Attributes
    ----------
    pairs : tuple of (str, str)
    settings : tuple of TcpSettings
        Of each.
    """

    pairs: tuple[Pair, ...]
    settings: tuple[TcpSettings, ...]

    @property
    def name(self) -> str:
        """Return what no other flood is called."""
        return _digest(self.pairs)

    @property
    def cost(self) -> Cost:
        """Return what it takes at most."""
        seconds = max(one.seconds for one in self.settings)
        return Cost(sum(one.most_bytes for one in self.settings), seconds + BETWEEN_S)

    def of(self, pairs: Collection[Pair]) -> Flood:
        """Return the flood of those of its pairs that are among some."""
        both = zip(self.pairs, self.settings, strict=True)
        left = [(pair, one) for pair, one in both if pair in pairs]
        return Flood(tuple(pair for pair, _ in left), tuple(one for _, one in left))

    def at_once(self, rates: Mapping[Pair, float]) -> Flood:
        """Return it so short that all send until its end, by what each carries alone.

        Who had sent all its bytes would leave its share to the others.
        """
        whole_s = [
            one.most_bytes / (MORE_THAN_ALONE * rates[pair])
            for pair, one in zip(self.pairs, self.settings, strict=True)
            if pair in rates
        ]
        seconds = min([FLOOD_S, *whole_s])
        return Flood(self.pairs, tuple(replace(one, seconds=seconds) for one in self.settings))


def flood_into(host: str, pairs: Sequence[Pair], rates: Mapping[Pair, float]) -> Flood | None:
    """Return the test of all pairs into a host at once; None where there are fewer than two."""
    into = tuple(pair for pair in pairs if pair[1] == host)[:MOST_AT_ONCE]
    if len(into) < 2:
        return None
    most = max(most_bytes(rates.get(pair), FLOOD_S) for pair in into)
    return Flood(into, (TcpSettings(CONNECTIONS, FLOOD_S, most),) * len(into))


def _digest(pairs: Iterable[Pair]) -> str:
    return hashlib.sha256(json.dumps(sorted(pairs)).encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Comparison:
    """Test of whether two links share a wire: each alone and both at once, several times.

    Attributes
    ----------
    links : tuple of two pairs
    settings : TcpSettings
        Of each test.
    """

    links: tuple[Pair, Pair]
    settings: TcpSettings

    @property
    def name(self) -> str:
        """Return what no other comparison is called."""
        return _digest(self.links)

    @property
    def cost(self) -> Cost:
        """Return what it takes at most."""
        return Cost(4 * self.settings.most_bytes, 3 * (COMPARED_S + BETWEEN_S)).times(RUNS)


def comparison_of(links: tuple[Pair, Pair], rates: Mapping[Pair, float]) -> Comparison:
    """Return how two links are compared."""
    most = max(most_bytes(rates.get(link), COMPARED_S) for link in links)
    return Comparison(links, TcpSettings(CONNECTIONS, COMPARED_S, most))


@dataclass(frozen=True)
class Asking:
    """Party that asks: which hosts, with which key where they have agents, and for how long."""

    ends: Mapping[str, End]
    key: PrivateKey | None
    patience_s: float
    report: Callable[[str], None]

    def is_by_agents(self, pair: Pair) -> bool:
        """Return whether both hosts of a pair have agents."""
        return is_by_agents((self.ends[pair[0]], self.ends[pair[1]]))

    def pair(self, pair: Pair, settings: HasCost) -> Iterable[dict[str, Any]]:
        """Return the rows of a test of one pair."""
        ends = self.ends[pair[0]], self.ends[pair[1]]
        return measure_ends(ends, self.key, settings, self.patience_s, self.report)

    def flood(self, flood: Flood) -> list[dict[str, Any]]:
        """Return the rows of a flood."""
        agents, key = self._agents(flood.pairs)
        return measure_flood(agents, key, flood.settings, self.patience_s, self.report)

    def compare(self, comparison: Comparison, run: int) -> Iterator[dict[str, Any]]:
        """Yield the rows of one of the times that two links are compared."""
        settings, (agents, key) = comparison.settings, self._agents(comparison.links)
        said = asdict(settings) | {"links": comparison.links, "run": f"{comparison.name}-{run}"}
        alone = [
            measure_pair(*pair, key, settings, self.patience_s, self.report) for pair in agents
        ]
        at_once = measure_at_once(agents, key, settings, self.patience_s, self.report)
        for together, rows in ((False, alone), (True, at_once)):
            text = json.dumps(said | {"together": together})
            yield from ({**row, "tool": SHARED, "settings": text} for row in rows)

    def _agents(
        self, pairs: Sequence[Pair]
    ) -> tuple[list[tuple[AgentEntry, AgentEntry]], PrivateKey]:
        """Return who sends and who receives, which are agents, and the key for them."""
        agents = {name: end for name, end in self.ends.items() if isinstance(end, AgentEntry)}
        assert self.key is not None
        return [(agents[tail], agents[head]) for tail, head in pairs], self.key
