from hypothesis import given
from hypothesis import strategies as st

from datacollect.numbers.byte_ranges import ByteRanges

RANGES = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12)), max_size=12)


@given(RANGES, st.integers(0, 40), st.integers(0, 12))
def test_byte_ranges_are_a_set_of_bytes(ranges, offset, n_bytes):
    """Against Python's sets, byte by byte."""
    there, expected = ByteRanges(), set()
    for start, size in ranges:
        new = set(range(start, start + size)) - expected
        assert there.add(start, size) == len(new)
        expected |= new
    assert there.total_bytes == len(expected)
    missing = [
        b for start, size in there.missing(offset, n_bytes) for b in range(start, start + size)
    ]
    assert missing == sorted(set(range(offset, offset + n_bytes)) - expected)
    end = there.end_after(offset)
    assert (end is not None) == (offset in expected)
    if end is not None:
        assert set(range(offset, end)) <= expected
        assert end not in expected
