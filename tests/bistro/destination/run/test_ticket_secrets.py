"""Tickets that are written while an event runs."""

from __future__ import annotations

import pytest
from instances.bistro_folders import collecting_event, secret_of
from instances.events import key_of

from datacollect.bistro.destination.run.event_run import TicketSecrets
from datacollect.bistro.formats.event.tickets import new_ticket
from datacollect.errors import ProblemError

EVENT = collecting_event()


def write_tickets(folder, number):
    made = new_ticket(EVENT, number.to_bytes(16, "big"), secret_of(number), key_of("organiser"))
    folder.mkdir(exist_ok=True)
    (folder / f"{number}.ticket").write_text(made.text)


def test_a_damaged_ticket_that_comes_later_ends_nothing(tmp_path):
    folder, told = tmp_path / "tickets", []
    secrets = TicketSecrets(folder, told.append)
    with pytest.raises(ProblemError, match="must hold the tickets of all people"):
        secrets.of(EVENT)
    write_tickets(folder, 1)
    first = secrets.of(EVENT)
    assert len(first) == 1
    (folder / "half.ticket").write_text("half")
    assert secrets.of(EVENT) == first
    (line,) = told
    assert "half.ticket" in line
    assert line.endswith("; the tickets that were known before count")
    (folder / "half.ticket").unlink()
    write_tickets(folder, 2)
    assert len(secrets.of(EVENT)) == 2


def test_an_event_for_everybody_has_no_tickets():
    assert TicketSecrets(None, print).of(EVENT) is None
