"""Samples from iperf3's output.

The files in iperf3/ were written by iperf3 3.12 on one machine, from 127.0.0.2 (client) to
127.0.0.3 (server); only the machine's name and the cookies were taken out.
"""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datacollect.errors import DatacollectWarning, ProblemError
from datacollect.measurement.estimates import estimate
from datacollect.measurement.iperf3 import samples_from_iperf3

IPERF3 = Path(__file__).parent / "iperf3"
CLIENT, SERVER = "127.0.0.2", "127.0.0.3"


def iperf3_tree(name: str) -> dict:
    return json.loads((IPERF3 / f"{name}.json").read_text())


def read(path: Path, *args, **options) -> pd.DataFrame:
    """Read samples; what is said beside them is for other tests."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DatacollectWarning)
        return samples_from_iperf3(path, *args, **options)


def read_tree(folder: Path, tree: object, **options) -> pd.DataFrame:
    file = folder / "test.json"
    file.write_text(json.dumps(tree))
    return samples_from_iperf3(file, **options)


def test_iperf3_gives_the_receivers_figure():
    """In tcp.json the receiver states the same bytes as the sender, over a longer time."""
    [sample] = samples_from_iperf3(IPERF3 / "tcp.json").to_dict("records")
    end = iperf3_tree("tcp")["end"]
    assert end["sum_received"]["bits_per_second"] < end["sum_sent"]["bits_per_second"]
    assert sample == {
        "from": CLIENT,
        "to": SERVER,
        "time_s": iperf3_tree("tcp")["start"]["timestamp"]["timesecs"],
        "bandwidth_bytes_per_s": end["sum_received"]["bits_per_second"] / 8,
        "bytes": end["sum_received"]["bytes"],
        "duration_s": end["sum_received"]["seconds"],
        "streams": 1,
        "kind": "TCP",
    }


def test_iperf3_rate_times_duration_is_bytes():
    """Independent of the keys chosen: what arrived divided by how long it took."""
    for name in ("tcp", "streams", "reverse", "bidir", "udp", "udp_reverse", "udp_lossy"):
        samples = read(IPERF3 / f"{name}.json")
        arrived = samples["bandwidth_bytes_per_s"] * samples["duration_s"]
        assert arrived.tolist() == pytest.approx(samples["bytes"].tolist(), rel=1e-3), name


def test_iperf3_streams_are_counted():
    assert samples_from_iperf3(IPERF3 / "streams.json")["streams"].tolist() == [2]


@pytest.mark.parametrize("name", ["reverse", "udp_reverse"])
def test_iperf3_reverse_test_measures_the_other_direction(name):
    samples = read(IPERF3 / f"{name}.json")
    assert samples[["from", "to"]].values.tolist() == [[SERVER, CLIENT]]
    received = iperf3_tree(name)["end"]["sum_received"]["bits_per_second"]
    assert samples["bandwidth_bytes_per_s"].tolist() == [received / 8]


def test_iperf3_bidirectional_test_gives_a_sample_each_way():
    """In bidir.json 677 511 168 bytes reached the server and 545 783 808 the client."""
    samples = samples_from_iperf3(IPERF3 / "bidir.json")
    assert samples[["from", "to", "bytes"]].values.tolist() == [
        [CLIENT, SERVER, 677_511_168],
        [SERVER, CLIENT, 545_783_808],
    ]


def test_iperf3_old_udp_output_loses_what_was_lost(tmp_path):
    """udp_lossy.json: 34 % lost; without the sums of newer versions the answer stays the same."""
    tree = iperf3_tree("udp_lossy")
    [new] = read_tree(tmp_path, tree)["bandwidth_bytes_per_s"]
    sent = tree["end"]["sum"]["bits_per_second"] / 8
    assert new < 0.7 * sent
    del tree["end"]["sum_sent"], tree["end"]["sum_received"]
    old = read_tree(tmp_path, tree)
    assert old["bandwidth_bytes_per_s"].tolist() == pytest.approx([new], rel=2e-3)
    assert old["bytes"].tolist() == pytest.approx([1_642_200_000], rel=2e-3)


def test_iperf3_old_udp_output_without_packets_measured_nothing(tmp_path):
    tree = iperf3_tree("udp")
    tree["end"] = {"sum": tree["end"]["sum"] | {"packets": 0, "lost_packets": 0}}
    with pytest.raises(ProblemError, match=r"test\.json: end\.sum: no packet was sent, so no"):
        read_tree(tmp_path, tree)


def test_iperf3_servers_output_has_the_peer_as_sender(tmp_path):
    """server_log.json holds a normal and a reverse test, one result after the other."""
    first, rest = json.JSONDecoder().raw_decode((IPERF3 / "server_log.json").read_text())
    samples = read_tree(tmp_path, first)
    assert rest < (IPERF3 / "server_log.json").stat().st_size
    assert samples[["from", "to", "bytes"]].values.tolist() == [[CLIENT, SERVER, 262_144]]
    with pytest.raises(ProblemError, match=r"test 2: the server's output lacks the receiver's"):
        samples_from_iperf3(IPERF3 / "server_log.json")


def test_iperf3_results_appended_to_one_file_are_all_read(tmp_path):
    file = tmp_path / "log.json"
    file.write_text("".join((IPERF3 / f"{n}.json").read_text() for n in ("tcp", "reverse")))
    assert samples_from_iperf3(file)["from"].tolist() == [CLIENT, SERVER]


def test_iperf3_folder_is_read_in_order_of_names(tmp_path):
    """Whatever files are called; those without results are named."""
    for place, name in (("2.json", "tcp"), ("1.log", "reverse")):
        shutil.copy(IPERF3 / f"{name}.json", tmp_path / place)
    (tmp_path / "README.md").write_text("Tests of May.\n")
    (tmp_path / "map.png").write_bytes(b"\x89PNG\r\n\x1a\n\0")
    (tmp_path / ".hidden.json").write_text("half")
    with pytest.warns(DatacollectWarning, match="2 files without results .*: README.md, map.png"):
        samples = samples_from_iperf3(tmp_path)
    assert samples["from"].tolist() == [SERVER, CLIENT]


def test_iperf3_addresses_become_names(tmp_path):
    """A name that was given to iperf3 itself needs no entry."""
    names = {CLIENT: "lyon", SERVER: "geneva"}
    assert samples_from_iperf3(IPERF3 / "tcp.json", names)["to"].tolist() == ["geneva"]
    tree = iperf3_tree("tcp")
    tree["start"]["connecting_to"]["host"] = "geneva"
    assert read_tree(tmp_path, tree)["to"].tolist() == [SERVER]
    by_name = read_tree(tmp_path, tree, names={CLIENT: "lyon", "10.9.9.9": "geneva"})
    assert by_name[["from", "to"]].values.tolist() == [["lyon", "geneva"]]
    with pytest.raises(ProblemError, match=r"address '127.0.0.2' is not in names; add it"):
        read_tree(tmp_path, tree, names={SERVER: "geneva"})


def test_iperf3_samples_become_estimates():
    names = {CLIENT: "lyon", SERVER: "geneva"}
    one = read(IPERF3 / "tcp.json", names)
    samples = pd.concat([one, one.assign(time_s=one["time_s"] + 60)])
    assert estimate(samples)["n_samples"].tolist() == [2]


def test_iperf3_failed_test_is_refused_with_its_message():
    with pytest.raises(
        ProblemError, match=r"refused.json: the test failed, iperf3 says 'unable to connect to"
    ):
        samples_from_iperf3(IPERF3 / "refused.json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"the file is empty"),
        ("{} trailing", r"with keys start and end"),
        ("not json", r"line 1: not complete JSON"),
        ("[1, 2]", r"must be the output of iperf3 -J"),
        ('"text"', r"must be the output of iperf3 -J"),
        ('{"event": "start", "data": {}}', r"written with --json-stream; use iperf3 -J without"),
        ('{"start": {}, "end": {}}', r"start.connected is empty"),
        ("[" * 100_000, r"nested too deeply"),
    ],
)
def test_iperf3_wrong_files_are_refused(tmp_path, text, message):
    file = tmp_path / "wrong.json"
    file.write_text(text)
    with pytest.raises(ProblemError, match=message) as caught:
        samples_from_iperf3(file)
    assert str(file) in str(caught.value)


@given(st.floats(0.01, 0.99))
def test_iperf3_truncated_file_is_refused(tmp_path_factory, share):
    """Wherever a result is cut, what is left is no result."""
    text = (IPERF3 / "tcp.json").read_text().strip()
    file = tmp_path_factory.mktemp("cut") / "cut.json"
    file.write_text(text[: int(share * len(text))])
    with pytest.raises(ProblemError, match="not complete JSON"):
        samples_from_iperf3(file)


def test_iperf3_old_bidirectional_output_names_its_ambiguity(tmp_path):
    """iperf3 up to 3.10 gave sum_sent and sum_received twice for --bidir."""
    text = (IPERF3 / "bidir.json").read_text().replace("_bidir_reverse", "")
    file = tmp_path / "old.json"
    file.write_text(text)
    with pytest.raises(ProblemError, match=r"'sum' is given twice, so its direction is unkn"):
        samples_from_iperf3(file)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t["end"].pop("sum_received"), r"end: sum_received is missing"),
        (lambda t: t["start"].pop("timestamp"), r"start: timestamp is missing"),
        (lambda t: t["start"].pop("test_start"), r"start: test_start is missing"),
        *(
            (
                lambda t, n=n: t["start"]["test_start"].update(num_streams=n),
                r"test_start\.num_streams must be a whole number of connections >= 1",
            )
            for n in (None, 0, 1.5, -2, "4", 1e300)
        ),
        (
            lambda t: t["end"]["sum_received"].update(bits_per_second="fast"),
            r"end.sum_received: bits_per_second must be a number, got 'fast'",
        ),
        (
            lambda t: t["end"]["sum_received"].update(bits_per_second=float("nan")),
            r"bits_per_second must be >= 0 and finite, got nan",
        ),
        (lambda t: t["start"]["connected"][0].pop("local_host"), r"must hold local_host and"),
        (
            lambda t: t["start"]["connected"][0].update(remote_host=CLIENT),
            r"a test from '127.0.0.2' to itself",
        ),
    ],
)
def test_iperf3_incomplete_result_is_refused(tmp_path, change, message):
    tree = iperf3_tree("tcp")
    change(tree)
    with pytest.raises(ProblemError, match=message):
        read_tree(tmp_path, tree)


def test_iperf3_empty_folder_missing_file_and_wrong_encoding_are_refused(tmp_path):
    with pytest.raises(ProblemError, match=r"the folder holds no file \*\.json"):
        samples_from_iperf3(tmp_path)
    with pytest.raises(ProblemError, match=r"none.json: no such file"):
        samples_from_iperf3(tmp_path / "none.json")
    file = tmp_path / "latin.json"
    file.write_bytes('{"error": "é"}'.encode("latin-1"))
    with pytest.raises(ProblemError, match=r"must be UTF-8 text"):
        samples_from_iperf3(file)
