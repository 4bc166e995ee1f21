"""Numbers with units: exact, unambiguous, and the same wherever a file has one."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from datacollect.commands.json_schemas import problem_schema
from datacollect.errors import ProblemError, nearest_hint
from datacollect.files.fields import ByName, Field, Part, Rows, Table
from datacollect.files.kinds import Forecast, Instant, Kind, ListOf, Number, Starts, Whole
from datacollect.files.quantities import (
    BYTES,
    BYTES_PER_S,
    PRICE,
    SECONDS,
    QuantityError,
    pattern,
    quantity,
)
from datacollect.problem.fields import PROBLEM
from datacollect.problem.hourly_rates import HostRate
from datacollect.scenario.fields import SCENARIO
from datacollect.scenario.kinds import ByKind, OneOrTwo
from datacollect.schedule.data.fields import PROGRESS, SCHEDULE
from datacollect.study.fields import EXPERIMENT
from datacollect.transfer.agent.config.fields import agent_with
from datacollect.transfer.agent.config.tables import AGENT_TABLES
from datacollect.transfer.pull.config.fields import COLLECTION

if TYPE_CHECKING:
    from collections.abc import Iterator

WORTH = [
    ("6 TB", BYTES, 6 * 10**12),
    ("10GB", BYTES, 10**10),
    ("1 KiB", BYTES, 1024),
    (".5 TiB", BYTES, 2**39),
    ("8 Gbit", BYTES, 10**9),
    ("1 bit", BYTES, Fraction(1, 8)),
    ("4611686018427387903 B", BYTES, 2**62 - 1),
    ("0.1 TB", BYTES, 10**11),
    ("1_000 MB", BYTES, 10**9),
    ("1e3 bytes", BYTES, 1000),
    ("10 Gbit/s", BYTES_PER_S, 1_250_000_000),
    ("10 Gbps", BYTES_PER_S, 1_250_000_000),
    ("1 MiB/s", BYTES_PER_S, 2**20),
    ("1.5 h", SECONDS, 5400),
    ("1 h 30 min", SECONDS, 5400),
    ("2 h 02 min", SECONDS, 7320),
    ("1 day", SECONDS, 86_400),
    ("250 ms", SECONDS, Fraction(1, 4)),
    ("3 µs", SECONDS, Fraction(3, 10**6)),
    ("20 per TB", PRICE, Fraction(1, 50)),
    ("0.02/GB", PRICE, Fraction(1, 50)),
]


@pytest.mark.parametrize(("text", "of", "worth"), WORTH)
def test_texts_are_worth_exactly(text: str, of: str, worth: Fraction) -> None:
    assert quantity(text, of) == worth
    assert re.search(pattern(of), text)


@pytest.mark.parametrize(
    ("text", "of", "why"),
    [
        ("10 Gb", BYTES, "'Gb' may be bits or bytes; write Gbit or GB"),
        ("10 Gb/s", BYTES_PER_S, "'Gb/s' may be bits or bytes; write Gbit/s or GB/s"),
        ("10 GBps", BYTES_PER_S, "'GBps' is no unit; write GB/s"),
        ("10 mbit/s", BYTES_PER_S, "'mbit/s' is no unit; write Mbit/s"),
        ("10 KB", BYTES, "'KB' may be 1000 or 1024; write kB or KiB"),
        ("10 G", BYTES, "'G' is a prefix without a unit"),
        ("10 GB", BYTES_PER_S, "'GB' is no unit of rates"),
        ("10 GB/s", BYTES, "'GB/s' is no unit of amounts of data"),
        ("10 s", BYTES, "'s' is no unit of amounts of data"),
        ("10 m", SECONDS, "'m' may be minutes or months; write min or d"),
        ("30 min 1 h", SECONDS, "units must get smaller"),
        ("1,5 h", SECONDS, 'write a point, no comma: "1.5 h"'),
        ("0,500 TB", BYTES, 'write a point, no comma: "0.500 TB"'),
        (
            "1,500 TB",
            BYTES,
            'may group digits or be a decimal point: write "1500 TB" or "1.500 TB"',
        ),
        ("-12,345 B", BYTES, 'write "-12345 B" or "-12.345 B"'),
        ("1,500,000 B", BYTES, 'write no commas: "1500000 B"'),
        ("1,500.5 kB", BYTES, 'write no commas: "1500.5 kB"'),
        ("1,50,0 B", BYTES, "write numbers without commas"),
        ("1 h 1,5 min", SECONDS, "write numbers without commas"),
        ("10", BYTES, "leave out the quotes, or give the unit"),
        ("GB", BYTES, "write a number"),
        ("", BYTES, "write a number"),
        ("1 GB 5 MB", BYTES, "write a number"),
        ("1e999999999 B", BYTES, "no quantity needs such an exponent"),
        (f"{'9' * 200} B", BYTES, "no quantity needs 202 characters"),
        ("nan s", SECONDS, "write a number"),
        ("20 GB", PRICE, "'GB' is no unit of prices"),
        ("08:00 1 MB/s, 20:00 1 GB/s", BYTES_PER_S, "rates by hours of the day are for uplinks"),
        ("Sa Su 1 GB/s", BYTES_PER_S, "or in a problem file a list of one for each of its daily"),
    ],
)
def test_what_is_ambiguous_or_of_another_kind_is_refused(text: str, of: str, why: str) -> None:
    with pytest.raises(QuantityError) as caught:
        quantity(text, of)
    assert why in str(caught.value)


# All keys of all files -----------------------------------------------------------------------

EXAMPLE = {BYTES: ("64 kB", 64_000), SECONDS: ("1.5 h", 5400.0)}
EXAMPLE |= {BYTES_PER_S: ("10 Gbit/s", 1.25e9), PRICE: ("20 per TB", 0.02)}


def _unit(key: str) -> str | None:
    if key.endswith("_bytes_per_s"):
        return BYTES_PER_S
    if key.endswith("_s") and not key.endswith("_per_s"):  # other things have no texts
        return SECONDS
    if key == "bytes" or key.endswith("_bytes"):
        return BYTES
    return PRICE if key == "price_per_gb" else None


def _fields(kind: Any, place: str = "") -> Iterator[tuple[str, Field]]:
    """Every key of a table, and of those within it."""
    match kind:
        case Table():
            for field in kind.fields:
                yield f"{place}.{field.name}", field
                yield from _fields(field.kind, f"{place}.{field.name}")
        case Rows() | ByName() | Part():
            yield from _fields(kind.table, place)
        case ByKind():
            for name, table in kind.tables:
                yield from _fields(table, f"{place}[{name}]")


def _one(kind: Kind) -> Kind:
    match kind:
        case OneOrTwo():
            return kind.kind
        case Forecast() | HostRate() | Instant():
            return kind.number
    return kind


FILES = {"problem": PROBLEM, "scenario": SCENARIO, "experiment": EXPERIMENT}
FILES |= {"schedule": SCHEDULE, "progress": PROGRESS}
FILES |= {"agent": agent_with(map(AGENT_TABLES.get, AGENT_TABLES.own)), "collection": COLLECTION}
KEYS = [
    pytest.param(_unit(field.name), field, id=place)
    for file, table in FILES.items()
    for place, field in _fields(table, file)
    if _unit(field.name)
]


@pytest.mark.parametrize(("of", "field"), KEYS)
def test_every_key_with_a_unit_takes_a_text_with_it(of: str, field: Field) -> None:
    """By its name, not its kind: a key that someone adds without a unit is found."""
    text, worth = EXAMPLE[of]
    if isinstance(field.kind, Whole) and (field.kind.minimum or 0) > worth:
        text, worth = "1 MiB", 2**20
    schema = field.kind.schema()
    if isinstance(field.kind, Starts):
        assert field.kind.read(["0 s", text], "x") == [0.0, worth]
        jsonschema.validate(["0 s", text], schema)
        return
    assert field.kind.read(text, "x") == worth
    jsonschema.validate(text, schema)
    assert not jsonschema.Draft202012Validator(schema).is_valid("10 Gb")
    with pytest.raises(ProblemError, match=r"x .*, got '10 G'"):
        field.kind.read("10 G", "x")
    inner = _one(field.kind)
    assert isinstance(inner, Number | Whole)
    assert inner.of == of


def test_there_are_as_many_keys_with_units_as_files_have() -> None:
    assert len(KEYS) > 60


def test_keys_without_a_unit_take_no_text() -> None:
    for kind in (Whole(), Number(), ListOf(Number())):
        with pytest.raises(ProblemError):
            kind.read("5 GB", "x")


def test_fractional_bytes_are_refused_with_what_was_written() -> None:
    with pytest.raises(ProblemError, match=r"got '1 bit'; that is 0.125 bytes; round it"):
        Whole("bytes").read("1 bit", "x")


def test_the_largest_backlog_is_exact_and_one_more_is_too_much() -> None:
    assert Whole("bytes").read("4611686018427387903 B", "x") == 2**62 - 1
    with pytest.raises(ProblemError, match="below 2"):
        Whole("bytes").read("4 EiB", "x")


def test_schemas_know_units() -> None:
    host = problem_schema()["$defs"]["host"]["properties"]
    assert host["uplink_bytes_per_s"]["type"] == ["number", "string", "array"]


@pytest.mark.parametrize(
    ("word", "known"),
    [
        ("bandwidth_gbit_per_s", "bandwidth_bit_per_s"),
        ("backlog_gb", "backlog_bytes"),
        ("release_h", "release_s"),
        ("uplink_bits_per_s", "uplink_bytes_per_s"),
        ("uplink_mbps", "uplink_bytes_per_s"),
        ("slot_ms", "slot_s"),
    ],
)
def test_another_unit_is_never_suggested(word: str, known: str) -> None:
    assert "did you mean" not in nearest_hint(word, [known])


@pytest.mark.parametrize(
    "changes",
    [
        {"links": [{"from": "S", "to": "D", "bandwidth_gbit_per_s": 1}]},
        {"hosts": {"S": {"uplink_mbps": 3}}},
        {"limits": {"timeout_ms": 3}},
        {"limits": {"in_flight_gb": 1}},
    ],
)
def test_nor_in_collection_files(changes: dict[str, Any]) -> None:
    tree = {"format": "datacollect-collection/1", "destination": "D", "key": "k"}
    with pytest.raises(ProblemError, match=r"unknown key; the nearest, .*, is in another unit"):
        COLLECTION.read(tree | changes, "")


def test_a_slip_in_the_same_unit_is() -> None:
    assert "did you mean" in nearest_hint("bandwith_gbit_per_s", ["bandwidth_gbit_per_s"])
    assert "did you mean" in nearest_hint("backlog", ["backlog_bytes"])
