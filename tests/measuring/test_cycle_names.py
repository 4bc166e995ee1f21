"""What the core knows of tests by name is what measuring calls them."""

from __future__ import annotations

from datacollect.measurement.cycles import NOT_OF_ONE_LINK, read_cycles
from datacollect.measurement.sample_store import write_part
from datacollect.measuring.cycle.record import CycleRecord
from datacollect.measuring.results.samples_to_problem import NOT_OF_LINKS, PROBE


def test_tools_that_measure_no_link_by_itself_are_the_same():
    assert {*NOT_OF_ONE_LINK} == {*NOT_OF_LINKS, PROBE}


def test_cycles_are_told_by_the_names_of_their_tests(tmp_path):
    for number in range(2):
        record = CycleRecord(number, 1.7e9 + number, {}, (), None, {})
        for test in range(2):
            said = {"from": "S", "to": "D", "time_s": 1.7e9 + 10 * number + test, "tool": "tcp"}
            row = {**said, "ended": "done", "bandwidth_bytes_per_s": 5.0 + test}
            write_part(tmp_path, record.test_id("tcp", 0, test), [row])
    assert read_cycles(tmp_path).samples["cycle"].tolist() == [0, 0, 1, 1]
