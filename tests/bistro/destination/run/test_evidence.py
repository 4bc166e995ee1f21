"""`event status` is 0 only by evidence: on real folders of which something is taken away."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from datetime import datetime
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import apsw
import pytest
from conftest import NO_POSTGRES
from instances.bistro_folders import HandedIn
from instances.collected import EVENT, EVENT_DATA, NOW_S, Collected
from instances.events import DEADLINE_S, key_of
from instances.postgres import postgres, program

from datacollect.bistro.destination.missing import WITHOUT_DATA, WITHOUT_UPLOAD, Missing
from datacollect.bistro.destination.place import Place
from datacollect.bistro.destination.register import Register
from datacollect.bistro.destination.register_reading import reading
from datacollect.bistro.destination.run.evidence import FRESH_FOR_S, files_not_here
from datacollect.bistro.destination.run.kept_files import fault_of
from datacollect.bistro.destination.run.standing import STANDING_FILE, read_missing
from datacollect.bistro.formats.event.amendments import read_amendment, sign_amendment
from datacollect.bistro.formats.receipt.receipt import PublishedAmendment
from datacollect.bistro.http.published import Found
from datacollect.commands.main import run
from datacollect.files.held_folder import Held
from datacollect.net.keys import write_private_key

MOVED = "datacollect.bistro.destination.run.moved_deadline"
NORTH_ENTRY = HandedIn(EVENT, 7).entry


@pytest.fixture
def status(tmp_path, monkeypatch, capsys):
    """Return what `event status` of a folder says, and its exit code; some seconds later."""
    monkeypatch.chdir(tmp_path)
    write_private_key("own.key", key_of("verdicts"))

    def ask(folder="into", *options: str, later_s: float = 5, register: str = ""):
        clock = SimpleNamespace(time=lambda: NOW_S + later_s)
        monkeypatch.setattr("datacollect.bistro.commands.event_run.time", clock)
        (tmp_path / "destination.toml").write_text(
            'format = "datacollect-destination/1"\nkey = "own.key"\ncollector = "own.key"\n'
            f'identities = ["own.txt"]\nfolder = "{folder}"\n'
            + (f'register = "{register}"\n' if register else "")
        )
        code = run(["event", "status", "destination.toml", *options])
        said = capsys.readouterr()
        return code, " ".join((said.out + said.err).split())

    return ask


@pytest.fixture
def collected(tmp_path):
    return Collected(tmp_path / "into")


def lacking(told: str) -> dict[str, dict]:
    return {each["kind"]: each for each in json.loads(told)["lacking"]}


def test_all_that_is_collected_lies_here(status, collected, tmp_path):
    code, said = status()
    assert (code, "all is collected" in said, "2 files here as collected" in said) == (
        0,
        True,
        True,
    )
    code, said = status("into", "--verify")
    assert (code, "read again" in said) == (0, True)
    told = json.loads(status("into", "--json")[1])
    assert (told["lacking"], told["files_here"], told["verified"]) == ([], 2, False)
    assert told["here"]["folder"] == str(tmp_path / "into")


def test_a_file_that_was_removed_is_missing(status, collected):
    collected.file(1).unlink()
    code, said = status()
    assert code == 1
    assert "1 file: collected, and no longer there" in said
    assert "put them back from a copy" in said
    lack = lacking(status("into", "--json")[1])["file absent"]
    assert (lack["n"], lack["entries"]) == (1, [collected.uploads[1].entry.hex()])
    assert lack["since_s"] == int(collected.file(1).parent.stat().st_mtime)
    # And it is no more, once it is put back.
    collected.file(1).write_bytes(b"income")
    assert status("into", "--verify")[0] == 0


def test_all_files_that_were_removed_are_missing(status, collected):
    shutil.rmtree(collected.folder / "files")
    code, said = status()
    assert (code, "2 files: collected, and no longer there" in said) == (1, True)


@pytest.mark.parametrize("content", [b"", b"incom", b"incomes"])
def test_a_file_of_another_length_is_named(status, collected, content):
    collected.file(1).write_bytes(content)
    code, said = status()
    assert (code, "not the length that it had when collected" in said) == (1, True)


def test_a_link_in_the_place_of_a_file_is_none(status, collected, tmp_path):
    (tmp_path / "other").write_bytes(b"income")
    collected.file(1).unlink()
    collected.file(1).symlink_to(tmp_path / "other")
    assert status()[0] == 1


def test_a_changed_file_is_found_where_it_is_read_again(status, collected):
    collected.file(1).write_bytes(b"outgo!")
    assert status()[0] == 0
    code, said = status("into", "--verify")
    assert (code, "not the content that it had when collected" in said) == (1, True)


def test_files_that_were_collected_by_another_machine_are_named_with_it(status, tmp_path):
    there = Place("far.example", "ab" * 16, "/srv/collected")
    collected = Collected(tmp_path / "into", here=there)
    shutil.rmtree(collected.folder / "files")
    code, said = status()
    assert code == 1
    assert "the files lie on far.example in /srv/collected" in said
    lack = lacking(status("into", "--json")[1])["elsewhere"]
    assert (lack["who"], lack["n"]) == ("far.example", 2)


def test_a_folder_that_was_copied_is_taken_over_by_the_next_run(status, collected, tmp_path):
    shutil.copytree(collected.folder, tmp_path / "copy")
    code, said = status("copy")
    assert (code, f"in {tmp_path}/into" in said) == (1, True)
    folder = tmp_path / "copy"
    (folder / "files" / collected.uploads[2].entry.hex() / "return.pdf").write_bytes(b"cut")
    with closing(Register(str(folder / "register"), EVENT, Place.of(folder))) as register:
        assert register.take_over(lambda file: fault_of(folder, file.file, file) is None) == 1
        assert register.take_over(lambda file: fault_of(folder, file.file, file) is None) == 0
    lack = lacking(status("copy", "--json")[1])["elsewhere"]
    assert lack["entries"] == [collected.uploads[2].entry.hex()]
    # Where it was collected nothing is lacking.
    assert status()[0] == 0


def test_a_register_of_an_earlier_version_opens(status, collected):
    """It knows neither machine nor lengths: that a file is there is looked for, and said."""
    with closing(apsw.Connection(str(collected.folder / "register/register.sqlite"))) as db:
        db.execute("DROP TABLE kept")
    code, said = status()
    assert (
        code,
        "2 files: collected by an earlier version, which recorded neither machine nor length"
        in said,
    ) == (
        0,
        True,
    )
    collected.file(1).unlink()
    assert status()[0] == 1
    Register(collected.place, EVENT).close()
    assert status()[0] == 1


def test_the_register_of_an_event_without_owners_is_read(status, collected):
    """An event of version 1 is gone on with by nobody; what was collected is found all the same."""
    with closing(apsw.Connection(str(collected.folder / "register/register.sqlite"))) as db:
        db.execute("ALTER TABLE entries DROP COLUMN owner")
    assert status()[0] == 0


def test_what_an_earlier_version_has_left_is_no_evidence_that_logs_were_read(status, collected):
    path = collected.folder / STANDING_FILE
    tree = json.loads(path.read_text())
    for key in ("latest_s", "unread", "not_here"):
        del tree[key]
    path.write_text(json.dumps(tree))
    code, said = status()
    assert (code, "did not record whether logs were read to their ends" in said) == (1, True)


def test_a_register_that_is_locked_or_removed_or_damaged_is_a_failure(status, collected):
    path = collected.folder / "register/register.sqlite"
    with closing(apsw.Connection(str(path))) as db:
        db.execute("PRAGMA locking_mode=EXCLUSIVE")
        db.execute("BEGIN EXCLUSIVE")
        code, said = status()
    assert (code, "another program has locked the register; stop it" in said) == (3, True)
    assert status()[0] == 0
    whole = path.read_bytes()
    path.write_bytes(b"no database" * 1000)
    code, said = status()
    assert (code, "is damaged" in said) == (3, True)
    path.unlink()
    code, said = status()
    assert (code, "the register is missing" in said) == (3, True)
    path.write_bytes(whole)
    assert status()[0] == 0


def test_a_disk_that_fails_is_a_failure(status, collected):
    """What cannot be looked at is not known to be missing: here links in a circle."""
    folder = collected.file(1).parent
    shutil.rmtree(folder)
    folder.symlink_to(folder)
    code, said = status()
    assert (code, "cannot be written or read: Too many levels of symbolic links" in said) == (
        3,
        True,
    )
    path = collected.folder / STANDING_FILE
    path.unlink()
    path.symlink_to(path)
    assert status()[0] == 3


def test_a_destination_counts_what_is_gone_from_its_disk(collected):
    """The page shows it: what was collected once may be there no more."""

    def n_gone():
        with reading(collected.place, EVENT.id.hex()) as rows:
            return files_not_here(rows, Place.of(collected.folder), collected.folder)

    assert n_gone() == 0
    collected.file(1).unlink()
    assert n_gone() == 1
    collected.file(2).write_bytes(b"")
    assert n_gone() == 2
    with reading(collected.place, EVENT.id.hex()) as rows:
        assert files_not_here(rows, Place("far", "", "/srv"), collected.folder) == 2


def test_a_register_is_read_while_a_destination_writes_it(status, collected):
    with closing(Register(collected.place, EVENT)) as register:
        register.held.take_lie("north", "It has lied.")
        assert status()[0] == 0


def test_without_what_a_destination_has_left_nothing_was_begun(status, collected):
    (collected.folder / STANDING_FILE).unlink()
    code, said = status()
    assert (code, "nothing was collected there yet" in said) == (2, True)


def test_a_register_of_another_event_is_refused(status, collected):
    with closing(apsw.Connection(str(collected.folder / "register/register.sqlite"))) as db:
        db.execute("UPDATE owner SET name = 'event of others'")
    code, said = status()
    assert (code, "is the register of event of others" in said) == (2, True)


def test_before_the_deadline_it_is_not_over(status, collected):
    before_s = EVENT.latest_s - NOW_S - 60
    collected.leave(time_s=EVENT.latest_s - 61)
    code, said = status(later_s=before_s)
    assert (code, "the deadline is in 1 min 00 s: more may be handed in" in said) == (1, True)


def test_a_log_that_was_not_read_to_its_end_is_named(status, collected):
    collected.leave(unread=("https://s0.example",))
    code, said = status()
    assert (code, "https://s0.example: its log was not read" in said) == (1, True)


def test_old_numbers_are_no_evidence_unless_a_destination_is_at_work(status, collected):
    assert status(later_s=FRESH_FOR_S)[0] == 0
    code, said = status(later_s=FRESH_FOR_S + 1)
    assert code == 1
    assert "these numbers are old, written 1 h 00 min ago: nothing is running now" in said
    with closing(Held(collected.folder / "verdicts")):
        assert status(later_s=FRESH_FOR_S + 1)[0] == 0


def test_a_silent_bistro_may_hold_what_is_missing(status, collected):
    contacts = {"north": None, "south": NOW_S - 300}
    # Where nothing is missing it holds nothing of it.
    collected.leave(contacts=contacts)
    assert status()[0] == 0
    row = Missing(NORTH_ENTRY, WITHOUT_DATA, ("north",))
    collected.leave([row], contacts=contacts, missing={WITHOUT_DATA: 1})
    code, said = status()
    assert code == 1
    assert "north is silent, and may hold what is missing" in said
    silent = [
        e for e in json.loads(status("into", "--json")[1])["lacking"] if e["kind"] == "silent"
    ]
    assert [(each["who"], each["n"], each["since_s"]) for each in silent] == [
        ("north", 1, None),
        ("south", 0, NOW_S - 300),
    ]


def test_what_people_have_not_sent_is_missing_also_where_its_list_is_lost(status, collected):
    row = Missing(NORTH_ENTRY, WITHOUT_UPLOAD)
    collected.leave([row], missing={WITHOUT_UPLOAD: 1})
    assert read_missing(collected.folder) == [row]
    lack = lacking(status("into", "--json")[1])[WITHOUT_UPLOAD]
    assert (lack["who"], lack["entries"]) == ("people", [NORTH_ENTRY.hex()])
    (collected.folder / "missing.csv").unlink()
    assert lacking(status("into", "--json")[1])[WITHOUT_UPLOAD]["n"] == 1


def test_what_has_come_since_the_list_was_written_is_not_missing(status, collected):
    row = Missing(collected.uploads[1].entry, WITHOUT_DATA, ("north",))
    collected.leave([row], missing={WITHOUT_DATA: 1})
    assert status()[0] == 0


def test_what_waits_is_named_with_who_holds_it(status, tmp_path):
    Collected(tmp_path / "into", opened=(1,))
    lack = lacking(status("into", "--json")[1])["waiting"]
    assert (lack["who"], lack["n"], lack["since_s"]) == ("north", 1, DEADLINE_S)


def test_verdicts_that_are_not_published_are_none(status, tmp_path):
    Collected(tmp_path / "into", is_logged=False)
    assert lacking(status("into", "--json")[1])["not published"]["n"] == 2


def test_verdicts_that_witnesses_will_not_sign_are_said_with_why(status, tmp_path):
    """Running on would publish nothing: they have signed more than the folder holds."""
    why = "witness w1 has signed 4 entries of this log, and its folder holds 0"
    Collected(tmp_path / "into", is_logged=False).leave(log_lacks=why)
    lack = lacking(status("into", "--json")[1])["not published"]
    assert why in lack["text"]
    assert "event recover" in lack["remedy"]
    assert "continues" not in lack["remedy"]


def test_who_was_late_until_the_deadline_was_moved_is_in_time(status, tmp_path):
    """The register still says late; by the deadline of now it is not."""
    late_s = EVENT.latest_s + 100
    collected = Collected(tmp_path / "into", times_s={1: late_s, 2: late_s})
    assert status()[0] == 0
    collected.leave(latest_s=late_s)
    lack = lacking(status("into", "--json")[1])["late no more"]
    assert lack["n"] == 2


def test_a_deadline_that_was_moved_after_the_last_round_is_asked_for(
    status, tmp_path, monkeypatch, capsys
):
    """By a service's answer: two people who were late are in time, and nobody has looked."""
    late_s = EVENT.latest_s + 100
    collected = Collected(tmp_path / "into", times_s={1: late_s, 2: late_s})
    (tmp_path / "event.toml").write_bytes(EVENT_DATA)
    collected.leave(event_file=str(tmp_path / "event.toml"))
    later = {"deadline": datetime.fromtimestamp(EVENT.deadline_s + 3600, ZoneInfo(EVENT.timezone))}
    note = sign_amendment(EVENT, later, 1, key_of("organiser"))
    asked = []

    def amendments(event, urls, _tls, within_s):
        asked.append(within_s)
        return Found([PublishedAmendment(note)], {}, {})

    monkeypatch.setattr(f"{MOVED}.amendments_of", amendments)
    # What no log has published moves nothing.
    assert status()[0] == 0
    monkeypatch.setattr(f"{MOVED}.published", lambda event, *_: [read_amendment(note, event)])
    found = lacking(status("into", "--json")[1])
    assert sorted(found) == ["deadline moved", "late no more"]
    assert found["late no more"]["n"] == 2
    assert asked == [5.0, 5.0]
    # Without the event's file nobody can be asked, and the age of the numbers counts.
    (tmp_path / "event.toml").write_bytes(b"another")
    assert status()[0] == 0


def test_somebody_who_has_lied_is_named(status, collected):
    collected.leave(lies=(("north", "It has lied."),))
    assert lacking(status("into", "--json")[1])["lie"]["who"] == "north"


@pytest.mark.skipif(program("initdb") is None, reason=NO_POSTGRES)
def test_a_register_in_postgresql_says_on_which_machine_files_lie(status, tmp_path):
    """Asked with another folder, before and after a destination was there; and once it is down."""
    there = Place("far.example", "", "/srv/collected")
    with postgres() as address:
        collected = Collected(tmp_path / "into", address, here=there)
        code, said = status("new", register=address)
        assert (code, "the files lie on far.example in /srv/collected" in said) == (1, True)
        assert lacking(status("new", "--json", register=address)[1])["elsewhere"]["n"] == 2
        shutil.rmtree(collected.folder / "files")
        code, said = status(register=address)
        assert (code, "the files lie on far.example" in said) == (1, True)
    for folder in ("into", "new"):
        code, said = status(folder, register=address)
        assert (code, "the register's database does not answer" in said) == (3, True)
