"""An event that was killed while it was made: the same command goes on, with whole files."""

from __future__ import annotations

import errno
import os
import stat

import pytest
from instances.events import key_of

from datacollect.bistro.formats.event.tickets import owned, read_ticket
from datacollect.bistro.joining.invitation import Invitation
from datacollect.bistro.joining.joining import Joined, _keep, _require_own_folder, _unit
from datacollect.bistro.one_host.places import Places
from datacollect.bistro.one_host.quickstart import Request, held, prepared, require_enough
from datacollect.bistro.one_host.setting_up import event_of, keep_people, make_folder, make_keys
from datacollect.bistro.one_host.ways import Ways
from datacollect.bistro.organiser.ticket_files import _write_sheet
from datacollect.errors import NotWrittenError
from datacollect.net.keys import read_private_key


class Killed(BaseException):
    """Nothing is done any more, nothing tidied up."""


@pytest.fixture
def places(tmp_path, monkeypatch):
    monkeypatch.setattr("datacollect.bistro.one_host.ways.require_free_port", lambda _: None)
    monkeypatch.setattr("datacollect.bistro.one_host.quickstart.require_free_port", lambda _: None)
    (tmp_path / "roster.csv").write_text("person\nAnn\nBob\n")
    return Places(tmp_path / "essay")


@pytest.fixture
def killed(monkeypatch):
    """Does something that is killed when a file is opened, and nothing of it written."""

    def kill(number, *_):
        os.close(number)
        raise Killed

    def does(do):
        with monkeypatch.context() as patched:
            patched.setattr(os, "fdopen", kill)
            with pytest.raises(Killed):
                do()

    return does


def test_folder_that_was_just_begun_is_gone_on_with(places, tmp_path):
    roster = str(tmp_path / "roster.csv")
    ways = Ways("hand-in.example", "127.0.0.1:9", is_trial=True)
    asked = Request(str(places.folder), "UTC", deadline="2090-01-31", people=roster, ways=ways)
    make_folder(places)
    require_enough(asked, places)
    with held(places):
        require_enough(asked, places)
        # As where certbot gets no certificate at first.
        keep_people(places, roster)
        places.acme.mkdir()
    require_enough(asked, places)


def test_key_is_whole_or_not_there(places, killed):
    make_folder(places)
    killed(lambda: make_keys(places, ["organiser"]))
    make_keys(places, ["organiser"])
    assert read_private_key(places.key("organiser"))
    assert stat.S_IMODE(places.key("organiser").stat().st_mode) == 0o600


def test_roster_and_cards_are_whole_or_as_they_were(places, killed, tmp_path):
    make_folder(places)
    keep_people(places, str(tmp_path / "roster.csv"))
    was = places.people.read_bytes()
    (tmp_path / "roster.csv").write_text("person\nAnn\n")
    killed(lambda: keep_people(places, str(tmp_path / "roster.csv")))
    assert places.people.read_bytes() == was
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("datacollect.bistro.organiser.ticket_files.sheet_html", lambda *_: "x")
        killed(lambda: _write_sheet(places.sheet, None, []))
    # Once cards are there, nobody looks whether all have one.
    assert not places.sheet.exists()


@pytest.mark.slow
def test_disk_that_is_full_at_some_step_is_said_and_the_same_call_goes_on(places, tmp_path):
    ways = Ways("127.0.0.1", "127.0.0.1:9", is_trial=True)
    roster = str(tmp_path / "roster.csv")
    asked = Request(str(places.folder), "UTC", deadline="2090-01-31", people=roster, ways=ways)
    fsync, n_left = os.fsync, 0

    def full(number: int) -> None:
        nonlocal n_left
        n_left -= 1
        if n_left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(number)

    said = []
    for n_synced in (0, 1, 2, 4, 7, 11, 16, 10**9):
        n_left = n_synced
        with pytest.MonkeyPatch.context() as disk:
            disk.setattr(os, "fsync", full)
            try:
                with prepared(asked) as found:
                    n_left = 10**9
            except NotWrittenError as error:
                said.append(str(error))
    # Each start has gone on from the one before; tickets are for the event that is there.
    assert len(said) >= 4
    assert all("No space left on device" in each for each in said)
    assert all(str(places.folder) in each for each in said)
    assert found.event.id == event_of(places).id
    for name in ("Ann", "Bob"):
        owned(read_ticket(places.tickets / f"{name}.ticket", found.event), found.event)
    assert places.sheet.read_text().count("<svg") == 2


def test_host_that_joins_goes_on_wherever_it_was_killed(places, killed):
    line = Invitation("https://o.example/join", key_of("o").public, "00" * 8, bytes(16), 2**32)
    make_folder(places)
    _require_own_folder(places, line, "witness")
    kept = places.folder / "invitation"
    killed(lambda: _keep(kept, line.text))
    _require_own_folder(places, line, "witness")
    _keep(kept, line.text)
    make_keys(places, ["witness"])
    killed(lambda: _keep(kept, line.text))
    _require_own_folder(places, line, "witness")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_server_runs_as_who_has_joined_not_as_root(tmp_path, monkeypatch):
    # Systemd runs a unit that names nobody as root.
    done = Joined(tmp_path / "a 100% part", "witness", ("witness", "witness.toml"))
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000)
    unit = _unit(done).splitlines()
    assert "User=4000000" in unit
    monkeypatch.setattr(os, "getuid", lambda: 0)
    assert "User=root" in _unit(done).splitlines()
    # What a percent sign begins means something else there.
    assert f"WorkingDirectory={tmp_path}/a 100%% part" in unit


def test_folder_that_was_there_is_for_its_owner_alone_from_then_on(places):
    places.folder.mkdir(mode=0o755)
    make_folder(places)
    assert stat.S_IMODE(places.folder.stat().st_mode) == 0o700
    # What its owner then allows stays.
    make_keys(places, ["organiser"])
    places.folder.chmod(0o750)
    make_folder(places)
    assert stat.S_IMODE(places.folder.stat().st_mode) == 0o750
