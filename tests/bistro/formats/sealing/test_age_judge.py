"""Seals beside age itself (https://age-encryption.org, Go): each opens what the other sealed."""

from __future__ import annotations

import base64
import io
import os
import shutil
import subprocess
from pathlib import Path

import pyrage
import pytest
from conftest import NO_AGE

from datacollect.bistro.formats.log.content import content_digest
from datacollect.bistro.formats.sealing.sealed import Inner, open_sealed, seal

GO = shutil.which("go") or shutil.which("/usr/local/go/bin/go")
AGE = "filippo.io/age/cmd/age@v1.2.1"
INNER = Inner(b'{"name":"thesis.pdf"}', bytes(range(32)), b"t" * 64)
FILE = b"a thesis"

# What age 1.2.1 has sealed: `age -r RECIPIENT`, on what a seal holds.
IDENTITY = "AGE-SECRET-KEY-1RL35CXGXSVPARPWQFQKSKRU4EGMDWYF3KA975ASPRYNXSNVSJMQSNYEPTN"
BY_AGE = """
YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IFgyNTUxOSBxdkVtZTBQeDFMTUtoVTZaR0IrcVZjeHhxY1E4UXYvam16VmQ2SWtn
MUFjClFLK085WC9UOWhFRFhQa0hsZUVkM284bkJ4OTJmUEF2T2xGVU9SbjZzSGMKLS0tIFNKRWFxRC9yVDRQV05yNGlGQk5O
QnJSdzQ5eUVpTzNDYndhZ3hhQzBnWlEK9iCTgg8LMDcGgDT8Xc2U0DZsoAgGsdxLljCOsUNVaUlfSUuJwHuEuc2cvrOI/b9H
QrZY+jK2OlJlzAWj9wYkvIhs3SochicyKT6akqwRRYRFLcpX8yZj0WcE4ttB0HKqRapxVunY0GkNXoaxDxjCpI435tLxoM52
sfWTErK0ByIW57RW0nd3xOpt/lFDutkkUvLWD4RmjUQqlIM2pr/4SXn1ptbbfYWnQFROGnL9ySySRevdsh15W+mHiDiZkjm3
WxG5lY89zsIFGg797rTvJl4CA/DsrY6aFB0N6rmwZ47w1NTagbjrOGCo3h1+afa2VpBNVpwBHtS7yV4LC0+JcQf1fcNGzu37
pYNPobTATN9586GSk/b+dGTklT4M5m3kfo5mGflwey0uFjl3m2jYfO1Aqggzd8QcSJkUP5Htyr/GTRRRVrfgD6M=
"""

# What the page (`bistro/page/src/sealing.js`) has sealed for the same, and its code of it.
BY_PAGE = """
YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IFgyNTUxOSBRSllYeTdyazltR3J2MzNNV3NUVEJseG43YklUVTRJMUplTVliSEdx
VWpJCkZBY0hoQzIrcFBLY1ROQzBXWENCR3dKRHFQS1BCdm5pelRicXBRL3ZmRk0KLS0tIGtpZTA5N05NeWhDd3cvVGJqVTBG
TmMyTTlBcUpWOHdpWjBPMm5SVFJOU3cKocyj9q0dYn6SYLQyYrYjLdB6oD+gdf2+6JKT9GHYepNmNZiijuD8/+DakBPMJShr
PNcMOK7KM+53EsRYyGOhudzqisYqIUYuxoLZ9kb52dT0auV6JF4ua28w34148rHaJbIwmCtNI1oVIgUUY1smSwgZDIvaUN/O
0qNzFLTMxG7rgi3uryAaqsS+RHJGWCApCXHRojgIl7fuVRm9BHtHpdPHzslVyoqTBZWabFoub30Csq6co0P5LqGwB4Z13aak
MHVKucFKsiRBa7dKDnw/KT0z4MGA4kAFTubT0JwMU6e4QB5zwHKG1QO6kjHkCxqLvPXGXXu+EqGe9RUdqIovje68oa0CAnaS
W7zHf8m1BEj/s5MKbAqycaBuLuwjac21bAyulS7TGpHHtxcBtRUUEPamEAnH/n/Py5f/EgXMgCOfFbUY5rGEPVM=
"""
CONTENT_P = "ad357ca9fad19a656adb1ae42e2dec9c879fcf04a34870f5b6dbd4ddfef0d2ee"


@pytest.fixture(scope="module")
def age(tmp_path_factory):
    found = shutil.which("age")
    if found or GO is None:
        return found or pytest.skip(NO_AGE)
    folder = tmp_path_factory.mktemp("go")
    made = subprocess.run(
        [GO, "install", AGE],
        env=os.environ | {"GOBIN": str(folder)},
        check=False,
        capture_output=True,
        timeout=900,
    )
    return str(folder / "age") if made.returncode == 0 else pytest.skip(NO_AGE)


def opened(ciphertext: bytes, identity: str) -> tuple[Inner, bytes]:
    out = io.BytesIO()
    return open_sealed(io.BytesIO(ciphertext), out, [identity]).inner, out.getvalue()


def test_what_age_has_sealed_is_opened():
    assert opened(base64.b64decode(BY_AGE), IDENTITY) == (INNER, FILE)


def test_what_the_page_has_sealed_is_opened_and_its_code_of_the_content_is_ours():
    assert opened(base64.b64decode(BY_PAGE), IDENTITY) == (INNER, FILE)
    assert content_digest(INNER.secret, INNER.header, [FILE]).hex() == CONTENT_P


@pytest.mark.slow
def test_age_opens_what_the_page_has_sealed(age, tmp_path: Path):
    (tmp_path / "sealed.age").write_bytes(base64.b64decode(BY_PAGE))
    (tmp_path / "key").write_text(f"{IDENTITY}\n")
    command = [age, "-d", "-i", str(tmp_path / "key"), str(tmp_path / "sealed.age")]
    assert subprocess.run(command, check=True, capture_output=True).stdout.endswith(FILE)


@pytest.mark.slow
@pytest.mark.parametrize("n_bytes", [0, 1, 65_536, 1_000_000])
def test_each_opens_what_the_other_has_sealed(age, tmp_path: Path, n_bytes):
    identities = [pyrage.x25519.Identity.generate() for _ in range(2)]
    recipients = [str(each.to_public()) for each in identities]
    data, sealed = os.urandom(n_bytes), io.BytesIO()
    seal(io.BytesIO(data), sealed, INNER, recipients)
    (tmp_path / "sealed.age").write_bytes(sealed.getvalue())
    for identity in identities:
        (tmp_path / "key").write_text(f"{identity}\n")
        command = [age, "-d", "-i", str(tmp_path / "key"), str(tmp_path / "sealed.age")]
        plain = subprocess.run(command, check=True, capture_output=True).stdout
        assert plain == pyrage.decrypt(sealed.getvalue(), [identities[0]])
        assert plain.endswith(data)
        asked = [part for each in recipients for part in ("-r", each)]
        theirs = subprocess.run([age, *asked], input=plain, check=True, capture_output=True).stdout
        assert opened(theirs, str(identity)) == (INNER, data)
    (tmp_path / "key").write_text(f"{pyrage.x25519.Identity.generate()}\n")
    assert subprocess.run(command, check=False, capture_output=True).returncode
    changed = bytearray(sealed.getvalue())
    changed[-1] ^= 1
    (tmp_path / "sealed.age").write_bytes(changed)
    (tmp_path / "key").write_text(f"{identities[0]}\n")
    assert subprocess.run(command, check=False, capture_output=True).returncode
