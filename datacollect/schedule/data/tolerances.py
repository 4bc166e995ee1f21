"""Tolerances of schedules: numbers that count as equal, and how far the judge allows an excess.

Each is a part of what it is compared with.
"""

from __future__ import annotations

import numpy as np

# Two decimals that stand for equal numbers, each rounded once to a double, differ by no more.
WRITTEN = 2.0**-52

# What comparing them by NumPy's widest numbers loses; what is closer needs fractions.
LOST_IN_COMPARING = 4.0 * float(np.finfo(np.longdouble).eps)

# Instants of a picture that are apart by less than this part of the makespan are one.
TIME_TOLERANCE = 1e-12

# Rates may exceed a limit by this part, or, where that is more, by one byte per route; bytes are
# measured to this part of one.
LIMIT_TOLERANCE = 1e-6

# Chunks of up to the makespan over this number may lie at relays besides what is stored.
SHORT_CHUNKS = 100

# The lower bound comes from solvers that work to this precision.
BOUND_TOLERANCE = 1e-6

# Starts of a forecast's periods that differ by less than this part of the last are one.
SAME_START = 1e-9

# Sums of rates that differ by less are equal, and what is left of one below this part is nothing.
RATE_ROUNDING = 1e-9

# What sums and differences of instants and amounts may lose in their last digits, as part of the
# largest number; a millionth of a byte is nothing anyway.
FLOAT_ROUNDING = 1e-12
NO_BYTES = 1e-6
