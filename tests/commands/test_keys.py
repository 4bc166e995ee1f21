"""``datacollect keys``: made once, shown often."""

from __future__ import annotations

import hashlib
import json
import ssl
import stat

from datacollect.bistro.formats.log.notes import OF_WITNESS, VerifierKey
from datacollect.commands.main import run
from datacollect.net.keys import read_private_key
from datacollect.net.tls import make_certificate


def test_a_key_is_made_and_shown(tmp_path, capsys):
    path = tmp_path / "collector.key"
    assert run(["keys", "new", str(path)]) == 0
    made = capsys.readouterr()
    assert made.out.startswith("ed25519:")
    assert len(made.out.strip()) == len("ed25519:") + 44
    assert "keep it secret" in made.err
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert run(["keys", "show", str(path)]) == 0
    assert capsys.readouterr().out == made.out


def test_a_key_is_never_overwritten(tmp_path, capsys):
    path = tmp_path / "collector.key"
    run(["keys", "new", str(path)])
    before = path.read_bytes()
    assert run(["keys", "new", str(path)]) == 2
    assert "exists already; a key overwritten is lost" in capsys.readouterr().err
    assert path.read_bytes() == before


def test_what_is_no_key(tmp_path, capsys):
    (tmp_path / "a").write_text("ed25519:abc\n")
    for name, message in (("a", "must hold one line ed25519-private:"), ("b", "no such file")):
        assert run(["keys", "show", str(tmp_path / name)]) == 2
        assert message in capsys.readouterr().err
    assert run(["keys", "new", str(tmp_path / "no/such")]) == 2
    assert "cannot be written: No such file or directory" in capsys.readouterr().err


def test_the_verifier_key_of_a_witness_is_known_from_its_key_alone(tmp_path, capsys):
    """It is what the witness says of itself when it runs, and what the draft of an event takes."""
    path = str(tmp_path / "witness.key")
    assert run(["keys", "new", path, "--witness", "w.example"]) == 0
    made = capsys.readouterr().out.strip()
    found = VerifierKey.parse(made, OF_WITNESS, "vkey")
    assert (found.name, found.key) == ("w.example", read_private_key(path).public)
    assert run(["keys", "show", path, "--witness", "w.example", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == {"file": path, "public": found.key, "vkey": made}


def test_a_witness_cannot_be_called_so(tmp_path, capsys):
    path = tmp_path / "witness.key"
    assert run(["keys", "new", str(path), "--witness", "a b"]) == 2
    assert "--witness must be " in capsys.readouterr().err
    assert not path.exists()


def test_the_fingerprint_of_a_certificate_is_shown(tmp_path, capsys):
    certificate, key = make_certificate("north", "north.example")
    path = tmp_path / "tls.pem"
    digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate.decode())).hexdigest()
    # One file may have both, the key first, as proxies like it.
    for data in (certificate, key + certificate):
        path.write_bytes(data)
        assert run(["keys", "show", str(path)]) == 0
        assert capsys.readouterr().out == f"sha256:{digest}\n"
    path.write_bytes(b"-----BEGIN CERTIFICATE-----\n" + certificate[:-20])
    assert run(["keys", "show", str(path)]) == 2
    assert "tls.pem: must hold a certificate in PEM" in capsys.readouterr().err
