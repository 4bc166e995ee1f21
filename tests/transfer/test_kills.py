"""Real processes killed at random instants: everything arrives whole, nothing partly."""

import pytest
from instances.how_many import many
from instances.loopback import Loopback, some_files


@pytest.fixture
def loopback(tmp_path):
    """Two sources of 6 MB each and a relay."""
    world = Loopback(
        tmp_path,
        {"S1": some_files(1), "S2": some_files(2)},
        connections=4,
        piece_bytes=2**16,
    )
    yield world
    world.kill_all()


@pytest.mark.slow
def test_everything_arrives_though_anybody_is_killed(loopback):
    loopback.carry_out(0, kills=4)


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(20))
def test_everything_arrives_in_many_schedules_of_kills(tmp_path, batch):
    for seed in range(batch, many(200), 20):
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
