"""Tables of other programs: synthetic look-alikes of what Skyplane and perfSONAR write."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from datacollect.errors import DatacollectWarning, ProblemError
from datacollect.measurement.samples import read_samples

if TYPE_CHECKING:
    from pathlib import Path

SKYPLANE = (
    "src,dst,src_instance,dst_instance,iperf3_connections,sent_bps,received_bps,cpu_util_pct\n"
    "aws:x,gcp:y,m5.8xlarge,n2,64,9000,8000,7.6\n"
    "aws:x,aws:x,m5.8xlarge,m5,64,1,1,1\n"
    "aws:x,gcp:y,m5.8xlarge,n2,64,9000,16000,7.6\n"
)
PERFSONAR = (
    "source,destination,event_type,tool,summary_type,summary_window,timestamp,value\r\n"
    "a.example,b.example,throughput,iperf3,base,,2015-03-15 00:00:12,8e9\r\n"
    "a.example,b.example,packet-loss-rate,owping,base,,2015-03-15 00:01:00,0.5\r\n"
)


def _written(folder: Path, text: str) -> Path:
    path = folder / "samples.csv"
    path.write_text(text)
    return path


def test_skyplanes_grid_counts_what_the_receiver_got(tmp_path: Path) -> None:
    """8000 and 16 000 bit/s are 1000 and 2000 bytes/s; a region to itself is no link."""
    samples = read_samples(_written(tmp_path, SKYPLANE))
    assert samples["bandwidth_bytes_per_s"].tolist() == [1000.0, 2000.0]
    assert samples[["from", "to", "streams"]].to_numpy().tolist() == [["aws:x", "gcp:y", 64]] * 2


def test_perfsonars_csv_counts_rows_of_throughput(tmp_path: Path) -> None:
    with pytest.warns(DatacollectWarning, match="1 row with event_type packet-loss-rate"):
        samples = read_samples(_written(tmp_path, PERFSONAR))
    # 2015-03-15 is day 16 509 since 1970.
    assert samples.to_numpy().tolist() == [["a.example", "b.example", 16_509 * 86_400 + 12, 1e9]]


SHIPPED = (
    "src_region,src_tier,src_instance_class,dst_region,dst_tier,dst_instance_class,"
    "iperf3_connections,iperf3_runtime,tag,stdout_path,stderr_path,throughput_sent,"
    "throughput_recieved,cpu_utilization,success\n"
)
ROW = "aws:x,PREMIUM,m5,gcp:y,{tier},n2,64,5,t,o,e,9000.0,{rate},1,{success}\n"


@pytest.mark.parametrize("spelling", ["throughput_recieved", "throughput_received"])
def test_skyplanes_shipped_grid_is_read_in_both_spellings(tmp_path: Path, spelling: str) -> None:
    text = SHIPPED.replace("throughput_recieved", spelling)
    text += ROW.format(tier="PREMIUM", rate="8000.0", success="True")
    samples = read_samples(_written(tmp_path, text))
    assert samples.to_numpy().tolist() == [["aws:x", "gcp:y", 0.0, 1000.0, 64.0]]


BOTH = SHIPPED.replace("throughput_recieved", "throughput_recieved,throughput_received")
TWICE = "aws:x,PREMIUM,m5,gcp:y,PREMIUM,n2,64,5,t,o,e,9000.0,{one},{other},1,True\n"


def test_a_table_with_both_spellings_says_which_is_read(tmp_path: Path) -> None:
    path = _written(tmp_path, BOTH + TWICE.format(one="8000.0", other="8000.0"))
    with pytest.warns(DatacollectWarning, match="throughput_received say the same; read is throu"):
        assert read_samples(path)["bandwidth_bytes_per_s"].tolist() == [1000.0]


def test_both_spellings_that_differ_are_refused(tmp_path: Path) -> None:
    """One of them was taken in silence."""
    row = TWICE.format(one="8000.0", other="8000.0") + TWICE.format(one="8000.0", other="16000.0")
    rule = r"line 3: columns throughput_recieved and throughput_received .*'8000\.0' and '16000\.0'"
    with pytest.raises(ProblemError, match=rule):
        read_samples(_written(tmp_path, BOTH + row))


def test_a_grid_that_might_be_of_two_kinds_is_no_guess(tmp_path: Path) -> None:
    text = "src,dst,received_bps,src_region,dst_region,throughput_received\na,b,8,a,c,8\n"
    with pytest.raises(ProblemError, match="columns dst and dst_region must say the same"):
        read_samples(_written(tmp_path, text))


@pytest.mark.parametrize("streams", ["0", "1.5", "-1"])
def test_a_test_has_whole_connections(tmp_path: Path, streams: str) -> None:
    """They were kept as they stood."""
    row = ROW.format(tier="PREMIUM", rate="8000.0", success="True").replace(",64,", f",{streams},")
    with pytest.raises(ProblemError, match=r"line 2: iperf3_connections must be .*>= [01], got '"):
        read_samples(_written(tmp_path, SHIPPED + row))
    text = f"from,to,time_s,bandwidth_mbit_per_s,streams,concurrency\na,b,0,1,{streams},0\n"
    with pytest.raises(ProblemError, match=r"line 2: streams must be .*>= [01], got '"):
        read_samples(_written(tmp_path, text))


def test_other_tests_beside_one_are_whole(tmp_path: Path) -> None:
    text = "from,to,time_s,bandwidth_mbit_per_s,concurrency\na,b,0,1,0\na,b,1,1,0.5\n"
    with pytest.raises(ProblemError, match=r"line 3: concurrency must be a whole number >= 0"):
        read_samples(_written(tmp_path, text))


@pytest.mark.parametrize(("rate", "success"), [("0.0", "True"), ("", "True"), ("8.0", "False")])
def test_skyplanes_failed_tests_are_no_samples(tmp_path: Path, rate: str, success: str) -> None:
    good = ROW.format(tier="PREMIUM", rate="8000.0", success="True")
    path = _written(
        tmp_path, SHIPPED + good + ROW.format(tier="PREMIUM", rate=rate, success=success)
    )
    with pytest.raises(ProblemError, match=r"samples\.csv, line 3: .*: nothing was measured; rep"):
        read_samples(path)
    with pytest.warns(DatacollectWarning, match="1 test that failed skipped"):
        assert len(read_samples(path, skip_failed=True)) == 1


def test_tiers_are_never_merged_silently(tmp_path: Path) -> None:
    """The message says how to choose; other pairs may have other tiers."""
    rows = [ROW.format(tier=t, rate="8000.0", success="True") for t in ("PREMIUM", "STANDARD")]
    path = _written(tmp_path, SHIPPED + "".join(rows))
    message = r"'aws:x' -> 'gcp:y' was measured with dst_tier PREMIUM and STANDARD, .* --only dst_"
    with pytest.raises(ProblemError, match=message):
        read_samples(path)
    assert len(read_samples(path, only={"dst_tier": "PREMIUM"})) == 1
    rows[1] = rows[1].replace("gcp:y", "gcp:z")
    assert len(read_samples(_written(tmp_path, SHIPPED + "".join(rows)))) == 2


@pytest.mark.parametrize(
    ("only", "message"),
    [
        ({"src_teir": "PREMIUM"}, r"has no column 'src_teir', .*; did you mean 'src_tier'"),
        ({"src_tier": "premium"}, r"no row has 'premium' in column src_tier; there are PREMIUM"),
    ],
)
def test_rows_that_are_not_there_cannot_be_chosen(
    tmp_path: Path, only: dict[str, str], message: str
) -> None:
    text = SHIPPED + ROW.format(tier="PREMIUM", rate="8000.0", success="True")
    with pytest.raises(ProblemError, match=message):
        read_samples(_written(tmp_path, text), only=only)


WINDOWS = (
    "source,destination,tool_name,event_type,summary_type,summary_window,timestamp,value\n"
    "a,b,iperf3,throughput,base,0,2024-05-01 12:00:00+00:00,8e9\n"
    "a,b,iperf3,throughput,average,86400,2024-05-01 00:00:00+00:00,4e9\n"
    "a,b,iperf3,throughput,average,3600,2024-05-01 12:00:00+00:00,2e9\n"
)


def test_averages_of_tests_are_no_tests(tmp_path: Path) -> None:
    """A window alone may be chosen; several averages without their tests are unlike."""
    path = _written(tmp_path, WINDOWS)
    with pytest.warns(
        DatacollectWarning, match="summaries of other rows: 2 rows with summary_type"
    ):
        assert read_samples(path)["bandwidth_bytes_per_s"].tolist() == [1e9]
    only = {"summary_window": "86400"}
    assert read_samples(path, only=only)["bandwidth_bytes_per_s"].tolist() == [5e8]
    without = _written(tmp_path, WINDOWS.replace(WINDOWS.splitlines()[1] + "\n", ""))
    with pytest.raises(
        ProblemError, match=r"summary_window 3600 and 86400.*--only summary_window=3"
    ):
        read_samples(without)


def test_values_that_perfsonar_lacks_are_no_samples(tmp_path: Path) -> None:
    path = _written(
        tmp_path, WINDOWS.splitlines()[0] + "\na,b,t,throughput,base,0,2024-05-01,None\n"
    )
    with pytest.raises(
        ProblemError, match=r"line 2: value must be .* got 'None': nothing was meas"
    ):
        read_samples(path)


def test_columns_are_named_by_the_user(tmp_path: Path) -> None:
    path = _written(tmp_path, "snd,rcv,when,rate,room\na,b,3,10,z\n")
    columns = {"snd": "from", "rcv": "to", "when": "time_s", "rate": "bandwidth_gbit_per_s"}
    assert read_samples(path, columns).to_numpy().tolist() == [["a", "b", 3.0, 1.25e9]]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"snt": "from"}, "has no column 'snt', which is to be 'from'; did you mean 'snd'"),
        ({"snd": "form"}, "must become one of .*, got 'form'; did you mean 'from'"),
        ({"snd": "from", "rcv": "from"}, "two columns would become 'from'; keep one"),
        ({"snd": "from"}, "column to is missing"),
    ],
)
def test_columns_that_do_not_fit_are_refused(
    tmp_path: Path, columns: dict[str, str], message: str
) -> None:
    path = _written(tmp_path, "snd,rcv,when,rate\na,b,3,10\n")
    with pytest.raises(ProblemError, match=message):
        read_samples(path, columns)


@pytest.mark.parametrize(
    ("column", "bytes_per_s"),
    [
        ("bandwidth_kbit_per_s", 125.0),
        ("bandwidth_gbit_per_s", 125e6),
        ("bandwidth_tbit_per_s", 125e9),
        ("bandwidth_kbytes_per_s", 1e3),
        ("bandwidth_mbytes_per_s", 1e6),
        ("bandwidth_gbytes_per_s", 1e9),
    ],
)
def test_columns_say_their_unit(tmp_path: Path, column: str, bytes_per_s: float) -> None:
    path = _written(tmp_path, f"from,to,time_s,{column}\na,b,0,1\n")
    assert read_samples(path)["bandwidth_bytes_per_s"].tolist() == [bytes_per_s]


def test_perfsonars_times_may_be_seconds_as_its_archive_has_them(tmp_path: Path) -> None:
    """The advice to call the column time_s would make it a table of nobody."""
    header = "source,destination,event_type,timestamp,value\n"
    path = _written(
        tmp_path,
        f"{header}S,D,throughput,1714521600,8e9\nS,D,throughput,2024-05-01T00:00:01Z,8e9\n",
    )
    assert read_samples(path)["time_s"].tolist() == [1714521600, 1714521601]
    with pytest.raises(ProblemError, match=r"got '1714521600000'"):
        read_samples(_written(tmp_path, f"{header}S,D,throughput,1714521600000,8e9\n"))


def test_a_column_that_chooses_rows_need_not_be_one_of_samples(tmp_path: Path) -> None:
    """The remedy of the message, carried out; to remove the column would merge both tiers."""
    path = _written(
        tmp_path, "from,to,time_s,bandwidth_bytes_per_s,tier\nS,D,1,5,gold\nS,D,2,50,tin\n"
    )
    with pytest.raises(ProblemError, match=r"choose .* with --only 'tier'=VALUE"):
        read_samples(path)
    assert read_samples(path, only={"tier": "tin"})["bandwidth_bytes_per_s"].tolist() == [50]
