"""Actions of the command of spools, however its arguments were read."""

from __future__ import annotations

import time
from textwrap import fill
from typing import TYPE_CHECKING

from datacollect.commands.streams import emit, emit_json
from datacollect.errors import ProblemError, nearest_hint
from datacollect.files.kinds import shown
from datacollect.files.units import counted, format_bytes, format_duration

if TYPE_CHECKING:
    from datacollect.transfer.agent.config.file import SpoolConfig
    from datacollect.transfer.spool.store import SpooledCollection

COLUMNS = 80


def list_spool(agent_file: str, collection: str | None, *, as_json: bool) -> None:
    """Say what the spool of an agent's file keeps, whether the agent runs or not.

    Parameters
    ----------
    agent_file : str
    collection : str or None
        Of this one alone, as its collector calls it in tickets.
    as_json : bool

    Raises
    ------
    ProblemError
        The file has no spool, or nothing of that collection is known there.
    """
    _, spool = _spool_of(agent_file)
    found = _found(spool, collection)
    if as_json:
        emit_json({"folder": str(spool.folder), "collections": [_facts(each) for each in found]})
        return
    if not found:
        emit(f"{agent_file}: the agent's spool is empty")
    for each in found:
        emit(fill(_line(each), COLUMNS, subsequent_indent="  ", break_on_hyphens=False))


def drop_spool(agent_file: str, collection: str | None, *, as_json: bool) -> None:
    """Drop what the spool of an agent's file keeps of a collection, or of all.

    The destination is told at its next contact, and fetches that from its source again.

    Parameters
    ----------
    agent_file : str
    collection : str or None
    as_json : bool

    Raises
    ------
    ProblemError
        As `list_spool`.
    TransferError
        The agent that holds the spool does not answer.
    """
    from datacollect.files.held_folder import Held
    from datacollect.transfer.spool.drops import wish_drop
    from datacollect.transfer.spool.store import DROPPED, SpoolStore

    name, spool = _spool_of(agent_file)
    going = [each for each in _found(spool, collection) if each.pieces]
    try:
        held = Held(spool.folder) if going else None
    except ProblemError:  # the agent has it
        wish_drop(spool.folder, collection)
    else:
        if held is not None:
            store = SpoolStore(held, name, spool.most_bytes)
            try:
                for number in store.numbers_of(collection):
                    store.drop(number, DROPPED)
            finally:
                store.close()
    pieces, n_bytes = sum(each.pieces for each in going), sum(each.n_bytes for each in going)
    if as_json:
        emit_json({"pieces": pieces, "bytes": n_bytes})
    else:
        emit(f"dropped {counted(pieces, 'piece')}, {format_bytes(n_bytes)}")


def _spool_of(agent_file: str) -> tuple[str, SpoolConfig]:
    from datacollect.transfer.agent.config.file import AgentConfig

    config = AgentConfig.from_file(agent_file)
    if config.spool is None:
        raise ProblemError(
            f"{agent_file}: the agent keeps nothing; give it room: "
            'spool = { folder = "spool", bytes = 50_000_000_000 }'
        )
    return config.name, config.spool


def _found(spool: SpoolConfig, collection: str | None) -> list[SpooledCollection]:
    from datacollect.transfer.spool.store import collections_of

    every = collections_of(spool.folder)
    found = [each for each in every if collection in (None, each.name)]
    if collection is not None and not found:
        names = [each.name for each in every]
        raise ProblemError(
            f"--collection must be one that is known in {spool.folder}, got {shown(collection)}"
            f"{nearest_hint(collection, names)}; `datacollect spool list` names them"
        )
    return found


def _facts(each: SpooledCollection) -> dict[str, object]:
    return {
        "collection": each.name,
        "collector": each.issuer,
        "pieces": each.pieces,
        "bytes": each.n_bytes,
        "oldest_s": each.oldest_s,
        "until_s": each.until_s,
        "expired": {"pieces": each.expired.pieces, "bytes": each.expired.n_bytes},
        "dropped": {"pieces": each.dropped.pieces, "bytes": each.dropped.n_bytes},
    }


def _line(each: SpooledCollection) -> str:
    now_s = time.time()
    what = f"{each.name}: {counted(each.pieces, 'piece')}, {format_bytes(each.n_bytes)}"
    if each.oldest_s is not None:
        age, left = max(now_s - each.oldest_s, 0.0), max(each.until_s - now_s, 0.0)
        what += f", the oldest of {format_duration(age)} ago, kept for {format_duration(left)} more"
    for lost, how in ((each.expired, "expired"), (each.dropped, "were dropped")):
        if lost.pieces:
            what += f"; {counted(lost.pieces, 'piece')} {how}, {format_bytes(lost.n_bytes)}"
    return what
