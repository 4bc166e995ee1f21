"""What is handed in is sealed for its recipients, and kept before it is committed."""

import errno
import hashlib
import hmac
import io
import json
import os
import random
import stat
from dataclasses import replace

import pyrage
import pytest

from datacollect.bistro.formats.event.tickets import Ticket
from datacollect.bistro.formats.sealing import keep as keeping
from datacollect.bistro.formats.sealing.keep import (
    Kept,
    ciphertext_of,
    keep,
    read_keep,
    read_kept_seal,
    sealed_bytes,
)
from datacollect.bistro.formats.sealing.sealed import Inner, open_sealed, seal
from datacollect.errors import IdentityError, NotWrittenError, ProblemError
from datacollect.net.keys import PrivateKey

FIRST, SECOND, STRANGER = (pyrage.x25519.Identity.generate() for _ in range(3))
RECIPIENTS = [str(FIRST.to_public()), str(SECOND.to_public())]
INNER = Inner(b'{"name":"thesis.pdf"}', bytes(range(32)), b"t" * 64)
DATA = random.Random(1).randbytes(200_000)
OWNER = PrivateKey(b"o" * 32)
TICKET = Ticket(b"e" * 32, "v4.public.x", b"k" * 32)


def sealed(data=DATA, inner=INNER):
    out = io.BytesIO()
    told = seal(io.BytesIO(data), out, inner, RECIPIENTS)
    return out.getvalue(), told


def opened(ciphertext, identity=FIRST):
    out = io.BytesIO()
    return open_sealed(io.BytesIO(ciphertext), out, [str(identity)]), out.getvalue()


# The seal --------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_bytes", [0, 1, 65_535, 65_536, 200_000])
def test_each_recipient_opens_it_alone(n_bytes):
    ciphertext, told = sealed(DATA[:n_bytes])
    for identity in (FIRST, SECOND):
        found, data = opened(ciphertext, identity)
        assert (found.inner, found.n_bytes, data) == (INNER, n_bytes, DATA[:n_bytes])
        assert found.content_p == told.content_p
    assert told[:2] == (len(ciphertext), hashlib.sha256(ciphertext).digest())
    assert len(ciphertext) <= sealed_bytes(n_bytes) + len(INNER.header) + 300


def test_the_code_of_the_content_is_the_published_one():
    header = INNER.header
    message = b"datacollect-content/1\n" + len(header).to_bytes(4, "big") + header + DATA
    assert sealed()[1].content_p == hmac.new(INNER.secret, message, "sha256").digest()


def test_any_program_that_knows_age_opens_it():
    """The secrets stand before the file; its bytes are as they were."""
    plain = pyrage.decrypt(sealed()[0], [SECOND])
    assert plain.startswith(b"datacollect-sealed/2\n")
    assert plain.endswith(DATA)
    assert INNER.secret.hex().encode() in plain[:500]


def test_a_stranger_opens_nothing():
    with pytest.raises(IdentityError, match="it was sealed for others"):
        opened(sealed()[0], STRANGER)


def test_two_seals_of_one_file_differ_but_for_the_code_of_the_content():
    (one, first), (other, second) = sealed(), sealed()
    assert one != other
    assert first.content_p == second.content_p


def test_damage_is_found_wherever_it_is():
    ciphertext = sealed(DATA[:300])[0]
    for i in range(len(ciphertext)):
        changed = bytearray(ciphertext)
        changed[i] ^= 1
        with pytest.raises((ProblemError, IdentityError)):
            opened(bytes(changed))
    for cut in (*range(0, len(ciphertext), 7), len(ciphertext) - 1):
        with pytest.raises(ProblemError, match="damaged or cut off"):
            opened(ciphertext[:cut])
    with pytest.raises(ProblemError, match="damaged or cut off"):
        opened(ciphertext + b"x")


def test_a_stanza_more_or_less_makes_a_ciphertext_that_nobody_opens():
    head, mac, rest = sealed(DATA[:300])[0].partition(b"\n---")
    version, *stanzas = head.split(b"\n-> ")
    others = [stanzas[:i] + stanzas[i + 1 :] for i in range(len(stanzas))]
    others += [[*stanzas, stanzas[0]], stanzas[::-1], [*stanzas, b"x y\nAA"]]
    for changed in others:
        ciphertext = b"\n-> ".join([version, *changed]) + mac + rest
        for identity in (FIRST, SECOND):
            with pytest.raises((ProblemError, IdentityError)):
                opened(ciphertext, identity)


HEAD = b'{"header":"{}","secret":"%s","ticket_signature":null}' % (b"00" * 32)


@pytest.mark.parametrize(
    "plain",
    [
        b"",
        b"just a text",
        b"datacollect-sealed/2\n",
        b"datacollect-sealed/2\n" + bytes(4),
        b"datacollect-sealed/2\n\xff\xff\xff\xff" + HEAD,
        b"datacollect-sealed/2\n" + len(HEAD).to_bytes(4, "big") + HEAD[:-1],
        b"datacollect-sealed/2\n" + (5).to_bytes(4, "big") + b"[1,2]",
        b"datacollect-sealed/2\n" + (5).to_bytes(4, "big") + b'{"a":',
        b"datacollect-sealed/2\n" + len(HEAD).to_bytes(4, "big") + HEAD.replace(b"00", b"0g", 1),
        b"datacollect-sealed/2\n" + len(HEAD).to_bytes(4, "big") + HEAD.replace(b'"{}"', b"null"),
        b"datacollect-sealed/2\n" + len(HEAD).to_bytes(4, "big") + HEAD.replace(b"null", b'"00"'),
    ],
)
def test_what_others_have_sealed_is_refused(plain):
    with pytest.raises(ProblemError, match="what was sealed"):
        opened(pyrage.encrypt(plain, [FIRST.to_public()]))


def test_bytes_may_come_in_any_pieces():
    class Slow(io.BytesIO):
        def read(self, n=-1):
            return super().read(min(n, 7) if n >= 0 else 7)

    out = io.BytesIO()
    told = seal(Slow(DATA[:1000]), out, INNER, RECIPIENTS)
    back = io.BytesIO()
    found = open_sealed(Slow(out.getvalue()), back, [str(FIRST)])
    assert (back.getvalue(), found.content_p) == (DATA[:1000], told.content_p)


@pytest.mark.parametrize("recipient", ["", "age1", "AGE-SECRET-KEY-1", "ssh-ed25519 AAAA"])
def test_a_recipient_that_is_none_is_refused(recipient):
    with pytest.raises(ProblemError, match="is no recipient of age: it must begin with age1"):
        seal(io.BytesIO(DATA), io.BytesIO(), INNER, [recipient])


def test_an_identity_that_is_none_is_not_shown():
    with pytest.raises(ProblemError, match="must begin with AGE-SECRET-KEY-1") as caught:
        open_sealed(io.BytesIO(), io.BytesIO(), ["hunter2"])
    assert "hunter2" not in str(caught.value)


# What is kept ----------------------------------------------------------------------------------


def kept_file(tmp_path, data=DATA, into="thesis.pdf.keep"):
    path = tmp_path / "thesis.pdf"
    if not path.exists():
        path.write_bytes(data)
    return keep(
        path,
        tmp_path / into,
        event=b"e" * 32,
        salt=b"s" * 32,
        inner=INNER,
        owner=OWNER,
        ticket=TICKET,
        recipients=RECIPIENTS,
    )


def leftovers(tmp_path):
    return sorted(each.name for each in tmp_path.iterdir() if each.name != "thesis.pdf")


@pytest.mark.parametrize("n_bytes", [0, 200_000])
def test_what_is_kept_is_read_again(tmp_path, n_bytes):
    kept = kept_file(tmp_path, DATA[:n_bytes])
    path = tmp_path / "thesis.pdf.keep"
    assert read_keep(path) == kept
    assert isinstance(kept, Kept)
    with ciphertext_of(path, kept) as blocks:
        ciphertext = b"".join(blocks)
    assert hashlib.sha256(ciphertext).digest() == kept.sealed.sha256
    assert opened(ciphertext)[1] == DATA[:n_bytes]


def older_keep(path, kept):
    """Make of a .keep what one was of events of version 1, by what was written then."""
    with ciphertext_of(path, kept) as blocks:
        ciphertext = b"".join(blocks)
    tree = {
        "event": kept.event.hex(),
        "salt": kept.salt.hex(),
        "header": kept.inner.header.decode(),
        "secret": kept.inner.secret.hex(),
        "ticket_secret": "33" * 32,
        "ticket": "v4.public.x",
        "size": kept.sealed.n_bytes,
        "ciphertext_sha256": kept.sealed.sha256.hex(),
        "content_p": kept.sealed.content_p.hex(),
        "file": {"bytes": kept.version.n_bytes, "mtime_ns": kept.version.mtime_ns},
    }
    told = json.dumps(tree, separators=(",", ":")).encode()
    end = hashlib.sha256(told).digest() + len(told).to_bytes(4, "big") + b"datacollect-keep/1\n"
    path.write_bytes(ciphertext + told + end)


def test_one_of_an_older_kind_is_read_and_nothing_is_handed_in_with_it(tmp_path):
    kept, path = kept_file(tmp_path), tmp_path / "thesis.pdf.keep"
    older_keep(path, kept)
    found = read_kept_seal(path)
    assert (found.is_whole, found.event, found.salt) == (True, kept.event, kept.salt)
    assert (found.sealed, found.inner.secret) == (kept.sealed, kept.inner.secret)
    with pytest.raises(
        ProblemError, match=r"thesis\.pdf\.keep: was made by an older version .* verify` reads it"
    ):
        read_keep(path)


def test_only_its_owner_reads_it_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        kept_file(tmp_path)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "thesis.pdf.keep").stat().st_mode) == 0o600
    assert leftovers(tmp_path) == ["thesis.pdf.keep"]


def test_secrets_are_never_shown(tmp_path):
    shown = repr(kept_file(tmp_path))
    assert INNER.secret.hex() not in shown
    assert repr(INNER.secret) not in shown
    for letter in "tok":
        assert 4 * letter not in shown
        assert letter.encode().hex() * 4 not in shown
    assert "v4.public" not in shown


def test_it_is_written_once(tmp_path):
    kept_file(tmp_path)
    before = (tmp_path / "thesis.pdf.keep").read_bytes()
    with pytest.raises(NotWrittenError, match="is there already"):
        kept_file(tmp_path)
    assert (tmp_path / "thesis.pdf.keep").read_bytes() == before


def test_a_link_that_waits_where_it_is_written_is_not_followed(tmp_path, monkeypatch):
    """In a folder where others write, too: not even where its random name is known."""
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    monkeypatch.setattr(keeping.secrets, "token_hex", lambda n: "00" * n)
    target = tmp_path / "thesis.pdf.keep"
    names = {os.getpid(), "00" * 8}
    for name in names:
        (tmp_path / f".{target.name}.{name}.tmp").symlink_to(theirs / "copy")
    with pytest.raises(NotWrittenError, match="cannot be written"):
        kept_file(tmp_path)
    assert not (theirs / "copy").exists()


def test_a_file_that_changes_meanwhile_is_refused(tmp_path, monkeypatch):
    def changing(file, *rest):
        told = seal(file, *rest)
        with (tmp_path / "thesis.pdf").open("ab") as more:
            more.write(b"more")
        return told

    monkeypatch.setattr(keeping, "seal", changing)
    with pytest.raises(ProblemError, match=r"thesis\.pdf: changed while it was sealed"):
        kept_file(tmp_path)
    assert leftovers(tmp_path) == []


def test_no_room_is_said_before_anything_is_written(tmp_path, monkeypatch):
    usage = type("Usage", (), {"free": 1000})
    monkeypatch.setattr(keeping.shutil, "disk_usage", lambda _: usage)
    with pytest.raises(NotWrittenError, match=r"there is no room .* name another folder with -o"):
        kept_file(tmp_path)
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("call", ["fsync", "link", "open", "fdopen"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EACCES])
def test_a_call_that_fails_leaves_nothing_and_says_which_file(tmp_path, monkeypatch, call, code):
    (tmp_path / "thesis.pdf").write_bytes(DATA)

    def failing(*_, **__):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, call, failing)
    with pytest.raises(NotWrittenError) as caught:
        kept_file(tmp_path)
    monkeypatch.undo()
    assert f"thesis.pdf.keep: cannot be written: {os.strerror(code)}" in str(caught.value)
    assert caught.value.exit_code == (2 if code == errno.EACCES else 3)
    assert leftovers(tmp_path) == []


def test_a_folder_that_is_missing_is_named(tmp_path):
    with pytest.raises(NotWrittenError, match="make the folder first"):
        kept_file(tmp_path, into="nowhere/x.keep")


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "thesis.pdf").mkdir()
    with pytest.raises(ProblemError, match=r"thesis\.pdf: cannot be read: Is a directory"):
        kept_file(tmp_path)


def test_a_disk_that_fails_while_the_file_is_read_is_not_said_of_the_keep(tmp_path, monkeypatch):
    class Failing(io.BytesIO):
        def read(self, n=-1):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def failing(file, *rest):
        file._file = Failing()
        return seal(file, *rest)

    monkeypatch.setattr(keeping, "seal", failing)
    with pytest.raises(ProblemError, match=r"thesis\.pdf: cannot be read: Input/output error"):
        kept_file(tmp_path)
    assert leftovers(tmp_path) == []


@pytest.mark.slow
def test_damage_to_a_keep_is_found_wherever_it_is(tmp_path):
    kept = kept_file(tmp_path, DATA[:300])
    path = tmp_path / "thesis.pdf.keep"
    whole = path.read_bytes()
    for i in range(len(whole)):
        path.write_bytes(whole[:i] + bytes([whole[i] ^ 1]) + whole[i + 1 :])
        if i < kept.sealed.n_bytes:
            # The secrets are there still: the file can be sealed anew.
            assert read_keep(path) == replace(kept, is_whole=False)
            continue
        with pytest.raises(ProblemError, match=r"thesis\.pdf\.keep: "):
            read_keep(path)
    for cut in range(0, len(whole), 11):
        path.write_bytes(whole[:cut])
        with pytest.raises(
            ProblemError, match=r"is not a \.keep of datacollect, or not a complete one"
        ):
            read_keep(path)
