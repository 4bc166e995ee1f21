"""Tolerances of explanations: numbers that count as equal, capacities as full, gains as none.

What plans themselves hold to is in `datacollect.methods.timing.tolerances`.
"""

from __future__ import annotations

# Instants, makespans and costs that differ by less than this part are the same for people.
SAME = 1e-6

# What is less full than by this part is not full, and rates nearer to each other are equal.
FULL = 1e-6

# Gains below this part of the earliest end are rounding; linear programs are solved less exactly
# than flows.
NEGLIGIBLE, PROGRAM_NEGLIGIBLE = 1e-9, 1e-7
