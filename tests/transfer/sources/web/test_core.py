"""The core of sessions with other servers on scripted events: bytes in, actions out, no sockets."""

import copy

import pytest

from datacollect.files.media import ContentKind
from datacollect.transfer.sources.web.core.core import MOST_PARTS, MOST_REDIRECTS, WebCore
from datacollect.transfer.sources.web.core.messages import (
    AskRange,
    AskSize,
    Connect,
    Connected,
    ConnectionLost,
    Disconnect,
    Fail,
    FileAnswer,
    Fill,
    Filled,
    Greet,
    Received,
    SendBytes,
    Take,
    Worth,
)
from datacollect.transfer.sources.web.core.redirects import RedirectRule
from datacollect.transfer.sources.web.core.urls import target_of
from datacollect.transfer.sources.web.core.versions import Version

TARGET = target_of("https://x.example/a?Signature=1")
ETAG = '"v1"'
NOWHERE = RedirectRule()
RANGE = AskRange("a", TARGET, 100, Version(ETAG), 10, 5)
GOOD = {"Content-Range": "bytes 10-14/100", "Content-Length": "5", "ETag": ETAG}


def http(status, headers=None, body=b""):
    lines = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
    return Received(f"HTTP/1.1 {status} X\r\n{lines}\r\n".encode() + body)


def connected(rule=NOWHERE):
    core = WebCore(rule)
    assert core.handle(Greet(TARGET.origin)) == [Connect(TARGET.origin)]
    assert core.handle(Connected()) == []
    return core


def asked(event=RANGE, rule=NOWHERE):
    core = connected(rule)
    (send,) = core.handle(event)
    assert isinstance(send, SendBytes)
    return core


def answered(*events, asks=RANGE, rule=NOWHERE):
    """What comes of answers, taken bytes put together."""
    core = asked(asks, rule)
    actions = [action for event in events for action in core.handle(event)]
    data = b"".join(action.data for action in actions if isinstance(action, Take))
    # Who does not fill as told may as well go on with what is received.
    return data, [action for action in actions if not isinstance(action, Take | Fill)]


def test_the_request_names_range_version_and_no_encoding():
    (send,) = connected().handle(RANGE)
    assert send.data.startswith(b"GET /a?Signature=1 HTTP/1.1\r\n")
    lines = send.data.lower().split(b"\r\n")
    expected = [b"host: x.example", b"range: bytes=10-14", b'if-range: "v1"']
    assert {*expected, b"accept-encoding: identity"} <= {*lines}


def test_weak_tags_and_dates_are_no_condition():
    """RFC 9110, 13.1.5: a weak validator never fits; the answer is judged instead."""
    version = Version('W/"v1"', "Sun, 22 Nov 2026 00:00:00 GMT")
    ask = AskRange("a", TARGET, 100, version, 10, 5)
    (send,) = connected().handle(ask)
    assert b"if-range" not in send.data.lower()
    _, (*_, answer) = answered(http(206, GOOD | {"ETag": 'W/"v2"'}, b"12345"), asks=ask)
    assert answer.worth is Worth.CHANGED


@pytest.mark.parametrize("cut", range(1, 110, 7))
def test_an_answer_may_come_in_any_parts(cut):
    whole = http(206, GOOD, b"12345").data
    parts = [Received(part) for part in (whole[:cut], whole[cut:]) if part]
    assert answered(*parts) == (b"12345", [FileAnswer(Worth.GOOD)])


def test_a_connection_is_used_again():
    core = asked()
    core.handle(http(206, GOOD, b"12345"))
    (send,) = core.handle(RANGE)
    assert isinstance(send, SendBytes)


def test_a_server_that_closes_is_connected_to_again():
    core = asked()
    *_, gone, answer = core.handle(http(206, GOOD | {"Connection": "close"}, b"12345"))
    assert (gone, answer) == (Disconnect(), FileAnswer(Worth.GOOD))
    assert core.handle(RANGE) == [Connect(TARGET.origin)]


@pytest.mark.parametrize("end", [Received(b""), ConnectionLost("reset")])
def test_a_connection_that_was_idle_too_long_is_replaced_once(end):
    core = asked()
    core.handle(http(206, GOOD, b"12345"))
    core.handle(RANGE)
    assert core.handle(end) == [Disconnect(), Connect(TARGET.origin)]
    core.handle(Connected())
    assert isinstance(core.handle(end)[-1], Fail)


@pytest.mark.parametrize("end", [Received(b""), ConnectionLost("reset")])
def test_a_body_that_is_cut_short_fails(end):
    data, actions = answered(http(206, GOOD, b"123"), end)
    assert data == b"123"
    assert [type(action) for action in actions] == [Disconnect, Fail]


def test_large_ranges_are_put_where_they_belong_and_the_connection_goes_on():
    core = asked()
    taken, fill = core.handle(http(206, GOOD, b"12"))
    assert (taken, fill) == (Take(b"12"), Fill(3))
    assert core.handle(Filled(3)) == [FileAnswer(Worth.GOOD)]
    (send,) = core.handle(RANGE)
    assert isinstance(send, SendBytes)
    assert core.handle(http(206, GOOD, b"12345")) == [Take(b"12345"), FileAnswer(Worth.GOOD)]


def test_a_server_that_closes_after_a_large_range_is_connected_to_again():
    core = asked()
    core.handle(http(206, GOOD | {"Connection": "close"}, b"12"))
    assert core.handle(Filled(3)) == [Disconnect(), FileAnswer(Worth.GOOD)]
    assert core.handle(RANGE) == [Connect(TARGET.origin)]


@pytest.mark.parametrize("n_bytes", [0, 2])
def test_a_large_range_that_is_cut_short_fails(n_bytes):
    core = asked()
    core.handle(http(206, GOOD, b"12"))
    gone, fail = core.handle(Filled(n_bytes))
    assert gone == Disconnect()
    assert fail == Fail(f"the server was asked for 5 bytes, and ends after {2 + n_bytes}")


def test_chunks_are_never_put_anywhere_unread():
    core = asked()
    headers = {"Content-Range": "bytes 10-14/100", "Transfer-Encoding": "chunked"}
    actions = core.handle(http(206, headers, b"2\r\n12\r\n"))
    assert not [action for action in actions if isinstance(action, Fill)]


def test_a_body_in_chunks_is_read():
    headers = {"Content-Range": "bytes 10-14/100", "Transfer-Encoding": "chunked"}
    body = b"2\r\n12\r\n3\r\n345\r\n0\r\n\r\n"
    assert answered(http(206, headers, body)) == (b"12345", [FileAnswer(Worth.GOOD)])
    _, (*_, failed) = answered(http(206, headers, b"6\r\n123456\r\n"))
    assert "sends more" in failed.why
    _, (*_, failed) = answered(http(206, headers, b"2\r\n12\r\n0\r\n\r\n"))
    assert "ends after 2" in failed.why


@pytest.mark.parametrize(
    ("status", "changes", "worth", "words"),
    [
        (206, {"Content-Range": "bytes 10-14/101"}, Worth.CHANGED, "101 bytes now"),
        (206, {"ETag": '"v2"'}, Worth.CHANGED, "another version"),
        (206, {"Content-Range": "bytes 0-4/100"}, Worth.UNREADABLE, "bytes 10-14"),
        (206, {"Content-Range": "bytes 10-15/100", "Content-Length": "6"}, Worth.UNREADABLE, "15"),
        (206, {"Content-Range": "bytes 10-14/0"}, Worth.UNREADABLE, "10-14/0"),
        (206, {"Content-Range": "bytes 10-14/14"}, Worth.UNREADABLE, "10-14/14"),
        (206, {"Content-Range": "items 10-14/100"}, Worth.UNREADABLE, "items"),
        (206, {"Content-Range": "bytes 10-14/100", "Content-Length": "4"}, Worth.UNREADABLE, "4 b"),
        (206, {"Content-Range": "bytes 10-9/100", "Content-Length": "0"}, Worth.UNREADABLE, "10-9"),
        (
            206,
            {"Content-Encoding": "gzip"},
            Worth.REFUSED,
            "stored that way; give the bytes and the sha",
        ),
        (206, {"Content-Encoding": "gzip", "ETag": 'W/"v1"'}, Worth.REFUSED, "turn compression"),
        (206, {"Content-Encoding": "br", "Vary": "Accept-Encoding"}, Worth.REFUSED, "compression"),
        (200, {"Content-Length": "100"}, Worth.REFUSED, "whole files only"),
        (200, {"Content-Length": "100", "ETag": '"v2"'}, Worth.CHANGED, "another version"),
        (200, {"Content-Length": "99"}, Worth.CHANGED, "99 bytes now"),
        (412, {}, Worth.CHANGED, "412"),
        (416, {}, Worth.CHANGED, "416"),
        (404, {}, Worth.GONE, "no such file"),
        (410, {}, Worth.GONE, "no such file"),
        (401, {}, Worth.REFUSED, "signed again"),
        (403, {}, Worth.REFUSED, "signed again"),
        (500, {}, Worth.UNREADABLE, "status 500"),
        (400, {}, Worth.UNREADABLE, "status 400"),
        (304, {}, Worth.UNREADABLE, "status 304"),
    ],
)
def test_what_answers_are_worth(status, changes, worth, words):
    """Nothing of a body that is no good is taken, whatever follows it."""
    data, actions = answered(http(status, GOOD | changes, b"12345"), Received(b""))
    assert data == b""
    (answer,) = [action for action in actions if not isinstance(action, Disconnect)]
    assert (answer.worth, words in answer.why) == (worth, True)
    assert "Signature" not in answer.why


def test_a_whole_file_is_as_good_where_all_of_it_is_wanted():
    ask = AskRange("a", TARGET, 5, Version(ETAG), 0, 5)
    headers = {"Content-Length": "5", "ETag": ETAG}
    assert answered(http(200, headers, b"12345"), asks=ask) == (b"12345", [FileAnswer(Worth.GOOD)])


def test_sizes_come_with_what_tells_pages_from_files():
    page = {"Content-Type": "text/html; charset=utf-8", "ETag": ETAG, "Content-Length": 1}
    page["Content-Range"] = "bytes 0-0/100"
    core = asked(AskSize("a", TARGET))
    core.handle(moved("/login?next=/a"))
    core.handle(Connected())
    (answer,) = core.handle(http(206, page, b"<"))
    assert (answer.worth, answer.n_bytes, answer.version) == (Worth.GOOD, 100, Version(ETAG))
    assert (answer.media, answer.begins) == (ContentKind.HTML, b"<")
    assert answer.landed.path == "/login?next=/a"


# Servers that send less at a time -------------------------------------------------------------


def test_a_server_that_sends_less_at_a_time_is_asked_for_the_rest():
    core = asked()
    first = http(206, {"Content-Range": "bytes 10-12/100", "Content-Length": 3}, b"123")
    taken, send = core.handle(first)
    assert taken == Take(b"123")
    assert b"range: bytes=13-14\r\n" in send.data.lower()
    assert b'if-range: "v1"\r\n' in send.data.lower()
    rest = http(206, {"Content-Range": "bytes 13-14/100", "Content-Length": 2}, b"45")
    assert core.handle(rest) == [Take(b"45"), FileAnswer(Worth.GOOD)]


def test_the_rest_of_a_range_is_asked_for_by_another_connection_where_one_ends():
    core = asked()
    head = {"Content-Range": "bytes 10-12/100", "Content-Length": 3, "Connection": "close"}
    taken, fill = core.handle(http(206, head, b"1"))
    assert (taken, fill) == (Take(b"1"), Fill(2))
    assert core.handle(Filled(2)) == [Disconnect(), Connect(TARGET.origin)]
    (send,) = core.handle(Connected())
    assert b"range: bytes=13-14\r\n" in send.data.lower()


def test_the_rest_of_a_range_must_be_of_the_same_version():
    core = asked()
    core.handle(http(206, {"Content-Range": "bytes 10-12/100", "Content-Length": 3}, b"123"))
    other = {"Content-Range": "bytes 13-14/100", "Content-Length": 2, "ETag": '"v2"'}
    (answer,) = core.handle(http(206, other, b"45"))
    assert (answer.worth, answer.version.etag) == (Worth.CHANGED, '"v2"')


def test_who_sends_too_little_at_a_time_is_told_of_smaller_pieces():
    ask = AskRange("a", TARGET, 10**6, Version(ETAG), 0, 10**6)
    core = asked(ask)
    for at in range(MOST_PARTS):
        head = {"Content-Range": f"bytes {at}-{at}/1000000", "Content-Length": 1}
        *_, last = core.handle(http(206, head, b"x"))
    assert last.worth is Worth.REFUSED
    assert "sends 1 bytes at a time, where 1000000 were asked for" in last.why
    assert "piece_bytes" in last.why


# Where the hash decides -----------------------------------------------------------------------

HASHED = AskRange("a", TARGET, 100, Version(ETAG, sha256="00" * 32), 10, 5)


def test_where_a_hash_is_known_versions_need_not_agree():
    (send,) = connected().handle(HASHED)
    assert b"if-range" not in send.data.lower()
    answer = http(206, GOOD | {"ETag": '"another node\'s"'}, b"12345")
    assert answered(answer, asks=HASHED) == (b"12345", [FileAnswer(Worth.GOOD)])


def test_what_is_stored_encoded_is_proved_by_its_hash():
    stored = http(206, GOOD | {"Content-Encoding": "gzip"}, b"12345")
    assert answered(stored, asks=HASHED) == (b"12345", [FileAnswer(Worth.GOOD)])
    other = GOOD | {"Content-Encoding": "gzip", "Content-Range": "bytes 10-14/70"}
    _, (answer,) = answered(http(206, other, b"12345"), asks=HASHED)
    assert "encoded (gzip)" in answer.why


@pytest.mark.parametrize(
    ("status", "headers", "wait_s"),
    [
        (503, {"Retry-After": "30"}, 30.0),
        (429, {"Retry-After": "Thu, 01 Jan 1970 00:00:50 GMT"}, 50.0),
        (429, {}, 2.0),
        (503, {"Retry-After": "for ever"}, 2.0),
        (503, {"Retry-After": "999999999"}, 86400.0),
        (503, {"Retry-After": "9" * 400}, 86400.0),
    ],
)
def test_who_asks_to_wait_is_left_alone(status, headers, wait_s):
    _, actions = answered(http(status, headers | {"Content-Length": "0"}))
    (failed,) = [action for action in actions if isinstance(action, Fail)]
    assert failed.wait_s == wait_s
    assert f"wait {wait_s:g} s" in failed.why


@pytest.mark.parametrize("status", [400, 401, 403])
def test_an_expired_url_says_when(status):
    """S3 and Azure say 403, GCS says 400."""
    target = target_of("https://x.example/a?Expires=60&Signature=secret")
    for ask in (AskRange("a", target, 100, Version(), 0, 5), AskSize("a", target)):
        core = asked(ask)
        head = http(status, {"Content-Length": "0"}).data
        (answer,) = core.handle(Received(head, now_unix_s=61.0))
        when = "1970-01-01 00:01:00 UTC"
        assert answer.why == f"its URL expired at {when} ({status}); have it signed again"
        assert answer.worth is Worth.REFUSED


def test_a_bad_request_that_has_not_expired_may_have_by_the_servers_clock():
    target = target_of("https://x.example/a?Expires=60&Signature=secret")
    (answer,) = asked(AskSize("a", target)).handle(http(400, {"Content-Length": "0"}))
    assert (answer.worth, "may have expired" in answer.why) == (Worth.REFUSED, True)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_server_that_does_not_say_where_a_file_is(status):
    """S3 answers so where the region in the URL is another than the bucket's."""
    headers = {"Content-Length": "0", "x-amz-bucket-region": "eu-west-1"}
    (answer,) = asked(AskSize("a", TARGET)).handle(http(status, headers))
    assert answer.worth is Worth.REFUSED
    assert answer.why == (
        f"the server has it elsewhere ({status}), and does not say where; where it is an object "
        "store, the region of the bucket belongs in its URL: eu-west-1"
    )


def test_a_page_that_a_range_is_led_to_is_no_other_version_of_the_file():
    core = asked()
    core.handle(moved("/login"))
    core.handle(Connected())
    page = {"Content-Type": "text/html", "Content-Length": 7}
    (answer,) = core.handle(http(200, page, b"<html/>"))
    assert (answer.worth, "a login page?" in answer.why) == (Worth.REFUSED, True)
    assert "https://x.example/login" in answer.why


def moved(to, status=302):
    return http(status, {"Location": to, "Content-Length": "0"})


def test_redirects_within_a_server_are_followed():
    core = asked()
    assert core.handle(moved("/b?y=1")) == [Disconnect(), Connect(TARGET.origin)]
    (send,) = core.handle(Connected())
    assert send.data.startswith(b"GET /b?y=1 ")
    # The next request goes there at once.
    core.handle(http(206, GOOD, b"12345"))
    (send,) = core.handle(RANGE)
    assert send.data.startswith(b"GET /b?y=1 ")


def test_where_an_answer_led_for_a_while_is_asked_again():
    core = asked()
    core.handle(moved("/b?y=1"))
    core.handle(Connected())
    core.handle(http(206, GOOD, b"12345"))
    core.handle(RANGE)
    assert core.handle(http(403, {"Content-Length": "0"})) == [
        Disconnect(),
        Connect(TARGET.origin),
    ]
    (send,) = core.handle(Connected())
    assert send.data.startswith(b"GET /a?Signature=1 ")


def test_redirects_elsewhere_need_leave_and_carry_no_password():
    there = target_of("https://a.cdn.example/b").origin
    target = target_of("https://me:secret@x.example/a")
    ask = AskRange("a", target, 100, Version(ETAG), 10, 5)
    core = asked(ask, RedirectRule(("*.cdn.example",)))
    expected = [Disconnect(), Connect(there, is_elsewhere=True)]
    assert core.handle(moved("https://a.cdn.example/b")) == expected
    (send,) = core.handle(Connected())
    assert b"host: a.cdn.example\r\n" in send.data.lower()
    assert b"authorization" not in send.data.lower()
    first = connected()
    (send,) = first.handle(ask)
    assert b"authorization: basic" in send.data.lower()


@pytest.mark.parametrize(
    ("rule", "to", "words"),
    [
        (RedirectRule(), "https://y.example/a", "redirects_to"),
        (RedirectRule(("y.example",)), "http://y.example/a", "without TLS"),
        (RedirectRule(("*.example.org",)), "https://example.org.evil/a", "redirects_to"),
        (RedirectRule(("y.example",), is_relayed=True), "https://y.example/a", "relays"),
        (RedirectRule(), "https://169.254.169.254/latest", "redirects_to"),
        (RedirectRule(), "file:///etc/passwd", "must be https"),
        (RedirectRule(), "http://x.example/a", "without TLS"),
    ],
)
def test_redirects_that_are_not_followed(rule, to, words):
    _, (*_, answer) = answered(moved(to), rule=rule)
    assert answer.worth is Worth.REFUSED
    assert words in answer.why


def test_redirects_in_a_circle_end():
    core = asked()
    for _ in range(MOST_REDIRECTS):
        core.handle(moved("/a"))
        core.handle(Connected())
    *_, answer = core.handle(moved("/a"))
    assert "redirects more than" in answer.why


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH_9\r\n",
        b"HTTP/1.1 206 X\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
    ],
)
def test_what_is_no_http_fails(data):
    _, actions = answered(Received(data), Received(b""))
    assert [type(action) for action in actions] == [Disconnect, Fail]


def test_a_long_page_instead_of_the_file_is_not_waited_for():
    _, actions = answered(http(404, {"Content-Length": str(10**9)}, b"sorry"))
    assert [type(action) for action in actions] == [Disconnect, FileAnswer]


def test_a_copy_goes_on_as_the_original():
    core = asked()
    core.handle(http(206, GOOD, b"12"))
    twin = copy.deepcopy(core)
    for one in (core, twin):
        assert one.handle(Received(b"345")) == [Take(b"345"), FileAnswer(Worth.GOOD)]


@pytest.mark.parametrize("asks", [RANGE, AskSize("a", TARGET)])
def test_a_head_without_end_is_asked_for_once(asks):
    """It costs many times a small file at each try; a failure would be tried again."""
    endless = [Received(b"HTTP/1.1 206 X\r\n"), *[Received(b"X-A: b\r\n" * 1000)] * 9]
    core = asked(asks)
    actions = []
    for event in endless:
        actions += core.handle(event)
        if actions:
            break
    gone, answer = actions
    assert (gone, answer.worth) == (Disconnect(), Worth.REFUSED)
    assert "is longer than 65,536 bytes" in answer.why


# What is met in the field ---------------------------------------------------------------------


@pytest.mark.parametrize("units", ["bytes", "Bytes", "BYTES"])
def test_units_of_ranges_are_the_same_in_any_case(units):
    """RFC 9110, 14.1: range units are case-insensitive."""
    found = GOOD | {"Content-Range": f"{units} 10-14/100"}
    assert answered(http(206, found, b"12345")) == (b"12345", [FileAnswer(Worth.GOOD)])
    _, (*_, answer) = answered(
        http(206, {"Content-Range": f"{units} 0-0/100", "Content-Length": 1}, b"x"),
        asks=AskSize("a", TARGET),
    )
    assert (answer.worth, answer.n_bytes) == (Worth.GOOD, 100)


@pytest.mark.parametrize("cut", [1, 5, 17, 30, 45, 60, 100])
@pytest.mark.parametrize("before", [b"", b"HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n"])
def test_transfer_encoding_identity_is_none(before, cut):
    """RFC 2616 (1999), 3.6: it means that there is none; the length is that of Content-Length."""
    headers = {"transfer-encoding": "Identity"} | GOOD
    data = before + http(206, headers, b"12345").data
    parts = [Received(data[:cut]), Received(data[cut:])]
    assert answered(*parts) == (b"12345", [FileAnswer(Worth.GOOD)])


def test_another_transfer_encoding_is_refused_as_before():
    _, (*_, failure) = answered(http(206, GOOD | {"Transfer-Encoding": "gzip"}, b"12345"))
    assert isinstance(failure, Fail)


GLACIER = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>InvalidObjectState</Code><Message>The '
    b"operation is not valid for the object's storage class</Message><HostId>1</HostId></Error>"
)
SAYS = "InvalidObjectState: The operation is not valid for the object's storage class"


@pytest.mark.parametrize("asks", [RANGE, AskSize("a", TARGET)])
@pytest.mark.parametrize("framed", ["length", "chunks", "end"])
def test_what_a_server_says_itself_stands_behind_the_reason(asks, framed):
    """S3 says so of what lies in Glacier."""
    if framed == "length":
        events = [http(403, {"Content-Length": len(GLACIER)}, GLACIER)]
    elif framed == "chunks":
        body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(GLACIER), GLACIER)
        events = [http(403, {"Transfer-Encoding": "chunked"}, body)]
    else:
        events = [http(403, {"Connection": "close"}, GLACIER[:99]), Received(GLACIER[99:])]
        events.append(Received(b""))
    _, (*_, answer) = answered(*events, asks=asks)
    assert answer.worth is Worth.REFUSED
    assert f"('{SAYS}')" in answer.why


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (404, b'{"error": {"code": "NoSuchKey", "message": "gone"}}', "NoSuchKey: gone"),
        (500, b"<html><title>502 Bad Gateway</title></html>", "502 Bad Gateway"),
        (503, b"<Error><Code>SlowDown</Code></Error>", "SlowDown"),
        (429, b"Too many requests\nand more", "Too many requests"),
        (403, b"\0\1\2", None),
        (403, b"", None),
    ],
)
def test_documents_of_all_types_say_why(status, body, says):
    found = http(status, {"Content-Length": len(body)}, body)
    _, (*_, last) = answered(found, asks=AskSize("a", TARGET))
    assert str(status) in last.why
    assert (f"('{says}')" in last.why) if says else ("('" not in last.why)


def test_what_a_server_says_shows_no_secret_and_nothing_that_a_terminal_obeys():
    target = target_of("https://me:pass%20word@x.example/a?X-Signature=0123456789abcdef&X=1")
    said = (
        "Signature 0123456789abcdef of https://x.example/a?X-Signature=0123456789abcdef "
        f"\x1b[31mfor {target.authorization} is wrong " + "x" * 9000
    )
    body = f'{{"message": {said!a}}}'.replace("'", '"').replace("\\x1b", "\\u001b").encode()[:4000]
    body = body[:3990] + b'"}' if not body.endswith(b"}") else body
    _, (*_, answer) = answered(
        http(403, {"Content-Length": len(body)}, body), asks=AskSize("a", target)
    )
    assert "Signature …" in answer.why
    assert "0123456789abcdef" not in answer.why
    assert "Basic …" in answer.why
    assert "\x1b" not in answer.why
    assert len(answer.why) < 500


@pytest.mark.parametrize(
    "end", [ConnectionLost("nothing moves", is_late=True), ConnectionLost("reset"), Received(b"")]
)
def test_a_refusal_stands_whatever_becomes_of_its_body(end):
    begun = http(403, {"Content-Length": 100}, b"<Error>")
    _, (*_, answer) = answered(begun, end, asks=AskSize("a", TARGET))
    assert answer.worth is Worth.REFUSED
    busy = http(503, {"Content-Length": 100, "Retry-After": "7"}, b"")
    _, (gone, failure) = answered(busy, end, asks=AskSize("a", TARGET))
    assert (gone, failure.status, failure.wait_s) == (Disconnect(), 503, 7.0)


def test_of_a_refusal_without_end_little_is_read():
    begun = http(403, {"Transfer-Encoding": "chunked"})
    chunk = Received(b"1000\r\n" + b"a" * 4096 + b"\r\n")
    _, (gone, answer) = answered(begun, *[chunk] * 6, asks=AskSize("a", TARGET))
    assert (gone, answer.worth) == (Disconnect(), Worth.REFUSED)
