"""Keys and tokens: the standard's own vectors, and pyseto as a second opinion."""

from __future__ import annotations

import base64
import os
import stat

import pyseto
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from hypothesis import given
from hypothesis import strategies as st

from datacollect.errors import NotWrittenError, ProblemError, TicketError
from datacollect.net.keys import (
    PrivateKey,
    new_private_key,
    public_key_bytes,
    read_private_key,
    sign_token,
    unverified_payload,
    verify_token,
    write_private_key,
)

# github.com/paseto-standard/test-vectors, v4.json: 4-S-1 to 4-S-3.
SEED = bytes.fromhex("b4cbfb43df4ce210727d953e4a713307fa19bb7d9f85041438d9e11b942a3774")
PUBLIC = bytes.fromhex("1eb9dbbbbc047c03fd70604e0071f0987e16b28b757225c11f00415d0e20b1a2")
PAYLOAD = b'{"data":"this is a signed message","exp":"2022-01-01T00:00:00+00:00"}'
FOOTER = b'{"kid":"zVhMiPBP9fRf2snEcT7gFTioeA9COcNy9DfgL1W60haN"}'
BODY = (
    "v4.public.eyJkYXRhIjoidGhpcyBpcyBhIHNpZ25lZCBtZXNzYWdlIiwiZXhwIjoiMjAyMi0wMS0wMVQwMDowMDow"
    "MCswMDowMCJ9"
)
TAIL = ".eyJraWQiOiJ6VmhNaVBCUDlmUmYyc25FY1Q3Z0ZUaW9lQTlDT2NOeTlEZmdMMVc2MGhhTiJ9"
S1 = "bg_XBBzds8lTZShVlwwKSgeKpLT3yukTw6JUz3W4h_ExsQV-P0V54zemZDcAxFaSeef1QlXEFtkqxT1ciiQEDA"
S2 = "v3Jt8mx_TdM2ceTGoqwrh4yDFn0XsHvvV_D0DtwQxVrJEBMl0F2caAdgnpKlt4p7xBnx1HcO-SPo8FPp214HDw"
S3 = "NPWciuD3d0o5eXJXG5pJy-DiVEoyPYWs1YSTwWHNJq6DZD3je5gf-0M4JR9ipdUSJbIovzmBECeaWmaqcaP0DQ"
VECTORS = [
    (b"", "", BODY + S1),
    (FOOTER, "", BODY + S2 + TAIL),
    (FOOTER, '{"test-vector":"4-S-3"}', BODY + S3 + TAIL),
]


def pem(key: PrivateKey) -> bytes:
    """Return the key as other programs read it."""
    private = Ed25519PrivateKey.from_private_bytes(key.seed)
    return private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@pytest.mark.parametrize(("footer", "assertion", "token"), VECTORS)
def test_the_standards_vectors(footer, assertion, token):
    key = PrivateKey(SEED)
    assert public_key_bytes(key.public) == PUBLIC
    assert sign_token(key, PAYLOAD, assertion, footer) == token
    assert verify_token(token, key.public, assertion) == PAYLOAD == unverified_payload(token)


@given(payload=st.binary(min_size=1, max_size=300), assertion=st.text(st.characters(codec="utf-8")))
def test_pyseto_reads_ours_and_we_read_its(payload, assertion):
    # pyseto refuses to read empty payloads.
    key = PrivateKey(SEED)
    theirs = pyseto.Key.new(4, "public", pem(key))
    ours = sign_token(key, payload, assertion)
    implicit = assertion.encode()
    read = pyseto.decode(theirs, ours, implicit_assertion=implicit)
    assert read.payload == payload
    token = pyseto.encode(theirs, payload, implicit_assertion=implicit).decode()
    assert verify_token(token, key.public, assertion) == payload


@pytest.mark.parametrize("at", range(0, len(VECTORS[2][2]), 3))
def test_no_character_may_change(at):
    token = VECTORS[2][2]
    other = token[:at] + ("A" if token[at] != "A" else "B") + token[at + 1 :]
    with pytest.raises(TicketError):
        verify_token(other, PrivateKey(SEED).public, '{"test-vector":"4-S-3"}')


@pytest.mark.parametrize(
    "token",
    [
        "",
        "v4.public.",
        BODY,
        BODY + S1 + ".",  # an empty footer is left out
        BODY + S1 + "=",
        BODY + S1[:-1] + "B",  # the same bytes, with other spare bits
        BODY + S1 + TAIL + TAIL,
        (BODY + S1).replace("v4.public", "v2.public"),
        (BODY + S1).replace("v4.public", "v4.local"),
        (BODY + S1).replace("v4.public.", "V4.public."),
        "eyJhbGciOiJub25lIn0." + BODY[10:] + ".",  # a JSON web token that says it is not signed
        "v4.public." + "A" * 9000,
        "v4.public.\u00e4" + "A" * 200,
    ],
)
def test_what_is_no_such_token(token):
    with pytest.raises(TicketError):
        verify_token(token, PrivateKey(SEED).public, "")


def test_another_key_or_purpose_does_not_verify():
    key, other = PrivateKey(SEED), new_private_key()
    token = sign_token(key, b"x", "one")
    for public, assertion in ((other.public, "one"), (key.public, "two")):
        with pytest.raises(TicketError, match="of another key, or for another purpose"):
            verify_token(token, public, assertion)


def test_a_private_key_is_written_once_for_its_owner_alone(tmp_path):
    path, key = tmp_path / "a.key", new_private_key()
    old = os.umask(0)
    try:
        write_private_key(path, key)
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_private_key(path) == key
    assert key.public in path.read_text()
    with pytest.raises(NotWrittenError, match="exists already; a key overwritten is lost"):
        write_private_key(path, new_private_key())
    assert read_private_key(path) == key


def test_a_key_does_not_show_its_secret():
    assert str(SEED) not in repr(PrivateKey(SEED))


@pytest.mark.parametrize(
    "text", ["", "ed25519-private:AAAA", "ed25519-private:" + "A" * 42 + "B=", "x\ny\n", "ed25519:"]
)
def test_a_file_that_holds_no_key(tmp_path, text):
    path = tmp_path / "a.key"
    path.write_text(text)
    with pytest.raises(ProblemError, match=r"a\.key: "):
        read_private_key(path)


def test_a_private_key_among_public_ones_is_recognised(tmp_path):
    write_private_key(tmp_path / "a.key", new_private_key())
    private = (tmp_path / "a.key").read_text().splitlines()[1]
    with pytest.raises(ProblemError, match="got a private one") as caught:
        public_key_bytes(private)
    assert private not in str(caught.value)


P = 2**255 - 19


def has_order_8_or_less(y: int) -> bool:
    """Whether three doublings lead to the neutral point, by the curve's law (RFC 8032, 5.1.4)."""
    d = -121665 * pow(121666, -1, P) % P
    xx = (y * y - 1) * pow(d * y * y + 1, -1, P) % P
    x = pow(xx, (P + 3) // 8, P)
    if x * x % P != xx:
        x = x * pow(2, (P - 1) // 4, P) % P
    if x * x % P != xx:
        return False
    for _ in range(3):
        dxy = d * x * x * y * y
        x, y = (
            2 * x * y * pow(1 + dxy, -1, P) % P,
            (y * y + x * x) * pow(1 - dxy, -1, P) % P,
        )
    return (x, y) == (0, 1)


Y_OF_ORDER_8 = 0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826


@pytest.mark.parametrize("y", [0, 1, P - 1, P, P + 1, Y_OF_ORDER_8, P - Y_OF_ORDER_8])
@pytest.mark.parametrize("sign", [0, 2**255])
def test_keys_for_which_anybody_can_sign_are_refused(y, sign):
    assert has_order_8_or_less(y % P)
    text = "ed25519:" + base64.b64encode((y + sign).to_bytes(32, "little")).decode()
    with pytest.raises(ProblemError, match="the key must be a safe public key"):
        public_key_bytes(text, "the key")


def test_other_keys_have_no_small_order():
    raw = public_key_bytes(PrivateKey(bytes(32)).public)
    assert not has_order_8_or_less(int.from_bytes(raw, "little") % 2**255)
