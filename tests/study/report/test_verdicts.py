"""Checks of a hook's verdicts before anything is written."""

from __future__ import annotations

import pandas as pd
import pytest

import datacollect as dc
from datacollect.study.report.verdicts import COLUMNS, no_verdicts

ROW = dict.fromkeys(COLUMNS, "") | {"verdict": "holds", "is_settled": True}
CLAIMS = pd.DataFrame([ROW])


@pytest.mark.parametrize("name", COLUMNS)
def test_every_column_is_needed(name):
    with pytest.raises(dc.ProblemError, match=f"claims need the column '{name}'; add it"):
        dc.Verdicts(CLAIMS.drop(columns=name))


@pytest.mark.parametrize("where", ["shown", "printed"])
def test_only_columns_that_there_are_can_be_shown(where):
    with pytest.raises(dc.ProblemError, match="claims have no column 'method'"):
        dc.Verdicts(CLAIMS, **{where: {"method": "method"}})


def test_a_verdict_is_one_of_four_words():
    with pytest.raises(dc.ProblemError, match="got 'refuted'; name one of these"):
        dc.Verdicts(pd.DataFrame([ROW | {"verdict": "refuted"}]))


@pytest.mark.parametrize("name", ["../claims", "", ".hidden", "a/b"])
def test_a_table_lies_in_the_report_s_folder(name):
    with pytest.raises(dc.ProblemError, match="becomes that of a file"):
        dc.Verdicts(CLAIMS, tables={name: CLAIMS})


def test_no_verdicts_have_all_columns_and_no_rows():
    found = no_verdicts().claims
    assert found.empty
    assert tuple(found.columns) == COLUMNS
