"""Real processes killed at random instants: everything arrives whole, nothing partly."""

import random
import time

import pytest
from instances.how_many import many
from instances.loopback import Loopback, some_files
from judges.slots import judged


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(8))
def test_everything_arrives_in_many_schedules_of_kills(tmp_path, batch):
    for seed in range(batch, many(100), 8):
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


@pytest.mark.slow
@pytest.mark.long
def test_a_collection_by_nights_ends_and_is_valid_whoever_is_killed(tmp_path):
    """Each process twice, while the relay stores and while it gives."""
    chance, piece_bytes = random.Random(7), 2**16
    files = {"S1": {"big": chance.randbytes(1_500_000), "run/small": b"small"}}
    world = Loopback(tmp_path, files, slot_s=1.0, piece_bytes=piece_bytes, patience_s=60.0)
    try:
        world.start("C")
        for victim in ("R", "S1", "C", "C", "R", "S1"):
            time.sleep(chance.uniform(1.0, 3.0))
            world.kill(victim)
            world.judge(is_over=False)
            world.start(victim)
        deadline_s = time.monotonic() + 180
        while world.children["C"].exitcode != 0:
            assert time.monotonic() < deadline_s, world.log()[-20:]
            world.children["C"].join(0.2)
            if world.children["C"].exitcode not in (None, 0):
                world.start("C")
        world.judge(is_over=True)
        assert not list((tmp_path / "spool").rglob("*.segment"))
        schedule = judged(world.into, piece_bytes)
        assert {route.hosts for route in schedule.routes} == {("S1", "R", "D")}
    finally:
        world.kill_all()
