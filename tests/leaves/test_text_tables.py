"""Tables as spreadsheets and programs write them; what has two meanings is refused."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

import datacollect as dc
from datacollect.errors import ProblemError
from datacollect.files.documents import text_of
from datacollect.files.tables import number_hint, open_table
from datacollect.problem.link_table import read_link_table
from datacollect.problem.manifest import read_manifest
from datacollect.transfer.sources.web.entries import of_urls

ROWS = [["a", "b", "0", "100"], ["c, d", "e", "1", "50"]]
HEADER = ["from", "to", "time_s", "mbit"]


def written(separator=",", *, before="", at_end="", index=None):
    """Write `HEADER` and `ROWS` as text."""
    lines = [HEADER, *ROWS]
    if index is not None:
        lines = [[number, *row] for number, row in zip(("", *index), lines, strict=True)]
    quoted = [[f'"{x}"' if separator in x or "," in x else x for x in row] for row in lines]
    return before + "".join(separator.join(row) + at_end + "\n" for row in quoted)


@pytest.mark.parametrize(
    "text",
    [
        written(),
        written(";"),
        written("\t"),
        written(";", before="sep=;\r\n"),
        written("|", before="sep=|\n"),
        written(before="SEP=,\n"),
        written(before="\n \r\n"),
        written(";", before="\n\nsep=;\n"),
        written(index=["0", "1"]),
        written(index=["17", "3"]),
        written(at_end=","),
        written(";", at_end=";;"),
        written().replace("\n", "\r\n"),
        written(index=["0", "1"]).replace(",from", "Unnamed: 0,from", 1),
        written() + ",,,\n\n",
        written() + "from,to,time_s,mbit\n",
        written() + ",,,\n",
    ],
)
def test_a_table_says_the_same_however_it_is_written(text):
    table = open_table(text, "t.csv", "from,to")
    assert list(table.header) == HEADER
    assert [row for _, row in table.rows()] == ROWS


@pytest.mark.parametrize(
    "text",
    [
        written(),
        written(";").replace("c, d", "cd").replace('"', ""),
        written().replace('"c, d"', "cd"),
        written().replace('"c, d"', "cd") + ",,,\n",
        written().replace('"c, d"', "cd") + "from,to,time_s,mbit\nx,y,1,2\n",
        written().replace('"c, d"', "cd").replace("\n", "\n\n", 1),
        written().replace('"c, d"', "cd").replace("\n", "\r\n"),
        written().replace('"c, d"', "cd") + "NA,007,,nan\n",
        written().replace('"c, d"', "cd") + "a,b\n",
        written().replace('"c, d"', "cd") + "a,b,1,2,\n",
        "from\na\n",
    ],
)
def test_large_tables_are_read_as_small_ones_are(text, monkeypatch):
    def read(limit):
        monkeypatch.setattr("datacollect.files.tables.LARGE_BYTES", limit)
        try:
            lines, frame = open_table(text, "t.csv", "from,to").texts()
        except ProblemError as error:
            return str(error)
        return lines.tolist(), list(frame.columns), frame.to_numpy().tolist()

    assert read(0) == read(10**9)


CELLS = st.lists(st.text('aé,;\t"\n 07', max_size=4), min_size=3, max_size=3)


@given(
    st.lists(CELLS.filter(any), max_size=6),
    st.sampled_from(",;\t"),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32"]),
)
def test_what_a_csv_writer_writes_is_read_back(rows, separator, is_said, is_counted, encoding):
    """Whatever cells hold, in every encoding, with a count of the rows or without."""
    stream = io.StringIO(newline="")
    stream.write(f"sep={separator}\r\n" if is_said else "")
    writer = csv.writer(stream, delimiter=separator)
    for i, row in enumerate([["from", "to", "x"], *rows]):
        writer.writerow([*([i - 1 if i else ""] if is_counted else []), *row])
    text = text_of(stream.getvalue().encode(encoding), "t.csv")
    table = open_table(text, "t.csv", "from,to")
    assert table.header == ("from", "to", "x")
    assert [row for _, row in table.rows()] == rows


def test_a_separator_after_the_rows_alone_is_no_field():
    table = open_table("from,to\na,b,\n", "t.csv", "from,to")
    assert list(table.rows()) == [(2, ["a", "b"])]


def test_lines_are_those_of_the_file():
    """A line before the header, an empty one, and a name of two lines."""
    table = open_table('\nsep=;\nfrom;to\n\n"a\nb";c\nd;e\n', "t.csv", "from,to")
    assert [line for line, _ in table.rows()] == [5, 7]
    assert table.place(1) == "t.csv, line 7"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"t\.csv, line 1: must be a header, got an empty line; begin with .* from,to"),
        (",,\n", r"line 1: must be a header"),
        ("from,from\n", r"line 1: column from given twice; keep one"),
        ("from,to;x\na,b;c\n", r"commas and semicolons; .* before it, such as sep=,"),
        (",from,to\nx,a,b\n", r"line 1: column 1 has no name, and line 2 has 'x' in it; name it"),
        ("from,to,\na,b,7\n", r"line 1: column 3 has no name, and line 2 has '7' in it"),
        ("from,to\na,b,c\n", r"line 2: must have 2 fields like the header, got 3; names that hold"),
        ("from;to\na\n", r"line 2: must have 2 .* got 1; complete the line, or remove it"),
        ("from;to\na;b;c\n", r"line 2: .* got 3; names that hold semicolons stand in"),
        ("a" * 200_000, r"line 1: not a CSV file: field larger"),
    ],
)
def test_what_can_be_read_in_two_ways_or_none_is_refused(text, message):
    with pytest.raises(ProblemError, match=message):
        list(open_table(text, "t.csv", "from,to").rows())


def test_the_line_that_a_message_proposes_helps():
    """The header with commas and semicolons, then with the line that the message proposes."""
    text = "from,to;x\na,b;c\n"
    assert open_table("sep=,\n" + text, "t.csv", "from,to").header == ("from", "to;x")
    assert open_table("sep=;\n" + text, "t.csv", "from,to").header == ("from,to", "x")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("1,500", "; write 1500 or 1.500"),
        ("100,5", "; write 100.5"),
        ("0,500", "; write 0.500"),
        ("1,234,567.5", "; write 1234567.5"),
        ("1,2,3", ""),
        ("fast", ""),
    ],
)
def test_numbers_with_commas_are_never_guessed(text, hint):
    assert number_hint(text) == hint


def test_a_column_of_any_text_may_end_with_what_separates():
    """What others pass over at the end of a row may belong to a path there."""
    assert list(open_table("x,path\n1,a,\n", "t.csv", "x").rows()) == [(2, ["1", "a"])]
    with pytest.raises(ProblemError, match="line 2: must have 2 fields like the header, got 3"):
        list(open_table("x,path\n1,a,\n", "t.csv", "x", texts=("path",)).rows())


FAULTS = {
    "cells": "{0}\n{1},surplus\n",
    "quote": '{0}\n"{1}\n',
    "twice": "{0},{2}\n",
    "separators": "{0};x\n",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_all_tables_give_the_same_advice_for_the_same_fault(fault, tmp_path):
    """Links of a problem, samples, manifests, URLs: the remedy, whatever the columns are."""

    def links(path):
        read_link_table(path, {"S": 0, "D": 1})

    def urls(path):
        list(of_urls(path))

    readers = {
        ("from,to,bandwidth_mbit_per_s", "S,D,5"): links,
        ("from,to,time_s,bandwidth_mbit_per_s", "S,D,0,5"): dc.read_samples,
        ("host,path,bytes", "S,a,5"): read_manifest,
        ("url,path", "https://x.example/a,a"): urls,
    }
    advice = set()
    for i, ((header, row), read) in enumerate(readers.items()):
        path = tmp_path / f"{i}.csv"
        path.write_text(FAULTS[fault].format(header, row, header.partition(",")[0]))
        with pytest.raises(ProblemError) as caught:
            read(path)
        advice.add(str(caught.value).rpartition("; ")[2].partition(" like ")[0])
    assert len(advice) == 1, advice
