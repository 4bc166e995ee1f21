"""Commands that wings bring, and other packages, as entry points of ``datacollect.commands``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from datacollect.files.registry import Registry
from datacollect.wings import COMMANDS as OWN
from datacollect.wings import FEED_COMMANDS as OF_FEEDS

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class CommandSpec:
    """A command.

    Attributes
    ----------
    name : str
        What is written behind ``datacollect``.
    command : callable or typer.Typer
        A function for typer, or a group of them.
    has_own_log : bool
        Whether the function writes a log of its own, as servers do, and takes no ``-v``.
    """

    name: str
    command: Callable[..., Any]
    has_own_log: bool = False


COMMANDS = Registry("command", "datacollect.commands", CommandSpec, OWN)
# Behind ``datacollect feed``, beside those of the core.
FEED_COMMANDS = Registry("command of feed", "datacollect.feed_commands", CommandSpec, OF_FEEDS)
