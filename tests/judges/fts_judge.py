"""Judge of FTS's jobs before it copies anything, from its own sources, and nothing of ours.

- The REST server (fts-rest-flask, 2024): ``lib/api/submit_schema.py``, kept here as
  ``instances/fts_submit_schema.json``; ``lib/JobBuilder.py`` and ``lib/JobBuilder_utils.py``.
- The database (fts3, 2024): ``src/db/schema/mysql/fts-schema-9.1.0.sql``.
- The server (fts3, 2024): ``UrlCopyCmd::generateParameters`` and ``ExecuteProcess::getArgv``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import jsonschema

_SCHEMA = json.loads(
    (Path(__file__).parents[1] / "instances/fts_submit_schema.json").read_text(encoding="utf-8")
)
# Parameters that JobBuilder knows, and the published schema, which is open, does not list.
_NOT_LISTED = {
    name: {"type": ["boolean", "null"]}
    for name in ("overwrite_hop", "overwrite_on_retry", "overwrite_when_only_on_disk")
}
_OVERWRITES = ("overwrite", *_NOT_LISTED)


@dataclass(frozen=True)
class Transfer:
    """One copy: what ``fts_url_copy`` is told."""

    source: str
    destination: str
    checksum: str
    mode: str
    overwrite: bool


def transfers(tree: dict[str, Any]) -> list[Transfer]:
    """Return the copies of a job, one after another; ValueError where FTS refuses it."""
    jsonschema.validate(tree, _closed(_SCHEMA))
    params, files = tree["params"], tree["files"]
    asked = [name for name in _OVERWRITES if params.get(name)]
    if len(asked) > 1:
        raise ValueError("Incompatible overwrite flags used at the same time")
    if asked == ["overwrite_hop"] and not params["multihop"]:
        raise ValueError("'overwrite-hop' requires multihop job submission")
    if not files:
        raise ValueError("No valid pairs available")
    mode = _checksum_mode(params.get("verify_checksum") or False, files)
    found = []
    for k, file in enumerate(files):
        is_last = k == len(files) - 1
        overwrite = asked == ["overwrite"] or (asked == ["overwrite_hop"] and not is_last)
        (source,), (destination,) = file["sources"], file["destinations"]
        found.append(
            Transfer(
                _on_the_command_line("source", _stored(source)),
                _on_the_command_line("destination", _stored(destination)),
                file.get("checksum") or "ADLER32",
                mode,
                overwrite,
            )
        )
    return found


def _closed(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with nothing allowed that it does not know."""
    params, files = schema["properties"]["params"], schema["properties"]["files"]
    closed = {"additionalProperties": False}
    known = params["properties"] | _NOT_LISTED
    return schema | {
        "properties": {
            "params": params | closed | {"properties": known},
            "files": files | {"items": files["items"] | closed},
        },
        **closed,
    }


def _checksum_mode(verify: bool, files: list[dict[str, Any]]) -> str:
    """Return what ``JobBuilder._check_checksum`` makes of it: the last file's checksum decides."""
    if verify:
        return "both"
    return "target" if files[-1].get("checksum") else "none"


def _stored(address: str) -> str:
    """Return what the database has of an address."""
    url = urlparse(address.strip())
    if not url.scheme or url.scheme == "file":
        raise ValueError(f"no scheme that FTS takes: {address!r}")
    if not url.path or (url.path == "/" and not url.query) or not url.hostname:
        raise ValueError(f"no host or no path: {address!r}")
    stored = url.geturl()
    if len(stored) > 1100:
        raise ValueError(f"more than 1100 characters: {stored!r}")
    return stored


def _on_the_command_line(option: str, value: str) -> str:
    """Return what ``fts_url_copy`` reads of an option."""
    arguments = f" --{option} {value}".split(" ")
    return arguments[arguments.index(f"--{option}") + 1]
