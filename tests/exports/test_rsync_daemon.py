"""Scripts fetch from rsync's daemon, with and without chroot, at its module and below."""

from __future__ import annotations

import os

import pytest
from conftest import NO_ROOT, need
from instances.exported_scripts import Scripts, data_of
from instances.peers import rsync_daemon

NAMES = ("two words/ü漢", "#comment", "[a-z]*?", "-v")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("use_chroot", "below"),
    [(False, ""), (False, "a folder/"), (False, "#1/[x]*ü/"), (True, "#1/[x]*ü/")],
)
def test_a_daemon_gives_files_of_a_module_and_of_folders_below_it(tmp_path, use_chroot, below):
    need("rsync")
    if use_chroot and os.geteuid() != 0:
        pytest.skip(NO_ROOT)
    served = tmp_path / "served" / "mod ule"
    for name in NAMES:
        path = served / below / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data_of(name))
    scripts = Scripts(tmp_path, "rsync", NAMES)
    with rsync_daemon(served.parent, use_chroot=use_chroot) as url:
        scripts.write(f"{url}/mod ule/{below}".rstrip("/"))
        assert scripts.start() == (0, "D: done\n")
    assert scripts.has_arrived()
