"""Tickets as files, links and cards to print; one that is lost."""

from __future__ import annotations

import csv
import re

import pytest
from instances.events import event_bytes, key_of

from datacollect.bistro.destination.keys import read_tickets
from datacollect.bistro.formats.event.file import read_event
from datacollect.bistro.formats.event.tickets import owned, read_ticket
from datacollect.bistro.organiser import ticket_files
from datacollect.bistro.organiser.extend import Extended
from datacollect.bistro.organiser.ticket_files import replace_ticket, write_tickets
from datacollect.errors import ProblemError
from datacollect.net.keys import write_private_key

PAGE = "https://hand-in.school.example"
PEOPLE = 'name,class\n"Müller, Jan",7b\nO\'Neil,7a\n"<b>Eve</b>",7b\n'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "event.toml").write_bytes(event_bytes())
    (tmp_path / "people.csv").write_text(PEOPLE)
    write_private_key("organiser.key", key_of("organiser"))
    return tmp_path


def written(**more):
    return write_tickets("event.toml", "people.csv", "organiser.key", "tickets", **more)


def test_a_link_has_at_most_200_letters_and_is_the_ticket(folder):
    assert written(page=PAGE).n_new == 3
    event = read_event((folder / "event.toml").read_bytes(), "event.toml")
    for stem in ("Müller, Jan", "O'Neil"):
        link = folder / "tickets" / f"{stem}.link"
        assert len(link.read_text().strip()) <= 200
        ticket = read_ticket(folder / "tickets" / f"{stem}.ticket", event)
        assert read_ticket(link, event) == ticket
        owned(ticket, event)


def test_a_sheet_has_a_card_for_each_a_class_after_the_other(folder):
    done = written(page=PAGE, sheet="sheet.html")
    assert done.sheet_file == "sheet.html"
    text = (folder / "sheet.html").read_text()
    assert (folder / "sheet.html").stat().st_mode & 0o777 == 0o600
    assert re.findall(r"<h2>(.*?)</h2>", text) == ["7a", "7b"]
    assert re.findall(r'class="name">(.*?)</p>', text) == [
        "O&#x27;Neil",
        "Müller, Jan",
        "&lt;b&gt;Eve&lt;/b&gt;",
    ]
    assert text.count("<svg") == 3
    assert "is a password" in text
    link = (folder / "tickets" / "O'Neil.link").read_text().strip()
    assert link in text


def test_a_sheet_needs_the_address_of_the_page(folder):
    with pytest.raises(ProblemError, match="--page"):
        written(sheet="sheet.html")


def test_a_lost_ticket_is_replaced_and_revoked(folder, monkeypatch):
    written(page=PAGE)
    asked = []

    def extend(event, key, *, revoke):
        asked.append((event, key, revoke))
        return Extended(1, "note", ("https://log.example",), {}, None)

    monkeypatch.setattr(ticket_files, "extend", extend)
    path = folder / "tickets" / "Müller, Jan.ticket"
    event = read_event((folder / "event.toml").read_bytes(), "event.toml")
    before = read_ticket(path, event)
    done = replace_ticket("event.toml", "Müller, Jan", "organiser.key", "tickets", PAGE)
    after = read_ticket(path, event)
    assert done.file == "tickets/Müller, Jan.ticket"
    assert after != before
    assert read_ticket(folder / "tickets" / "Müller, Jan.link", event) == after
    assert asked == [("event.toml", "organiser.key", [owned(before, event).token_sha256.hex()])]
    with (folder / "tickets" / "tickets.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["person"] == "Müller, Jan"]
    assert [row["token_sha256"] for row in rows] == [
        owned(each, event).token_sha256.hex() for each in (before, after)
    ]
    # Whoever collects still knows the first: what was committed to before counts.
    assert set(read_tickets("tickets", event)) >= {before.number.hex(), after.number.hex()}
    # The command again, as for everybody, keeps the new one.
    assert written(page=PAGE).n_kept == 3
    assert read_ticket(path, event) == after


def test_who_has_no_ticket_has_lost_none(folder):
    written()
    with pytest.raises(ProblemError, match="did you mean 'Müller, Jan'"):
        replace_ticket("event.toml", "Müller Jan", "organiser.key", "tickets")
