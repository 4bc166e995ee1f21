"""Handlers of requests that an agent's core does not know: who runs the agent brings them.

A handler answers in the thread of the session, over the same TLS; it may take its time for the
body, which it reads itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable, Mapping, Sequence

    from datacollect.transfer.rates.throttle import Throttle


class Exchange(Protocol):
    """A request and its answer; only `cut` may be called from other threads.

    Attributes
    ----------
    method, target : str
    headers : mapping
        By lowercase name; of one that is given twice the last.
    body_bytes : int
    """

    method: str
    target: str
    headers: Mapping[str, str]
    body_bytes: int

    @property
    def address(self) -> str:
        """Return whom it is counted for, see `origin_of`; empty where nobody knows."""

    @property
    def beside_collectors(self) -> bool:
        """Return whether somebody collects at this host, or through it, now."""

    @property
    def throttle(self) -> Throttle | None:
        """The limit of all that passes the agent, to which what a handler sends keeps, too."""

    def read(self) -> bytes:
        """Return what comes next of the body, without waiting for more than some; empty: its end.

        Raises
        ------
        OSError, TransferError
            The client has gone, or is too slow.
        """

    def answer(
        self, status: int, headers: Sequence[tuple[str, str]] = (), body: bytes = b""
    ) -> None:
        """Answer, once; where the body was not read to its end, the session ends."""

    def stream(
        self,
        status: int,
        headers: Sequence[tuple[str, str]],
        n_bytes: int,
        blocks: Iterable[bytes],
    ) -> None:
        """Answer, once, with a body that comes by and by; where it ends early the session does."""

    def hold_place(self, holds: bool) -> None:
        """Say whether the connection's place is held against others where places are short.

        It is from the beginning. Who waits for the body of somebody for whom nothing speaks should
        say that it is not, until it has come.
        """

    def cut(self, why: str) -> None:
        """End the connection; what waits for it fails."""

    def at_end(self, name: str, do: Callable[[], None]) -> None:
        """Have something done when the connection has ended, however; once for each name."""


Handler: TypeAlias = Callable[[Exchange], None]
# Serves a client of a tunnel: over a connection that it closes, and whose public key the client has
# shown. Called in a thread of its own.
Service: TypeAlias = "Callable[[socket.socket, str], None]"


def handler_for(target: str, handlers: Mapping[str, Handler]) -> Handler | None:
    """Return who answers: by the whole path, or where a name ends in a slash by its beginning.

    A slash alone is a whole path: what begins with it is everything.

    >>> handlers = {"/a/": print, "/b": repr, "/": str}
    >>> [handler_for(each, handlers) is not None for each in ("/a/x", "/b?c=1", "/bc", "/a", "/")]
    [True, True, False, False, True]
    """
    path = target.partition("?")[0]
    for name, handler in handlers.items():
        if path == name or (name != "/" and name.endswith("/") and path.startswith(name)):
            return handler
    return None
