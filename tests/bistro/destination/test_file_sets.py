"""Several files of one draft: taken apart under safe names, all of them or none; lies refused."""

from __future__ import annotations

import errno
import json
import os
import shutil
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256

import numpy as np
import pyrage
import pytest
from instances.bistro_folders import FIRST_IDENTITY, HandedIn, MadeBistro, collecting_event
from instances.events import DEADLINE_S

from datacollect.bistro.destination import file_sets
from datacollect.bistro.destination.file_sets import LIST, SafePaths, read_set
from datacollect.bistro.destination.holdings import LOST, Opening, Upload
from datacollect.bistro.destination.losses import KeptFile
from datacollect.bistro.destination.opening import Opener
from datacollect.bistro.destination.pieces import PIECE_OF_UPLOAD
from datacollect.bistro.destination.run.kept_files import FILES, fault_of
from datacollect.bistro.formats.custody.verdicts import OTHER_CONTENT, OTHER_FILES
from datacollect.bistro.formats.log.content import header_bytes
from datacollect.bistro.formats.log.file_list import frame
from datacollect.errors import NotWrittenError

EVENT = collecting_event()
DRAFT = [
    ("b.csv", b"1,2\n"),
    ("empty", b""),
    ("src/Übung 1.py", b"pass\n" * 50_000),
    ("SRC/ÜBUNG 1.py", b"other"),
    ("src", b"a file that is a folder to some"),
]
# The last is none of a list that keeps the rules; the one before collides with the third by case.
GOOD = DRAFT[:4]


@pytest.fixture
def north(tmp_path):
    return MadeBistro(EVENT, "north", tmp_path / "fetched" / "north")


@pytest.fixture
def opener(tmp_path):
    into = tmp_path / FILES
    into.mkdir()
    return Opener((str(FIRST_IDENTITY),), None, tmp_path / "fetched", into, most_files=10_000)


def body_of(files):
    return b"".join(frame(name, len(data)) + data for name, data in files)


def header_of(count):
    told = {"content": "datacollect-content/3", "event": EVENT.id.hex(), "files": count}
    return header_bytes(told)


def several(files=GOOD):
    return HandedIn(EVENT, content=body_of(files), header=header_of(len(files)))


def sealed_by_nobody_honest(body, count):
    """Put together here, for the destination's key: what no program seals that checks it."""
    header = header_of(count).decode()
    told = {"header": header, "secret": "00" * 32, "ticket_signature": None}
    head = json.dumps(told).encode()
    plain = b"datacollect-sealed/2\n" + len(head).to_bytes(4, "big") + head + body
    recipients = [pyrage.x25519.Recipient.from_str(each) for each in EVENT.recipients]
    return pyrage.encrypt(plain, recipients)


def opened(opener, north, upload, data=None, commitment=None):
    held = upload.sealed if data is None else data
    number = north.segment((upload.entry, 0, held)) or 0
    what = Upload("north", len(held), sha256(held).digest(), commitment or upload.commitment, None)
    parts = np.array([(number, 0, 0, len(held))], PIECE_OF_UPLOAD)
    return opener.open(Opening(what, parts, DEADLINE_S))


def files_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_several_files_lie_under_their_entry_by_safe_names_and_are_listed(opener, north):
    upload = several()
    result = opened(opener, north, upload)
    entry = upload.entry.hex()
    assert (result.why, result.file) == ("", f"{entry}/{LIST}")
    places = ["b.csv", "empty", "src/Übung 1.py", "2/ÜBUNG 1.py"]
    assert files_in(opener.into) == sorted(f"{entry}/{each}" for each in (*places, LIST))
    found = read_set(opener.into / result.file)
    assert [(each.name, each.file, each.n_bytes) for each in found] == [
        (name, place, len(data)) for (name, data), place in zip(GOOD, places, strict=True)
    ]
    for each, (_, data) in zip(found, GOOD, strict=True):
        assert (opener.into / entry / each.file).read_bytes() == data
        assert each.sha256 == sha256(data).hexdigest()


def test_what_is_lost_or_changed_of_several_files_is_found(opener, north, tmp_path):
    upload = several()
    result = opened(opener, north, upload)
    kept = KeptFile(result.file, result.n_bytes, result.sha256)
    entry = opener.into / upload.entry.hex()

    def fault(**how):
        found = fault_of(tmp_path, result.file, kept, **how)
        return None if found is None else found.kind

    assert fault() is None
    assert fault(is_read=True) is None
    one = entry / "b.csv"
    one.write_bytes(b"3,4\n")
    assert fault() is None
    assert fault(is_read=True) == "changed"
    one.write_bytes(b"")
    assert fault() == "other length"
    one.unlink()
    assert fault() == "absent"
    told = (entry / LIST).read_bytes()
    (entry / LIST).write_bytes(b"x" * len(told))
    assert fault() == "changed"
    shutil.rmtree(entry)
    assert fault() == "absent"
    # Opened once more, all is there again, whatever was left of it.
    entry.mkdir()
    (entry / "rest").write_text("")
    assert opened(opener, north, upload) == result
    assert fault(is_read=True) is None
    assert not (entry / "rest").exists()


LIES = {
    "a name that leaves the folder": (body_of([("../x", b""), ("b", b"")]), 2),
    "a name from the root": (body_of([("/etc/passwd", b""), ("b", b"")]), 2),
    "a name twice": (body_of([("a", b""), ("a", b"")]), 2),
    "a file in a file": (body_of(DRAFT), 5),
    "fewer than it says": (body_of(GOOD), 5),
    "more than it says": (body_of(GOOD), 3),
    "bytes behind": (body_of(GOOD) + b"x", 4),
    "an end behind the body": (frame("a", 2**60) + b"x", 2),
    "a thousand million files": (b"", 10**9),
    "10 000 empty names": (frame("", 0) * 10_000, 10_000),
    "one file": (body_of(GOOD[:1]), 1),
}


@pytest.mark.parametrize(("body", "count"), LIES.values(), ids=LIES)
def test_a_body_that_lies_is_refused_and_nothing_of_it_stays(opener, north, body, count):
    data = sealed_by_nobody_honest(body, count)
    result = opened(opener, north, HandedIn(EVENT), data)
    assert result.why == OTHER_FILES
    assert [*opener.into.iterdir()] == []


def test_more_files_than_the_event_takes_are_refused(opener, north):
    few = replace(opener, most_files=3)
    assert opened(few, north, several()).why == OTHER_FILES
    assert [*opener.into.iterdir()] == []


def test_other_files_than_were_committed_to_are_refused(opener, north):
    mine = several()
    other = several([*GOOD[:3], ("SRC/ÜBUNG 1.py", b"Other")])
    assert opened(opener, north, mine, other.sealed).why == OTHER_CONTENT
    assert [*opener.into.iterdir()] == []


def test_a_bistro_that_changed_a_bad_body_is_blamed_not_its_person(opener, north):
    data = sealed_by_nobody_honest(b"", 10**9)
    result = opened(opener, north, HandedIn(EVENT), data)
    assert result.why == OTHER_FILES
    held = Upload("north", len(data), bytes(32), HandedIn(EVENT).commitment, None)
    parts = np.array([(0, 0, 0, len(data))], PIECE_OF_UPLOAD)
    assert opener.open(Opening(held, parts, DEADLINE_S)).why == LOST


@pytest.mark.parametrize("step", range(9))
def test_a_disk_that_fails_at_any_step_leaves_nothing_that_looks_whole(
    opener, north, monkeypatch, step
):
    upload, calls = several(), iter(range(1000))

    def failing(*args, **more):
        if next(calls) == step:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*args, **more)

    real = file_sets.synchronise
    monkeypatch.setattr(file_sets, "synchronise", failing)
    entry = opener.into / upload.entry.hex()
    with suppress(NotWrittenError):
        opened(opener, north, upload)
    monkeypatch.undo()
    assert [path for path in opener.into.iterdir() if path != entry] == []
    # The last sync is that of the name: all the rest is there by then.
    assert not entry.exists() or read_set(entry / LIST) is not None
    assert opened(opener, north, upload).why == ""


def test_what_a_killed_process_has_taken_apart_is_removed(opener):
    left = opener.into / ".aa.7.files.tmp"
    (left / "src").mkdir(parents=True)
    (left / "src" / "a").write_text("")
    opener.prepare()
    assert [*opener.into.iterdir()] == []


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["a", "A", "a/b"], ["a", "2/A", "3/b"]),
        (["é", "e\u0301"], ["é", "2/é"]),
        (["a?b", "a*b", "a_b"], ["a_b", "2/a_b", "3/a_b"]),
        (["2", "x", "X"], ["2", "x", "3/X"]),
        ([".files.json", ".git/a"], ["files.json", "git/a"]),
        (["x/" + "y" * 200, "x/z" + "y" * 199], ["x/" + "y" * 60, "2/" + "y" * 60]),
    ],
)
def test_safe_paths_never_collide(names, expected):
    paths = SafePaths()
    assert [paths.of(name) for name in names] == expected


def test_ten_thousand_names_that_look_alike_are_placed_soon():
    paths = SafePaths()
    found = {paths.of("?" * (1 + i % 60) + "*" * (i // 60)) for i in range(10_000)}
    assert len(found) == 10_000


def test_names_that_look_alike_make_no_more_folders_than_one_each():
    # All are in the same 15 folders, as they are called; on the disk they are alike.
    paths = SafePaths()
    found = [paths.of("d/" * 15 + chr(0xE000 + i)) for i in range(1000)]
    folders = {path[:at] for path in found for at in range(len(path)) if path[at] == "/"}
    assert len({*found}) == 1000
    assert len(folders) == 15 + 999


def test_names_that_are_made_to_collide_are_placed_soon():
    # Each folder that a name could be moved to is a file.
    taken, pairs = range(2, 3000), range(1500)
    names = [*map(str, taken), *(f"{letter}{i}" for i in pairs for letter in "xX")]
    n_looks = 0

    class Counting(SafePaths):
        def _is_free(self, placed):
            nonlocal n_looks
            n_looks += 1
            return super()._is_free(placed)

    paths = Counting()
    assert len({paths.of(name) for name in names}) == len(names)
    assert n_looks < 3 * len(names)
