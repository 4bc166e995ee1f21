"""Scripts of three hosts, one of which is killed again and again: every byte arrives."""

from __future__ import annotations

import sys

import pytest
from conftest import REPOSITORY, need


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["curl", "aria2", "rclone", "rsync"])
def test_every_byte_arrives_while_scripts_are_killed(tmp_path, monkeypatch, tool):
    """96 MB: the experiment moves a gigabyte."""
    need(tool, "nginx")
    monkeypatch.setattr(sys, "path", [str(REPOSITORY / "experiments"), *sys.path])
    from killed_scripts import move

    found = move(tmp_path, tool, n_files=6, file_bytes=16_000_000, every_s=2.0, limit_s=180.0)
    assert found.is_identical, found.said
    assert found.n_kills > 0
    if found.sent_bytes is not None:
        # Over two hops; what pipes held when something was killed was sent, and is sent again.
        assert found.sent_bytes < 3 * 2 * 6 * 16_000_000
