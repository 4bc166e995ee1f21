"""Collections under power losses, full disks, resets, lies and changes, by seed.

What is real and what is simulated is said in `tests/simulated/pulls.py`. More of them:

    python tests/simulated/many.py --first 0 --count 100000
"""

from __future__ import annotations

import copy
import tempfile
from pathlib import Path

import pytest
from instances.how_many import many
from simulated.pulls import SimulatedPull, Start, Wrong

# Seeds that once failed, and what was wrong.
KEPT = {
    5: "an idle chain asked for ever to be woken at the instant that it was",
    17: "pieces were recorded before a core was there",
    75: "spare chains opened beside those that came back",
}

KEPT_OF_FEW_FILES = {
    10212: "sessions that had waited each brought a ticket of before the agent's clock was set",
    11227: "as 10212",
}
KEPT_OF_SERVERS = {81: "a piece was asked after whose file had been set aside"}


def carried_out(seed: int, *, is_small: bool = False, web: bool = False) -> SimulatedPull:
    """Carry a collection out in memory."""
    where = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=where) as folder:
        pull = SimulatedPull(seed, Path(folder), is_small=is_small, web=web)
        pull.run()
    return pull


@pytest.mark.parametrize("seed", KEPT)
def test_what_once_failed(seed):
    carried_out(seed)


@pytest.mark.parametrize("seed", KEPT_OF_FEW_FILES)
def test_what_once_failed_of_few_files(seed):
    carried_out(seed, is_small=True)


@pytest.mark.parametrize("seed", KEPT_OF_SERVERS)
def test_what_once_failed_of_servers(seed):
    carried_out(seed, web=True)


@pytest.mark.slow
def test_every_file_comes_whole_and_once_whatever_happens():
    """Each seed is a collection; of five about three lose their power at least once."""
    pulls = [carried_out(seed) for seed in range(1000, 1000 + many(700))]
    n_lost = sum(pull.n_power_losses for pull in pulls)
    assert n_lost >= len(pulls) / 5, "power is hardly ever lost"
    assert sum(pull.n_recorded for pull in pulls) >= 12 * len(pulls), "hardly anything moves"


@pytest.mark.slow
def test_clocks_are_set_and_first_bytes_are_late_and_all_comes():
    """Of twenty small collections; tickets are refused in a third of them at least."""
    pulls = [carried_out(seed, is_small=True) for seed in range(1200, 1220)]
    clocks = [[source.clock for source in pull.sources.values()] for pull in pulls]
    assert sum(any(clock.n_refused for clock in each) for each in clocks) >= 7
    slow = [s.first_byte_s for pull in pulls for s in pull.sources.values()]
    assert slow.count(10.5) >= 5
    assert slow.count(19.0) >= 5


@pytest.mark.slow
def test_every_file_comes_whole_and_once_where_there_are_few():
    """Few files of few pieces, in many more collections."""
    pulls = [carried_out(seed, is_small=True) for seed in range(1000, 1000 + many(1500))]
    n_lost = sum(pull.n_power_losses for pull in pulls)
    assert n_lost >= len(pulls) / 3, "power is hardly ever lost"
    assert sum(pull.n_recorded for pull in pulls) >= 1.5 * len(pulls), "hardly anything moves"


@pytest.mark.slow
def test_every_file_of_web_servers_comes_whole_and_once():
    """Some sources are web servers that are busy, fail, cut answers short and change."""
    pulls = [carried_out(seed, web=True) for seed in range(2000, 2020)]
    assert sum(pull.n_power_losses for pull in pulls) >= 5, "power is hardly ever lost"
    assert sum(pull.n_recorded for pull in pulls) >= 200, "hardly anything moves"


def test_a_seed_says_all_that_happens():
    for seed in (1, 2, 9):
        assert carried_out(seed).log.digest() == carried_out(seed).log.digest()


def test_a_copy_of_the_core_goes_on_as_the_original(monkeypatch):
    """Every tenth event is told to a copy, too, which answers the same and leaves the original."""
    told = []
    tell = Start._tell

    def twice(start, event):
        if start.core is not None and start.core.finished is None and len(told) % 10 == 0:
            twin = copy.deepcopy(start.core)
            expected = twin.handle(event)
            obeyed = []
            monkeypatch.setattr(start, "_obey", obeyed.extend)
            tell(start, event)
            monkeypatch.delattr(start, "_obey")
            assert repr(obeyed) == repr(expected)
            start._obey(obeyed)
        else:
            tell(start, event)
        told.append(event)

    monkeypatch.setattr(Start, "_tell", twice)
    for seed in (1, 4, 9):
        carried_out(seed)
    assert len(told) > 100


def test_the_judges_see_what_is_wrong(tmp_path):
    """A byte changed under its final name, a file too many, one too few."""
    pull = SimulatedPull(2, tmp_path)
    pull.run()
    name, source = next(iter(pull.sources.items()))
    path = next(p for p in source.versions if source.current(p)[1])
    file = pull.into / name / path
    whole = file.read_bytes()
    file.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
    with pytest.raises(Wrong, match="no version of its file"):
        pull._judge_names()
    file.write_bytes(whole)
    (pull.into / "more").write_bytes(b"")
    with pytest.raises(Wrong, match="lies about"):
        pull._judge_end()
    (pull.into / "more").unlink()
    file.unlink()
    with pytest.raises(Wrong, match="not as at the source"):
        pull._judge_end()
