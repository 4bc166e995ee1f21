"""Units at the edges: conversions, and numbers written for people."""

from __future__ import annotations

import math

import pytest

from datacollect.files.units import (
    bytes_per_s_from_bit_per_s,
    bytes_per_s_from_mbit_per_s,
    format_bytes,
    format_duration,
    format_rate,
    format_short_duration,
)


def test_a_byte_has_eight_bits_and_mega_is_a_million():
    assert bytes_per_s_from_bit_per_s(16.0) == 2.0
    assert bytes_per_s_from_mbit_per_s(8.0) == 1_000_000.0
    assert bytes_per_s_from_mbit_per_s(0.0) == 0.0


@pytest.mark.parametrize(
    ("n_bytes", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (999.4, "999.4 B"),
        (1_000, "1 kB"),
        (12_345, "12.35 kB"),
        (999_960, "1 MB"),  # not "1000 kB"
        (2_500_000_000, "2.5 GB"),
        (10**15, "1 PB"),
        (5 * 10**18, "5000 PB"),
        (-1_500, "-1.5 kB"),
        (math.inf, "unlimited"),
    ],
)
def test_bytes_have_decimal_prefixes_and_four_digits(n_bytes, text):
    assert format_bytes(n_bytes) == text


@pytest.mark.parametrize(
    ("rate_bytes_per_s", "text"),
    [
        (0.0, "0 bit/s"),
        (0.125, "1 bit/s"),
        (125.0, "1 kbit/s"),
        (1.25e9, "10 Gbit/s"),
        (math.inf, "unlimited"),
    ],
)
def test_rates_are_written_in_bits(rate_bytes_per_s, text):
    assert format_rate(rate_bytes_per_s) == text


@pytest.mark.parametrize(
    ("duration_s", "text"),
    [
        (0.0, "0 s"),
        (0.0012345, "0.001234 s"),
        (59.99, "59.99 s"),
        (60.0, "1 min 00 s"),
        (119.6, "2 min 00 s"),
        (3599.4, "59 min 59 s"),
        (3600.0, "1 h 00 min"),
        (3661.0, "1 h 01 min"),
        (47 * 3600.0, "47 h 00 min"),
        (48 * 3600.0, "2 days"),
        (1e9, "11600 days"),
        (math.inf, "never"),
    ],
)
def test_durations_are_written_in_the_units_people_use(duration_s, text):
    assert format_duration(duration_s) == text


@pytest.mark.parametrize(
    ("duration_s", "text"),
    [
        (0.0, "0 s"),
        (4.4e-05, "44 µs"),
        (2.5e-09, "2.5 ns"),
        (0.00099996, "1 ms"),
        (0.0012345, "1.234 ms"),
        (0.9994, "999.4 ms"),
        (0.99996, "1 s"),
        (math.inf, "never"),
    ],
)
def test_short_durations_have_units_of_their_own(duration_s, text):
    assert format_short_duration(duration_s) == text


def test_not_a_number_is_not_hidden():
    assert format_bytes(math.nan) == "nan"
    assert format_rate(math.nan) == "nan"
    assert format_duration(math.nan) == "nan"
    assert format_duration(-math.inf) == "-inf"
