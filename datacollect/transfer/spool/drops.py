"""Wishes of a spool's operator to drop collections: files that the running agent takes."""

from __future__ import annotations

import json
import secrets
import time
from typing import TYPE_CHECKING

from datacollect.errors import TransferError
from datacollect.files.documents import peer_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FOLDER, ENDING = "wishes", ".drop"
TAKEN_WITHIN_S, LOOK_S = 15.0, 0.1


def wish_drop(folder: Path, collection: str | None) -> None:
    """Have the agent that holds a spool drop a collection, or all, and wait until it has.

    Raises
    ------
    TransferError
        It does not.
    """
    wishes = folder / FOLDER
    wishes.mkdir(mode=0o700, exist_ok=True)
    path = wishes / f"{secrets.token_hex(8)}{ENDING}"
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps({"collection": collection}), encoding="utf-8")
    beside.replace(path)
    until_s = time.monotonic() + TAKEN_WITHIN_S
    while path.exists():
        if time.monotonic() > until_s:
            path.unlink(missing_ok=True)
            raise TransferError(
                f"{folder}: the process that holds the spool does not answer; stop the agent, and "
                "start this command again"
            )
        time.sleep(LOOK_S)


def take_drops(folder: Path) -> Iterator[str | None]:
    """Yield each collection that is to be dropped, None for all; what was yielded is done then."""
    wishes = folder / FOLDER
    if not wishes.is_dir():
        return
    for path in sorted(wishes.iterdir()):
        if path.suffix == ENDING:
            tree = peer_json(path.read_bytes())
            if isinstance(tree, dict) and "collection" in tree:
                yield tree["collection"]
            path.unlink(missing_ok=True)
