r"""Frames between the ends of a feed, over a tunnel to the service ``feed`` of an agent.

The sender begins with a line of JSON, `hello`; the receiver answers by one, `welcome`, or says why
not. Then the sender sends frames: a head of `HEAD` and as many bytes as that says.

======= ========================= ============================ ===========================
kind    number                    stamp                        bytes
======= ========================= ============================ ===========================
DATA    of the message            when it was made, ns         the message
MISSING of the first message      how many messages            their bytes, a number of 8
END     of all messages made      bytes of all of them         none
TIME    any, which is sent back   none                         none
NOTE    none                      none                         JSON, an object
======= ========================= ============================ ===========================

Messages come in the order of their numbers, each once on a connection; where some are missing, that
stands in their place. The receiver sends lines of JSON: ``written``, before which all is on its
disk, or known to be missing; ``report`` beside it now and then; ``time`` with ``at_ns``; ``ended``,
the report when all is there; ``why`` before it ends the connection, with ``again``: whether to come
again may help.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from datacollect.errors import ProblemError, TransferError
from datacollect.feeds.formats.feed_file import FEED_FORMAT, MOST_MESSAGE_BYTES, TCP, UDP, FeedName
from datacollect.files.documents import peer_json
from datacollect.files.kinds import Flag, Number, Text, Whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from datacollect.files.kinds import Kind

SERVICE = "feed"

HEAD = struct.Struct("!BQQI")
LENGTH = struct.Struct("!Q")
DATA, MISSING, END, TIME, NOTE = range(1, 6)

MOST_LINE_BYTES, MOST_NOTE_BYTES = 64 * 1024, 64 * 1024
NUMBER_STOP = 2**62


class FrameError(TransferError):
    """The other end does not keep to the format."""


@dataclass(frozen=True)
class Hello:
    """Greeting of a sender: which feed comes.

    Attributes
    ----------
    name, stream : str
        Of the feed; and of this one, of all that had its name: drawn when it began.
    transport : str
    rate_bytes_per_s : float
    message_bytes : int
    late_after_s : float
    boot, base_ns
        Of the sender's `SteadyClock`.
    """

    name: str
    stream: str
    transport: str
    rate_bytes_per_s: float
    message_bytes: int
    late_after_s: float
    boot: str
    base_ns: int

    def line(self) -> bytes:
        """Return it as it is sent."""
        return line_of({"format": FEED_FORMAT, **self.__dict__})


_HELLO: dict[str, Kind] = {
    "format": Text((FEED_FORMAT,)),
    "name": FeedName(),
    "stream": Text(),
    "transport": Text((TCP, UDP)),
    "rate_bytes_per_s": Number(positive=True),
    "message_bytes": Whole(minimum=1, stop=MOST_MESSAGE_BYTES + 1),
    "late_after_s": Number(positive=True),
    "boot": Text(),
    "base_ns": Whole(stop=NUMBER_STOP),
}


def hello_of(line: bytes) -> Hello:
    """Return what a sender begins with.

    Raises
    ------
    FrameError
    """
    tree = tree_of(line)
    values = _read(tree, _HELLO)
    del values["format"]
    if len(values["stream"]) > 64 or len(values["boot"]) > 64:
        raise FrameError("malformed beginning of a feed: a name is too long")
    return Hello(**values)


@dataclass(frozen=True)
class Welcome:
    """Answer of a receiver: where it is.

    Attributes
    ----------
    next : int
        The message that it wants next.
    written : int
        Before which all is on its disk.
    boot, base_ns
        Of its `SteadyClock`.
    at_ns : int
        What that says.
    """

    next: int
    written: int
    boot: str
    base_ns: int
    at_ns: int

    def line(self) -> bytes:
        """Return it as it is sent."""
        return line_of({"welcome": True, **self.__dict__})


_WELCOME: dict[str, Kind] = {
    "welcome": Flag(),
    **dict.fromkeys(("next", "written", "base_ns", "at_ns"), Whole(stop=NUMBER_STOP)),
    "boot": Text(),
}


def welcome_of(tree: dict[str, Any]) -> Welcome:
    """Return what a receiver begins with.

    Raises
    ------
    FrameError
    """
    values = _read(tree, _WELCOME)
    del values["welcome"]
    return Welcome(**values)


def _read(tree: dict[str, Any], kinds: dict[str, Kind]) -> dict[str, Any]:
    try:
        if tree.keys() != kinds.keys():
            raise ProblemError("other keys than are expected")
        return {name: kind.read(tree[name], name) for name, kind in kinds.items()}
    except ProblemError as error:
        raise FrameError(f"malformed beginning of a feed: {error}") from None


# Lines ------------------------------------------------------------------------------------------


def line_of(tree: dict[str, Any]) -> bytes:
    """Return a line of JSON."""
    return json.dumps(tree, separators=(",", ":")).encode() + b"\n"


def tree_of(line: bytes) -> dict[str, Any]:
    """Return what a line of JSON says: an object.

    Raises
    ------
    FrameError
    """
    tree = peer_json(line)
    if not isinstance(tree, dict):
        raise FrameError("malformed line of a feed: no JSON object")
    return tree


class Lines:
    r"""Cuts what comes into lines.

    >>> lines = Lines()
    >>> list(lines.take(b'{"a":1}\n{"b"')), list(lines.take(b':2}\n'))
    ([{'a': 1}], [{'b': 2}])
    """

    def __init__(self) -> None:
        self._rest = b""

    def take(self, data: bytes) -> Iterator[dict[str, Any]]:
        """Return what each line says that has come to its end."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > MOST_LINE_BYTES:
            raise FrameError("a line of a feed is too long")
        return map(tree_of, lines)


# Frames -----------------------------------------------------------------------------------------


def data_frame(number: int, made_ns: int, message: bytes) -> bytes:
    """Return a message as it is sent."""
    return HEAD.pack(DATA, number, made_ns, len(message)) + message


def missing_frame(first: int, n: int, n_bytes: int) -> bytes:
    """Say that messages do not come."""
    return HEAD.pack(MISSING, first, n, LENGTH.size) + LENGTH.pack(n_bytes)


def end_frame(made: int, made_bytes: int) -> bytes:
    """Say that no more were made."""
    return HEAD.pack(END, made, made_bytes, 0)


def time_frame(stamp_ns: int) -> bytes:
    """Ask what the receiver's clock says."""
    return HEAD.pack(TIME, stamp_ns, 0, 0)


def note_frame(tree: dict[str, Any]) -> bytes:
    """Tell something beside."""
    note = json.dumps(tree, separators=(",", ":")).encode()
    return HEAD.pack(NOTE, 0, 0, len(note)) + note


class Frames:
    """Cuts what comes into frames.

    Parameters
    ----------
    message_bytes : int
        No message has more.

    Examples
    --------
    >>> frames = Frames(message_bytes=4)
    >>> whole = data_frame(7, 1000, b"abcd")
    >>> [*frames.take(whole[:22])], [(n, bytes(b)) for _, n, _, b in frames.take(whole[22:])]
    ([], [(7, b'abcd')])
    """

    def __init__(self, message_bytes: int) -> None:
        self._most = {DATA: message_bytes, MISSING: LENGTH.size, NOTE: MOST_NOTE_BYTES}
        self._rest = b""

    def take(self, data: bytes) -> Iterator[tuple[int, int, int, memoryview]]:
        """Yield kind, number, stamp and bytes of each frame that has come to its end.

        Raises
        ------
        FrameError
        """
        data = self._rest + data if self._rest else data
        view, at, end = memoryview(data), 0, len(data)
        while end - at >= HEAD.size:
            kind, number, stamp, n_bytes = HEAD.unpack_from(data, at)
            if n_bytes > self._most.get(kind, 0) or not DATA <= kind <= NOTE:
                raise FrameError(f"malformed frame of a feed: kind {kind} with {n_bytes} bytes")
            if number >= NUMBER_STOP or stamp >= NUMBER_STOP:
                raise FrameError("malformed frame of a feed: a number is too large")
            if end - at - HEAD.size < n_bytes:
                break
            begin = at + HEAD.size
            at = begin + n_bytes
            yield kind, number, stamp, view[begin:at]
        self._rest = data[at:]


def whole_number(data: memoryview) -> int:
    """Return the number that the bytes of a frame `MISSING` are."""
    if len(data) != LENGTH.size:
        raise FrameError("malformed frame of a feed: it does not say how many bytes are missing")
    number: int = LENGTH.unpack(data)[0]
    return number
