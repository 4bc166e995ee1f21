"""What is released is what is committed; `.ci/run` builds and tries it: `make release`."""

from __future__ import annotations

import subprocess
import sys

import pytest
from conftest import REPOSITORY
from instances.command_line import output_of


@pytest.fixture(scope="module")
def committed(tmp_path_factory):
    """A clone of the repository."""
    clone = tmp_path_factory.mktemp("release") / "clone"
    output_of("git", "-c", "safe.directory=*", "clone", "--quiet", REPOSITORY, clone)
    return clone


def released(clone, *arguments):
    command = [sys.executable, "packaging/release.py", *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, cwd=clone)


@pytest.mark.slow
def test_what_is_not_committed_is_not_released(committed):
    (committed / "more.py").write_text("")
    done = released(committed, "another")
    (committed / "more.py").unlink()
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
    assert not (committed / "new").exists()
