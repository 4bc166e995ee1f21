"""Heads of answers that are not what they should be, and ways in which answers come."""

from functools import partial

from transfer.hostile.hostile_agent import Gone, drip, half_close, reset, stay_silent

MIB = 2**20

STATUS = {
    f"{code}": b"HTTP/1.1 %d Some words" % code
    for code in (100, 101, 102, 199, 201, 204, 206, 301, 302, 304, 307, 400, 401, 402, 403, 404)
} | {
    f"{code}": b"HTTP/1.1 %d Some words" % code
    for code in (405, 409, 413, 416, 418, 429, 499, 500, 501, 502, 503, 504, 505, 599, 999)
}
STATUS_LINES = {
    "status 0": b"HTTP/1.1 000 OK",
    "status 10^9": b"HTTP/1.1 1000000000 OK",
    "a status that is no number": b"HTTP/1.1 abc OK",
    "no status": b"HTTP/1.1",
    "HTTP/0.9": b"hello",
    "HTTP/1.0": b"HTTP/1.0 200 OK",
    "HTTP/2": b"HTTP/2.0 200 OK",
    "HTTP/9.9": b"HTTP/9.9 200 OK",
    "an empty first line": b"",
    "a first line of 60 KB": b"HTTP/1.1 200 " + b"O" * 60_000,
    "control characters in the first line": b"HTTP/1.1 200 \x1b[31m\x07\x9b",
    "NUL in the first line": b"HTTP/1.1 200 O\0K",
    "no UTF-8 in the first line": b"HTTP/1.1 200 \xff\xfe",
    "words of terminal escapes and 403": b"HTTP/1.1 403 \x1b[2J",
    "TLS inside TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
}
LENGTHS = {
    "missing": None,
    "negative": b"-1",
    "0": b"0",
    "a byte too few": -1,
    "a byte too many": +1,
    "16 MiB too many": +16 * MIB,
    "10^12": b"1000000000000",
    "2^63": b"9223372036854775808",
    "10^30": b"1" + b"0" * 30,
    "10^5000": b"1" + b"0" * 5000,
    "a text": b"many",
    "hexadecimal": b"0x40",
    "with a plus": b"+5",
    "a fraction": b"5.0",
    "in other digits": "٣".encode(),
    "empty": b"",
    "with underscores": b"1_0",
    "two numbers": b"5, 6",
}
HEADERS = {
    "chunked": [(b"Transfer-Encoding", b"chunked")],
    "a length and chunked": [(b"Content-Length", None), (b"Transfer-Encoding", b"chunked")],
    "compressed, it says": [(b"Content-Length", None), (b"Content-Encoding", b"gzip")],
    "a redirect": [(b"Content-Length", None), (b"Location", b"https://127.0.0.1:1/v1/agent")],
    "two lengths": [(b"Content-Length", None), (b"Content-Length", b"5")],
    "the same length twice": [(b"Content-Length", None), (b"Content-Length", None)],
    "it closes": [(b"Content-Length", None), (b"Connection", b"close")],
    "an upgrade": [(b"Content-Length", None), (b"Upgrade", b"h2c"), (b"Connection", b"Upgrade")],
    "10000 headers": [(b"Content-Length", None), *[(b"X", b"y")] * 10_000],
    "100 headers": [(b"Content-Length", None), *[(b"X", b"y")] * 100],
    "a header of 1 MB": [(b"Content-Length", None), (b"X", b"y" * 10**6)],
    "NUL in a header": [(b"Content-Length", None), (b"X", b"a\0b")],
    "terminal escapes in a header": [(b"Content-Length", None), (b"X", b"\x1b[31m\x9b1m")],
    "no UTF-8 in a header": [(b"Content-Length", None), (b"X", b"\xff\xfe")],
    "a header without a name": [(b"Content-Length", None), (b"", b"x")],
    "a header with spaces before it": [(b" Content-Length", None)],
    "a folded header": [(b"Content-Length", None), (b"X", b"a\r\n b")],
    "small letters": [(b"content-length", None)],
}


def set_status(reply, _, line):
    reply.status = line


def set_length(reply, _, value):
    if value is None:
        reply.headers = []
    elif isinstance(value, int):
        reply.headers = [(b"Content-Length", b"%d" % max(0, len(reply.body) + value))]
    else:
        reply.headers = [(b"Content-Length", value)]


def set_headers(reply, _, headers):
    reply.headers = list(headers)
    if (b"Transfer-Encoding", b"chunked") in headers:
        reply.body = b"%x\r\n" % len(reply.body) + reply.body + b"\r\n0\r\n\r\n"


def set_send(reply, _, send):
    reply.send = send


def set_more(reply, _, more):
    reply.more = more()


def only_lines(line_end):
    """Return a way to send a head whose lines end otherwise."""

    def send(agent, connection, raw):
        head, _, body = raw.partition(b"\r\n\r\n")
        connection.sendall(head.replace(b"\r\n", line_end) + line_end * 2 + body)

    return send


def answers_before(agent, connection, raw):
    connection.sendall(raw + raw)


def cut_and(part, end):
    """Return a way to send a part of an answer, and then end."""

    def send(agent, connection, raw):
        connection.sendall(raw[: max(1, int(len(raw) * part))])
        end(connection)

    return send


def cut_and_wait(part):
    def send(agent, connection, raw):
        connection.sendall(raw[: max(1, int(len(raw) * part))])
        stay_silent(agent, connection)

    return send


def endless_head(agent, connection, raw):
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    while not agent.over.is_set():
        connection.sendall(b"X-More: " + b"y" * 1000 + b"\r\n")
    raise Gone


def endless_header(agent, connection, raw):
    connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
    while not agent.over.is_set():
        connection.sendall(b"y" * 1000)
    raise Gone


def endless_continues(agent, connection, raw):
    while not agent.over.is_set():
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
    raise Gone


def unasked():
    while True:
        yield b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


def endless_body(agent, connection, raw):
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n")
    while not agent.over.is_set():
        connection.sendall(bytes(16384))
    raise Gone


def body_slowly(step_s, n_bytes=1):
    """Return a way to send the head at once and the body in drops."""

    def send(agent, connection, raw):
        head, end, body = raw.partition(b"\r\n\r\n")
        connection.sendall(head + end)
        drip(agent, connection, body, step_s=step_s, n_bytes=n_bytes)

    return send


def after_a_while(wait_s):
    """Return a way to answer rightly, but late."""

    def send(agent, connection, raw):
        if agent.over.wait(wait_s):
            raise Gone
        connection.sendall(raw)

    return send


def a_burst_and_silence(agent, connection, raw):
    """Send 20 KB, never a whole piece, and keep the connection: what comes again and again."""
    connection.sendall(raw[: min(20_000, len(raw) // 2 + 1)])
    stay_silent(agent, connection)


def a_burst_and_the_end(agent, connection, raw):
    connection.sendall(raw[: min(20_000, len(raw) // 2 + 1)])
    half_close(connection)


SENDS = {
    "nothing at all": stay_silent,
    "a byte every 0.3 s": partial(drip, step_s=0.3),
    "a byte every 0.05 s": partial(drip, step_s=0.05),
    "a byte every 5 s": partial(drip, step_s=5.0),
    "20 bytes every 0.1 s": partial(drip, step_s=0.1, n_bytes=20),
    "the head, then a byte of the body every 0.3 s": body_slowly(0.3),
    "the head, then a byte of the body every 5 s": body_slowly(5.0),
    "the answer after 0.7 s": after_a_while(0.7),
    "the answer after 1.3 s": after_a_while(1.3),
    "a byte, then a reset": cut_and(0.0, reset),
    "half, then a reset": cut_and(0.5, reset),
    "all, then a reset": cut_and(1.0, reset),
    "a byte, then the end": cut_and(0.0, half_close),
    "half, then the end": cut_and(0.5, half_close),
    "all but a little, then the end": cut_and(0.97, half_close),
    "all, then the end": cut_and(1.0, half_close),
    "half, then silence": cut_and_wait(0.5),
    "all but a little, then silence": cut_and_wait(0.97),
    "a head of lines without end": endless_head,
    "a header without end": endless_header,
    "100 Continue without end": endless_continues,
    "a body without end": endless_body,
    "20 KB, then silence": a_burst_and_silence,
    "20 KB, then the end": a_burst_and_the_end,
    "lines that end with LF": only_lines(b"\n"),
    "lines that end with CR": only_lines(b"\r"),
    "every answer twice": answers_before,
}
