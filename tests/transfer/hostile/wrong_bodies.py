"""Whole bodies, of JSON and of bytes, that are not what they should be."""

import gzip

from blake3 import blake3
from transfer.hostile.wrong_values import DEEP, DEEP_OBJECT

MIB = 2**20


def wide_lines():
    """Return 16 MiB of lines whose text takes four bytes a character in memory."""
    line = b'{"left_out":"\xf0\x9f\x98\x80' + b"x" * 16_000 + b'","why":""}\n'
    return line * (16 * MIB // len(line) - 1) + b'{"next":null}\n'


BODIES = {
    "nothing": lambda _: b"",
    "no JSON": lambda _: b"<html>Welcome</html>",
    "a list": lambda _: b"[1,2,3]",
    "a number": lambda _: b"7",
    "null": lambda _: b"null",
    "100000 lists deep": lambda _: bytes(DEEP),
    "100000 objects deep": lambda _: bytes(DEEP_OBJECT),
    "16 MiB of empty objects": lambda _: b'{"x":[' + b"{}," * (16 * MIB // 3 - 10) + b"{}]}",
    "16 MiB of spaces": lambda body: b" " * (16 * MIB - len(body)) + body,
    "16 MiB of new lines": lambda _: b"\n" * (16 * MIB - 1) + b"x",
    "16 MiB of wide names": lambda _: wide_lines(),
    "16 MiB of zeros": lambda _: bytes(16 * MIB),
    "17 MiB": lambda _: b" " * (17 * MIB),
    "not UTF-8": lambda body: b"\xff" + body,
    "UTF-16": lambda body: body.decode(errors="replace").encode("utf-16"),
    "a byte order mark before it": lambda body: b"\xef\xbb\xbf" + body,
    "half of it": lambda body: body[: len(body) // 2],
    "all but the last byte": lambda body: body[:-1],
    "twice": lambda body: body + body,
    "rubbish behind it": lambda body: body + b"\0\1\2rubbish",
    "compressed": gzip.compress,
    "a NUL before it": lambda body: b"\0" + body,
}


def spoil(body, at):
    """Change one byte."""
    at %= max(len(body), 1)
    return body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :] if body else body


def of_wrong_bytes(body):
    """Other bytes with the digest of the right ones."""
    return bytes(len(body) - 33) + body[-33:]


READS = {
    "a wrong byte": lambda body: spoil(body, 0) if len(body) > 33 else spoil(body, -1),
    "zeros instead of bytes": of_wrong_bytes,
    "a wrong digest": lambda body: spoil(body, -1),
    "status 1": lambda body: body[:-33] + b"\1" + body[-32:],
    "status 2": lambda body: body[:-33] + b"\2" + body[-32:],
    "status 3": lambda body: body[:-33] + b"\3" + body[-32:],
    "status 255": lambda body: body[:-33] + b"\xff" + body[-32:],
    "a byte too few": lambda body: body[:-1],
    "a byte too many": lambda body: body + b"x",
    "nothing": lambda _: b"",
    "half of it": lambda body: body[: len(body) // 2],
    "all of it twice": lambda body: body + body,
    "16 MiB": lambda _: bytes(16 * MIB),
    "bytes in another order": lambda body: body[:-33][::-1] + body[-33:],
    "no digest": lambda body: body[:-32] + bytes(32),
    "JSON": lambda _: b'{"changed":[],"gone":[]}',
}
HASHES = {
    "wrong hashes": lambda body: b"".join(
        body[i : i + 1] + blake3(body[i : i + 33]).digest() for i in range(0, len(body), 33)
    ),
    "status 1": lambda body: b"".join(
        b"\1" + body[i + 1 : i + 33] for i in range(0, len(body), 33)
    ),
    "status 9": lambda body: b"".join(
        b"\x09" + body[i + 1 : i + 33] for i in range(0, len(body), 33)
    ),
    "a hash too few": lambda body: body[:-33],
    "a hash too many": lambda body: body + bytes(33),
    "nothing": lambda _: b"",
    "half a hash": lambda body: body[:-5],
    "zeros": lambda body: bytes(len(body)),
}
