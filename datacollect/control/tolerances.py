"""When instants of plans and runs are one."""

from __future__ import annotations

# Instants nearer to each other than this part of the time are one: what is due then is done at
# once, and nothing is computed anew for what rounding left between.
SAME_INSTANT = 1e-9
