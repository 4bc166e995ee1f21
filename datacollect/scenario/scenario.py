"""The scenario: a network, who collects what in it, beside what traffic, by which method."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.errors import naming, nearest_hint
from datacollect.files.documents import document_name
from datacollect.files.kinds import shown_text, wrong
from datacollect.files.notebook import html_of_facts
from datacollect.scenario.fields import ALWAYS, SCENARIO, SCENARIO_FORMAT, WITH_TOPOLOGY
from datacollect.scenario.places import put
from datacollect.scenario.rules import check_together, require_one_network

if TYPE_CHECKING:
    from collections.abc import Iterable
    from os import PathLike

# What random numbers are for. Each has a stream of its own: to change the number of background
# flows, or the method, leaves places and backlogs what they are.
STREAMS = ("topology", "hosts", "backlog", "background", "run", "estimates")

# Names that a message lists where none is like the one given.
MOST_LISTED = 8


@dataclass(frozen=True, eq=False)
class Scenario:
    """A validated scenario file.

    Attributes
    ----------
    sections : dict
        The file's tables as it would be with every default written out.
    folder : Path
        What file names in it are relative to.
    file : str
        The file's name, for messages; empty where there is none.

    Examples
    --------
    >>> scenario = Scenario.from_dict(
    ...     {
    ...         "topology": {"kind": "two-domains"},
    ...         "hosts": {
    ...             "destination": {"at": "A0"},
    ...             "sources": [{"at": "B0", "backlog_bytes": 1_000_000}],
    ...         },
    ...     }
    ... )
    >>> scenario.with_values({"method.name": "direct"}).section("method")["name"]
    'direct'
    """

    sections: Mapping[str, Any]
    folder: Path
    file: str = ""

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> Scenario:
        """Read a scenario file: TOML or JSON.

        Parameters
        ----------
        path : path-like
            ``-`` reads standard input. What it names is relative to the file.

        Returns
        -------
        Scenario

        Raises
        ------
        ProblemError
            The message names file, place, rule, value and remedy.

        Examples
        --------
        >>> import datacollect as dc
        >>> dc.Scenario.from_file("nowhere.toml")
        Traceback (most recent call last):
        datacollect.errors.ProblemError: nowhere.toml: no such file; check the path
        """
        return replace(SCENARIO.from_file(path, cls.from_dict), file=document_name(path))

    @classmethod
    def from_dict(
        cls, tree: Mapping[str, Any], folder: str | PathLike[str] | None = None
    ) -> Scenario:
        """Build a scenario from the tree of a scenario file.

        Parameters
        ----------
        tree : mapping
            What TOML or JSON say.
        folder : path-like, optional
            What file names are relative to; by default the working directory.

        Returns
        -------
        Scenario

        Raises
        ------
        ProblemError
            The message names place, rule, value and remedy.

        Examples
        --------
        >>> import datacollect as dc
        >>> scenario = dc.Scenario.from_dict({"problem": "upload.toml", "run": {"seed": 7}})
        >>> scenario.section("method")["name"]
        'coordinated'
        """
        values = SCENARIO.read(tree)
        require_one_network(values)
        sections = {name: values[name] for name in ("name", "scale")}
        if values["problem"] is not None:
            sections |= {name: values[name] for name in ("problem", "truth_csv")}
        else:
            sections |= {name: values[name] for name in ("probe_scale", "topology", "hosts")}
            sections |= _filled(values, WITH_TOPOLOGY)
        sections |= _filled(values, ALWAYS)
        check_together(sections)
        return cls(sections, Path(folder or "."))

    @property
    def name(self) -> str:
        """Its name, for messages and results."""
        return str(self.sections["name"])

    @property
    def probe_scale(self) -> float:
        """Factor on the size of probes: its own, or that on backlogs.

        Examples
        --------
        >>> scenario = Scenario.from_dict(
        ...     {
        ...         "scale": 0.1,
        ...         "topology": {"kind": "two-domains"},
        ...         "hosts": {
        ...             "destination": {"at": "A0"},
        ...             "sources": [{"at": "B0", "backlog_bytes": 1_000_000}],
        ...         },
        ...     }
        ... )
        >>> scenario.probe_scale, scenario.with_values({"probe_scale": 1}).probe_scale
        (0.1, 1.0)
        """
        own = self.sections.get("probe_scale")
        return float(self.sections["scale"] if own is None else own)

    @property
    def has_topology(self) -> bool:
        """Return whether it names a topology, rather than a problem."""
        return "topology" in self.sections

    def section(self, name: str) -> Mapping[str, Any]:
        """Return one of its tables, every default filled in.

        Parameters
        ----------
        name : str
            Such as ``"method"``, ``"run"``, ``"hosts"``.

        Returns
        -------
        mapping

        Examples
        --------
        >>> import datacollect as dc
        >>> scenario = dc.Scenario.from_dict({"problem": "upload.toml", "run": {"seed": 7}})
        >>> scenario.section("run")["seed"]
        7
        """
        found: Mapping[str, Any] = self.sections[name]
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return the tree of the scenario file with every default written out.

        Returns
        -------
        dict
            What TOML or JSON can say, and `from_dict` reads.

        Examples
        --------
        >>> import datacollect as dc
        >>> scenario = dc.Scenario.from_dict({"problem": "upload.toml", "run": {"seed": 7}})
        >>> dc.Scenario.from_dict(scenario.to_dict()).sha256 == scenario.sha256
        True
        """
        tree = _without_none(self.sections)
        return {"format": SCENARIO_FORMAT, **tree}

    def with_values(self, values: Mapping[str, Any]) -> Scenario:
        """Return the scenario with other values, by their places.

        Parameters
        ----------
        values : mapping
            From places such as ``"background.flows"`` or ``"hosts.destination.access.delay_s"`` to
            values; None takes a value away.

        Returns
        -------
        Scenario

        Raises
        ------
        ProblemError
            There is no such place, or the scenario breaks a rule with the value.

        Examples
        --------
        >>> import datacollect as dc
        >>> scenario = dc.Scenario.from_dict({"problem": "upload.toml", "run": {"seed": 7}})
        >>> scenario.with_values({"method.name": "direct"}).section("method")["name"]
        'direct'
        """
        tree = self.to_dict()
        for place, value in values.items():
            put(tree, place, value)
        return replace(type(self).from_dict(tree, self.folder), file=self.file)

    def seed_of(self, stream: str) -> np.random.SeedSequence:
        """Return the seed of one stream of random numbers: the section's own, or the run's.

        Parameters
        ----------
        stream : {"topology", "hosts", "backlog", "background", "estimates", "run"}

        Returns
        -------
        numpy.random.SeedSequence

        Examples
        --------
        >>> import datacollect as dc
        >>> scenario = dc.Scenario.from_dict({"problem": "upload.toml", "run": {"seed": 7}})
        >>> scenario.seed_of("backlog").entropy
        7
        """
        own = self.sections.get(stream, {}).get("seed")
        seed = self.section("run")["seed"] if own is None else own
        return np.random.SeedSequence(seed, spawn_key=(STREAMS.index(stream),))

    def random(self, stream: str) -> np.random.Generator:
        """Return the generator of one stream of random numbers.

        Parameters
        ----------
        stream : str
            As `seed_of` takes it.

        Returns
        -------
        numpy.random.Generator
            At its beginning.

        Examples
        --------
        >>> import datacollect as dc
        >>> scenario = dc.Scenario.from_dict({"problem": "upload.toml", "run": {"seed": 7}})
        >>> one, other = scenario.random("backlog"), scenario.random("backlog")
        >>> float(one.random()) == float(other.random())
        True
        """
        return np.random.Generator(np.random.PCG64(self.seed_of(stream)))

    def number(self, stream: str) -> int:
        """Return a seed for what takes a number.

        Parameters
        ----------
        stream : str
            As `seed_of` takes it.

        Returns
        -------
        int
            Between 1 and 2^31 - 1.

        Examples
        --------
        >>> import datacollect as dc
        >>> scenario = dc.Scenario.from_dict({"problem": "upload.toml", "run": {"seed": 7}})
        >>> 1 <= scenario.number("backlog") < 2**31
        True
        """
        return int(self.seed_of(stream).generate_state(1)[0]) % (2**31 - 1) + 1

    def naming_file(self) -> AbstractContextManager[None]:
        """Put the scenario's file before what errors say that arise inside.

        Returns
        -------
        context manager

        Examples
        --------
        >>> import datacollect as dc
        >>> scenario = dc.Scenario.from_dict({"problem": "upload.toml", "run": {"seed": 7}})
        >>> with scenario.naming_file():
        ...     raise dc.ProblemError("a rule")
        Traceback (most recent call last):
        datacollect.errors.ProblemError: a rule
        """
        return naming(self.file) if self.file else nullcontext()

    @property
    def sha256(self) -> str:
        """Hash of what the file says, defaults written out; not of the files that it names."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()

    def _repr_html_(self) -> str:
        """Show the scenario in a notebook."""
        network = self.section("topology")["kind"] if self.has_topology else "a problem"
        return html_of_facts(
            f"Scenario {self.name}",
            [
                ("network", network),
                ("method", self.section("method")["name"]),
                ("seed", str(self.section("run")["seed"])),
            ],
        )

    def __repr__(self) -> str:
        return f"<Scenario {self.name!r}: {self.section('method')['name']}>"


def _filled(values: Mapping[str, Any], tables: Mapping[str, Any]) -> dict[str, Any]:
    """Sections, those left out with all their defaults."""
    return {
        name: table.read({}, name) if values[name] is None else values[name]
        for name, table in tables.items()
    }


def require_known(name: str, known: Iterable[str], place: str, what: str) -> None:
    """Refuse a name that the topology does not have; suggest the nearest, or list them."""
    names = list(known)
    if name not in names:
        more = ", ..." if len(names) > MOST_LISTED else ""
        there = f"there are {', '.join(map(shown_text, names[:MOST_LISTED]))}{more}"
        listed = there if names else "there is none"
        raise wrong(place, f"must be {what}", name, nearest_hint(name, names)[2:] or listed)


def _without_none(tree: Any) -> Any:
    """A copy, down to the last table and list."""
    if isinstance(tree, Mapping):
        return {key: _without_none(value) for key, value in tree.items() if value is not None}
    if isinstance(tree, list | tuple):
        return [_without_none(value) for value in tree]
    return tree
