"""Tickets as files, links and cards to print; one that is lost."""

from __future__ import annotations

import csv
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from instances.events import event_bytes, key_of

from datacollect.bistro.destination.keys import read_tickets
from datacollect.bistro.formats.event.file import read_event
from datacollect.bistro.formats.event.tickets import owned, read_ticket
from datacollect.bistro.organiser import ticket_files
from datacollect.bistro.organiser.extend import Extended
from datacollect.bistro.organiser.spreadsheets import table_text, text_of_cell
from datacollect.bistro.organiser.ticket_files import (
    read_ticket_list,
    replace_ticket,
    write_ticket_list,
    write_tickets,
)
from datacollect.errors import ProblemError
from datacollect.net.keys import write_private_key

# What begins a formula, for some in its wide form.
FORMULAS = tuple("=+-@\uff1d\uff0b\uff0d\uff20")
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


def test_names_that_a_spreadsheet_would_run_are_read_back_as_they_were(folder):
    names = ["=cmd|'/C calc'!A0", "@ann", "-7", "+41", "'t Hooft", "Ann;=1+1", "'=x", "Ann"]
    text = "\n".join(f'"{name}"' for name in names)
    (folder / "people.csv").write_text(f"person\n{text}\n")
    for n_new in (len(names), 0):
        assert written().n_new == n_new
        assert [each.person for each in read_ticket_list(folder / "tickets/tickets.csv")] == names
    cells = (folder / "tickets/tickets.csv").read_text().splitlines()[1:]
    assert not any(re.search(r'(^"?|;)[=+@-]', cell) for cell in cells)


@given(st.lists(st.lists(st.text(max_size=6), min_size=3, max_size=3), max_size=4))
def test_table_is_read_back_as_it_was_and_begins_no_formula(rows):
    text = table_text(("a", "b", "c"), rows)
    read = [*csv.reader(io.StringIO(text, newline=""))][1:]
    assert [[text_of_cell(cell) for cell in row] for row in read] == rows
    for separator in (",", ";", "\t"):
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator):
            assert not any(cell.lstrip().startswith(FORMULAS) for cell in row)


def test_list_of_an_older_version_is_read_and_goes_on_with_tokens(folder):
    written()
    path = folder / "tickets/tickets.csv"
    new = read_ticket_list(path)
    # There names stood as they are, and no tokens.
    older = "".join(f'"{row.person}",{row.number},{row.token_sha256}\n' for row in new)
    path.write_text("person,ticket,token_sha256\n" + older.replace("O'Neil", "'=x"))
    assert [row.person for row in read_ticket_list(path)] == ["Müller, Jan", "'=x", "<b>Eve</b>"]
    assert all(not row.token for row in read_ticket_list(path))
    written()
    assert read_ticket_list(path) == new


def test_tokens_of_the_list_are_of_this_event_and_of_their_numbers(folder):
    written()
    event = read_event((folder / "event.toml").read_bytes(), "event.toml")
    rows = read_ticket_list(folder / "tickets/tickets.csv")
    (folder / "there").mkdir()
    for wrong in (rows[0]._replace(token=rows[1].token), rows[0]._replace(token="x")):
        write_ticket_list(folder / "there/tickets.csv", [wrong])
        with pytest.raises(ProblemError, match=r"tickets.csv: the row of 'Müller, Jan'"):
            read_tickets(folder / "there", event)


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
