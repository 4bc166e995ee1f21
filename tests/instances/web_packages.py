"""The packages of which the page's script is built, and those that judge it, as npm brings them."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from conftest import NO_NODE, NO_NPM, REPOSITORY

WEB = REPOSITORY / "datacollect" / "bistro" / "page" / "src"
WITHIN_S = 600


@functools.cache
def _fetched() -> Path | None:
    """Return a folder with the sources and their packages, by the lock file; None: npm cannot."""
    folder = Path(tempfile.mkdtemp(prefix="web-packages-"))
    names = shutil.ignore_patterns("node_modules")
    shutil.copytree(WEB, folder, ignore=names, dirs_exist_ok=True)
    done = subprocess.run(
        ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
        cwd=folder,
        env=os.environ | {"npm_config_update_notifier": "false"},
        check=False,
        capture_output=True,
        timeout=WITHIN_S,
    )
    return folder if done.returncode == 0 else None


def web_folder() -> Path:
    """Return a folder in which the script can be built; skip where that cannot be."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip(NO_NODE)
    folder = _fetched()
    if folder is None:
        pytest.skip(NO_NPM)
    return folder


def package_file(name: str) -> Path:
    """Return a file of a package."""
    return web_folder() / "node_modules" / name
