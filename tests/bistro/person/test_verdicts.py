"""What the log of verdicts answers, and all that others may answer in its place."""

from __future__ import annotations

import json
import random
import socket
import threading
import time
from contextlib import contextmanager, suppress

import pytest
from instances.custody import CHANGES, custody_event, verdict_log
from instances.events import event_of, key_of

from datacollect.bistro.formats.custody.verdicts import (
    COLLECTED,
    DOES_NOT_OPEN,
    REFUSED,
    Verdict,
)
from datacollect.bistro.formats.log.checkpoints import log_key
from datacollect.bistro.person.verdicts import (
    MOST_ANSWER_BYTES,
    asked_verdict,
    read_told,
)
from datacollect.errors import DatacollectError, ProblemError, TransferError
from datacollect.net.http_asking import Askers
from datacollect.net.tcp_options import stop_accepting
from datacollect.net.tls import web_context

EVENT = custody_event()
# With another log, by the same key.
OTHER_LOG = log_key("dest.example/0123456789abcdee", key_of("dest").public)
OF_ANOTHER = event_of(**CHANGES | {"verdicts": {"log": OTHER_LOG.text}})
ENTRY, OTHER = b"\x01" * 32, b"\x02" * 32
SAID = Verdict(EVENT.id, ENTRY, REFUSED, DOES_NOT_OPEN)


def proof_text(*entries: bytes, of: int = 0, n_witnesses: int = 4, event=EVENT) -> str:
    return verdict_log(event, entries, n_witnesses).proof(entries[of]).data.decode()


def answer(verdict: object = SAID.data.decode(), proof: object = proof_text(SAID.data)) -> bytes:
    return json.dumps({"verdict": verdict, "proof": proof}).encode()


def test_a_verdict_with_its_proof_counts_by_the_time_of_witnesses():
    told = read_told(answer(), EVENT, ENTRY, "it")
    assert told.verdict == SAID
    assert told.time_s == EVENT.collect_until_s
    assert read_told(answer(proof=None), EVENT, ENTRY, "it") is None


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "not valid JSON"),
        (b"\xff\xfe", "must be UTF-8"),
        (b"[" * 100_000, "it"),
        (b"[]", "texts verdict and proof"),
        (b"{}", "texts verdict and proof"),
        (answer(verdict=7), "texts verdict and proof"),
        (answer(proof=7), "texts verdict and proof"),
        (answer(verdict="noise"), "must begin with datacollect-verdict/1"),
        (answer(verdict="\ud800"), "half a character"),
        (
            answer(verdict=SAID.data.decode().replace("does not open", "I do not like it")),
            "what bec",
        ),
        (answer(verdict=Verdict(OTHER, ENTRY, COLLECTED).data.decode()), "of another event"),
        (answer(verdict=Verdict(EVENT.id, OTHER, COLLECTED).data.decode()), "on another entry"),
        (answer(proof="noise"), "it"),
        (answer(proof="\ud800"), "it"),
        (answer(proof="x" * 40_000), "at most"),
        # A proof of another verdict, by too few witnesses, by a log that is none of the event's.
        (answer(proof=proof_text(SAID.data, b"else", of=1)), "the proof of another entry"),
        (answer(proof=proof_text(SAID.data, n_witnesses=2)), "2 witnesses have signed it"),
        (answer(proof=proof_text(SAID.data, event=OF_ANOTHER)), "not signed by the log's key"),
    ],
)
def test_what_proves_nothing_of_the_entry_is_refused(data, why):
    with pytest.raises(ProblemError, match=why):
        read_told(data, EVENT, ENTRY, "it")


def test_noise_in_an_answer_is_a_refusal_or_the_same_verdict():
    chance = random.Random(3)
    whole = answer()
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(data))
            data[at : at + chance.randint(0, 2)] = chance.randbytes(chance.randint(0, 2))
        with suppress(ProblemError):
            told = read_told(bytes(data), EVENT, ENTRY, "it")
            assert told is None or told.verdict == SAID


@contextmanager
def answering(*parts: bytes, is_endless: bool = False):
    """Yield an event whose log of verdicts answers with these bytes, the last for ever."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with suppress(OSError):
                connection, _ = listener.accept()
                with connection:
                    connection.recv(65_536)
                    for part in parts:
                        connection.sendall(part)
                    while is_endless:
                        connection.sendall(parts[-1])
                        time.sleep(0.001)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/log"
        yield event_of(**CHANGES | {"verdicts": CHANGES["verdicts"] | {"url": url}})
        stop_accepting(listener)
        thread.join()


def asked(event):
    askers = Askers(web_context())
    try:
        return asked_verdict(event, ENTRY, askers)
    finally:
        askers.close()


def http(status: str, body: bytes, *headers: bytes) -> bytes:
    length = b"Content-Length: %d" % len(body)
    return b"\r\n".join([b"HTTP/1.1 " + status.encode(), length, *headers, b"", body])


def test_what_nobody_has_judged_yet_is_no_trouble():
    with answering(http("404 Not Found", b"not yet\n")) as event:
        assert asked(event) is None


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (http("302 Found", b"", b"Location: http://127.0.0.1:1/"), "answers 302"),
        (http("500 Oh", b"broken\x1b[31m\n"), r"answers 500 .*broken"),
        (http("200 OK", b"noise"), "not valid JSON"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n", "the limit is"),
        (b"HTTP/1.1 200 OK\r\n\r\n", "has neither Content-Length nor chunks"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "malformed HTTP response"),
        (b"", "connection closed before"),
    ],
)
def test_what_is_no_answer_is_said_in_words(raw, why):
    with answering(raw) as event, pytest.raises(DatacollectError, match=why) as error:
        asked(event)
    assert "\x1b" not in str(error.value)


def test_a_body_without_end_ends():
    chunks = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    with (
        answering(chunks, b"1000\r\n" + b"x" * 0x1000 + b"\r\n", is_endless=True) as event,
        pytest.raises(TransferError, match=f"more than {MOST_ANSWER_BYTES}"),
    ):
        asked(event)


def test_nobody_is_reached_where_nobody_listens():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    event = event_of(**CHANGES | {"verdicts": CHANGES["verdicts"] | {"url": url}})
    with pytest.raises(TransferError, match="cannot be reached"):
        asked(event)
