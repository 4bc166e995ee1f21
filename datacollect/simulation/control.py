"""Delays of control: where a controller decides, how long its messages take, for every engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from datacollect.control.delayed import ControlDelays, DelayedController
from datacollect.errors import ProblemError, nearest_hint

if TYPE_CHECKING:
    from datacollect.control.controller import Controller
    from datacollect.simulation.network import SimulatedNetwork

DELAYED: Final = "delayed"
FREE: Final = "free"
CONTROL = (DELAYED, FREE)


def controlled(
    controller: Controller, network: SimulatedNetwork, destination: str, control: str
) -> Controller:
    """Return the controller, with messages that take time where it decides for other hosts.

    Parameters
    ----------
    controller : Controller
    network : SimulatedNetwork
    destination : str
        Where it decides, if anywhere.
    control : {"delayed", "free"}
        Free: it knows everything at once, and acts everywhere at once.

    Raises
    ------
    ProblemError
        Another word, or a host that no message reaches.
    """
    if control not in CONTROL:
        raise ProblemError(
            f"control must be one of {', '.join(CONTROL)}, got {control!r}"
            + nearest_hint(control, CONTROL)
        )
    if control == FREE or not controller.decides_at_destination:
        return controller
    return DelayedController(controller, control_delays(network, destination))


def control_delays(network: SimulatedNetwork, host: str) -> ControlDelays:
    """Return propagation times between a host and all others, by the wires of their routes."""
    here, node = network.host_node[host], network.host_node
    return ControlDelays(
        to_s={other: network.one_way_s(here, at) for other, at in node.items()},
        from_s={other: network.one_way_s(at, here) for other, at in node.items()},
    )
