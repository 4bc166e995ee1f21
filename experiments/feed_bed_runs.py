"""Feeds in a bed: real senders, relays and receivers, and when each message was there."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests")]

from testbed.bed import Bed, Started  # noqa: E402
from testbed.pulling import COMMAND, PORT, START_S  # noqa: E402

from datacollect.measurement.feed_plans import FeedHop, FeedPlan, TcpAnswer, feed_plan  # noqa: E402
from datacollect.scenario.setting import network_of  # noqa: E402
from datacollect.topologies import Node, Topology, Wire  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from datacollect.simulation.network import SimulatedNetwork

    Floats = NDArray[np.float64]

ENDS = (sys.executable, str(HERE / "feed_bed_ends.py"))
# Before what else the machine does, but after the link program; as far as it is allowed.
FIRST = ("chrt", "--fifo", "3") if os.geteuid() == 0 else ()
QUEUE_PACKETS = 100
MESSAGE_BYTES = 4096
BYTES_PER_MBIT = 125_000
# How much later than the fastest a message is late, and after how long without one a loss is over.
LATE_S, OVER_S = 0.02, 1.0
# Slow start is over, and the machine at rest, before the first loss.
QUIET_S = 10.0
PATIENCE_S = 120.0
# A disk that others use, too, would be late itself.
MEMORY = Path("/dev/shm")


@dataclass(frozen=True)
class Setting:
    """A feed by TCP, and what happens to it on its first wire.

    Attributes
    ----------
    congestion : str
        Of the sender and of all relays.
    link_mbit, rate_mbit : float
        Of each wire, headers included, and of the source.
    n_relays : int
        They divide the round trip evenly.
    n_losses, spacing_s : int, float
        Packets that are lost, one each so many seconds.
    loss : float
        Instead: part of the packets, at random; then the feed lasts ``spacing_s``.
    socket_bytes : int or None
        None: buffers grow by themselves.
    is_paced : bool
        As feeds are, or else as TCP sends by itself.
    """

    congestion: str
    link_mbit: float
    n_relays: int = 0
    rtt_s: float = 0.05
    rate_mbit: float = 16.0
    n_losses: int = 10
    spacing_s: float = 20.0
    loss: float = 0.0
    socket_bytes: int | None = None
    is_paced: bool = True

    @property
    def hosts(self) -> tuple[str, ...]:
        """Source, relays, destination."""
        return ("S", *self.relays, "D")

    @property
    def relays(self) -> tuple[str, ...]:
        """The relays."""
        return tuple(f"K{i + 1}" for i in range(self.n_relays))

    @property
    def seconds(self) -> float:
        """How long its source makes data."""
        return QUIET_S + max(self.n_losses, 1) * self.spacing_s

    def hops(self) -> list[FeedHop]:
        """The hops, as plans know them."""
        rtt_s, rate = self.rtt_s / (self.n_relays + 1), self.link_mbit * BYTES_PER_MBIT
        return [FeedHop.of_wire(host, rtt_s, rate) for host in self.hosts[1:]]

    def plan(self) -> TcpAnswer:
        """What `feed plan` says of it."""
        whole = FeedHop.of_wire("D", self.rtt_s, self.link_mbit * BYTES_PER_MBIT)
        relayed = self.hops() if self.n_relays else ()
        found: FeedPlan = feed_plan(self.rate_mbit * BYTES_PER_MBIT, whole, relayed)
        return next(
            one for one in found.tcp if (one.transport, one.via) == (self.congestion, self.relays)
        )

    def network(self) -> SimulatedNetwork:
        """A line of hosts."""
        n_wires = self.n_relays + 1
        wires = [
            Wire(a, b, self.link_mbit * BYTES_PER_MBIT, self.rtt_s / 2 / n_wires, QUEUE_PACKETS)
            for a, b in zip(self.hosts, self.hosts[1:], strict=False)
        ]
        topology = Topology.from_wires(wires, [Node(host) for host in self.hosts])
        routes = topology.shortest_routes().next_wire
        return network_of(topology, {host: host for host in self.hosts}, routes)


# What was seen --------------------------------------------------------------------------------


def delays_s(made: Floats, seen: Floats) -> Floats:
    """Return how long after it was made each message was there, seconds.

    ``made``, ``seen``: shape (n, 2), an instant and how many bytes there were then.

    >>> delays_s(np.array([[1.0, 10], [2.0, 20]]), np.array([[1.5, 10], [3.0, 20]]))
    array([0.5, 1. ])
    """
    at = np.searchsorted(seen[:, 1], made[:, 1], side="left")
    if at.max(initial=0) >= len(seen):
        raise ValueError("not all that was made is there")
    found: Floats = seen[at, 0] - made[:, 0]
    return found


class AfterLoss(NamedTuple):
    """What a loss did.

    Attributes
    ----------
    worst_delay_s : float
        Of the messages that were late, or of those of the first second.
    late_for_s : float
        From the loss until the last late message was there; 0: none was late.
    lateness_s2 : float
        By how much late messages were later than the fastest, added up over the time of making.
    machine_s : float
        How late the source itself was meanwhile: this the machine did, and no loss.
    """

    worst_delay_s: float
    late_for_s: float
    lateness_s2: float
    machine_s: float


def after_loss(made_s: Floats, delay_s: Floats, lost_s: float, until_s: float) -> AfterLoss:
    """Return what a loss did to the messages from shortly before it, up to an instant.

    The lateness of a busy machine counts no more, once all was timely for a while.

    >>> made_s, delay_s = np.arange(0, 10, 0.5), np.full(20, 0.03)
    >>> delay_s[4:8] = 0.23, 0.13, 0.08, 0.04
    >>> delay_s[16] = 0.5  # the machine's own
    >>> [round(float(x), 3) for x in after_loss(made_s, delay_s, 2.0, 10.0)]
    [0.23, 1.08, 0.175, 0.0]
    """
    least_s = float(delay_s.min())
    each_s = (made_s[-1] - made_s[0]) / (len(made_s) - 1)
    here = np.flatnonzero((made_s + delay_s >= lost_s) & (made_s < until_s))
    is_late = delay_s[here] > least_s + LATE_S
    late, last_s = [], lost_s
    for i in here[is_late].tolist():
        if made_s[i] > last_s + OVER_S:
            break
        late.append(i)
        last_s = max(last_s, float(made_s[i] + delay_s[i]))
    first = here[made_s[here] < lost_s + OVER_S]
    worst_s = float(delay_s[late].max() if late else delay_s[first].max())
    lateness_s2 = float((delay_s[late] - least_s).sum()) * each_s
    # What was not made for a while is made together then: a step of its schedule.
    end_s = max(last_s, lost_s + OVER_S)
    steps_s = np.diff(made_s)[(made_s[1:] >= lost_s - OVER_S) & (made_s[:-1] <= end_s)]
    machine_s = float(steps_s.max(initial=0.0)) - each_s
    return AfterLoss(worst_s, last_s - lost_s, lateness_s2, max(machine_s, 0.0))


# Running --------------------------------------------------------------------------------------


class Feeds:
    """Agents in a bed that take and relay feeds, and feeds that are sent to them."""

    def __init__(self, bed: Bed, folder: Path, source: str) -> None:
        self.bed, self.folder = bed, folder
        self._entries: dict[str, str] = {}
        new = [*COMMAND, "keys", "new", str(folder / "key")]
        said = bed.run(source, new, timeout_s=START_S)
        self._public = said.strip().splitlines()[-1]

    @property
    def kept(self) -> Path:
        """The receiver's folder."""
        return self.folder / "feeds"

    def agent(self, name: str, more: Sequence[str], wrap: Sequence[str] = ()) -> Started:
        """Start an agent."""
        rows = [
            'format = "datacollect-agent/1"',
            f'name = "{name}"',
            f'listen = "{self.bed.address(name)}:{PORT}"',
            f'collectors = ["{self._public}"]',
            *more,
        ]
        path = self.folder / f"{name}.toml"
        path.write_text("\n".join(rows) + "\n", encoding="utf-8")
        program = wrap or COMMAND
        started = self.bed.start(name, [*FIRST, *program, "agent", str(path), "--json"])
        said = json.loads(started.says("}\n", START_S).splitlines()[0])
        self._entries[name] = (
            f'[agents.{name}]\nurl = "{said["url"]}"\nfingerprint = "{said["fingerprint"]}"\n'
        )
        return started

    def receiver(self, wrap: Sequence[str] = ()) -> Started:
        """Start the agent that takes feeds."""
        self.kept.mkdir()
        table = [
            "[feed]",
            f'users = ["{self._public}"]',
            'folder = "feeds"',
            'bytes = "100 GB"',
            'most_rate = "10 Gbit/s"',
        ]
        return self.agent("D", table, wrap)

    def file(self, name: str, rate_mbit: float, rows: Sequence[str]) -> Path:
        """Write a feed's file."""
        path = self.folder / f"{name}.toml"
        head = f'format = "datacollect-feed/1"\nname = "{name}"\nto = "D"\nkey = "key"\n'
        text = "".join(f"{row}\n" for row in (f'rate = "{rate_mbit:g} Mbit/s"', *rows))
        path.write_text(head + text + "".join(self._entries.values()), encoding="utf-8")
        return path


@contextmanager
def feeds_in_bed(
    network: SimulatedNetwork,
    source: str = "S",
    loss: dict[int, float] | None = None,
    seed: int = 1,
) -> Iterator[Feeds]:
    """Make a bed, and what feeds need there."""
    place = MEMORY if MEMORY.is_dir() else None
    with (
        tempfile.TemporaryDirectory(dir=place, prefix="feed-bed-") as name,
        Bed(network, loss=loss or {}, seed=seed) as bed,
    ):
        yield Feeds(bed, Path(name), source)


class Window(NamedTuple):
    """A connection as its kernel has it: its window, round trip, and what it has sent so far."""

    window_bytes: int
    rtt_s: float
    sent_bytes: int


class Watched(NamedTuple):
    """A feed that was sent: what was made, what was there, the losses, windows before these."""

    made: Floats
    seen: Floats
    lost_s: list[float]
    before_losses: list[Window]
    said: dict[str, Any]
    received: Floats | None

    @property
    def delay_s(self) -> Floats:
        """Of each message."""
        return delays_s(self.made, self.seen)


def watched(setting: Setting, seed: int = 1, *, packets: bool = False) -> Watched:
    """Send a feed, lose packets of it, and say when each message was made and there.

    Parameters
    ----------
    packets : bool
        Whether to note when the receiver's interface has received how much, too.
    """
    loss = {0: setting.loss} if setting.loss else {}
    with ExitStack() as ending:
        feeds = ending.enter_context(feeds_in_bed(setting.network(), loss=loss, seed=seed))
        bed, folder = feeds.bed, feeds.folder
        feeds.receiver()
        for relay, after in zip(setting.relays[::-1], setting.hosts[:1:-1], strict=True):
            reached = f'connect_to = {{ {after} = "{bed.address(after)}:{PORT}" }}'
            feeds.agent(relay, [reached, f'congestion = "{setting.congestion}"'])
        rows = [
            f"message_bytes = {MESSAGE_BYTES}",
            'buffer_bytes = "200 MB"',
            f'congestion = "{setting.congestion}"',
            f"via = {json.dumps(list(setting.relays))}",
        ]
        if setting.socket_bytes is not None:
            rows.append(f"socket_bytes = {setting.socket_bytes}")
        path = feeds.file("scan", setting.rate_mbit, rows)
        outs = {name: folder / f"{name}.npy" for name in ("made", "seen", "received")}
        ends = [*FIRST, *ENDS]
        watch = bed.start("D", [*ends, "watch", str(feeds.kept), "scan", str(outs["seen"])])
        others = [watch]
        if packets:
            lasts = str(setting.seconds + 5)
            others.append(bed.start("D", [*ends, "gaps", lasts, str(outs["received"])]))
        how = "make" if setting.is_paced else "unpaced"
        make = bed.start("S", [*ends, how, str(path), str(setting.seconds), str(outs["made"])])
        make.says("begun", START_S)
        begun_s, lost_s, windows = time.monotonic(), [], []
        for i in range(setting.n_losses):
            time.sleep(max(begun_s + QUIET_S + i * setting.spacing_s - time.monotonic(), 0.0))
            windows.append(window_of(bed.run("S", ["ss", "-tinH"])))
            bed.lose_one()
            lost_s.append(time.monotonic())
        if make.wait(setting.seconds + PATIENCE_S):
            raise RuntimeError(make.stderr.read_text(encoding="utf-8"))
        for other in others:
            other.wait(PATIENCE_S)
        lost = bed.carried()[0].lost
        if setting.n_losses and not setting.loss and lost != setting.n_losses:
            raise RuntimeError(f"{lost} packets were lost, of {setting.n_losses}")
        said = json.loads(make.stdout.read_text(encoding="utf-8").splitlines()[-1])
        said["lost_packets"] = lost
        return Watched(
            *(np.load(outs[name]) for name in ("made", "seen")),
            lost_s,
            windows,
            said,
            np.load(outs["received"]) if packets else None,
        )


def window_of(told: str) -> Window:
    """Return the connection that has sent most, of those that `ss` tells of.

    >>> window_of("ESTAB 0\\n cubic rtt:51.5/2 mss:1448 cwnd:80 bytes_sent:9000\\nESTAB\\n mss:536")
    Window(window_bytes=115840, rtt_s=0.0515, sent_bytes=9000)
    """

    def number(line: str, key: str) -> float:
        found = re.search(rf"\b{key}:([\d.]+)", line)
        return float(found.group(1)) if found else 0.0

    most = max(told.splitlines(), key=lambda line: number(line, "bytes_sent"), default="")
    window_bytes = int(number(most, "cwnd") * number(most, "mss"))
    return Window(window_bytes, number(most, "rtt") / 1000, int(number(most, "bytes_sent")))


def row_of(setting: Setting, seed: int) -> dict[str, Any]:
    """Return what the losses of a setting did."""
    found = watched(setting, seed)
    made_s, delay_s = found.made[:, 0], found.delay_s
    quiet = made_s < (found.lost_s[0] if found.lost_s else made_s[0] + QUIET_S)
    settled = quiet & (made_s > made_s[0] + QUIET_S / 2)
    losses = [
        {
            **after_loss(made_s, delay_s, lost_s, lost_s + setting.spacing_s)._asdict(),
            **window._asdict(),
        }
        for lost_s, window in zip(found.lost_s, found.before_losses, strict=True)
    ]
    tenths = np.array_split(delay_s, 10)
    return {
        "spacing_s": setting.spacing_s,
        "least_s": float(delay_s.min()),
        "quiet_s": float(delay_s[settled].max()),
        "p50_s": float(np.quantile(delay_s, 0.5)),
        "p99_s": float(np.quantile(delay_s, 0.99)),
        "worst_s": float(delay_s.max()),
        "reported_worst_s": found.said["delay"]["largest_s"],
        "tenths_s": [round(float(tenth.mean()), 4) for tenth in tenths],
        "lost_packets": found.said["lost_packets"],
        "losses": losses,
    }
