"""Handing in end to end: real services, witnesses and disks; receipts that convince offline."""

from __future__ import annotations

import json
import stat
import subprocess
import time

import pytest
from instances.events import ticket_of
from instances.timestamping import World

import datacollect as dc
from datacollect.bistro.formats.log.opening import Among
from datacollect.commands.main import run
from datacollect.errors import ProblemError, TransferError


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """Two services, of which only the second runs, and three of four witnesses."""
    with World(tmp_path_factory.mktemp("running"), n_services=2) as made:
        made.start_witnesses(0, 1, 2)
        made.start(1)
        yield made


@pytest.fixture
def person(running, tmp_path, monkeypatch):
    """A folder with a file and a ticket, in which somebody works."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(running.authority))
    (tmp_path / "a.txt").write_text("mine")
    number = int.from_bytes(tmp_path.name.encode(), "big") % 2**127
    (tmp_path / "my.ticket").write_text(ticket_of(running.event, number).text)
    (tmp_path / "event.toml").write_bytes((running.folder / "event.toml").read_bytes())
    return tmp_path


def handed_in(capsys, *arguments: str) -> tuple[int, dict]:
    code = run(["upload", *arguments, "--event", "event.toml", "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.slow
def test_file_is_sealed_proved_by_the_service_that_is_there_and_verified_offline(person, capsys):
    code, told = handed_in(capsys, "a.txt", "--ticket", "my.ticket")
    assert (code, told["complete"], told["files"][0]["outcome"]) == (0, True, "in time")
    assert stat.S_IMODE((person / "a.txt.keep").stat().st_mode) == 0o600
    # What stands nowhere else is not needed any more.
    for file, covers in ((None, "some bytes"), ("a.txt", "the file"), ("a.txt.keep", None)):
        verdict = dc.verify_receipt("a.txt.receipt.json", "event.toml", file=file)
        assert verdict.is_in_time, verdict
        assert covers in (None, verdict.covers)
    first = (person / "a.txt.receipt.json").read_bytes()
    again_code, again = handed_in(capsys, "a.txt")
    assert (again_code, again["files"][0]["entry"]) == (0, told["files"][0]["entry"])
    assert (person / "a.txt.receipt.json").read_bytes() == first


@pytest.mark.slow
def test_changed_file_is_said_and_what_was_sealed_can_be_gone_on_with(person, capsys):
    assert handed_in(capsys, "a.txt", "--ticket", "my.ticket")[0] == 0
    kept = (person / "a.txt.keep").read_bytes()
    # Touched alone is not changed.
    (person / "a.txt").touch()
    assert handed_in(capsys, "a.txt")[0] == 0
    (person / "a.txt").write_text("mine, mended")
    assert run(["upload", "a.txt", "--event", "event.toml"]) == 2
    said = capsys.readouterr().err
    assert "was changed since it was sealed" in said
    assert "-o" in said
    code, told = handed_in(capsys, "a.txt.keep")
    assert (code, told["files"][0]["outcome"]) == (0, "in time")
    assert (person / "a.txt.keep").read_bytes() == kept
    verdict = dc.verify_receipt("a.txt.receipt.json", "event.toml", file="a.txt")
    assert verdict.outcome == "not proved"
    (person / "second").mkdir()
    assert handed_in(capsys, "a.txt", "--ticket", "my.ticket", "-o", "second")[0] == 0


def test_several_files_are_one_draft_or_none_where_one_cannot_be_taken(person, capsys):
    (person / "empty").mkdir()
    bad = {
        "none.txt": "no such file",
        "": "an empty name",
        "/dev/null": "not a regular file",
        # It has no bytes by its head, and an error when it is read.
        "/proc/self/mem": "cannot be read",
    }
    for name, why in bad.items():
        assert run(["upload", "a.txt", name, "--event", "event.toml", "--ticket", "my.ticket"]) == 2
        out, err = capsys.readouterr()
        assert (out, why in " ".join(err.split())) == ("", True), err
    (person / "src").mkdir()
    (person / "src" / "b").write_text("")
    code, told = handed_in(capsys, "a.txt", "src", "--ticket", "my.ticket", "-o", "kept")
    assert (code, told["complete"]) == (0, True)
    [draft] = told["files"]
    assert (draft["file"], draft["outcome"]) == ("kept/a.txt+1", "in time")
    assert draft["parts"] == [
        {"name": "a.txt", "bytes": 4, "proof": "kept/a.txt+1.proofs/a.txt.proof"},
        {"name": "src/b", "bytes": 0, "proof": "kept/a.txt+1.proofs/src/b.proof"},
    ]
    verdict = dc.verify_receipt(draft["receipt"], "event.toml", file="src/b")
    assert (verdict.is_in_time, verdict.among) == (True, Among(1, 2))
    # Again, and by the .keep alone: the same entry.
    for named in (["src", "a.txt", "-o", "kept"], ["kept/a.txt+1.keep"]):
        code, again = handed_in(capsys, *named, "--ticket", "my.ticket")
        assert (code, again["files"][0]["entry"]) == (0, draft["entry"])
    assert run(["upload", "kept/a.txt+1.keep", "--event", "event.toml"]) == 0
    out, err = capsys.readouterr()
    assert "src/b (0 B)" in out
    assert "kept/a.txt+1.proofs for ever" in " ".join(err.split())


@pytest.mark.slow
def test_two_processes_that_hand_in_one_file_make_one_entry(person, running):
    command = running.command(
        *("upload", "a.txt", "--event", "event.toml", "--ticket", "my.ticket", "--json")
    )
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    both = [subprocess.Popen(command, cwd=person, **streams) for _ in range(2)]
    entries = set()
    for each in both:
        out, err = each.communicate()
        if each.returncode == 0:
            entries.add(json.loads(out)["files"][0]["entry"])
        else:
            assert (each.returncode, out) == (2, "")
            assert "another process is handing it in" in " ".join(err.split())
    verdict = dc.verify_receipt("a.txt.receipt.json", "event.toml", file="a.txt")
    assert verdict.is_in_time
    assert len(entries) == 1
    kept = {path.name for path in person.iterdir() if path.name.startswith((".", "a.txt"))}
    assert kept == {"a.txt", "a.txt.keep", "a.txt.proof", "a.txt.receipt.json"}


def test_words_for_people_tell_both_clocks_and_what_to_keep(person, capsys, monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert run(["upload", "a.txt", "--event", "event.toml", "--ticket", "my.ticket"]) == 0
    finally:
        monkeypatch.delenv("TZ")
        time.tzset()
    out, err = capsys.readouterr()
    assert "a.txt: in time\nhanded in at " in out
    assert out.count(" UTC)") == 2
    assert "hand in until " in err
    assert "Proved by 1 log and 3 of 4 witnesses" in " ".join(out.split())
    said = " ".join(err.split())
    assert "keep a.txt.receipt.json and a.txt.proof for ever, a.txt.keep until it is col" in said
    assert "a.txt.proof shows, beside the receipt and the file, that this file is the one" in said
    assert "can test guesses of what is in the file. Until the file is collected, it shows" in said
    assert run(["verify", "a.txt.receipt.json", "--event", "event.toml"]) == 0
    assert "\nin time, for some bytes\n" in capsys.readouterr().out


def test_the_folder_of_what_is_kept_is_made_before_anything_is_sealed(person, capsys):
    arguments = ["a.txt", "--event", "event.toml", "--ticket", "my.ticket", "-o", "new/receipts"]
    assert run(["upload", *arguments]) == 0
    assert (person / "new" / "receipts" / "a.txt.keep").exists()
    (person / "taken").write_text("")
    assert run(["upload", *arguments[:-1], "taken/receipts"]) != 0
    assert "taken" in capsys.readouterr().err
    assert not [*person.glob("taken*/**/*.keep")]


def test_who_failed_is_named_once_though_all_went_well_in_the_end(
    running, person, capsys, monkeypatch
):
    monkeypatch.setattr("datacollect.bistro.person.upload.random.sample", lambda found, _: [*found])
    (person / "b.txt").write_text("mine, too")
    names = ["a.txt", "b.txt", "--event", "event.toml", "--ticket", "my.ticket"]
    assert run(["upload", *names]) == 0
    err = " ".join(capsys.readouterr().err.split())
    away, there = (service.url for service in running.event.services)
    assert err.count(f"{away}: ") == 1
    assert there not in err


def test_second_run_says_nothing_of_what_the_first_has_done(person, capsys):
    arguments = ["upload", "a.txt", "--event", "event.toml"]
    assert run([*arguments, "--ticket", "my.ticket"]) == 0
    first = capsys.readouterr().err
    for line in ("sealing a.txt", "handing in a.txt", "waiting for witnesses"):
        assert line in first
    assert run(arguments) == 0
    said = " ".join(capsys.readouterr().err.split())
    until = "a.txt.keep until it is collected"
    assert said == f"keep a.txt.receipt.json and a.txt.proof for ever, {until}"


def test_without_any_service_no_receipt_is_there_and_none_is_named(person, capsys, monkeypatch):
    def away(*_, **__):
        raise TransferError("the network is away")

    monkeypatch.setattr("datacollect.net.http_asking.dial", away)
    monkeypatch.setattr("datacollect.bistro.person.upload.PATIENCE_S", 0.5)
    code, told = handed_in(capsys, "a.txt", "--ticket", "my.ticket")
    (file,) = told["files"]
    assert (code, file["keep"], file["receipt"]) == (3, "a.txt.keep", None)
    assert run(["upload", "a.txt", "--event", "event.toml"]) == 3
    err = capsys.readouterr().err
    assert "keep a.txt.keep and a.txt.proof\n" in err
    assert "receipt" not in err
    assert not (person / "a.txt.receipt.json").exists()


def test_elsewhere_that_does_nothing_says_so(person, capsys):
    given = ("a.txt", "--elsewhere", "--ticket", "my.ticket")
    code, told = handed_in(capsys, *given)
    assert code == 0
    assert told["files"][0]["troubles"][-1] == (
        "nothing is sent elsewhere: the event has no bistros"
    )
    assert run(["upload", *given, "--commit-only", "--event", "event.toml"]) == 2
    assert "--commit-only and --elsewhere cannot be combined" in capsys.readouterr().err
    with pytest.raises(ProblemError, match="give one of them"):
        dc.upload("a.txt", "event.toml", commit_only=True, elsewhere=True)
