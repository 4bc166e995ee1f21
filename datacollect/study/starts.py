"""Starts of a sweep: the command line that requests it, and the versions that it met."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from datacollect.scenario.outcome import versions
from datacollect.solvers.registry import preferred_packages

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from os import PathLike

# What results are computed and written with, besides what a run notes of itself.
PACKAGES = ("scipy", "pandas", "pyarrow", *preferred_packages())


def sweep_command(
    file: str,
    folder: str | PathLike[str],
    *,
    scale: float | None = None,
    probe_scale: float | None = None,
    seeds: int | None = None,
    only: Mapping[str, Sequence[str]] | None = None,
    data: str | PathLike[str] | None = None,
    reuse: Iterable[str | PathLike[str]] = (),
    retry_failed: bool = False,
) -> str:
    """Return the command that asks for a sweep, ready to be typed.

    >>> sweep_command("a.toml", "out", seeds=3, only={"rate": ["1", "2"]}, reuse=["old"])
    'datacollect sweep a.toml -o out --seeds 3 --only rate=1,2 --reuse old'
    """
    from datacollect.study.axes import listed_labels

    words = ["datacollect", "sweep", file, "-o", str(folder)]
    words += [] if scale is None else ["--scale", f"{scale:g}"]
    words += [] if probe_scale is None else ["--probe-scale", f"{probe_scale:g}"]
    words += [] if seeds is None else ["--seeds", str(seeds)]
    for axis, labels in (only or {}).items():
        words += ["--only", f"{axis}={listed_labels(labels)}"]
    words += [] if data is None else ["--data", str(data)]
    for other in reuse:
        words += ["--reuse", str(other)]
    return shlex.join([*words, *(["--retry-failed"] if retry_failed else [])])


def installed() -> dict[str, str]:
    """Return the versions here of what results are made with, as far as it is installed."""
    from importlib.metadata import PackageNotFoundError, version

    found = dict(versions())
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
