"""Checks against a known hash: they end when nobody waits for them any more."""

import hashlib
import os

import pytest

from datacollect.transfer.protocol.source import Listed
from datacollect.transfer.store.incoming import checking
from datacollect.transfer.store.incoming.checking import Checks

DATA = bytes(range(256)) * 40


@pytest.fixture
def made(tmp_path):
    (tmp_path / "1").write_bytes(DATA)
    fd = os.open(tmp_path, os.O_RDONLY)
    reports = []
    checks = Checks(lambda _: fd, reports.append)
    yield checks, reports
    checks.close()
    os.close(fd)


def listed(sha256):
    return Listed("a", len(DATA), 0, 0, sha256=sha256)


@pytest.mark.parametrize("is_right", [True, False])
def test_a_file_has_the_hash_that_is_known_or_is_named(made, is_right):
    checks, reports = made
    right = hashlib.sha256(DATA).hexdigest()
    assert checks.take("W", 1, listed(right if is_right else "0" * 64))
    while checks.is_busy and not reports:
        pass
    why = checks.verdicts[1]
    assert why is None if is_right else f"and is {right}" in why


def test_a_large_file_is_not_read_to_its_end_once_nobody_waits(made, monkeypatch):
    checks, reports = made
    n_read = []

    class Counting:
        def __init__(self):
            self._real = hashlib.new("sha256")

        def update(self, data):
            n_read.append(len(data))
            checks.cancel()

        def hexdigest(self):
            return self._real.hexdigest()

    monkeypatch.setattr(checking, "_READ_BYTES", 1024)
    monkeypatch.setattr(hashlib, "sha256", Counting)
    checks.take("W", 1, listed("0" * 64))
    checks.close()
    assert n_read in ([1024], [])
    assert not checks.is_busy
    assert not reports
    assert not checks.verdicts
