"""Times of processors by a /proc/stat of ours."""

from __future__ import annotations

import os

import pytest

from datacollect.errors import ProblemError
from datacollect.measuring.hosts.processor_times import ProcessorTimes, busy_ticks

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
