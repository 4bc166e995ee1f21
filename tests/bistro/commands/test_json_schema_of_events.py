"""The JSON Schema of events' files: it accepts what is written, and no wrong values."""

from __future__ import annotations

import json
import tomllib

import jsonschema
import pytest
from instances.authorities import certificate_pem
from instances.events import event_bytes, key_of

from datacollect.bistro.formats.event.file import read_event
from datacollect.commands.json_schemas import schema_of
from datacollect.errors import ProblemError

VALIDATOR = jsonschema.Draft202012Validator(schema_of("event"))
PEM = certificate_pem()
BISTRO = {"name": "b", "url": "https://b.example", "key": key_of("b").public, "ca": PEM}


def tree_of(data: bytes) -> dict:
    # Schemas are of JSON, where clock times are texts.
    return json.loads(json.dumps(tomllib.loads(data.decode()), default=lambda t: t.isoformat()))


def test_events_that_are_written_are_accepted():
    VALIDATOR.validate(tree_of(event_bytes()))
    outside = [{"url": f"http://t{i}.example", "certificate": certificate_pem()} for i in range(2)]
    verdicts = {"key": key_of("v").public, "url": "https://v.example/log"}
    VALIDATOR.validate(tree_of(event_bytes(verdicts=verdicts)))
    more = {"admission": "open", "limits": {"bytes": 9}, "opens": "2027-01-01T00:00:00-05:00"}
    VALIDATOR.validate(tree_of(event_bytes(authorities=outside, bistros=[BISTRO], **more)))


@pytest.mark.parametrize(
    ("table", "changes"),
    [
        ((), {"format": "datacollect-event/3"}),
        ((), {"name": ""}),
        ((), {"deadline": "tomorrow"}),
        ((), {"lag_s": 601}),
        ((), {"recipients": []}),
        ((), {"recipients": ["AGE-SECRET-KEY-1"]}),
        ((), {"admission": "all"}),
        ((), {"quorum": 0}),
        ((), {"organiser": "me"}),
        ((), {"more": 1}),
        (("limits",), {"commitments_per_ticket": 0}),
        (("verdicts",), {"url": "ftp://x"}),
        (("services", 0), {"url": "ftp://x"}),
        (("services", 0), {"log": "x+y"}),
        (("witnesses", 1), {"vkey": 7}),
        (("witnesses", 1), {"key": "x"}),
    ],
)
def test_wrong_values_are_refused_by_both(table, changes):
    verdicts = {"key": key_of("v").public, "url": "https://v.example"}
    tree = tree_of(event_bytes(verdicts=verdicts))
    inner = tree
    for key in table:
        inner = inner[key]
    inner |= changes
    assert not VALIDATOR.is_valid(tree)
    with pytest.raises(ProblemError):
        read_event(toml_of(tree))


def toml_of(tree: dict) -> bytes:
    """Return TOML in which each table stands in one line."""
    return "".join(f"{key} = {inline(value)}\n" for key, value in tree.items()).encode()


def inline(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {inline(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(inline, value)) + "]"
    return json.dumps(value)
