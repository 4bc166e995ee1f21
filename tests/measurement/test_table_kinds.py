"""Tables of other programs: synthetic look-alikes of what Skyplane and perfSONAR write."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from datacollect.errors import ProblemError
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
    samples = read_samples(_written(tmp_path, PERFSONAR))
    # 2015-03-15 is day 16 509 since 1970.
    assert samples.to_numpy().tolist() == [["a.example", "b.example", 16_509 * 86_400 + 12, 1e9]]


def test_columns_are_named_by_the_user(tmp_path: Path) -> None:
    path = _written(tmp_path, "snd,rcv,when,rate,room\na,b,3,10,z\n")
    columns = {"snd": "from", "rcv": "to", "when": "time_s", "rate": "bandwidth_gbit_per_s"}
    assert read_samples(path, columns).to_numpy().tolist() == [["a", "b", 3.0, 1.25e9]]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"snt": "from"}, "has no column 'snt', which is to be 'from'; did you mean 'snd'"),
        ({"snd": "form"}, "must become one of .*, got 'form'; did you mean 'from'"),
        ({"snd": "from", "rcv": "from"}, "two columns are to be 'from'; keep one"),
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
