"""Setting a bistro up before there is an event: its agent's file, its key, its certificate."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from datacollect.files.documents import toml_text
from datacollect.net.keys import new_private_key, read_private_key, write_private_key
from datacollect.transfer.agent.config.setting_up import set_up_agent

if TYPE_CHECKING:
    from datacollect.transfer.agent.config.setting_up import AgentSetting


def set_up_bistro(
    setting: AgentSetting,
    event: str,
    room: str,
    folder: str,
    file: str | None = None,
    *,
    force: bool = False,
) -> tuple[Path, dict[str, str]]:
    """Write a bistro's file, make its key and certificate; return the file and what events name.

    The event's file need not be there yet. The same again changes nothing: a key and a certificate
    that are there stay.

    Parameters
    ----------
    setting : AgentSetting
        Of its agent.
    event, folder : str
        Where the event's file will stand, and uploads are kept; relative to the working directory.
    room : str
        What uploads may take, such as ``"2 TB"``.
    file : str, optional
        The bistro's file; ``NAME.toml`` if absent.
    force : bool
        Replace a file that says something else.

    Returns
    -------
    Path
    dict of str to str
        A row of the event's ``[[bistros]]``: `name`, `url`, `key`, `fingerprint`.

    Raises
    ------
    ProblemError
        No bistro can be so; the message says why.
    NotWrittenError
        Its file or its key cannot be written.
    """
    path = Path(file or f"{setting.name}.toml")
    key_file = path.with_name(f"{path.stem}.receipts.key")
    accept = {
        "event": _written_from(path, event),
        "folder": _written_from(path, folder),
        "bytes": room,
        "receipt_key": key_file.name,
    }
    path, introduction = set_up_agent(
        replace(setting, tables={"accept": accept}), str(path), force=force
    )
    if not key_file.exists():
        write_private_key(key_file, new_private_key())
    return path, {
        "name": introduction.name,
        "url": introduction.url,
        "key": read_private_key(key_file).public,
        "fingerprint": introduction.fingerprint,
    }


def _written_from(file: Path, given: str) -> str:
    """Return a path as a file has it: relative where it lies beside or below that file."""
    place, folder = Path(given).resolve(), file.parent.resolve()
    return str(place.relative_to(folder) if place.is_relative_to(folder) else place)


def bistros_table(row: dict[str, str]) -> str:
    """Return a row of ``[[bistros]]`` as an event's draft has it.

    >>> print(bistros_table({"name": "north"}))
    [[bistros]]
    name = "north"
    """
    return "\n".join(["[[bistros]]", *(f"{key} = {toml_text(row[key])}" for key in row)])
