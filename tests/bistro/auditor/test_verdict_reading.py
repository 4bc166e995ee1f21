"""Where verdicts are read: a place that is no log of verdicts is never taken for an empty one."""

from __future__ import annotations

import pytest
from instances.custody import custody_event

from datacollect.bistro.auditor.verdict_reading import read_verdicts
from datacollect.errors import ProblemError


def test_a_folder_without_a_checkpoint_is_no_log_of_verdicts(tmp_path):
    (tmp_path / "tile").mkdir()
    with pytest.raises(ProblemError, match=r"shows no checkpoint.*\[verdicts\]"):
        read_verdicts(str(tmp_path), custody_event(), [], lambda *_: None, is_over=False)
