"""A sweep's rows as a repository keeps them: one per run, compressed text, and what was run.

The folder is one of a sweep like any other: `datacollect report` makes every table, interval and
verdict from it again, and `datacollect sweep --reuse` goes on from it elsewhere. Schedules and
storage over time are not in it.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING

from datacollect.files.documents import write_atomically
from datacollect.study.store import PACKED, ROWS_FILE, make_folder

if TYPE_CHECKING:
    from os import PathLike

    from datacollect.study.report.folders import SweepFolder

# What names a folder or a machine, and shapes no result.
PRIVATE = ("token",)


def publish(sweep: SweepFolder, folder: str | PathLike[str]) -> Path:
    """Write a sweep's rows, measurements and experiment into a folder, which is made if need be.

    The same rows give the same bytes, so that a repository sees no change where there is none.

    Parameters
    ----------
    sweep : SweepFolder
    folder : path-like

    Returns
    -------
    Path
        The folder: ``experiment.json``, ``results.csv.gz`` with all columns, numbers to the
        last digit, and ``probes`` with what was measured in ns-3, which takes longest to repeat.

    Raises
    ------
    ProblemError
        It cannot be made or written.
    """
    root = Path(folder)
    make_folder(root, "published rows")
    tree = {key: value for key, value in sweep.tree.items() if key not in PRIVATE}
    text = json.dumps(tree, indent=1, ensure_ascii=False)
    write_atomically(root / "experiment.json", f"{text}\n".encode())
    rows = sweep.table.sort_values("key").to_csv(index=False, lineterminator="\n")
    write_atomically(root / ROWS_FILE, _packed(rows.encode()))
    measured = sorted(sweep.store.probes.glob("*.json"))
    if measured:
        make_folder(root / "probes", "published measurements")
    for file in measured:
        write_atomically(root / "probes" / f"{file.name}{PACKED}", _packed(file.read_bytes()))
    return root


def _packed(text: bytes) -> bytes:
    return gzip.compress(text, mtime=0)
