"""What is looked at before anything is committed: files, tickets, event files, what is kept."""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections import namedtuple

import pytest
from instances.events import event_bytes, key_of, proof_of

import datacollect as dc
from datacollect.bistro.formats.event.file import read_event
from datacollect.bistro.formats.event.tickets import new_ticket
from datacollect.bistro.formats.sealing.keep import keep
from datacollect.bistro.person.items import items_of, kept_item
from datacollect.commands.main import run
from datacollect.errors import NotWrittenError

DATA = event_bytes()
EVENT = read_event(DATA)
OTHER = read_event(event_bytes(name="Another"))


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a file, an event and a ticket; nobody is there to commit to."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "event.toml").write_bytes(DATA)
    (tmp_path / "a.txt").write_text("mine")
    (tmp_path / "my.ticket").write_text(ticket_of(EVENT).text)
    return tmp_path


def ticket_of(event, organiser="organiser", number=1):
    from dataclasses import replace

    signing = replace(event, organiser=key_of(organiser).public)
    return new_ticket(signing, bytes([number] * 16), bytes([number] * 32), key_of(organiser))


def refused(capsys, *arguments: str, code: int = 2) -> str:
    assert run(["upload", *arguments, "--event", "event.toml"]) == code
    out, err = capsys.readouterr()
    assert out == ""
    return " ".join(err.split())


def handed_in(*, ticket=None):
    """Seal a.txt, and have a receipt that proves a time, as if a service had answered."""
    [item] = items_of(["a.txt"], None)
    with kept_item(item, EVENT, DATA, ticket or ticket_of(EVENT)) as (_, receipt):
        pass
    proof = proof_of(receipt.entry, EVENT.services[0].log.name, EVENT.latest_s - 2)
    item.save(receipt.with_more(proofs=[proof]))
    return receipt


def test_receipt_of_a_file_that_was_handed_in_twice_is_judged_by_its_own_keep(here):
    """With another ticket, into another folder: the first .keep stays beside the file."""
    handed_in()
    (here / "out").mkdir()
    [item] = items_of(["a.txt"], "out")
    with kept_item(item, EVENT, DATA, ticket_of(EVENT, number=2)) as (_, receipt):
        pass
    proof = proof_of(receipt.entry, EVENT.services[0].log.name, EVENT.latest_s - 2)
    item.save(receipt.with_more(proofs=[proof]))
    for folder in ("out/", ""):
        found = dc.verify_receipt(f"{folder}a.txt.receipt.json", "event.toml", file="a.txt")
        assert (found.outcome, found.covers) == ("in time", "the file")
    # Both receipts in one folder, only one of the two beside its .keep.
    (here / "out" / "a.txt.receipt.json").rename(here / "second.receipt.json")
    found = dc.verify_receipt("second.receipt.json", "event.toml", file="a.txt")
    assert found.outcome == "not proved"


def test_two_files_of_one_name_are_told_apart_before_one_is_sealed(here, capsys):
    data = event_bytes(limits={"files": 1})
    (here / "event.toml").write_bytes(data)
    (here / "my.ticket").write_text(ticket_of(read_event(data)).text)
    (here / "b").mkdir()
    (here / "b" / "a.txt").write_text("other")
    said = refused(capsys, "a.txt", "b/a.txt", "-o", ".", "--ticket", "my.ticket")
    assert "a.txt and b/a.txt would both be kept as a.txt.keep" in said
    assert not (here / "a.txt.keep").exists()


def test_ticket_with_another_key_is_refused_before_anything_is_sealed(here, capsys):
    """No service would take what it signs."""
    text = ticket_of(EVENT).text
    (here / "my.ticket").write_text(text.replace("01" * 32, "5e" * 32))
    said = refused(capsys, "a.txt", "--ticket", "my.ticket")
    assert "its key is not the one that its token names; ask the organiser for the right one" in (
        said
    )
    assert not (here / "a.txt.keep").exists()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("none.txt", "no such file"),
        ("folder", "no file is in it"),
        ("/dev/null", "not a regular file"),
        ("", "an empty name"),
        ("n" * 256, "File name too long"),
    ],
)
def test_what_is_no_file_is_refused(here, capsys, name, said):
    (here / "folder").mkdir()
    assert said in refused(capsys, name, "--ticket", "my.ticket")


def test_name_that_leaves_no_room_for_its_receipts_is_refused_before_it_is_sealed(here, capsys):
    (here / ("n" * 243)).write_text("mine")
    (here / ("n" * 242)).write_text("mine")
    before = {*here.iterdir()}
    said = refused(capsys, "n" * 243, "--ticket", "my.ticket")
    assert "its name has 243 bytes, at most 242 are allowed" in said
    assert "copy it to a shorter name" in said
    assert {*here.iterdir()} == before
    # With a byte less it is kept, also where each letter has four bytes.
    for name in ("n" * 242, "\U0001f600" * 60):
        (here / name).write_text("mine")
        [item] = items_of([name], None)
        with kept_item(item, EVENT, DATA, ticket_of(EVENT)) as (_, receipt):
            item.save(receipt)


def test_file_that_another_process_hands_in_is_left_to_it(here, capsys):
    handed_in()
    [item] = items_of(["a.txt"], None)
    with kept_item(item, EVENT, DATA, None):
        said = refused(capsys, "a.txt")
    assert "a.txt: another process is handing it in; wait until it ends" in said
    with kept_item(item, EVENT, DATA, None) as (_, receipt):
        assert receipt.proofs


def test_seal_that_another_process_has_finished_first_is_gone_on_with(here, monkeypatch):
    [item] = items_of(["a.txt"], None)
    first = []

    def keep_late(*given, **more):
        first.append(keep(*given, **(more | {"salt": bytes(32)})))
        return keep(*given, **more)

    monkeypatch.setattr("datacollect.bistro.person.items.keep", keep_late)
    with kept_item(item, EVENT, DATA, ticket_of(EVENT)) as (kept, _):
        assert [kept] == first


def test_where_no_service_answers_the_next_files_wait_for_nothing(here, monkeypatch):
    """Each file alone would wait for the whole patience."""
    data = event_bytes(limits={"files": 1})
    (here / "event.toml").write_bytes(data)
    (here / "my.ticket").write_text(ticket_of(read_event(data)).text)
    names = [f"{i}.txt" for i in range(4)]
    for name in names:
        (here / name).write_text("mine")
    would_wait = []

    def nobody_answers(driver, is_enough):
        would_wait.append(not is_enough(driver._cores[-1]))
        for core in driver._cores:
            core.wake_s = core.wake_s if len(would_wait) <= len(names) else None

    monkeypatch.setattr("datacollect.bistro.person.driving.Driver.run", nobody_answers)
    monkeypatch.setattr("datacollect.bistro.http.published.fan_out", lambda *_: {})
    done = dc.upload(names, "event.toml", ticket="my.ticket")
    assert [each.outcome for each in done.files] == ["no service"] * 4
    assert would_wait == [True, False, False, False, True]


def test_folder_that_cannot_be_made(here, capsys):
    (here / "file").write_text("")
    for into in ("file", "file/below"):
        said = refused(capsys, "a.txt", "-o", into, "--ticket", "my.ticket")
        assert f"{into}: the folder cannot be made" in said
        assert "-o" in said


def test_no_room_is_three_and_names_how_much_it_takes(here, capsys, monkeypatch):
    usage = namedtuple("Usage", "free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(100))
    said = refused(capsys, "a.txt", "--ticket", "my.ticket")
    assert "no room for the ciphertext of a.txt" in said
    assert "-o" in said
    assert [path.name for path in here.glob("*.keep*")] == []


def test_ticket_is_asked_for_and_one_of_others_refused(here, capsys):
    assert "give its file with --ticket" in refused(capsys, "a.txt")
    (here / "my.ticket").write_text(ticket_of(OTHER).text)
    said = refused(capsys, "a.txt", "--ticket", "my.ticket")
    assert f"the ticket is for event {OTHER.id.hex()}" in said
    (here / "my.ticket").write_text(ticket_of(EVENT, "somebody").text)
    assert "ask the organiser" in refused(capsys, "a.txt", "--ticket", "my.ticket")
    assert not (here / "a.txt.keep").exists()


def test_what_is_too_long_for_the_event_leaves_nothing(here, capsys):
    (here / "event.toml").write_bytes(event_bytes(limits={"bytes": 500}))
    event = read_event((here / "event.toml").read_bytes())
    (here / "my.ticket").write_text(ticket_of(event).text)
    for text in ("x" * 501, "short, but its seal is longer"):
        (here / "a.txt").write_text(text)
        assert "make it smaller" in refused(capsys, "a.txt", "--ticket", "my.ticket")
        assert not (here / "a.txt.keep").exists()


def test_keep_of_another_event_ticket_or_damage_is_said_and_left_alone(here, capsys):
    handed_in()
    kept = (here / "a.txt.keep").read_bytes()
    (here / "other.ticket").write_text(ticket_of(EVENT, number=2).text)
    assert "sealed with another ticket" in refused(capsys, "a.txt", "--ticket", "other.ticket")
    (here / "event.toml").write_bytes(DATA.replace(b"\n", b"\r\n"))
    assert "line ends were changed" in refused(capsys, "a.txt")
    (here / "event.toml").write_bytes(event_bytes(name="Another"))
    assert "another event" in refused(capsys, "a.txt")
    (here / "event.toml").write_bytes(DATA)
    (here / "a.txt.keep").write_bytes(kept[:-1])
    assert "a.txt.keep" in refused(capsys, "a.txt")
    (here / "a.txt.keep").write_bytes(kept[:300] + b"!" + kept[301:])
    # The file itself is there still, and could be sealed anew.
    assert run(["upload", "a.txt", "--event", "event.toml"]) == 0
    capsys.readouterr()
    (here / "a.txt").rename(here / "b.txt")
    assert "its ciphertext is damaged, and a.txt, which must be sealed" in refused(
        capsys, "a.txt.keep"
    )
    (here / "a.txt").write_text("another")
    assert "is missing or changed; put it back as it was" in refused(capsys, "a.txt")
    (here / "b.txt").rename(here / "a.txt")
    (here / "a.txt.keep").write_bytes(kept)
    (here / "a.txt.receipt.json").write_text("{}")
    assert "a.txt.receipt.json" in refused(capsys, "a.txt")


def test_receipt_of_something_else_is_never_overwritten(here, capsys):
    handed_in()
    precious = (here / "a.txt.receipt.json").read_bytes()
    (here / "a.txt.keep").unlink()
    said = refused(capsys, "a.txt", "--ticket", "my.ticket")
    assert "is the receipt of something else" in said
    assert (here / "a.txt.receipt.json").read_bytes() == precious


def test_receipt_that_cannot_be_written_ends_it_and_the_one_before_stays(here, monkeypatch):
    handed_in()
    [item] = items_of(["a.txt"], None)
    before = (here / "a.txt.receipt.json").read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("datacollect.files.documents.os.fsync", full)
    with pytest.raises(NotWrittenError) as error:
        item.save(handed_in())
    assert error.value.exit_code == 3
    assert (here / "a.txt.receipt.json").read_bytes() == before


def test_file_whose_name_is_no_text_is_handed_in_and_what_is_sealed_names_its_like(here, capsys):
    """As old archives leave them: the name inside the seal is JSON, which is text."""
    name = os.fsdecode(b"M\xfcller.txt")
    (here / "a.txt").rename(here / name)
    [item] = items_of([name], None)
    for _ in range(2):
        with kept_item(item, EVENT, DATA, ticket_of(EVENT)) as (kept, receipt):
            item.save(receipt)
    assert json.loads(kept.inner.header)["name"] == "M\ufffdller.txt"
    said = ["verify", f"{name}.receipt.json", "--event", "event.toml", "--file", name]
    for more in ([], ["--json"]):
        assert run([*said, *more]) == 1
        assert "not proved" in capsys.readouterr().out


# Receipts, read from files alone.


@pytest.mark.parametrize(
    ("file", "covers"),
    [(None, "some bytes"), ("a.txt", "the file"), ("a.txt.keep", "the sealed file")],
)
def test_receipt_of_each_form_of_the_file(here, monkeypatch, file, covers):
    """Without a network: no socket can be had."""
    handed_in()
    monkeypatch.setattr(socket, "socket", lambda *_: pytest.fail("a socket was made"))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: pytest.fail("a name was looked up"))
    verdict = dc.verify_receipt("a.txt.receipt.json", "event.toml", file=file)
    assert (verdict.outcome, verdict.covers, verdict.time_s) == (
        *("in time", covers),
        EVENT.latest_s,
    )


def test_sealed_file_alone_is_covered_and_another_is_not(here):
    receipt = handed_in()
    sealed = (here / "a.txt.keep").read_bytes()[: receipt.commitment.size]
    (here / "sealed.age").write_bytes(sealed)
    verdict = dc.verify_receipt("a.txt.receipt.json", "event.toml", file="sealed.age")
    assert (verdict.outcome, verdict.covers) == ("in time", "the sealed file")
    # A stanza more, or less, is another file.
    for changed in (sealed.replace(b"\n-> ", b"\n-> x y\nAA\n-> ", 1), sealed[:-1]):
        (here / "sealed.age").write_bytes(changed)
        verdict = dc.verify_receipt("a.txt.receipt.json", "event.toml", file="sealed.age")
        assert verdict.outcome == "not proved"


def verified(capsys, *arguments: str) -> tuple[int, str]:
    code = run(["verify", "a.txt.receipt.json", "--event", "event.toml", *arguments])
    out, err = capsys.readouterr()
    return code, " ".join((out + err).split())


def test_verdicts_by_exit_code(here, capsys):
    receipt = handed_in()
    assert verified(capsys)[0] == 0
    late = proof_of(receipt.entry, EVENT.services[0].log.name, EVENT.latest_s - 1)
    (here / "a.txt.receipt.json").write_bytes(receipt.with_more(proofs=[late]).data)
    code, said = verified(capsys)
    assert code == 1
    assert "late, for some bytes" in said
    assert "No amendments were given" in said
    (here / "a.txt.receipt.json").write_bytes(receipt.data)
    code, said = verified(capsys)
    assert code == 1
    assert "not proved, for some bytes" in said
    (here / "lonely.txt").write_text("mine")
    for name in ("a.txt.keep", "a.txt.proof"):
        (here / name).unlink()
    code, said = verified(capsys, "--file", "lonely.txt")
    assert code == 2
    assert "put its .proof or its .keep beside it" in said
    (here / "event.toml").write_bytes(DATA.replace(b"\n", b"\r\n"))
    code, said = verified(capsys)
    assert code == 2
    assert "line ends were changed" in said


def test_interruption_says_what_is_kept_and_that_the_same_command_goes_on(
    here, capsys, monkeypatch
):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("datacollect.bistro.person.driving.Driver.run", interrupted)
    command = ["upload", "a.txt", "--event", "event.toml", "--ticket", "my.ticket"]
    with pytest.raises(SystemExit) as left:
        run(command)
    assert left.value.code == 130
    said = capsys.readouterr().err
    assert "interrupted; a.txt.keep is kept; the same command continues" in said
    # While it is sealed nothing is kept, and nothing is left.
    (here / "a.txt.keep").unlink()
    monkeypatch.setattr("datacollect.bistro.formats.sealing.keep.seal", interrupted)
    with pytest.raises(SystemExit):
        run(command)
    assert "interrupted; the same command continues" in capsys.readouterr().err
    assert [*here.glob("*keep*"), *here.glob(".*")] == []
