"""Journal of tried cases, a line of JSON for each: hours of work go on where they ended."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Hashable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

TERMINATED = 143


def exit_when_terminated() -> None:
    """End as a program that has been interrupted does: what it started is ended, too."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))


class Keyed(Protocol):
    """A data class that knows which one it is."""

    @property
    def key(self) -> Hashable:
        """Which one it is."""


Result = TypeVar("Result", bound=Keyed)


class KeptLines(Generic[Result]):
    """Results in a file; of two for one the last counts.

    What is stale, of another state of the code, does not count.
    """

    def __init__(
        self,
        path: Path,
        result_of: Callable[[dict[str, Any]], Result],
        is_stale: Callable[[Result], bool] = lambda _: False,
    ) -> None:
        self.path = path
        self.by_key: dict[Any, Result] = {}
        self.n_stale = 0
        for line in path.read_text().splitlines() if path.exists() else ():
            try:
                result = result_of(json.loads(line))
            except ValueError:
                continue  # cut off where it was killed
            if is_stale(result):
                self.n_stale += 1
            else:
                self.by_key[result.key] = result

    def add(self, *results: Result) -> None:
        """Keep results."""
        with self.path.open("a") as file:
            for result in results:
                self.by_key[result.key] = result
                file.write(json.dumps(asdict(result)) + "\n")

    def forget(self, is_meant: Callable[[Result], bool]) -> None:
        """Forget those that are meant."""
        kept = [result for result in self.by_key.values() if not is_meant(result)]
        self.by_key = {}
        self.path.write_text("")
        self.add(*kept)


def say(text: str) -> None:
    """Say something to whoever watches."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
