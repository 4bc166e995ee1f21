"""Which tests run: as long as their processes, whatever else lies in the folder."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from datacollect.measuring.plan.current_tests import BEGINS, running_test, running_tests

RUNNING = """
import sys, time
from pathlib import Path
from datacollect.measuring.plan.current_tests import running_test
with running_test(Path(sys.argv[1]), "tcp", [("S", "D"), ("K", "D")], "4 streams"):
    print("runs", flush=True)
    time.sleep(600)
"""


def test_a_test_whose_process_is_killed_is_none(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", RUNNING, str(tmp_path)], stdout=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        [test] = running_tests(tmp_path)
        assert (test["tool"], test["links"], test["about"]) == ("tcp", "S → D, K → D", "4 streams")
        process.kill()
        process.wait()
        # Its word is left, and counts for nothing.
        [left] = tmp_path.iterdir()
        assert running_tests(tmp_path) == []
        # The next test tidies up, unless the word is so new that its lock may be to come.
        with running_test(tmp_path, "tcp", [("S", "D")]):
            assert left.exists()
        os.utime(left, (time.time() - 60,) * 2)
        with running_test(tmp_path, "tcp", [("S", "D")]):
            assert not left.exists()


def test_no_test_fails_for_what_others_have_left(tmp_path, monkeypatch):
    def failing(*_):
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "glob", failing)
        with running_test(tmp_path, "tcp", [("S", "D")]):
            pass
    assert running_tests(tmp_path) == []


def test_no_test_fails_for_what_it_leaves(tmp_path, monkeypatch):
    def failing(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(Path, "unlink", failing)
    with running_test(tmp_path, "tcp", [("S", "D")]):
        assert len(running_tests(tmp_path)) == 1
    assert running_tests(tmp_path) == []


def test_several_run_at_once_and_each_ends_for_itself(tmp_path):
    with running_test(tmp_path, "tcp", [("S", "D")]):
        with running_test(tmp_path, "ping", [("K", "L")]):
            assert [test["tool"] for test in running_tests(tmp_path)] == ["tcp", "ping"]
        assert [test["tool"] for test in running_tests(tmp_path)] == ["tcp"]
    assert [*tmp_path.iterdir()] == []


def test_a_test_runs_also_where_nothing_can_be_written(tmp_path):
    with running_test(tmp_path / "gone", "tcp", [("S", "D")]):
        assert running_tests(tmp_path / "gone") == []


def test_a_test_that_fails_leaves_nothing(tmp_path):
    with pytest.raises(ValueError, match="x"), running_test(tmp_path, "tcp", [("S", "D")]):
        raise ValueError("x")
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("text", ["", "{", "[]", '{"tool": "tcp"}', '{"begun_s": "x"}', "\x00"])
def test_what_is_no_word_of_a_test_is_passed_over(tmp_path, text):
    import fcntl

    with (tmp_path / f"{BEGINS}1").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(text)
        file.flush()
        assert running_tests(tmp_path) == []
        file.seek(0)
        file.truncate()
        file.write(json.dumps({"begun_s": 5, "links": "a" * 500}))
        file.flush()
        [test] = running_tests(tmp_path)
        assert len(test["links"]) == 200
