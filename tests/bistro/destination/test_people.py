"""The organiser's table: whose each file is, what became of it, who has nothing."""

from __future__ import annotations

import csv
import io
import json
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest
from instances.collected import EVENT, EVENT_DATA, Collected
from instances.events import key_of

from datacollect.bistro.destination.file_sets import LIST, safe_name, take_apart
from datacollect.bistro.destination.losses import KeptFile
from datacollect.bistro.destination.missing import WITHOUT_DATA, WITHOUT_UPLOAD, Missing
from datacollect.bistro.destination.people import (
    DROPPED,
    HELD,
    HERE,
    NOT_HERE,
    NOTHING,
    PROMISED,
    REFUSED,
    TOO_LATE,
    Draft,
    HandedIn,
    counted,
    handed_in,
    lacks_upload,
    link_files,
)
from datacollect.bistro.destination.people_list import PeopleList, write_csv, write_html
from datacollect.bistro.destination.place import Place
from datacollect.bistro.destination.register import Register
from datacollect.bistro.destination.register_reading import Row, reading
from datacollect.bistro.formats.custody.verdicts import NEVER_CAME
from datacollect.bistro.formats.event.marks import MarkKey
from datacollect.bistro.formats.log.file_list import frame
from datacollect.commands.main import run
from datacollect.net.keys import write_private_key

LATEST_S = 1000
MARK_KEYS = {}
TICKETS = {"01": "Ann", "02": "Bob", "03": "Ann"}


def entry_of(number):
    return bytes([number]) * 32


@pytest.fixture
def here(tmp_path):
    return Place.of(tmp_path)


def row(number, ticket="01", word="", why="", time_s=900, file=None, bistros=(), kept=()):
    return Row(entry_of(number), time_s, word, why, True, file, tuple(bistros), tuple(kept), ticket)


def found(tmp_path, here, rows, people=("Ann", "Bob", "Eve"), missing=()):
    return handed_in(
        map(HandedIn, people), TICKETS, rows, missing, here, tmp_path, latest_s=LATEST_S
    )


def collected(tmp_path, here, number, name="a.pdf", data=b"123", ticket="01"):
    file = f"{entry_of(number).hex()}/{name}"
    path = tmp_path / "files" / file
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    kept = ((here, KeptFile(file, len(data), None)),)
    return row(number, ticket, "collected", file=file, kept=kept)


def test_who_has_nothing_stands_there_too(tmp_path, here):
    """Of two tickets of one person all files count; a ticket that nobody names is nobody's."""
    rows = [
        collected(tmp_path, here, 1),
        row(2, "03", bistros=["north"]),
        row(3, "99", bistros=["north"]),
    ]
    ann, bob, eve = found(tmp_path, here, rows)
    assert [draft.state for draft in ann.drafts] == [HERE, HELD]
    assert (ann.state, bob.state, eve.state) == (HERE, NOTHING, NOTHING)
    assert ann.drafts[0].name == "a.pdf"
    assert counted([ann, bob, eve]) == {HERE: 1, NOTHING: 2}


def test_what_is_called_collected_lies_here(tmp_path, here):
    rows = [collected(tmp_path, here, n, ticket=ticket) for n, ticket in ((1, "01"), (2, "02"))]
    (tmp_path / "files" / rows[0].file).unlink()
    (tmp_path / "files" / rows[1].file).write_bytes(b"short")
    ann, bob, _ = found(tmp_path, here, rows)
    assert (ann.state, bob.state) == (NOT_HERE, NOT_HERE)


@pytest.mark.parametrize(
    ("one", "state", "late_s"),
    [
        (row(1, time_s=LATEST_S, bistros=["north"]), HELD, None),
        (row(1, time_s=LATEST_S + 60, bistros=["north"]), TOO_LATE, 60),
        (row(1, word="refused", why="does not open"), REFUSED, None),
        (row(1, word="refused", why="is late", time_s=1060), TOO_LATE, 60),
        (row(1, word="superseded", why="ab" * 32), DROPPED, None),
        (row(1), PROMISED, None),
    ],
)
def test_each_draft_has_one_state(tmp_path, here, one, state, late_s):
    ann, *_ = found(tmp_path, here, [one])
    (draft,) = ann.drafts
    assert (draft.state, draft.late_s) == (state, late_s)


def test_a_person_is_as_far_as_the_best_draft():
    drafts = [Draft(entry_of(n), state) for n, state in enumerate((DROPPED, REFUSED, HERE))]
    assert HandedIn("Ann", drafts=tuple(drafts)).state == HERE
    assert HandedIn("Ann", drafts=tuple(drafts[:2])).state == REFUSED


def test_who_lacks_a_file_is_reminded_and_nobody_else():
    def one(*drafts):
        return HandedIn("Ann", drafts=drafts)

    assert lacks_upload(one())
    assert lacks_upload(one(Draft(b"", PROMISED)))
    assert lacks_upload(one(Draft(b"", REFUSED, why=NEVER_CAME)))
    assert not lacks_upload(one(Draft(b"", HELD)))
    assert not lacks_upload(one(Draft(b"", REFUSED, why="does not open"), Draft(b"", HERE)))


def test_what_is_missing_otherwise_is_no_timestamp_of_anybody(tmp_path, here):
    missing = [Missing(entry_of(1), WITHOUT_DATA), Missing(entry_of(2), WITHOUT_UPLOAD)]
    ann, *_ = found(tmp_path, here, [], missing=missing)
    assert ann.drafts == ()


class Marks:
    """Marks that name the ticket by an entry's first byte."""

    def each_of(self, keys):
        return (MARK_KEYS[key] for key in keys)


def test_marks_say_whose_a_timestamp_is_and_what_never_came(tmp_path, here):
    """No bistro was shown a ticket: of each entry its owner and the destination alone know."""
    MARK_KEYS.update({f"key {n}": MarkKey(n, bytes([n]) * 32) for n in (1, 2)})
    entries = {}
    for n in (1, 2):
        begin = bytes([n]) * 24
        entries[n] = begin + MARK_KEYS[f"key {n}"].mark(begin)
    rows = [Row(entries[2], 900, "refused", NEVER_CAME, True, None)]
    ann, bob, _ = handed_in(
        map(HandedIn, ("Ann", "Bob", "Eve")),
        TICKETS,
        rows,
        [Missing(entries[1], WITHOUT_UPLOAD), Missing(entries[2], WITHOUT_UPLOAD)],
        here,
        tmp_path,
        latest_s=LATEST_S,
        marks=Marks(),
        ticket_keys={"01": "key 1", "02": "key 2"},
    )
    assert [draft.state for draft in ann.drafts] == [PROMISED]
    assert [(draft.state, draft.why, draft.time_s) for draft in bob.drafts] == [
        (REFUSED, NEVER_CAME, 900)
    ]
    assert lacks_upload(ann)
    assert lacks_upload(bob)


def test_links_bear_the_names_that_people_gave(tmp_path, here):
    """Two of one name stand beside each other; made again nothing changes; no file is lost."""
    rows = [collected(tmp_path, here, n, data=bytes([n])) for n in (1, 2)]
    people = found(tmp_path, here, rows)
    into = tmp_path / "by person"
    assert link_files(people, tmp_path, into) == 2
    names = {path.name: path.read_bytes() for path in (into / "Ann").iterdir()}
    assert names == {"a.pdf": b"\1", "a (2).pdf": b"\2"}
    assert link_files(people, tmp_path, into) == 2
    assert len([*(into / "Ann").iterdir()]) == 2
    (into / "Ann" / "a.pdf").unlink()
    (into / "Ann" / "a.pdf").write_bytes(b"somebody's own")
    assert link_files(people, tmp_path, into) == 2
    names = {path.name: path.read_bytes() for path in (into / "Ann").iterdir()}
    assert names == {"a.pdf": b"somebody's own", "a (2).pdf": b"\1", "a (3).pdf": b"\2"}


@pytest.mark.parametrize("name", ["Thèse: ½ * (final)?.pdf", "long" * 40 + ".pdf", "a\u202eb.pdf"])
def test_a_file_is_listed_by_the_name_that_its_person_gave(tmp_path, name):
    """On the disk it has another; what would turn a line of text round is not shown."""
    made = Collected(tmp_path / "out", names={1: name})
    here, entry = Place.of(tmp_path / "out"), made.uploads[1].entry

    def drafts():
        with reading(made.place, EVENT.id.hex()) as rows:
            known = [row._replace(ticket="01") for row in rows if row.entry == entry]
        return found(tmp_path / "out", here, known)[0].drafts

    [draft] = drafts()
    assert draft.name == name.replace("\u202e", "_")
    assert draft.file == f"{entry.hex()}/{safe_name(name)}"
    link_files([HandedIn("Ann", drafts=(draft,))], tmp_path / "out", tmp_path / "by")
    assert (tmp_path / "by" / "Ann" / safe_name(name)).read_bytes() == b"income"
    with closing(Register(made.place, EVENT, here)) as register:
        register.forget([entry])
    assert [each.name for each in drafts()] == [""]
    assert name.encode() not in (Path(made.place) / "register.sqlite").read_bytes()


@pytest.fixture
def event_list(tmp_path):
    made = Collected(tmp_path / "out")
    draft = Draft(entry_of(1), HERE, "=1+1.pdf", time_s=EVENT.deadline_s, file="ab/=1+1.pdf")
    late = Draft(entry_of(2), TOO_LATE, time_s=EVENT.deadline_s + 90, late_s=90, bistros=("north",))
    people = (
        HandedIn("Ann <b>", "7a", "ann@x.example", (draft, late)),
        HandedIn("@Bob"),
    )
    return PeopleList(EVENT, made.standing, people, tmp_path / "out")


def test_the_table_has_a_row_for_each_file_and_no_formulas(event_list, tmp_path):
    path = tmp_path / "collected.csv"
    write_csv(event_list, path)
    assert path.stat().st_mode & 0o777 == 0o600
    rows = list(csv.DictReader(io.StringIO(path.read_text())))
    assert [(one["person"], one["state"], one["late_s"]) for one in rows] == [
        ("Ann <b>", "collected", ""),
        ("Ann <b>", "late", "90"),
        ("'@Bob", "nothing yet", ""),
    ]
    assert rows[0]["file_name"] == "'=1+1.pdf"
    assert rows[0]["file"] == "files/ab/=1+1.pdf"
    assert not [cell for one in rows for cell in one.values() if cell[:1] in tuple("=+-@")]


def test_the_page_shows_text_and_links(event_list, tmp_path):
    path = tmp_path / "collected.html"
    write_html(event_list, path)
    text = path.read_text()
    assert "Ann &lt;b&gt; (7a)" in text
    assert "late by 1 min 30 s" in text
    assert 'href="file://' in text
    assert "<b>" not in text.replace("<body", "")


def test_the_command_says_who_has_nothing(tmp_path, monkeypatch, capsys):
    """Of an open event no ticket names anybody: files are of nobody, and everybody lacks one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "event.toml").write_bytes(EVENT_DATA)
    made = Collected(tmp_path / "out")
    made.leave(event_file=str(tmp_path / "event.toml"))
    write_destination(tmp_path)
    (tmp_path / "tickets").mkdir()
    (tmp_path / "tickets" / "tickets.csv").write_text(
        f"person,ticket,token_sha256\nAnn,{'01' * 16},{'ab' * 32}\n"
    )
    assert run(["event", "list", "destination.toml", "--tickets", "tickets", "--json"]) == 1
    tree = json.loads(capsys.readouterr().out)
    assert tree["people"] == [
        {"person": "Ann", "group": "", "email": "", "state": NOTHING, "files": []}
    ]
    assert run(["event", "list", "destination.toml", "--tickets", "tickets"]) == 1
    assert "1 nothing yet" in capsys.readouterr().out
    (tmp_path / "out" / "missing.csv").unlink()
    assert run(["event", "list", "destination.toml", "--tickets", "tickets"]) == 2
    assert "event run` writes it again" in " ".join(capsys.readouterr().err.split())
    assert run(["event", "list", "destination.toml"]) == 2
    assert "--tickets DIR" in capsys.readouterr().err


def test_of_an_event_that_was_cancelled_it_is_said_and_what_had_come_is_here(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "event.toml").write_bytes(EVENT_DATA)
    made = Collected(tmp_path / "out", opened=(1,))
    event_file = str(tmp_path / "event.toml")
    made.leave(event_file=event_file, cancelled="no room", collect_until_s=4_000_000_000)
    write_destination(tmp_path)
    (tmp_path / "tickets").mkdir()
    (tmp_path / "tickets" / "tickets.csv").write_text(
        f"person,ticket,token_sha256\nAnn,{'01' * 16},{'ab' * 32}\n"
    )
    tickets = ("destination.toml", "--tickets", "tickets")
    assert run(["event", "list", *tickets]) == 1
    assert "the event was cancelled: no room" in capsys.readouterr().out
    # What was not collected by then is lacking to nobody.
    assert run(["event", "status", "destination.toml", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert ([each["kind"] for each in told["lacking"]], told["files_here"]) == (["cancelled"], 1)
    made.file(1).unlink()
    assert run(["event", "status", "destination.toml"]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "not yet: 1 file: collected, and no longer there" in out
    assert "not yet: the event was cancelled" not in out
    (tmp_path / "people.csv").write_text("person\nAnn\n")
    remind = ["event", "remind", "destination.toml", "--tickets", "tickets"]
    assert run([*remind, "--people", "people.csv", "-o", "remind.csv"]) == 2
    assert "nobody can hand in any longer" in " ".join(capsys.readouterr().err.split())


def write_destination(folder):
    for name in ("dest", "collector"):
        write_private_key(folder / f"{name}.key", key_of(name))
    (folder / "destination.toml").write_text(
        'format = "datacollect-destination/1"\nkey = "dest.key"\ncollector = "collector.key"\n'
        'folder = "out"\n'
        'identities = ["identity.txt"]\n'
    )


# Several files of one draft ---------------------------------------------------------------------


def several(folder, here, number, files, **more):
    """Have several files collected as one, and their row."""
    entry = entry_of(number).hex()
    body = b"".join(frame(name, len(data)) + data for name, data in files.items())
    (folder / "files").mkdir(exist_ok=True)
    told = take_apart(io.BytesIO(body), len(files), folder / "files" / entry)
    file = f"{entry}/{LIST}"
    kept = [(here, KeptFile(file, len(told), sha256(told).digest()))]
    return row(number, word="collected", file=file, kept=kept, **more)


SEVERAL = {"=1.csv": b"1", "src/Ü.py": b"22", "src/empty": b""}


def test_files_that_came_as_one_are_one_draft_with_all_of_them(tmp_path, here):
    (ann, *_) = found(tmp_path, here, [several(tmp_path, here, 1, SEVERAL)])
    (draft,) = ann.drafts
    assert (draft.state, draft.name, draft.n_bytes) == (HERE, "=1.csv", 3)
    assert draft.text == "=1.csv and 2 more (3 files, 3 B)"
    assert [(each.name, each.n_bytes) for each in draft.parts] == [
        ("=1.csv", 1),
        ("src/Ü.py", 2),
        ("src/empty", 0),
    ]
    (told,) = ann.to_dict()["files"]
    assert (told["bytes"], [each["name"] for each in told["parts"]]) == (3, [*SEVERAL])
    for each in told["parts"]:
        assert (tmp_path / each["file"]).read_bytes() == SEVERAL[each["name"]]
    # One of them lost: not all of the draft is here.
    (tmp_path / told["parts"][1]["file"]).unlink()
    (ann, *_) = found(tmp_path, here, [several_again(tmp_path, here)])
    assert [each.state for each in ann.drafts] == [NOT_HERE]


@pytest.mark.parametrize("is_there", [True, False])
def test_a_list_of_several_files_that_is_damaged_is_named_with_a_remedy(tmp_path, here, is_there):
    rows = [several(tmp_path, here, 1, SEVERAL)]
    file = tmp_path / "files" / entry_of(1).hex() / LIST
    file.write_bytes(b"x" * file.stat().st_size) if is_there else file.unlink()
    (ann, *_) = found(tmp_path, here, rows)
    (draft,) = ann.drafts
    assert (draft.state, draft.text, draft.files) == (NOT_HERE, "", ())
    assert draft.why == (
        f"files/{entry_of(1).hex()}/{LIST}, the list of its files, is missing or damaged; put them "
        "back from a copy of the folder; `datacollect event status --verify` compares"
    )


def several_again(folder, here):
    file = f"{entry_of(1).hex()}/{LIST}"
    told = (folder / "files" / file).read_bytes()
    kept = [(here, KeptFile(file, len(told), sha256(told).digest()))]
    return row(1, word="collected", file=file, kept=kept)


def test_a_superseded_draft_is_superseded_as_a_whole_and_linked_nowhere(tmp_path, here):
    before = several(tmp_path, here, 1, SEVERAL)._replace(word="superseded")
    after = several(tmp_path, here, 2, {"=1.csv": b"new", "b": b""}, time_s=950)
    (ann, *_) = people = found(tmp_path, here, [before, after])
    assert [each.state for each in ann.drafts] == [DROPPED, HERE]
    into = tmp_path / "by person"
    assert link_files(people, tmp_path, into) == 2
    assert {path.name: path.read_bytes() for path in (into / "Ann").iterdir()} == {
        "_1.csv": b"new",
        "b": b"",
    }


def test_links_of_several_files_keep_their_folders_and_no_other_is_lost(tmp_path, here):
    rows = [
        several(tmp_path, here, 1, {"src/a": b"1", "b": b"2"}),
        several(tmp_path, here, 2, {"src/a": b"3", "b": b"4"}, time_s=950),
        # Its file is called as the folder of the others.
        several(tmp_path, here, 3, {"src": b"5", "c": b"6"}, time_s=960),
    ]
    people = found(tmp_path, here, rows)
    into = tmp_path / "by person"
    for _ in range(2):
        assert link_files(people, tmp_path, into) == 6
        place = into / "Ann"
        assert {str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()} == {
            *("src/a", "src/a (2)", "b", "b (2)", "src (2)", "c")
        }
    assert (place / "src (2)").read_bytes() == b"5"
    assert (place / "src/a (2)").read_bytes() == b"3"


def test_names_that_are_one_on_the_disk_do_not_keep_links_from_being_made(tmp_path, here):
    rows = [
        # A file, and a folder that is called like it once both have safe names.
        several(tmp_path, here, 1, {"a?": b"1", "a*/b": b"2"}),
        # A folder below, where another draft has a file; and files in the way of any other folder.
        several(tmp_path, here, 2, {"x/a": b"3", entry_of(3).hex()[:8]: b"4"}, time_s=950),
        several(tmp_path, here, 3, {"x/a/b": b"5", "c": b"6"}, time_s=960),
    ]
    people = found(tmp_path, here, rows)
    into = tmp_path / "by person"
    for _ in range(2):
        assert link_files(people, tmp_path, into) == 6
        linked = [path for path in (into / "Ann").rglob("*") if path.is_file()]
        assert sorted(path.read_bytes() for path in linked) == [b"%d" % n for n in range(1, 7)]


def test_the_table_and_the_page_name_each_of_several_files(tmp_path, here):
    people = found(tmp_path, here, [several(tmp_path, here, 1, SEVERAL)])
    made = Collected(tmp_path / "out")
    listed = PeopleList(EVENT, made.standing, tuple(people), tmp_path)
    write_csv(listed, tmp_path / "collected.csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "collected.csv").read_text())))
    assert [(one["file_name"], one["bytes"], one["files"]) for one in rows[:3]] == [
        ("'=1.csv", "1", "3"),
        ("src/Ü.py", "2", "3"),
        ("src/empty", "0", "3"),
    ]
    assert len({one["entry"] for one in rows[:3]}) == 1
    write_html(listed, tmp_path / "collected.html")
    text = (tmp_path / "collected.html").read_text()
    assert "<details><summary>=1.csv and 2 more (3 files, 3 B)</summary>" in text
    assert text.count('href="file://') == 3
