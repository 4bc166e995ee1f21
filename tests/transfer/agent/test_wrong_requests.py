"""Requests of which a field is wrong in type, length or encoding: refused, or meant otherwise."""

from __future__ import annotations

import os
from collections import Counter
from urllib.parse import quote_from_bytes

import pytest
from instances.agents import running, session_with, source_ticket, write_agent
from transfer.hostile.json_lines import text_of
from transfer.hostile.wrong_values import MISSING, VALUES

from datacollect.errors import RefusedError
from datacollect.net.deadline import Deadline
from datacollect.transfer.agent.core.requests import wish_of
from datacollect.transfer.protocol.messages import is_path

ROW = ["a", 10, 5, 7, 0, 10]
ROWS = {
    "/v1/read": ("segments", ROW),
    "/v1/hash": ("segments", ROW),
    "/v1/confirm": ("files", ROW[:4]),
}


def bodies(key, row):
    """Yield bodies in which one field is what it should not be: its place, the value, the body."""
    for words, value in VALUES.items():
        for i in range(len(row)):
            wrong = [*row[:i], *([] if value is MISSING else [value]), *row[i + 1 :]]
            yield i, words, value, {key: [wrong]}
        other = None if value is MISSING else value
        yield "row", words, value, {key: [row, other]}
        yield "list", words, value, {} if value is MISSING else {key: value}
        yield "more", words, value, {key: [row], "more": other}
        yield "body", words, value, other


def may_be(place, value):
    """Whether a value is one that the field may have."""
    if place == "list":
        return value == []  # nothing is asked for
    if place == 0:
        return isinstance(value, str) and is_path(value)
    least = -(2**96) if place == 2 else 0
    stop = 2**96 + 1 if place == 2 else 2**63
    return isinstance(place, int) and type(value) is int and least <= value < stop


def status_of(method, target, body=b""):
    """Return how a request is refused, or 200; whatever else is raised is a bug."""
    try:
        wish_of(method, target, body)
    except RefusedError as error:
        return error.status
    return 200


@pytest.mark.parametrize("target", ROWS)
def test_each_field_of_a_body(target):
    """Whatever it is, it is refused by 400, or it is a value that the field may have."""
    statuses = Counter()
    for place, words, value, tree in bodies(*ROWS[target]):
        status = status_of("POST", target, text_of(tree))
        assert status == 400 or (status == 200 and may_be(place, value)), (place, words)
        statuses[status] += 1
    assert statuses[400] > 300


@pytest.mark.slow
@pytest.mark.parametrize("key", ["after", "most", "detail", "more", ""])
def test_each_field_of_a_query(key):
    for words, value in VALUES.items():
        raw = value if isinstance(value, bytes) else str(value).encode(errors="surrogatepass")
        query = f"{key}={quote_from_bytes(raw)}"
        status = status_of("GET", f"/v1/inventory?{query}")
        fits = key == "after" or (key, raw) in (("most", b"12"), ("detail", b"0"))
        assert status == 400 or (status == 200 and fits), words


@pytest.mark.parametrize("target", ROWS)
def test_a_session_goes_on_after_what_is_refused(tmp_path, target):
    path = write_agent(tmp_path, "S1", serve="data")
    (tmp_path / "data/a").write_bytes(os.urandom(10))
    with running(path) as agent, session_with(agent) as session:
        session.inventory(source_ticket("S1"))
        for _, words, _, tree in list(bodies(*ROWS[target]))[::17]:
            session._send("POST", target, None, text_of(tree))
            head = session._channel.head()
            session._channel.body(head.length, 2**20, Deadline(10.0))
            assert head.status in (200, 400, 409), words
        assert [file.path for file in session.inventory().files] == ["a"]
