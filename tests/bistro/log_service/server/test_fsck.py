"""Tessera's `fsck` on a log that a service publishes, and on one with a changed byte.

https://github.com/transparency-dev/tessera, 2025. On a damaged log it may never end, and so it
always has a limit.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import time

import pytest
from conftest import NO_FSCK, NO_GO
from instances.timestamping import World

GO = shutil.which("go") or shutil.which("/usr/local/go/bin/go")
FSCK = "github.com/transparency-dev/tessera/cmd/fsck@v1.0.4"
LIMIT_S = 60
N_ENTRIES = 700


@pytest.fixture
def fsck(tmp_path):
    if GO is None:
        pytest.skip(NO_GO)
    made = subprocess.run(
        [GO, "install", FSCK],
        env=os.environ | {"GOBIN": str(tmp_path / "go")},
        check=False,
        capture_output=True,
        timeout=900,
    )
    if made.returncode:
        pytest.skip(NO_FSCK)
    return tmp_path / "go" / "fsck"


@pytest.mark.slow
def test_fsck_accepts_what_is_published_and_nothing_else(tmp_path, fsck):
    entries = [hashlib.sha256(bytes([i % 256, i // 256])).digest() for i in range(N_ENTRIES)]
    with World(tmp_path, limits={"commitments_per_ticket": N_ENTRIES}) as world:
        world.start_witnesses()
        service = world.start()
        # Several checkpoints, so that there are several partial tiles of a place.
        for start in (0, 1, 257, 300):
            stop = {0: 1, 1: 257, 257: 300, 300: N_ENTRIES}[start]
            assert world.commit(service, entries[start:stop]).status == 200
            world.proof(service, entries[stop - 1])
        (tmp_path / "log.vkey").write_text(world.event.services[0].log.text + "\n")
        began_s = time.monotonic()
        assert checked(world, fsck) == 0
        good_s = time.monotonic() - began_s
        bundle = service.folder / "tile" / "entries" / "000"
        data = bytearray(bundle.read_bytes())
        data[100] ^= 1
        bundle.write_bytes(data)
        # What it has read a service keeps in mind.
        world.kill(service)
        world.start()
        assert checked(world, fsck, 2 + 4 * good_s) != 0


def checked(world: World, fsck, limit_s: float = LIMIT_S) -> int:
    """Return the exit code of `fsck`; 124 where it does not end: it asks again for what is "
    "wrong."""
    command = [str(fsck), "-storage_url", world.services[0].url, "-ui=false"]
    command += ["-public_key", str(world.folder / "log.vkey"), "-logtostderr"]
    try:
        done = subprocess.run(
            command, env=world.environment, check=False, capture_output=True, timeout=limit_s
        )
    except subprocess.TimeoutExpired:
        return 124
    return done.returncode
