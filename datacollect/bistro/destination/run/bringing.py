"""Fetches segments that bistros serve, as any pull of a collection does: verified, and resumed."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from datacollect.bistro.formats.custody.batches import MOST_BATCH_BYTES
from datacollect.bistro.formats.custody.segments import MOST_INDEX_BYTES, MOST_SEGMENT_BYTES
from datacollect.errors import InfeasibleError, ProblemError, StoreError
from datacollect.methods.options.names import ADAPTIVE
from datacollect.net.tls import trusted_certificates
from datacollect.transfer.pull.config.fields import COLLECTION
from datacollect.transfer.pull.config.file import Collection
from datacollect.transfer.pull.run import pull
from datacollect.transfer.pull.words import NOTHING_FITS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from datacollect.bistro.formats.event.event import Bistro, Event
    from datacollect.files.choices import RunMethod


# Nothing that a bistro serves is larger.
LARGEST_BYTES = max(MOST_BATCH_BYTES, MOST_INDEX_BYTES, MOST_SEGMENT_BYTES)
LEAST_SPARE_BYTES = 64 * 2**20
MOST_S = 300.0


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
    report : function
        Takes lines that somebody would want to know at once, such as who is not reached.
    method : str
        Of the pull: which plans, or moves connections.
    network : Collection, optional
        What is known of links, how to plan, limits, and relays.
    patience_s : float
        How long a bistro that does not answer is asked again in a round, unless `network` says it.
    most_s : float
        How long others wait for the slowest; what has not come by then comes the next time.
    """

    event: Event
    key: Path
    into: Path
    report: Callable[[str], None]
    method: RunMethod = ADAPTIVE
    network: Collection | None = None
    patience_s: float = 10.0
    most_s: float = MOST_S

    def __call__(self, wanted: Mapping[str, Sequence[str]]) -> frozenset[str]:
        """Fetch what fits the patterns, by bistro; what cannot be had now is left for later.

        Returns
        -------
        frozenset of str
            The bistros that have shown all that they have of it, and all of it is here.

        Raises
        ------
        ProblemError
            The key or the folder are not what they should be.
        StoreError
            There is no room, or the disk fails.
        """
        self.into.mkdir(parents=True, exist_ok=True)
        try:
            return self._pull(wanted)
        except StoreError:
            # One that lists what fits nowhere must not keep the others from being collected.
            found = {} if len(wanted) == 1 else self._one_by_one(wanted)
            if not found:
                raise
            return frozenset[str]().union(*found.values())

    def _one_by_one(self, wanted: Mapping[str, Sequence[str]]) -> dict[str, frozenset[str]]:
        """Fetch from each alone; return what came of those for whose files there was room."""
        found = {}
        for name, patterns in wanted.items():
            try:
                found[name] = self._pull({name: patterns})
            except StoreError as error:
                self.report(f"{name}: {error}")
        return found

    def _pull(self, wanted: Mapping[str, Sequence[str]]) -> frozenset[str]:
        try:
            done = pull(self._collection(wanted), self.into, self.method, tell=self._tell)
        except InfeasibleError as error:
            self.report(str(error))
            return frozenset()
        # Of one that was not listed to its end, something is missing, too.
        lacking = {each.source for each in done.missing}
        lacking |= {each.source for each in done.to_come if each.n_files}
        return frozenset(wanted.keys() - lacking)

    def _tell(self, line: str) -> None:
        # A bistro that has nothing yet is nothing to correct.
        if NOTHING_FITS not in line:
            self.report(line)

    def _collection(self, wanted: Mapping[str, Sequence[str]]) -> Collection:
        sources = {
            name: {"files": [*patterns], "largest_bytes": LARGEST_BYTES}
            for name, patterns in wanted.items()
        }
        # Half of what is free: whoever lists more than that is fetched from by itself, or not.
        spare_bytes = max(shutil.disk_usage(self.into).free // 2, LEAST_SPARE_BYTES)
        agents = {each.name: self._agent(each) for each in self.event.bistros}
        if self.network is None:
            agents = {name: agents[name] for name in wanted}
        found = Collection.from_dict(
            {
                "format": "datacollect-collection/1",
                "destination": self._own_name(),
                "key": str(self.key.absolute()),
                "agents": agents,
                "sources": sources,
                "limits": {
                    "patience_s": self.patience_s,
                    "time_s": self.most_s,
                    "spare_bytes": spare_bytes,
                },
            }
        )
        return found if self.network is None else with_network(found, self.network)

    def _own_name(self) -> str:
        if self.network is not None:
            return self.network.destination
        names = {each.name for each in self.event.bistros}
        own = "destination"
        while own in names:
            own += "-"
        return own

    def _agent(self, bistro: Bistro) -> dict[str, Any]:
        if bistro.fingerprint is not None:
            return {"url": bistro.url, "fingerprint": bistro.fingerprint}
        path = self.into / f".{bistro.name}.ca.pem"
        path.write_text(bistro.ca or trusted_certificates())
        return {"url": bistro.url, "ca": str(path.absolute())}


def read_network(path: Path, event: Event) -> Collection:
    """Return what a collection file says of links, limits, planning and relays.

    It need not name the event's bistros, which are where the event says.

    Raises
    ------
    ProblemError
        It cannot be read, or says where a bistro is.
    """
    stand_ins = {each.name: {"url": each.url, "ca": str(path.absolute())} for each in event.bistros}

    def read(tree: dict[str, Any], folder: Path) -> Collection:
        own = tree.get("agents", {})
        for name in own.keys() & stand_ins.keys() if isinstance(own, dict) else ():
            raise ProblemError(
                f"agents.{name}: the event's file names a bistro of that name, with its address; "
                f"leave agents.{name} out"
            )
        agents = {**own, **stand_ins} if isinstance(own, dict) else own
        return Collection.from_dict({**tree, "agents": agents}, folder)

    return COLLECTION.from_file(path, read)


def with_network(bistros: Collection, network: Collection) -> Collection:
    """Return a collection from bistros with what a collection file says of links and relays."""
    agents = {**network.entries["agents"], **bistros.entries["agents"]}
    # A round is no shorter than what the file has the slowest wait for.
    waits_s = network.limits.patience_s + network.limits.timeout_s
    limits = replace(
        network.limits,
        time_s=network.limits.time_s or max(bistros.limits.time_s or 0.0, waits_s),
        spare_bytes=max(bistros.limits.spare_bytes, network.limits.spare_bytes),
    )
    return replace(
        network,
        limits=limits,
        key=bistros.key,
        entries={**network.entries, "agents": agents},
        sources=bistros.sources,
    )
