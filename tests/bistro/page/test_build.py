"""The script that is checked in is the one that its sources and the lock file make."""

from __future__ import annotations

import subprocess

import pytest
from conftest import REPOSITORY
from instances.web_packages import web_folder

STATIC = REPOSITORY / "datacollect" / "bistro" / "page" / "static"


@pytest.mark.slow
def test_built_again_it_is_the_same_byte_by_byte(tmp_path):
    done = subprocess.run(
        ["node", "build.mjs", tmp_path], cwd=web_folder(), check=False, capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert made.keys() == {"page.js", "licences.txt"}
    assert made == {name: (STATIC / name).read_bytes() for name in made}
