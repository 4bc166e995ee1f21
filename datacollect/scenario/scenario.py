"""The scenario: a network, who collects what in it, beside what traffic, by which method."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.documents import document_name, read_tree
from datacollect.errors import InfeasibleError, ProblemError, nearest_hint
from datacollect.kinds import shown_text, wrong
from datacollect.scenario_fields import (
    ALWAYS,
    SCENARIO,
    SCENARIO_FORMAT,
    WITH_TOPOLOGY,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
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
        """Read a scenario file: TOML or JSON; ``-`` reads standard input.

        Raises
        ------
        ProblemError
            The message names file, place, rule, value and remedy.
        """
        tree = read_tree(path)
        folder = Path() if str(path) == "-" else Path(path).parent
        if isinstance(tree, dict) and "name" not in tree and str(path) != "-":
            tree = {"name": Path(path).stem, **tree}
        file = document_name(path)
        with naming(file):
            return replace(cls.from_dict(tree, folder), file=file)

    @classmethod
    def from_dict(
        cls, tree: Mapping[str, Any], folder: str | PathLike[str] | None = None
    ) -> Scenario:
        """Build a scenario from the tree of a scenario file (see the docs, File formats).

        Parameters
        ----------
        tree : mapping
        folder : path-like, optional
            What file names are relative to; by default the working directory.

        Raises
        ------
        ProblemError
            The message names place, rule, value and remedy.
        """
        _reject_other_format(tree)
        values = SCENARIO.read(tree, "")
        _require_one_network(values)
        sections = {name: values[name] for name in ("name", "scale")}
        if values["problem"] is not None:
            sections |= {name: values[name] for name in ("problem", "truth_csv")}
        else:
            sections |= {name: values[name] for name in ("topology", "hosts")}
            sections |= _filled(values, WITH_TOPOLOGY)
        sections |= _filled(values, ALWAYS)
        _check_together(sections)
        return cls(sections, Path(folder or "."))

    @property
    def name(self) -> str:
        """Its name, for messages and results."""
        return str(self.sections["name"])

    @property
    def has_topology(self) -> bool:
        """Whether it names a topology, rather than a problem."""
        return "topology" in self.sections

    def section(self, name: str) -> Mapping[str, Any]:
        """Return a table, every default filled in."""
        found: Mapping[str, Any] = self.sections[name]
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return the tree of the scenario file with every default written out."""
        tree = _without_none(deepcopy(dict(self.sections)))
        return {"format": SCENARIO_FORMAT, **tree}

    def with_values(self, values: Mapping[str, Any]) -> Scenario:
        """Return the scenario with other values, by their places.

        Parameters
        ----------
        values : mapping
            From places such as ``"background.flows"`` or ``"hosts.destination.access.delay_s"`` to
            values; None takes a value away.

        Raises
        ------
        ProblemError
            There is no such place, or the scenario breaks a rule with the value.
        """
        tree = self.to_dict()
        for place, value in values.items():
            *tables, key = place.split(".")
            table = tree
            for name in tables:
                table = table.setdefault(name, {})
                if not isinstance(table, dict):
                    raise ProblemError(f"{place}: {name} is no table; name a key of a table")
            if value is None:
                table.pop(key, None)
            else:
                table[key] = deepcopy(value)
        return replace(type(self).from_dict(tree, self.folder), file=self.file)

    def seed_of(self, stream: str) -> np.random.SeedSequence:
        """Return the seed of one stream of random numbers: the section's own, or the run's."""
        own = self.sections.get(stream, {}).get("seed")
        seed = self.section("run")["seed"] if own is None else own
        return np.random.SeedSequence(seed, spawn_key=(STREAMS.index(stream),))

    def random(self, stream: str) -> np.random.Generator:
        """Return the generator of one stream."""
        return np.random.Generator(np.random.PCG64(self.seed_of(stream)))

    def number(self, stream: str) -> int:
        """Return a seed between 1 and 2^31 - 1 for what takes a number."""
        return int(self.seed_of(stream).generate_state(1)[0]) % (2**31 - 1) + 1

    def naming_file(self) -> AbstractContextManager[None]:
        """Put the scenario's file before what errors say that arise inside."""
        return naming(self.file) if self.file else nullcontext()

    @property
    def sha256(self) -> str:
        """Hash of what the file says, defaults written out; not of the files that it names."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()

    def __repr__(self) -> str:
        return f"<Scenario {self.name!r}: {self.section('method')['name']}>"


def _filled(values: Mapping[str, Any], tables: Mapping[str, Any]) -> dict[str, Any]:
    """Sections, those left out with all their defaults."""
    return {
        name: table.read({}, name) if values[name] is None else values[name]
        for name, table in tables.items()
    }


def _reject_other_format(tree: Any) -> None:
    if not isinstance(tree, Mapping):
        remedy = "`datacollect example scenario_small` writes one to compare with"
        raise wrong("", "must be a table of keys and values", tree, remedy)
    given = tree.get("format")
    if isinstance(given, str) and given != SCENARIO_FORMAT and given.startswith("datacollect-"):
        what = given.removeprefix("datacollect-").partition("/")[0]
        remedy = "carry it out with --schedule" if what == "schedule" else "a scenario can name it"
        raise ProblemError(
            f'format must be "{SCENARIO_FORMAT}", got {given!r}: this is a {what} file; {remedy}'
        )
    if "destination" in tree and "topology" not in tree:
        raise ProblemError(
            "this looks like a problem file, not a scenario; write a scenario with "
            'problem = "FILE" in it'
        )


def _require_one_network(values: Mapping[str, Any]) -> None:
    if values["problem"] is not None:
        for name in ("topology", "hosts", *WITH_TOPOLOGY):
            if values[name] is not None:
                raise ProblemError(
                    f"{name}: a scenario with a problem has no {name}, which needs a topology; "
                    "remove one of them"
                )
        return
    if values["truth_csv"] is not None:
        raise ProblemError("truth_csv needs a problem; add problem = ..., or remove it")
    for name in ("topology", "hosts"):
        if values[name] is None:
            raise ProblemError(f"key {name} is missing; add [{name}], or name a problem instead")


def _check_together(sections: Mapping[str, Any]) -> None:
    """What values say together."""
    _check_method(sections["method"])
    if "topology" not in sections:
        return
    _check_hosts(sections["hosts"])
    background, estimates = sections["background"], sections["estimates"]
    if background["least_mean_s"] > background["most_mean_s"]:
        raise wrong(
            "background.least_mean_s",
            f"must be <= most_mean_s ({background['most_mean_s']:g})",
            background["least_mean_s"],
            "exchange them",
        )
    for i, pair in enumerate(background["pairs"]):
        if (pair["kind"] == "udp") != (pair["rate_bytes_per_s"] is not None):
            rule = "is for UDP and is needed there"
            raise wrong(f"background.pairs[{i}].rate_bytes_per_s", rule, pair["rate_bytes_per_s"])
    if (estimates["kind"] == "given") != (estimates["file"] is not None):
        raise wrong(
            "estimates.file",
            'is for kind = "given" and is needed there',
            estimates["file"],
            f"kind is {estimates['kind']!r}",
        )
    for i, wire in enumerate(estimates["shared"] or ()):
        if wire["bandwidth_bytes_per_s"] is not None and wire["connections"] is not None:
            raise ProblemError(
                f"estimates.shared[{i}]: bandwidth_bytes_per_s and connections exclude each other; "
                "give one of them, or none for the wire's rate"
            )
    backlog = sections["backlog"]
    least, most = backlog["least_bytes"], backlog["most_bytes"]
    if (least is None) != (most is None):
        raise ProblemError("backlog: least_bytes and most_bytes belong together; give both")
    if least is not None and least > most:
        raise wrong(
            "backlog.least_bytes", f"must be <= most_bytes ({most})", least, "exchange them"
        )


def _check_hosts(hosts: Mapping[str, Any]) -> None:
    if not hosts["sources"]:
        raise ProblemError("hosts.sources must not be empty; add [[hosts.sources]]")
    places = [("hosts.destination", hosts["destination"])]
    for group in ("sources", "relays"):
        places += [(f"hosts.{group}[{i}]", entry) for i, entry in enumerate(hosts[group])]
    for place, entry in places:
        if entry["at"] is not None:
            for key in ("domain", "among"):
                if entry[key] is not None:
                    raise wrong(f"{place}.{key}", "excludes at", entry[key], "keep one of them")


def _check_method(method: Mapping[str, Any]) -> None:
    if method["slot_s"] is not None and method["chunk_s"] is not None:
        raise ProblemError("method: slot_s and chunk_s exclude each other; give one of them")
    totals = [key for key in ("total_streams", "streams_as") if method[key] is not None]
    if len(totals) > 1:
        raise ProblemError("method: total_streams and streams_as exclude each other; give one")
    if method["replan_s"] is not None:
        _check_replanning(method)


def _check_replanning(method: Mapping[str, Any]) -> None:
    """What is planned anew on the way is coordinated, pipelined, and leaves as soon as it can."""
    needed = {"name": "coordinated", "timing": "asap", "pace": False}
    for key, value in needed.items():
        if method[key] != value:
            rule = f"must be {str(value).lower()} with replan_s"
            raise wrong(f"method.{key}", rule, method[key], "or leave out method.replan_s")
    if method["slot_s"] is not None:
        rule = "excludes replan_s, which is for pipelined plans"
        raise wrong("method.slot_s", rule, method["slot_s"], "leave out one of them")


@contextmanager
def naming(place: str) -> Iterator[None]:
    """Put a place, or a file's name, before what errors say that arise inside.

    >>> with naming("small.toml"):
    ...     raise ProblemError("scale must be > 0, got 0")
    Traceback (most recent call last):
    datacollect.errors.ProblemError: small.toml: scale must be > 0, got 0
    """
    try:
        yield
    except ProblemError as error:
        raise type(error)(f"{place}: {error}") from None
    except InfeasibleError as error:
        raise InfeasibleError(f"{place}: {error}", error.hosts) from None


def require_known(name: str, known: Iterable[str], place: str, what: str) -> None:
    """Refuse a name that the topology does not have; suggest the nearest, or list them."""
    names = list(known)
    if name not in names:
        more = ", ..." if len(names) > MOST_LISTED else ""
        there = f"there are {', '.join(map(shown_text, names[:MOST_LISTED]))}{more}"
        listed = there if names else "there is none"
        raise wrong(place, f"must be {what}", name, nearest_hint(name, names)[2:] or listed)


def _without_none(tree: Any) -> Any:
    if isinstance(tree, Mapping):
        return {key: _without_none(value) for key, value in tree.items() if value is not None}
    if isinstance(tree, list | tuple):
        return [_without_none(value) for value in tree]
    return tree
