"""Tables of fields of an event's file."""

from __future__ import annotations

from datacollect.bistro.formats.event.kinds import (
    CERTIFICATES,
    FINGERPRINT,
    WITNESS_KEY,
    LogKey,
    Recipient,
    Url,
)
from datacollect.bistro.formats.log.content import CONTENT_FORMATS
from datacollect.bistro.formats.log.file_list import MOST_FILES
from datacollect.files.fields import Document, Field, Rows, Table
from datacollect.files.file_kinds import FileKind
from datacollect.files.kinds import ClockTime, Flag, ListOf, Text, Whole
from datacollect.net.kinds import HostName, PublicKey

# Of the first, tickets are words: whoever hears one can use it. Such events are still read.
EVENT_FORMATS = ("datacollect-event/1", "datacollect-event/2")
EVENT_FORMAT = EVENT_FORMATS[-1]
AMENDMENT_FORMAT = "datacollect-amendment/1"

MOST_LAG_S = 600

LIMITS = Table(
    "the table limits",
    "Limits of what a person may hand in.",
    (
        Field(
            "bytes", Whole("bytes", minimum=1), "Most bytes of a sealed file; any size if absent."
        ),
        Field(
            "commitments_per_ticket",
            Whole(minimum=1, stop=10_001),
            "How many drafts a ticket allows.",
            default=10,
        ),
        Field(
            "files",
            Whole(minimum=1, stop=MOST_FILES + 1),
            "How many files one draft may have.",
            default=1,
        ),
    ),
)

SERVICE = Table(
    "a service",
    "A service, which keeps a log of the event.",
    (
        Field("url", Url(), "Where it is.", required=True),
        Field(
            "log",
            LogKey(),
            "Verifier key of the log; no other log has had its origin (name).",
            required=True,
        ),
    ),
)

WITNESS = Table(
    "a witness",
    "A witness: it signs by which time a log had reached its size, and that the log has only "
    "grown.",
    (
        Field("url", Url(), "Where it is.", required=True),
        Field("vkey", WITNESS_KEY, "The witness's verifier key.", required=True),
    ),
)

BISTRO = Table(
    "a bistro",
    "An upload server that keeps sealed files until they are collected.",
    (
        Field("name", HostName(), "Its name.", required=True),
        Field("url", Url(), "Where it is.", required=True),
        Field(
            "key", PublicKey(), "Public key of the bistro, which signs its receipts.", required=True
        ),
        Field("fingerprint", FINGERPRINT, "Fingerprint of the bistro's certificate."),
        Field("ca", CERTIFICATES, "Certificate of the authority that signed the bistro's, PEM."),
    ),
)

AUTHORITY = Table(
    "an authority",
    "An authority that tells the time by RFC 3161 where no service answers.",
    (
        Field("url", Url(), "Where it is.", required=True),
        Field(
            "certificate",
            CERTIFICATES,
            "The authority's root certificate, and those that lead to it, PEM.",
            required=True,
        ),
    ),
)

VERDICTS = Table(
    "the table verdicts",
    "The log in which the destination publishes what it has collected.",
    (
        Field("log", LogKey(), "Verifier key of the log of verdicts.", required=True),
        Field(
            "url",
            Url(),
            "Address where people read the log; if absent, they cannot ask for verdicts.",
        ),
    ),
)

SUCCESSOR = Field("verdicts", VERDICTS, "The log of verdicts that replaces the one before.")

BISTROS = Field("bistros", Rows(BISTRO), "Upload servers.", default=())

EVENT = Document(
    "the event",
    "Who hands in what, to whom, until when. Its id is the SHA-256 of this file's bytes.",
    (
        Field("format", Text(EVENT_FORMATS[::-1]), "Format and version.", required=True),
        Field("name", Text(), "What people call the event.", required=True),
        Field("opens", ClockTime(), "When entries are first accepted; at once if absent."),
        Field(
            "deadline",
            ClockTime(),
            "Deadline for handing in, with its offset from UTC.",
            required=True,
        ),
        Field("timezone", Text(), "Time zone whose clocks are shown, an IANA name.", required=True),
        Field(
            "lag_s",
            Whole("seconds", stop=MOST_LAG_S + 1),
            "Seconds after the deadline in which witnesses may still sign an entry that came in "
            "time; people are not offered them.",
            default=10,
        ),
        Field(
            "collect_until",
            ClockTime(),
            "Until when the destination collects files.",
            required=True,
        ),
        Field("keep_until", ClockTime(), "Until when logs are kept.", required=True),
        Field(
            "organiser",
            PublicKey(),
            "Public key of the organiser, who signs tickets and amendments.",
            required=True,
        ),
        Field(
            "recipients",
            ListOf(Recipient(), 1, 16, "must be a list of 1 to 16 recipients of age"),
            "Recipients of the sealed files; any one of them can open them.",
            required=True,
        ),
        Field(
            "admission",
            Text(("tickets", "open")),
            "Who may hand in: holders of a ticket, or anybody.",
            default="tickets",
        ),
        Field(
            "counts",
            Text(("last", "first", "all")),
            "Which of a person's drafts in time counts.",
            default="last",
        ),
        Field(
            "never_came",
            Text(("another", "none")),
            "If the draft that would count never arrives: whether another one counts.",
            default="another",
        ),
        Field(
            "content",
            Text(CONTENT_FORMATS),
            "How entries commit to files; with the second format people get a NAME.proof.",
            default=CONTENT_FORMATS[0],
        ),
        Field(
            "alone",
            Flag(),
            "Whether the event's host is the only witness: times then prove nothing against that "
            "host.",
            default=False,
        ),
        Field(
            "quorum",
            Whole(minimum=1, stop=33),
            "How many witnesses must sign before a time counts.",
            required=True,
        ),
        Field("limits", LIMITS, "Limits of what a person may hand in."),
        Field(
            "services",
            Rows(SERVICE),
            "Services, each with a log; an entry in any of the logs counts.",
            required=True,
        ),
        Field("witnesses", Rows(WITNESS), "Witnesses; each signs for all logs.", required=True),
        Field("verdicts", VERDICTS, "The destination's log of verdicts."),
        BISTROS,
        Field(
            "authorities",
            Rows(AUTHORITY),
            "Outside time stamp authorities (RFC 3161); two must agree.",
            default=(),
        ),
    ),
    remedy="`datacollect event new DRAFT.toml -o EVENT.toml` writes one",
)
EVENT_KIND = FileKind("event", EVENT)
