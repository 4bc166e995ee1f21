"""Samples from CSV files: units, times, names, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from datacollect.errors import ProblemError
from datacollect.measurement.samples import read_samples


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
        (HEADER + "S,D,1\n", r"line 2: must have 4 fields like the header, got 3"),
        (HEADER + "S,D,1,2,3\n", r"line 2: must have 4 fields like the header, got 5"),
        (HEADER + "S,D,1,2\nS,D,1,2,3\n", r"line 3: must have 4 fields like the header, got 5"),
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
        (HEADER.encode("utf-16")[:-1], r"begins as UTF-16, but byte"),
        (HEADER.encode() + "S,Zürich,1,2\n".encode("latin-1"), r"must be UTF-8 text"),
    ],
)
def test_bad_csv_is_refused_with_file_line_and_rule(tmp_path, text, message):
    file = write(tmp_path, text)
    with pytest.raises(ProblemError, match=message) as caught:
        read_samples(file)
    assert str(file) in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_missing_csv_or_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(ProblemError, match=r"no such file; check the path"):
        read_samples(tmp_path / "none.csv")
    with pytest.raises(ProblemError, match=r"the folder holds no file \*\.json, nor another one"):
        read_samples(tmp_path)
