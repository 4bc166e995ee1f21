"""Transfers as columns: sorted when built, of equal length, read-only."""

from __future__ import annotations

import numpy as np
import pytest

import datacollect as dc

COLUMNS = {
    "route": [1, 0, 0],
    "hop": [0, 1, 0],
    "offset_bytes": [0, 0, 5],
    "n_bytes": [4, 2, 1],
    "start_s": [3.0, 1.0, 1.0],
    "finish_s": [4.0, 2.0, 2.0],
}


def test_rows_are_sorted_by_start_route_and_hop_with_one_stream_each():
    built = dc.Transfers.build(**COLUMNS)
    assert built.start_s.tolist() == [1.0, 1.0, 3.0]
    assert built.hop.tolist() == [0, 1, 0]
    assert built.n_bytes.tolist() == [1, 2, 4]
    assert built.streams.tolist() == [1, 1, 1]
    assert len(built) == 3


def test_streams_move_with_their_rows():
    assert dc.Transfers.build(**COLUMNS, streams=[7, 8, 9]).streams.tolist() == [9, 8, 7]


def test_an_unknown_or_missing_column_is_named_beside_all_known():
    with pytest.raises(dc.ProblemError, match=r"columns must be route, hop, .* got .*start_hour"):
        dc.Transfers.build(**COLUMNS, start_hour=[0, 0, 0])
    few = {name: column for name, column in COLUMNS.items() if name != "finish_s"}
    with pytest.raises(dc.ProblemError, match=r"columns must be .*finish_s"):
        dc.Transfers.build(**few)


def test_columns_of_unequal_length_are_refused():
    arrays = {name: np.array(column) for name, column in COLUMNS.items()}
    with pytest.raises(dc.ProblemError, match=r"column streams must have 3 rows, got \(2,\)"):
        dc.Transfers(**arrays, streams=np.ones(2))


def test_columns_cannot_be_written_to_but_what_they_came_from_can():
    sizes = np.array([4, 2, 1])
    arrays = {name: np.array(column) for name, column in COLUMNS.items()} | {"n_bytes": sizes}
    transfers = dc.Transfers(**arrays, streams=np.ones(3, dtype=np.int64))
    with pytest.raises(ValueError, match="read-only"):
        transfers.n_bytes[0] = 5
    sizes[0] = 4  # still writeable
