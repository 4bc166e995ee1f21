"""``NAME.proof``: written before anybody hears of a file, shown without its ``.keep``, offline."""

from __future__ import annotations

import json
import shutil
import socket
import stat
from dataclasses import replace

import pytest
from instances.custody import CHANGES, verdict_log
from instances.events import before_proofs, event_bytes, key_of, proof_of, ticket_of

import datacollect as dc
from datacollect.bistro.formats.custody.collected import collected_text
from datacollect.bistro.formats.custody.verdicts import COLLECTED, Verdict
from datacollect.bistro.formats.event.file import read_event
from datacollect.bistro.formats.receipt.content_proof import read_content_proof
from datacollect.bistro.person.items import items_of, kept_item
from datacollect.commands.main import run
from datacollect.errors import NotWrittenError, ProblemError

DATA = event_bytes(**CHANGES)
EVENT = read_event(DATA)
LOG = EVENT.services[0].log.name
OLDER_DATA = before_proofs(DATA)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a file, an event and a ticket; nobody is there to commit to."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "event.toml").write_bytes(DATA)
    (tmp_path / "a.txt").write_text("mine")
    (tmp_path / "my.ticket").write_text(ticket_of(EVENT).text)
    return tmp_path


def sealed(name="a.txt", into=None, event=EVENT, data=DATA):
    """Seal a file as `upload` does, before anybody is asked; return its item and its receipt."""
    [item] = items_of([name], into)
    with kept_item(item, event, data, ticket_of(event)) as (_, receipt):
        return item, receipt


def handed_in(name="a.txt", into=None, *, time_s=EVENT.latest_s - 2, is_collected=False):
    """Have a receipt that proves a time, as if a service had answered."""
    item, receipt = sealed(name, into)
    receipt = receipt.with_more(proofs=[proof_of(receipt.entry, LOG, time_s)])
    if is_collected:
        said = Verdict(EVENT.id, receipt.entry, COLLECTED)
        proof = verdict_log(EVENT, [said]).proof(said.data)
        receipt = replace(receipt, collected=collected_text(proof, said))
    item.save(receipt)
    return receipt


def verified(capsys, *arguments: str) -> tuple[int, str]:
    code = run(["verify", *arguments, "--event", "event.toml"])
    out, err = capsys.readouterr()
    return code, " ".join((out + err).split())


def test_receipt_proof_file_and_event_show_which_file_without_keep_and_network(
    here, capsys, monkeypatch
):
    """On another machine: these four files alone, none by the name that it had."""
    handed_in(is_collected=True)
    elsewhere = here / "shown"
    elsewhere.mkdir()
    for name, to in (
        ("a.txt", "copy of it.txt"),
        ("a.txt.proof", "b.json"),
        ("a.txt.receipt.json", "c.json"),
        ("event.toml", "event.toml"),
    ):
        shutil.move(here / name, elsewhere / to)
    monkeypatch.chdir(elsewhere)
    monkeypatch.setattr(socket, "socket", lambda *_: pytest.fail("a socket was made"))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: pytest.fail("a name was looked up"))
    code, said = verified(capsys, "c.json", "--file", "copy of it.txt", "--proof", "b.json")
    assert code == 0
    assert said.startswith(
        "copy of it.txt was handed in by Fri 2027-04-16 00:00:09 -04:00, in time, and collected "
        "by Fri 2027-04-30 23:59:59 -04:00. "
    ), said
    verdict = dc.verify_receipt("c.json", "event.toml", file="copy of it.txt", proof="b.json")
    assert (verdict.outcome, verdict.covers, verdict.is_the_one) == ("in time", "the file", True)
    (elsewhere / "copy of it.txt").write_text("Mine")
    code, said = verified(capsys, "c.json", "--file", "copy of it.txt", "--proof", "b.json")
    assert code == 1
    assert said.startswith("copy of it.txt is not what was handed in, or was changed since: noth")


def test_the_sentence_says_which_file_by_when_and_whether_it_was_collected(here, capsys):
    receipt = handed_in()
    (here / "a.txt.keep").unlink()
    given = ("a.txt.receipt.json", "--file", "a.txt")
    code, said = verified(capsys, *given)
    assert code == 0
    assert said.startswith(
        "a.txt existed by Fri 2027-04-16 00:00:09 -04:00, in time; nothing here proves that it "
        "was collected. "
    )
    code, said = verified(capsys, "a.txt.receipt.json")
    assert said.startswith("what the receipt covers (nobody knows what) existed by Fri 2027")
    late = proof_of(receipt.entry, LOG, EVENT.latest_s + 60)
    (here / "a.txt.receipt.json").write_bytes(replace(receipt, proofs=(late,)).data)
    code, said = verified(capsys, *given)
    assert code == 1
    assert ", late: the deadline was Thu 2027-04-15 23:59:59 -04:00; nothing here" in said
    (here / "a.txt.receipt.json").write_bytes(replace(receipt, proofs=()).data)
    code, said = verified(capsys, *given)
    assert code == 1
    assert said.startswith("nothing is proved of a.txt: no time counts. ")
    assert run(["verify", *given, "--event", "event.toml", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["sentence"] == "nothing is proved of a.txt: no time counts."


def test_the_proof_beside_the_file_or_the_receipt_is_found(here):
    """Also where the file has another name by now, and where two of that name were handed in."""
    handed_in()
    (here / "out").mkdir()
    handed_in(into="out")
    for folder in ("", "out/"):
        (here / folder / "a.txt.keep").unlink()
    for folder in ("", "out/"):
        found = dc.verify_receipt(f"{folder}a.txt.receipt.json", "event.toml", file="a.txt")
        assert found.covers == "the file"
    (here / "a.txt").rename(here / "renamed.txt")
    found = dc.verify_receipt("out/a.txt.receipt.json", "event.toml", file="renamed.txt")
    assert found.covers == "the file"
    (here / "renamed.txt").write_text("other")
    found = dc.verify_receipt("out/a.txt.receipt.json", "event.toml", file="renamed.txt")
    assert (found.outcome, found.is_the_one) == ("not proved", False)


def test_a_proof_of_another_receipt_is_named_with_both_entries(here, capsys):
    first = handed_in()
    (here / "b.txt").write_text("mine")
    second = handed_in("b.txt")
    given = ("--file", "a.txt", "--proof", "b.txt.proof")
    code, said = verified(capsys, "a.txt.receipt.json", *given)
    assert code == 2
    assert f"b.txt.proof: is the proof of entry {second.entry.hex()}" in said
    assert (
        f"a.txt.receipt.json is the receipt of {first.entry.hex()}; take the proof that was written"
        in said
    )
    # Found by itself it is passed over, where the .keep still shows the file.
    shutil.copy(here / "b.txt.proof", here / "a.txt.proof")
    assert verified(capsys, "a.txt.receipt.json", "--file", "a.txt")[0] == 0
    (here / "a.txt.keep").unlink()
    code, said = verified(capsys, "a.txt.receipt.json", "--file", "a.txt")
    assert code == 2
    assert f"a.txt.proof: is the proof of entry {second.entry.hex()}" in said
    code, said = verified(capsys, "a.txt.receipt.json", "--proof", "a.txt.proof")
    assert code == 2
    assert "a proof shows which file was handed in; give that file, too" in said


def test_it_is_on_the_disk_for_its_owner_alone_before_anybody_is_asked(here, monkeypatch):
    """What asks finds it; and who writes it says what showing it reveals."""
    seen, told = [], []

    def ask(driver, _):
        seen.append(stat.S_IMODE((here / "a.txt.proof").stat().st_mode))
        for core in driver._cores:
            core.wake_s = None

    monkeypatch.setattr("datacollect.bistro.person.driving.Driver.run", ask)
    monkeypatch.setattr("datacollect.bistro.http.published.fan_out", lambda *_: {})
    [file] = dc.upload("a.txt", "event.toml", ticket="my.ticket", tell=told.append).files
    assert seen[0] == 0o600
    assert (file.proof, file.receipt) == ("a.txt.proof", None)
    assert read_content_proof((here / "a.txt.proof").read_bytes()).entry.hex() == file.entry
    [said] = [text for text in told if text.startswith("a.txt.proof")]
    assert "Anyone who sees the proof can test guesses of what is in the file." in said
    assert "Until the file is collected, it shows only that the file existed" in said
    # Once: the second start has not written it.
    told.clear()
    dc.upload("a.txt", "event.toml", tell=told.append)
    assert not [text for text in told if text.startswith("a.txt.proof")]


def test_what_was_killed_before_it_was_written_or_lost_since_is_made_again(here):
    """The .keep is there first: all that a proof says is made of it."""
    item, receipt = sealed()
    before = item.proof.read_bytes()
    kept = item.keep.read_bytes()
    item.proof.unlink()
    (here / ".a.txt.proof.7.tmp").write_bytes(before[:100])
    again, same = sealed("a.txt.keep")
    assert (again.proof, same.entry) == (item.proof, receipt.entry)
    assert item.proof.read_bytes() == before
    assert item.keep.read_bytes() == kept


def test_a_full_disk_is_said_before_anybody_is_asked_and_the_same_command_goes_on(
    here, monkeypatch, capsys
):
    real = type(here).write_bytes

    def full(path, data):
        if ".proof" in path.name:
            real(path, data[:100])
            raise OSError(28, "No space left on device")
        return real(path, data)

    monkeypatch.setattr(type(here), "write_bytes", full)
    monkeypatch.setattr(
        "datacollect.bistro.person.driving.Driver.run", lambda *_: pytest.fail("somebody was asked")
    )
    with pytest.raises(NotWrittenError, match=r"a\.txt\.proof") as error:
        sealed()
    assert error.value.exit_code == 3
    assert run(["upload", "a.txt", "--event", "event.toml", "--ticket", "my.ticket"]) == 3
    assert "a.txt.proof" in capsys.readouterr().err
    kept = (here / "a.txt.keep").read_bytes()
    assert {path.name for path in here.iterdir() if "proof" in path.name} == set()
    monkeypatch.setattr(type(here), "write_bytes", real)
    item, _ = sealed()
    assert item.proof.exists()
    assert item.keep.read_bytes() == kept


@pytest.mark.parametrize("data", [b"", b"a sheet of photographic proofs", None])
def test_what_else_stands_in_its_place_is_left_as_it_is(here, capsys, data):
    """A file of the person's own by that name; a folder."""
    place = here / "a.txt.proof"
    if data is None:
        place.mkdir()
    else:
        place.write_bytes(data)
    assert run(["upload", "a.txt", "--event", "event.toml", "--ticket", "my.ticket"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "a.txt.proof: " in said
    assert data is None or "move it elsewhere, or name another folder with -o" in said
    assert place.is_dir() if data is None else place.read_bytes() == data
    # The remedy works.
    place.rename(here / "elsewhere")
    assert sealed()[0].proof.is_file()


def test_at_an_event_of_before_there_is_none_and_the_keep_shows_the_file(here):
    event = read_event(OLDER_DATA)
    assert not event.has_proofs
    (here / "event.toml").write_bytes(OLDER_DATA)
    item, receipt = sealed(event=event, data=OLDER_DATA)
    item.save(receipt.with_more(proofs=[proof_of(receipt.entry, LOG, EVENT.latest_s - 2)]))
    assert not item.proof.exists()
    # What stands there is none of ours, and does not matter.
    item.proof.write_text("a sheet of photographic proofs")
    sealed(event=event, data=OLDER_DATA)
    found = dc.verify_receipt(item.receipt, "event.toml", file="a.txt")
    assert (found.outcome, found.covers) == ("in time", "the file")
    item.keep.unlink()
    with pytest.raises(ProblemError, match=r"a\.txt\.proof"):
        dc.verify_receipt(item.receipt, "event.toml", file="a.txt")


def test_what_was_sealed_anew_has_the_same_proof(here):
    from datacollect.bistro.person.items import sealed_anew

    item, receipt = sealed()
    before = item.proof.read_bytes()
    with kept_item(item, EVENT, DATA, None) as (kept, _):
        anew, _ = sealed_anew(item, kept, EVENT)
    assert anew.sealed.content_p == receipt.commitment.content
    assert anew.sealed.sha256 != receipt.commitment.ciphertext_sha256
    assert item.proof.read_bytes() == before


@pytest.mark.parametrize(
    "name", ["n" * 242, "Ü" * 121, "\U0001f600" * 60, "a.proof", "a.keep.proof"]
)
def test_names_of_any_letters_and_lengths_have_a_proof_of_one_size(here, name):
    (here / name).write_bytes(b"")
    handed_in(name)
    item, _ = sealed(name)
    item.keep.unlink()
    assert len(item.proof.read_bytes()) == 331
    assert dc.verify_receipt(item.receipt, "event.toml", file=name).covers == "the file"
    assert key_of("organiser").public not in item.proof.read_text()
