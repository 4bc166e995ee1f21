"""The controller, which carries a schedule out: events in, decisions out.

A controller gets events with their times, and answers what to do next. It has no clock, no
sockets and no threads, so the same controller drives a packet simulator, a fluid model, or a
collector over real connections; those, the drivers, move bytes and report events, and decide
nothing.

The driver calls `Controller.start` once, then `Controller.handle` for every event in the order
of time, and carries out the decisions it gets back, in their order, at the event's instant:

- `Open` asks for a connection between two hosts; `ConnectionOpened` follows, or
  `ConnectionClosed` where it cannot be had.
- `Send` queues a range of a source's data on a connection. Ranges leave first in, first out; a
  byte leaves when it is there: at the source from the start, at a relay once it has arrived
  (cut-through), so a queued range may wait for its bytes. Ranges may be queued before the
  connection is open.
- `RangeArrived` reports that all of a queued range is at the connection's receiving host. What of
  its beginning was there before, on a connection that is gone, need not be sent again.
- `WakeMe` asks for a `Timer` event at an instant.
- `Close` ends a connection once its queue is empty, or at once if it says so; `ConnectionClosed`
  follows. What has left it last may arrive after that.
- `PlanRemaining` asks for a schedule from where the data lie; `RemainingPlanned` brings it.
- Of each open connection `BytesMoved` says now and then how much has arrived, to a controller that
  watches (`Controller.watches_every_s`); a driver that looks anyhow may tell all of them.

Three drivers keep this contract: the fluid engine's, the packet engine's, and the collector's core
of real transfers (`datacollect.transfer.pull.core`), whose connections all end at the destination.

The collection is over when every byte is at the destination; the driver knows that itself.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from datacollect.control.decisions import Decision
    from datacollect.control.events import Event


class Controller(Protocol):
    """Protocol of controllers, which decide. One instance carries out one collection.

    Attributes
    ----------
    answer : object
        What it has to say when the run is over, in plain data; None: nothing.
    finished : bool
        Once True nothing more is to happen: the driver ends the run.
    decides_at_destination : bool
        Whether it needs news from other hosts, and tells them what to do, while the collection is
        under way: such messages take time (`datacollect.control.delayed`). Where all hosts know
        beforehand what to do, as they know a plan, there are none.
    watches_every_s : float or None
        How often at least it wants `BytesMoved` of each open connection; None: never.
    """

    answer: Any = None
    finished: bool = False
    decides_at_destination: bool = False
    watches_every_s: float | None = None

    @abstractmethod
    def start(self) -> list[Decision]:
        """Return the first decisions, at time 0."""

    @abstractmethod
    def handle(self, event: Event) -> list[Decision]:
        """Return what to do after an event."""
