"""An agent that says a word: its table, who answers for it, a command, and a kind of file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from datacollect.commands.brought import CommandSpec
from datacollect.commands.streams import emit
from datacollect.files.fields import Document, Field, Table
from datacollect.files.file_kinds import FileKind
from datacollect.files.kinds import Text
from datacollect.transfer.agent.config.file import AgentConfig
from datacollect.transfer.agent.config.tables import AgentTable
from datacollect.transfer.agent.handlers import AgentHandlers, Started


@dataclass(frozen=True)
class BeaconConfig:
    """What the table says."""

    word: str
    served: Path | None = None
    own: tuple[Path, ...] = ()


WORD = Field("word", Text(), "What is said.", required=True)
TABLE = AgentTable(
    "beacon",
    Table("the table beacon", "A word.", (WORD,)),
    "A word that the agent says; left out: none.",
    lambda values, _: BeaconConfig(values["word"]),
)


def _start(config: AgentConfig, _log: object) -> Started:
    word = config.tables["beacon"].word
    return Started({"/beacon": lambda exchange: exchange.answer(200, body=word.encode())})


HANDLERS = AgentHandlers("beacon", _start)


def beacon(agent: Annotated[str, typer.Argument(help="File of the agent.")]) -> None:
    """Say the word of an agent."""
    emit(AgentConfig.from_file(agent).tables["beacon"].word)


COMMAND = CommandSpec("beacon", beacon)

FORMAT = Field("format", Text(("datacollect-beacons/1",)), "Format and version.", required=True)
FILE = FileKind("beacons", Document("the file of beacons", "Words.", (FORMAT, WORD)))
