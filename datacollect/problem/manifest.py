"""Files of each source's backlog: in the manifest's order, one after another."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from datacollect.errors import ProblemError, nearest_hint
from datacollect.files.documents import document_name, read_text
from datacollect.files.kinds import BYTES_STOP, join
from datacollect.files.tables import open_table
from datacollect.files.units import counted

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping
    from os import PathLike

    from datacollect.numbers.arrays import IntArray

REQUIRED = ("host", "path", "bytes")
# What may be known of whole files, by column, and its number of hexadecimal digits.
CHECKSUMS = {"sha256": 64, "adler32": 8, "md5": 32}

# A file's path, its size, and its checksums in the order of `CHECKSUMS`.
_Entry = tuple[str, int, tuple[str, ...]]

# Scripts add up to this many characters to the name of an arriving file; file systems take 255.
LONGEST_NAME_BYTES = 190
MARK = ".datacollect-"


@dataclass(frozen=True, eq=False)
class Files:
    """The files of one source.

    Attributes
    ----------
    paths : tuple of str
        Relative, with ``/`` between folders.
    n_bytes : ndarray of int64, shape (n_files,)
    sha256 : tuple of str
        In lowercase hexadecimal; empty where it is not known.
    adler32, md5 : tuple of str
        Likewise, for tools that know these; left out where none is known.
    """

    paths: tuple[str, ...]
    n_bytes: IntArray
    sha256: tuple[str, ...]
    adler32: tuple[str, ...] = ()
    md5: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in CHECKSUMS:
            if not getattr(self, name):
                object.__setattr__(self, name, ("",) * len(self.paths))

    def checksums(self, algorithm: str) -> tuple[str, ...]:
        """Return all files' values of a column of `CHECKSUMS`."""
        values: tuple[str, ...] = getattr(self, algorithm)
        return values

    @cached_property
    def ends(self) -> IntArray:
        """Return where each file ends within the backlog."""
        return np.cumsum(self.n_bytes)

    def within(self, offset_bytes: int, n_bytes: int) -> list[dict[str, Any]]:
        """Return the parts of files that a range of the backlog is: path, offset_bytes, bytes.

        Examples
        --------
        >>> Files(("a", "b"), np.array([3, 5]), ("", "")).within(2, 4)
        [{'path': 'a', 'offset_bytes': 2, 'bytes': 1}, {'path': 'b', 'offset_bytes': 0, 'bytes': 3}]
        """
        first = int(np.searchsorted(self.ends, offset_bytes, side="right"))
        last = int(np.searchsorted(self.ends, offset_bytes + n_bytes, side="left"))
        end = offset_bytes + n_bytes
        parts = []
        for i in range(first, last + 1 if n_bytes else first):
            begin = int(self.ends[i] - self.n_bytes[i])
            low, high = max(begin, offset_bytes), min(int(self.ends[i]), end)
            if high > low:
                path = {"path": self.paths[i], "offset_bytes": low - begin, "bytes": high - low}
                parts.append(path)
        return parts

    @cached_property
    def total_bytes(self) -> int:
        """The size of all files together."""
        return sum(self.n_bytes.tolist())


def read_manifest(path: str | PathLike[str]) -> dict[str, Files]:
    """Read a manifest: a table with the columns host, path, bytes and, optionally, checksums.

    Its columns are separated by commas, semicolons or tabs (`datacollect.files.tables`).

    Returns
    -------
    dict of str to Files
        By source. Its backlog is its files in the manifest's order, one after another.

    Raises
    ------
    ProblemError
        The message names the file, the line, the rule, the value and the remedy.
    """
    name = document_name(path)
    table = open_table(read_text(path), name, "host,path,bytes", texts=("path",))
    header = [column.strip() for column in table.header]
    _require_header(header, f"{name}, line {1 + table.skipped_lines}")
    found: dict[str, list[_Entry]] = {}
    seen: set[tuple[str, str]] = set()
    for line, row in table.rows():
        place = f"{name}, line {line}"
        cells = dict(zip(header, row, strict=True))
        host, file = cells["host"], cells["path"]
        if (why := why_no_path(file)) is not None:
            raise ProblemError(f"{place}: {why}")
        if (host, file) in seen:
            raise ProblemError(f"{place}: {file!r} of {host!r} is given twice; keep one")
        seen.add((host, file))
        checksums = tuple(_checksum(cells, column, place) for column in CHECKSUMS)
        found.setdefault(host, []).append((file, _bytes(cells["bytes"], place), checksums))
    for host, entries in found.items():
        _require_no_file_as_folder(host, [file for file, _, _ in entries], name)
    return {host: _files(entries) for host, entries in found.items()}


def _files(entries: list[_Entry]) -> Files:
    paths, sizes, checksums = zip(*entries, strict=True)
    return Files(paths, np.array(sizes, dtype=np.int64), *zip(*checksums, strict=True))


def backlogs_of_files(
    manifest: Mapping[str, Files],
    hosts: Mapping[str, Mapping[str, Any]],
    stated: Container[str],
    name: str,
) -> list[int]:
    """Return every host's backlog: the sum of its files.

    Parameters
    ----------
    manifest : mapping of str to Files
    hosts : mapping
        What the problem file says of each host, by name.
    stated : container of str
        Hosts whose ``backlog_bytes`` the file gives.
    name : str
        The manifest's, for messages.

    Raises
    ------
    ProblemError
        A host is unknown, or its backlog contradicts its files.
    """
    for host in manifest:
        if host not in hosts:
            hint = nearest_hint(host, hosts) or f"; declare it: [{join('hosts', host)}]"
            raise ProblemError(f"{name}: the problem has no host {host!r}{hint}")
    sums = []
    for host, values in hosts.items():
        files = manifest.get(host)
        sums.append(0 if files is None else files.total_bytes)
        if host in stated and values["backlog_bytes"] != sums[-1]:
            n_files = counted(0 if files is None else len(files.paths), "file")
            raise ProblemError(
                f"{join(join('hosts', host), 'backlog_bytes')} must be the sum of its {n_files} "
                f"in {name}, {sums[-1]} bytes, got {values['backlog_bytes']}; leave it out, "
                "or correct the manifest"
            )
    return sums


class _Backlogs(Protocol):
    """Backlogs that files are checked against."""

    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def backlog_bytes(self) -> IntArray: ...


def require_fit(problem: _Backlogs, manifest: Mapping[str, Files], name: str) -> None:
    """Refuse a manifest whose files are not exactly the problem's backlogs.

    Raises
    ------
    ProblemError
        A host is unknown, or the sum of its files is not its backlog.
    """
    for host in manifest:
        if host not in problem.names:
            hint = nearest_hint(host, problem.names)
            raise ProblemError(f"{name}: the problem has no host {host!r}{hint}")
    for i, host in enumerate(problem.names):
        backlog = int(problem.backlog_bytes[i])
        listed = manifest[host].total_bytes if host in manifest else 0
        if listed != backlog:
            raise ProblemError(
                f"{name}: the files of {host!r} have {listed} bytes, its backlog_bytes is "
                f"{backlog}; list all its files, and set backlog_bytes to their sum"
            )


def with_hashes_of_both(
    given: Mapping[str, Files], own: Mapping[str, Files], name: str
) -> dict[str, Files]:
    """Return a manifest with the checksums that it or the problem's own knows, if both agree.

    Parameters
    ----------
    given, own : mapping of str to Files
    name : str
        The given one's, for messages.

    Raises
    ------
    ProblemError
        The two contradict each other: other files, sizes or checksums, or another order.

    Examples
    --------
    >>> sizes = np.array([3, 5])
    >>> one = {"S": Files(("a", "b"), sizes, ("f0" * 32, ""))}
    >>> two = {"S": Files(("a", "b"), sizes, ("", "0f" * 32))}
    >>> [text[:4] for text in with_hashes_of_both(one, two, "files.csv")["S"].sha256]
    ['f0f0', '0f0f']
    """
    for host in sorted(given.keys() ^ own.keys()):
        who = "it" if host in given else "the problem's"
        raise ProblemError(
            f"{name}: contradicts the problem's own manifest: only {who} has files of {host!r}; "
            "leave one of the two out, or correct it"
        )
    return {host: _both(files, own[host], f"{name}: {host!r}") for host, files in given.items()}


def _both(given: Files, own: Files, place: str) -> Files:
    for i, (said, known) in enumerate(zip_longest(_described(given), _described(own)), 1):
        if said is None or known is None or not _agree(said, known):
            raise ProblemError(
                f"{place}: contradicts the problem's own manifest, whose file {i} is "
                f"{_text(known)}, got {_text(said)}; leave one of the two out, or correct it"
            )
    known_to_both = (
        tuple(a or b for a, b in zip(given.checksums(name), own.checksums(name), strict=True))
        for name in CHECKSUMS
    )
    return Files(given.paths, given.n_bytes, *known_to_both)


def _agree(one: _Entry, other: _Entry) -> bool:
    """Return whether path and size are the same, and each checksum where both know it."""
    pairs = zip(one[2], other[2], strict=True)
    return one[:2] == other[:2] and all(a == b or not (a and b) for a, b in pairs)


def _described(files: Files) -> Iterator[_Entry]:
    checksums = zip(*(files.checksums(name) for name in CHECKSUMS), strict=True)
    return zip(files.paths, files.n_bytes.tolist(), checksums, strict=True)


def _text(entry: _Entry | None) -> str:
    if entry is None:
        return "none"
    path, n_bytes, checksums = entry
    known = [f"{name} {value}" for name, value in zip(CHECKSUMS, checksums, strict=True) if value]
    return f"{path!r} of {n_bytes} bytes" + (f" with {', '.join(known)}" if known else "")


def _require_header(header: list[str], place: str) -> None:
    missing = [column for column in REQUIRED if column not in header]
    unknown = [column for column in header if column not in (*REQUIRED, *CHECKSUMS)]
    if missing or unknown or len(set(header)) < len(header):
        wrong = f"no column {missing[0]!r}" if missing else f"got {', '.join(header)}"
        raise ProblemError(
            f"{place}: the columns must be host, path, bytes and, optionally, "
            f"{', '.join(CHECKSUMS)}; {wrong}; write them into that line"
        )


def why_no_path(path: str) -> str | None:
    """Return why a manifest cannot name a file so, and the remedy; None where it can.

    >>> why_no_path("run7/a.tar") is None
    True
    >>> why_no_path("../a")
    "path must be relative, without empty parts, '.' or '..', got '../a'; name the file within the \
host's folder"
    """
    parts = path.split("/")
    if not path or "\0" in path or any(part in ("", ".", "..") for part in parts):
        return (
            f"path must be relative, without empty parts, '.' or '..', got {path!r}; "
            "name the file within the host's folder"
        )
    if not path.isascii() and re.search("[\ud800-\udfff]", path):
        return f"path must be Unicode text, got {path!r}; rename the file"
    if len(parts[-1].encode()) > LONGEST_NAME_BYTES:
        return (
            f"a file's name may have {LONGEST_NAME_BYTES} bytes, which leaves room for "
            f"what is added while it arrives, got {len(parts[-1].encode())}; shorten it"
        )
    if MARK in path:
        return f"{MARK!r} in a path marks what is still arriving, got {path!r}; rename it"
    return None


def _require_no_file_as_folder(host: str, paths: list[str], name: str) -> None:
    files = set(paths)
    for path in paths:
        folder = path
        while "/" in folder:
            folder = folder.rpartition("/")[0]
            if folder in files:
                raise ProblemError(
                    f"{name}: {folder!r} of {host!r} is a file, and a folder in {path!r}; correct "
                    "the paths"
                )


def _bytes(text: str, place: str) -> int:
    if not (text.strip().isascii() and text.strip().isdigit()) or int(text) >= BYTES_STOP:
        raise ProblemError(
            f"{place}: bytes must be a whole number >= 0, below 2**62, got {text!r}; give the "
            "file's size in bytes"
        )
    return int(text)


def _checksum(cells: Mapping[str, str], column: str, place: str) -> str:
    text, n_digits = cells.get(column, "").strip().lower(), CHECKSUMS[column]
    if text and not re.fullmatch(f"[0-9a-f]{{{n_digits}}}", text):
        raise ProblemError(
            f"{place}: {column} must be {n_digits} hexadecimal digits, got {text!r}; leave it "
            "empty where it is not known"
        )
    return text
