"""Marks that processes of one host see of each other."""

from __future__ import annotations

import errno
import os
import socket

from instances.hardened_units import HIDDEN_PROC, run_python

from datacollect.net import host_marks
from datacollect.net.host_marks import is_marked, marked

LOOKING = """
from pathlib import Path
from datacollect.net.host_marks import is_marked

assert not Path("/proc/net").exists()
print(is_marked("tested"), is_marked("other"))
"""


def test_a_mark_is_seen_as_long_as_it_is_set():
    assert not is_marked("tested")
    with marked("tested"), marked("tested-too"):
        assert is_marked("tested")
        assert not is_marked("tes")
    assert not is_marked("tested")


def test_another_host_has_other_marks(monkeypatch):
    with marked("tested"):
        monkeypatch.setenv("DATACOLLECT_HOST", "another")
        assert not is_marked("tested")


def test_where_no_socket_is_to_be_had_what_is_marked_goes_on(monkeypatch):
    """A pull must not end by that."""

    def refused(*_):
        raise OSError(errno.ENOBUFS, os.strerror(errno.ENOBUFS))

    monkeypatch.setattr(socket, "socket", refused)
    with marked("tested"):
        assert not is_marked("tested")


def test_a_hardened_unit_sees_what_others_have_set():
    """An agent whose /proc shows processes alone, beside a pull without such limits."""
    with marked("tested"):
        assert run_python(HIDDEN_PROC, LOOKING).split() == ["True", "False"]


def test_where_the_kernel_does_not_tell_it_is_not_known(monkeypatch, tmp_path):
    monkeypatch.setattr(host_marks, "_LISTED", tmp_path / "none")
    with marked("tested"):
        assert is_marked("tested") is None
