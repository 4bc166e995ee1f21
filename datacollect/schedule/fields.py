"""The fields of problem and schedule files: names, kinds, units, defaults.

The one source for reading and checking files, for the hints in messages and for the JSON Schema.
"""

from __future__ import annotations

from datacollect.kinds import (
    ByName,
    Field,
    Forecast,
    ListOf,
    Number,
    Rows,
    Starts,
    Table,
    Text,
    Whole,
)

PROBLEM_FORMAT = "datacollect-problem/1"
SCHEDULE_FORMAT = "datacollect-schedule/1"

UNLIMITED = "leave it out for unlimited"
NONE = "leave it out for 0"
NAME = Text()
SECONDS = Number("seconds")
PAIR = ListOf(NAME, 2, 2, 'must be a pair ["from", "to"]')
SOURCE_NAME = "Whose backlog the data are part of."
BYTES_RANGE = "First byte of the range, counted within the source's backlog."


def _bandwidth(remedy: str = "use 0 for no capacity") -> Number:
    return Number("bytes per second", remedy=remedy)


HOST = Table(
    "the host",
    "A machine that takes part.",
    (
        Field(
            "backlog_bytes",
            Whole("bytes", remedy=NONE),
            "Bytes that the host holds at its release time and that must reach the destination.",
            default=0,
        ),
        Field(
            "release_s",
            Number("seconds", remedy=NONE),
            "Instant from which the backlog may leave the host, in seconds.",
            default=0.0,
        ),
        Field(
            "storage_bytes",
            Whole("bytes", stop=None, remedy=UNLIMITED),
            "Room for other hosts' data, in bytes; unlimited if absent; 0: never a "
            "store-and-forward relay.",
        ),
        Field(
            "uplink_bytes_per_s",
            _bandwidth(UNLIMITED),
            "What all links out of the host carry together, in bytes per second; unlimited if "
            "absent.",
        ),
        Field(
            "downlink_bytes_per_s",
            _bandwidth(UNLIMITED),
            "What all links into the host carry together, in bytes per second; unlimited if "
            "absent.",
        ),
    ),
)

LINK = Table(
    "the link",
    "An ordered pair of hosts with an estimated available bandwidth.",
    (
        Field("from", NAME, "Host that sends.", required=True),
        Field("to", NAME, "Host that receives.", required=True),
        Field(
            "bandwidth_bytes_per_s",
            Forecast(_bandwidth()),
            "Available bandwidth in bytes per second: a number, or with periods_s a list of one "
            "number per period; 0 means no capacity.",
            required=True,
        ),
        Field(
            "price_per_gb",
            Number("currency per 10^9 bytes", remedy=NONE),
            "Price per 10^9 bytes, in any currency.",
            default=0.0,
        ),
    ),
)

SHARED = Table(
    "the shared bottleneck",
    "A capacity that several links use together.",
    (
        Field("name", NAME, "Unique name of the bottleneck.", required=True),
        Field(
            "bandwidth_bytes_per_s",
            _bandwidth(),
            "What its links carry together, in bytes per second.",
            required=True,
        ),
        Field(
            "links",
            ListOf(PAIR, 1, None, 'must be a list of pairs ["from", "to"], at least one'),
            'Its links as pairs ["from", "to"]; each must be a link of the problem.',
            required=True,
        ),
    ),
)

HELD = Table(
    "the held range",
    "Part of a source's backlog that already lies at another host.",
    (
        Field(
            "host",
            NAME,
            "Host where the data lie; at the destination they count as collected.",
            required=True,
        ),
        Field("source", NAME, SOURCE_NAME, required=True),
        Field("offset_bytes", Whole("bytes"), BYTES_RANGE, required=True),
        Field("bytes", Whole("bytes"), "Length of the range in bytes.", required=True),
    ),
)

PROBLEM = Table(
    "the problem",
    "What each host holds, what bandwidth lies between hosts, and where all must go.",
    (
        Field("$schema", Text(), "JSON Schema of this file, for editors."),
        Field("format", Text((PROBLEM_FORMAT,)), "Format and its version."),
        Field("destination", NAME, "The one host that collects everything.", required=True),
        Field(
            "bandwidth_csv",
            Text(),
            "CSV file with links, besides or instead of the list of links; relative to this file. "
            "Columns from, to, one of bandwidth_bytes_per_s, bandwidth_bit_per_s and "
            "bandwidth_mbit_per_s; optionally period (from 0) and price_per_gb.",
        ),
        Field(
            "periods_s",
            Starts(),
            "Starts of the forecast's periods in seconds, the first 0, increasing; the last "
            "period lasts for ever.",
        ),
        Field("hosts", ByName(HOST), "Every host, by name.", required=True),
        Field("links", Rows(LINK), "Links, each ordered pair of hosts at most once.", default=()),
        Field("shared", Rows(SHARED), "Capacities that several links share.", default=()),
        Field(
            "held",
            Rows(HELD),
            "Parts of backlogs that already lie elsewhere, for planning anew.",
            default=(),
        ),
    ),
)

TRANSFER = Table(
    "the transfer",
    "Bytes of one route moved over one hop between two instants, at constant rate.",
    (
        Field("source", NAME, SOURCE_NAME, required=True),
        Field(
            "route",
            ListOf(NAME, 2, None, "must be a list of at least two hosts"),
            "Hosts from where the data lie to the destination.",
            required=True,
        ),
        Field(
            "hop",
            Whole(),
            "The transfer uses the link from the route's host number hop (from 0) to the next.",
            required=True,
        ),
        Field("offset_bytes", Whole("bytes"), BYTES_RANGE, required=True),
        Field("bytes", Whole("bytes"), "Length of the range in bytes.", required=True),
        # A start before 0 breaks a rule of schedules, not of files: `check` names it.
        Field("start_s", Number("seconds", signed=True), "Start in seconds.", required=True),
        Field("finish_s", Number("seconds", signed=True), "End in seconds.", required=True),
        Field("streams", Whole(minimum=1), "Parallel connections.", default=1),
    ),
)

BOTTLENECK = Table(
    "the bottleneck",
    "Why a plan cannot be faster.",
    (
        Field("kind", Text(), "destination, source, hosts, shared or none.", required=True),
        Field("hosts", ListOf(NAME), "Sources whose backlog must cross it.", required=True),
        Field("text", Text(), "The same in words.", required=True),
    ),
)

TURNS = Table(
    "the turns",
    "How the hosts of a direct plan take turns.",
    (
        Field("order", ListOf(NAME), "Hosts that come first, in this order.", required=True),
        Field("at_a_time", Whole(minimum=1), "So many hosts send at once.", required=True),
        Field(
            "time_slot_s",
            Number("seconds", positive=True),
            "How long a turn lasts, in seconds; null: until the host has sent everything.",
            nullable=True,
        ),
    ),
)

SCHEDULE = Table(
    "the schedule",
    "All transfers that empty every backlog.",
    (
        Field("format", Text((SCHEDULE_FORMAT,)), "Format and its version.", required=True),
        Field("method", Text(), "direct, best-path or coordinated.", required=True),
        Field("destination", NAME, "The one host that collects everything.", required=True),
        Field("makespan_s", SECONDS, "When the last byte arrives, in seconds.", required=True),
        Field(
            "lower_bound_s",
            SECONDS,
            "The fluid optimum in seconds: no schedule is faster.",
            required=True,
        ),
        Field(
            "slot_s",
            Number("seconds", positive=True),
            "Slot of a store-and-forward schedule in seconds, else null.",
            required=True,
            nullable=True,
        ),
        Field(
            "chunk_s",
            SECONDS,
            "Chunk of a pipelined schedule in seconds, else null.",
            required=True,
            nullable=True,
        ),
        Field("solver", Text(), "Solvers that made it.", required=True),
        Field("problem_sha256", Text(), "Hash of the problem that it solves.", required=True),
        Field(
            "status",
            Text(("optimal", "heuristic", "time_limit")),
            "What is known about its quality.",
            default="heuristic",
        ),
        Field("bottleneck", BOTTLENECK, "Why it cannot be faster.", nullable=True),
        Field("plan_time_s", SECONDS, "Time that planning took, in seconds.", default=0.0),
        Field(
            "prefer",
            Text(("relay-bytes", "storage", "earliest-arrival", "money")),
            "What a coordinated plan minimises; null where unknown, or for other methods.",
            nullable=True,
        ),
        Field(
            "deadline_s",
            Number("seconds", positive=True),
            "What it was planned to end by, in seconds; null: as soon as possible.",
            nullable=True,
        ),
        Field("turns", TURNS, "How hosts take turns; null: all send at once.", nullable=True),
        Field(
            "hysteresis",
            Number(positive=True),
            "How many times better than the best so far a route of best-path had to be, else null.",
            nullable=True,
        ),
        Field("transfers", Rows(TRANSFER), "The transfers.", required=True),
    ),
)
