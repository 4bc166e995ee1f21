"""Malformed input ends with exit code 2 and one message: file, place, rule, value, remedy."""

from __future__ import annotations

import io
import json
import os
import sys
import time
from types import SimpleNamespace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from instances.broken_files import (
    CSV,
    FORECAST_CSV,
    GOOD,
    HEAD,
    JSON,
    LINK,
    NOISE,
    PERIODS,
    TOML,
    changed,
    noise,
)
from instances.broken_trees import SCHEDULE, SCHEDULES, TREE, places, values, with_value

import datacollect as dc
from datacollect.commands.main import run


def message_of(arguments, capsys):
    """Run a command that is to fail; return its message, which is all that it writes."""
    assert run([str(argument) for argument in arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1, err
    assert err.rstrip("\n").isprintable()
    assert len(err) < 600, err
    assert "Traceback" not in err
    assert "internal" not in err
    return err.removeprefix("error: ").rstrip("\n")


def complain(folder, capsys, name, text):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    message = message_of(["plan", path], capsys)
    assert message.startswith(str(path))
    return message.removeprefix(str(path)).removeprefix(": ")


def test_the_good_file_is_good(tmp_path, capsys):
    # Otherwise each test below might pass for another reason than its own.
    path = tmp_path / "good.toml"
    path.write_text(GOOD)
    assert run(["plan", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["makespan_s"] == 2.0


@pytest.mark.parametrize("case", TOML)
def test_bad_toml(case, tmp_path, capsys):
    text, expected = TOML[case]
    assert expected in complain(tmp_path, capsys, "collect.toml", text)


@pytest.mark.parametrize("case", JSON)
def test_bad_json(case, tmp_path, capsys):
    text, expected = JSON[case]
    assert expected in complain(tmp_path, capsys, "collect.json", text)


@pytest.fixture(params=["row by row", "through Arrow"])
def complain_csv(request, tmp_path, capsys, monkeypatch):
    """Both ways to read a CSV end in the same message."""
    if request.param == "through Arrow":
        monkeypatch.setattr("datacollect.problem.link_table.LARGE_BYTES", 0)

    def complain_csv(csv, head="", tail=""):
        (tmp_path / "grid.csv").write_bytes(csv if isinstance(csv, bytes) else csv.encode())
        text = f'{head}\ndestination = "D"\nbandwidth_csv = "grid.csv"\n[hosts.S1]\n[hosts.D]\n'
        message = complain(tmp_path, capsys, "collect.toml", text + tail)
        assert "grid.csv" in message
        return message

    return complain_csv


@pytest.mark.parametrize("case", CSV)
def test_bad_csv(case, complain_csv):
    csv, expected = CSV[case]
    assert expected in complain_csv(csv)


@pytest.mark.parametrize("case", FORECAST_CSV)
def test_bad_csv_with_periods(case, complain_csv):
    rows, expected = FORECAST_CSV[case]
    assert expected in complain_csv(PERIODS + rows, head="periods_s = [0, 60]")


def test_price_that_changes_between_periods(complain_csv):
    csv = "from,to,period,bandwidth_bit_per_s,price_per_gb\nS1,D,0,5,1\nS1,D,1,5,2\n"
    message = complain_csv(csv, head="periods_s = [0, 60]")
    assert "line 3: price_per_gb must be the same in all periods of a link, got 2" in message


def test_link_in_csv_and_in_links_names_both_places(complain_csv):
    message = complain_csv(HEAD + "D,S1,1\nS1,D,1\n", tail=LINK)
    assert "grid.csv, line 3: link 'S1' -> 'D' given twice, also in links[0]" in message


@pytest.mark.slow
@pytest.mark.parametrize("case", NOISE)
def test_ten_megabytes_of_noise_fail_fast(case, complain_csv):
    csv = noise(case)
    began_s = time.process_time()
    complain_csv(csv)
    # Takes 0.1 s; the limit is for slow machines.
    assert time.process_time() - began_s < 3


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".toml", ".json", ".txt"])
@pytest.mark.parametrize("kind", ["bytes", "letters"])
def test_noise_for_a_problem(kind, suffix, tmp_path, capsys):
    complain(tmp_path, capsys, f"noise{suffix}", noise(kind))


# Files that are none ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "advice"),
    [
        ("colect.toml", "did you mean 'collect.toml'?"),
        ("collect.tml", "did you mean 'collect.toml'?"),
        ("collect.cvs", "did you mean 'collect.csv'?"),
        ("nope.toml", "check the path"),  # its ending alone is like that of others
    ],
)
def test_missing_file_suggests_its_neighbour(tmp_path, capsys, typed, advice):
    for name in ("collect.csv", "collect.toml", "prices.toml"):
        (tmp_path / name).write_text(GOOD)
    message = message_of(["plan", tmp_path / typed], capsys)
    assert f"{typed}: no such file; {advice}" in message


def test_folder_for_a_file(tmp_path, capsys):
    assert "is a folder; name a file in it" in message_of(["plan", tmp_path], capsys)


@pytest.mark.skipif(os.name == "nt", reason="permissions differ")
def test_no_permission(tmp_path, capsys, monkeypatch):
    path = tmp_path / "collect.toml"
    path.write_text(GOOD)

    def refuse(self):
        raise PermissionError(13, "Permission denied")

    # Not by chmod: whoever runs tests as root may read everything.
    monkeypatch.setattr("pathlib.Path.read_bytes", refuse)
    assert "cannot be read: Permission denied" in message_of(["plan", path], capsys)


def test_names_that_no_file_can_have(capsys):
    assert "no file can have a name with a NUL" in message_of(["plan", "a\0b"], capsys)
    assert "File name too long" in message_of(["plan", "x" * 5000], capsys)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ('"missing.csv"', "missing.csv: no such file"),
        ('"."', "is a folder"),
        ('"-"', "bandwidth_csv must name a file, got '-'"),
        ("5", "bandwidth_csv must be text, got 5"),
        ('"\\u0000"', "no file can have a name with a NUL"),
    ],
)
def test_csv_that_is_none(name, expected, tmp_path, capsys):
    text = f"bandwidth_csv = {name}\n{GOOD}"
    assert expected in complain(tmp_path, capsys, "collect.toml", text)


def test_empty_standard_input(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"")))
    message = message_of(["plan", "-"], capsys)
    assert message.startswith("standard input: no input; pipe a file into it")


def test_bad_standard_input_is_named(capsys, monkeypatch):
    text = changed("= 10", "= -5").encode()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text)))
    assert message_of(["plan", "-"], capsys).startswith("standard input: hosts.S1.backlog_bytes")


# Schedules ----------------------------------------------------------------------------------


@pytest.mark.parametrize("case", SCHEDULES)
def test_bad_schedule(case, tmp_path, capsys):
    (tmp_path / "collect.toml").write_text(GOOD)
    path = tmp_path / "plan.json"
    tree, expected = SCHEDULES[case]
    path.write_text(json.dumps(tree))
    message = message_of(["check", tmp_path / "collect.toml", path], capsys)
    assert message.startswith(str(path))
    assert expected in message


def test_the_good_schedule_is_good(tmp_path, capsys):
    (tmp_path / "collect.toml").write_text(GOOD)
    (tmp_path / "plan.json").write_text(json.dumps(SCHEDULE))
    assert run(["check", str(tmp_path / "collect.toml"), str(tmp_path / "plan.json")]) == 0
    assert capsys.readouterr().out.startswith("valid")


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1" + bytes(100) + b"PAR1"])
def test_bad_parquet(data, tmp_path, capsys):
    (tmp_path / "collect.toml").write_text(GOOD)
    (tmp_path / "plan.parquet").write_bytes(data)
    message = message_of(["check", tmp_path / "collect.toml", tmp_path / "plan.parquet"], capsys)
    assert "not a Parquet file" in message


def test_parquet_of_others(tmp_path, capsys):
    import pandas as pd

    (tmp_path / "collect.toml").write_text(GOOD)
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "plan.parquet")
    message = message_of(["check", tmp_path / "collect.toml", tmp_path / "plan.parquet"], capsys)
    assert "no schedule: metadata datacollect-schedule is missing" in message


# Anything -----------------------------------------------------------------------------------


def refuses(read, *arguments):
    """Read; return whether it was refused, with a message that fits on a few lines."""
    try:
        read(*arguments)
    except dc.ProblemError as error:
        message = str(error)
    else:
        return False
    assert message.isprintable()
    assert len(message) < 600
    return True


@pytest.mark.slow
@given(st.sampled_from(list(places(TREE))), values)
@example(place=("hosts", "S", "storage_bytes"), value=10**400)
def test_any_value_anywhere_in_a_problem_is_read_or_refused(place, value):
    refuses(dc.Problem.from_dict, with_value(TREE, place, value))


@given(st.sampled_from(list(places(SCHEDULE))), values)
def test_any_value_anywhere_in_a_schedule_is_read_or_refused(place, value):
    refuses(dc.Schedule.from_dict, with_value(SCHEDULE, place, value))


@given(st.integers(0, len(GOOD)), st.integers(0, 9), st.binary(max_size=4) | st.text(max_size=3))
def test_any_change_to_a_file_is_read_or_refused(tmp_path_factory, start, cut, new):
    new = new if isinstance(new, bytes) else new.encode(errors="surrogatepass")
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_bytes(GOOD.encode()[:start] + new + GOOD.encode()[start + cut :])
    refuses(dc.Problem.from_file, path)


@given(st.sampled_from(list(places(TREE))), st.none() | st.booleans() | st.lists(st.none()))
def test_nothing_anywhere_may_be_null_or_true(place, value):
    # Where a list of tables or pairs stands, an empty list says that there are none.
    empty = value == [] and place in {("links",), ("shared",), ("held",)}
    if not empty:
        assert refuses(dc.Problem.from_dict, with_value(TREE, place, value))
