"""Tolerances of methods: numbers that count as equal, plans as proved, remainders as zero.

Each is a part of what it is compared with.
"""

from __future__ import annotations

# Slots' boundaries that differ by less than this part are one: both are multiples of a slot.
SAME_BOUNDARY = 1e-12

# What a slot carries is rounded down to whole bytes, after this allowance for rounding.
SLOT_ROUNDING = 1e-9

# Rates may be above a capacity by a millionth of it: plans use half of that for rounding.
TOLERATED = 5e-7

# Sums of what links carry in slots are off by less than this part.
SAME_SUM = 1e-9

# What is left of a job below this part is nothing.
NOTHING_LEFT = 1e-12

# Loads that exceed what can be carried by less than this part are within it: programs have slack.
SAME_LOAD = 1e-7

# Transfers that are shorter by less than this part have the same rate.
SAME_LENGTH = 1e-9

# What lasts longer than this many of the floats' steps at its end is off by less than a part in
# 1e8.
LEAST_ULPS = 2**27

# Less than this part of all data may be what linear programs leave of nothing.
SAME_BYTES = 1e-8

# Prices of paths that differ by less than this part are equal.
SAME_PRICE = 1e-9

# A plan that another may better by no more than this part counts as best.
PROVED = 1e-6
