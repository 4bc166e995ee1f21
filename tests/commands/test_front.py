"""The command `front`."""

from __future__ import annotations

import csv
import json
import math

import pytest
from instances.small_problems import with_a_priced_relay

from datacollect.commands.main import run


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a priced problem in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "priced.json").write_text(json.dumps(with_a_priced_relay().to_dict()))
    return tmp_path


def test_the_command_prints_a_table_and_what_it_comes_to(here, capsys):
    assert run(["front", "priced.json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["at", "most", "slower", "makespan", "money", "slower", "cheaper"]
    # From direct's 4000 s on, twice the fastest, later deadlines are of no use.
    assert len(lines) == 1 + 7 + 2
    assert lines[-2] == "An end 50.0% later saves 50.0% of the money."
    assert max(map(len, lines)) <= 80


def test_the_command_prints_json(here, capsys):
    assert run(["front", "priced.json", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["front"]
    assert rows[-1]["slack"] is None
    assert rows[0] == {
        "slack": 0.0,
        "makespan_s": pytest.approx(2000),
        "money": pytest.approx(0.2),
        "slower": 0.0,
        "cheaper": 0.0,
    }


def test_the_command_writes_tables_and_pictures(here, capsys):
    assert run(["front", "priced.json", "-o", "front.csv"]) == 0
    assert "saved to front.csv" in capsys.readouterr().err
    with (here / "front.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["slack"]) for row in rows] == [
        0,
        0.01,
        0.05,
        0.1,
        0.25,
        0.5,
        1,
        2,
        5,
        math.inf,
    ]
    assert run(["front", "priced.json", "-o", "front.png"]) == 0
    assert (here / "front.png").read_bytes().startswith(b"\x89PNG")


def test_the_command_refuses_what_it_cannot_do(here, capsys):
    assert run(["front", "priced.json", "-o", "front.txt"]) == 2
    assert "'front.txt'" in capsys.readouterr().err
    assert run(["front", "priced.json", "-o", "priced.json"]) == 2
    assert run(["front", "priced.json", "-o", "nowhere/front.png"]) == 2
    assert run(["example", "figure1"]) == 0
    assert run(["front", "figure1.toml"]) == 2
    assert "price_per_gb" in capsys.readouterr().err


def test_rows_that_are_alike_are_shown_once(capsys):
    """Ten deadlines, of which the first three differ."""
    import pandas as pd

    from datacollect.commands.front import _show

    slack = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 1.0, 2.0, 4.0, math.inf]
    table = pd.DataFrame(
        {
            "makespan_s": [100.0, 110.0, *[120.0] * 8],
            "money": [4.0, 3.0, *[2.0] * 8],
            "slower": [0.0, 0.1, *[0.2] * 8],
            "cheaper": [0.0, 0.25, *[0.5] * 8],
        },
        index=pd.Index(slack, name="slack"),
    )
    _show(table)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:4]] == ["0%", "10%", "20%"]
    assert lines[4:] == [
        "An end 10.0% later saves 25.0% of the money.",
        "Later deadlines change neither the end nor the price.",
    ]


def test_the_picture_has_hours_and_names_every_point():
    """Plans of 1 to 4 hours: the axis counts hours, and each point says how much slower it is."""
    import pandas as pd

    from datacollect.commands.front import _figure

    slack = [0.0, 0.5, 1.0, math.inf]
    table = pd.DataFrame(
        {"makespan_s": [3600.0, 5400.0, 7200.0, 14400.0], "money": [4.0, 3.0, 2.0, 1.0]},
        index=pd.Index(slack, name="slack"),
    )
    axes = _figure(table, "12 GB to D: what waiting saves").axes[0]
    assert axes.get_title(loc="left") == "12 GB to D: what waiting saves"
    assert axes.get_xlabel().startswith("makespan (h)")
    assert axes.collections[0].get_offsets()[:, 0].tolist() == [1, 1.5, 2, 4]
    texts = [text.get_text() for text in axes.texts]
    assert texts[:4] == ["fastest", "+50%", "+100%", "cheapest"]
    assert axes.get_xlim()[0] > 0


def test_the_picture_has_one_label_at_a_point_and_none_on_another():
    """Later deadlines change the last digits only; near the fastest five points lie close."""
    import pandas as pd

    from datacollect.commands.front import _figure

    slack = [0.0, 0.01, 0.02, 0.03, 0.04, 1.0, 2.0, math.inf]
    makespan_s = [360_000.0, 360_100.0, 360_200.0, 360_300.0, 360_400.0, 720_000.0]
    table = pd.DataFrame(
        {
            "makespan_s": [*makespan_s, 720_000.0001, 720_000.0],
            "money": [9.0, 8.99, 8.98, 8.97, 8.96, 1.0, 1.0, 1.0 + 1e-9],
        },
        index=pd.Index(slack, name="slack"),
    )
    axes = _figure(table, "").axes[0]
    assert [text.get_text() for text in axes.texts][:3] == ["fastest", "+1%", "+100%"]
    assert len(axes.collections[0].get_offsets()) == 6
    assert axes.get_xlabel().startswith("makespan (days)")


def test_days_are_listed_until_the_last_deadline(here, capsys):
    """20 Mbit/s that cost, by day; 1 Mbit/s that is free, by night: each later night saves money.

    12 GB: in 80 minutes at 2.5 MB/s, or 10 hours of each night at 125 kB/s: 4.5 GB.
    """
    tree = {
        "destination": "D",
        "start": "2026-11-22T08:00:00+01:00",
        "daily_periods": ["08:00", "22:00"],
        "hosts": {"S": {"backlog_bytes": 12_000_000_000}, "D": {}, "K": {"storage_bytes": 0}},
        "links": [
            {"from": "S", "to": "D", "bandwidth_bytes_per_s": [2.5e6, 0], "price_per_gb": 1},
            {"from": "S", "to": "K", "bandwidth_bytes_per_s": [0, 125e3]},
            {"from": "K", "to": "D", "bandwidth_bytes_per_s": [0, 125e3]},
        ],
    }
    (here / "daily.json").write_text(json.dumps(tree))
    assert run(["front", "daily.json", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["front"]
    # Nights begin after 14 h and 38 h; the third, after 62 h, sends what two have left.
    last_s = 62 * 3600 + 3e9 / 125e3
    assert rows[-1]["makespan_s"] == pytest.approx(last_s)
    assert rows[-1]["money"] == 0.0

    # In three nights all is free, but for what relays' chunks cost.
    deadline = str(72 * 3600)
    assert run(["plan", "daily.json", "--prefer", "money", "--deadline", deadline, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["money"] == pytest.approx(0.0, abs=0.01)
