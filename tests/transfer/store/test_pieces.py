"""Pieces: every byte of every file is in one piece, whatever the sizes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datacollect.transfer.store.state.pieces import MOST_FILES, Layout, piece_size

UNIT = 65536


def layout_of(*batches, unit=UNIT):
    layout, first = Layout.empty(), 0
    for sizes in batches:
        files = np.arange(first, first + len(sizes))
        layout = layout.extended(files, np.array(sizes, dtype=np.int64), unit)
        first += len(sizes)
    return layout


def bytes_by_file(layout):
    """Every byte that the pieces cover: (file, offset) ranges in order."""
    covered = {}
    for piece in range(len(layout.pieces)):
        spans = list(layout.spans(piece))
        assert sum(span.n_bytes for span in spans) == layout.piece_bytes[piece]
        for span in spans:
            assert covered.get(span.file, 0) == span.offset_bytes, "a gap, or a byte twice"
            covered[span.file] = span.offset_bytes + span.n_bytes
    return covered


@given(
    st.lists(
        st.lists(st.sampled_from([0, 1, 7, UNIT - 1, UNIT, UNIT + 1, 3 * UNIT + 5]), max_size=30),
        max_size=4,
    )
)
def test_pieces_hold_every_byte_once(batches):
    layout = layout_of(*batches)
    sizes = [size for batch in batches for size in batch]
    assert bytes_by_file(layout) == {i: size for i, size in enumerate(sizes) if size}
    assert all(0 < n <= UNIT for n in layout.piece_bytes.tolist())


@given(st.lists(st.integers(0, 4 * UNIT), max_size=20))
def test_files_know_their_pieces(sizes):
    layout = layout_of(sizes)
    spread = {}
    for piece in range(len(layout.pieces)):
        for span in layout.spans(piece):
            spread.setdefault(span.file, []).append(piece)
    for row, file in enumerate(layout.files.tolist()):
        assert list(layout.pieces_of(row)) == spread[file]


def test_many_small_files_make_pieces_of_a_bounded_number_of_files():
    layout = layout_of([1] * 5000)
    held = [len(list(layout.spans(piece))) for piece in range(len(layout.pieces))]
    assert sum(held) == 5000
    assert max(held) == MOST_FILES


@pytest.mark.parametrize(
    ("total", "size"), [(0, 2**16), (2**24, 2**16), (2**24 + 1, 2**17), (2**60, 2**24)]
)
def test_the_size_of_pieces_grows_with_the_data(total, size):
    assert piece_size(total) == size


def test_a_new_batch_leaves_earlier_pieces_as_they_were():
    before = layout_of([100, 70_000])
    after = layout_of([100, 70_000], [5])
    assert after.pieces.tolist()[:2] == before.pieces.tolist()
    assert after.piece_bytes.tolist() == [*before.piece_bytes.tolist(), 5]
