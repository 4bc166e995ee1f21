"""No service answers: two outside authorities, played by OpenSSL, say that it was ready."""

from __future__ import annotations

import json
import shutil

import pytest
from conftest import NO_OPENSSL
from instances.authorities import answering, make_tsa
from instances.events import event_bytes, key_of
from instances.ports import free_port

import datacollect as dc
from datacollect.commands.main import run

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason=NO_OPENSSL)


@pytest.fixture
def person(tmp_path, monkeypatch):
    """A folder with an event whose two services are not there, and two authorities that are."""
    monkeypatch.chdir(tmp_path)
    tsas = [make_tsa(tmp_path / f"tsa{i}", f"tsa{i}") for i in range(2)]
    with answering(tsas[0]) as first, answering(tsas[1]) as second:
        changes = {
            "admission": "open",
            "services": [
                {"url": f"http://127.0.0.1:{free_port()}", "key": key_of(f"s{i}").public}
                for i in range(2)
            ],
            "authorities": [
                {"url": url, "certificate": tsa.authority.certificate}
                for url, tsa in zip((first, second), tsas, strict=True)
            ],
        }
        (tmp_path / "event.toml").write_bytes(event_bytes(**changes))
        (tmp_path / "a.txt").write_text("mine")
        yield tmp_path


def test_two_authorities_prove_that_it_was_ready(person, capsys):
    assert run(["upload", "a.txt", "--event", "event.toml", "--json"]) == 0
    [told] = json.loads(capsys.readouterr().out)["files"]
    assert (told["outcome"], told["handed_in_s"]) == ("in time", None)
    assert told["proved"].startswith("Proved by 2 outside authorities")
    verdict = dc.verify_receipt("a.txt.receipt.json", "event.toml", file="a.txt")
    assert (verdict.outcome, verdict.time_s) == ("in time", told["counted_s"])


@pytest.mark.slow
def test_one_authority_is_not_enough_and_nobody_else_is_there(person, capsys, monkeypatch):
    # Long enough for the other to answer.
    monkeypatch.setattr("datacollect.bistro.person.upload.PATIENCE_S", 6.0)
    # It answers no more.
    (person / "tsa1" / "tsa.key").unlink()
    assert run(["upload", "a.txt", "--event", "event.toml", "--json"]) == 3
    [told] = json.loads(capsys.readouterr().out)["files"]
    assert told["outcome"] == "no service"
    assert sum("(500): broken" in each for each in told["troubles"]) == 1
