"""What pulls have shown, in a problem file of tests."""

import json
import time

import pytest

from datacollect.commands.main import run
from datacollect.measurement.sample_store import write_part
from datacollect.transfer.store.promises import KeptPull, ShownRate, keep

MB = 1e6
DAY_S = 86_400.0


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


def kept(folder, *shown, ended_s=1.7e9):
    keep(folder, KeptPull(ended_s, "direct", True, 1.0, None, None, 1.0, (), shown))


def flooded(folder, rate):
    """S and T at once give D so much each: its line is what binds."""
    row = {"to": "D", "tool": "flood", "ended": "done", "bandwidth_bytes_per_s": rate}
    row |= {"time_s": 1.7e9 + 9, "streams": 1, "duration_s": 5.0, "concurrency": 1}
    row["settings"] = json.dumps({"host": "D", "flood": "1"})
    write_part(folder / "samples", "two", [row | {"from": tail} for tail in "ST"])


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


def test_a_pull_contradicts_a_limit_only_where_it_got_clearly_more(measured, capsys):
    """D's line carries 5 MB/s: 5.4 are as much, 8 are not, and are told."""
    flooded(measured, 2.5 * MB)
    limited = {"downlink_bytes_per_s": pytest.approx(5 * MB)}
    kept(measured / "into", ShownRate("", "D", 5.4 * MB))
    found = problem(measured, capsys)
    assert found["problem"]["hosts"]["D"] == limited
    assert not any("is limited to" in text for text in found["notes"])
    kept(measured / "into", ShownRate("", "D", 8 * MB))
    found = problem(measured, capsys)
    limited["shown_downlink_bytes_per_s"] = 8 * MB
    assert found["problem"]["hosts"]["D"] == limited
    assert sum("'D' is limited to downlink_bytes_per_s" in text for text in found["notes"]) == 1


def test_what_one_link_carries_is_not_written_of_its_host(measured, capsys):
    """S → D alone was tested at 5 MB/s."""
    kept(measured / "into", ShownRate("S", "", 4 * MB))
    assert problem(measured, capsys)["problem"]["hosts"]["S"] == {}


def test_how_old_a_pull_is_is_said(measured, capsys):
    now_s = time.time()
    kept(measured / "into", ShownRate("S", "", 6 * MB), ended_s=now_s - 400.5 * DAY_S)
    kept(measured / "into", ShownRate("", "D", 9 * MB), ended_s=now_s - DAY_S)
    notes = problem(measured, capsys)["notes"]
    (said,) = (text for text in notes if "pulls have shown of hosts" in text)
    assert said.endswith(": D received 72 Mbit/s, S sent 48 Mbit/s 400 days ago")


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
    assert "no pull has ever begun in this folder" in capsys.readouterr().err
