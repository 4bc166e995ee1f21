"""A person is forgotten: nothing here names her any more, whenever it was interrupted."""

from __future__ import annotations

import json
from contextlib import closing

import apsw
import pytest
from bistro.destination.test_people import write_destination
from instances.collected import EVENT, EVENT_DATA, Collected
from instances.events import ticket_of

from datacollect.bistro.destination import forgetting
from datacollect.bistro.destination.accepting import accept_file
from datacollect.bistro.destination.place import Place
from datacollect.bistro.destination.register import Register
from datacollect.commands.main import run
from datacollect.errors import ProblemError
from datacollect.files.held_folder import Held

ANN, BOB = "Ann Lee", "Bob"
TICKETS = {ANN: (1, 3), BOB: (2,)}
FORGET = ["event", "forget", "destination.toml", ANN, "--tickets", "tickets"]
LIST = ["event", "list", "destination.toml", "--tickets", "tickets", "--json"]


def number_of(n):
    return ticket_of(EVENT, n).number.hex()


@pytest.fixture
def collected(tmp_path, monkeypatch):
    """Ann has two tickets, of which one was lost, and a file that came by mail."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "event.toml").write_bytes(EVENT_DATA)
    made = Collected(tmp_path / "out")
    made.leave(event_file=str(tmp_path / "event.toml"), collect_until_s=50)
    with closing(apsw.Connection(str(tmp_path / "out/register/register.sqlite"))) as db:
        for n, upload in made.uploads.items():
            db.execute(
                "UPDATE entries SET ticket = ? WHERE entry = ?", (number_of(n), upload.entry)
            )
    write_destination(tmp_path)
    tickets = tmp_path / "tickets"
    tickets.mkdir()
    rows = ["person,ticket,token_sha256"]
    for name, numbers in TICKETS.items():
        for n in numbers:
            ending = "" if n < 3 else ".revoked-abababab"
            (tickets / f"{name}{ending}.ticket").write_text(ticket_of(EVENT, n).text)
            rows.append(f"{name},{number_of(n)},{'ab' * 32}")
        (tickets / f"{name}.link").write_text("https://page.example/#…\n")
    (tickets / "tickets.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "mailed.pdf").write_bytes(b"by mail")
    accept_file(tmp_path / "out", ANN, tmp_path / "mailed.pdf")
    (tmp_path / "out" / "reminded.jsonl").write_text(
        "".join(f"{json.dumps({'person': name, 'email': 'x'})}\n" for name in TICKETS)
    )
    return made


def naming(folder, *words):
    """Return the files that hold any of some words, or are called so."""
    return sorted(
        str(path.relative_to(folder))
        for path in [*folder.glob("out/**/*"), *folder.glob("tickets/**/*")]
        for word in words
        if word in str(path.relative_to(folder))
        or (path.is_file() and word.encode() in path.read_bytes())
    )


def require_forgotten(collected, folder):
    assert naming(folder, ANN, "by mail") == []
    entry = collected.uploads[1].entry.hex()
    assert naming(folder, f"{entry}/return.pdf") == []
    assert not collected.file(1).exists()
    assert collected.file(2).read_bytes() == b"and more"
    assert "Bob" in (folder / "out" / "reminded.jsonl").read_text()
    # By the tickets it is still known which drafts count.
    names = {path.name for path in (folder / "tickets").iterdir()}
    gone = {f"forgotten-{number_of(n)[:16]}.ticket" for n in TICKETS[ANN]}
    assert names == {"Bob.ticket", "Bob.link", "tickets.csv", *gone}


def test_nothing_here_names_her_and_others_are_as_they_were(collected, tmp_path, capsys):
    assert naming(tmp_path, ANN) != []
    assert run(FORGET) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "bistro north has had a sealed copy" in said
    require_forgotten(collected, tmp_path)
    assert run(LIST) == 0
    people = {
        each["person"]: each["state"] for each in json.loads(capsys.readouterr().out)["people"]
    }
    # Of a ticket with which nothing was handed in nothing is said.
    assert people == {f"forgotten-{number_of(1)[:16]}": "forgotten", BOB: "collected"}
    # What came later would be listed by that name, and can be forgotten by it.
    assert run([*FORGET[:3], f"forgotten-{number_of(1)[:16]}", *FORGET[4:]]) == 0
    require_forgotten(collected, tmp_path)
    capsys.readouterr()
    # Neither is she missing to anybody.
    assert run(["event", "status", "destination.toml", "--verify", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert [each["kind"] for each in told["lacking"]] == ["deadline"]
    assert (told["collected"], told["files_here"]) == (2, 1)


def test_of_several_files_that_others_have_their_folder_is_named(collected, tmp_path, capsys):
    entry = collected.uploads[1].entry
    with closing(apsw.Connection(str(tmp_path / "out/register/register.sqlite"))) as db:
        db.execute(
            "UPDATE kept SET host = 'west', folder = '/event', file = ? WHERE entry = ?",
            (f"{entry.hex()}/.files.json", entry),
        )
    assert run(FORGET) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert f"west has a copy, /event/files/{entry.hex()}: remove it there" in said


@pytest.mark.parametrize("step", range(len(forgetting.STEPS)))
@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
def test_interrupted_at_each_step_the_same_call_goes_on(
    collected, tmp_path, monkeypatch, capsys, step, is_done
):
    steps = forgetting.STEPS
    with monkeypatch.context() as broken:
        # The journal, and nothing else, tells what was begun.
        broken.setattr(forgetting, "STEPS", (*steps[:step], stopping(steps[step], is_done)))
        assert run(FORGET) != 0
    assert run([*FORGET[:3], BOB, *FORGET[4:]]) == 2
    assert "first run `datacollect event forget` again" in " ".join(capsys.readouterr().err.split())
    assert run(FORGET) == 0
    require_forgotten(collected, tmp_path)


def stopping(step, is_done):
    def stop(*given):
        if is_done:
            step(*given)
        raise KeyboardInterrupt

    return stop


def test_what_had_not_been_opened_is_never_opened_and_nobody_waits_for_it(
    collected, tmp_path, capsys
):
    """As of a bistro that was silent, and answers when the person is forgotten."""
    entry = collected.uploads[1].entry
    with closing(apsw.Connection(str(tmp_path / "out/register/register.sqlite"))) as db:
        db.execute("UPDATE uploads SET outcome = NULL WHERE entry = ?", (entry,))
        db.execute("UPDATE entries SET word = NULL, why = NULL, file = NULL")
        db.execute("UPDATE segments SET is_fetched = 1")
        db.execute("DELETE FROM kept WHERE entry = ?", (entry,))

    def at_work():
        with closing(Register(collected.place, EVENT, Place.of(tmp_path / "out"))) as register:
            return [*register.held.to_open()], register.held.to_fetch()

    assert [each.upload.commitment.entry for each in at_work()[0]] == [entry]
    assert run(FORGET) == 0
    assert at_work() == ([], {})
    capsys.readouterr()
    assert run(["event", "status", "destination.toml", "--json"]) == 1
    lacking = json.loads(capsys.readouterr().out)["lacking"]
    waiting = [name for each in lacking for name in each["entries"]]
    assert waiting == [collected.uploads[2].entry.hex()]


def test_what_was_forgotten_is_not_fetched_again_after_a_loss(collected, tmp_path):
    assert run(FORGET) == 0
    with closing(Register(collected.place, EVENT, Place.of(tmp_path / "out"))) as register:
        assert register.losses.forget_absent(lambda *_: True, lambda *_: False) == 0
        assert register.known(collected.uploads[1].entry).word == "collected"


def test_what_killed_processes_have_left_of_hers_goes_too(collected, tmp_path):
    """Some is in no register: the file that was being opened, lists that were being written."""
    entry, out = collected.uploads[1].entry.hex(), tmp_path / "out"
    lost = out / "files" / entry / "before.pdf"
    left = [
        out / "files" / f".{entry}.999.tmp",
        out / "files" / "accepted" / ".999.tmp",
        out / "accepted" / ".accepted.json.999.tmp",
        out / ".reminded.jsonl.999.tmp",
        tmp_path / "tickets" / ".tickets.csv.999.tmp",
        tmp_path / "tickets" / f".{ANN}.ticket.0123.tmp",
    ]
    for path in (lost, *left):
        path.write_bytes(ANN.encode())
    assert run(FORGET) == 0
    assert [path for path in (lost, *left) if path.exists()] == []
    require_forgotten(collected, tmp_path)


def test_a_lost_journal_leaves_no_file(collected, tmp_path, monkeypatch):
    """The register names no file any more then: they are found by their entries."""
    with monkeypatch.context() as broken:
        first = forgetting.STEPS[0]
        broken.setattr(forgetting, "STEPS", (stopping(first, True),))
        assert run(FORGET) != 0
    (tmp_path / "out" / "forgetting.json").unlink()
    assert run(FORGET) == 0
    require_forgotten(collected, tmp_path)


@pytest.mark.parametrize("place", ["verdicts", "accepted"])
def test_nobody_else_writes_meanwhile(collected, tmp_path, monkeypatch, place):
    """Neither `event run` begins, nor is a file accepted that the list would lack then."""

    def taken(*_):
        with pytest.raises(ProblemError, match="another process is using this folder"):
            Held(tmp_path / "out" / place)

    monkeypatch.setattr(forgetting, "STEPS", (taken, *forgetting.STEPS))
    assert run(FORGET) == 0
    require_forgotten(collected, tmp_path)
    Held(tmp_path / "out" / place).close()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("soon", "nobody can be forgotten while files are collected"),
        ("nobody", "did you mean 'Ann Lee'?"),
        ("damaged", "forgetting.json: is damaged"),
    ],
)
def test_what_cannot_be_is_named_and_nothing_is_removed(collected, tmp_path, capsys, change, why):
    arguments = [*FORGET]
    if change == "soon":
        event_file = str(tmp_path / "event.toml")
        collected.leave(event_file=event_file, collect_until_s=4_000_000_000)
    elif change == "nobody":
        arguments[3] = "Ann Le"
    else:
        (tmp_path / "out" / "forgetting.json").write_text("{")
    assert run(arguments) == 2
    assert why in " ".join(capsys.readouterr().err.split())
    assert collected.file(1).exists()
