"""The log of verdicts as people read it: real witnesses, a real disk, TLS."""

from __future__ import annotations

import time

import pytest
from instances.events import key_of
from instances.timestamping import Answer, World, until

from datacollect.bistro.formats.custody.verdicts import (
    COLLECTED,
    DOES_NOT_OPEN,
    LATE,
    REFUSED,
    SUPERSEDED,
    Verdict,
)
from datacollect.bistro.formats.log.proofs import LogProof
from datacollect.bistro.formats.receipt.counted_time import time_in

KEY = key_of("destination")
ONE, TWO, THREE, FOUR, FIVE = (bytes([n]) * 32 for n in range(1, 6))


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with World(tmp_path_factory.mktemp("world"), verdicts={"key": KEY.public}) as made:
        made.start_witnesses()
        yield made


@pytest.fixture
def log(world, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(world.authority))
    with world.verdict_log(KEY) as running:
        until(lambda: running.record([said(world, ONE, COLLECTED)]), "the start")
        yield running


def said(world, entry: bytes, word: str, why: str = "") -> bytes:
    return Verdict(world.event.id, entry, word, why).data


def asked(world, path: str) -> Answer:
    return world.asked(world.event.verdicts_url, "GET", path)


def verdict(world, entry: bytes) -> tuple[str, int | None]:
    """Return the last line of the verdict that is told, and by when it is proved."""
    answer = asked(world, f"/verdict/{entry.hex()}")
    assert answer.status == 200
    assert answer.json.keys() == {"verdict", "proof"}
    data, text = answer.json["verdict"].encode(), answer.json["proof"]
    time_s = None
    if text is not None:
        time_s = time_in(
            world.event.verdicts, LogProof.parse(text.encode()), data, world.event
        ).time_s
    return data.decode().split("\n")[3], time_s


@pytest.mark.slow
def test_the_last_word_on_an_entry_is_told_with_its_proof(world, log):
    """What was refused, sealed anew and collected is collected; one draft takes another's place."""
    first = [said(world, TWO, REFUSED, DOES_NOT_OPEN), said(world, THREE, COLLECTED)]
    until(lambda: log.record(first), "the first words")
    assert verdict(world, TWO)[0] == "refused: does not open"
    later = [said(world, TWO, COLLECTED), said(world, FOUR, REFUSED, LATE)]
    later += [said(world, THREE, SUPERSEDED, TWO.hex())]
    until(lambda: log.record(later), "the last words")
    for entry, word in (
        (ONE, "collected"),
        (TWO, "collected"),
        (THREE, f"superseded: {TWO.hex()}"),
        (FOUR, "refused: is late"),
    ):
        told, time_s = verdict(world, entry)
        assert told == word
        assert abs(time_s - time.time()) < 600


@pytest.mark.slow
def test_a_verdict_without_witnesses_is_told_without_a_proof(world, log):
    for i in range(4):
        world.stop_witness(i)

    def is_kept():
        assert log.record([said(world, FIVE, COLLECTED)], 2.0) is None
        return asked(world, f"/verdict/{FIVE.hex()}").status == 200

    # On the disk, and not published.
    until(is_kept, "the verdict")
    assert verdict(world, FIVE) == ("collected", None)
    world.start_witnesses()
    until(lambda: verdict(world, FIVE)[1], "the proof")


@pytest.mark.parametrize(
    ("digits", "status"), [(bytes(32).hex(), 404), ("AA" * 32, 400), ("", 400), ("noise", 400)]
)
def test_what_has_no_verdict_is_said_in_words(world, log, digits, status):
    answer = asked(world, f"/verdict/{digits}")
    assert answer.status == status
    assert answer.body.endswith(b"\n")
