"""A feed by UDP that comes beside one connection: its core, threads, and the disk it is kept on."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from datacollect.errors import DatacollectError, RefusedError, StoreError
from datacollect.feeds.formats import frames
from datacollect.feeds.formats.frames import FrameError, Frames, Welcome
from datacollect.feeds.formats.packets import raw_nonce
from datacollect.feeds.formats.udp_settings import require_datagram
from datacollect.feeds.receiver.core import Finish, Hole, Reply, Write
from datacollect.feeds.receiver.keeping import Keeping
from datacollect.feeds.receiver.kept_feed import HOLES_BYTES, kept_bytes
from datacollect.feeds.receiver.udp_core import UdpReceiverCore, udp_values
from datacollect.feeds.receiver.udp_packets import PacketThreads
from datacollect.feeds.udp.filling import filling
from datacollect.feeds.udp.receiving import UdpTerms
from datacollect.feeds.udp.reports import EACH_S
from datacollect.files.documents import peer_json
from datacollect.net.tickets import new_nonce

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from datacollect.feeds.formats.clock import SteadyClock
    from datacollect.feeds.formats.frames import Hello
    from datacollect.feeds.receiver.kept_feed import KeptFeed
    from datacollect.feeds.udp.heads import Heads
    from datacollect.feeds.udp.receiving import Place


@dataclass(frozen=True)
class UdpLimits:
    """Limits of an agent's file on feeds by UDP.

    Attributes
    ----------
    address : (str, int)
        Where packets come to; port 0: any free one.
    most_rate_bytes_per_s : float or None
        None: it takes none.
    most_bytes : int
        Of a feed that is kept: no message lies beyond.
    """

    address: tuple[str, int]
    most_rate_bytes_per_s: float | None
    most_bytes: int = frames.NUMBER_STOP


def require_udp(hello: Hello, limits: UdpLimits) -> None:
    """Raise `RefusedError` or `ProblemError` unless such feeds are taken by UDP."""
    if limits.most_rate_bytes_per_s is None:
        raise RefusedError(
            "this agent takes no feeds by udp: its file has no most_rate in [feed]; write one, and "
            'start the agent again, or send by transport = "tcp"',
            403,
        )
    require_datagram(hello.message_bytes)


class UdpTaking(Keeping):
    """Takes a feed; what its methods raise ends the connection, and this with it.

    `take` is for one thread; `keep` for another.

    Parameters
    ----------
    kept : KeptFeed
    hello : Hello
    clock : SteadyClock
    limits : UdpLimits
    require_room : callable
        Gets how many bytes are about to be written; raises where there is no room.
    tell : callable
        Sends a line; from any thread. What it raises ends the reports.
    """

    def __init__(
        self,
        kept: KeptFeed,
        hello: Hello,
        clock: SteadyClock,
        limits: UdpLimits,
        require_room: Callable[[int], None],
        tell: Callable[[bytes], None],
    ) -> None:
        super().__init__(kept)
        self._hello, self._clock, self._limits = hello, clock, limits
        self._require_room, self._tell = require_room, tell
        self._frames = Frames(hello.message_bytes)
        self._lock = threading.Lock()
        self._core: UdpReceiverCore | None = None
        self._threads: PacketThreads | None = None
        self._reporter: threading.Thread | None = None
        self._is_over = threading.Event()
        self._fill, self._keeps = "", True
        # How far the file reaches.
        self._end_bytes = 0

    @property
    def has_news(self) -> bool:
        """Return whether something is decided that is not on the disk yet."""
        core = self._core
        return not self.is_whole and core is not None and core.receiving.decided > self._written

    def welcome(self) -> bytes:
        """Return what the sender is told first."""
        if self.is_whole:
            return self._ended()
        at_ns = self._clock.now_ns()
        number = self._written
        return Welcome(number, number, self._clock.boot, self._clock.base_ns, at_ns).line()

    def take(self, data: bytes, ended: str) -> bytes:
        """Take what has come over the connection; return what is to be answered now.

        Raises
        ------
        OSError, StoreError
            It cannot be kept.
        FrameError
            It is no feed.
        RefusedError
            The port for packets cannot be opened.
        """
        core = self._core
        if core is None:
            return self._begin(data)
        replies = b""
        with self._lock:
            actions = core.take(data, self._clock.now_ns())
        for action in actions:
            if isinstance(action, Reply):
                replies += action.line
            elif isinstance(action, Finish):
                self._finish(core, action.n_bytes, ended)
                replies += self._ended()
        return replies

    def snapshot(self) -> tuple[int, dict[str, object]]:
        """Return the message up to which all is decided, and the report up to there; for `keep`.

        All that it says was written is so then.
        """
        core = self._core
        if core is None:
            return self._written, self._kept.report.to_dict()
        with self._lock:
            holes = core.holes()
            core.decide()
            number, tree = core.report.next, core.report.to_dict()
        self._write_out(holes)
        tree[HOLES_BYTES] = self._kept.report.more.get(HOLES_BYTES, 0)
        return number, tree

    def stop(self) -> None:
        """Receive no more; what has not come by now is missing."""
        self._stop()
        if self._core is not None and not self.is_whole:
            self._core.close()

    # Steps -------------------------------------------------------------------------------------

    def _begin(self, data: bytes) -> bytes:
        """Open the port, once the sender has said how the feed comes."""
        for kind, _, _, content in self._frames.take(data):
            tree = peer_json(bytes(content)) if kind == frames.NOTE else None
            if self._core is not None or not isinstance(tree, dict):
                raise FrameError("a feed by udp must begin with a note about the feed")
            self._open(udp_values(tree.get("udp")))
        if self._threads is None:
            return b""
        told = {
            "nonce": self._nonce,
            "port": self._threads.port,
            "granted_bytes": self._threads.granted_bytes,
        }
        return frames.line_of({"udp": told})

    def _open(self, values: dict[str, Any]) -> None:
        hello = self._hello
        self._nonce, self._fill, self._keeps = new_nonce(), values["fill"], values["keep"]
        most_bytes = self._limits.most_bytes if self._keeps else frames.NUMBER_STOP
        feed = UdpTerms(
            raw_nonce(self._nonce),
            hello.message_bytes,
            hello.rate_bytes_per_s / hello.message_bytes,
            # Twice the room: what fits no more is said to be so, a leap to nowhere is none.
            2 * most_bytes // hello.message_bytes + values["reorder"],
            values["reorder"],
        )
        report = self._kept.report
        self._end_bytes = kept_bytes(report)
        report.more["udp"] = {key: value for key, value in values.items() if value is not None}
        now_s = self._clock.now_ns() / 1e9
        self._core = UdpReceiverCore(report, hello, self._clock, feed, now_s)
        self._threads = PacketThreads(
            self._limits.address,
            hello.message_bytes,
            hello.rate_bytes_per_s,
            self._take_packets,
            self._write,
        )
        report.more["receive_buffer_bytes"] = self._threads.granted_bytes
        self._reporter = threading.Thread(target=self._report_all, name="feed report", daemon=True)
        self._reporter.start()

    def _take_packets(self, heads: Heads, last_bytes: int, n_host: int) -> list[Place]:
        assert self._core is not None
        with self._lock:
            return self._core.packets(self._clock.now_ns(), heads, last_bytes, n_host)

    def _write(self, write: Write) -> None:
        if not self._keeps:
            return
        try:
            self._reach(write.offset + sum(map(len, write.blocks)))
        except StoreError:
            # As much as there is room for: of what came together some messages may fit.
            (block,), size = write.blocks, self._hello.message_bytes
            half = len(block) // size // 2 * size
            if not half:
                raise
            self._write(Write(write.offset, [block[:half]]))
            self._write(Write(write.offset + half, [block[half:]]))
            return
        self._kept.write(write)

    def _reach(self, end_bytes: int) -> None:
        """Have room for a file that ends there: what is missing before takes it, too."""
        self._require_room(max(end_bytes - self._end_bytes, 0))
        self._end_bytes = max(end_bytes, self._end_bytes)

    def _write_out(self, holes: Sequence[Hole]) -> None:
        """Return when all that was read is written, and holes are filled and listed.

        Raises
        ------
        OSError, StoreError
        """
        assert self._threads is not None
        self._threads.settle()
        if self._threads.failure is not None:
            raise self._threads.failure
        for hole in holes:
            for offset, data in filling(self._fill, hole.offset, hole.n_bytes):
                self._write(Write(offset, [memoryview(data)]))
            self._kept.list_hole(hole)

    def _finish(self, core: UdpReceiverCore, n_bytes: int, ended: str) -> None:
        assert self._threads is not None
        self._stop()
        holes = core.holes()
        core.decide()
        self._write_out(holes)
        n_bytes = n_bytes if self._keeps else 0
        self._reach(n_bytes)
        self._finish_file(n_bytes, ended)

    def _stop(self) -> None:
        self._is_over.set()
        if self._threads is not None:
            self._threads.close()
        if self._reporter is not None and self._reporter is not threading.current_thread():
            self._reporter.join()

    def _report_all(self) -> None:
        try:
            self._report_on()
        except Exception as error:  # noqa: BLE001 - a thread that ends unheard is a feed that hangs
            why = f"this host fails: {type(error).__name__}: {error}"
            with suppress(OSError, DatacollectError):
                self._tell(frames.line_of({"why": why, "again": True}))

    def _report_on(self) -> None:
        assert self._core is not None
        assert self._threads is not None
        while not self._is_over.wait(EACH_S):
            failure = self._threads.failure
            with self._lock:
                tree: dict[str, Any] = {"packets": self._core.receiving.report().to_dict()}
                if self._core.receiving.n_received == 0:
                    tree["greeted"] = self._core.receiving.greetings
                self._core.count()
            if failure is not None:
                tree["why"], tree["again"] = f"this host fails: {failure}", True
            try:
                self._tell(frames.line_of(tree))
            except (OSError, DatacollectError):  # who reads the connection sees that it has ended
                return
            if failure is not None:
                return
