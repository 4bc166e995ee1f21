"""Fetching what bistros serve, as any pull of a collection does: verified, and gone on with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from datacollect.errors import InfeasibleError
from datacollect.transfer.pull.config.file import Collection
from datacollect.transfer.pull.run import pull

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from datacollect.bistro.event.event import Bistro, Event


@dataclass(frozen=True)
class Bringing:
    """Fetches from the agents of an event's bistros.

    Attributes
    ----------
    event : Event
        With the amendments that are known: they may have added bistros.
    key : Path
        File of the collector's private key, which the agents know.
    into : Path
        What bistro ``B`` serves arrives below ``into/B``.
    say : function
        Takes lines that somebody would want to know at once, such as who is not reached.
    patience_s : float
        How long a bistro that does not answer is asked again in a round.
    """

    event: Event
    key: Path
    into: Path
    say: Callable[[str], None]
    patience_s: float = 10.0

    def __call__(self, wanted: Mapping[str, Sequence[str]]) -> None:
        """Fetch what fits the patterns, by bistro; what cannot be had now is left for later.

        Raises
        ------
        ProblemError
            The key or the folder are not what they should be.
        StoreError
            There is no room, or the disk fails.
        """
        self.into.mkdir(parents=True, exist_ok=True)
        tree = {
            "format": "datacollect-collection/1",
            "destination": self._own_name(),
            "key": str(self.key.absolute()),
            "agents": {
                each.name: self._agent(each) for each in self.event.bistros if each.name in wanted
            },
            "sources": {name: {"files": [*patterns]} for name, patterns in wanted.items()},
            "limits": {"patience_s": self.patience_s},
        }
        try:
            pull(Collection.from_dict(tree), self.into, tell=self.say)
        except InfeasibleError as error:
            self.say(str(error))

    def _own_name(self) -> str:
        names = {each.name for each in self.event.bistros}
        own = "destination"
        while own in names:
            own += "-"
        return own

    def _agent(self, bistro: Bistro) -> dict[str, Any]:
        if bistro.ca is None:
            return {"url": bistro.url, "fingerprint": bistro.fingerprint}
        path = self.into / f".{bistro.name}.ca.pem"
        path.write_text(bistro.ca)
        return {"url": bistro.url, "ca": str(path.absolute())}
