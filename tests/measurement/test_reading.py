"""One reader of measurements: by content, each test once, nothing measured is not zero."""

from __future__ import annotations

import copy
import gzip
import json
import shutil
import warnings
from pathlib import Path

import pytest

from datacollect.errors import DatacollectWarning, ProblemError
from datacollect.measurement.iperf3 import samples_from_iperf3
from datacollect.measurement.reading import read_measurements
from datacollect.measurement.samples import read_samples

IPERF3 = Path(__file__).parent / "iperf3"


def result(time_s=1_700_000_000, cookie="", *, server=False, limit_bit_per_s=0, **received):
    """Return what iperf3 -J prints of 1 MB/s from a to b, as the client or the server has it."""
    ends = (
        {"local_host": "b", "remote_host": "a"}
        if server
        else {
            "local_host": "a",
            "remote_host": "b",
        }
    )
    start = {
        "connected": [ends],
        "timestamp": {"timesecs": time_s},
        "test_start": {
            "protocol": "TCP",
            "num_streams": 2,
            "reverse": 0,
            "target_bitrate": limit_bit_per_s,
        },
    }
    if cookie:
        start["cookie"] = cookie
    if server:
        start["accepted_connection"] = {"host": "a", "port": 1}
    total = {"seconds": 10.0, "bytes": 10_000_000, "bits_per_second": 8e6} | received
    return {"start": start, "end": {"sum_received": total}}


FAILED = {"start": {"connected": []}, "end": {}, "error": "unable to connect to server"}
TABLE = "from,to,time_s,bandwidth_bytes_per_s\na,b,0,1000000\n"


def write(folder: Path, name: str, *parts: object) -> Path:
    texts = [part if isinstance(part, str) else json.dumps(part) for part in parts]
    path = folder / name
    path.write_text("\n".join(texts) + "\n")
    return path


def quiet(*paths: Path, **options):
    return read_measurements(paths, **options)


# Kind by content ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.json", "a.log", "a.txt", "a.csv", "a", "a.json.gz"])
@pytest.mark.parametrize(
    "encode",
    [
        lambda text: text.encode(),
        lambda text: text.encode("utf-16"),
        lambda text: gzip.compress(text.encode("utf-8-sig"), mtime=0),
    ],
)
def test_what_a_file_is_its_content_says(tmp_path, name, encode):
    (tmp_path / name).write_bytes(encode(json.dumps(result())))
    assert read_samples(tmp_path / name)["bandwidth_bytes_per_s"].tolist() == [1e6]
    (tmp_path / name).write_bytes(encode(TABLE))
    assert read_samples(tmp_path / name)["bandwidth_bytes_per_s"].tolist() == [1e6]


@pytest.mark.parametrize(
    "parts",
    [
        [result(1), result(2)],
        [[result(1), result(2)]],
        [json.dumps(result(1)) + json.dumps(result(2), indent=1)],
        [[result(1)], result(2)],
    ],
)
def test_several_documents_of_one_file_are_all_read(tmp_path, parts):
    found = quiet(write(tmp_path, "log.txt", *parts))
    assert (found.samples["time_s"].tolist(), found.notes) == ([1, 2], ())


@pytest.mark.parametrize(
    "before", ["warning: JSON data length overflow", "+ iperf3 -c b -J", "]", "[INFO] x"]
)
def test_lines_of_text_around_documents_are_passed_over_and_named(tmp_path, before):
    path = write(tmp_path, "log.txt", before, result(1), "done, without a result", result(2))
    found = quiet(path)
    assert found.samples["time_s"].tolist() == [1, 2]
    assert found.notes == (f"{path}: 2 lines of other text skipped, such as {before!r}",)


@pytest.mark.parametrize("prefix", ["May  1 12:00:00 lyon iperf3: ", "\ufeff", "[12:00] {x} "])
def test_documents_behind_text_of_the_same_line_are_read(tmp_path, prefix):
    """As system logs have them, or files with byte order marks that were joined."""
    path = write(tmp_path, "log", prefix + json.dumps(result(1)), prefix + json.dumps(result(2)))
    assert quiet(path).samples["time_s"].tolist() == [1, 2]


def test_a_table_may_hold_json_in_a_field(tmp_path):
    text = 'from,to,time_s,bandwidth_bytes_per_s,note\na,b,0,1,"{""start"": {}}"'
    columns = {"from": "from"}
    assert read_samples(write(tmp_path, "a.csv", text), columns)["from"].tolist() == ["a"]


def test_notes_are_warnings_and_a_field_of_the_result(tmp_path, capfd):
    path = write(tmp_path, "log.txt", "hello", result())
    with pytest.warns(DatacollectWarning, match="1 line of other text skipped, such as 'hell"):
        samples = read_samples(path)
    assert samples.attrs["notes"] == quiet(path).notes != ()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[ ID] Interval           Transfer\n[  5]  0.00-1.00 sec\n", r"output for people; repeat"),
        ("iperf3: error - unable to connect\n", r"the test failed, iperf3 says 'iperf3: error"),
        (" \n", r"the file is empty"),
        ('[{"ts": 1, "val": 2.0}]', r"is esmond's answer, which does not say which hosts .*csv"),
        ('{"metadata-key": "a", "event-types": []}', r"does not say what was measured"),
        ('{"format": "datacollect-problem/1"}', r"must be the output of iperf3 -J, with keys"),
    ],
)
def test_what_is_neither_is_refused_with_what_to_give(tmp_path, text, message):
    with pytest.raises(ProblemError, match=message):
        read_samples(write(tmp_path, "a.txt", text))


# No times -----------------------------------------------------------------------------------


def test_a_table_without_times_needs_to_be_told(tmp_path):
    path = write(tmp_path, "a.csv", "from,to,bandwidth_bytes_per_s\na,b,1\na,b,2")
    with pytest.raises(
        ProblemError, match=r"columns time_s, time, got none; add one, or .* --no-t"
    ):
        read_samples(path)
    assert read_samples(path, times=False)["time_s"].tolist() == [0, 0]
    timed = write(tmp_path, "b.json", result())
    assert quiet(timed, times=False).samples["time_s"].tolist() == [0]


@pytest.mark.parametrize(
    ("time", "seconds"),
    [
        ("0001-01-01T00:00:00Z", -62_135_596_800),
        ("2024-05-01 12:00:00+00:00", 1_714_564_800),
    ],
)
def test_dates_of_all_years_are_read(tmp_path, time, seconds):
    path = write(tmp_path, "a.csv", f"from,to,time,bandwidth_bytes_per_s\na,b,{time},1")
    assert read_samples(path)["time_s"].tolist() == [seconds]


@pytest.mark.parametrize("number", ["1200", "1714564800", "20240501", "1.5"])
def test_a_number_is_no_date(tmp_path, number):
    """1200 may be the year, or seconds; in time_s it is what it says."""
    text = f"from,to,time,bandwidth_bytes_per_s\na,b,{number},1"
    with pytest.raises(
        ProblemError, match=r"time must be an ISO 8601 .* in a column called time_s"
    ):
        read_samples(write(tmp_path, "a.csv", text))
    assert read_samples(write(tmp_path, "a.csv", text.replace("time", "time_s")))[
        "time_s"
    ].tolist() == [float(number)]


# Nothing measured is not zero ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("received", "why"),
    [
        ({"bytes": 0, "bits_per_second": 0}, r"end\.sum_received: nothing arrived in 10 s"),
        ({"bytes": 0}, r"nothing arrived in 10 s"),
        ({"bits_per_second": 0}, r"nothing arrived in 10 s"),
        ({"seconds": 0, "bytes": 0, "bits_per_second": 0}, r"the test lasted 0 s"),
        ({"packets": 0}, r"no packet was sent, so nothing was measured"),
        ({"packets": 9, "lost_packets": 9}, r"nothing arrived: all 9 packets were lost"),
    ],
)
def test_a_test_that_measured_nothing_is_an_error_with_its_file(tmp_path, received, why):
    path = write(tmp_path, "a.json", result(**received))
    with pytest.raises(ProblemError, match=why) as caught:
        samples_from_iperf3(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_of_two_directions_the_one_that_arrived_counts_only_when_told(tmp_path):
    tree = json.loads((IPERF3 / "bidir.json").read_text())
    tree["end"]["sum_received_bidir_reverse"] |= {"bytes": 0, "bits_per_second": 0}
    path = write(tmp_path, "a.json", tree)
    with pytest.raises(ProblemError, match=r"sum_received_bidir_reverse: nothing arrived"):
        samples_from_iperf3(path)
    with pytest.warns(DatacollectWarning, match=r"1 test that failed skipped: .*nothing arr"):
        samples = samples_from_iperf3(path, skip_failed=True)
    assert samples["bytes"].tolist() == [677_511_168]


@pytest.mark.parametrize("value", ["0", "", "None", "null", "nan", "0.0"])
def test_a_row_that_measured_nothing_is_an_error_with_its_line(tmp_path, value):
    path = write(tmp_path, "a.csv", TABLE.strip(), f"a,b,9,{value}")
    with pytest.raises(ProblemError, match=r"a\.csv, line 3: .* nothing was measured; repeat"):
        read_samples(path)
    with pytest.warns(DatacollectWarning, match=r"1 test that failed skipped: .*line 3"):
        assert read_samples(path, skip_failed=True)["time_s"].tolist() == [0]


@pytest.mark.parametrize("column", ["bytes", "duration_s"])
def test_a_row_of_no_bytes_or_seconds_measured_nothing(tmp_path, column):
    path = write(tmp_path, "a.csv", f"from,to,time_s,bandwidth_bytes_per_s,{column}\na,b,0,1,0")
    with pytest.raises(ProblemError, match=rf"line 2: {column} must be .* > 0, got '0': nothing"):
        read_samples(path)


# Failed tests -------------------------------------------------------------------------------


def test_all_failed_tests_are_listed_at_once_and_can_be_passed_over(tmp_path):
    """A folder as cron fills it: good, refused, cut off, empty, half packed."""
    write(tmp_path, "1.json", result(1))
    write(tmp_path, "2.json", FAILED)
    write(tmp_path, "3.log", json.dumps(result(3), indent=1)[:200], result(4))
    write(tmp_path, "5.json", "")
    write(tmp_path, "6.txt", "iperf3: error - unable to send control message")
    (tmp_path / "7.json.gz").write_bytes(
        gzip.compress(json.dumps(result(7)).encode(), mtime=0)[:-9]
    )
    (tmp_path / "8.json.gz").write_bytes(gzip.compress(json.dumps(result(8)).encode(), mtime=0))
    with pytest.raises(ProblemError) as caught:
        samples_from_iperf3(tmp_path)
    first, *lines, last = str(caught.value).splitlines()
    assert first == "5 tests failed:"
    for line, (name, why) in zip(
        lines,
        [
            ("2.json", "iperf3 says 'unable to connect"),
            ("3.log", "not complete JSON"),
            ("5.json", "the file is empty"),
            ("6.txt", "unable to send control"),
            ("7.json.gz", "cut off or damaged"),
        ],
        strict=True,
    ):
        assert name in line
        assert why in line
    assert last.strip().startswith("repeat them, or skip what failed with --skip-failed, which")
    assert "leaves 3 good ones" in last
    with pytest.warns(DatacollectWarning, match=r"5 tests that failed skipped"):
        samples = samples_from_iperf3(tmp_path, skip_failed=True)
    assert samples["time_s"].tolist() == [1, 4, 8]


def test_other_files_of_a_folder_are_named_and_no_failures(tmp_path):
    """Also what is JSON, or a table, of something else."""
    write(tmp_path, "1.json", result(1))
    write(tmp_path, "config.json", {"format": "datacollect-problem/1"})
    write(tmp_path, "hosts.csv", "name,address\nlyon,10.0.0.1")
    write(tmp_path, "samples.csv", TABLE)
    found = quiet(tmp_path)
    assert found.samples["time_s"].tolist() == [1, 0]
    assert found.notes == (
        f"{tmp_path}: 2 files without results of tests skipped: config.json, hosts.csv",
    )


def test_a_test_that_ends_without_a_sum_failed(tmp_path):
    half = result(2)
    del half["end"]["sum_received"]
    path = write(tmp_path, "a.json", result(1), half)
    with pytest.raises(ProblemError, match=r"test 2: end: sum_received is missing.*--skip-failed"):
        samples_from_iperf3(path)
    assert quiet(path, skip_failed=True).samples["time_s"].tolist() == [1]


def test_where_all_failed_there_is_nothing_to_pass_over(tmp_path):
    path = write(tmp_path, "a.json", FAILED)
    with pytest.raises(ProblemError, match=r"unable to connect to server'; repeat the test$"):
        samples_from_iperf3(path, skip_failed=True)


def test_what_is_malformed_is_never_passed_over(tmp_path):
    path = write(tmp_path, "a.csv", TABLE.strip(), "a,b,9,fast")
    with pytest.raises(ProblemError, match=r"line 3: .* must be a finite number, got 'fast'"):
        read_samples(path, skip_failed=True)


# One test is one sample ---------------------------------------------------------------------


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_a_test_at_both_its_ends_counts_once_as_the_client_has_it(tmp_path, order):
    """The server's clock is 7 s ahead, and it saw a little more."""
    outputs = [
        result(100, "cookie-1"),
        result(107, "cookie-1", server=True, bits_per_second=9e6),
    ]
    paths = [write(tmp_path, f"{i}.json", outputs[i]) for i in order]
    found = quiet(*paths)
    assert found.samples[["time_s", "bandwidth_bytes_per_s"]].to_numpy().tolist() == [[100, 1e6]]
    assert len(found.notes) == 1
    assert "1 output of a test that was read already" in found.notes[0]


def test_tests_of_other_cookies_are_others(tmp_path):
    path = write(tmp_path, "a.json", result(1, "cookie-1"), result(7, "cookie-2", server=True))
    assert (len(quiet(path).samples), quiet(path).notes) == (2, ())


def test_what_is_printed_twice_counts_once(tmp_path):
    one = result(1, "cookie-1")
    path = write(tmp_path, "a.json", one, result(2, "cookie-2"), copy.deepcopy(one))
    with pytest.warns(DatacollectWarning, match=r"second copy has it: .*a\.json, test 3; each"):
        assert samples_from_iperf3(path)["time_s"].tolist() == [1, 2]


def test_equal_outputs_without_a_cookie_are_of_one_instant_and_count_once(tmp_path):
    path = write(tmp_path, "a.json", result(1), result(1), result(2))
    with pytest.warns(DatacollectWarning, match=r"second copy has it: .*a\.json, test 2; each"):
        assert samples_from_iperf3(path)["time_s"].tolist() == [1, 2]


def test_a_date_that_no_calendar_follows_lies_ahead(tmp_path):
    text = "from,to,time,bandwidth_bytes_per_s\na,b,2024-05-01,1\na,b,9999-12-31T23:59:59Z,7\n"
    path = write(tmp_path, "a.csv", text)
    with pytest.warns(DatacollectWarning, match=r"1 sample of 1 link .* the last of 9999-12-31"):
        assert read_samples(path)["bandwidth_bytes_per_s"].tolist() == [1]


def test_a_file_given_twice_counts_once(tmp_path):
    path = write(tmp_path, "a.csv", TABLE)
    shutil.copy(path, tmp_path / "copy.txt")
    found = quiet(path, path, tmp_path / "copy.txt")
    assert len(found.samples) == 1
    assert [note.partition(" holds the same as ")[0] for note in found.notes] == [
        str(path),
        str(tmp_path / "copy.txt"),
    ]


# What is to be known of samples --------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit_bit_per_s", "is_limited"),
    [(0, False), (4e6, True), (4.1e6, True), (5e6, False), (1e9, False)],
)
def test_a_test_limited_by_its_own_b_is_noted(tmp_path, limit_bit_per_s, is_limited):
    """Two streams reached 8 Mbit/s together; -b limits each."""
    found = quiet(write(tmp_path, "a.json", result(limit_bit_per_s=limit_bit_per_s)))
    assert ["1 test reached the rate set for it (-b)" in n for n in found.notes] == [
        True
    ] * is_limited


def test_old_udp_tests_are_limited_by_the_rate_they_sent_at(tmp_path):
    """It is not said; but all that was sent arrived, or half of it was lost."""
    for bits_per_second, is_limited in ((8.2e6, True), (16e6, False)):
        tree = result(protocol="UDP")
        tree["start"]["test_start"] |= {"protocol": "UDP"}
        del tree["start"]["test_start"]["target_bitrate"]
        tree["end"]["sum"] = {"bits_per_second": bits_per_second}
        notes = quiet(write(tmp_path, "a.json", tree)).notes
        assert ["rate set for it (-b)" in note for note in notes] == [True] * is_limited


def test_samples_say_of_what_kind_of_test_they_are(tmp_path):
    other = result(2)
    other["start"]["test_start"] |= {"num_streams": 8, "protocol": "UDP"}
    found = quiet(write(tmp_path, "a.json", result(1), other))
    assert found.samples[["kind", "streams"]].to_numpy().tolist() == [["TCP", 2], ["UDP", 8]]
    both = samples_from_iperf3(IPERF3 / "bidir.json")
    assert both["kind"].tolist() == ["TCP both ways at once"] * 2


def test_tables_may_say_of_what_kind_tests_are(tmp_path):
    text = "from,to,time_s,bandwidth_bytes_per_s,streams,kind\na,b,0,1,1,QUIC"
    found = read_samples(write(tmp_path, "a.csv", text))
    assert found["kind"].tolist() == ["QUIC"]


# Folders ------------------------------------------------------------------------------------


def test_folders_below_a_folder_are_read_in_order(tmp_path):
    """Hidden ones are not, nor links to folders, which may lead in circles."""
    for folder, time_s in (("lyon", 2), ("lyon/2026-05", 1), ("zurich", 3), (".old", 4)):
        (tmp_path / folder).mkdir(exist_ok=True)
        write(tmp_path / folder, "a.json", result(time_s))
    write(tmp_path / "zurich", "notes.txt", "nothing")
    (tmp_path / "zurich" / "up").symlink_to(tmp_path)
    found = quiet(tmp_path)
    assert found.samples["time_s"].tolist() == [1, 2, 3]
    assert found.notes == (
        f"{tmp_path}: 1 file without results of tests skipped: zurich/notes.txt",
    )


def test_names_of_a_folder_are_those_of_all_below_it(tmp_path):
    """The nearest file counts before those above it, and what is said by hand before all."""
    (tmp_path / "may").mkdir()
    write(tmp_path, "names.csv", "address,host\na,lyon\nb,geneva")
    write(tmp_path / "may", "names.csv", "host,address\nbern,b")
    write(tmp_path, "1.json", result(1))
    write(tmp_path / "may", "2.json", result(2))
    pairs = ["from", "to"]
    found = quiet(tmp_path)
    assert found.samples[pairs].to_numpy().tolist() == [["lyon", "geneva"], ["lyon", "bern"]]
    assert found.notes == ()
    by_hand = quiet(tmp_path, names={"a": "paris"})
    assert by_hand.samples[pairs].to_numpy().tolist() == [["paris", "geneva"], ["paris", "bern"]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("address,name\na,lyon", "line 1: must have the columns address and host, got address, na"),
        ("address,host\na,", "line 2: host must not be empty"),
        ("address,host\na,lyon\na,bern", "line 3: address 'a' must be that of one host, got 'ber"),
    ],
)
def test_a_table_of_names_that_breaks_a_rule_is_refused(tmp_path, text, message):
    write(tmp_path, "names.csv", text)
    write(tmp_path, "1.json", result(1))
    with pytest.raises(ProblemError, match=message):
        quiet(tmp_path)


def test_tables_and_results_count_together(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = quiet(write(tmp_path, "a.csv", TABLE), write(tmp_path, "b.json", result()))
    assert found.samples[["from", "to", "time_s"]].to_numpy().tolist() == [
        ["a", "b", 0],
        ["a", "b", 1_700_000_000],
    ]
