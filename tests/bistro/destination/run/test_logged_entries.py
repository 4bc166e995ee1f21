"""What is known of logs: read once, kept, never less than before."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from hashlib import sha256

import numpy as np
import pytest
from instances.bistro_folders import collecting_event

from datacollect.bistro.destination import kept_logs
from datacollect.bistro.destination.register import Register
from datacollect.bistro.destination.run.log_table import LogTable
from datacollect.bistro.destination.run.logged_entries import (
    AGAIN_S,
    LOGGED_WITHIN_S,
    LoggedEntries,
)
from datacollect.errors import TransferError

EVENT = collecting_event()
URLS = tuple(each.url for each in EVENT.services)
READ_S = EVENT.latest_s + LOGGED_WITHIN_S + 1
# Some end with zeros.
ENTRIES = [sha256(b"%d" % i).digest()[: 32 - i % 3] + bytes(i % 3) for i in range(7)]


def table(*numbers, time_s=EVENT.latest_s):
    entries = np.array([ENTRIES[i] for i in sorted(numbers, key=ENTRIES.__getitem__)], "S32")
    return LogTable(entries, np.full(len(numbers), time_s, np.int64))


class Services:
    """Each shows a table, or does not answer."""

    def __init__(self, *shown):
        self.shown, self.n_asked, self.said = [*shown], 0, []

    def read(self, service, event):
        self.n_asked += 1
        found = self.shown[EVENT.services.index(service)]
        if found is None:
            raise TransferError("does not answer")
        return found

    def logs(self, kept=None):
        return LoggedEntries(self.read, self.said.append, kept)


def test_before_the_deadline_nothing_is_read():
    services = Services(table(0), table(1))
    logs = services.logs()
    assert logs.known(EVENT, READ_S - 1) == frozenset()
    assert (services.n_asked, logs.unread(EVENT)) == (0, URLS)


def test_who_does_not_answer_is_asked_again_and_named():
    services = Services(table(0, 1), None)
    logs = services.logs()
    assert logs.known(EVENT, READ_S) == {ENTRIES[0], ENTRIES[1]}
    assert (logs.unread(EVENT), services.said) == (URLS[1:], [f"{URLS[1]}: does not answer"])
    services.shown[1] = table(2)
    before = logs.table(EVENT, READ_S + AGAIN_S - 1)
    assert len(before.entries) == 2
    # Also where the clock was set back meanwhile.
    assert logs.known(EVENT, READ_S - AGAIN_S + 599) == {*ENTRIES[:2]}
    assert logs.known(EVENT, READ_S + AGAIN_S) == {*ENTRIES[:3]}
    assert logs.unread(EVENT) == ()
    assert logs.table(EVENT, READ_S + 2 * AGAIN_S) is logs.table(EVENT, READ_S + 3 * AGAIN_S)
    assert services.n_asked == 3


def test_after_an_extension_logs_are_read_again_and_what_was_known_stays():
    later = replace(EVENT, deadline_s=EVENT.deadline_s + 60)
    services = Services(
        table(0),
        LogTable(
            *(
                np.append(a, b)
                for a, b in [
                    (table(1).entries, table(2).entries),
                    (table(1).times_s, [later.latest_s]),
                ]
            )
        ),
    )
    logs = services.logs()
    assert logs.known(EVENT, READ_S) == {*ENTRIES[:2]}
    # Read before, and in time now.
    assert logs.known(later, READ_S) == {*ENTRIES[:3]}
    assert logs.unread(later) == URLS
    services.shown = [table(3), None]
    assert logs.known(later, READ_S + 60) == {*ENTRIES[:4]}
    assert logs.unread(later) == URLS[1:]


@pytest.mark.parametrize("n_together", [2, 100])
def test_what_was_read_is_known_after_a_restart(tmp_path, monkeypatch, n_together):
    monkeypatch.setattr(kept_logs, "ROWS_TOGETHER", n_together)
    services = Services(table(0, 1, 2, 3, 4), table())
    for shown in (services.shown, [None, table(5)], [None, None]):
        services.shown = shown
        with closing(Register(str(tmp_path), EVENT)) as register:
            logs = services.logs(register.logs)
            found = logs.table(EVENT, READ_S)
            assert logs.unread(EVENT) == ()
        assert {*ENTRIES[:5]} <= {each for _, each in found.rows(np.arange(len(found.entries)))}
    # Read once more by each process: of who had shown less before, more is known then.
    assert services.n_asked == 6
    assert len(found.entries) == 6


def test_of_two_that_read_a_log_neither_takes_away_what_the_other_has_read(tmp_path):
    """Several machines may have one register."""
    with closing(Register(str(tmp_path), EVENT)) as register:
        whole, shortened = Services(table(0, 1), None), Services(table(0), None)
        one, two = whole.logs(register.logs), shortened.logs(register.logs)
        assert two.unread(EVENT) == URLS
        one.known(EVENT, READ_S)
        assert two.known(EVENT, READ_S) == {*ENTRIES[:2]}
        (known,) = register.logs.by_log().values()
        assert len(known.rows) == 2


def test_the_least_time_that_was_ever_read_counts():
    later = replace(EVENT, deadline_s=EVENT.deadline_s + 60)
    services = Services(table(0, time_s=1000), None)
    logs = services.logs()
    logs.known(EVENT, READ_S)
    services.shown = [table(0), None]
    logs.known(later, READ_S + 60)
    assert logs.table(later, READ_S).rows(np.arange(1)) == [(1000, ENTRIES[0])]
