"""Units at the edges: inside the library all is bytes, seconds and bytes per second."""

from __future__ import annotations

import math

BITS_PER_BYTE = 8
BYTES_PER_GB = 10**9


def bytes_per_s_from_bit_per_s(rate_bit_per_s: float) -> float:
    """Convert bits per second to bytes per second.

    >>> bytes_per_s_from_bit_per_s(8e6)
    1000000.0
    """
    return rate_bit_per_s / BITS_PER_BYTE


def bytes_per_s_from_mbit_per_s(rate_mbit_per_s: float) -> float:
    """Convert megabits (10^6 bits) per second to bytes per second.

    >>> bytes_per_s_from_mbit_per_s(2.5)
    312500.0
    """
    return rate_mbit_per_s * 1e6 / BITS_PER_BYTE


# An exabyte per second: all bytes that a problem can hold pass within five seconds.
FASTEST_BYTES_PER_S = 1e18

# Columns of tables that hold bandwidths, and what their unit is in bytes per second: exact, so
# that each number is rounded once.
BYTES_PER_S = {
    "bandwidth_bytes_per_s": 1.0,
    "bandwidth_bit_per_s": bytes_per_s_from_bit_per_s(1.0),
    "bandwidth_kbit_per_s": bytes_per_s_from_bit_per_s(1e3),
    "bandwidth_mbit_per_s": bytes_per_s_from_mbit_per_s(1.0),
    "bandwidth_gbit_per_s": bytes_per_s_from_bit_per_s(1e9),
    "bandwidth_tbit_per_s": bytes_per_s_from_bit_per_s(1e12),
    "bandwidth_kbytes_per_s": 1e3,
    "bandwidth_mbytes_per_s": 1e6,
    "bandwidth_gbytes_per_s": 1e9,
}


def format_bytes(n_bytes: float) -> str:
    """Write an amount of data for people, in decimal units.

    >>> format_bytes(350_000_000), format_bytes(12)
    ('350 MB', '12 B')
    """
    return _with_prefix(n_bytes, "B")


def format_rate(rate_bytes_per_s: float) -> str:
    """Write a rate for people, in bits per second as network users do.

    >>> format_rate(312_500)
    '2.5 Mbit/s'
    """
    return _with_prefix(rate_bytes_per_s * BITS_PER_BYTE, "bit/s")


def format_duration(duration_s: float) -> str:
    """Write a duration for people.

    >>> format_duration(0.25), format_duration(75), format_duration(7322), format_duration(1e9)
    ('0.25 s', '1 min 15 s', '2 h 02 min', '11600 days')
    """
    if not math.isfinite(duration_s):
        return "never" if duration_s > 0 else str(duration_s)
    if duration_s < 60:
        return f"{duration_s:.4g} s"
    minutes, seconds = divmod(round(duration_s), 60)
    if minutes < 60:
        return f"{minutes} min {seconds:02d} s"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes:02d} min"
    return f"{float(f'{hours / 24:.3g}'):.15g} days"


def format_short_duration(duration_s: float) -> str:
    """Write a duration for people that may be far below a second, such as a round trip.

    >>> format_short_duration(2.15e-05), format_short_duration(0.02), format_short_duration(75)
    ('21.5 µs', '20 ms', '1 min 15 s')
    """
    for power, prefix in ((1, "m"), (2, "µ"), (3, "n")):
        # As above: 999.96 µs is 1 ms.
        if 0.9995 > abs(duration_s) >= 0.9995 * 1000**-power:
            return f"{duration_s * 1000**power:.4g} {prefix}s"
    return format_duration(duration_s)


def format_significant(value: float) -> str:
    """Write a number with four significant digits, up to 10^15 without an exponent.

    >>> format_significant(123456.7), format_significant(0.061749), format_significant(2.0)
    ('123500', '0.06175', '2')
    """
    return f"{float(f'{value:.4g}'):.15g}"


def counted(number: int, one: str, several: str | None = None) -> str:
    """Write a number of things for people; `several` where an s does not make the plural.

    >>> counted(1, "link"), counted(12, "link"), counted(3, "copy", "copies")
    ('1 link', '12 links', '3 copies')
    """
    return f"{number} {one if number == 1 else several or one + 's'}"


def _with_prefix(value: float, unit: str) -> str:
    if not math.isfinite(value):
        return "unlimited" if value > 0 else str(value)
    for power, prefix in ((5, "P"), (4, "T"), (3, "G"), (2, "M"), (1, "k")):
        # 0.9995: 999.96 k would otherwise print as "1000 k"
        if abs(value) >= 0.9995 * 1000**power:
            return f"{value / 1000**power:.4g} {prefix}{unit}"
    return f"{value:.4g} {unit}"
