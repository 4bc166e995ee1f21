"""A feed that comes over one connection: its core, and the disk that it is kept on."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from datacollect.feeds.formats import frames
from datacollect.feeds.formats.frames import Welcome
from datacollect.feeds.receiver.core import Finish, Hole, ReceiverCore, Reply, Write

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacollect.feeds.formats.clock import SteadyClock
    from datacollect.feeds.formats.frames import Hello
    from datacollect.feeds.receiver.kept_feed import KeptFeed


class Taking:
    """Takes a feed; what its methods raise ends the connection, and this with it.

    All but `keep` are for one thread at a time; `keep` may go on in another one.

    Parameters
    ----------
    kept : KeptFeed
    hello : Hello
    clock : SteadyClock
    require_room : callable
        Gets how many bytes are about to be written; raises where there is no room.

    Attributes
    ----------
    is_whole : bool
        Whether the feed has ended, and its file has its name.
    """

    def __init__(
        self,
        kept: KeptFeed,
        hello: Hello,
        clock: SteadyClock,
        require_room: Callable[[int], None],
    ) -> None:
        self._kept, self._clock, self._require_room = kept, clock, require_room
        self.is_whole = kept.report.ended is not None
        self._written = kept.report.next
        self._core = ReceiverCore(kept.report, hello, clock)
        self._keeping = threading.Lock()
        # Whether the core has taken what was not written: nothing of what it knows is kept then.
        self._is_broken = False

    @property
    def has_news(self) -> bool:
        """Whether something has come that is not on the disk yet."""
        is_over = self.is_whole or self._is_broken
        return not is_over and self._core.report.next > self._written

    def welcome(self) -> bytes:
        """Return what the sender is told first."""
        if self.is_whole:
            return self._ended()
        number = self._core.report.next
        at_ns = self._clock.now_ns()
        return Welcome(number, self._written, self._clock.boot, self._clock.base_ns, at_ns).line()

    def take(self, data: bytes, ended: str) -> bytes:
        """Take what has come; return what is to be answered now.

        Parameters
        ----------
        data : bytes
        ended : str
            The time, as the report says it.

        Raises
        ------
        OSError, StoreError
            It cannot be kept.
        FrameError
            It is no feed.
        """
        try:
            return self._taken(data, ended)
        except BaseException:
            self._is_broken = True
            raise

    def _taken(self, data: bytes, ended: str) -> bytes:
        replies = b""
        for action in self._core.take(data, self._clock.now_ns()):
            if isinstance(action, Write):
                self._require_room(sum(map(len, action.blocks)))
                self._kept.write(action)
            elif isinstance(action, Hole):
                self._require_room(action.n_bytes)
                self._kept.list_hole(action)
                self._kept.extend(action.offset + action.n_bytes)
            elif isinstance(action, Reply):
                replies += action.line
            elif isinstance(action, Finish):
                with self._keeping:
                    self._kept.finish(action.n_bytes, ended)
                    self.is_whole = True
                replies += self._ended()
        return replies

    def snapshot(self) -> tuple[int, dict[str, object]]:
        """Return the message that is next, and the report up to there, for `keep`."""
        report = self._core.report
        return report.next, report.to_dict()

    def keep(self, number: int, tree: dict[str, object], *, telling: bool) -> bytes:
        """Have all of a snapshot on the disk; return what the sender is told of that.

        Raises
        ------
        OSError
        """
        with self._keeping:
            if self.is_whole:  # by now, and its report is the last
                return b""
            self._kept.keep(tree)
            self._written = number
        told = {"counts": tree["counts"], "delay": tree["delay"], "clock": tree["clock"]}
        return frames.line_of({"written": number, **({"report": told} if telling else {})})

    def stop(self) -> None:
        """The connection has ended."""

    def _ended(self) -> bytes:
        return frames.line_of({"ended": self._core.report.to_dict()})
