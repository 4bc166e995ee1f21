"""Collection files, made and added to: what else stands in them, comments too, stays."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datacollect.errors import NotWrittenError, ProblemError, naming
from datacollect.files.documents import (
    COLLECTION_FORMAT,
    document_name,
    folder_of,
    parse_json,
    parse_toml,
    read_text,
    toml_text,
    write_atomically,
)
from datacollect.files.kinds import shown
from datacollect.net.keys import new_private_key, read_private_key, write_private_key
from datacollect.net.names import require_host_name
from datacollect.transfer.pull.config.file import Collection

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from datacollect.transfer.protocol.introduction import Introduction

# Beginnings of tables; a name in quotes may hold brackets.
_HEADER = re.compile(r"\s*\[")
_KEY = re.compile(
    r"\s*(?:\"(?:url|fingerprint|ca)\"|'(?:url|fingerprint|ca)'|url|fingerprint|ca)\s*="
)


@dataclass(frozen=True)
class Added:
    """Result of adding an agent: whether the file has changed, and whether it is a source."""

    name: str
    is_new: bool
    is_collected: bool


def new_collection(path: str | PathLike[str], destination: str, key: str) -> str:
    """Write a collection file and a key, where there are none, and return the public key.

    Parameters
    ----------
    path : path-like
    destination : str
        This host's name in the plan.
    key : str
        File of the private key, relative to the file.

    Raises
    ------
    ProblemError
        A file is there that says something else.
    """
    require_host_name(destination, "destination")
    name, file = document_name(path), Path(path)
    rows = {"format": COLLECTION_FORMAT, "destination": destination, "key": key}
    is_there = file.exists() or file.is_symlink()
    if is_there:
        tree = _parsed(read_text(file), name)
        if not isinstance(tree, dict) or any(tree.get(k) != v for k, v in rows.items()):
            raise NotWrittenError(
                f"{name}: exists already, with another destination or key; name another file, "
                "or keep this one"
            )
    key_file = folder_of(path) / key
    if is_there and not key_file.exists():
        raise NotWrittenError(
            f"{name}: exists already, but the file {key} of its key, which its agents know, is "
            "missing; put that file back, or name another file and key, and set the agents up for "
            "these"
        )
    if not key_file.exists():
        write_private_key(key_file, new_private_key())
    public = read_private_key(key_file).public
    if not is_there:
        text = "".join(f"{k} = {toml_text(value)}\n" for k, value in rows.items())
        write_atomically(file, text.encode())
    return public


def add_agents(
    path: str | PathLike[str], agents: Sequence[Introduction], *, force: bool = False
) -> tuple[Added, ...]:
    """Add agents to a collection file, all of them or, where one does not fit, none.

    One that is there already with the same address and fingerprint stays as it is.

    Parameters
    ----------
    path : path-like
    agents : sequence of Introduction
    force : bool
        Replace the address and fingerprint of an agent that is there.

    Raises
    ------
    ProblemError
        The file is none, an agent is there with another address or fingerprint, or none can be so.
    """
    name = document_name(path)
    if not Path(path).exists():
        raise ProblemError(f"{name}: no such file; `datacollect collection new` makes one")
    before = text = read_text(path)
    changed = []
    for agent in agents:
        with naming(name):
            edited = _with(text, agent, path, force=force)
        changed.append(edited != text)
        text = edited
    with naming(f"{name}, which is left as it is"):
        collection = Collection.from_dict(_parsed(text, "the file"), folder_of(path))
    if text != before:
        write_atomically(path, text.encode())
    wanted = collection.sources
    return tuple(
        Added(agent.name, is_new, wanted is None or agent.name in wanted)
        for agent, is_new in zip(agents, changed, strict=True)
    )


def _with(text: str, agent: Introduction, path: str | PathLike[str], *, force: bool) -> str:
    """Return the text of the file with an agent in it."""
    tree = _parsed(text, document_name(path))
    known = tree.get("agents", {}) if isinstance(tree, dict) else None
    if not isinstance(known, dict):
        raise ProblemError("is not a collection file; `datacollect collection new` makes one")
    entry = {"url": agent.url, "fingerprint": agent.fingerprint}
    found = known.get(agent.name)
    if found == entry:
        return text
    expected = {**tree, "agents": {**known, agent.name: entry}}
    if found is not None and not force:
        # That a malformed word differs is no reason for --force.
        Collection.from_dict(expected, folder_of(path))
        given = found.get("url") if isinstance(found, dict) else found
        raise ProblemError(
            f"agents.{agent.name}: exists already, at {shown(given)}, with another address or "
            "fingerprint; --force replaces both"
        )
    if _is_json(text):
        return json.dumps(expected, ensure_ascii=False, indent=2) + "\n"
    edited = _appended(text, agent) if found is None else _replaced(text, agent)
    # However the file was written, what comes out must say this and nothing else.
    if not _says(edited, expected):
        raise ProblemError(
            "the table agents has a form to which this command cannot add; write by hand: "
            f"agents.{agent.name} with url = {toml_text(agent.url)} and fingerprint = "
            f"{toml_text(agent.fingerprint)}"
        )
    return edited


def _appended(text: str, agent: Introduction) -> str:
    gap = "\n" if text.endswith("\n") else "\n\n"
    return f"{text}{gap}[agents.{_table_name(agent)}]\n{_rows(agent)}"


def _replaced(text: str, agent: Introduction) -> str:
    """Return the text with other rows in the agent's table, which follow its header."""
    names = {f"[agents.{each}]" for each in (agent.name, f'"{agent.name}"', f"'{agent.name}'")}
    edited: list[str] = []
    inside = False
    for line in text.splitlines(keepends=True):
        if _HEADER.match(line):
            inside = "".join(line.partition("#")[0].split()) in names
            edited.append(line)
            if inside:
                edited.append(_rows(agent))
        elif not (inside and _KEY.match(line)):
            edited.append(line)
    return "".join(edited)


def _says(text: str, tree: Any) -> bool:
    try:
        return bool(parse_toml(text, "") == tree)
    except ProblemError:
        return False


def _rows(agent: Introduction) -> str:
    return f"url = {toml_text(agent.url)}\nfingerprint = {toml_text(agent.fingerprint)}\n"


def _table_name(agent: Introduction) -> str:
    """Return a name as it stands in a header: a dot in it is no step down."""
    return toml_text(agent.name) if "." in agent.name else agent.name


def _is_json(text: str) -> bool:
    return text.lstrip().startswith("{")


def _parsed(text: str, name: str) -> Any:
    return parse_json(text, name) if _is_json(text) else parse_toml(text, name)
