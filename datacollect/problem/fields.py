"""The fields of problem files: names, kinds, units, defaults.

The one source for reading and checking files, for the hints in messages and for the JSON Schema.
"""

from __future__ import annotations

from dataclasses import replace

from datacollect.files.documents import PROBLEM_FORMAT
from datacollect.files.fields import ByName, Document, Field, Rows, Table
from datacollect.files.kinds import (
    ClockTime,
    Degrees,
    Forecast,
    HourOfDay,
    Instant,
    ListOf,
    Number,
    Starts,
    Text,
    Whole,
)
from datacollect.files.with_units import BANDWIDTH, CAPACITY, INSTANT, RANGE, counted_fields
from datacollect.problem.bandwidth_intervals import INTERVAL_FIELDS
from datacollect.problem.contents import FILE_TOLERANCE
from datacollect.problem.hourly_rates import HostRate
from datacollect.problem.windows import Windows

UNLIMITED = "leave it out for unlimited"
NONE = "leave it out for 0"
NAME = Text()
PAIR = ListOf(NAME, 2, 2, 'must be a pair ["from", "to"]')
SOURCE_NAME = "The host whose backlog the data are part of."
BYTES_RANGE = "First byte of the range, counted within the source's backlog."
_HOST_RATE = replace(BANDWIDTH, remedy=UNLIMITED)
_PRODUCES = replace(CAPACITY, remedy="leave it out where all is there at release_s")
_SHOWN_RATE = replace(CAPACITY, remedy="leave it out where nothing was seen")


_RATES = (
    'rates that begin at hours of the day, perhaps on days of the week, such as "08:00 10 Mbit/s, '
    '20:00 1 Gbit/s"'
)


def _limit(name: str, what: str, *, has_periods: bool) -> Field:
    """Return a limit of hosts, which may change by time."""
    by_time = (
        f"with periods a list of one per period, or with start {_RATES}"
        if has_periods
        else f"or with timezone {_RATES}"
    )
    return Field(
        name,
        HostRate(_HOST_RATE, has_periods, may_be_none=True),
        f'{what}, in bytes per second: a number, {by_time}; unlimited if absent; "none" where it '
        "is known that there is no limit.",
    )


def _shown(name: str, does: str) -> Field:
    """Return what a host has been seen to do, which is no limit."""
    return Field(
        name,
        _SHOWN_RATE,
        f"The most that the host was seen to {does} at once in a test, a flood or a pull, in "
        "bytes per second. This does not limit plans; they say where they rely on more. By "
        "default, and at least, the bandwidth of one of the host's links.",
    )


def _host(*more: Field, has_periods: bool) -> Table:
    """Return what files say of a host, whether or not they have periods."""
    return Table(
        "the host",
        "A machine that takes part.",
        (
            Field(
                "backlog_bytes",
                Whole("bytes", remedy=NONE),
                "Bytes that the host holds at its release time and that must reach the "
                "destination.",
                default=0,
            ),
            Field(
                "release_s",
                Instant(Number("seconds", remedy=NONE)),
                "Instant from which the backlog may leave the host, in seconds; with start also a "
                "clock time, or an hour of the day, which means the next such hour.",
                default=0.0,
            ),
            Field(
                "produces_bytes_per_s",
                _PRODUCES,
                "Rate at which the host makes its backlog, byte after byte from release_s on, in "
                "bytes per second; if absent, the whole backlog exists at release_s.",
            ),
            Field(
                "made_bytes",
                Whole("bytes", remedy=NONE),
                "With produces_bytes_per_s: how many bytes of the backlog, from its beginning, "
                "exist already at release_s.",
                default=0,
            ),
            Field(
                "storage_bytes",
                Whole("bytes", stop=None, remedy=UNLIMITED),
                "Room for other hosts' data, in bytes; unlimited if absent; 0: never a "
                "store-and-forward relay.",
            ),
            _limit(
                "uplink_bytes_per_s",
                "What all links out of the host carry together",
                has_periods=has_periods,
            ),
            _limit(
                "downlink_bytes_per_s",
                "What all links into the host carry together",
                has_periods=has_periods,
            ),
            Field(
                "profile",
                Text(),
                "File that `datacollect host calibrate` wrote on the host, relative to this file: "
                "what it sends and receives over TLS, the latter to disk, as uplink and downlink; "
                "where these are given, too, the smaller counts.",
            ),
            _shown("shown_uplink_bytes_per_s", "send"),
            _shown("shown_downlink_bytes_per_s", "receive"),
            Field(
                "most_connections",
                Whole("connections", stop=None, remedy=UNLIMITED),
                "Connections that begin or end at the host at a time, where plans count "
                "connections; unlimited if absent.",
            ),
            Field(
                "latitude",
                Degrees(90),
                "Where the host stands, for pictures: degrees, north of the equator positive; with "
                "longitude.",
            ),
            Field(
                "longitude",
                Degrees(180),
                "Where the host stands, for pictures: degrees, east of Greenwich positive; with "
                "latitude.",
            ),
            *more,
        ),
    )


def _open(needs: str) -> Field:
    """Return when hosts and links are open."""
    return Field(
        "open",
        Windows(),
        f"When it carries data, with {needs}: hours of the day, perhaps with days and a time "
        'zone, "Mo-Fr 20:00-06:00, Sa Su 00:00-24:00"; always if absent. A host\'s hours hold '
        "for all its links.",
    )


# Of collection files, which have no periods, and begin when a pull does.
OPEN_FROM_NOW = _open("timezone")
HOST = _host(OPEN_FROM_NOW, has_periods=False)

_CAPACITY = Field(
    "capacity_bytes_per_s",
    CAPACITY,
    "What all connections together get, ours and others', in bytes per second: n of ours get "
    "capacity × n / (n + competitors).",
)
_COMPETITORS = Field(
    "competitors",
    Number("connections", remedy="leave it out where it is not known"),
    "Connections of others on the narrowest wire. If the capacity is given and this is not: so "
    "many that one connection of ours gets bandwidth_bytes_per_s.",
)

# What of a link says how its rate grows with connections.
RATES = (
    Field(
        "per_connection_bytes_per_s",
        CAPACITY,
        "What one connection gets at most, however idle the wire, in bytes per second.",
    ),
    _CAPACITY,
    _COMPETITORS,
)

LINK = Table(
    "the link",
    "An ordered pair of hosts with an estimated available bandwidth.",
    (
        Field("from", NAME, "Host that sends.", required=True),
        Field("to", NAME, "Host that receives.", required=True),
        Field(
            "bandwidth_bytes_per_s",
            Forecast(BANDWIDTH),
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
        *RATES,
        *INTERVAL_FIELDS,
    ),
)

SHARED = Table(
    "the shared bottleneck",
    "A capacity that several links use together.",
    (
        Field("name", NAME, "Unique name of the bottleneck.", required=True),
        Field(
            "bandwidth_bytes_per_s",
            BANDWIDTH,
            "What the bottleneck's links carry together, in bytes per second.",
            required=True,
        ),
        Field(
            "links",
            ListOf(PAIR, 1, None, 'must be a list of pairs ["from", "to"], at least one'),
            'Links that share the bottleneck, as pairs ["from", "to"]; each must be a link of the '
            "problem.",
            required=True,
        ),
        _CAPACITY,
        _COMPETITORS,
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
        Field("offset_bytes", RANGE, BYTES_RANGE, required=True),
        Field("bytes", RANGE, "Length of the range in bytes.", required=True),
    ),
)

# What numbers of hosts, links and starts of periods count, wherever else than in files they stand.
COUNTED = {
    **counted_fields(HOST, LINK),
    **dict.fromkeys(("latitude", "longitude"), Number("degrees", signed=True)),
    **dict.fromkeys(("periods_s", "measured_s"), INSTANT),
    "file_tolerance": Number("the makespan, a part"),
    **dict.fromkeys(("link_from", "link_to"), Whole("hosts, from 0")),
}

# Only problems have windows.
_OPEN = _open("start")


PROBLEM = Document(
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
            "Columns from, to, one of bandwidth_bytes_per_s, bandwidth_mbit_per_s, "
            "bandwidth_gbit_per_s and the like; optionally period (from 0), price_per_gb, "
            "per_connection_bytes_per_s, capacity_bytes_per_s and competitors.",
        ),
        Field(
            "periods_s",
            Starts(clock=True),
            "Starts of the forecast's periods in seconds, the first 0, increasing; the last "
            "period lasts for ever. With start, they may be clock times.",
        ),
        Field(
            "daily_periods",
            ListOf(HourOfDay(), 1, None, "must be a list of hours of the day, at least one"),
            "Instead of periods_s, with start: hours of the day at which the forecast's periods "
            "start, every day again; links then have one number for each period.",
        ),
        Field(
            "start",
            ClockTime(may_be_hour=True),
            "Clock time of 0 s, for clock times in this file and answers; an hour of the day "
            "alone means the next such hour from now on.",
        ),
        Field(
            "timezone",
            Text(),
            "IANA name of the time zone of clock times, such as Europe/Zurich; needs start.",
        ),
        Field(
            "measured_at",
            ClockTime(),
            "Clock time at which bandwidths were measured; plans say when that is long ago.",
        ),
        Field(
            "manifest",
            Text(),
            "CSV file with the files of hosts, columns host, path, bytes and optionally sha256; "
            "relative to this file. A backlog is then the sum of its files, in this order.",
        ),
        Field(
            "file_tolerance",
            Number("the makespan, a part"),
            "How much longer a plan may take, as a part of its time, so that files need not be "
            "split.",
            default=FILE_TOLERANCE,
        ),
        Field(
            "hosts",
            ByName(_host(_OPEN, has_periods=True)),
            "Every host, by name.",
            required=True,
        ),
        Field(
            "links",
            Rows(replace(LINK, fields=(*LINK.fields, _OPEN))),
            "Links, each ordered pair of hosts at most once.",
            default=(),
        ),
        Field("shared", Rows(SHARED), "Capacities that several links share.", default=()),
        Field(
            "held",
            Rows(HELD),
            "Parts of backlogs that already lie elsewhere, for planning again.",
            default=(),
        ),
    ),
    remedy="`datacollect example minimal` writes one to compare with",
    instead={"schedule": "name the problem file first, then the schedule"},
)
