"""Depots beside direct connections: the session layer's measurements (its Appendix B), over again.

    python experiments/depots.py RESULTS.jsonl [--only ucsd-64k ...] [--sizes 64K 1M] [--pairs 10]
    python experiments/depots.py RESULTS.jsonl --tables docs/tables

Each series is a bed of namespaces (`tests/testbed`, for root, or for users where the kernel lets
them) with three wires: from the server to the client, and over a depot. The depot is an agent that
relays, as users run it; the server is any program that sends on plain TCP. Each pair asks for a
file directly and over the depot at the same moment, on wires of their own. Losses are split by
round-trip times. Results are one line of JSON per pair; what is there is not measured again.

Beside ours stand the averages of M. Swany and R. Wolski, "Data logistics in network computing: the
Logistical Session Layer", 2001.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests")]

from testbed.bed import PUNCTUAL, Bed  # noqa: E402
from testbed.pulling import COMMAND, PORT, START_S  # noqa: E402

from datacollect.scenario.setting import network_of  # noqa: E402
from datacollect.topologies import Node, Topology, Wire  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from datacollect.simulation.network import SimulatedNetwork

ENDS = HERE / "depot_ends.py"
WIRE_BYTES_PER_S = 6.25e6
QUEUE_PACKETS = 300
SERVER_PORT = 5000
SEGMENT_BYTES = 1448
# Ten segments, as the kernel begins.
FIRST_WINDOW_BYTES = 10 * SEGMENT_BYTES
# Longest wait for one file.
PATIENCE_S = 300.0
RESAMPLES = 2000
CONFIDENCE = 0.9

SIZES = {
    "16K": 1 << 14,
    "64K": 1 << 16,
    "256K": 1 << 18,
    "1M": 1 << 20,
    "4M": 1 << 22,
    "16M": 1 << 24,
    "32M": 1 << 25,
}


@dataclass(frozen=True)
class Route:
    """Round-trip times: direct, from the server to the depot, from there to the client."""

    direct_rtt_s: float
    far_rtt_s: float
    near_rtt_s: float


# UTK-ANL over ORNL, UTK-UCSD over TAMUS.
ANL = Route(0.106, 0.0755, 0.0023)
UCSD = Route(0.122, 0.0395, 0.087)


@dataclass(frozen=True)
class Series:
    """One setting: a route, what sockets ask for, what TCP does, losses of the direct wire.

    ``buffer_bytes`` None: buffers grow by themselves. ``paper_mbit_per_s``: direct and relayed, by
    size.
    """

    name: str
    title: str
    route: Route
    buffer_bytes: int | None
    congestion: str
    loss: float
    paper_mbit_per_s: Mapping[str, tuple[float, float]]
    sizes: tuple[str, ...] = tuple(SIZES)


def _paper(*pairs: tuple[float, float]) -> dict[str, tuple[float, float]]:
    return dict(zip(SIZES, pairs, strict=True))


# Of the direct rates of 32 MB by Mathis' formula.
LOSS = 8e-4
PAPER = (
    Series(
        "anl-8m",
        "ANL → UTK, 8 MB",
        ANL,
        8 << 20,
        "reno",
        LOSS,
        _paper(
            (0.378, 0.325),
            (0.764, 0.778),
            (1.552, 2.261),
            (2.999, 6.183),
            (4.456, 12.318),
            (4.324, 11.363),
            (4.712, 11.448),
        ),
    ),
    Series(
        "ucsd-8m",
        "UCSD → UTK, 8 MB",
        UCSD,
        8 << 20,
        "reno",
        LOSS,
        _paper(
            (0.332, 0.207),
            (0.667, 0.588),
            (1.643, 1.742),
            (2.578, 4.173),
            (3.742, 4.623),
            (4.155, 6.343),
            (4.032, 6.395),
        ),
    ),
    Series(
        "ucsd-64k",
        "UCSD → UTK, 64 KB",
        UCSD,
        64 << 10,
        "reno",
        LOSS,
        _paper(
            (0.316, 0.215),
            (0.656, 0.563),
            (1.478, 1.692),
            (2.558, 3.258),
            (3.074, 4.043),
            (3.118, 4.472),
            (3.171, 4.555),
        ),
    ),
)
AUTOMATIC = tuple(
    Series(
        f"auto-{congestion}-{loss:g}",
        f"automatic, {congestion}, {100 * loss:g} %",
        UCSD,
        None,
        congestion,
        loss,
        {},
        ("64K", "1M", "4M", "16M", "32M"),
    )
    for congestion in ("reno", "cubic", "bbr")
    for loss in (LOSS, 1e-4)
)
SERIES = {series.name: series for series in (*PAPER, *AUTOMATIC)}


# What would be expected ---------------------------------------------------------------------


def segment_rate(rtt_s: float, series: Series, loss: float) -> float:
    """Return the steady rate of one connection in bytes per second: window, losses, wire.

    Mathis, Semke, Mahdavi, Ott, "The macroscopic behavior of the TCP congestion avoidance
    algorithm", 1997: 1.22 segments per round trip over the square root of the loss. BBR does not
    answer to losses.
    """
    rates = [WIRE_BYTES_PER_S]
    if series.buffer_bytes is not None:
        rates.append(series.buffer_bytes / rtt_s)
    if loss > 0 and series.congestion != "bbr":
        rates.append(1.22 * SEGMENT_BYTES / (rtt_s * math.sqrt(loss)))
    return min(rates)


def transfer_s(size_bytes: int, rtt_s: float, rate_bytes_per_s: float) -> float:
    """Return how long one connection takes from its first window on, doubling each round trip.

    >>> round(transfer_s(14480, 0.1, 1e6), 3)  # one window: no further round trip
    0.014
    >>> round(transfer_s(43440, 0.1, 1e6), 3)  # a second window follows after a round trip
    0.129
    """
    taken_s, left, window = 0.0, float(size_bytes), float(FIRST_WINDOW_BYTES)
    while window < rate_bytes_per_s * rtt_s and left > window:
        taken_s, left, window = taken_s + rtt_s, left - window, 2 * window
    return taken_s + left / rate_bytes_per_s


def expected_s(size_bytes: int, series: Series) -> tuple[float, float]:
    """Return how long a file takes directly, and over the depot, by what is known beforehand.

    Directly: connect, ask, receive. Over the depot: connect to it, its connection to the server,
    the request over both, and the slower of the two connections.
    """
    route, loss = series.route, series.loss

    def sent_s(rtt_s: float) -> float:
        rate = segment_rate(rtt_s, series, loss * rtt_s / route.direct_rtt_s)
        return transfer_s(size_bytes, rtt_s, rate)

    far, near = route.far_rtt_s, route.near_rtt_s
    direct_s = 2 * route.direct_rtt_s + sent_s(route.direct_rtt_s)
    # Connect; CONNECT and its answer, with the depot's own connection between; request and answer.
    set_up_s = near + (near + far) + (near + far)
    return direct_s, set_up_s + max(sent_s(far), sent_s(near))


# Measuring ------------------------------------------------------------------------------------


def network(route: Route) -> SimulatedNetwork:
    """Server S, depot K and client C with a wire between each two."""
    rtts_s = {"SC": route.direct_rtt_s, "SK": route.far_rtt_s, "KC": route.near_rtt_s}
    wires = [
        Wire(tail, head, WIRE_BYTES_PER_S, rtt_s / 2, QUEUE_PACKETS)
        for (tail, head), rtt_s in rtts_s.items()
    ]
    topology = Topology.from_wires(wires, [Node(name) for name in "SKC"])
    # By hops: routes of least delay would lead over the depot.
    return network_of(
        topology, {name: name for name in "SKC"}, topology.shortest_routes().next_wire
    )


def losses(series: Series) -> dict[int, float]:
    """Return the loss of each wire on the way of the data: in proportion to round-trip times."""
    wires = network(series.route)
    share = series.loss / series.route.direct_rtt_s
    # Of server, depot and client, in this order, data go to a later one.
    return {
        wire: share * 2 * float(wires.delay_s[wire])
        for wire in range(wires.n_wires)
        if wires.tail[wire] < wires.head[wire]
    }


def measured(
    series: Series, wanted: Sequence[tuple[str, int]], seed: int
) -> Iterator[dict[str, Any]]:
    """Measure pairs of a series, and yield a row of each."""
    with (
        tempfile.TemporaryDirectory() as name,
        Bed(network(series.route), loss=losses(series), seed=seed) as bed,
    ):
        folder = Path(name)
        key = folder / "client.key"
        public = bed.run("C", [*COMMAND, "keys", "new", str(key)], timeout_s=START_S)
        limits = {} if series.buffer_bytes is None else {"buffer_bytes": series.buffer_bytes}
        agent = {
            "format": "datacollect-agent/1",
            "name": "K",
            "listen": f"{bed.address('K')}:{PORT}",
            "collectors": [public.strip().splitlines()[-1]],
            "connect_to": {"S": f"{bed.address('S')}:{SERVER_PORT}"},
            # The server is any program; it does not speak TLS.
            "plain_http_to": ["S"],
            "congestion": series.congestion,
            "limits": limits,
        }
        (folder / "agent.json").write_text(json.dumps(agent), encoding="utf-8")
        depot = bed.start("K", [*PUNCTUAL, *COMMAND, "agent", str(folder / "agent.json"), "--json"])
        depot.says('"url"', START_S)
        asked = {
            "server": [bed.address("S"), SERVER_PORT],
            "depot": [bed.address("K"), PORT],
            "key": str(key),
            "congestion": series.congestion,
            "buffer_bytes": series.buffer_bytes,
            "patience_s": PATIENCE_S,
        }
        ends = [*PUNCTUAL, sys.executable, str(ENDS)]
        server = bed.start("S", [*ends, "serve", json.dumps(asked)])
        server.says("ready", START_S)
        for size, pair in wanted:
            told = bed.run(
                "C", [*ends, "fetch", json.dumps(asked), str(SIZES[size])], timeout_s=2 * PATIENCE_S
            )
            yield {"series": series.name, "size": size, "pair": pair, **json.loads(told)}


def run(
    path: Path, series: Iterable[Series], sizes: Sequence[str], n_pairs: int, seed: int
) -> None:
    """Measure what is not there yet; all series at once, the pairs of each one after the other."""
    done = {(row["series"], row["size"], row["pair"]) for row in rows_of(path)}

    def measure(number: int, one: Series) -> None:
        wanted = [
            (size, pair)
            for pair in range(n_pairs)
            for size in one.sizes
            if size in sizes and (one.name, size, pair) not in done
        ]
        if not wanted:
            return
        for row in measured(one, wanted, seed + number):
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")

    chosen = list(series)
    with ThreadPoolExecutor(len(chosen)) as pool:
        list(pool.map(measure, range(len(chosen)), chosen))


# Tables ---------------------------------------------------------------------------------------


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Read results; none where the file is not there."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def ratio_of_rates(
    seconds: NDArray[np.float64], rng: np.random.Generator
) -> tuple[float, float, float]:
    """Return mean rate relayed over mean rate direct, and its bootstrap interval over pairs.

    ``seconds``: shape (pairs, 2), direct and relayed.
    """
    rates = 1 / seconds

    def ratio(some: NDArray[np.float64]) -> NDArray[np.float64]:
        means = some.mean(axis=-2)
        found: NDArray[np.float64] = means[..., 1] / means[..., 0]
        return found

    drawn = ratio(rates[rng.integers(0, len(rates), (RESAMPLES, len(rates)))])
    low, high = np.quantile(drawn, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(ratio(rates)), float(low), float(high)


HEAD = (
    "| series | file | pairs | direct, Mbit/s | relayed, Mbit/s | ratio [90 %] | paper | expected "
    "|\n"
    "| --- | --: | --: | --: | --: | --: | --: | --: |\n"
)


def table(rows: Sequence[Mapping[str, Any]], series: Iterable[Series]) -> str:
    """Return a table in Markdown: rates of both ways, their ratio, the paper's, what to expect."""
    times = defaultdict(list)
    for row in rows:
        times[row["series"], row["size"]].append((row["direct_s"], row["relayed_s"]))
    rng = np.random.default_rng(1)
    lines = []
    for one in series:
        for size in one.sizes:
            if not (pairs := times[one.name, size]):
                continue
            seconds = np.array(pairs)
            direct, relayed = 8e-6 * SIZES[size] * (1 / seconds).mean(axis=0)
            ratio, low, high = ratio_of_rates(seconds, rng)
            before = one.paper_mbit_per_s.get(size)
            paper = "–" if before is None else f"{before[1] / before[0]:.2f}"
            direct_s, relayed_s = expected_s(SIZES[size], one)
            lines.append(
                f"| {one.title} | {size} | {len(pairs)} | {direct:.3f} | {relayed:.3f} | "
                f"{ratio:.2f} [{low:.2f}–{high:.2f}] | {paper} | {direct_s / relayed_s:.2f} |\n"
            )
    return HEAD + "".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--only", nargs="+", choices=SERIES, default=[one.name for one in PAPER])
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tables", type=Path, help="write tables there, and measure nothing")
    options = parser.parse_args()
    if options.tables is None:
        chosen = [SERIES[name] for name in options.only]
        run(options.results, chosen, options.sizes, options.pairs, options.seed)
        print(table(rows_of(options.results), chosen), end="")
        return
    rows = rows_of(options.results)
    for name, some in (("depots_paper", PAPER), ("depots_automatic", AUTOMATIC)):
        (options.tables / f"{name}.md").write_text(table(rows, some), encoding="utf-8")


if __name__ == "__main__":
    main()
