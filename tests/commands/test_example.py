"""``datacollect example``: where files go, and what is not overwritten."""

from __future__ import annotations


def test_example_is_overwritten_only_by_force(here, call):
    (here / "figure1.toml").write_text("mine")
    assert call("example", "figure1")[0] == 2
    assert (here / "figure1.toml").read_text() == "mine"
    assert call("example", "figure1", "--force")[0] == 0
    assert "destination" in (here / "figure1.toml").read_text()


def test_example_goes_where_it_is_to_go(here, call):
    (here / "sub").mkdir()
    code, out, err = call("example", "upload", "-o", "sub")
    assert (code, out) == (0, "")
    assert "saved to sub/upload.csv" in err
    assert call("compare", "sub/upload.toml", "--json")[0] == 0
