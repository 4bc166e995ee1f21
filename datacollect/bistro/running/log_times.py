"""By when entries stood in the logs of an event, as its services prove it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from datacollect.bistro.log.proofs import MOST_PROOF_BYTES, LogProof
from datacollect.bistro.receipt.counted_time import proved_time
from datacollect.errors import ProblemError, TransferError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from datacollect.bistro.event.event import Event
    from datacollect.net.http_asking import Answer


class Service(Protocol):
    """Who is asked, as `datacollect.net.http_asking.Asker` is one."""

    def get(self, path: str, most_bytes: int) -> Answer:
        """Return the answer to a GET of a path below its URL."""


@dataclass(frozen=True)
class LogTimes:
    """Asks services for the proofs of entries.

    Attributes
    ----------
    event : Event
    services : mapping of str to Service
        By URL.
    say : function
        Takes lines that somebody would want to know at once.
    """

    event: Event
    services: Mapping[str, Service]
    say: Callable[[str], None]

    def __call__(self, entries: Iterable[bytes]) -> Iterator[tuple[bytes, int]]:
        """Yield the entries whose time is proved, each with the least time of those found.

        A service that does not answer is not asked again this time. All are asked: which draft is
        the last one depends on the least time. A late one counts only where all have answered:
        another may prove an earlier one next time.
        """
        answering = dict(self.services)
        for entry in entries:
            times_s: list[int] = []
            for url, service in [*answering.items()]:
                try:
                    time_s = self._time_by(service, entry)
                except (TransferError, ProblemError) as error:
                    self.say(f"{url}: {error}")
                    del answering[url]
                    continue
                if time_s is not None:
                    times_s.append(time_s)
            is_all = len(answering) == len(self.services)
            if times_s and (is_all or min(times_s) <= self.event.latest_s):
                yield entry, min(times_s)

    def _time_by(self, service: Service, entry: bytes) -> int | None:
        answer = service.get(f"/proof/{entry.hex()}", MOST_PROOF_BYTES)
        if answer.status == 200:
            return proved_time(LogProof.parse(answer.body), entry, self.event).time_s
        if answer.status in (202, 404):
            return None
        raise TransferError(f"answers {answer.status} to the question for a proof")
