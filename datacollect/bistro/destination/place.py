"""Place of a destination's files: the machine and the folder, by which others find them."""

from __future__ import annotations

import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datacollect.bistro.formats.event.event import Event
    from datacollect.bistro.formats.log.notes import VerifierKey

VERDICTS = "verdicts"
MACHINE_IDS = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))


def verdicts_folder(folder: Path, log: VerifierKey, event: Event) -> Path:
    """Return where a destination keeps a log of verdicts: one that succeeds another lies apart.

    Parameters
    ----------
    folder : Path
        Of the destination.
    log : VerifierKey
        Of the event: the one that is written now, or one that has ended.
    event : Event
        With its amendments.
    """
    is_first = log == (event.ended_verdicts[0].log if event.ended_verdicts else event.verdicts)
    return folder / (VERDICTS if is_first else f"{VERDICTS}-{log.name.rpartition('/')[2]}")


@dataclass(frozen=True, order=True)
class Place:
    """A folder of a machine.

    Attributes
    ----------
    host : str
        The machine's name, as it calls itself.
    machine : str
        Its machine-id, which no other one has; empty where it has none.
    folder : str
        Absolute, without symbolic links.
    """

    host: str
    machine: str
    folder: str

    @classmethod
    def of(cls, folder: Path) -> Place:
        """Return where a folder lies that this process sees."""
        machine = ""
        for path in MACHINE_IDS:
            with suppress(OSError, ValueError):
                machine = machine or path.read_text("ascii").strip()
        return cls(socket.gethostname(), machine, str(folder.resolve()))

    def is_same(self, other: Place) -> bool:
        """Return whether both are one; who has no machine-id is known by its name alone."""
        is_one_machine = not (self.machine and other.machine) or self.machine == other.machine
        return is_one_machine and (self.host, self.folder) == (other.host, other.folder)
