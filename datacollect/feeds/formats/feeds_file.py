"""FEEDS.toml: several feeds that are sent together, and where each comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from datacollect.errors import ProblemError, naming
from datacollect.feeds.formats.feed_file import FeedFile
from datacollect.files.fields import Document, Field, Rows, Table
from datacollect.files.file_kinds import FileKind
from datacollect.files.kinds import Number, Text
from datacollect.files.quantities import SECONDS

if TYPE_CHECKING:
    from os import PathLike
    from pathlib import Path

FEEDS_FORMAT = "datacollect-feeds/1"

ROW = Table(
    "the feed",
    "One of the feeds: its file, and where it comes from.",
    (
        Field("file", Text(), "The feed's file.", required=True),
        Field("input", Text(), "File, named pipe or device that the feed is read from."),
        Field(
            "generate",
            Number(SECONDS, positive=True),
            "Instead of input: make up data of the rate for this long, seconds.",
        ),
    ),
)

FEEDS = Document(
    "the file of feeds",
    "Feeds that are sent together.",
    (
        Field("$schema", Text(), "JSON Schema of this file, for editors."),
        Field("format", Text((FEEDS_FORMAT,)), "Format and its version.", required=True),
        Field("feeds", Rows(ROW), "The feeds.", required=True),
    ),
    remedy="the documentation has one under Feeds",
)
FEEDS_KIND = FileKind("feeds", FEEDS)


@dataclass(frozen=True)
class FedFeed:
    """A feed, and where it comes from: a file, or for so long from nowhere."""

    feed: FeedFile
    input: Path | None
    generate_s: float | None


def feeds_from_file(path: str | PathLike[str]) -> list[FedFeed]:
    """Read such a file, and those that it names.

    Raises
    ------
    ProblemError
        One of them breaks a rule.
    """
    return FEEDS.from_file(path, _feeds)


def _feeds(tree: Any, folder: Path) -> list[FedFeed]:
    rows = FEEDS.read(tree)["feeds"]
    if not rows:
        raise ProblemError("feeds: the file names no feed; add a table [[feeds]] for each feed")
    found = []
    for i, row in enumerate(rows):
        if (row["input"] is None) == (row["generate"] is None):
            given = "neither" if row["input"] is None else "both"
            raise ProblemError(f"feeds[{i}]: must have either input or generate, got {given}")
        with naming(f"feeds[{i}].file"):
            feed = FeedFile.from_file(folder / row["file"])
        source = None if row["input"] is None else folder / row["input"]
        found.append(FedFeed(feed, source, row["generate"]))
    names = [(each.feed.to.address, each.feed.name) for each in found]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise ProblemError(
                f"feeds[{i}]: two feeds with the name {name[1]} go to one receiver; rename one"
            )
    return found
