"""The fields of collection files: names, kinds, units, defaults."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from datacollect.files.documents import COLLECTION_FORMAT
from datacollect.files.fields import ByName, Document, Field, Rows, Table
from datacollect.files.kinds import Flag, ListOf, Number, Text, Whole
from datacollect.files.quantities import BYTES_PER_S
from datacollect.methods.file_keys import fields_in
from datacollect.methods.places import refused_in
from datacollect.problem.fields import HOST, LINK, NAME, OPEN_FROM_NOW, SHARED
from datacollect.problem.hourly_rates import HostRate
from datacollect.transfer.sources.kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable

SOURCE = Table(
    "the source",
    "What is to be collected from one host.",
    (
        Field(
            "files",
            ListOf(Text(), 1),
            "Which files, as patterns: * is anything but a slash, ** anything; all if absent.",
        ),
        Field(
            "largest_bytes",
            Whole("bytes", minimum=0),
            "Files larger than this are not collected, and are listed by name. Default: no limit.",
        ),
    ),
)

RATE = HostRate(
    Number(
        BYTES_PER_S,
        positive=True,
        remedy="leave it out for unlimited; `open` of the destination in [hosts] says when nothing "
        "is to move",
    ),
    has_periods=False,
)

LIMITS = Table(
    "the limits",
    "What a collection may use, and how long it waits.",
    (
        Field(
            "connections",
            Whole(minimum=1, stop=1025),
            "Most TCP connections at a time; a route of two hops takes two. Default 16.",
            default=16,
        ),
        Field(
            "in_flight_bytes",
            Whole("bytes", minimum=2**20),
            "Most bytes that are requested and have not arrived. Default 256 MiB.",
            default=256 * 2**20,
        ),
        Field(
            "patience_s",
            Number("seconds", positive=True),
            "A source that sends nothing for this time is given up. Default 60.",
            default=60.0,
        ),
        Field(
            "timeout_s",
            Number("seconds", positive=True),
            "How long to wait for a connection, and for the start of each answer. Default 20.",
            default=20.0,
        ),
        Field(
            "piece_bytes",
            Whole("bytes", minimum=2**16, stop=2**24 + 1),
            "Unit of requests, hashes and records: a power of two from 64 KiB to 16 MiB; by "
            "default what suits the data.",
        ),
        Field(
            "time_s",
            Number("seconds", positive=True),
            "After this time the pull ends, and names what is missing; the next one continues. By "
            "default, it ends when all data have arrived.",
        ),
        Field(
            "spare_bytes",
            Whole("bytes", minimum=0),
            "Room to leave free on the destination's disk. Default 16 MiB.",
            default=16 * 2**20,
        ),
        Field(
            "rate",
            RATE,
            "Most that arrives from all hosts together, in bytes per second: one number, or, with "
            "timezone, rates that begin at hours of the day, perhaps on days of the week, such as "
            '"08:00 10 Mbit/s, 20:00 1 Gbit/s"; unlimited if absent.',
        ),
    ),
)

# Hosts are as in a problem file, and keep to their limits; so do links that are capped.
LINK_OF_COLLECTION = replace(
    LINK,
    fields=(
        *LINK.fields,
        OPEN_FROM_NOW,
        Field(
            "cap",
            Flag(),
            "Whether bandwidth_bytes_per_s is a cap; by default it is an estimate, which plans "
            "count on and nothing enforces.",
            default=False,
        ),
    ),
)

PLANNING = Table(
    "the planning",
    "Options of the method that `datacollect pull --method` names.",
    fields_in("pull"),
    refused=refused_in("pull"),
)


def _hosts_of(kind: str) -> Field:
    """Return the key under which a collection has its hosts of a kind."""
    its = KINDS.get(kind)
    return Field(kind, ByName(its.table), its.text, default={})


COLLECTION = Document(
    "the collection",
    "Which agents there are, what is fetched from them, and what is known of the links.",
    (
        Field("$schema", Text(), "JSON Schema of this file, for editors."),
        Field("format", Text((COLLECTION_FORMAT,)), "Format and its version.", required=True),
        Field("destination", NAME, "This host's name in the plan.", required=True),
        Field("key", Text(), "File of the collector's private key.", required=True),
        *map(_hosts_of, KINDS.own),
        Field("sources", ByName(SOURCE), "What to collect, by host; everything if absent."),
        Field("limits", LIMITS, "Limits of what the collection may use."),
        Field("planning", PLANNING, "Method of planning, and its options."),
        Field("bandwidth_csv", Text(), "CSV file with links, as in a problem file."),
        Field("hosts", ByName(HOST), "What a problem file says of hosts.", default={}),
        Field(
            "timezone",
            Text(),
            "IANA name of the zone whose clocks show the hours of limits and of open, such as "
            "Europe/Zurich.",
        ),
        Field(
            "links",
            Rows(LINK_OF_COLLECTION),
            "Links, as in a problem file; measured if absent.",
            default=(),
        ),
        Field("shared", Rows(SHARED), "Capacities that several links share.", default=()),
    ),
    remedy="`datacollect collection new` writes one",
)


def collection_with(keys: Iterable[str]) -> Document:
    """Return the fields of collection files, and those of kinds of sources of other packages.

    Parameters
    ----------
    keys : iterable of str
        Of a collection file. Where all are ours, nobody looks for packages. Else the kinds among
        them are there or, where a key is nobody's, all kinds, of which messages name the nearest.

    Raises
    ------
    ProblemError
        A package brings a kind wrongly.
    """
    others = [key for key in keys if key not in COLLECTION.by_name]
    if not others:
        return COLLECTION
    brought = [name for name in KINDS.names() if name not in COLLECTION.by_name]
    if set(others) <= set(brought):
        brought = others
    return replace(COLLECTION, fields=(*COLLECTION.fields, *map(_hosts_of, brought)))
