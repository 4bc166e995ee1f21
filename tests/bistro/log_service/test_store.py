"""The folder of a log: what is read of it when its keeper starts."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st
from instances.bistro_folders import collecting_event
from instances.events import key_of
from instances.how_many import many

from datacollect.bistro.formats.custody.verdicts import COLLECTED, Verdict
from datacollect.bistro.log_service.core import ServiceCore
from datacollect.bistro.log_service.messages import Publish, Row, Store, StoreHead
from datacollect.bistro.log_service.store import LogStore
from datacollect.files.held_folder import Database, Held

EVENT = collecting_event()
IN_MEMORY = Path("/dev/shm")


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


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=1, max_size=12))
@settings(max_examples=many(40), deadline=None)
def test_an_entry_is_proved_by_the_published_checkpoint_of_the_least_time(published):
    """A checkpoint comes again with further cosignatures, by which it proves less, or the same."""
    times_s = {}
    with (
        TemporaryDirectory(dir=IN_MEMORY if IN_MEMORY.is_dir() else None) as name,
        closing(LogStore(Held(Path(name) / "log"), EVENT.verdicts.text)) as store,
    ):
        for number, (size, time_s) in enumerate(published):
            time_s = times_s[size] = min(time_s, times_s.get(size, time_s))
            note = b"%d" % size + b"." * number
            store.store_head(StoreHead(size, note, ()))
            store.publish(Publish(size, note, time_s))
        for index in range(10):
            holding = [(time_s, size) for size, time_s in times_s.items() if size > index]
            found = store.earliest_head(index)
            expected = b"%d" % min(holding)[1] if holding else None
            assert (found and found[:1]) == expected
