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

from datacollect.bistro.formats.log.entry import content_digest
from datacollect.bistro.formats.sealing.sealed import Inner, open_sealed, seal

GO = shutil.which("go") or shutil.which("/usr/local/go/bin/go")
AGE = "filippo.io/age/cmd/age@v1.2.1"
INNER = Inner(b'{"name":"thesis.pdf"}', bytes(range(32)), b"t" * 64)
FILE = b"a thesis"

# What age 1.2.1 has sealed: `age -r RECIPIENT`, on what a seal holds.
IDENTITY = "AGE-SECRET-KEY-1RL35CXGXSVPARPWQFQKSKRU4EGMDWYF3KA975ASPRYNXSNVSJMQSNYEPTN"
BY_AGE = """
YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IFgyNTUxOSBKRG5PenBKbENjSzk2K3BtcnZjeHVjRzhObXdGMU90OUdkd2tF
THFvT3pnCkNxRWxWSVYzYnhEa0djcGgzZC9FcS9LdnJmVTJSclFzMUxzUXkvUTJlY1UKLS0tIFZ0bzNuQlBEUHU0UHdT
MUhKR2FWZ0czM3J3Q20zeDIxSS9YNzNYY1FzdGMK27H/lqTzqUI1qUC9Rm6+xR+NEfpDrptRYF+1RV4bf3KnQe+SwyeJ
rOAYRnrCuTsOucEifM1JRla/tXrJtMhxHXRs8uKUsx+XYeIVrRjjgMQju9YFcnCUdi/VbGCH7WpmucknuiM6jT5FgfnT
HpVYcjgHInXIxEqbOKgaDefyAgiBAvZvxqnjJAp07qYGmU8Orq0GkeL8h8mwVD+aV5SPKBxCPiHAjVAk6nmqde7IVA5T
GntXVNSjRHjBYgGoppRJfsHe3mIaWxpAK4ZhmZDNDCWQGsol/OfmFV05agPZnwNr7k9Ss1TmS9lFY/bLMmdG6bjd7p6z
RghyABJK/rb6VYm6eGwraVPbNWkzw8v79mjX5hVBVOmzy7CnD76RhCnfLLLRQZKeDTbHKYVYK2xjn4SQC7QgbQx5B5ZK
jV0ldlHAJ7T9x4xy/Nc=
"""

# What the page (`bistro/page/src/sealing.js`) has sealed for the same, and its code of it.
BY_PAGE = """
YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IFgyNTUxOSB3TEIycW9URzdpcDZUUWhCMkE2c29lZDZxRVpaUUxVeERXRjRFd2Fj
NFdFCnpvenFkT3NQdXZsSWZjaVIxY0JBYTFQeXc1TFVMVlNzMWRaejZueDRzS3cKLS0tIGRwTWxvMWMzUysycUdpTEp4QVY1
UFc5YWpkZkNyMUR0eFI2cC9mOFd4YlEKtVSqmXlEZOkT2UQ04fa3nJMUV2E6xhgJQfV6Ty416mX6pju+98nHtYLk9FL9iW+7
0QyaDsxit5GxOQUJ9xJNKBK9g6AbBaEEp6bO3wMtojGDX0pDMb5NxtfTO98SWqmkXDUedb4U6b6bTzXhjAeoocs+XYtFZGNY
XKnpPLrISq3LpzgHr3oU5LsTerOA3T5vpD3elMtbh/aSX6jdRs76anx05yRaA4XDLng/u4maR10+rX1rsxTWKGdRRNuJaGVo
CYBQPdEakgpG1UJA3cn0MZshVN6nS7gsb0+ua5teg9GIiN4KSTGs3atirHAIidgWiNFY2tGG1xal1YQHay1cXvwwTv9qe5Wg
DpHZfigwZKn4GF/DWbL2kqMQoWtwE9wfGQsIgJInA84fbgbhw9SMXNd92rvosm0rLGk4+/m42bmXRUGnaSGpWnI=
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
