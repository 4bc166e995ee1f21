"""Samples of bandwidth from what ``iperf3 -J`` printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacollect.measurement.reading import read_measurements, with_warnings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    import pandas as pd


def samples_from_iperf3(
    path: str | PathLike[str],
    names: Mapping[str, str] | None = None,
    *,
    skip_failed: bool = False,
) -> pd.DataFrame:
    """Read samples of bandwidth from what ``iperf3 -J`` printed.

    The receiver's figure counts. A reverse test (``-R``) is a sample of the other direction, a
    bidirectional one (``--bidir``) gives two samples. An old iperf3 states of a UDP test the
    sender's figure and the losses; the losses are subtracted. A test counts once, though both
    its ends printed it, or the file holds it twice.

    Parameters
    ----------
    path : path-like
        A file with the output of one test or of several, also between lines of other text, in a
        list, or packed; or a folder, of which all files with such output are read, in order of
        their names, and those of all folders below it. ``-`` is standard input.
    names : mapping from str to str, optional
        Host's name by address. Without it a host's name is its address. A host whose name in
        the problem stands in ``iperf3 -c NAME`` needs no entry. A file ``names.csv`` in a folder,
        with the columns address and host, says more for the folder and all below it.
    skip_failed : bool
        Pass over tests that failed, were cut off or measured nothing, as long as others are good.

    Returns
    -------
    DataFrame
        A row per sample: from, to, time_s (start of the test, seconds since 1970),
        bandwidth_bytes_per_s, bytes, duration_s, streams, kind. Its ``attrs["notes"]`` is
        what else is to be said, which is also warned of.

    Raises
    ------
    ProblemError
        A file holds no iperf3 result, or those of tests that failed: all of them are named.

    Warns
    -----
    DatacollectWarning
        A test given twice, one limited by its own ``-b``, failed ones passed over, and the like.

    Examples
    --------
    >>> import json, tempfile
    >>> from pathlib import Path
    >>> test = {
    ...     "start": {
    ...         "connected": [{"local_host": "10.0.0.1", "remote_host": "10.0.0.2"}],
    ...         "timestamp": {"timesecs": 1_700_000_000},
    ...         "test_start": {"num_streams": 4, "reverse": 0},
    ...     },
    ...     "end": {"sum_received": {"seconds": 8.0, "bytes": 5_000_000, "bits_per_second": 5e6}},
    ... }
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "lyon.json").write_text(json.dumps(test))
    ...     samples = samples_from_iperf3(folder, {"10.0.0.1": "lyon", "10.0.0.2": "geneva"})
    >>> samples[["from", "to", "bandwidth_bytes_per_s", "streams"]].values.tolist()
    [['lyon', 'geneva', 625000.0, 4]]
    """
    return with_warnings(
        read_measurements([path], names=names, skip_failed=skip_failed, tables=False)
    )
