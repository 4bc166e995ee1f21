"""What has come by mail or stick: kept whole or not at all, marked, and asked for no more."""

from __future__ import annotations

import errno
import json
import os

import pytest
from bistro.destination.test_people import write_destination
from instances.collected import EVENT_DATA, Collected

from datacollect.bistro.destination import accepting
from datacollect.bistro.destination.accepting import accept_file, read_accepted
from datacollect.bistro.destination.people import (
    BY_HAND,
    HERE,
    NOT_HERE,
    PROMISED,
    Draft,
    HandedIn,
    lacks_upload,
    link_files,
    with_accepted,
)
from datacollect.commands.main import run
from datacollect.errors import ProblemError, StoreError

ANN = "Ann Lee"
CHANGED = (
    b'{"format": "datacollect-accepted/1", "files": [{"person": "A", "name": "n", "file": "f", '
    b'"n_bytes": 1, "sha256": "zz", "came_s": 1, "accepted_s": 1}]}'
)
LATEST_S = 1000


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mail" / "thesis.pdf"
    path.parent.mkdir()
    path.write_bytes(b"what has come")
    return path


def lying(folder):
    return {path.name: path.read_bytes() for path in folder.glob("files/accepted/*/*")}


def test_it_lies_with_the_others_and_is_marked(tmp_path, file):
    made, is_new = accept_file(tmp_path, ANN, file, 900, "by mail")
    assert is_new
    assert made.file == "accepted/Ann Lee/thesis.pdf"
    assert (tmp_path / "files" / made.file).read_bytes() == file.read_bytes()
    people = [HandedIn(ANN, "7a", drafts=(Draft(b"a" * 32, PROMISED),)), HandedIn("Bob")]
    ann, bob = with_accepted(people, read_accepted(tmp_path), tmp_path, LATEST_S)
    assert (ann.state, ann.group, bob.state) == (BY_HAND, "7a", "nothing yet")
    assert (ann.drafts[-1].why, ann.drafts[-1].late_s) == ("by mail", None)
    assert not lacks_upload(ann)
    assert link_files([ann], tmp_path, tmp_path / "links") == 1
    assert (tmp_path / "links" / ANN / "thesis.pdf").read_bytes() == file.read_bytes()
    (tmp_path / "files" / made.file).write_bytes(b"short")
    ann, _ = with_accepted(people, read_accepted(tmp_path), tmp_path, LATEST_S)
    assert ann.drafts[-1].state == NOT_HERE


def test_what_came_late_is_late_and_who_stands_nowhere_else_is_listed(tmp_path, file):
    accept_file(tmp_path, "Eve", file, LATEST_S + 60)
    _, eve = with_accepted([HandedIn(ANN)], read_accepted(tmp_path), tmp_path, LATEST_S)
    assert (eve.person, eve.state, eve.drafts[0].late_s) == ("Eve", BY_HAND, 60)
    collected = HandedIn("Eve", drafts=(Draft(b"e" * 32, HERE),))
    (eve,) = with_accepted([collected], read_accepted(tmp_path), tmp_path, LATEST_S)
    assert eve.state == HERE


def test_the_same_again_changes_nothing_and_another_of_its_name_stands_beside(tmp_path, file):
    first, _ = accept_file(tmp_path, ANN, file)
    assert accept_file(tmp_path, ANN, file) == (first, False)
    (tmp_path / "files" / first.file).unlink()
    assert accept_file(tmp_path, ANN, file) == (first, False)
    file.write_bytes(b"another")
    accept_file(tmp_path, ANN, file)
    assert lying(tmp_path) == {"thesis.pdf": b"what has come", "thesis (2).pdf": b"another"}
    assert len(read_accepted(tmp_path)) == 2


@pytest.mark.parametrize("step", ["name_durably", "write_accepted"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt()])
def test_interrupted_at_each_step_nothing_is_lost_and_it_is_gone_on_with(
    tmp_path, file, monkeypatch, step, error
):
    """Also where the disk is full: what is listed is there, and what was not told is done again."""

    def fail(*_, **__):
        raise error

    with monkeypatch.context() as broken:
        broken.setattr(accepting, step, fail)
        with pytest.raises((StoreError, OSError, KeyboardInterrupt)):
            accept_file(tmp_path, ANN, file)
    assert read_accepted(tmp_path) == []
    assert file.read_bytes() == b"what has come"
    accept_file(tmp_path, ANN, file)
    assert lying(tmp_path) == {"thesis.pdf": b"what has come"}
    assert not [*tmp_path.glob("files/accepted/.*.tmp")]


@pytest.mark.parametrize(
    ("called", "name", "link"),
    [
        (b"a\xff.pdf", "a\ufffd.pdf", "a_.pdf"),
        ("a\u202efdp.exe".encode(), "a\u202efdp.exe", "a_fdp.exe"),
        (b"-rf\n.pdf", "-rf\n.pdf", "-rf_.pdf"),
        (b"..\\x", "..\\x", "x"),
    ],
    ids=["no text", "right to left", "line", "parent"],
)
def test_whatever_it_is_called_it_is_taken_under_a_safe_name(tmp_path, file, called, name, link):
    renamed = file.rename(file.with_name(os.fsdecode(called)))
    made, _ = accept_file(tmp_path, ANN, renamed)
    assert (made.name, made.file) == (name, f"accepted/{ANN}/{link}")
    assert read_accepted(tmp_path) == [made]
    people = with_accepted([HandedIn(ANN)], [made], tmp_path, LATEST_S)
    assert link_files(people, tmp_path, tmp_path / "links") == 1
    assert [each.name for each in (tmp_path / "links" / ANN).iterdir()] == [link]


@pytest.mark.parametrize("name", ["absent.pdf", "."])
def test_what_is_no_file_is_named(tmp_path, name):
    with pytest.raises(ProblemError, match="must be an existing file"):
        accept_file(tmp_path, ANN, tmp_path / name)


def test_a_damaged_list_is_named_and_left(tmp_path, file):
    accept_file(tmp_path, ANN, file)
    path = tmp_path / "accepted" / "accepted.json"
    for data in (b"{", b"[]", b'{"format": "other", "files": []}', CHANGED):
        path.write_bytes(data)
        with pytest.raises(ProblemError, match=r"accepted\.json: is not a list"):
            accept_file(tmp_path, ANN, file)
        assert path.read_bytes() == data


@pytest.fixture
def organiser(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "event.toml").write_bytes(EVENT_DATA)
    Collected(tmp_path / "out").leave(event_file=str(tmp_path / "event.toml"))
    write_destination(tmp_path)
    (tmp_path / "tickets").mkdir()
    (tmp_path / "tickets" / "tickets.csv").write_text(
        f"person,ticket,token_sha256\n{ANN},{'01' * 16},{'ab' * 32}\n"
    )


def test_by_the_command(organiser, file, capsys):
    arguments = ["event", "accept", "destination.toml", ANN, str(file), "--tickets", "tickets"]
    assert run([*arguments, "--how", "by mail", "--when", "2020-01-31T18:20"]) == 0
    assert "accepted by hand" in capsys.readouterr().out
    assert run([*arguments, "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)["files"]
    assert told["new"] is False
    # Everybody has handed in something.
    assert run(["event", "list", "destination.toml", "--tickets", "tickets"]) == 0
    out = capsys.readouterr().out
    assert "accepted by hand: by mail" in out
    assert "1 accepted by hand" in out


def test_several_files_are_accepted_at_once_or_none_where_one_is_not_there(
    organiser, file, tmp_path, capsys
):
    other = tmp_path / "other.pdf"
    command = ["event", "accept", "destination.toml", ANN, str(file), str(other)]
    assert run([*command, "--tickets", "tickets"]) == 2
    assert "other.pdf: must be an existing file" in " ".join(capsys.readouterr().err.split())
    assert read_accepted(tmp_path / "out") == []
    other.write_bytes(b"other")
    assert run([*command, "--tickets", "tickets", "--json"]) == 0
    assert [each["new"] for each in json.loads(capsys.readouterr().out)["files"]] == [True, True]
    assert [each.name for each in read_accepted(tmp_path / "out")] == [file.name, "other.pdf"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({3: "Ann Le"}, "did you mean 'Ann Lee'?"),
        ({3: "Max"}, "write the name as it stands there"),
        ({4: "absent.pdf"}, "must be an existing file"),
        ({7: "--when", 8: "9000-01-01"}, "must be a time that has passed"),
        ({7: "--when", 8: "soon"}, "must be a date and time"),
    ],
)
def test_what_cannot_be_is_named_and_nothing_is_kept(organiser, file, capsys, change, why):
    arguments = ["event", "accept", "destination.toml", ANN, str(file), "--tickets", "tickets"]
    arguments += ["--how", "mail"]
    for i, word in change.items():
        arguments[i] = word
    assert run(arguments) == 2
    assert why in " ".join(capsys.readouterr().err.split())
