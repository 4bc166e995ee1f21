"""Bodies of requests and answers: frozen values, and their JSON, strictly parsed.

Paths are texts, relative to the folder that an agent serves, their parts divided by ``/``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from datacollect.errors import ProblemError
from datacollect.kinds import shown

if TYPE_CHECKING:
    from collections.abc import Iterable

FACTS_FORMAT = "datacollect-agent-facts/1"

# Of one request to read.
MOST_SEGMENTS = 4096
MOST_READ_BYTES = 16 * 2**20

# Of one page of the inventory.
MOST_ENTRIES = 10_000

# What a request's body may have, and a page or other answer in JSON.
MOST_BODY_BYTES = 4 * 2**20
MOST_ANSWER_BYTES = 16 * 2**20

# After the bytes that were asked for: how they were read, and their BLAKE3.
AS_LISTED, CHANGED, CUT_SHORT = 0, 1, 2
TAIL_BYTES = 33

PATH_BYTES = 4096
NUMBER_STOP = 2**63


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file as an inventory lists it.

    Attributes
    ----------
    path : str
    n_bytes : int
    mtime_ns : int
        Time of the last change, nanoseconds since 1970.
    inode : int
        Number of the file at its host: another file under the same name has another.
    """

    path: str
    n_bytes: int
    mtime_ns: int
    inode: int


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something that is not collected: its name, escaped where it is not UTF-8, and why."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class InventoryPage:
    """Some of an agent's files, in the order of their paths' bytes.

    Attributes
    ----------
    files : tuple of FileEntry
    left_out : tuple of LeftOut
    after : str or None
        What to ask for the next page; None: this is the last.
    """

    files: tuple[FileEntry, ...]
    left_out: tuple[LeftOut, ...]
    after: str | None


@dataclass(frozen=True, slots=True)
class Segment:
    """Bytes of one file: `n_bytes` from `offset_bytes` on, of the file as it was listed."""

    file: FileEntry
    offset_bytes: int
    n_bytes: int


@dataclass(frozen=True, slots=True)
class Read:
    """A request for segments, which arrive one after another.

    Examples
    --------
    >>> read = Read((Segment(FileEntry("a", 5, 0, 1), 0, 5),))
    >>> read.n_bytes, parse_read(read_body(read)) == read
    (5, True)
    """

    segments: tuple[Segment, ...]

    @property
    def n_bytes(self) -> int:
        """All bytes of it."""
        return sum(segment.n_bytes for segment in self.segments)


@dataclass(frozen=True, slots=True)
class ReadAnswer:
    """What came of a request to read.

    Attributes
    ----------
    n_bytes : int
        Bytes received into the buffer: all that were asked for, or none.
    status : int
        0: the files were as listed before and after; 1: one has changed; 2: one could not be read
        to its end and the rest is zeros. Only with 0 do the bytes count.
    blake3 : bytes
        The source's hash of the bytes, 32 bytes; to be compared with the receiver's own.
    confirmation : Confirmation
        Which files have changed or gone, where the source knew before it sent anything.
    """

    n_bytes: int
    status: int
    blake3: bytes
    confirmation: Confirmation


@dataclass(frozen=True, slots=True)
class Confirmation:
    """Which of some files are no more as they were listed."""

    changed: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AgentFacts:
    """What an agent tells everybody.

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
    """

    name: str
    version: str
    time_s: float
    serves: bool
    relays_to: tuple[str, ...]


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
        Facts of `datacollect.transfer.wire.tcp_info`.
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
    read = Read(tuple(Segment(_entry(row), row[4], row[5]) for row in rows))
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


def confirmation_body(confirmation: Confirmation) -> bytes:
    """Return the JSON of a confirmation."""
    return json_body({"changed": confirmation.changed, "gone": confirmation.gone})


def parse_confirmation(body: bytes) -> Confirmation:
    """Return the confirmation that an answer holds."""
    tree = parse_object(body)
    return Confirmation(_texts(tree, "changed"), _texts(tree, "gone"))


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
        }
    )


def parse_facts(body: bytes) -> AgentFacts:
    """Return what an agent tells."""
    tree = parse_object(body)
    if tree.get("format") != FACTS_FORMAT:
        got = shown(tree.get("format"))
        raise ProblemError(f'format must be "{FACTS_FORMAT}", got {got}; is it an agent?')
    time_s = tree.get("time_s")
    if isinstance(time_s, bool) or not isinstance(time_s, int | float) or not 0 <= time_s < 1e12:
        raise ProblemError(f"time_s must be seconds since 1970, got {shown(time_s)}")
    name, version = (str(tree.get(key, "")) for key in ("name", "version"))
    return AgentFacts(
        name, version, float(time_s), tree.get("serves") is True, _texts(tree, "relays_to")
    )


def entry_line(entry: FileEntry | LeftOut) -> bytes:
    """Return a line of an inventory."""
    if isinstance(entry, LeftOut):
        return json_body({"left_out": entry.name, "why": entry.why}) + b"\n"
    path, n_bytes, mtime_ns, inode = _row(entry)
    return json_body({"path": path, "bytes": n_bytes, "mtime_ns": mtime_ns, "inode": inode}) + b"\n"


def last_line(after: str | None) -> bytes:
    """Return the last line of a page."""
    return json_body({"next": after}) + b"\n"


def parse_page(body: bytes) -> InventoryPage:
    """Return the page that an answer holds; it must be whole."""
    lines = [parse_object(line) for line in body.splitlines()]
    if not lines or lines[-1].keys() != {"next"}:
        raise ProblemError("the page of the inventory has no last line")
    if len(lines) > MOST_ENTRIES + 1:
        raise ProblemError(f"a page has at most {MOST_ENTRIES} lines, got {len(lines) - 1}")
    after = lines.pop()["next"]
    if not (after is None or isinstance(after, str)):
        raise ProblemError(f"next must be text or null, got {shown(after)}")
    files, left_out = [], []
    for line in lines:
        if "left_out" in line:
            left_out.append(LeftOut(str(line["left_out"]), str(line.get("why", ""))))
        else:
            row = [line.get(key) for key in ("path", "bytes", "mtime_ns", "inode")]
            _require_row(row, "inventory")
            files.append(_entry(row))
    return InventoryPage(tuple(files), tuple(left_out), after)


def parse_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object that a body holds."""
    try:
        tree = json.loads(body)
    except (ValueError, RecursionError):
        tree = None
    if not isinstance(tree, dict):
        raise ProblemError("the body must be a JSON object")
    return tree


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
        least = -NUMBER_STOP if position == 1 else 0
        if type(number) is not int or not least <= number < NUMBER_STOP:
            raise ProblemError(f"{place}: must hold whole numbers, got {shown(number)}")


def is_path(path: str) -> bool:
    """Whether a path stays within its folder by what it says, links aside."""
    try:
        long = len(path.encode()) > PATH_BYTES
    except UnicodeEncodeError:
        return False
    return not long and "\0" not in path and not {"", ".", ".."} & set(path.split("/"))


def _entry(row: list[Any]) -> FileEntry:
    return FileEntry(row[0], row[1], row[2], row[3])


def _row(file: FileEntry) -> list[Any]:
    return [file.path, file.n_bytes, file.mtime_ns, file.inode]


def _texts(tree: dict[str, Any], key: str) -> tuple[str, ...]:
    texts = tree.get(key)
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ProblemError(f"{key} must be a list of texts, got {shown(texts)}")
    return tuple(texts)


def json_body(tree: Any) -> bytes:
    """Return JSON as it travels: short, in UTF-8."""
    return json.dumps(tree, separators=(",", ":"), ensure_ascii=False).encode()
