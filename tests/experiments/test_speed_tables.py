"""The tables of docs/speed.md."""

from __future__ import annotations


def test_tables_show_what_was_stopped_and_leave_out_what_is_not_there(speed):
    row = dict.fromkeys(speed.COLUMNS, "")
    row |= {"section": "shared", "what": "mesh", "reference": "GLOP", "hosts": "9"}
    row |= {"arcs": "72", "median_s": "0.5", "peak_memory_mb": "64.2"}
    row |= {"reference_median_s": "30", "ratio": "0.01667"}
    stopped = row | {"reference_stopped": "yes"}
    alone = row | {"section": "slotted", "reference": "", "reference_median_s": "", "ratio": ""}
    lines = speed.tables([row, stopped, alone])["speed_solvers"].splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert cells[0][5:9] == ["500 ms", "30 s", "60", "64 MB"]
    assert cells[1][5:9] == ["500 ms", "30 s", "≥ 60", "64 MB"]
    assert cells[2][5:9] == ["500 ms", "", "", "64 MB"]


def test_tables_say_what_was_measured_once(speed):
    row = dict.fromkeys(speed.COLUMNS, "")
    row |= {"section": "slotted", "what": "mesh", "reference": "none", "median_s": "17.2"}
    row |= {"repeats": "1"}
    line = speed.tables([row])["speed_solvers"].splitlines()[2]
    assert "| none |" in line
    assert "| 17.2 s (once) |" in line
    assert "| 17.2 s |" in speed.tables([row | {"repeats": "5"}])["speed_solvers"]


def test_both_whole_networks_are_named_beside_each_other(speed, scripts):
    """A flow of 9 s and one of 3 s beside plans of 0.1 s; another plan has one comparison only."""
    row = dict.fromkeys(speed.COLUMNS, "") | {"section": "slotted", "what": "mesh"}
    row |= {"hosts": "5", "slots": "7", "median_s": "0.1", "reference_median_s": "3"}
    ours = row | {"reference": "OR-Tools min-cost flow", "ratio": "0.03333"}
    textbook = scripts("speed_tables").TEXTBOOK
    other = row | {"reference": f"OR-Tools min-cost flow, {textbook}", "ratio": "0.01111"}
    alone = ours | {"slots": "9"}
    said = speed.tables([ours, other, alone])["speed_whole_networks"]
    assert said == (
        "- mesh, 5 hosts, 7 slots: 90 times with one node per host and boundary, 30 times with own "
        "data in nodes of their own."
    )
    assert speed.tables([ours, alone])["speed_whole_networks"] == ""
