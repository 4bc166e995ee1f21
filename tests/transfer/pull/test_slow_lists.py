"""Lists that dribble: they end after the patience that was told, and those that get on do not."""

import pytest

import datacollect as dc

FILES = {f"f{i}": bytes([i]) * 1000 for i in range(8)}


def lists_begun(agent):
    """How often it was asked for the first page."""
    return [target for _, target in agent.calls].count("/v1/inventory")


@pytest.mark.slow
def test_a_list_that_gives_a_name_now_and_then_ends_and_others_come(
    agents, collection_of, tmp_path
):
    """A name each 2 s, each within the time-out: of 5 s of patience 2 names come, or 3."""
    one = agents("S1", FILES)
    two = agents("S2", {"x": b"x"}, page_s=2.0, pages_without_end=True)
    told = []
    limits = {"patience_s": 5.0, "timeout_s": 20.0}
    answer = dc.pull(collection_of(one, two, limits=limits), tmp_path / "into", tell=told.append)
    (missing,) = answer.missing
    assert missing.source == "S2"
    assert "its list arrives too slowly, less than a name and 512 bytes a second" in missing.why
    assert "over 5 s" in missing.why
    assert "set a longer patience_s in [limits]" in missing.why
    assert len([target for _, target in two.calls if "inventory" in target]) <= 4
    # It is not tried again: it would bring as little.
    assert lists_begun(two) == 1
    assert sum(line.startswith("given up: S2: its list arrives") for line in told) == 1
    assert all((tmp_path / f"into/S1/{name}").read_bytes() == FILES[name] for name in FILES)


@pytest.mark.slow
def test_the_remedy_works_where_its_disk_needs_more_time(agents, collection_of, tmp_path):
    """Two names, 1.3 s each: a patience of 2 s is not enough for both."""
    files = dict(list(FILES.items())[:2])
    slow = agents("S1", files, page_s=1.3)
    limits = {"patience_s": 2.0, "timeout_s": 20.0}
    collection = collection_of(slow, limits=limits)
    answer = dc.pull(collection, tmp_path / "into")
    assert "arrives too slowly" in answer.missing[0].why
    collection["limits"]["patience_s"] = 60.0
    assert dc.pull(collection, tmp_path / "into").complete


@pytest.mark.slow
def test_a_list_that_gives_more_than_a_name_a_second_goes_on(agents, collection_of, tmp_path):
    """Forty pages of a name, 0.2 s each, are more than twice the patience."""
    files = {f"f{i:02}": bytes([i]) * 1000 for i in range(40)}
    slow = agents("S1", files, page_s=0.2)
    limits = {"patience_s": 3.5, "timeout_s": 20.0}
    answer = dc.pull(collection_of(slow, limits=limits), tmp_path / "into")
    assert "S1" not in {each.source for each in answer.missing if "list" in each.why}
    assert len([target for _, target in slow.calls if "inventory" in target]) == len(files)
