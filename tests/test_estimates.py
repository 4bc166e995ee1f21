"""Measurements to bandwidths: samples from CSV and iperf3, estimates, perturbed problems.

The files in iperf3/ were written by iperf3 3.12 on one machine, from 127.0.0.2 (client) to
127.0.0.3 (server); only the machine's name and the cookies were taken out.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datacollect.errors import ProblemError
from datacollect.estimates import (
    estimate,
    perturb,
    perturb_random,
    read_samples,
    samples_from_iperf3,
)
from datacollect.problem import Problem

IPERF3 = Path(__file__).parent / "iperf3"
CLIENT, SERVER = "127.0.0.2", "127.0.0.3"


def table(rows: list[tuple[str, str, float, float]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["from", "to", "time_s", "bandwidth_bytes_per_s"])


def value(samples: pd.DataFrame, how: str = "ewma", **options: float) -> float:
    estimated = estimate(samples, how, **options)
    assert len(estimated) == 1
    return float(estimated["bandwidth_bytes_per_s"].iloc[0])


# Estimates


def test_ewma_weighs_the_past_with_a_and_starts_at_the_first_sample():
    """10, then 0.1·20 + 0.9·10 = 11, then 0.1·31 + 0.9·11 = 13."""
    samples = table([("S", "D", 0, 10), ("S", "D", 1, 20), ("S", "D", 2, 31)])
    assert value(samples.iloc[:1]) == 10
    assert value(samples.iloc[:2]) == pytest.approx(11)
    assert value(samples) == pytest.approx(13)
    assert value(samples, a=0.0) == 31


def test_order_is_that_of_time_not_of_rows():
    """In order of time 10, 20: avg = 0.1·20 + 0.9·10 = 11; the newest is 20."""
    samples = table([("S", "D", 7, 20), ("S", "D", 3, 10)])
    assert value(samples) == pytest.approx(11)
    assert value(samples, "last") == 20


def test_samples_of_the_same_time_count_in_the_order_of_rows():
    assert value(table([("S", "D", 7, 20), ("S", "D", 7, 10)]), "last") == 10


def test_median_and_quantile_interpolate_between_neighbours():
    """Of 1, 2, 4, 8 the median is 3 and the lower quartile 1 + 0.75·1 = 1.75."""
    samples = table([("S", "D", i, y) for i, y in enumerate([8, 1, 4, 2])])
    assert value(samples, "median") == 3
    assert value(samples, "quantile") == 1.75
    assert value(samples, "quantile", quantile=0.0) == 1
    assert value(samples, "quantile", quantile=1.0) == 8


def test_pairs_are_ordered_and_apart():
    """B -> A and A -> B are two pairs; ages count from the newest sample of all, at 9."""
    samples = table([("B", "A", 4, 1), ("A", "B", 9, 5), ("B", "A", 2, 3)])
    estimated = estimate(samples, "last")
    assert estimated.to_dict("records") == [
        {
            "from": "A",
            "to": "B",
            "bandwidth_bytes_per_s": 5,
            "newest_s": 9,
            "age_s": 0,
            "n_samples": 1,
        },
        {
            "from": "B",
            "to": "A",
            "bandwidth_bytes_per_s": 1,
            "newest_s": 4,
            "age_s": 5,
            "n_samples": 2,
        },
    ]
    assert estimate(samples, now_s=10.0)["age_s"].tolist() == [1, 6]


def test_no_samples_give_no_estimates():
    for how in ("ewma", "last", "median", "quantile"):
        assert estimate(table([]), how).empty


@given(
    st.lists(
        st.tuples(
            st.sampled_from("AB"),
            st.sampled_from("CD"),
            st.integers(0, 5),
            st.floats(0, 1e9, allow_subnormal=False),
        ),
        min_size=1,
        max_size=40,
    ),
    st.floats(0, 0.99),
)
def test_estimates_equal_the_definitions_sample_by_sample(rows, a):
    """The oracle follows the definitions one sample at a time."""
    estimated = {how: estimate(table(rows), how, a=a) for how in ("ewma", "last", "median")}
    low = estimate(table(rows), "quantile", quantile=0.3)
    pairs = sorted({row[:2] for row in rows})
    for i, pair in enumerate(pairs):
        ordered = [y for *_, y in sorted((r for r in rows if r[:2] == pair), key=lambda r: r[2])]
        average = ordered[0]
        for y in ordered[1:]:
            average = (1 - a) * y + a * average
        got = {how: table_["bandwidth_bytes_per_s"][i] for how, table_ in estimated.items()}
        assert got["ewma"] == pytest.approx(average, rel=1e-9)
        assert got["last"] == pytest.approx(ordered[-1], rel=1e-12)
        assert got["median"] == pytest.approx(float(np.median(ordered)), rel=1e-12)
        expected = float(np.quantile(ordered, 0.3))
        assert low["bandwidth_bytes_per_s"][i] == pytest.approx(expected, rel=1e-9)
    for table_ in estimated.values():
        assert list(zip(table_["from"], table_["to"], strict=True)) == pairs
        assert table_["n_samples"].sum() == len(rows)


def test_estimates_make_a_problem():
    samples = table([("S", "D", 0, 10), ("S", "K", 1, 20), ("K", "D", 2, 30)])
    problem = Problem.from_dataframe(estimate(samples), {"S": 100}, "D")
    assert problem.names == ("D", "K", "S")
    assert problem.bandwidth_bytes_per_s.tolist() == [[30, 10, 20]]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (("S", "D", 0, float("nan")), "row 1: bandwidth_bytes_per_s must be >= 0 and finite"),
        (("S", "D", 0, -1), "got -1"),
        (("S", "D", 0, float("inf")), "got inf"),
        (("S", "D", float("nan"), 1), "row 1: time_s must be finite, got nan"),
        (("S", "S", 0, 1), "row 1: from and to must differ, got 'S' twice"),
        ((None, "D", 0, 1), "row 1: from must be a host's name"),
        (("S", "D", 0, "fast"), "bandwidth_bytes_per_s must hold numbers"),
    ],
)
def test_bad_samples_are_refused(row, message):
    with pytest.raises(ProblemError, match=message):
        estimate(table([("S", "D", 0, 1), row]))


def test_bad_options_are_refused():
    samples = table([("S", "D", 5, 1)])
    with pytest.raises(ProblemError, match=r"got 'emwa'; did you mean 'ewma'\?"):
        estimate(samples, "emwa")
    with pytest.raises(ProblemError, match=r"a must be >= 0 and < 1, got 1\.0"):
        estimate(samples, a=1.0)
    with pytest.raises(ProblemError, match=r"quantile must be between 0 and 1, got 25"):
        estimate(samples, "quantile", quantile=25)
    with pytest.raises(ProblemError, match=r"now_s must not lie before the newest sample, 5"):
        estimate(samples, now_s=4.0)
    with pytest.raises(ProblemError, match=r"column time_s is missing.*did you mean 'time'"):
        estimate(samples.rename(columns={"time_s": "time"}))


# Samples from CSV


def write(folder: Path, text: str | bytes) -> Path:
    file = folder / "probes.csv"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


@pytest.mark.parametrize(
    ("column", "value_"),
    [
        ("bandwidth_bytes_per_s", "5e6"),
        ("bandwidth_bit_per_s", "40000000"),
        ("bandwidth_mbit_per_s", "40"),
    ],
)
def test_units_of_bandwidth_are_converted(tmp_path, column, value_):
    """40 Mbit/s = 40 000 000 bit/s = 5 000 000 bytes/s."""
    file = write(tmp_path, f"from,to,time_s,{column}\nS,D,3,{value_}\n")
    assert read_samples(file).values.tolist() == [["S", "D", 3.0, 5e6]]


def test_times_may_be_iso_8601(tmp_path):
    """12:00+02:00 is 10:00 UTC; a day has 86 400 s; without offset a time is UTC."""
    file = write(
        tmp_path,
        "from,to,time,bandwidth_bytes_per_s\n"
        "S,D,1970-01-02T12:00:00+02:00,1\n"
        "S,D,1970-01-02T00:00:00.5,1\n"
        "S,D,1970-01-03,1\n",
    )
    assert read_samples(file)["time_s"].tolist() == [86_400 + 36_000, 86_400.5, 172_800]


def test_optional_columns_are_kept_and_blank_lines_and_a_byte_order_mark_skipped(tmp_path):
    file = write(
        tmp_path,
        "\ufefffrom,to,time_s,bandwidth_bytes_per_s,streams,bytes,concurrency\r\n"
        "\r\nS,D,1,2,64,7,3\r\n\r\n",
    )
    samples = read_samples(file)
    assert samples.to_dict("records") == [
        {
            "from": "S",
            "to": "D",
            "time_s": 1,
            "bandwidth_bytes_per_s": 2,
            "bytes": 7,
            "streams": 64,
            "concurrency": 3,
        }
    ]


def test_hosts_called_na_or_007_keep_their_names(tmp_path):
    file = write(tmp_path, "from,to,time_s,bandwidth_bytes_per_s\nNA,007,1,2\n")
    assert read_samples(file)[["from", "to"]].values.tolist() == [["NA", "007"]]


HEADER = "from,to,time_s,bandwidth_bytes_per_s\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADER + "S,D,1,2\nS,D,1,fast\n", r"line 3: bandwidth_bytes_per_s .* got 'fast'; correct"),
        (HEADER + "\n\nS,D,1,nan\n", r"line 4: bandwidth_bytes_per_s must be a finite number"),
        (HEADER + "S,D,1,inf\n", r"line 2: bandwidth_bytes_per_s must be a finite number"),
        (HEADER + "S,D,1,-2\n", r"line 2: bandwidth_bytes_per_s must be >= 0, got '-2'"),
        (HEADER + "S,D,soon,2\n", r"line 2: time_s must be a finite number, got 'soon'"),
        (HEADER + "S,S,1,2\n", r"line 2: to must differ from from, got 'S'"),
        (HEADER + ",D,1,2\n", r"line 2: from must be a host's name, got ''"),
        (HEADER + "S,D,1\n", r"line 2: bandwidth_bytes_per_s must be a finite number"),
        (HEADER + "S,D,1,2,3\n", r"line 2: must have 4 fields like the header, got 5"),
        (HEADER + "S,D,1,2\nS,D,1,2,3\n", r"not a CSV file: .*line 3"),
        ("", r"line 1: no header"),
        ("from,to,time,bandwidth_bytes_per_s\nS,D,noon,2\n", r"line 2: time must be an ISO 8601"),
        ("from,to,time_s,bandwidth\n", r"unknown column 'bandwidth'.*did you mean 'bandwidth_"),
        ("from,to,time_s\n", r"exactly one of the columns bandwidth_bytes_per_s, .*got none"),
        ("from,to,bandwidth_bit_per_s\n", r"exactly one of the columns time_s, time, got none"),
        (
            "from,to,time_s,bandwidth_bit_per_s,bandwidth_bytes_per_s\n",
            r"got bandwidth_bytes_per_s and bandwidth_bit_per_s",
        ),
        ("from,time_s,bandwidth_bit_per_s\n", r"line 1: column to is missing"),
        ("from,from,to,time_s,bandwidth_bit_per_s\n", r"line 1: column from given twice"),
        ("a" * 200_000, r"not a CSV file: field larger"),
        (HEADER.encode("utf-16"), r"must be UTF-8 text"),
        (HEADER.encode() + "S,Zürich,1,2\n".encode("latin-1"), r"must be UTF-8 text"),
    ],
)
def test_bad_csv_is_refused_with_file_line_and_rule(tmp_path, text, message):
    file = write(tmp_path, text)
    with pytest.raises(ProblemError, match=message) as caught:
        read_samples(file)
    assert str(file) in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_missing_csv_or_a_folder_is_refused(tmp_path):
    with pytest.raises(ProblemError, match=r"cannot be read: No such file"):
        read_samples(tmp_path / "none.csv")
    with pytest.raises(ProblemError, match=r"cannot be read: Is a directory"):
        read_samples(tmp_path)


# Samples from iperf3


def iperf3_tree(name: str) -> dict:
    return json.loads((IPERF3 / f"{name}.json").read_text())


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
    }


def test_iperf3_rate_times_duration_is_bytes():
    """Independent of the keys chosen: what arrived divided by how long it took."""
    for name in ("tcp", "streams", "reverse", "bidir", "udp", "udp_reverse", "udp_lossy"):
        samples = samples_from_iperf3(IPERF3 / f"{name}.json")
        arrived = samples["bandwidth_bytes_per_s"] * samples["duration_s"]
        assert arrived.tolist() == pytest.approx(samples["bytes"].tolist(), rel=1e-3), name


def test_iperf3_streams_are_counted():
    assert samples_from_iperf3(IPERF3 / "streams.json")["streams"].tolist() == [2]


@pytest.mark.parametrize("name", ["reverse", "udp_reverse"])
def test_iperf3_reverse_test_measures_the_other_direction(name):
    samples = samples_from_iperf3(IPERF3 / f"{name}.json")
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


def test_iperf3_old_udp_output_without_packets_received_nothing(tmp_path):
    tree = iperf3_tree("udp")
    tree["end"] = {"sum": tree["end"]["sum"] | {"packets": 0, "lost_packets": 0}}
    assert read_tree(tmp_path, tree)["bandwidth_bytes_per_s"].tolist() == [0]


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
    for place, name in (("2.json", "tcp"), ("1.json", "reverse"), ("3.txt", "refused")):
        shutil.copy(IPERF3 / f"{name}.json", tmp_path / place)
    assert samples_from_iperf3(tmp_path)["from"].tolist() == [SERVER, CLIENT]


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
    samples = pd.concat([samples_from_iperf3(IPERF3 / f"{n}.json", names) for n in ("tcp", "udp")])
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
        (lambda t: t["start"]["test_start"].pop("num_streams"), r"num_streams must be a number"),
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
    with pytest.raises(ProblemError, match=r"cannot be read: No such file"):
        samples_from_iperf3(tmp_path / "none.json")
    file = tmp_path / "utf16.json"
    file.write_bytes("{}".encode("utf-16"))
    with pytest.raises(ProblemError, match=r"must be UTF-8 text"):
        samples_from_iperf3(file)


# Perturbed problems


@pytest.fixture
def problem() -> Problem:
    """Links in order K->D 4, S->D 1, S->K 8; hosts D, K, S; two periods, the second halved."""
    first = np.array([[0, 0, 0], [4, 0, 0], [1, 8, 0]], dtype=float)
    matrix = np.stack([first, first / 2])
    return Problem.from_matrix(["D", "K", "S"], matrix, [0, 0, 10], "D", periods_s=[0, 60])


def test_perturb_multiplies_all_links_and_periods_by_default(problem):
    assert perturb(problem, 0.5).bandwidth_bytes_per_s.tolist() == [[2, 0.5, 4], [1, 0.25, 2]]
    assert problem.bandwidth_bytes_per_s[0].tolist() == [4, 1, 8]


def test_perturb_chooses_links_by_pairs_indices_or_mask(problem):
    """Each way names S->K, then K->D; factors follow the order given."""
    expected = [[12, 1, 16], [6, 0.5, 8]]
    by_pairs = perturb(problem, [2, 3], [("S", "K"), ("K", "D")])
    assert by_pairs.bandwidth_bytes_per_s.tolist() == expected
    by_index = perturb(problem, [2, 3], np.array([2, 0]))
    assert by_index.bandwidth_bytes_per_s.tolist() == expected
    by_mask = perturb(problem, [3, 2], np.array([True, False, True]))
    assert by_mask.bandwidth_bytes_per_s.tolist() == expected


def test_perturb_by_nothing_keeps_the_problem(problem):
    assert perturb(problem, 1.0).sha256 == problem.sha256
    assert perturb(problem, 7.0, []).sha256 == problem.sha256


@pytest.mark.parametrize(
    ("factor", "links", "message"),
    [
        (2.0, [("S", "Q")], r"links: unknown host 'Q'"),
        (2.0, [("D", "S")], r"the problem has no link 'D' -> 'S'"),
        (2.0, ["SD"], r"links: must hold pairs \(from, to\) of names, got 'SD'"),
        (2.0, [("S", "D"), ("S", "D")], r"given twice"),
        (2.0, np.array([3]), r"an index must lie in 0 \.\.\. 2, got 3"),
        (2.0, np.array([True]), r"a mask must have shape \(3,\), got \(1,\)"),
        ([1.0, 2.0], None, r"one per chosen link \(3\), got shape \(2,\)"),
        (-1.0, None, r"factor must be >= 0 and finite, got -1"),
        (float("nan"), None, r"factor must be >= 0 and finite, got nan"),
    ],
)
def test_perturb_refuses_unknown_links_and_bad_factors(problem, factor, links, message):
    with pytest.raises(ProblemError, match=message):
        perturb(problem, factor, links)


def test_random_noise_is_reproducible_and_has_median_one_and_the_given_spread():
    """Of 9900 factors the logarithms' median is 0 and their standard deviation sigma.

    The tolerances are over five standard errors: sigma·1.25/√9900 and sigma/√(2·9900).
    """
    names = [f"h{i}" for i in range(100)]
    problem = Problem.from_matrix(names, np.full((100, 100), 8.0), np.zeros(100, int), "h0")
    noisy = perturb_random(problem, 0.5, seed=3)
    logs = np.log(noisy.bandwidth_bytes_per_s[0] / 8)
    assert np.median(logs) == pytest.approx(0, abs=0.035)
    assert logs.std() == pytest.approx(0.5, abs=0.02)
    assert perturb_random(problem, 0.5, seed=3).sha256 == noisy.sha256
    assert perturb_random(problem, 0.5, seed=4).sha256 != noisy.sha256


def test_random_noise_keeps_to_the_chosen_links(problem):
    noisy = perturb_random(problem, 1.0, seed=0, links=[("S", "K")])
    ratio = noisy.bandwidth_bytes_per_s / problem.bandwidth_bytes_per_s
    assert ratio[:, :2].tolist() == [[1, 1], [1, 1]]
    assert ratio[0, 2] != 1
    assert ratio[0, 2] == pytest.approx(ratio[1, 2])
    with pytest.raises(ProblemError, match=r"sigma must be >= 0 and finite, got -1"):
        perturb_random(problem, -1, seed=0)
