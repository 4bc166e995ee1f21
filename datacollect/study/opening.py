"""Lock of a sweep's folder: one experiment, one sweep at a time."""

from __future__ import annotations

import json
import secrets
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datacollect.errors import ProblemError
from datacollect.files.documents import not_made, write_atomically
from datacollect.study.axes import Axis
from datacollect.study.growth import grown_axes
from datacollect.study.identity import sha256_of
from datacollect.study.starts import installed
from datacollect.study.store import EXPERIMENT_FILE, FOLDERS, RunStore, experiment_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from os import PathLike
    from typing import TextIO

    from datacollect.study.experiment import Experiment


@contextmanager
def opened(
    experiment: Experiment,
    folder: str | PathLike[str],
    versions: Mapping[str, str],
    *,
    file: str = "",
    command: str = "",
) -> Iterator[RunStore]:
    """Hold the folder of an experiment for one sweep; make it where there is none.

    Dying lets go of it, too. ``file`` is where the experiment was read from, ``command`` what this
    start was asked for. Where the folder has labels of the axes that the experiment has not, it
    keeps them (`datacollect.study.growth`).

    Raises
    ------
    ProblemError
        It holds another experiment, another sweep holds it, or it cannot be written.
    """
    root = Path(folder)
    _before(root, experiment, versions)
    make_folder(root, "results", FOLDERS)
    with _lock(root):
        found, grown = _before(root, experiment, versions)
        token = found.get("token") or secrets.token_hex(8)
        sha256 = _sha256(grown, versions)
        first = found.get("first_sha256") or found.get("sha256") or sha256
        hashes = {"sha256": sha256, "first_sha256": first}
        own = {"versions": dict(versions), **hashes, "token": token, "file": file}
        own["starts"] = _starts(found, command)
        text = json.dumps(grown.to_dict() | own, indent=2, ensure_ascii=False)
        write_atomically(root / EXPERIMENT_FILE, f"{text}\n".encode())
        for half in root.glob(".*.tmp"):  # of a start that was killed
            half.unlink()
        yield RunStore(root, first, tuple(axis.name for axis in grown.axes), token)


def make_folder(folder: Path, what: str, inner: Iterable[str] = ("",)) -> None:
    """Make a folder that users name, and folders in it, if need be.

    Raises
    ------
    ProblemError
        It cannot be made.
    """
    try:
        for name in inner:
            (folder / name).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise not_made(folder, error, f"the folder of {what} ") from None


def _before(
    root: Path, experiment: Experiment, versions: Mapping[str, str]
) -> tuple[dict[str, Any], Experiment]:
    """Return what a folder says of its experiment, {} where there is none, and both together."""
    file = root / EXPERIMENT_FILE
    found = experiment_in(root)
    if found is None and file.exists():
        raise ProblemError(f"{file}: cannot be read as JSON; sweep into another folder")
    if found is None or found.get("sha256") == _sha256(experiment, versions):
        return found or {}, experiment
    try:
        axes = tuple(Axis.from_dict(axis) for axis in found["axes"])
    except (KeyError, TypeError):
        raise ProblemError(f"{file}: names no axes; sweep into another folder") from None
    # All else is the same where the folder's own axes make the folder's own hash.
    if found.get("sha256") != _sha256(replace(experiment, axes=axes), versions):
        raise ProblemError(f"{root}: {_what_differs(found, experiment, versions)}")
    try:
        return found, experiment.with_axes(grown_axes(axes, experiment.axes))
    except ProblemError as error:
        raise ProblemError(
            f"{root}: the folder holds results of other axes: {error}; or sweep into another "
            f"folder, with --reuse {root}"
        ) from None


def _sha256(experiment: Experiment, versions: Mapping[str, str]) -> str:
    return sha256_of({"experiment": experiment.sha256, "versions": dict(versions)})


def _starts(found: Mapping[str, Any], command: str) -> list[dict[str, Any]]:
    """Return command lines and versions of all starts so far, each once."""
    starts = list(found.get("starts") or ())
    start = {"command": command, "versions": installed()}
    return starts if start in starts else [*starts, start]


def _lock(folder: Path) -> TextIO:
    """Hold the folder; closing what is returned lets go of it."""
    import fcntl

    file = (folder / ".lock").open("w", encoding="utf-8")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise ProblemError(
            f"{folder}: another sweep is running in this folder; wait for it, or stop it"
        ) from None
    return file


def _what_differs(
    before: Mapping[str, Any], experiment: Experiment, versions: Mapping[str, str]
) -> str:
    remedy = "sweep into another folder"
    if before.get("name") != experiment.name:
        return (
            f"the folder holds results of the experiment {before.get('name')!r}, not "
            f"{experiment.name!r}; {remedy}"
        )
    old = before.get("versions") or {}
    for name in sorted({*old, *versions}):
        if old.get(name) != versions.get(name):
            return (
                f"the folder holds results of {name} {old.get(name, 'none')}, here is "
                f"{versions.get(name, 'none')}; {remedy}, or install that version"
            )
    old, new = before, json.loads(json.dumps(experiment.to_dict()))
    parts = [part for part in ("engine", "scenario", "grids") if old.get(part) != new[part]]
    return (
        f"the folder holds results of another experiment of the name {experiment.name!r}: "
        f"{' and '.join(parts) or 'the files that it names'} differ; {remedy}"
    )
