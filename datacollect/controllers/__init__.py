"""Controllers: what carries schedules out, and direct collections. No clock, no sockets."""

from datacollect.controllers.adaptive import AdaptiveController
from datacollect.controllers.connections import Piece, Recovery
from datacollect.controllers.direct import DirectController, streams_in_proportion
from datacollect.controllers.scheduled import AsapController, PlannedController

__all__ = [
    "AdaptiveController",
    "AsapController",
    "DirectController",
    "Piece",
    "PlannedController",
    "Recovery",
    "streams_in_proportion",
]
