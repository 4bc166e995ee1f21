"""The command `explain`."""

from __future__ import annotations

import json

import pytest
from instances.words import flat

from datacollect.commands.main import run

# Figure 1 ------------------------------------------------------------------------------------


@pytest.fixture
def figure1(tmp_path, monkeypatch, capsys):
    """An empty working folder with the example of the paper's Figure 1 in it."""
    monkeypatch.chdir(tmp_path)
    assert run(["example", "figure1"]) == 0
    assert run(["plan", "figure1.toml", "-o", "plan.json"]) == 0
    capsys.readouterr()
    return tmp_path


def test_the_command_prints_text_or_json(figure1, capsys):
    assert run(["explain", "figure1.toml", "plan.json"]) == 0
    text, errors = capsys.readouterr()
    assert "The plan (coordinated) is predicted to end at 1.001 s" in text
    assert errors == ""
    assert run(["explain", "figure1.toml", "--json"]) == 0
    tree = json.loads(capsys.readouterr().out)
    assert tree["lower_bound_s"] == pytest.approx(1.0)
    assert len(tree["relax"]["alone"]) == 2


def test_the_command_notes_a_schedule_of_another_problem(figure1, capsys):
    assert run(["example", "minimal"]) == 0
    assert run(["explain", "minimal.toml", "plan.json"]) == 0
    assert "another problem" in capsys.readouterr().err


def test_what_is_infeasible_is_refused_with_the_reason(figure1, capsys):
    text = (figure1 / "figure1.toml").read_text()
    (figure1 / "cut.toml").write_text(
        text.replace("[hosts.K]", "[hosts.T]\nbacklog_bytes = 5\n[hosts.K]")
    )
    assert run(["explain", "cut.toml"]) == 1
    out, errors = capsys.readouterr()
    assert out == ""
    assert "'T' cannot reach" in errors


def test_only_one_file_can_be_standard_input(figure1, capsys):
    assert run(["explain", "-", "-"]) == 2
    assert "standard input" in capsys.readouterr().err


# Prices and deadlines ------------------------------------------------------------------------


@pytest.fixture
def examples(tmp_path, monkeypatch, capsys):
    """An empty working folder with two examples."""
    monkeypatch.chdir(tmp_path)
    assert run(["example", "prices"]) == run(["example", "minimal"]) == 0
    capsys.readouterr()
    return tmp_path


@pytest.mark.parametrize("suffix", ["json", "parquet"])
def test_the_command_knows_deadlines_from_files(suffix, examples, capsys):
    """7200 s for 45.65, or 4698 s for 51.66."""
    file = f"plan.{suffix}"
    assert run(["plan", "prices.toml", "--deadline", "7200", "-o", file]) == 0
    capsys.readouterr()
    assert run(["explain", "prices.toml", file]) == 0
    text = flat(capsys.readouterr().out)
    assert "planned to end by 2 h 00 min, and could end at 1 h 18 min" in text
    assert "Price of all links: 45.65" in text
    assert run(["explain", "prices.toml", file, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["plan"]["deadline"]
    assert told["deadline_s"] == 7200.0
    assert told["fastest_cost"] == pytest.approx(51.66, abs=0.01)


def test_the_command_speaks_of_the_method(examples, capsys):
    """geneva alone needs 3 GB / 2.5 MB/s = 1200 s; its link without limit: zurich's 200 s."""
    assert run(["plan", "minimal.toml", "--method", "direct", "-o", "plan.json"]) == 0
    capsys.readouterr()
    assert run(["explain", "minimal.toml", "plan.json", "--json"]) == 0
    tree = json.loads(capsys.readouterr().out)
    assert tree["sources"][0]["limited_by"] == "link"
    (best, other) = tree["plan"]["relax"]["tried"]
    assert best["resources"][0]["name"] == "link 'geneva' -> 'lyon'"
    assert best["saves_unlimited_s"] == pytest.approx(1000.0)
    assert best["resources"][0]["step"] == pytest.approx(250_000.0)
    assert other["saves_s"] == 0.0


def test_days_are_listed_until_the_earliest_end(tmp_path, capsys):
    """100 Mbit/s for an hour a day, else nothing: 100 hours of them are 100 days.

    By its mean, 24 times less, one would list 200 days; K's link makes it half.
    """
    tree = {
        "destination": "D",
        "start": "2026-11-22T08:00:00+01:00",
        "daily_periods": ["08:00", "09:00"],
        "hosts": {"S": {"backlog_bytes": 36 * 10**9}, "K": {"backlog_bytes": 1}, "D": {}},
        "links": [
            {"from": "S", "to": "K", "bandwidth_bytes_per_s": [1.25e6, 0]},
            {"from": "K", "to": "D", "bandwidth_bytes_per_s": [1.25e8, 1.25e8]},
        ],
    }
    (tmp_path / "daily.json").write_text(json.dumps(tree))
    assert run(["explain", str(tmp_path / "daily.json"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    # 4.5 GB each day: the eighth hour ends it.
    assert found["lower_bound_s"] == pytest.approx(7 * 86_400 + 3600)
    (link,) = found["relax"]["alone"][0]["resources"]
    assert link["name"] == "link 'S' -> 'K'"
    assert [then["from_s"] for then in link["binds"]] == [day * 86_400 for day in range(8)]
