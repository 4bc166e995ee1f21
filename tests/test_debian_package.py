"""Texts of the agent's Debian package; `packaging/throwaway.py` installs and starts it."""

from __future__ import annotations

import sys

import pytest
from conftest import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "packaging"))

import debian

sys.path.pop(0)


@pytest.mark.parametrize(
    ("version", "expected"),
    [("0.2.0", "0.2.0"), ("0.2.0rc1", "0.2.0~rc1"), ("0.2.0.dev3", "0.2.0~dev3")],
)
def test_what_comes_before_a_release_is_older_for_debian(version, expected):
    """A tilde sorts before the end of a version."""
    assert debian.debian_version(version) == expected


def test_its_service_is_the_one_that_is_installed_by_hand_but_for_where_the_program_is():
    by_hand = debian.UNIT.read_text().splitlines()
    packaged = debian.unit().splitlines()
    left_out = [line for line in by_hand[by_hand.index("[Unit]") :] if line not in packaged]
    assert left_out == [
        "ExecStart=/usr/local/bin/datacollect-agent /var/lib/datacollect-agent/agent.toml",
        "# Where a .pyz unpacks what is compiled.",
        "CacheDirectory=datacollect-agent",
        "Environment=PEX_ROOT=/var/cache/datacollect-agent",
    ]
    added = [line for line in packaged if line not in by_hand]
    assert added == ["ExecStart=/usr/bin/datacollect-agent /var/lib/datacollect-agent/agent.toml"]


def test_files_that_versions_of_python_do_not_share_are_refused(tmp_path):
    for python, text in (("3.11", "old"), ("3.12", "new")):
        (tmp_path / python / "h11").mkdir(parents=True)
        (tmp_path / python / "h11/version.py").write_text(text)
    debian.merge(tmp_path / "3.11", tmp_path / "all")
    with pytest.raises(SystemExit, match=r"h11/version.py is not the same for all of Python 3.11"):
        debian.merge(tmp_path / "3.12", tmp_path / "all")
    assert (tmp_path / "all/h11/version.py").read_text() == "old"


def test_it_is_for_all_versions_of_python_that_the_package_names():
    named = (REPOSITORY / "setup.cfg").read_text()
    assert all(f"Programming Language :: Python :: {each}\n" in named for each in debian.PYTHONS)
    assert named.count("Programming Language :: Python :: 3.") == len(debian.PYTHONS)
