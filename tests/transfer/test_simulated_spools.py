"""Spools under power losses, full disks, lies and clocks that are set, by seed.

What is real and what is simulated is said in `tests/simulated/spools.py`. More of them:
``make simulated``.
"""

import tempfile
from pathlib import Path

import pytest
from instances.how_many import many
from simulated.spools import SimulatedSpool


def carried_out(seed):
    """Carry a spool out in memory."""
    where = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=where) as folder:
        spool = SimulatedSpool(seed, Path(folder))
        spool.run()
    return spool


# Seeds that once failed go here, with what was wrong.
@pytest.mark.parametrize("seed", [1, 2])
def test_a_spool(seed):
    carried_out(seed)


@pytest.mark.slow
def test_what_is_kept_stays_and_what_has_ended_goes_whatever_happens():
    spools = [carried_out(seed) for seed in range(1000, 1000 + many(200))]
    assert sum(each.n_kept for each in spools) > 10 * len(spools)
    assert sum(each.n_power_losses for each in spools) > len(spools) / 2
    assert sum(each.n_lies for each in spools) > len(spools) / 2
