"""Distance of adaptive from the optimum where relays that have nothing carry most."""

import pytest


@pytest.fixture
def relayed(scripts):
    return scripts("relayed")


@pytest.mark.slow
def test_relays_without_data_carry_what_the_exact_plan_would(relayed):
    """Straight takes many times the optimum; adaptive a part more than it, and never less."""
    kinds = {"over relays": lambda seed: relayed.over_optimum(relayed.relayed(seed))}
    found = relayed.table(kinds, range(1, 6)).set_index("method")
    assert found.loc["direct", "over_optimum"] > 5
    for relays in relayed.LABELS.values():
        assert 1 <= found.loc[relays, "over_optimum"] <= 1.3
        assert found.loc[relays, "most"] <= 2


def test_problems_are_what_their_seed_says(relayed):
    for make in (relayed.relayed, relayed.meshed):
        assert make(7) == make(7)
        assert make(7) != make(8)
        assert make(7).destination == "D"
