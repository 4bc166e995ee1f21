"""Samples: measurements of bandwidth between hosts, as a table with a row each.

Columns:

- ``from``, ``to``: names of hosts,
- ``time_s``: when, in seconds on any one clock,
- ``bandwidth_bytes_per_s``: what the receiver got,
- where known ``bytes``, ``duration_s``, ``streams``, ``concurrency`` (how many other tests ran
  at the same time) and ``kind`` (protocol, and whether both directions were tested at once).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacollect.measurement.reading import read_measurements, with_warnings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    import pandas as pd


def read_samples(
    path: str | PathLike[str],
    columns: Mapping[str, str] | None = None,
    *,
    only: Mapping[str, str] | None = None,
    times: bool = True,
    skip_failed: bool = False,
) -> pd.DataFrame:
    r"""Read samples from a file, whatever it is called: a table, or what a tool printed as JSON.

    Parameters
    ----------
    path : path-like
        A table with a header, separated by commas, semicolons or tabs: ``from``, ``to``;
        ``time_s`` (a number) or ``time`` (ISO 8601; UTC where no offset is given); exactly one of
        ``bandwidth_bytes_per_s``, ``bandwidth_bit_per_s``, ``bandwidth_mbit_per_s``,
        ``bandwidth_gbit_per_s`` and the like, > 0; optionally ``bytes``, ``duration_s``,
        ``streams``, ``concurrency``, ``kind``. Skyplane's grids and perfSONAR's CSV are read
        as they are (`datacollect.measurement.table_kinds`), and so are the outputs of
        ``iperf3 -J`` and what perfSONAR's archivers keep. ``-`` is standard input; a folder is read
        file by file, with all folders below it.
    columns : mapping from str to str, optional
        What columns of the table are here, such as ``{"src": "from"}``. Columns that have another
        name and are not in it are left out.
    only : mapping from str to str, optional
        Rows count where a column of the table has this value, such as ``{"src_tier": "PREMIUM"}``.
    times : bool
        False: samples count as equally old, in the file's order; the table needs no times.
    skip_failed : bool
        Pass over tests that failed or measured nothing, as long as others are good.

    Returns
    -------
    DataFrame
        The samples in the file's order; ``time`` becomes ``time_s``, seconds since 1970. Its
        ``attrs["notes"]`` is what else is to be said, which is also warned of.

    Raises
    ------
    ProblemError
        The file breaks a rule; the message names file, line, rule, value and remedy.

    Warns
    -----
    DatacollectWarning
        Rows that are no samples, failed tests passed over, and the like.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "probes.csv")
    ...     _ = file.write_text(
    ...         "from,to,time,bandwidth_mbit_per_s\n"
    ...         "lyon,geneva,2024-05-01T12:00:00Z,40\n"
    ...     )
    ...     samples = read_samples(file)
    >>> samples.values.tolist()
    [['lyon', 'geneva', 1714564800.0, 5000000.0]]
    """
    return with_warnings(
        read_measurements([path], columns=columns, only=only, times=times, skip_failed=skip_failed)
    )
