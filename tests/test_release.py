"""What is released is built from what is committed, hashed, and tried where nothing else is."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import venv
from configparser import ConfigParser

import pytest
from conftest import REPOSITORY
from instances.command_line import output_of


@pytest.fixture(scope="module")
def committed(tmp_path_factory):
    """A clone of the repository, and an environment with what `make release` installs."""
    folder = tmp_path_factory.mktemp("release")
    output_of("git", "-c", "safe.directory=*", "clone", "--quiet", REPOSITORY, folder / "clone")
    venv.create(folder / "tools", with_pip=True)
    config = ConfigParser()
    config.read(REPOSITORY / "setup.cfg", encoding="utf-8")
    needed = [line for line in config["options.extras_require"]["release"].splitlines() if line]
    python = folder / "tools" / "bin" / "python"
    output_of(python, "-m", "pip", "install", "--quiet", *needed)
    return folder / "clone", python


def released(committed, *arguments):
    clone, python = committed
    command = [os.path.relpath(python, clone), "packaging/release.py", *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, cwd=clone)


@pytest.mark.slow
def test_all_is_built_hashed_and_tried_with_a_python_that_is_named_relatively(committed):
    """As `make release` names it."""
    clone, _ = committed
    python = os.path.relpath(sys.executable, clone)
    done = released(committed, "dist", "--python", python)
    assert done.returncode == 0, done.stderr
    version = ".".join(map(str, sys.version_info[:3]))
    assert f"Python {version}: planned for 1119 s\n" in done.stdout
    assert f"Python {version}: collected 5000000 bytes\n" in done.stdout
    listed = dict(
        reversed(line.split("  ")) for line in (clone / "dist/SHA256SUMS").read_text().splitlines()
    )
    found = {path.name: path.read_bytes() for path in (clone / "dist").iterdir()}
    del found["SHA256SUMS"]
    assert listed == {name: hashlib.sha256(data).hexdigest() for name, data in found.items()}
    assert len(listed) == 5


@pytest.mark.slow
def test_what_is_not_committed_is_not_released(committed):
    clone, _ = committed
    (clone / "more.py").write_text("")
    done = released(committed, "another")
    (clone / "more.py").unlink()
    assert done.returncode == 1
    assert "commit or remove:\n?? more.py" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["docs"], "docs is not empty: name another folder, or empty it"),
        (["new", "--python", "no-such-python"], "there is no program no-such-python; name one"),
    ],
)
def test_what_cannot_be_tried_is_said_before_anything_is_built(committed, arguments, message):
    done = released(committed, *arguments)
    assert done.returncode == 1
    assert message in done.stderr
    assert not (committed[0] / "new").exists()
