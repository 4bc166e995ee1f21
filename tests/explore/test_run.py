"""Runs of explorers: cases by their seeds, kept where they ended, whatever becomes of them."""

from __future__ import annotations

import os
import sys
import types

import pytest
from explore import run, scripts_for_real


@pytest.fixture
def family(monkeypatch):
    """Let a function be the one family that there is."""

    def be(case):
        module = types.ModuleType("explore.made")
        module.case = case
        monkeypatch.setitem(sys.modules, "explore.made", module)
        monkeypatch.setattr(run, "families", lambda: {"made": "what is made"})

    return be


def odd_or_worse(seed):
    if seed == 5:
        raise ValueError("five")
    return "odd\nseed" if seed % 2 else None


def test_a_stretch_has_what_was_wrong_with_each_of_its_cases(family):
    family(odd_or_worse)
    stretch = run.carry_out("made", 3, 3, 60.0)
    assert (stretch.n_cases, stretch.end) == (3, 6)
    (first, what), (second, raised) = stretch.faults
    assert (first, what, second) == (3, "odd seed", 5)
    assert raised.startswith("ValueError at test_run.py:")
    assert raised.endswith(": five")


def test_a_case_that_ends_its_process_is_a_fault_of_its_own(family):
    family(lambda seed: os._exit(7) if seed == 2 else None)
    stretch = run.carry_out("made", 1, 5, 60.0)
    assert (stretch.n_cases, stretch.faults) == (2, ((2, "ended its process: 7"),))


def test_a_case_that_hangs_is_a_fault(family, monkeypatch):
    import time

    monkeypatch.setattr(run, "LIMIT_S", 0.5)
    family(lambda _: time.sleep(3600))
    stretch = run.carry_out("made", 1, 5, 60.0)
    assert (stretch.n_cases, stretch.faults) == (1, ((1, "no end in 0.5 s"),))


def test_it_goes_on_where_it_ended_and_repeats_what_was_wrong(family, tmp_path, capsys):
    family(odd_or_worse)
    where = ["--folder", str(tmp_path), "--table", str(tmp_path / "table.md")]
    assert run.main([*where, "--cases", "2", "--seed", "8"]) == 1
    assert run.main([*where, "--cases", "3"]) == 1
    # It was killed as it wrote.
    with (tmp_path / "results.jsonl").open("a") as file:
        file.write('{"family": "ma')
    kept = run.results_in(tmp_path / "results.jsonl").by_key
    assert [(each.first_seed, each.n_cases) for each in kept.values()] == [(8, 2), (10, 1)]
    row = (tmp_path / "table.md").read_text().splitlines()[2]
    assert row.startswith("| `made` | what is made | 3 | ")
    assert row.endswith(" | 8 | 10 | 1 |")
    assert "made: 1 faults\n   9: odd seed" in capsys.readouterr().out
    (tmp_path / "results.jsonl").write_text(
        "".join((tmp_path / "results.jsonl").read_text().splitlines(keepends=True)[:-1])
    )
    family(lambda _: None)
    assert run.main([*where, "--faulty"]) == 0
    assert run.main([*where, "--minutes", "0"]) == 0


def test_a_family_that_is_not_there_is_named(capsys, tmp_path):
    with pytest.raises(SystemExit):
        run.main(["--families", "nothing", "--folder", str(tmp_path)])
    assert "no family nothing; there are bistro_words, built_programs, " in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [name for name in run.families() if name not in ("properties", "scripts_for_real")],
)
def test_first_cases_of_a_family_are_well(name):
    """Of each the first two; `make explore` takes thousands."""
    stretch = run.carry_out(name, 1, 2, 600.0)
    assert (stretch.n_cases, stretch.faults) == (2, ())


@pytest.mark.slow
@pytest.mark.long
def test_scripts_with_a_relay_bring_all_for_real(monkeypatch):
    """Their deadline is explored: a machine that runs other tests, too, is late."""
    monkeypatch.setattr(scripts_for_real, "PLANNED_S", 20.0)
    monkeypatch.setattr(scripts_for_real, "START_S", 300.0)
    stretch = run.carry_out("scripts_for_real", 1, 1, 300.0)
    assert (stretch.n_cases, stretch.faults) == (1, ())
