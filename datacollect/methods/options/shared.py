"""Options that several methods have."""

from __future__ import annotations

from typing import get_args

from datacollect.files.kinds import Choice, Flag, Number, Share
from datacollect.methods.options.option import Option
from datacollect.solvers.registry import Solver

SLOT_S = Option(
    Number("seconds", positive=True),
    "Store and forward in slots of this length; without it, schedules are pipelined.",
    recorded="slot_s",
    excludes=("chunk_s",),
    lacking="which has no relays",
    not_in={"pull": "a pull takes slots by --slot, for one start"},
)
CHUNK_S = Option(
    Number("seconds"),
    "Pipelined: relays forward chunks of this length. Default: 1/1000 of the lower bound, or less "
    "where bandwidths change often.",
    recorded="chunk_s",
    lacking="which has no relays",
    not_in={"pull": "relays of a pull pass bytes on as they come, and wait for no chunks"},
)
SOLVER = Option(Choice(get_args(Solver)), "Solver; auto takes the fastest that is installed.")
DERATE = Option(
    Share(positive=True),
    "Plan on this part of all links' bandwidths, such as 0.8; the schedule is valid for all of "
    "them.",
    recorded="derate",
)
CAUTIOUS = Option(
    Flag(),
    "Lean on nothing: no host sends or receives more at once than was shown of it, or than direct "
    "has it do.",
    recorded="cautious",
    lacking="which leans on no host",
)
TIME_LIMIT_S = Option(
    Number("seconds", positive=True),
    "Stop the coordinated method's solvers after this time.",
    lacking="which searches for nothing",
)
