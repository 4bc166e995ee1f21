"""Evidence of a file's size: one answer, or two that agree. Events in, actions out, no sockets."""

import pytest

from datacollect.transfer.sources.web.core.core import WebCore
from datacollect.transfer.sources.web.core.messages import (
    AskSize,
    Connect,
    Connected,
    Disconnect,
    FileAnswer,
    Greet,
    Received,
    SendBytes,
    Worth,
)
from datacollect.transfer.sources.web.core.redirects import RedirectRule
from datacollect.transfer.sources.web.core.urls import target_of

TARGET = target_of("https://x.example/a?Signature=1")


def http(status, headers=None, body=b""):
    lines = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
    return Received(f"HTTP/1.1 {status} X\r\n{lines}\r\n".encode() + body)


def asked(event):
    core = WebCore(RedirectRule())
    core.handle(Greet(TARGET.origin))
    core.handle(Connected())
    (send,) = core.handle(event)
    assert isinstance(send, SendBytes)
    return core


def two_ways(first, whole, asks=None):
    """What comes of a file's first byte, and of all of it, and whether that is asked for."""
    core = asked(asks or AskSize("a", TARGET))
    actions = core.handle(first)
    sends = [Disconnect(), Connect(TARGET.origin)]
    is_asked_again = actions == sends
    if is_asked_again:
        (send,) = core.handle(Connected())
        assert b"range:" not in send.data.lower()
        actions = core.handle(whole)
        assert actions[0] == Disconnect(), "all of it may be large"
    (answer,) = [each for each in actions if isinstance(each, FileAnswer)]
    # The next file is asked for by its first byte again.
    actions = core.handle(AskSize("b", TARGET))
    again = actions if isinstance(actions[0], SendBytes) else core.handle(Connected())
    assert b"range: bytes=0-0" in again[0].data.lower()
    return answer, is_asked_again


def part(content_range, body=b"x", **more):
    return http(206, {"Content-Range": content_range, "Content-Length": len(body)} | more, body)


def refused(content_range=None):
    more = {} if content_range is None else {"Content-Range": content_range}
    return http(416, {"Content-Length": "0"} | more)


def whole(n_bytes=None, **more):
    length = {} if n_bytes is None else {"Content-Length": n_bytes}
    return http(200, length | more, b"x" * min(n_bytes or 0, 1000))


CHUNKED = whole(**{"Transfer-Encoding": "chunked"})


@pytest.mark.parametrize(
    ("first", "other", "worth", "n_bytes"),
    [
        # One answer is enough.
        (part("bytes 0-0/100"), None, Worth.GOOD, 100),
        (part(f"bytes 0-0/{2**62}"), None, Worth.REFUSED, 0),
        (part("bytes 0-0/0"), None, Worth.REFUSED, 0),
        (part("bytes 0-4/5", b"12345"), None, Worth.REFUSED, 0),
        (part("bytes 0-0/100", b"12345"), None, Worth.REFUSED, 0),
        (http(206, {"Content-Length": "1"}, b"x"), None, Worth.REFUSED, 0),
        (whole(7), None, Worth.REFUSED, 7),
        (http(404, {"Content-Length": "0"}), None, Worth.GONE, 0),
        # What calls itself empty, or a byte long, is so when all of it is asked for, or not.
        (part("bytes 0-0/1"), whole(1), Worth.GOOD, 1),
        (part("bytes 0-0/1"), whole(100), Worth.REFUSED, 0),
        (refused("bytes */0"), whole(0), Worth.GOOD, 0),
        (refused("bytes */0"), whole(100), Worth.REFUSED, 0),
        (refused("bytes */0"), CHUNKED, Worth.REFUSED, 0),
        (refused("bytes */0"), refused(), Worth.REFUSED, 0),
        (refused("bytes */0"), http(404, {"Content-Length": "0"}), Worth.REFUSED, 0),
        (whole(0), whole(0), Worth.GOOD, 0),
        (whole(1), whole(1), Worth.GOOD, 1),
        (whole(1), whole(100), Worth.REFUSED, 0),
        (whole(0), whole(100), Worth.REFUSED, 0),
        # RFC 9110, 15.5.17: 416 need not say the length; S3 does not.
        (refused(), whole(0), Worth.GOOD, 0),
        (refused(), whole(100), Worth.REFUSED, 0),
        (refused(), CHUNKED, Worth.REFUSED, 0),
        (refused(), refused(), Worth.REFUSED, 0),
        (refused(), http(404, {"Content-Length": "0"}), Worth.GONE, 0),
        (refused("nothing"), whole(0), Worth.GOOD, 0),
        (refused("bytes */*"), whole(0), Worth.GOOD, 0),
        # It has bytes, and refuses the first.
        (refused("bytes */100000"), whole(100000), Worth.REFUSED, 0),
        (refused("bytes */100000"), whole(0), Worth.REFUSED, 0),
        (refused("bytes */100000"), refused("bytes */100000"), Worth.REFUSED, 0),
        # 14.4: a part need not say how much there is in all.
        (part("bytes 0-0/*"), whole(100), Worth.GOOD, 100),
        (part("bytes 0-0/*"), whole(0), Worth.REFUSED, 0),
        (part("bytes 0-0/*"), CHUNKED, Worth.REFUSED, 0),
        (part("bytes 0-0/*"), http(500, {"Content-Length": "0"}), Worth.UNREADABLE, 0),
    ],
)
def test_what_proves_a_size(first, other, worth, n_bytes):
    answer, is_asked_again = two_ways(first, other)
    assert (answer.worth, answer.n_bytes) == (worth, n_bytes), answer
    assert is_asked_again == (other is not None)
    assert (answer.why == "") == (worth is Worth.GOOD)


@pytest.mark.parametrize(
    ("first", "other", "worth"),
    [
        (part("bytes 0-0/100"), whole(100), Worth.GOOD),
        (part("bytes 0-0/100"), CHUNKED, Worth.GOOD),
        (part("bytes 0-0/100"), whole(7), Worth.REFUSED),
        (part("bytes 0-0/100"), refused("bytes */100"), Worth.REFUSED),
        (part("bytes 0-0/100", ETag='"v1"'), whole(100, ETag='"v2"'), Worth.REFUSED),
        (part("bytes 0-0/100"), http(404, {"Content-Length": "0"}), Worth.REFUSED),
        (part("bytes 0-0/100"), http(403, {"Content-Length": "0"}), Worth.REFUSED),
        (http(404, {"Content-Length": "0"}), http(404, {"Content-Length": "0"}), Worth.GONE),
        (http(404, {"Content-Length": "0"}), whole(100), Worth.REFUSED),
        (http(403, {"Content-Length": "0"}), None, Worth.REFUSED),
        (http(500, {"Content-Length": "0"}), None, Worth.UNREADABLE),
    ],
)
def test_what_contradicts_is_asked_in_two_ways_which_must_agree(first, other, worth):
    answer, is_asked_again = two_ways(first, other, AskSize("a", TARGET, is_doubted=True))
    assert answer.worth is worth, answer
    assert is_asked_again == (other is not None)


def test_an_answer_that_contradicts_itself_says_both():
    answer, _ = two_ways(refused("bytes */0"), whole(100, ETag='"v1"'))
    assert answer.why == (
        "the server contradicts itself: 0 bytes when asked for its first byte, 100 bytes of "
        'version "v1" for all of it'
    )
    answer, _ = two_ways(refused("bytes */100000"), refused("bytes */100000"))
    assert "says that it has 100000 bytes, and refuses the first (416)" in answer.why
    assert "status 416, though no range was asked for" in answer.why
