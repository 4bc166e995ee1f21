"""The folder of a log: what is read of it when its keeper starts."""

from __future__ import annotations

from contextlib import closing

from instances.bistro_folders import collecting_event
from instances.events import key_of

from datacollect.bistro.custody.verdicts import COLLECTED, Verdict
from datacollect.bistro.service.core import ServiceCore
from datacollect.bistro.service.messages import Row, Store
from datacollect.bistro.store.folder import Database, Held
from datacollect.bistro.store.log_store import LogStore

EVENT = collecting_event()


def test_a_log_of_verdicts_starts_without_reading_its_entries(tmp_path, monkeypatch):
    """All of them are longer than a commitment, as amendments are in the log of a service."""
    entries = [Verdict(EVENT.id, n.to_bytes(32, "big"), COLLECTED).data for n in range(300)]
    n_read = []
    plain = Database.rows

    def counting(*args):
        found = plain(*args)
        n_read.append(len(found))
        return found

    with closing(LogStore(Held(tmp_path / "log"), EVENT.verdicts.text)) as store:
        store.store(Store(0, tuple(Row(entry, None) for entry in entries)))
        monkeypatch.setattr(Database, "rows", counting)
        ServiceCore(EVENT, key_of("verdicts"), store.kept(), store)
    assert max(n_read) == 1
