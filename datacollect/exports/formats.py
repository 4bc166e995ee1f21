"""Formats of exports, for tools that people have. Each format is one file beside.

Another package brings a format as an entry point of the group ``datacollect.exports``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from datacollect.errors import ProblemError, nearest_hint
from datacollect.files.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from datacollect.exports.jobs import Jobs
    from datacollect.exports.templates import Templates
    from datacollect.problem.manifest import Files
    from datacollect.problem.problem import Problem
    from datacollect.schedule.data.contents import ScheduleContents


@dataclass(frozen=True)
class FormatOption:
    """An option of some formats.

    Attributes
    ----------
    choices : tuple of str
        The values that it takes; empty: any.
    text : str
        What it is for.
    """

    choices: tuple[str, ...]
    text: str


@dataclass(frozen=True, eq=False)
class ToWrite:
    """Input of a format.

    Attributes
    ----------
    problem : Problem
    schedule : Schedule
    manifest : mapping of str to Files
        By source.
    jobs : Jobs
        What each host fetches, in pieces or in whole files as the format wants.
    finish_s : list of float
        When each job ends, as expected, in seconds; infinite where that is never.
    templates : Templates
    address : callable
        From a host, a source and a path to where the tool finds the file.
    options : mapping of str to str
        Of the format's own, those that are given.
    """

    problem: Problem
    schedule: ScheduleContents
    manifest: Mapping[str, Files]
    jobs: Jobs
    finish_s: Sequence[float]
    templates: Templates
    address: Callable[[str, str, str], str]
    options: Mapping[str, str]


@dataclass(frozen=True, eq=False)
class Written:
    """Output of a format.

    Attributes
    ----------
    texts : dict of str to str
        By file name; of a format of one file, under the empty name.
    hosts : dict of str to str
        Whose file each is, by file name, where each host has its own.
    jobs : Jobs or None
        Where the format speaks of other jobs than it was given.
    notes : tuple of str
        What the format cannot say, and what to know before starting.
    """

    texts: dict[str, str]
    hosts: dict[str, str] = field(default_factory=dict)
    jobs: Jobs | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ExportFormat:
    """A format: what it can say, and what writes it.

    Attributes
    ----------
    name : str
    text : str
        What is written, for help.
    example : str
        A template of addresses.
    keeper : str
        Where its tool keeps what grants access, which may stand in no address.
    is_url : bool
        Whether its addresses are URLs, in which names are written by the rules of their schemes.
    may_cut : bool
        Whether files may be fetched in pieces.
    is_timed : bool
        Whether start times and rates are kept.
    is_one_file : bool
        Whether all is one file, which standard output may be, too.
    next_step : str
        What to do with the files; empty where no tool reads them.
    options : mapping of str to FormatOption
        What it takes besides, by name.
    refused : mapping of str to str
        Why it does not take options that others take, by name.
    """

    name: str
    text: str
    example: str = "https://{host}.example/{path}"
    keeper: str = "a place where the tool that fetches looks for it"
    is_url: bool = True
    may_cut: bool = True
    is_timed: bool = True
    is_one_file: bool = False
    next_step: str = ""
    options: Mapping[str, FormatOption] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)

    def write(self, given: ToWrite) -> Written:
        """Write all files.

        Raises
        ------
        ProblemError
            The format cannot say it.
        """
        raise NotImplementedError

    def address(self, templates: Templates, host: str, source: str, path: str) -> str:
        """Return where the tool finds a file of a source at a host."""
        return templates.address(host, source, path)

    def require_address(self, host: str, template: str, address: str) -> None:
        """Raise `ProblemError` unless the tool would take what has come of a host's template."""

    def require_options(self, options: Mapping[str, str]) -> None:
        """Raise `ProblemError` unless the format takes all options, with these values."""
        for name, value in options.items():
            if name not in self.options:
                raise ProblemError(f"--{name} {self._why_not(name)}")
            choices = self.options[name].choices
            if choices and value not in choices:
                raise ProblemError(
                    f"--{name} must be one of {', '.join(choices)}, got {value!r}"
                    + nearest_hint(value, choices)
                )

    def _why_not(self, option: str) -> str:
        others = [name for name in EXPORTS.own if option in EXPORTS.get(name).options]
        if others:
            return f"is for --as {' or '.join(others)}; {self.refused.get(option, 'leave it out')}"
        hint = nearest_hint(option, self.options)
        own = f"its own are {', '.join(self.options)}" if self.options else "it has none"
        return f"is not an option of --as {self.name}{hint or f'; {own}'}"


EXPORTS = Registry(
    "export format",
    "datacollect.exports",
    ExportFormat,
    {
        "curl": "datacollect.exports.curl:CURL",
        "aria2": "datacollect.exports.aria2:ARIA2",
        "rclone": "datacollect.exports.rclone:RCLONE",
        "rsync": "datacollect.exports.rsync:RSYNC",
        "fts": "datacollect.exports.fts:FTS",
        "csv": "datacollect.exports.csv_table:CSV",
    },
)
