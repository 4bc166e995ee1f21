"""When numbers of schedules are equal, and how far the judge lets them exceed a limit.

Each is a part of what it is compared with.
"""

from __future__ import annotations

# Instants may be apart by this part of the makespan and be meant as the same, slots' boundaries by
# this part of a slot and of their number: rounding, no more.
TIME_TOLERANCE = 1e-9

# Rates and amounts may exceed a limit by this part, or by one byte per transfer.
LIMIT_TOLERANCE = 1e-6

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
