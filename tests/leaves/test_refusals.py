"""Errors of the system have remedies of their own; and the remedies work."""

import errno
import os
import resource
import subprocess
import sys

import pytest

from datacollect.files.refusals import UNSUPPORTED, refusal_of, refusal_of_number

SHORT = "memory is short: this process has "


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.ENOSPC, "make room"),
        (errno.EDQUOT, "quota"),
        (errno.EIO, "repair the disk"),
        (errno.EROFS, "mount it for writing"),
        (errno.EACCES, "give this user permission to write there"),
        (errno.ESTALE, "mount it again"),
        (errno.EMFILE, "ulimit -"),
        (errno.ENFILE, "fs.file-max"),
        (errno.EFBIG, "ulimit -f"),
        (errno.EINVAL, "another file system"),
    ],
)
def test_each_error_has_the_systems_words_and_a_remedy_of_its_own(number, remedy):
    reason, told = refusal_of_number(number)
    assert reason.startswith(os.strerror(number))
    assert remedy in told


def test_what_says_that_the_disk_fails_is_never_taken_for_what_it_cannot_do():
    lost = {errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.ESTALE, errno.EROFS, errno.EBADF}
    assert not UNSUPPORTED & lost


def test_other_errors_have_their_own_words_alone():
    assert refusal_of(OSError("odd")) == ("odd", None)
    assert str(refusal_of(KeyError())) == "KeyError"


def run_limited(code, *limits):
    """Run Python under limits of its own, as the shell sets them."""
    shell = "; ".join([*(f"ulimit {limit}" for limit in limits), 'exec "$0" -c "$1"'])
    command = ["bash", "-c", shell, sys.executable, code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


OPENS = """
import os
from datacollect.files.refusals import refusal_of
try:
    for _ in range(40):
        os.open("/dev/null", os.O_RDONLY)
    print("enough")
except OSError as error:
    print(refusal_of(error))
"""


def test_of_descriptors_the_number_is_told_and_the_remedy_works():
    said = run_limited(OPENS, "-Sn 30")
    assert said.startswith("Too many open files: this process may have 30; raise `ulimit -n`")
    assert run_limited(OPENS, "-n 100") == "enough\n"


def test_where_a_user_may_not_have_more_descriptors_the_hard_limit_is_named():
    assert "have the hard limit raised (`ulimit -Hn`)" in run_limited(OPENS, "-n 30")


@pytest.mark.parametrize(
    "fails",
    [
        "bytearray(2**32)",
        "raise OSError(12, 'Cannot allocate memory')",
        "raise ImportError('libx.so: failed to map segment from shared object')",
        "take(); threading.Thread(target=print).start()",
    ],
)
def test_memory_that_is_short_is_told_with_its_limit(fails):
    code = f"""
import mmap, threading
from datacollect.files.refusals import no_thread, refusal_of
kept = []
def take():
    for size in (2**24, 2**20):
        try:
            while True:
                kept.append(mmap.mmap(-1, size))
        except OSError:
            pass
try:
    {fails}
except Exception as error:
    kept.clear()
    print(no_thread(error) if "Thread" in {fails!r} else refusal_of(error))
"""
    said = run_limited(code.replace("    kept.clear()\n", ""), "-v 200000")
    assert said.startswith(SHORT)
    assert said.endswith("of the 204.8 MB that it may use; raise `ulimit -v`\n")


def test_without_a_limit_other_programs_are_to_give_memory_back(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY,) * 2)
    reason, remedy = refusal_of(MemoryError())
    assert reason.startswith(SHORT)
    assert remedy == "stop other programs that use memory"


def test_a_library_that_is_broken_is_no_lack_of_memory():
    error = ImportError("libx.so: undefined symbol: f")
    assert refusal_of(error) == ("libx.so: undefined symbol: f", None)
