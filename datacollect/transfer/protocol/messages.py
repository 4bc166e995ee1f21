"""Bodies of requests and answers: frozen values, and their JSON, strictly parsed.

Paths are texts, relative to the folder that an agent serves, their parts divided by ``/``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from datacollect.errors import ProblemError
from datacollect.files.kinds import shown
from datacollect.net.safe_text import safe_text
from datacollect.transfer.protocol.checked import (
    PATH_BYTES,
    is_path,
    is_time_ns,
    is_whole,
    json_body,
    parse_object,
    require_list,
    require_paths,
    require_words,
)
from datacollect.transfer.protocol.pages import (
    MOST_ENTRIES,
    FileEntry,
    FolderEntry,
    InventoryPage,
    entry_line,
    last_line,
    parse_page,
)
from datacollect.transfer.protocol.source import LeftOut

if TYPE_CHECKING:
    from collections.abc import Iterable

# What stands in the modules beside this one is had from here, too.
__all__ = [
    "AS_LISTED",
    "CHANGED",
    "CUT_SHORT",
    "DETAIL",
    "DIGEST_BYTES",
    "FACTS_FORMAT",
    "FEATURES",
    "HASHES",
    "MOST_ANSWER_BYTES",
    "MOST_BODY_BYTES",
    "MOST_CONFIRMED",
    "MOST_ENTRIES",
    "MOST_READ_BYTES",
    "MOST_SEGMENTS",
    "MOST_TOLD_NAMES",
    "PATH_BYTES",
    "REASONS",
    "SEALS",
    "SPOOLS",
    "STAYS",
    "TAIL_BYTES",
    "AgentFacts",
    "FileEntry",
    "FolderEntry",
    "InventoryPage",
    "LeftOut",
    "Read",
    "ReadAnswer",
    "SessionFacts",
    "WireConfirmation",
    "WireSegment",
    "confirm_body",
    "confirmation_body",
    "digests_body",
    "entry_line",
    "facts_body",
    "is_path",
    "json_body",
    "last_line",
    "parse_confirm",
    "parse_confirmation",
    "parse_digests",
    "parse_facts",
    "parse_object",
    "parse_page",
    "parse_read",
    "parse_sessions",
    "read_body",
    "sessions_body",
]

FACTS_FORMAT = "datacollect-agent-facts/1"

# What an agent can do besides what all of them can: see `AgentFacts`.
DETAIL, REASONS, HASHES, STAYS = "detail", "reasons", "hashes", "stays"
SEALS, SPOOLS = "seals", "spools"
FEATURES = (DETAIL, REASONS, HASHES, STAYS, SEALS)

# Of one request to read.
MOST_SEGMENTS = 4096
MOST_READ_BYTES = 16 * 2**20

# What a request's body may have, and a page or other answer in JSON.
MOST_BODY_BYTES = 4 * 2**20
MOST_ANSWER_BYTES = 16 * 2**20

# The most names, sessions, or files of a confirmation that a peer may list.
MOST_TOLD_NAMES = 10_000
MOST_CONFIRMED = 2**18

# After the bytes that were asked for: how they were read, and their BLAKE3.
AS_LISTED, CHANGED, CUT_SHORT = 0, 1, 2
DIGEST_BYTES = 32
TAIL_BYTES = 1 + DIGEST_BYTES


@dataclass(frozen=True, slots=True)
class WireSegment:
    """Bytes of one file: `n_bytes` from `offset_bytes` on, of the file as it was listed."""

    file: FileEntry
    offset_bytes: int
    n_bytes: int


@dataclass(frozen=True, slots=True)
class Read:
    """A request for segments, which arrive one after another.

    Examples
    --------
    >>> read = Read((WireSegment(FileEntry("a", 5, 0, 1), 0, 5),))
    >>> read.n_bytes, parse_read(read_body(read)) == read
    (5, True)
    """

    segments: tuple[WireSegment, ...]

    @property
    def n_bytes(self) -> int:
        """All bytes of it."""
        return sum(segment.n_bytes for segment in self.segments)


@dataclass(frozen=True, slots=True)
class ReadAnswer:
    """Response to a request to read.

    Attributes
    ----------
    n_bytes : int
        Bytes received into the buffer: all that were asked for, or none.
    status : int
        0: the files were as listed before and after; 1: one has changed; 2: one could not be read
        to its end and the remainder is zeros. Only with 0 do the bytes count.
    blake3 : bytes
        The source's hash of the bytes, 32 bytes; to be compared with the receiver's own.
    confirmation : WireConfirmation
        Which files have changed or gone, where the source knew before it sent anything.
    """

    n_bytes: int
    status: int
    blake3: bytes
    confirmation: WireConfirmation


@dataclass(frozen=True, slots=True)
class WireConfirmation:
    """Files, of those asked about, that have changed since they were listed, or cannot be read.

    Attributes
    ----------
    changed, gone : tuple of str
        Paths.
    unreadable : tuple of (str, str)
        Paths, and why, in the words of the agent's system. Old agents do not send them.
    """

    changed: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    unreadable: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class AgentFacts:
    """Facts of an agent that it tells everybody.

    Attributes
    ----------
    name : str
    version : str
    time_s : float
        Its clock, seconds since 1970: tickets are issued in it.
    serves : bool
        Whether it has files.
    relays_to : tuple of str
        Names of the hosts that it connects to.
    features : tuple of str
        What it can do besides what all agents can: ``"detail"`` (modes, folders and holes in the
        inventory), ``"reasons"`` (why files cannot be read), ``"hashes"`` (hashes without bytes),
        ``"seals"`` (sealed pieces of its files), ``"spools"`` (it keeps sealed pieces of others).
    """

    name: str
    version: str
    time_s: float
    serves: bool
    relays_to: tuple[str, ...]
    features: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """A session at an agent, as TCP sees it, both sides where it is relayed.

    Attributes
    ----------
    session : int
    kind : str
        ``"source"`` or ``"relay"``.
    nonce : str
        Of the ticket that opened it.
    up_bytes, down_bytes : int
        From the collector's side to the other, and back.
    collector_side, far_side : dict or None
        Facts of `datacollect.net.tcp_info`.
    """

    session: int
    kind: str
    nonce: str
    up_bytes: int
    down_bytes: int
    collector_side: dict[str, float] | None
    far_side: dict[str, float] | None


# Requests ------------------------------------------------------------------------------------


def read_body(read: Read) -> bytes:
    """Return the body of ``POST /v1/read``."""
    rows = [[*_row(s.file), s.offset_bytes, s.n_bytes] for s in read.segments]
    return json_body({"segments": rows})


def parse_read(body: bytes) -> Read:
    """Return the request to read that a body holds; raise `ProblemError` where it holds none."""
    rows = _rows(body, "segments", 6)
    read = Read(tuple(WireSegment(_entry(row), row[4], row[5]) for row in rows))
    if len(rows) > MOST_SEGMENTS:
        raise ProblemError(f"segments: at most {MOST_SEGMENTS} at a time, got {len(rows)}")
    for i, segment in enumerate(read.segments):
        if segment.offset_bytes + segment.n_bytes > segment.file.n_bytes:
            raise ProblemError(
                f"segments[{i}]: must end within the file's {segment.file.n_bytes} bytes, got "
                f"{segment.offset_bytes} + {segment.n_bytes}"
            )
    if read.n_bytes > MOST_READ_BYTES:
        raise ProblemError(f"segments: at most {MOST_READ_BYTES} bytes, got {read.n_bytes}")
    return read


def confirm_body(files: Iterable[FileEntry]) -> bytes:
    """Return the body of ``POST /v1/confirm``."""
    return json_body({"files": [_row(file) for file in files]})


def parse_confirm(body: bytes) -> tuple[FileEntry, ...]:
    """Return the files that a body asks about."""
    return tuple(_entry(row) for row in _rows(body, "files", 4))


# Answers -------------------------------------------------------------------------------------


def confirmation_body(confirmation: WireConfirmation) -> bytes:
    """Return the JSON of a confirmation."""
    return json_body(
        {
            "changed": confirmation.changed,
            "gone": confirmation.gone,
            "unreadable": confirmation.unreadable,
        }
    )


def parse_confirmation(body: bytes) -> WireConfirmation:
    """Return the confirmation that an answer holds."""
    tree = parse_object(body)
    rows = require_list({"unreadable": [], **tree}, "unreadable", MOST_CONFIRMED)
    for row in rows:
        if not (isinstance(row, list) and len(row) == 2 and _are_texts(row) and is_path(row[0])):
            raise ProblemError(f"unreadable must hold paths and reasons, got {shown(row)}")
    return WireConfirmation(
        require_paths(tree, "changed", MOST_CONFIRMED),
        require_paths(tree, "gone", MOST_CONFIRMED),
        tuple((path, safe_text(why)) for path, why in rows),
    )


def digests_body(digests: Iterable[tuple[int, bytes]]) -> bytes:
    """Return the answer to ``POST /v1/hash``: of each segment how it was read, and its BLAKE3.

    >>> len(digests_body([(AS_LISTED, bytes(32)), (CHANGED, bytes(32))]))
    66
    """
    return b"".join(bytes([status]) + digest for status, digest in digests)


def parse_digests(body: bytes, n: int) -> tuple[bytes | None, ...]:
    """Return the BLAKE3 of each of `n` segments, None for those that were not as listed."""
    if len(body) != n * TAIL_BYTES:
        raise ProblemError(f"{n} hashes have {n * TAIL_BYTES} bytes, got {len(body)}")
    rows = [body[i : i + TAIL_BYTES] for i in range(0, len(body), TAIL_BYTES)]
    return tuple(bytes(row[1:]) if row[0] == AS_LISTED else None for row in rows)


def facts_body(facts: AgentFacts) -> bytes:
    """Return the JSON of ``GET /v1/agent``."""
    return json_body(
        {
            "format": FACTS_FORMAT,
            "name": facts.name,
            "version": facts.version,
            "time_s": facts.time_s,
            "serves": facts.serves,
            "relays_to": facts.relays_to,
            "features": facts.features,
        }
    )


def parse_facts(body: bytes) -> AgentFacts:
    """Return what an agent says of itself."""
    tree = parse_object(body)
    if tree.get("format") != FACTS_FORMAT:
        got = shown(tree.get("format"))
        raise ProblemError(f'format must be "{FACTS_FORMAT}", got {got}; did an agent answer?')
    time_s, serves = tree.get("time_s"), tree.get("serves")
    if isinstance(time_s, bool) or not isinstance(time_s, int | float) or not 0 <= time_s < 1e12:
        raise ProblemError(f"time_s must be seconds since 1970, got {shown(time_s)}")
    if not isinstance(serves, bool):
        raise ProblemError(f"serves must be true or false, got {shown(serves)}")
    return AgentFacts(
        require_words(tree, "name"),
        require_words(tree, "version"),
        float(time_s),
        serves,
        _names(tree, "relays_to"),
        _names({"features": [], **tree}, "features"),
    )


def sessions_body(rows: Iterable[dict[str, Any]]) -> bytes:
    """Return the JSON of ``POST /v1/sessions``."""
    return json_body({"sessions": list(rows)})


def parse_sessions(body: bytes) -> list[SessionFacts]:
    """Return the sessions that an agent lists."""
    rows = require_list(parse_object(body), "sessions", MOST_TOLD_NAMES)
    return [_session_facts(row) for row in rows]


def _session_facts(row: Any) -> SessionFacts:
    keys = ("session", "up_bytes", "down_bytes")
    if not isinstance(row, dict) or not all(is_whole(row.get(key)) for key in keys):
        raise ProblemError(f"sessions must hold tables of numbers, got {shown(row)}")
    return SessionFacts(
        row["session"],
        require_words(row, "kind"),
        require_words(row, "nonce"),
        row["up_bytes"],
        row["down_bytes"],
        _tcp_facts(row.get("collector_side")),
        _tcp_facts(row.get("far_side")),
    )


def _tcp_facts(tree: Any) -> dict[str, float] | None:
    if tree is None:
        return None
    if not isinstance(tree, dict) or not all(map(_is_number, tree.values())):
        raise ProblemError(f"facts of TCP must be numbers by name, got {shown(tree)}")
    return {safe_text(key): float(value) for key, value in tree.items()}


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < 1e30 and math.isfinite(value)


def _rows(body: bytes, key: str, width: int) -> list[Any]:
    tree = parse_object(body)
    if tree.keys() != {key} or not isinstance(tree[key], list):
        raise ProblemError(f"the body must be an object with a list {key}, and nothing else")
    for i, row in enumerate(tree[key]):
        if not isinstance(row, list) or len(row) != width:
            raise ProblemError(f"{key}[{i}]: must be a list of {width}")
        _require_row(row, f"{key}[{i}]")
    rows: list[Any] = tree[key]
    return rows


def _require_row(row: list[Any], place: str) -> None:
    """Require a path and whole numbers; only times may lie before 1970."""
    path, *numbers = row
    if not isinstance(path, str) or not is_path(path):
        raise ProblemError(f"{place}: must begin with a path within the folder, got {shown(path)}")
    for position, number in enumerate(numbers):
        fits = is_time_ns if position == 1 else is_whole
        if not fits(number):
            raise ProblemError(f"{place}: must hold whole numbers, got {shown(number)}")


def _entry(row: list[Any]) -> FileEntry:
    return FileEntry(row[0], row[1], row[2], row[3])


def _row(file: FileEntry) -> list[Any]:
    return [file.path, file.n_bytes, file.mtime_ns, file.inode]


def _are_texts(items: list[Any]) -> bool:
    return all(isinstance(item, str) for item in items)


def _names(tree: dict[str, Any], key: str) -> tuple[str, ...]:
    """Return a list of names, fit for messages and logs."""
    names = require_list(tree, key, MOST_TOLD_NAMES)
    if not _are_texts(names):
        raise ProblemError(f"{key} must be a list of texts, got {shown(names)}")
    return tuple(map(safe_text, names))
