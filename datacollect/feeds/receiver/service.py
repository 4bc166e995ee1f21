"""Takes the feeds that come to an agent: a thread each that takes, and one that syncs."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from datacollect.errors import RefusedError, StoreError
from datacollect.feeds.formats import frames
from datacollect.feeds.formats.clock import SteadyClock
from datacollect.feeds.formats.feed_file import UDP
from datacollect.feeds.formats.frames import MOST_LINE_BYTES, FrameError, Hello, hello_of
from datacollect.feeds.receiver.disk import Folder
from datacollect.feeds.receiver.kept_feed import kept_feed
from datacollect.feeds.receiver.table import feed_config_of
from datacollect.feeds.receiver.taking import Taking
from datacollect.feeds.receiver.udp_taking import UdpLimits, UdpTaking, require_udp
from datacollect.files.refusals import refusal_of
from datacollect.files.units import counted, format_bytes, format_rate
from datacollect.net.safe_text import safe_text
from datacollect.transfer.agent.handlers import AgentHandlers, Started

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacollect.feeds.receiver.kept_feed import KeptFeed
    from datacollect.transfer.agent.config.file import AgentConfig

# A sender may take so long for its first line, and for taking in what it is told.
HELLO_S, STALL_S = 20.0, 60
BLOCK_BYTES = 256 * 1024
# So often what has come is synced, and the sender told of it; so often it gets the counts, too.
KEEP_EVERY_S, TELL_EVERY_S = 0.25, 1.0
# How long a connection that has given way to a newer one of its feed may take to end.
GIVES_WAY_S = 20.0
# Status of a refusal that does not last.
AGAIN = 503


class FeedService:
    """Takes feeds for the users of an agent.

    Parameters
    ----------
    config : AgentConfig
        With a table ``feed``.
    note : callable
        Takes a line of the log.
    """

    def __init__(self, config: AgentConfig, note: Callable[[str], None]) -> None:
        feed = feed_config_of(config)
        assert feed is not None
        self.feed, self._note = feed, note
        rates = [feed.most_rate_bytes_per_s, _rate_of(config)]
        self._most_rate_bytes_per_s = min((rate for rate in rates if rate), default=None)
        self.udp_limits = UdpLimits(
            (config.listen[0], feed.udp_port), feed.most_rate_bytes_per_s, feed.most_bytes
        )
        self.clock = SteadyClock()
        self._lock = threading.Lock()
        self._sessions: dict[str, FeedSession] = {}
        self._room_bytes = 0
        self._looked_s = -1.0

    def serve(self, connection: socket.socket, user: str) -> None:
        """Take a feed over a connection, which is closed at the end."""
        with connection:
            session = FeedSession(self, connection, user)
            try:
                session.run()
            except RefusedError as error:
                session.say_why(str(error), again=error.status == AGAIN)
                self.log("feed refused", user=user, feed=session.name, why=str(error))
            except FrameError as error:
                session.say_why(str(error), again=False)
                self.log("feed broken off", user=user, feed=session.name, why=str(error))
            except (StoreError, OSError) as error:
                why = str(error) if isinstance(error, StoreError) else refusal_of(error).reason
                session.say_why(f"this host fails: {why}", again=True)
                self.log("feed broken off", user=user, feed=session.name, why=why)

    def close(self) -> None:
        """Break off what is under way."""
        with self._lock:
            sessions = [*self._sessions.values()]
        for each in sessions:
            each.cut()

    def require_allowed(self, hello: Hello) -> None:
        """Raise `RefusedError` where a feed must not come."""
        if hello.transport == UDP:
            require_udp(hello, self.udp_limits)
        most = self._most_rate_bytes_per_s
        if most is not None and hello.rate_bytes_per_s > most:
            raise RefusedError(
                f"the feed's rate is {format_rate(hello.rate_bytes_per_s)}, but this agent takes "
                f"at most {format_rate(most)}; send less, or have its operator raise most_rate of "
                "[feed] and limits.rate",
                403,
            )
        with self._lock:
            # Who has room for less would end the connection at once, again and again.
            self._require_room(hello.message_bytes)

    def require_room(self, n_bytes: int) -> None:
        """Raise `StoreError` where the folder must not hold so much more.

        What others have written or removed counts from the next second on.
        """
        with self._lock:
            self._require_room(n_bytes)
            self._room_bytes -= n_bytes

    def _require_room(self, n_bytes: int) -> None:
        now_s = time.monotonic()
        if now_s - self._looked_s > 1:
            self._looked_s = now_s
            self._room_bytes = self.feed.most_bytes - Folder(self.feed.folder).used_bytes()
        if self._room_bytes < n_bytes or self._room_bytes <= 0:
            raise StoreError(
                f"the {format_bytes(self.feed.most_bytes)} that `bytes` of [feed] allows are "
                "used up; have the agent's operator move feeds away, or raise `bytes`"
            )

    def enter(self, session: FeedSession, hello: Hello) -> None:
        """Let a session have the name of its feed; an older one of the same feed gives way."""
        until_s = time.monotonic() + GIVES_WAY_S
        while True:
            with self._lock:
                other = self._sessions.get(hello.name)
                if other is None:
                    self._require_place()
                    self._sessions[hello.name] = session
                    return
            if not other.is_of(hello, session.user):
                raise RefusedError(
                    f"a feed {hello.name} is arriving from another sender now; choose another name",
                    409,
                )
            # Its sender has noticed before this host that it has ended.
            other.cut()
            if not other.has_left.wait(max(until_s - time.monotonic(), 0)):
                raise StoreError(f"the previous connection of the feed {hello.name} does not end")

    def _require_place(self) -> None:
        n, most = len(self._sessions), self.feed.most_feeds
        if n >= most:
            raise RefusedError(
                f"{counted(n, 'feed')} arrive here already, and `feeds` of [feed] allows {most}; "
                "end one, or have the agent's operator raise `feeds`",
                AGAIN,
            )

    def leave(self, session: FeedSession) -> None:
        """Take the name of its feed from a session that had it."""
        with self._lock:
            if self._sessions.get(session.name) is session:
                del self._sessions[session.name]
        session.has_left.set()

    def log(self, what: str, **facts: Any) -> None:
        """Write a record into the log."""
        shown = {k: safe_text(v) if isinstance(v, str) else v for k, v in facts.items()}
        self._note(json.dumps({"time_s": round(time.time(), 3), "what": what, **shown}))


class FeedSession:
    """A feed that comes over one connection.

    Attributes
    ----------
    user, name : str
        Who sends, and which feed; "": not known yet.
    has_left : threading.Event
        Set when it has nothing to do with the feed any more.
    """

    def __init__(self, service: FeedService, connection: socket.socket, user: str) -> None:
        self._service, self._connection, self.user = service, connection, user
        self.name = ""
        self._hello: Hello | None = None
        self.has_left = threading.Event()
        self._sending = threading.Lock()
        # Of what is taken; and what was taken since it was synced.
        self._lock, self._news = threading.Lock(), threading.Event()
        self._is_over = False
        self._failure: Exception | None = None

    def is_of(self, hello: Hello, user: str) -> bool:
        """Return whether it takes this very feed."""
        mine = self._hello
        return mine is not None and (mine.stream, self.user) == (hello.stream, user)

    def cut(self) -> None:
        """End it, from any thread: what waits in it goes on."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def say_why(self, why: str, *, again: bool) -> None:
        """Tell the sender why it ends."""
        with suppress(OSError):
            self._send(frames.line_of({"why": why, "again": again}))
            self._connection.shutdown(socket.SHUT_WR)
            self._linger()

    def run(self) -> None:
        """Take the feed until its end, or that of the connection.

        Raises
        ------
        RefusedError, FrameError
            It is not taken.
        StoreError, OSError
            This host fails.
        """
        line, rest = self._first_line()
        if not line:
            return
        hello = hello_of(line)
        self._service.require_allowed(hello)
        # Before it has the name: who asks whose that is must find out.
        self.name, self._hello = hello.name, hello
        self._service.enter(self, hello)
        folder = Folder(self._service.feed.folder)
        try:
            kept = kept_feed(folder, hello, self.user, _now())
            taking = self._taking(kept, hello)
            self._service.log(
                "feed comes", user=self.user, feed=self.name, at_message=kept.report.next
            )
            self._send(taking.welcome())
            self._take(taking, rest)
            self._service.log(
                "feed ended" if taking.is_whole else "feed connection ended",
                user=self.user,
                feed=self.name,
                **kept.report.counts.to_dict(),
            )
        finally:
            folder.close()
            self._service.leave(self)

    def _taking(self, kept: KeptFeed, hello: Hello) -> Taking | UdpTaking:
        service = self._service
        if hello.transport == UDP:
            limits, room = service.udp_limits, service.require_room
            return UdpTaking(kept, hello, service.clock, limits, room, self._send)
        return Taking(kept, hello, service.clock, service.require_room)

    def _first_line(self) -> tuple[bytes, bytes]:
        """Return the first line that comes, and what follows it already; b"": nothing comes."""
        # Its two threads read and write: a time limit of both would be one of the other, too.
        limit = struct.pack("ll", STALL_S, 0)
        self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        until_s = time.monotonic() + HELLO_S
        data = b""
        while b"\n" not in data:
            left_s = until_s - time.monotonic()
            if left_s <= 0:  # a byte now and then keeps no place
                return b"", b""
            self._connection.settimeout(left_s)
            try:
                more = self._connection.recv(MOST_LINE_BYTES)
            except OSError:
                return b"", b""
            data += more
            if not more or len(data) > MOST_LINE_BYTES:
                return b"", b""
        line, _, rest = data.partition(b"\n")
        return line, rest

    def _take(self, taking: Taking | UdpTaking, data: bytes) -> None:
        """Take what comes; another thread syncs it meanwhile."""
        keeper = threading.Thread(target=self._keep, args=(taking,), name="feed", daemon=True)
        keeper.start()
        try:
            self._connection.settimeout(None)
            while self._failure is None:
                if data:
                    with self._lock:
                        replies = taking.take(data, _now())
                    self._news.set()
                    if replies:
                        self._send(replies)
                if taking.is_whole:
                    self._linger()
                    return
                try:
                    data = self._connection.recv(BLOCK_BYTES)
                except OSError:  # it was cut off: the sender comes again
                    break
                if not data:
                    break
        finally:
            self._is_over = True
            self._news.set()
            keeper.join()
            taking.stop()
        if self._failure is not None:
            raise self._failure
        # What has come does not have to come again.
        if taking.has_news:
            taking.keep(*taking.snapshot(), telling=False)

    def _keep(self, taking: Taking | UdpTaking) -> None:
        """Sync what has come, until the connection ends; what fails ends it."""
        try:
            self._keep_on(taking)
        except (OSError, StoreError) as error:
            self._failure = error
        except Exception as error:  # noqa: BLE001 - nothing that was not synced is told
            self._failure = StoreError(f"{type(error).__name__}: {error}")
        if self._failure is not None:
            self.cut_reading()

    def _keep_on(self, taking: Taking | UdpTaking) -> None:
        """Sync what has come, again and again, and tell the sender."""
        told_s = time.monotonic()
        while not self._is_over:
            self._news.wait(TELL_EVERY_S)  # of packets it is not told
            self._news.clear()
            with self._lock:
                if self._is_over or not taking.has_news:
                    continue
                snapshot = taking.snapshot()
            now_s = time.monotonic()
            telling = now_s - told_s >= TELL_EVERY_S
            line = taking.keep(*snapshot, telling=telling)
            told_s = now_s if telling else told_s
            with suppress(OSError):  # who reads finds out
                self._send(line)
            time.sleep(KEEP_EVERY_S)

    def cut_reading(self) -> None:
        """Have who waits for the sender go on; the sender can still be told why."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RD)

    def _send(self, data: bytes) -> None:
        with self._sending:
            try:
                self._connection.sendall(data)
            except OSError:
                self.cut()  # half a line may have left
                raise

    def _linger(self) -> None:
        """Wait until the sender has heard what it was told last, and ends."""
        with suppress(OSError):
            self._connection.settimeout(HELLO_S)
            while self._connection.recv(BLOCK_BYTES):
                pass


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _rate_of(config: AgentConfig) -> float | None:
    """Return the rate that the agent keeps to at any hour, where it has one."""
    rate = config.limits.rate
    return float(rate) if isinstance(rate, int | float) else None


def _start(config: AgentConfig, note: Callable[[str], None]) -> Started:
    service = FeedService(config, note)
    return Started({}, close=service.close, service=service.serve)


FEED_HANDLERS = AgentHandlers("feed", _start)
