"""Losses of adaptive against full knowledge, where relays are lost or links collapse."""

import pytest


@pytest.fixture
def losses(scripts):
    return scripts("losses")


@pytest.mark.slow
@pytest.mark.parametrize("kind", range(2))
def test_adaptive_comes_near_who_knew(losses, kind):
    name = (losses.LOST, losses.CUT)[kind]
    comes_near(losses, losses.over_who_knew(3, name))


def comes_near(losses, found):
    assert found["direct"] > 2
    # A chain takes up more of the connections, so that fewer deliver.
    for method, most in zip(losses.LABELS.values(), (1.1, 1.3), strict=True):
        assert 1 <= found[method] <= most


@pytest.mark.slow
def test_what_happens_costs_even_who_knew(losses):
    """The same data take longer where a relay is lost, or a link is cut."""
    undisturbed = losses.over_who_knew(3, losses.UNDISTURBED)
    comes_near(losses, undisturbed)
    for kind in (losses.LOST, losses.CUT):
        # Direct takes no longer, so that its ratio to who knew falls.
        assert losses.over_who_knew(3, kind)["direct"] < undisturbed["direct"]
