"""Requests to bistros: how they are, and what they may let go; all at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from datacollect.bistro.formats.custody.verdicts import COVERED_PATH
from datacollect.bistro.upload_server.standing import read_facts
from datacollect.errors import DatacollectError, TransferError
from datacollect.net.fan_out import fan_out
from datacollect.net.http_asking import Asker
from datacollect.net.safe_text import safe_text
from datacollect.net.tls import web_context

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from datacollect.bistro.formats.event.event import Bistro, Event
    from datacollect.bistro.formats.log.notes import Note

T = TypeVar("T")

# Who takes longer is asked again in the next round.
ANSWER_S = 5.0
NOTE_TYPE = "text/plain; charset=utf-8"


@dataclass(frozen=True)
class BistroAsking:
    """Speaks to the bistros of an event.

    Attributes
    ----------
    event : Event
        With the amendments that are known.
    report : function
        Takes lines that somebody would want to know at once.
    """

    event: Event
    report: Callable[[str], None]

    def tell_covered(self, notes: Mapping[str, Note]) -> None:
        """Hand each bistro the note of what it may let go; who is away is told another time."""

        def tell(name: str, asker: Asker) -> None:
            answer = asker.post(COVERED_PATH, notes[name].data, NOTE_TYPE)
            if answer.status != 200:
                words = safe_text(answer.body[:200].decode(errors="replace").strip())
                raise TransferError(
                    f"the bistro answers {answer.status} when told what it may delete: {words}"
                )

        self._with_each(notes, tell)

    def facts(self) -> dict[str, dict[str, Any]]:
        """Return how each bistro is, by name, of those that answer."""
        return self._with_each(
            [each.name for each in self.event.bistros],
            lambda name, asker: read_facts(asker.get("/bistro"), name),
        )

    def _with_each(self, names: Iterable[str], ask: Callable[[str, Asker], T]) -> dict[str, T]:
        bistros = {each.name: each for each in self.event.bistros}

        def asked(name: str) -> T:
            with _asker(bistros[name]) as asker:
                return ask(name, asker)

        found = {}
        for name, outcome in fan_out(names, asked).items():
            if outcome.error is None:
                found[name] = outcome.result()
            elif isinstance(outcome.error, DatacollectError):
                self.report(f"{name}: {outcome.error}")
            else:
                raise outcome.error
        return found


def _asker(bistro: Bistro) -> Asker:
    tls = web_context(fingerprint=bistro.fingerprint, certificates=bistro.ca)
    return Asker(bistro.url, tls, ANSWER_S, bistro.fingerprint)
