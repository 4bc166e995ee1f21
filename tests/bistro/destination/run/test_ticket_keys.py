"""Tickets that are written while an event runs."""

from __future__ import annotations

import pytest
from instances.bistro_folders import collecting_event
from instances.events import ticket_of

from datacollect.bistro.destination.run.event_run import Tickets
from datacollect.errors import ProblemError

EVENT = collecting_event()


def write_tickets(folder, number):
    folder.mkdir(exist_ok=True)
    (folder / f"{number}.ticket").write_text(ticket_of(EVENT, number).text)


def test_a_damaged_ticket_that_comes_later_ends_nothing(tmp_path):
    folder, told = tmp_path / "tickets", []
    keys = Tickets(folder, told.append)
    with pytest.raises(ProblemError, match="must hold everybody's tickets"):
        keys.of(EVENT)
    write_tickets(folder, 1)
    first = keys.of(EVENT)
    assert len(first) == 1
    (folder / "half.ticket").write_text("half")
    assert keys.of(EVENT) == first
    (line,) = told
    assert "half.ticket" in line
    assert line.endswith("; the tickets known before still count")
    (folder / "half.ticket").unlink()
    write_tickets(folder, 2)
    assert len(keys.of(EVENT)) == 2


def test_an_event_for_everybody_has_no_tickets():
    assert Tickets(None, print).of(EVENT) is None
