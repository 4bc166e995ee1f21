"""A thousand random cycles, of one or two operators: no host and no wire in two tests at once."""

from __future__ import annotations

import pytest
from instances.how_many import many
from measuring.plan.cycle_simulation import CycleWorld

from datacollect.measuring.plan.host_lease import Granted, HostLease
from datacollect.measuring.plan.rounds import Cycle


@pytest.mark.slow
def test_random_cycles_never_overlap_and_come_to_their_end():
    for seed in range(many(2000)):
        assert CycleWorld(seed).run() == [], f"seed {seed}"


def test_a_host_that_lends_itself_to_two_is_seen(monkeypatch):
    monkeypatch.setattr(HostLease, "ask", lambda *asked: Granted(asked[2]))
    monkeypatch.setattr(CycleWorld, "is_holder", lambda *_: True)
    worlds = [CycleWorld(seed) for seed in range(20)]
    assert any("is in two tests" in fault for world in worlds for fault in world.run())


def test_rounds_that_forget_a_wire_are_seen(monkeypatch):
    def one_round(pairs, *_, **__):
        return Cycle((tuple(sorted(pairs)),))

    monkeypatch.setattr("measuring.plan.cycle_simulation.plan_cycle", one_round)
    worlds = [CycleWorld(seed) for seed in range(60)]
    assert any("two tests of a wire" in fault for world in worlds for fault in world.run())
