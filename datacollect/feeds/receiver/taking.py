"""A feed that comes over one connection: its core, and the disk that it is kept on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacollect.feeds.formats.frames import Welcome
from datacollect.feeds.receiver.core import Finish, Hole, ReceiverCore, Reply, Write
from datacollect.feeds.receiver.keeping import Keeping

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacollect.feeds.formats.clock import SteadyClock
    from datacollect.feeds.formats.frames import Hello
    from datacollect.feeds.receiver.kept_feed import KeptFeed


class Taking(Keeping):
    """Takes a feed; what its methods raise ends the connection, and this with it.

    All but `keep` are for one thread at a time; `keep` may go on in another one.

    Parameters
    ----------
    kept : KeptFeed
    hello : Hello
    clock : SteadyClock
    require_room : callable
        Gets how many bytes are about to be written; raises where there is no room.
    """

    def __init__(
        self,
        kept: KeptFeed,
        hello: Hello,
        clock: SteadyClock,
        require_room: Callable[[int], None],
    ) -> None:
        super().__init__(kept)
        self._clock, self._require_room = clock, require_room
        self._core = ReceiverCore(kept.report, hello, clock)
        # Whether the core has taken what was not written: nothing of what it knows is kept then.
        self._is_broken = False

    @property
    def has_news(self) -> bool:
        """Return whether something has come that is not on the disk yet."""
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
                self._finish_file(action.n_bytes, ended)
                replies += self._ended()
        return replies

    def snapshot(self) -> tuple[int, dict[str, object]]:
        """Return the message that is next, and the report up to there, for `keep`."""
        report = self._core.report
        return report.next, report.to_dict()

    def stop(self) -> None:
        """The connection has ended."""
