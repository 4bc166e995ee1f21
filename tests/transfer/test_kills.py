"""Real processes killed at random instants: everything arrives whole, nothing partly."""

import pytest
from instances.how_many import many
from instances.loopback import Loopback, some_files


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(10))
def test_everything_arrives_in_many_schedules_of_kills(tmp_path, batch):
    for seed in range(batch, many(200), 10):
        folder = tmp_path / str(seed)
        folder.mkdir()
        world = Loopback(
            folder,
            {"S1": some_files(2 * seed, 3_000_000), "S2": some_files(2 * seed + 1, 3_000_000)},
            connections=4,
            piece_bytes=2**16,
        )
        try:
            world.carry_out(100 + seed, kills=6)
        finally:
            world.kill_all()
