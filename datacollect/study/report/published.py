"""A sweep's rows as a repository keeps them: one file, with what was run; and its measurements.

The folder is one of a sweep like any other: `datacollect report` makes every table, interval and
verdict from it again, and `datacollect sweep --reuse` goes on from it elsewhere. Schedules and
storage over time are not in it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from datacollect.errors import ProblemError
from datacollect.study.folded import DOCUMENTS_FILE, ROWS_FILE, write_documents, write_table
from datacollect.study.opening import make_folder
from datacollect.study.store import EXPERIMENT_FILE

if TYPE_CHECKING:
    from os import PathLike

    from datacollect.study.report.folders import SweepFolder


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
        The folder: ``results.parquet`` with all columns, and what was run in its metadata;
        ``documents.parquet`` with what was measured in ns-3, which takes longest to repeat.

    Raises
    ------
    ProblemError
        It cannot be made or written, or is the folder of a sweep itself.
    """
    root = Path(folder)
    if (root / EXPERIMENT_FILE).exists():
        raise ProblemError(f"{root}: is the folder of a sweep; publish its rows into another")
    make_folder(root, "published rows")
    write_table(root / ROWS_FILE, sweep.table, sweep.tree)
    measured = [
        (f"probes/{name}", text) for name, text in sorted(sweep.store.measurements().items())
    ]
    if measured:
        write_documents(root / DOCUMENTS_FILE, measured)
    return root
