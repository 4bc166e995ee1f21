"""A feed as it lies in the receiver's folder: its file, its report, the list of what is missing.

``NAME.part`` becomes ``NAME`` once all is there. ``NAME.json`` says up to which message it counts:
what stands behind that may be anything. ``NAME.holes`` lists what is missing, in rows of numbers.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from datacollect.errors import ProblemError, RefusedError
from datacollect.feeds.formats.feed_file import HOLES, PART, REPORT
from datacollect.feeds.formats.report import FeedReport
from datacollect.files.documents import peer_json

if TYPE_CHECKING:
    from datacollect.feeds.formats.frames import Hello
    from datacollect.feeds.receiver.core import Hole, Write
    from datacollect.feeds.receiver.disk import Disk

HOLES_HEAD = b"message,messages,offset,bytes\n"
# Of a report: how many bytes of the list of holes count.
HOLES_BYTES = "holes_bytes"


class KeptFeed:
    """A feed that is being received.

    Parameters
    ----------
    disk : Disk
    report : FeedReport
        As it is on the disk.

    Raises
    ------
    RefusedError
        The list of what is missing has lost something.
    """

    def __init__(self, disk: Disk, report: FeedReport) -> None:
        self._disk, self.name = disk, report.name
        self.report = report
        found = report.more.get(HOLES_BYTES, 0)
        self._holes_bytes: int = found if type(found) is int and found >= 0 else 0
        if self._holes_bytes:
            _require_bytes(disk, f"{self.name}{HOLES}", self._holes_bytes, self.name)
        self._has_new_holes = False

    def write(self, action: Write) -> None:
        """Write what has come."""
        self._disk.write(f"{self.name}{PART}", action.offset, action.blocks)

    def extend(self, n_bytes: int) -> None:
        """Have the file end in zeros, in place of what does not come."""
        self._disk.truncate(f"{self.name}{PART}", n_bytes)

    def list_hole(self, hole: Hole) -> None:
        """List what does not come; the file has nothing there."""
        row = f"{hole.message},{hole.n},{hole.offset},{hole.n_bytes}\n".encode()
        if not self._holes_bytes:
            row = HOLES_HEAD + row
        self._disk.write(f"{self.name}{HOLES}", self._holes_bytes, [row])
        self._holes_bytes += len(row)
        self.report.more[HOLES_BYTES] = self._holes_bytes
        self._has_new_holes = True

    def keep(self, tree: dict[str, object], number: int) -> None:
        """Have all that was written so far on the disk, and then the report that says so.

        Parameters
        ----------
        tree : dict
            The report.
        number : int
            What became of all messages below it is decided.
        """
        done_bytes = number * self.report.message_bytes
        self._disk.sync(f"{self.name}{PART}", done_bytes=done_bytes)
        if self._has_new_holes:
            self._has_new_holes = False
            self._disk.sync(f"{self.name}{HOLES}")
        self._disk.put(f"{self.name}{REPORT}", _document(tree))

    def finish(self, n_bytes: int, ended: str) -> None:
        """Give the file its name: first its report says that all is there."""
        self._disk.truncate(f"{self.name}{PART}", n_bytes)
        if self._holes_bytes:
            self._disk.truncate(f"{self.name}{HOLES}", self._holes_bytes)
            self._has_new_holes = True
        self.report.ended = ended
        self.keep(self.report.to_dict(), self.report.next)
        self._disk.rename(f"{self.name}{PART}", self.name)


def kept_feed(disk: Disk, hello: Hello, user: str, begun: str) -> KeptFeed:
    """Return a feed that begins, or goes on where it was broken off.

    Where `ended` of its report says so, it is whole already.

    Raises
    ------
    RefusedError
        Something else has its name, or what its report counts is not there.
    """
    report = _report(disk, hello.name)
    if report is None:
        return _new_feed(disk, hello, user, begun)
    _require_same(report, hello, user)
    part, n_bytes = f"{hello.name}{PART}", kept_bytes(report)
    if report.ended:
        _require_named(disk, hello.name, n_bytes)
        return KeptFeed(disk, report)
    if disk.exists(hello.name):
        raise _taken(f"there is a file {hello.name} now")
    if report.next:
        _require_bytes(disk, part, n_bytes, hello.name)
    if disk.exists(part):
        # What stands behind may be anything, and not all of it has to come again.
        disk.truncate(part, n_bytes)
    return KeptFeed(disk, report)


def _new_feed(disk: Disk, hello: Hello, user: str, begun: str) -> KeptFeed:
    for ending in ("", PART, REPORT, HOLES):
        if disk.exists(hello.name + ending):
            raise _taken(f"there is a file {hello.name}{ending} already")
    found = FeedReport(
        hello.name,
        hello.stream,
        user,
        hello.transport,
        hello.message_bytes,
        hello.rate_bytes_per_s,
        begun=begun,
    )
    # Before the file: of one without a report nobody knows what it is.
    disk.put(f"{hello.name}{REPORT}", _document(found.to_dict()))
    return KeptFeed(disk, found)


def _require_same(report: FeedReport, hello: Hello, user: str) -> None:
    """Raise `RefusedError` where a report is not of the feed that comes."""
    if report.name != hello.name:
        raise _taken(f"{hello.name}{REPORT} is about {report.name}")
    if (report.stream, report.user) != (hello.stream, user):
        what = "of another sender" if report.user != user else f"that began at {report.begun}"
        state = "a whole feed" if report.ended else "a feed, not at its end,"
        raise _taken(f"there is {state} {hello.name} {what}")
    if report.message_bytes != hello.message_bytes:
        raise _taken(f"{hello.name} has begun with messages of {report.message_bytes} bytes")


def _require_named(disk: Disk, name: str, n_bytes: int) -> None:
    """Have the file of a feed that is whole under its name; raise `RefusedError` for no such."""
    part = f"{name}{PART}"
    is_part_there = disk.exists(part)
    _require_bytes(disk, part if is_part_there else name, n_bytes, name)
    if is_part_there:
        # It was about to be named.
        try:
            disk.rename(part, name)
        except FileExistsError:
            raise _taken(f"there is a file {name} now") from None


def kept_bytes(report: FeedReport) -> int:
    """Return how many bytes of a feed's file a report counts."""
    udp = report.more.get("udp")
    if isinstance(udp, dict) and udp.get("keep") is False:
        return 0
    return min(report.counts.made_bytes, report.next * report.message_bytes)


def _require_bytes(disk: Disk, name: str, n_bytes: int, of: str) -> None:
    """Raise `RefusedError` where a file has not got what a report counts: it was there once."""
    found_bytes = disk.size(name)
    if found_bytes is None:
        raise _taken(f"{name} is gone, but {of}{REPORT} is about it")
    if found_bytes < n_bytes:
        raise _taken(f"{name} has fewer bytes than {of}{REPORT} counts")


def _document(tree: dict[str, object]) -> bytes:
    return json.dumps(tree, indent=1).encode() + b"\n"


def _report(disk: Disk, name: str) -> FeedReport | None:
    data = disk.read(f"{name}{REPORT}")
    if data is None:
        return None
    try:
        return FeedReport.from_dict(peer_json(data))
    except ProblemError as error:
        raise _taken(f"there is a file {name}{REPORT} already, no report of a feed: {error}") from (
            None
        )


def _taken(why: str) -> RefusedError:
    return RefusedError(f"{why}; choose another name, or have it moved away there", 409)
