"""Marks that processes of one host see of each other."""

from __future__ import annotations

import errno
import os
import socket

from datacollect.net.host_marks import is_marked, marked


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
