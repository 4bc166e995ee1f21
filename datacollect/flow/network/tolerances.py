"""Tolerances of the fluid model: numbers that count as equal, flows as best, remainders as zero.

Each is a part of what it is compared with, if nothing else is said. All that a plan may exceed a
limit by is far below the 1e-6 at which plans are judged.
"""

from __future__ import annotations

# Instants ------------------------------------------------------------------------------------

# Breakpoints of the arrival curve that differ by less than this part of the makespan are one.
SAME_BREAKPOINT = 1e-12

# A source's own cut counts as later than the destination's by this part or more.
SAME_CUT = 1e-12

# Flows in whole units ------------------------------------------------------------------------

# Capacities are widened by this before they become integers, so that a flow that is feasible in
# real numbers still saturates after rounding: some times what sums of doubles lose. No more than
# that: what passes too much before a very slow last piece would have to wait long there.
CAPACITY_ROUNDING = 1e-14

# Room is widened by this where two hops are enough. Where a cut is tight, sums of rounded
# capacities must not fall short of what has to cross it.
TWO_HOP_ROOM = 1e-11

# Less than this part of all data may be rounding.
SURELY = 1e-9

# Linear programs -----------------------------------------------------------------------------

# An answer within this part of the optimum is optimal: what linear solvers attain.
ATTAINED = 1e-9

# The cheapest flow may exceed capacities by this part: the earliest end leaves no room otherwise,
# and is known to about 1e-9. The next is tried where rounding forbids the one before.
PROGRAM_SLACK = (1e-9, 1e-8, 1e-7)

# What arrives of a source is what it holds up to this part, at which plans are judged, or up to
# half a byte.
SAME_SUPPLY = 1e-6

# What grows by less than this part is what is left of rounding; what is worth less than the second
# part of all prices together is not named.
NOISE = 1e-10
PRICED = 1e-7

# A flow that costs less than this part of the dearest arc is found again in its own unit of cost.
CHEAP = 1e-3

# Weights below this are what linear solvers leave of 0.
SMALLEST_WEIGHT = 1e-7

# The arrival curve ---------------------------------------------------------------------------

# Bounds that differ by less than this part of all data are the same one; linear programs are
# solved less exactly than flows.
SAME_BOUND, SAME_PROGRAM_BOUND = 1e-9, 1e-7

# Costs ---------------------------------------------------------------------------------------

# Costs that differ by less than this part are equal.
SAME_COST = 1e-9
