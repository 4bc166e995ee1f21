"""A sweep's rows as a repository keeps them: one per run, compressed text, and what was run.

The folder is one of a sweep like any other: `datacollect report` makes every table, interval and
verdict from it again. Schedules, measurements and storage over time are not in it.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING

from datacollect.documents import write_atomically
from datacollect.study.store import ROWS_FILE, make_folder

if TYPE_CHECKING:
    from os import PathLike

    from datacollect.study.report.folders import SweepFolder

# What names a folder or a machine, and shapes no result.
PRIVATE = ("token",)


def publish(sweep: SweepFolder, folder: str | PathLike[str]) -> Path:
    """Write a sweep's rows and its experiment into a folder, which is made if need be.

    The same rows give the same bytes, so that a repository sees no change where there is none.

    Parameters
    ----------
    sweep : SweepFolder
    folder : path-like

    Returns
    -------
    Path
        The folder: ``experiment.json``, and ``results.csv.gz`` with all columns, numbers to the
        last digit.

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
    write_atomically(root / ROWS_FILE, gzip.compress(rows.encode(), mtime=0))
    return root
