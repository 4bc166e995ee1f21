"""Tolerances for equal numbers, in every module, with the reason for each.

What only one room holds to stands in its own ``tolerances.py``, what one function does beside it.
"""

from __future__ import annotations

# Instants nearer to each other than this part of the time or makespan are one: far above what
# rounding leaves between them, far below the millionth by which plans are judged. What is due then
# is done at once, and nothing is computed again for what lies between.
SAME_INSTANT = 1e-9

# Rates that differ by less than this part are one rate, for the same reason.
SAME_RATE = 1e-9
