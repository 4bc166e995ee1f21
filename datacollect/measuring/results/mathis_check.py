"""Cross-check of rates: those of connections, and Reno's at the losses of their links.

Rates, round trips and losses come from different tools. Where they do not fit together, one of them
does not tell what plans take it for. What fits is from Mathis, Semke, Mahdavi and Ott, "The
macroscopic behavior of the TCP congestion avoidance algorithm", Computer Communication Review 27,
1997.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from datacollect.files.units import counted, format_rate
from datacollect.measurement.outcomes import listed
from datacollect.measurement.sample_store import DONE
from datacollect.measuring.operator.pings import PING
from datacollect.measuring.operator.tcp_tests import TCP
from datacollect.measuring.operator.tools import TOOLS
from datacollect.measuring.probes.connection_curve import mathis_bytes_per_s

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from datacollect.measuring.plan.rounds import Pair

# Beyond a factor of two lie neither variants of Reno (delayed acknowledgements make 1.22 to 0.87)
# nor the scatter of tests and losses.
FAR = 2.0
# Of ten pings all arrive in nine of ten tests at a loss of 1 %. The rate goes with the root of the
# loss, so a factor of two is one of four in losses: five are seen where 1.25 are to be expected
# once in a hundred, and where 20 are less often.
FEWEST_LOST = 5
# Beyond it timeouts, which the formula has none of, cost connections much of their rate (Padhye,
# Firoiu, Towsley and Kurose, "Modeling TCP throughput", SIGCOMM 1998): too little says nothing.
MOST_LOSS = 0.01

MOST_NAMED = 3


@dataclass(frozen=True)
class ComparedWithReno:
    """Tests of a link beside what its losses let one connection of Reno have.

    Attributes
    ----------
    link : (str, str)
    per_connection_bytes_per_s : float
        What one connection got, the median of the tests with the fewest: more of them fill a wire,
        and then get less than losses let them.
    reno_bytes_per_s : float
        At this round trip and loss.
    rtt_s : float
        Of the same tests, queues that they filled included; of pings where tests do not say it.
    loss : float
        The part of all packets of pings and packet pairs that was lost.
    n_lost : int
    """

    link: Pair
    per_connection_bytes_per_s: float
    reno_bytes_per_s: float
    rtt_s: float
    loss: float
    n_lost: int

    @property
    def is_far_above(self) -> bool:
        """Return whether Reno cannot have got so much at such losses."""
        return self.per_connection_bytes_per_s > FAR * self.reno_bytes_per_s

    @property
    def is_far_below(self) -> bool:
        """Return whether something else than these losses kept connections from more."""
        is_known = self.loss <= MOST_LOSS
        return is_known and FAR * self.per_connection_bytes_per_s < self.reno_bytes_per_s

    def __str__(self) -> str:
        """Name the link, with both rates."""
        tail, head = self.link
        got, reno = map(format_rate, (self.per_connection_bytes_per_s, self.reno_bytes_per_s))
        return f"{tail} -> {head} ({got} instead of {reno})"


def compared_with_reno(table: pd.DataFrame) -> list[ComparedWithReno]:
    """Compare the links of which tests, round trips and enough losses are known.

    Parameters
    ----------
    table : DataFrame
        Tests that count, as `datacollect.measurement.sample_store.read_parts` reads them.

    Examples
    --------
    Two of 200 pings are too few; ten of 1000 are a loss of 1 %, at which 1.22 · 1448 bytes in 0.1 s
    are to be divided by the root of 0.01.

    >>> import pandas as pd
    >>> link = {"from": "S", "to": "D", "ended": "done"}
    >>> ping = link | {"tool": "ping", "rtt_s": 0.1, "loss": 0.01, "settings": '{"n": 200}'}
    >>> tcp = link | {"tool": "tcp", "bandwidth_bytes_per_s": 4e5, "streams": 2}
    >>> compared_with_reno(pd.DataFrame([tcp, ping]))
    []
    >>> [found] = compared_with_reno(pd.DataFrame([tcp] + 5 * [ping]))
    >>> found.per_connection_bytes_per_s, round(found.reno_bytes_per_s), found.n_lost
    (200000.0, 176656, 10)
    """
    rates, trips_s = _medians_of_tests(table)
    trips_s = _trips_of_pings(table) | trips_s
    return [
        ComparedWithReno(
            link,
            rates[link],
            mathis_bytes_per_s(trips_s[link], n_lost / n_sent),
            trips_s[link],
            n_lost / n_sent,
            n_lost,
        )
        for link, (n_lost, n_sent) in sorted(_losses(table).items())
        if n_lost >= FEWEST_LOST and link in rates and link in trips_s
    ]


def notes_of(compared: Sequence[ComparedWithReno]) -> list[str]:
    """Say of which links tests and losses do not fit together, and what follows."""
    above = [str(each) for each in compared if each.is_far_above]
    below = [str(each) for each in compared if each.is_far_below]
    notes = []
    if above:
        notes.append(
            f"connections of {counted(len(above), 'link')} get more than twice what Reno's would "
            f"at the losses seen: {listed(above, MOST_NAMED)}; either these are not the losses of "
            "TCP's own packets, or another congestion control is at work, such as cubic or bbr"
        )
    if below:
        notes.append(
            f"connections of {counted(len(below), 'link')} get less than half of what Reno's would "
            f"at the losses seen: {listed(below, MOST_NAMED)}; something else limits them, such as "
            "windows, the hosts, or a wire that they fill: limited_by of their samples may say it"
        )
    return notes


def _medians_of_tests(table: pd.DataFrame) -> tuple[dict[Pair, float], dict[Pair, float]]:
    """Return what a connection got, and its round trip, in tests over the fewest of each link."""
    is_one = (table["tool"] == TCP.name) & (table["ended"] == DONE)
    tests = table[is_one & (table["bandwidth_bytes_per_s"] > 0)]
    numbers = tests[["bandwidth_bytes_per_s", "streams", "rtt_s"]].astype(float)
    tests = tests[["from", "to"]].join(numbers)
    tests = tests[tests["streams"] >= 1]
    tests = tests[tests["streams"] == tests.groupby(["from", "to"])["streams"].transform("min")]
    rate = tests["bandwidth_bytes_per_s"] / tests["streams"]
    medians = tests.assign(rate=rate).groupby(["from", "to"])[["rate", "rtt_s"]].median()
    return _above_0(medians["rate"]), _above_0(medians["rtt_s"])


def _trips_of_pings(table: pd.DataFrame) -> dict[Pair, float]:
    is_ping = (table["tool"] == PING.name) & (table["ended"] == DONE)
    pings = table.loc[is_ping, ["from", "to", "rtt_s"]]
    return _above_0(pings.astype({"rtt_s": float}).groupby(["from", "to"])["rtt_s"].median())


def _above_0(by_link: Any) -> dict[Pair, float]:
    """Return the numbers of a series that are, by link."""
    return {link: value for link, value in by_link.items() if value > 0}


def _losses(table: pd.DataFrame) -> dict[Pair, tuple[int, int]]:
    """Return of each link how many packets were lost, and of how many, in all its samples."""
    # Where nothing at all arrives, a firewall drops it, or nobody answers: no loss of the path's.
    loss = table["loss"].astype(float)
    sent = {name: tool.packets_of for name, tool in TOOLS.items() if tool.packets_of is not None}
    rows = table[table["tool"].isin(list(sent)) & (loss < 1)]
    # Most links lose nothing, and their settings need not be read.
    rows = rows[loss[rows.index].groupby([rows["from"], rows["to"]]).transform("max") > 0]
    found: dict[Pair, tuple[int, int]] = {}
    for row in rows[["from", "to", "tool", "ended", "loss", "settings"]].to_dict("records"):
        n_sent = sent[row["tool"]](row)
        n_lost, n_before = found.get((row["from"], row["to"]), (0, 0))
        lost = round(row["loss"] * n_sent)
        found[row["from"], row["to"]] = (n_lost + lost, n_before + n_sent)
    return found
