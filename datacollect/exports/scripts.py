"""Formats of shell scripts: one for each host, which runs one tool."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - of a field of a dataclass
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from datacollect.exports.formats import ExportFormat

if TYPE_CHECKING:
    from datacollect.exports.formats import ToWrite, Written


@dataclass(frozen=True, kw_only=True)
class Scripts(ExportFormat):
    """A format of scripts that run one tool.

    Attributes
    ----------
    parts : tuple of str
        The shell files beside this one of which its scripts consist, besides the plan and what all
        scripts have.
    """

    text: str = "a shell script per host that runs it"
    next_step: str = "at each host: sh SCRIPT FOLDER, all at the same time"
    refused: Mapping[str, str] = field(
        default_factory=lambda: {"checksum": "scripts compare SHA-256"}
    )
    parts: tuple[str, ...]

    def write(self, given: ToWrite) -> Written:
        """Return a script for each host that fetches or forwards, and for the destination."""
        from datacollect.exports.script_texts import write_scripts

        return write_scripts(self.name, self.parts, given)
