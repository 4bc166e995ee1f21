"""``dc.tunnel``: a socket to a service beside an agent, directly or through relays."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from datacollect.errors import ProblemError, TransferError
from datacollect.files.kinds import Whole
from datacollect.files.refusals import refusal_of
from datacollect.files.with_units import in_units
from datacollect.net.hop_ends import hop_end
from datacollect.net.tcp_options import loopback_pair
from datacollect.transfer.duplex.duplex import CutError, Duplex
from datacollect.transfer.pull.config.file import Collection
from datacollect.transfer.tunnel.hops import Hops, hops_of
from datacollect.transfer.tunnel.opening import RouteChoice, TunnelOpener

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from os import PathLike
    from types import TracebackType
    from typing import Any

    from datacollect.files.quantities import WholeBytes
    from datacollect.transfer.tunnel.opening import OpenedTunnel

# A tunnel that is to be closed waits for its other side as long as something moves, and so long.
LINGER_S = 5.0
LOOK_S = 0.1
LEAST_BUFFER_BYTES, MOST_BUFFER_BYTES = 4096, 2**30


def tunnel(
    collection: Collection | str | PathLike[str] | Mapping[str, Any],
    to: str,
    *,
    via: Sequence[str] | None = None,
    direct: bool = False,
    strict: bool = False,
    buffer_bytes: WholeBytes | None = None,
    tell: Callable[[str], None] | None = None,
) -> Tunnel:
    """Open a TCP connection to a service beside an agent, directly or through relays.

    What is sent is encrypted from here to the agent: relays see ciphertext. The agent connects to
    the services that its file names in ``[tunnel]``, for the keys that it names there.

    Parameters
    ----------
    collection : Collection, path-like or mapping
        A collection file, or what it says: agents, and what is known of links.
    to : str
        ``AGENT:SERVICE``, such as ``"S1:ssh"``.
    via : sequence of str, optional
        These relays in this order, and no others; without any: directly. By default the route with
        the largest of path minima, by the links of the collection; the direct one unless another is
        more than 5 % better; the next one where a host is gone.
    direct : bool, optional
        Only the direct route.
    strict : bool, optional
        Fail where no relay of the best route is left, instead of falling back to the direct one.
    buffer_bytes : int or str, optional
        Buffers of this host's own connection; by default they grow by themselves.
    tell : callable, optional
        Takes lines that somebody would want to know at once, such as that it falls back.

    Returns
    -------
    Tunnel

    Raises
    ------
    ProblemError
        The collection, its key or the names are not what they should be, or the agent's file does
        not fit them.
    InfeasibleError
        No route leads there.
    TransferError
        The agent, or its service, is not ready.

    Examples
    --------
    >>> import datacollect as dc
    >>> dc.tunnel("nowhere.toml", "S1:ssh")
    Traceback (most recent call last):
    datacollect.errors.ProblemError: nowhere.toml: no such file; check the path
    """
    opener = opener_of(
        collection,
        to,
        via=via,
        direct=direct,
        strict=strict,
        buffer_bytes=buffer_bytes,
        tell=tell,
    )
    return Tunnel(opener.open())


def opener_of(
    collection: Collection | str | PathLike[str] | Mapping[str, Any],
    to: str,
    *,
    via: Sequence[str] | None = None,
    direct: bool = False,
    strict: bool = False,
    buffer_bytes: WholeBytes | None = None,
    tell: Callable[[str], None] | None = None,
) -> TunnelOpener:
    """Return what opens tunnels as `tunnel` does, one for each call."""
    if via is not None and direct:
        raise ProblemError("via and direct cannot be combined; give one of them")
    if strict and (direct or via is not None):
        raise ProblemError(
            "strict cannot be combined with via or direct, which name the route themselves; leave "
            "strict out"
        )
    if isinstance(via, str):
        raise ProblemError(f"via must be a list of relays, got {via!r}; put it in []")
    least, most = LEAST_BUFFER_BYTES, MOST_BUFFER_BYTES
    n_bytes = in_units(buffer_bytes, Whole("bytes"), "buffer_bytes")
    if n_bytes is not None and not least <= n_bytes <= most:
        raise ProblemError(
            f"buffer_bytes must be a number from {least} to {most}, got {buffer_bytes}; "
            "leave it out, and buffers grow as needed"
        )
    if not isinstance(collection, Collection):
        if isinstance(collection, (str, Path)) or hasattr(collection, "__fspath__"):
            collection = Collection.from_file(collection)
        else:
            collection = Collection.from_dict(collection)
    names = None if via is None else tuple(via)
    choice = RouteChoice(() if direct else names, strict)
    return TunnelOpener(collection, to, choice, buffer_bytes=n_bytes, tell=tell or _unheard)


class Tunnel:
    r"""A connection to a service; made by `tunnel`.

    Leaving its ``with`` block sends what is under way, and waits for the other side's end; an error
    inside cuts it off.

    Attributes
    ----------
    socket : socket.socket
        Connected, of TCP on loopback: it may be shut down in one direction, and is reset where the
        tunnel is cut off. For one program, as `asyncio`, `ssl` and `selectors` take it.
    route : tuple of str
        This host's name, relays, the agent.

    Examples
    --------
    >>> import datacollect as dc
    >>> with dc.tunnel("collection.toml", "S1:rsync", via=["K1"]) as tunnel:  # doctest: +SKIP
    ...     tunnel.socket.sendall(b"@RSYNCD: 31.0\n")
    ...     print(tunnel.route, tunnel.hops)
    """

    def __init__(self, opened: OpenedTunnel) -> None:
        self._opened, self.route = opened.opened, opened.route
        self._names = (*self.route, f"{self.route[-1]}:{opened.service}")
        self._asked_bytes = opened.asked_bytes
        with ExitStack() as held:
            held.callback(self._opened.wire.close)
            try:
                self._here = hop_end(self._opened.wire, self._asked_bytes)
                self.socket, inner = loopback_pair()
                held.callback(inner.close)
                held.callback(self.socket.close)
                self._duplex = Duplex(self._opened.stream, self._opened.wire, inner)
                self._thread = threading.Thread(target=self._run, name="tunnel", daemon=True)
                self._thread.start()
            except (OSError, RuntimeError, MemoryError) as error:  # no more threads to be had
                raise TransferError(
                    f"the tunnel has ended at once: this host failed: {refusal_of(error)}"
                ) from None
            held.pop_all()

    @property
    def hops(self) -> Hops:
        """The TCP connections of the route, each with what its two hosts tell.

        This host's own end as it is now, the others as they were when the tunnel was opened.

        Returns
        -------
        Hops
        """
        with suppress(OSError):  # it has ended
            self._here = hop_end(self._opened.wire, self._asked_bytes)
        return hops_of(self._names, self._here, self._opened.told)

    @property
    def why(self) -> str | None:
        """Return why it was cut off; None: it was not.

        Returns
        -------
        str or None
        """
        return self._duplex.why

    def __repr__(self) -> str:
        return f"<Tunnel: {' → '.join(self._names)}>"

    def __enter__(self) -> Tunnel:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """Close it; after an error at once."""
        if error is None:
            self.close()
        else:
            self.cut("an error ended it")

    def close(self) -> None:
        """Send what is under way, and wait for the other side's end as long as something moves.

        What still comes is thrown away.

        Examples
        --------
        >>> import datacollect as dc
        >>> opened = dc.tunnel("collection.toml", "S1:rsync")  # doctest: +SKIP
        >>> opened.close()  # doctest: +SKIP
        """
        moved, until_s = (-1, -1), 0.0
        with suppress(OSError):  # somebody has closed it, or has it by another name
            self.socket.shutdown(socket.SHUT_WR)
        while self._thread.is_alive():
            self._throw_away()
            now_s = time.monotonic()
            if self._duplex.moved_bytes != moved:
                moved, until_s = self._duplex.moved_bytes, now_s + LINGER_S
            if now_s >= until_s:
                self.cut("the other side does not finish")
            self._thread.join(LOOK_S)
        self.socket.close()

    def cut(self, why: str) -> None:
        """Cut it off: both sides see a reset.

        Parameters
        ----------
        why : str
            For `why`.

        Examples
        --------
        >>> import datacollect as dc
        >>> opened = dc.tunnel("collection.toml", "S1:rsync")  # doctest: +SKIP
        >>> opened.cut("the user has asked for it")  # doctest: +SKIP
        """
        self._duplex.cut(why)
        self._thread.join()
        self.socket.close()

    def wait(self) -> None:
        """Wait until both directions have ended.

        Raises
        ------
        TransferError
            It was cut off instead.

        Examples
        --------
        >>> import datacollect as dc
        >>> opened = dc.tunnel("collection.toml", "S1:rsync")  # doctest: +SKIP
        >>> opened.wait()  # doctest: +SKIP
        """
        self._thread.join()
        if self.why is not None:
            names = " → ".join(self._names)
            raise TransferError(f"{names}: {self.why}")

    def _run(self) -> None:
        with suppress(CutError):  # `why` says it
            self._duplex.run()

    def _throw_away(self) -> None:
        with suppress(OSError, ValueError):
            self.socket.settimeout(0)
            while self.socket.recv(65536):
                pass


def _unheard(_: object) -> None:
    """Ignore a report that nobody wants."""
