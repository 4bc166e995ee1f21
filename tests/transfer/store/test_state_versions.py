"""States of other versions, and files of other programs, are left alone."""

import apsw
import pytest

from datacollect.errors import ProblemError
from datacollect.transfer.store.status import status_of
from datacollect.transfer.store.store import Store


@pytest.mark.parametrize("version", [2, 99])
def test_a_state_of_another_version_is_left_alone(tmp_path, version):
    Store(tmp_path).close()
    path = tmp_path / ".datacollect/state.sqlite"
    db = apsw.Connection(str(path))
    db.execute("UPDATE facts SET value = ? WHERE key = 'version'", (version,))
    db.close()
    for open_it in (lambda: Store(tmp_path), lambda: status_of(tmp_path)):
        with pytest.raises(ProblemError, match=f"must be state of version 3, got {version}"):
            open_it()


def test_a_file_of_another_program_is_left_alone(tmp_path):
    (tmp_path / ".datacollect").mkdir()
    db = apsw.Connection(str(tmp_path / ".datacollect/state.sqlite"))
    db.execute("CREATE TABLE mine (x); INSERT INTO mine VALUES (1)")
    db.close()
    with pytest.raises(ProblemError, match="it holds no collection"):
        Store(tmp_path)
    db = apsw.Connection(str(tmp_path / ".datacollect/state.sqlite"))
    assert db.execute("SELECT * FROM mine").fetchall() == [(1,)]
