"""Names of the methods, as people and files write them."""

from __future__ import annotations

from typing import Final, get_args

from datacollect.control.relaying import CHAINS, RELAYING
from datacollect.files.choices import Finish, First

DIRECT: Final = "direct"
BEST_PATH: Final = "best-path"
COORDINATED: Final = "coordinated"
# How a collection may be carried out without following a plan.
ADAPTIVE: Final = "adaptive"
# Where data wait that take a detour: at relays, or nowhere.
RELAY_KINDS = RELAYING
OVER_CHAINS: Final = CHAINS

# What best-path compares the other routes with: the direct one, or the best with one relay.
VIA_DIRECT: Final = "direct"
VIA_RELAY: Final = "relay"
FIRSTS: tuple[str, ...] = get_args(First)

# How coordinated's sources finish: each as early as capacities allow, or all with the last.
EARLY: Final = "early"
TOGETHER: Final = "together"
FINISHES: tuple[str, ...] = get_args(Finish)
