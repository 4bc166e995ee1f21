"""What pulls have shown, in a problem file of tests."""

import json

import pytest

from datacollect.commands.main import run
from datacollect.measurement.sample_store import write_part
from datacollect.transfer.store.promises import KeptPull, ShownRate, keep

MB = 1e6


@pytest.fixture
def measured(tmp_path):
    """S and T were tested to D at 5 and 4 MB/s; a folder of a pull."""
    rows = [
        {
            "from": tail,
            "to": "D",
            "time_s": 1.7e9 + i,
            "tool": "tcp",
            "ended": "done",
            "bandwidth_bytes_per_s": rate,
            "streams": 1,
        }
        for i, (tail, rate) in enumerate([("S", 5 * MB), ("T", 4 * MB)])
    ]
    (tmp_path / "samples").mkdir()
    write_part(tmp_path / "samples", "one", rows)
    (tmp_path / "into/.datacollect").mkdir(parents=True)
    return tmp_path


def kept(folder, *shown):
    keep(folder, KeptPull(1.7e9, "direct", True, 1.0, None, None, 1.0, (), shown))


def problem(folder, capsys):
    arguments = [str(folder / "samples"), "--destination", "D", "--json"]
    assert run(["measure", "problem", *arguments, "--from-pulls", str(folder / "into")]) == 0
    return json.loads(capsys.readouterr().out)


def test_hosts_have_shown_what_pulls_got_over_all_their_links(measured, capsys):
    """The most of all pulls: D received 9 MB/s in the first, S sent 6 in the second."""
    into = measured / "into"
    kept(into, ShownRate("", "D", 9 * MB), ShownRate("S", "", 5 * MB))
    kept(into, ShownRate("", "D", 8 * MB), ShownRate("S", "", 6 * MB))
    found = problem(measured, capsys)
    assert found["problem"]["hosts"]["D"] == {"shown_downlink_bytes_per_s": 9 * MB}
    assert found["problem"]["hosts"]["S"] == {"shown_uplink_bytes_per_s": 6 * MB}
    assert any("pulls have shown of hosts" in text for text in found["notes"])


def test_a_link_that_no_test_has_measured_is_known_by_pulls(measured, capsys):
    kept(measured / "into", ShownRate("S", "T", 3 * MB), ShownRate("S", "D", 2 * MB))
    found = problem(measured, capsys)
    links = {
        (each["from"], each["to"]): each["bandwidth_bytes_per_s"]
        for each in found["problem"]["links"]
    }
    assert links == {("S", "D"): 5 * MB, ("T", "D"): 4 * MB, ("S", "T"): 3 * MB}
    assert ("S", "T") not in {(each["from"], each["to"]) for each in found["unknown"]}


def test_a_link_over_which_pulls_got_more_keeps_what_tests_say_and_is_named(measured, capsys):
    kept(measured / "into", ShownRate("S", "D", 9 * MB))
    found = problem(measured, capsys)
    assert [each["bandwidth_bytes_per_s"] for each in found["problem"]["links"]] == [5 * MB, 4 * MB]
    assert any("pulls got more over some links" in text for text in found["notes"])


def test_hosts_that_no_test_names_are_left_out_and_named(measured, capsys):
    kept(measured / "into", ShownRate("X", "D", 9 * MB), ShownRate("X", "", 9 * MB))
    found = problem(measured, capsys)
    assert "X" not in found["problem"]["hosts"]
    assert any("no test names such hosts: X" in text for text in found["notes"])


def test_a_folder_without_any_end_and_garbled_lines_are_told(measured, capsys):
    found = problem(measured, capsys)
    assert any("no pull has ended there" in text for text in found["notes"])
    (measured / "into/.datacollect/history.jsonl").write_text("garbled\n")
    found = problem(measured, capsys)
    assert any("1 line of pulls left out" in text for text in found["notes"])


def test_a_folder_of_no_pull_is_bad_input(measured, capsys):
    arguments = ["measure", "problem", str(measured / "samples"), "--destination", "D"]
    assert run([*arguments, "--from-pulls", str(measured)]) == 2
    assert "no pull has ever begun there" in capsys.readouterr().err
