"""Call sites: read from a trace of a clean run, found again in the trace of a faulty one.

A site is a call and the kind of thing that it is about: `pwrite64` of the state's log, `connect` of
a new socket. A tracer counts calls by thread, so a site's n-th call is given by its place there.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

LINE = re.compile(r"^(\d+)\s+(\w+)\((.*)$")
RESUMED = re.compile(r"^(\d+)\s+<\.\.\. (\w+) resumed>(.*)$")
# What a tracer says of a number: 4</folder/file>, AT_FDCWD</folder>, fd=11<TCP:[a->b]>.
DECODED = re.compile(r"(?:\b\d+|AT_FDCWD)<((?:->|[^<>]|<[^<>]*>)*)>")
QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
PORT = re.compile(r"(?:->\S*?:(\d+)\])|(?:htons\((\d+)\))")
# Calls whose first words name files; of others, quoted text is what is written or read.
NAMES_FILES = frozenset(
    (
        *(
            "openat",
            "openat2",
            "open",
            "stat",
            "lstat",
            "newfstatat",
            "statx",
            "mkdir",
            "mkdirat",
            "unlink",
        ),
        *("unlinkat", "rmdir", "rename", "renameat", "renameat2", "link", "linkat", "symlink"),
        *("symlinkat", "readlink", "readlinkat", "access", "faccessat", "faccessat2", "chmod"),
        *("fchmodat", "utimensat", "statfs", "execve", "truncate", "getxattr", "lgetxattr"),
    )
)
INTO, RUN, WORLD = "INTO", "RUN", "WORLD"
IMPORTED = re.compile(r"\.(py|pyc|so|pth)\b|__pycache__|site-packages|/lib/python")


@dataclass(frozen=True, order=True)
class Site:
    """A call and the kind of thing that it is about."""

    call: str
    kind: str

    def __str__(self) -> str:
        return f"{self.call} of {self.kind}"


@dataclass(frozen=True)
class Call:
    """A call in a trace.

    Attributes
    ----------
    thread : int
    site : Site
    paths : frozenset of str
        What a tracer's filter of paths compares.
    is_injected : bool
    """

    thread: int
    site: Site
    paths: frozenset[str]
    is_injected: bool


@dataclass(frozen=True)
class Names:
    """Names by which paths and ports become kinds.

    Parameters
    ----------
    into : str
        The folder of the pull.
    world : str
        The folder of the world.
    ports : dict of str to int
        By name of server.
    sources : tuple of str
    """

    into: str
    world: str
    ports: Mapping[str, int]
    sources: tuple[str, ...]

    def folders(self) -> tuple[tuple[str, str], ...]:
        """Return the folders that differ from run to run, with their placeholders."""
        return (self.into, INTO), (str(Path(self.into).parent), RUN), (self.world, WORLD)

    def kind_of_path(self, path: str) -> str:
        """Return the kind of a file or folder."""
        return re.sub(r"[^ -~]+", "?", self._kind_of_path(path))

    def _kind_of_path(self, path: str) -> str:
        if path == self.into:
            return "DIR"
        if path.startswith(self.into + "/"):
            inside = path[len(self.into) + 1 :]
            first, _, rest = inside.partition("/")
            if first in self.sources:
                return "final" if ".datacollect" not in rest else "staged"
            return re.sub(r"\d+", "N", inside)
        if path.startswith(self.world + "/"):
            inside = path[len(self.world) + 1 :]
            return "served data" if inside.startswith("data-") else re.sub(r"\d+", "N", inside)
        if IMPORTED.search(path):
            return "import"
        if path.endswith(("/stdout", "/stderr")):
            return path.rpartition("/")[2]
        if path.startswith(("/etc/", "/usr/")):
            return "system file"
        return "dev or proc" if path.startswith(("/dev/", "/proc/", "/sys/")) else "elsewhere"

    def kind_of_socket(self, text: str) -> str:
        """Return the kind of what is no file."""
        for a, b in PORT.findall(text):
            for name, port in self.ports.items():
                if int(a or b) == port:
                    return f"tcp to {name}"
        if text.startswith(("TCP", "UDP", "UNIX", "NETLINK")):
            return text[: re.match(r"[A-Z]+", text).end()].lower()
        return "tcp" if "sa_family=AF_INET" in text else re.sub(r"[:\[].*", "", text)


def calls_of(lines: Iterable[str], names: Names) -> list[Call]:
    """Return the calls of a trace, each at the place where it began."""
    found: list[Call] = []
    pending: dict[int, int] = {}
    for line in lines:
        if resumed := RESUMED.match(line):
            at = pending.pop(int(resumed[1]), None)
            if at is not None and resumed[3].rstrip().endswith("(INJECTED)"):
                call = found[at]
                found[at] = Call(call.thread, call.site, call.paths, is_injected=True)
        elif match := LINE.match(line):
            thread, name, rest = int(match[1]), match[2], match[3]
            kind, paths = _object(name, rest, names)
            injected = rest.rstrip().endswith("(INJECTED)")
            found.append(Call(thread, Site(name, kind), paths, injected))
            if rest.rstrip().endswith("<unfinished ...>"):
                pending[thread] = len(found) - 1
    return found


def _object(name: str, rest: str, names: Names) -> tuple[str, frozenset[str]]:
    """Return the kind of thing that a call is about, and the paths that a filter would see."""
    # What it returns does not count: a call that fails returns nothing.
    given = rest.rpartition(" = ")[0] or rest
    decoded = [_unquoted(text.removesuffix(" (deleted)")) for text in DECODED.findall(given)]
    paths = {text for text in decoded if text.startswith("/")}
    whole = ""
    if name in NAMES_FILES:
        folder = next((text for text in decoded if text.startswith("/")), "")
        given = [_unquoted(text) for text in QUOTED.findall(rest)]
        paths |= {text for text in given if text.startswith("/")}
        if rest.startswith("AT_FDCWD"):  # where it stands is nobody's affair
            paths.discard(folder)
        if given:
            # Of a rename the kind is that of where it leads.
            target = given[-1]
            if name.startswith(("rename", "link")):
                folder = next((text for text in decoded[::-1] if text.startswith("/")), "")
            whole = target if target.startswith("/") else f"{folder}/{target}".rstrip("/")
    if not whole:
        whole = next(iter(decoded), "")
    # The device that it is comes after the path: /dev/null<char 1:3>.
    whole = whole.partition("<")[0]
    if whole.startswith("/"):
        return names.kind_of_path(whole), frozenset(path.partition("<")[0] for path in paths)
    if name in ("socket", "socketpair", "accept4"):
        return "new socket", frozenset()
    if "AF_INET" in rest or whole.startswith(("TCP", "UDP", "UNIX", "NETLINK")):
        return names.kind_of_socket(rest if "htons" in rest else whole), frozenset()
    return (names.kind_of_socket(whole) if whole else "process"), frozenset()


def _unquoted(text: str) -> str:
    """Return a name with its octal escapes read, as UTF-8."""
    raw = text.encode("utf-8", "replace").decode("unicode_escape").encode("latin-1", "replace")
    return raw.decode("utf-8", "replace")


@dataclass
class Record:
    """The sites of clean runs, and at which place in a thread each of their calls came.

    Attributes
    ----------
    places : dict of Site to Counter
        How often a site's call was the n-th of its thread that the filter lets through.
    filters : dict of Site to set of str
        The paths to filter by, with placeholders for the folders; empty where none can be given.
    strangers : dict of Site to set of int
        The places at which, in other threads, the filter lets through calls of other sites.
    """

    places: dict[Site, Counter[int]] = field(default_factory=dict)
    filters: dict[Site, frozenset[str]] = field(default_factory=dict)
    strangers: dict[Site, set[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, calls: list[Call], names: Names) -> Record:
        """Return the record of a run's trace."""
        seen: dict[Site, set[str]] = defaultdict(set)
        without_path: set[Site] = set()
        for call in calls:
            seen[call.site] |= call.paths
            if not call.paths:
                without_path.add(call.site)
        record = cls()
        by_name: dict[str, list[Call]] = defaultdict(list)
        for call in calls:
            by_name[call.site.call].append(call)
        for site in sorted(seen):
            paths = frozenset() if site in without_path else frozenset(seen[site])
            places: Counter[int] = Counter()
            strangers: set[int] = set()
            counts: Counter[int] = Counter()
            for call in by_name[site.call]:
                if not paths or call.paths & paths:
                    counts[call.thread] += 1
                    if call.site == site:
                        places[counts[call.thread]] += 1
                    else:
                        strangers.add(counts[call.thread])
            record.places[site] = places
            record.strangers[site] = strangers
            record.filters[site] = frozenset(placed(path, names) for path in paths)
        return record

    def chosen(self, site: Site, most: int) -> list[int]:
        """Return at most so many places of a site's calls, spread from the first to the last.

        A tracer counts in each thread: where it can be helped, no other site is at that place.
        """
        there = sorted(self.places[site].keys() - self.strangers[site]) or sorted(self.places[site])
        if len(there) <= most:
            return there
        # Half of them are the first: most calls differ at the beginning.
        first = there[: most // 2]
        rest = there[most // 2 :]
        n = most - len(first)
        return first + sorted({rest[round((i + 1) * len(rest) / n) - 1] for i in range(n)})


def placed(path: str, names: Names) -> str:
    """Put placeholders for the folders, which differ from run to run."""
    for folder, word in names.folders():
        if path == folder or path.startswith(folder + "/"):
            return word + path[len(folder) :]
    return path


def resolved(path: str, names: Names) -> str:
    """Put the folders of a run for the placeholders."""
    for folder, word in names.folders():
        if path == word or path.startswith(word + "/"):
            return folder + path[len(word) :]
    return path


def lines_of(trace: Path) -> Iterator[str]:
    """Yield the lines of a trace; none where it was never written."""
    if trace.exists():
        with trace.open(errors="replace") as file:
            yield from file
