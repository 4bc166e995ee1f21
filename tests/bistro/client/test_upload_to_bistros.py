"""`upload` end to end to real bistros: an agent of an own port each, of which some are away."""

from __future__ import annotations

import json
from contextlib import ExitStack

import pytest
from instances.bistros import rows_with_certificates, run_bistro
from instances.events import key_of
from instances.timestamping import World

from datacollect.bistro.custody.bistro_receipt import read_bistro_receipt
from datacollect.bistro.event.tickets import new_ticket
from datacollect.bistro.receipt.receipt import read_receipt
from datacollect.commands.main import run


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """One service, three witnesses, two bistros that do not run yet."""
    folder = tmp_path_factory.mktemp("world")
    with World(folder, bistros=rows_with_certificates(folder)) as made:
        made.start_witnesses(0, 1, 2)
        made.start(0)
        yield made


@pytest.fixture
def person(world, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(world.authority))
    number = int.from_bytes(tmp_path.name.encode(), "big") % 2**127
    ticket = new_ticket(world.event, number.to_bytes(16, "big"), bytes(32), key_of("organiser"))
    (tmp_path / "my.ticket").write_text(ticket.text)
    (tmp_path / "event.toml").write_bytes((world.folder / "event.toml").read_bytes())
    return tmp_path


def test_file_waits_for_a_bistro_and_is_then_held_by_the_one_that_is_there(world, person, capsys):
    content = bytes(range(256)) * 12_000  # more than goes with one request
    (person / "a.bin").write_bytes(content)
    arguments = ["upload", "a.bin", "--event", "event.toml", "--json"]
    code = run([*arguments, "--ticket", "my.ticket", "--commit-only"])
    (told,) = json.loads(capsys.readouterr().out)["files"]
    assert (code, told["outcome"], told["held_by"]) == (0, "in time", None)
    with ExitStack() as held:
        run_bistro(world, "south", held)
        assert run(arguments) == 0
        (told,) = json.loads(capsys.readouterr().out)["files"]
        assert (told["outcome"], told["held_by"]) == ("in time", "south")
        assert "south holds it" in told["proved"]
        receipt = read_receipt((person / "a.bin.receipt.json").read_bytes())
        word = read_bistro_receipt(receipt.bistro_receipts[0], world.event)
        assert (word.size, word.sha256) == (
            receipt.commitment.size,
            receipt.commitment.ciphertext_sha256,
        )
    # It is not sent again, though nobody is there any more.
    assert run(arguments[:-1]) == 0
    assert "held by south since" in " ".join(capsys.readouterr().out.split())
