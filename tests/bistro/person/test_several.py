"""Several files handed in as one: one seal, one receipt, a proof for each; what is refused."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from instances.custody import CHANGES
from instances.events import event_bytes, proof_of, ticket_of
from judges import bistro_verifier as judge

import datacollect as dc
from datacollect.bistro.formats.event.file import read_event
from datacollect.bistro.formats.log.content import n_files
from datacollect.bistro.formats.log.opening import Among
from datacollect.bistro.formats.receipt.content_proof import read_content_proof
from datacollect.bistro.formats.sealing import keep as keeping
from datacollect.bistro.formats.sealing.keep import read_keep
from datacollect.bistro.person import showing
from datacollect.bistro.person.items import items_of, kept_item, sealed_anew
from datacollect.commands.main import run
from datacollect.errors import NotWrittenError, ProblemError

DATA = event_bytes(**CHANGES)
EVENT = read_event(DATA)
FILES = {"a.txt": b"mine", "empty": b"", "src/Übung 1.py": b"pass\n"}
NAMED = ["src", "a.txt", "empty"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with files, an event and a ticket; nobody is there to commit to."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "event.toml").write_bytes(DATA)
    (tmp_path / "my.ticket").write_text(ticket_of(EVENT).text)
    (tmp_path / "src").mkdir()
    for name, data in FILES.items():
        (tmp_path / name).write_bytes(data)
    return tmp_path


def sealed(named=NAMED, into=None, most=EVENT.most_files):
    [item] = items_of(named, into, most)
    with kept_item(item, EVENT, DATA, ticket_of(EVENT)) as (kept, receipt):
        proof = proof_of(receipt.entry, EVENT.services[0].log.name, EVENT.latest_s - 2)
        item.save(receipt.with_more(proofs=[proof]))
        return item, kept, receipt


def refused(named, match, into=None, most=EVENT.most_files):
    before = sorted(Path().iterdir())
    with pytest.raises(ProblemError, match=match):
        sealed(named, into, most)
    assert sorted(Path().iterdir()) == before


def test_several_files_are_one_entry_whatever_order_they_are_named_in(here):
    item, kept, receipt = sealed()
    assert n_files(kept.inner.header) == 3
    assert [each.name for each in kept.files] == [*FILES]
    assert b"Name" not in kept.inner.header
    assert item.name == "a.txt+2 (3 files)"
    again, kept_again, receipt_again = sealed(["empty", "a.txt", "src/"])
    assert (again.keep, kept_again, receipt_again.commitment) == (
        item.keep,
        kept,
        receipt.commitment,
    )
    # The .keep alone goes on, too, without any of the files.
    for name in FILES:
        (here / name).unlink()
    [alone] = items_of(["a.txt+2.keep"], None, 1)
    with kept_item(alone, EVENT, DATA, None) as (found, _):
        assert found == kept
    kept_names = {path.name for path in here.iterdir() if path.name.startswith(("a.", "."))}
    assert kept_names == {"a.txt+2.keep", "a.txt+2.receipt.json", "a.txt+2.proofs"}


def test_a_folder_is_all_that_is_in_it(here):
    (here / "src" / "b").mkdir()
    (here / "src" / "b" / "c").write_text("c")
    item, kept, _ = sealed(["src"])
    assert [each.name for each in kept.files] == ["src/b/c", "src/Übung 1.py"]
    assert item.keep.name == "src.keep"
    # Proofs stand beside it: named again it has the same files.
    assert sealed(["src"])[1] == kept
    # One file alone is handed in as one.
    (here / "src" / "b" / "c").unlink()
    (here / "src" / "b").rmdir()
    (here / "second").mkdir()
    item, kept, _ = sealed(["src"], into="second")
    assert (kept.files, item.keep.name) == ((), "src.keep")


@pytest.mark.parametrize("named", [".", ".."])
def test_what_is_kept_of_the_folder_one_stands_in_lies_beside_it(here, monkeypatch, named):
    (here / "src" / "b").mkdir()
    (here / "src" / "b" / "c").write_text("c")
    monkeypatch.chdir(here / "src" if named == "." else here / "src" / "b")
    item, kept, _ = sealed([named])
    assert [each.name for each in kept.files] == ["src/b/c", "src/Übung 1.py"]
    assert item.keep.resolve() == here / "src.keep"
    # Else it would be among the files when the same command is run again.
    assert sealed([named])[1] == kept


def test_a_keep_with_names_that_lead_elsewhere_is_none(here):
    """As somebody else may have made it: proofs and files are looked for by these names."""
    item, kept, _ = sealed()
    data = item.keep.read_bytes()
    for name in ("../outside", "/outside"):
        first = kept.files[0]._replace(name=name)
        told = keeping._told(replace(kept, files=(first, *kept.files[1:])))
        end = told + keeping._end_of(told, keeping.SEVERAL_MAGIC)
        item.keep.write_bytes(data[: kept.sealed.n_bytes] + end)
        with pytest.raises(ProblemError, match="what it says of its ciphertext is damaged"):
            read_keep(item.keep)


def test_each_proof_shows_its_file_alone_by_the_command_and_by_the_page(here, capsys):
    item, _, receipt = sealed()
    receipt_file = item.receipt.read_bytes()
    (here / "a.txt+2.keep").unlink()
    for i, (name, data) in enumerate(FILES.items()):
        place = here / "a.txt+2.proofs" / f"{name}.proof"
        assert stat.S_IMODE(place.stat().st_mode) == 0o600
        proof = read_content_proof(place.read_bytes())
        assert (proof.entry, proof.among) == (receipt.entry, Among(i, 3))
        assert judge.shows(DATA, receipt_file, place.read_bytes(), data)
        assert not judge.shows(DATA, receipt_file, place.read_bytes(), data + b"x")
        verdict = dc.verify_receipt("a.txt+2.receipt.json", "event.toml", file=name)
        assert (verdict.outcome, verdict.covers, verdict.among) == (
            "in time",
            "the file",
            Among(i, 3),
        )
    given = ("verify", "a.txt+2.receipt.json", "--event", "event.toml", "--file", "a.txt")
    proof = ("--proof", "a.txt+2.proofs/a.txt.proof")
    assert run([*given, *proof]) == 0
    assert capsys.readouterr().out.startswith("a.txt (file 1 of 3) existed by Fri 2027-04-16")
    assert run([*given, *proof, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["among"] == {"index": 0, "count": 3}
    assert run([*given, "--proof", "a.txt+2.proofs/empty.proof"]) == 1
    assert "a.txt is not what was handed in" in " ".join(capsys.readouterr().out.split())


def test_other_files_under_the_same_name_are_refused_and_the_seal_is_gone_on_with(here):
    sealed(["a.txt", "empty"])
    (here / "other").write_text("x")
    refused(["a.txt", "other"], r"a\.txt\+1\.keep: is of other files: 'empty' is not named")
    (here / "empty").write_bytes(b"no more")
    refused(["a.txt", "empty"], r"empty: was changed since it was sealed as a\.txt\+1\.keep")
    # As it was again, by its bytes: when it was written does not matter.
    (here / "empty").write_bytes(b"")
    os.utime(here / "empty", (1, 1))
    sealed(["a.txt", "empty"])


def test_files_are_sealed_anew_where_the_ciphertext_is_damaged(here):
    item, kept, _ = sealed()
    data = bytearray(item.keep.read_bytes())
    data[200] ^= 1
    item.keep.write_bytes(data)
    with kept_item(item, EVENT, DATA, None) as (found, _):
        assert not found.is_whole
        made, is_new = sealed_anew(item, found, EVENT)
    assert is_new
    assert made.sealed.content_p == kept.sealed.content_p
    assert read_keep(item.anew) == made
    item.anew.unlink()
    (here / "src" / "Übung 1.py").write_bytes(b"pass!")
    with pytest.raises(ProblemError, match=r"src/Übung 1\.py: has changed since it was handed in"):
        sealed_anew(item, kept, EVENT)
    assert not item.anew.exists()
    refused(
        NAMED, r"its ciphertext is damaged, and src/Übung 1\.py, which must be sealed again, is"
    )


def test_names_that_would_be_one_are_refused_before_anything_is_sealed(here):
    (here / "src" / "a.txt").write_text("")
    refused(["a.txt", "src/a.txt"], r"^a\.txt and src/a\.txt would both be called 'a\.txt'")
    (here / "src" / "A.TXT").write_text("")
    refused(["src"], r"^src/A\.TXT and src/a\.txt would both be called 'src/a\.txt', or so that")
    (here / "src" / "A.TXT").unlink()
    for name in ("e\u0301", "é"):
        (here / "src" / name).write_text("")
    refused(["src"], r"would both be called")


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("a\\b", "its name has a control character or a backslash; rename it"),
        ("a\nb", "its name has a control character or a backslash; rename it"),
        ("x" * 252, "its name has more than 249 bytes: its proof is kept as NAME.proof; rename"),
        ("/".join("abcdefghijklmnopq"), "its name has more than 16 parts; rename it"),
    ],
)
def test_names_that_some_system_does_not_take_are_refused(here, name, match):
    (here / name).parent.mkdir(parents=True, exist_ok=True)
    (here / name).write_text("")
    refused([name.partition("/")[0], "a.txt"], match)


def test_what_is_no_file_in_a_folder_is_refused(here):
    sealed(["a.txt", "empty"])
    (here / "src" / "kept").symlink_to(here / "a.txt")
    refused(["src"], r"src/kept: is not a regular file; take it out of the folder")
    (here / "src" / "kept").unlink()
    (here / "src" / "loop").symlink_to(here / "src")
    refused(["src"], r"src/loop: is not a regular file")
    (here / "src" / "loop").unlink()
    (here / "a.txt+1.keep").rename(here / "src" / "a.keep")
    refused(["src"], r"src/a\.keep: was written when something was handed in, and holds secrets")
    # What is called so by others is a file as any other.
    (here / "src" / "a.keep").write_text("")
    sealed(["src"])
    (here / "none").mkdir()
    refused(["none"], r"none: no file is in it; put one there")
    refused(["a.txt", "nowhere"], r"nowhere: no such file")


def test_more_files_than_the_event_takes_are_refused_in_words(here, capsys):
    refused(["src", "a.txt", "empty"], r"these are more than 2 files, as many as", most=2)
    for i in range(30):
        (here / "src" / f"{i}").write_text("")
    refused(["src"], r"the folder has more than 30 files, as many as the event takes", most=30)
    # Of an event that takes one, each is a draft of its own, and a folder is none.
    one, other = items_of(["a.txt", "empty"], None, 1)
    assert (one.several, other.several) == ((), ())
    [folder] = items_of(["src"], None, 1)
    assert "is a folder; pack it into one file" in str(folder.error)


def test_a_disk_that_fails_leaves_no_half_of_the_proofs(here, monkeypatch):
    """What stands there is all of it, or nothing; the next start writes it."""

    def failing(path, **_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(showing, "synchronise", failing)
        with pytest.raises(NotWrittenError, match="No space left on device"):
            sealed()
    assert not (here / "a.txt+2.proofs").exists()
    sealed()
    one = here / "a.txt+2.proofs" / "src" / "Übung 1.py.proof"
    data = one.read_bytes()
    one.unlink()
    one.parent.rmdir()
    sealed()
    assert one.read_bytes() == data
    one.write_text("somebody's own")
    with pytest.raises(ProblemError, match="is not the proof of what is handed in"):
        sealed()


def test_two_drafts_whose_names_begin_alike_write_their_proofs_at_once(here, monkeypatch):
    """The second is handed in while the first waits for the disk, as two programs do."""
    alike = "ä" * 100
    waiting = [[f"{alike}1.txt", "ü.txt"], [f"{alike}2.txt", "ü.txt"]]
    (here / "ü.txt").write_text("beside both")
    for name, _ in waiting:
        (here / name).write_text(name)
    at_the_disk = showing.synchronise

    def slow(path, **keywords):
        if waiting:
            sealed(waiting.pop())
        return at_the_disk(path, **keywords)

    monkeypatch.setattr(showing, "synchronise", slow)
    sealed(waiting.pop(0))
    for i in (1, 2):
        made = {path.name for path in (here / f"{alike}{i}.txt+1.proofs").iterdir()}
        assert made == {f"{alike}{i}.txt.proof", "ü.txt.proof"}
    assert not [*here.glob(".*.tmp")]


def test_secrets_of_one_file_are_in_no_proof_of_another(here):
    _, kept, _ = sealed()
    proofs = {path.name: path.read_text() for path in (here / "a.txt+2.proofs").rglob("*.proof")}
    assert len(proofs) == 3
    keys = {name: json.loads(text)["key"] for name, text in proofs.items()}
    for name, text in proofs.items():
        assert kept.inner.secret.hex() not in text
        assert "src" not in text
        assert not [other for other, key in keys.items() if other != name and key in text]
