"""Published gaps of plans with connections come from their rows, and rows from problems."""

import pytest


@pytest.fixture
def gaps(scripts):
    return scripts("connection_gaps")


def test_the_page_is_made_of_the_rows(gaps):
    rows = gaps.read()
    assert len(rows) > 0
    assert gaps.PAGE.read_text() == gaps.page(rows)


@pytest.mark.parametrize("seed", [1, 10, 13])
def test_rows_come_out_again(gaps, seed):
    [kept] = [row for row in gaps.read() if row["seed"] == seed]
    found = {column: float(value) for column, value in gaps.row_of(seed).items()}
    assert found == pytest.approx(kept, rel=1e-6, nan_ok=True)


def test_a_second_start_goes_on(gaps, tmp_path, monkeypatch):
    monkeypatch.setattr(gaps, "ROWS", tmp_path / "rows.csv")
    gaps.keep(0, 2)
    first = gaps.ROWS.read_text()
    monkeypatch.setattr(gaps, "row_of", _not_again)
    gaps.keep(0, 2)
    assert gaps.ROWS.read_text() == first
    assert [row["seed"] for row in gaps.read()] == [0, 1]


def _not_again(seed):
    raise AssertionError(seed)
