"""Times of processors by a /proc/stat of ours."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from conftest import NO_PROC

from datacollect.errors import ProblemError
from datacollect.measuring.hosts.processor_times import ProcessorTimes, busy_ticks, others_ticks

TICKS = os.sysconf("SC_CLK_TCK")


def stat(path, **busy_s):
    """Write a /proc/stat in which processors were busy for so long, half in soft interrupts."""
    lines = ["cpu  1 1 1 1 1 1 1 1 0 0"]
    for name, seconds in busy_s.items():
        half = int(seconds * TICKS / 2)
        lines.append(f"{name} {half} 0 0 777 55 0 {half} 0 0 0")
    path.write_text("\n".join(lines) + "\n")


def test_soft_interrupts_count_and_waiting_for_disks_does_not():
    assert busy_ticks("cpu0 10 0 5 900 80 1 7 3 2 2\n") == {0: 26}


def test_what_others_do_is_a_part_of_the_processors_that_count(tmp_path):
    """In 2 s processor 0 is busy for 1 s and processor 1 not at all: a quarter of both."""
    path, now = tmp_path / "stat", [100.0]
    stat(path, cpu0=50, cpu1=60, cpu7=0)

    def sleep(seconds):
        now[0] += seconds
        stat(path, cpu0=51, cpu1=60, cpu7=999)

    times = ProcessorTimes((0, 1), path, lambda: now[0], sleep)
    assert times.others(2.0) == pytest.approx(0.25)


@pytest.mark.parametrize("text", [None, "", "intr 5\n", "cpu0 x y\n", "cpu9 1 1 1 1 1 1 1 1 0 0\n"])
def test_a_container_that_does_not_tell_is_named(tmp_path, text):
    path = tmp_path / "stat"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ProblemError, match=r"stat does not say .* outside of the container"):
        ProcessorTimes((0,), path).busy_s()


def process(proc, number, name="x", *, flags=0, times=(0, 0, 0, 0)):
    """Write what /proc says of a process."""
    (proc / str(number)).mkdir(exist_ok=True)
    words = ["S", *5 * ["1"], str(flags), *4 * ["0"], *map(str, times), *30 * ["9"]]
    (proc / str(number) / "stat").write_text(f"{number} ({name}) {' '.join(words)}\n")


def test_others_are_all_programs_but_this_one_and_the_kernels_threads(tmp_path):
    process(tmp_path, 1, times=(1, 2, 30, 40))
    process(tmp_path, 77, "a) S 5 (b", times=(100, 200, 0, 0))
    process(tmp_path, 88, "kworker", flags=0x00208040, times=(5000, 5000, 0, 0))
    process(tmp_path, os.getpid(), times=(9000, 9000, 9000, 9000))
    (tmp_path / "99").mkdir()  # it has ended meanwhile
    assert others_ticks(tmp_path) == 373


def test_a_burst_is_seen_by_who_asks_afterwards_and_so_is_what_a_host_takes(tmp_path):
    """In 10 s of two processors others have 3 s, and the host takes 1 s."""
    path, now, ticks = tmp_path / "stat", [100.0], [7 * TICKS]
    path.write_text("cpu0 9 9 9 9 9 9 9 0 0 0\ncpu1 9 9 9 9 9 9 9 50 0 0\n")
    times = ProcessorTimes((0,), path, lambda: now[0])
    since = times.watched(lambda: ticks[0])
    assert since() == 0.0
    now[0], ticks[0] = 110.0, 10 * TICKS
    path.write_text(f"cpu0 99 9 9 9 9 9 9 0 0 0\ncpu1 9 9 99 9 9 9 9 {50 + TICKS} 0 0\n")
    assert since() == pytest.approx(0.2)


@pytest.mark.skipif(sys.platform != "linux", reason=NO_PROC)
def test_a_program_that_runs_is_one_of_the_others():
    work = "import time\nwhile time.process_time() < 0.2: pass\nprint(flush=True)\ninput()"
    before = others_ticks()
    with subprocess.Popen(
        [sys.executable, "-c", work], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as worker:
        worker.stdout.readline()
        assert others_ticks() - before >= 0.15 * TICKS
        worker.communicate(b"\n")
