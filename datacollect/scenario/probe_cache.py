"""Measurements that are kept: in this process, and in a folder for the next one."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datacollect.files.documents import not_made, write_atomically

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from os import PathLike

    import pandas as pd

# Those of this process, so that all methods of a setting share one measurement; the last ones.
MOST_KNOWN = 64
_KNOWN: dict[str, Measurement] = {}


@dataclass(frozen=True, eq=False)
class Measurement:
    """Samples of all ordered pairs of hosts, and what they cost.

    Attributes
    ----------
    samples : DataFrame
        As `datacollect.measurement.samples` describes, with bytes, duration_s, streams and
        concurrency.
    cost : dict
        probes, bytes, simulated_s (as they ran one after another), cpu_s, engine, from_cache.
    sha256 : str
        Hash of all that shaped the samples.
    """

    samples: pd.DataFrame
    cost: dict[str, Any] = field(default_factory=dict)
    sha256: str = ""


def cache_folder() -> Path:
    """Return where the command line keeps measurements: the user's cache folder."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root, "datacollect")


def measured_once(
    sha256: str, folder: str | PathLike[str] | None, measure: Callable[[], Measurement]
) -> Measurement:
    """Return what was measured before under a hash; if nothing was, measure and keep it.

    Parameters
    ----------
    sha256 : str
        Hash of all that shapes the samples.
    folder : path-like, optional
        Where to look for it, and to keep it, besides in this process.
    measure : callable

    Raises
    ------
    NotWrittenError
        The folder cannot be made, or the file not be written.
    """
    if sha256 in _KNOWN:
        return _KNOWN[sha256]
    file = None if folder is None else Path(folder, f"probes-{sha256}.json")
    found = None if file is None else _read(file, sha256)
    if found is None:
        found = measure()
        if file is not None:
            _write(file, found)
    _KNOWN[sha256] = found
    while len(_KNOWN) > MOST_KNOWN:
        del _KNOWN[next(iter(_KNOWN))]
    return found


def _read(file: Path, sha256: str) -> Measurement | None:
    """Read a cached measurement; one that is damaged counts as absent."""
    import pandas as pd

    try:
        tree: Mapping[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        samples = pd.DataFrame(tree["samples"])
        return Measurement(samples, {**tree["cost"], "from_cache": True}, sha256)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write(file: Path, found: Measurement) -> None:
    tree = {"cost": found.cost, "samples": found.samples.to_dict("list")}
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise not_made(file.parent, error, "the folder for measurements ") from None
    write_atomically(file, json.dumps(tree).encode())
