"""The fields of schedule and progress files: names, kinds, units, defaults.

The one source for reading and checking files, for the hints in messages and for the JSON Schema.
"""

from __future__ import annotations

import math
from typing import get_args

from datacollect.files.choices import First, Preference
from datacollect.files.documents import PROGRESS_FORMAT, SCHEDULE_FORMAT
from datacollect.files.fields import Document, Field, Rows, Table
from datacollect.files.kinds import ClockTime, Flag, ListOf, Number, Starts, Text, Whole
from datacollect.problem.bandwidth_intervals import HIGH, LOW
from datacollect.problem.connection_rates import RATE_COLUMNS
from datacollect.problem.fields import BYTES_RANGE, HELD, LINK, NAME, SOURCE_NAME

SECONDS = Number("seconds")
INSTANT = Number("seconds", remedy="count from the start of the plan")

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
        Field(
            "hosts", ListOf(NAME), "Sources whose backlog must cross the bottleneck.", required=True
        ),
        Field("text", Text(), "The bottleneck in words.", required=True),
    ),
)

TURNS = Table(
    "the turns",
    "How the hosts of a direct plan take turns.",
    (
        Field("order", ListOf(NAME), "Hosts that send first, in this order.", required=True),
        Field("at_a_time", Whole(minimum=1), "How many hosts send at once.", required=True),
        Field(
            "time_slot_s",
            Number("seconds", positive=True),
            "How long a turn lasts, in seconds; null: until the host has sent everything.",
            nullable=True,
        ),
    ),
)

SCHEDULE = Document(
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
        Field("solver", Text(), "Solvers that made the plan.", required=True),
        Field("problem_sha256", Text(), "Hash of the problem that the plan solves.", required=True),
        Field(
            "status",
            Text(("optimal", "heuristic", "time_limit")),
            "What is known about the plan's quality.",
            default="heuristic",
        ),
        Field("bottleneck", BOTTLENECK, "Why the plan cannot be faster.", nullable=True),
        Field("plan_time_s", SECONDS, "Time that planning took, in seconds.", default=0.0),
        Field(
            "prefer",
            Text(get_args(Preference)),
            "What a coordinated plan minimises; null where unknown, or for other methods.",
            nullable=True,
        ),
        Field(
            "deadline_s",
            Number("seconds", positive=True),
            "The deadline that the plan was made for, in seconds; null: none, as soon as possible.",
            nullable=True,
        ),
        Field(
            "most_by_s",
            Number("seconds", positive=True),
            "Instant by which as much as possible was to arrive, in seconds; null: none was given.",
            nullable=True,
        ),
        Field(
            "margin_s",
            Number("seconds", positive=True),
            "The plan is done this long before windows close, and before the deadline, in "
            "seconds; null: no margin.",
            nullable=True,
        ),
        Field(
            "starts_at",
            ClockTime(),
            "Clock time of the plan's 0 s, where the problem does not fix it; null: the problem "
            "fixes it, or nothing does.",
            nullable=True,
        ),
        Field("turns", TURNS, "How hosts take turns; null: all send at once.", nullable=True),
        Field(
            "hysteresis",
            Number(positive=True),
            "How many times better than the best route so far a route of best-path had to be; "
            "null: another method.",
            nullable=True,
        ),
        Field(
            "first",
            Text(get_args(First)),
            "Which route best-path compared the others with first; null: the direct one, or "
            "another method.",
            nullable=True,
        ),
        Field(
            "derate",
            Number("all bandwidths, a part", positive=True),
            "The plan counts on this part of every link's bandwidth; null: on the whole.",
            nullable=True,
        ),
        Field(
            "most_transfers",
            Whole(minimum=1),
            "How many transfers a host sends and receives at once, at most; null: any number.",
            nullable=True,
        ),
        Field(
            "connections",
            Whole(minimum=1),
            "Connections open at a time in the whole plan, at most (streams of the transfers say "
            "how many on each route); null: one per hop of each route.",
            nullable=True,
        ),
        Field(
            "hosts",
            ListOf(NAME),
            "All hosts of the problem, even those without work; absent where they are not known.",
            default=(),
        ),
        Field(
            "cautious",
            Flag(),
            "Whether no host is planned to send or receive more at once than it was seen to.",
            default=False,
        ),
        Field("transfers", Rows(TRANSFER), "The transfers.", required=True),
    ),
    remedy="`datacollect plan -o` writes one",
    instead={"problem": "name the problem file first, then the schedule"},
)

# What new estimates do not say of a link.
NOT_NEW = ("price_per_gb", *RATE_COLUMNS, LOW, HIGH)

NEW_LINK = Table(
    "the link",
    "A link's new estimate.",
    (
        *(field for field in LINK.fields if field.name not in NOT_NEW),
        Field(
            "price_per_gb",
            Number("currency per 10^9 bytes"),
            "Price per 10^9 bytes, in any currency; if absent the problem's.",
            default=math.nan,
        ),
    ),
)

PROGRESS = Document(
    "the progress",
    "What lies where at an instant, and what has changed since the plan was made.",
    (
        Field("format", Text((PROGRESS_FORMAT,)), "Format and its version.", required=True),
        Field(
            "at_s",
            INSTANT,
            "The instant, in seconds from the start of the plan.",
            required=True,
        ),
        Field(
            "held",
            Rows(HELD),
            "All data that lie elsewhere than at their source; at the destination they are "
            "collected.",
            default=(),
        ),
        Field(
            "links",
            Rows(NEW_LINK),
            "New estimates of links; they replace the problem's, or add links.",
            default=(),
        ),
        Field(
            "bandwidth_csv",
            Text(),
            "CSV file with new estimates, besides or instead of the list of links; relative to "
            "this file.",
        ),
        Field(
            "periods_s",
            Starts(),
            "Starts of the new estimates' periods, in seconds from at_s, the first 0.",
        ),
        Field(
            "lost_hosts",
            ListOf(NAME),
            "Hosts that no longer answer.",
            default=(),
        ),
    ),
    remedy="`datacollect progress` writes one",
    instead=dict.fromkeys(
        ("problem", "schedule"), "name the problem first, then the schedule, then the progress"
    ),
)
