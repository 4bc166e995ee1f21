"""Measure calls in processes of their own; write and read tables of results.

Times are processor time of the process: what else the machine does counts little, and all that is
measured here works on one core.
"""

from __future__ import annotations

import csv
import gc
import json
import os
import platform
import resource
import shlex
import subprocess
import sys
import time
from datetime import UTC, datetime
from importlib import metadata
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

Result = TypeVar("Result")

PACKAGES = ("datacollect", "numpy", "scipy", "ortools", "pylmcf", "networkx")


def timed(call: Callable[..., Result], *arguments, **options) -> tuple[float, Result]:
    """Return the seconds of processor time that a call takes, and what it returns."""
    gc.collect()
    began = time.process_time()
    result = call(*arguments, **options)
    return time.process_time() - began, result


def children_s() -> float:
    """Return the seconds of processor time that processes begun by this one, and ended, took."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def peak_memory_mb() -> float:
    """Return the most memory that this process has used so far, in 10^6 bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak * (1 if sys.platform == "darwin" else 1024) / 1e6


def in_own_process(script: str, task: Sequence[object]) -> dict[str, Any]:
    """Run ``script --task TASK``, which prints one JSON object, and return that.

    The peak memory of a process is then its own, and nothing is remembered from the task before.
    """
    command = [sys.executable, script, "--task", json.dumps(task)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


# Tables -------------------------------------------------------------------------------------


def notes() -> list[str]:
    """Say what was run when and where; the machine is described, not named."""
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    described = (
        f"{os.cpu_count()} cores ({platform.machine()}), {memory_gb:.0f} GB of memory, "
        f"{platform.system()}, load {os.getloadavg()[0]:.1f} at the start"
    )
    return [
        f"command: python {shlex.join(sys.argv)}",
        f"date: {datetime.now(UTC).date()}",
        f"machine: {described}",
        f"versions: Python {platform.python_version()}, {', '.join(map(version, PACKAGES))}",
    ]


def block(lines: Sequence[str]) -> str:
    """Show notes as they are."""
    return "\n".join(("```text", *lines, "```"))


def version(package: str) -> str:
    try:
        return f"{package} {metadata.version(package)}"
    except metadata.PackageNotFoundError:
        return f"{package} not installed"


def write(
    comments: Sequence[str], columns: Sequence[str], rows: Sequence[dict[str, object]], path: Path
) -> None:
    """Write comments, then the table."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        file.writelines(f"# {comment}\n" for comment in comments)
        writer = csv.DictWriter(file, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: written(value) for key, value in row.items()} for row in rows)


def written(value: object) -> str:
    """Write a cell of the results: four digits are plenty."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def read(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    """Read comments and table."""
    with path.open(newline="", encoding="utf-8") as file:
        lines = file.readlines()
    comments = [line[2:].rstrip() for line in lines if line.startswith("# ")]
    return comments, list(csv.DictReader(line for line in lines if not line.startswith("# ")))


def markdown(header: Sequence[str], rows: Sequence[Sequence[object]], n_left: int = 1) -> str:
    """Lay out a table; the first `n_left` columns hold words, the others numbers."""
    marks = ["---" if i < n_left else "--:" for i in range(len(header))]
    return "\n".join(f"| {' | '.join(map(str, cells))} |" for cells in (header, marks, *rows))


def in_words(seconds: float) -> str:
    """Write a duration with three digits.

    >>> in_words(0.01234), in_words(12.34)
    ('12.3 ms', '12.3 s')
    """
    if seconds < 1:
        return f"{1000 * seconds:.3g} ms"
    return f"{seconds:.3g} s" if seconds < 1000 else f"{seconds:.0f} s"
