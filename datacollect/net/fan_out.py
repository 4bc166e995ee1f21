"""Fan-out: the same call for many hosts at once, so that no outcome is lost."""

from __future__ import annotations

import math
import queue
import threading
import time
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from datacollect.errors import TransferError
from datacollect.files.refusals import no_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

T = TypeVar("T")

# So often who waits looks whether threads are still there.
LOOK_S = 1.0


class Outcome(NamedTuple, Generic[T]):
    """Outcome of one call: its value, or the exception that ended it, whatever it is."""

    name: str
    value: T | None
    error: BaseException | None

    def result(self) -> T:
        """Return the value, or raise what ended the call."""
        if self.error is not None:
            raise self.error
        return self.value  # type: ignore[return-value]


class Begun(Generic[T]):
    """A call in a thread of its own, of which there is one outcome in every case.

    Also where no thread is to be had, and where one dies before it has begun: `lost` says so to
    whoever waits.
    """

    def __init__(
        self, name: str, call: Callable[[str], T], report: Callable[[Outcome[T]], None]
    ) -> None:
        self._name, self._call, self._report = name, call, report
        self._has_reported = False
        self._thread: threading.Thread | None = None
        try:
            self._thread = threading.Thread(target=self._work, name=f"for-{name}", daemon=True)
            self._thread.start()
        except (RuntimeError, MemoryError) as error:
            self._thread = None
            self._fail(error)

    def _work(self) -> None:
        try:
            outcome: Outcome[T] = Outcome(self._name, self._call(self._name), None)
        except BaseException as error:  # noqa: BLE001 - reported, whatever it is
            outcome = Outcome(self._name, None, error)
        self._has_reported = True
        self._report(outcome)

    def look(self) -> None:
        """Tell that the thread is gone, if it has gone without a word."""
        if self._thread is not None and not self._thread.is_alive() and not self._has_reported:
            self._fail(RuntimeError("its thread ended before it began"))

    def _fail(self, error: Exception) -> None:
        self._has_reported = True
        self._report(Outcome(self._name, None, _without_thread(self._name, error)))


def start_thread(thread: threading.Thread) -> None:
    """Start a thread; raise `TransferError`, which has its name, where none is to be had."""
    try:
        thread.start()
    except (RuntimeError, MemoryError) as error:
        raise _without_thread(thread.name, error) from None


def _without_thread(name: str, error: Exception) -> TransferError:
    return TransferError(f"{name}: {no_thread(error)}")


class Meanwhile(Generic[T]):
    """A call in a thread of its own, while who has begun it does something else.

    Parameters
    ----------
    name : str
        What messages call it.
    call : callable
    """

    def __init__(self, name: str, call: Callable[[], T]) -> None:
        self._arrived: queue.SimpleQueue[Outcome[T]] = queue.SimpleQueue()
        self._begun = Begun(name, lambda _: call(), self._arrived.put)

    def result(self) -> T:
        """Wait for its end; return what it has returned, or raise what has ended it."""
        while True:
            try:
                return self._arrived.get(timeout=LOOK_S).result()
            except queue.Empty:
                self._begun.look()


def fan_out(
    names: Iterable[str], call: Callable[[str], T], within_s: float = math.inf
) -> dict[str, Outcome[T]]:
    """Call for every name at once; return an outcome for each that has one in time.

    Whoever interrupts the waiting thread ends the wait; calls under way end by themselves, and
    tell nobody.

    Examples
    --------
    >>> found = fan_out(["2", "x"], int)
    >>> found["2"].result(), type(found["x"].error).__name__
    (2, 'ValueError')
    """
    arrived: queue.SimpleQueue[Outcome[T]] = queue.SimpleQueue()
    begun = {name: Begun(name, call, arrived.put) for name in dict.fromkeys(names)}
    outcomes: dict[str, Outcome[T]] = {}
    end_s = time.monotonic() + within_s
    while len(outcomes) < len(begun) and (left_s := end_s - time.monotonic()) > 0:
        try:
            outcome = arrived.get(timeout=min(LOOK_S, left_s))
        except queue.Empty:
            for name in begun.keys() - outcomes.keys():
                begun[name].look()
        else:
            outcomes[outcome.name] = outcome
    return outcomes
