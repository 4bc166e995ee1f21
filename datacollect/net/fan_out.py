"""Doing the same for many hosts at once, so that no outcome is lost."""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from datacollect.errors import TransferError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

T = TypeVar("T")


class Outcome(NamedTuple, Generic[T]):
    """What became of one call: its value, or the exception that ended it, whatever it is."""

    name: str
    value: T | None
    error: BaseException | None

    def result(self) -> T:
        """Return the value, or raise what ended the call."""
        if self.error is not None:
            raise self.error
        return self.value  # type: ignore[return-value]


def begin(name: str, call: Callable[[str], T], tell: Callable[[Outcome[T]], None]) -> None:
    """Call in a thread of its own; `tell` gets one outcome in every case, also without a thread."""

    def work() -> None:
        try:
            outcome: Outcome[T] = Outcome(name, call(name), None)
        except BaseException as error:  # noqa: BLE001 - told, whatever it is
            outcome = Outcome(name, None, error)
        tell(outcome)

    try:
        threading.Thread(target=work, name=f"for-{name}", daemon=True).start()
    except RuntimeError as error:
        why = f"{name}: this host has no more threads to give: {error}; end what takes them"
        tell(Outcome(name, None, TransferError(why)))


def fan_out(names: Iterable[str], call: Callable[[str], T]) -> dict[str, Outcome[T]]:
    """Call for every name at once; return an outcome for each.

    Whoever interrupts the waiting thread ends the wait; calls under way end by themselves, and
    tell nobody.

    Examples
    --------
    >>> found = fan_out(["2", "x"], int)
    >>> found["2"].result(), type(found["x"].error).__name__
    (2, 'ValueError')
    """
    wanted = list(dict.fromkeys(names))
    told: queue.SimpleQueue[Outcome[T]] = queue.SimpleQueue()
    for name in wanted:
        begin(name, call, told.put)
    outcomes = (told.get() for _ in wanted)
    return {outcome.name: outcome for outcome in outcomes}
