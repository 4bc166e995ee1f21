"""Sections of scenarios as typed values."""

from __future__ import annotations

import tomllib
from dataclasses import fields, replace
from pathlib import Path

import pytest
from instances.small_scenarios import line_of

from datacollect.control.connections import Recovery
from datacollect.methods.best_path_spec import BestPathOptions
from datacollect.methods.coordinated.spec import CoordinatedOptions
from datacollect.methods.direct_spec import DirectOptions
from datacollect.methods.execution import PULLS, ExecutionOptions
from datacollect.methods.places import options_in
from datacollect.scenario.fields import ESTIMATES, METHOD, PERTURBATION, RUN, SHARED_WIRE
from datacollect.scenario.options import (
    EstimateOptions,
    Perturbation,
    RunOptions,
    SharedWire,
    execution_options,
)
from datacollect.transfer.pull.config.file import Limits
from datacollect.transfer.store.state.pieces import piece_size

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize(
    ("options", "table"),
    [
        (EstimateOptions, ESTIMATES),
        (RunOptions, RUN),
        (Perturbation, PERTURBATION),
        (SharedWire, SHARED_WIRE),
    ],
)
def test_options_are_the_keys_of_their_section_but_for_seeds(options, table):
    names = [field.name for field in fields(options)]
    assert sorted(names) == sorted(table.by_name.keys() - {"seed"})


def test_keys_of_the_method_say_how_to_plan_or_how_to_carry_out():
    """Slots that the scale shortens are slots like others once the scale is known.

    Whether links are known [estimates] say.
    """
    carried_out = {field.name for field in fields(ExecutionOptions)} - {"options", "is_known"}
    assert not carried_out & options_in("scenario").keys()
    keys = {*carried_out, *options_in("scenario"), "scaled_slot_s"}
    assert keys == METHOD.by_name.keys()


def test_what_was_not_said_has_the_default_of_its_field():
    scenario = line_of()
    how, limits = execution_options(scenario), RunOptions.of(scenario)
    assert how.is_known
    said = {**vars(how), **how.options}
    del said["options"], said["is_known"]
    assert all(value == METHOD.by_name[name].default for name, value in said.items())
    assert (limits.stall_s, limits.relay_buffer_bytes, limits.warm_up_s) == (30.0, None, 0.0)
    assert EstimateOptions.of(scenario).shared == ()


def test_options_by_themselves_have_the_same_defaults():
    how = execution_options(line_of())
    assert replace(how, options={}) == ExecutionOptions()
    assert how.planning() == ExecutionOptions().planning()


def test_tables_within_become_values_of_their_own():
    wires = [{"wire": "N0-N1", "connections": 3}]
    wrong = [{"wire": "N0-N1", "factor": 1.7}]
    options = EstimateOptions.of(line_of(estimates={"shared": wires, "perturbations": wrong}))
    assert options.shared == (SharedWire("N0-N1", None, 3),)
    assert options.perturbations == (Perturbation("N0-N1", 1.7),)


def test_each_method_gets_the_options_that_it_has():
    section = {
        "slot_s": 2.0,
        "time_limit_s": 9.0,
        "solver": "ortools",
        "at_a_time": 2,
        "time_slot_s": 5.0,
        "first": "relay",
        "finish": "together",
    }
    how = execution_options(line_of(method={**section, "order": ["S"]}))
    assert how.planning() == CoordinatedOptions(
        slot_s=2.0, solver="ortools", time_limit_s=9.0, finish="together", settle_ties=False
    )
    assert how.planning("best-path") == BestPathOptions(slot_s=2.0, first="relay", solver="ortools")
    assert how.planning("direct") == DirectOptions(
        order=("S",), at_a_time=2, time_slot_s=5.0, solver="ortools"
    )


def test_scaled_slots_are_as_much_shorter_as_the_data_are_less():
    """100 s at full size are 10 s at a tenth; slots in seconds stay what they are."""
    scaled = line_of(scale=0.1, method={"scaled_slot_s": 100.0})
    assert execution_options(scaled).planning() == CoordinatedOptions(
        slot_s=10.0, settle_ties=False
    )
    assert execution_options(line_of(scale=0.1, method={"slot_s": 2.0})).planning().slot_s == 2.0


def test_connections_recover_as_the_section_says():
    section = {"stall_patience_s": 3.0, "retry_s": 2.0, "most_retries": 4}
    assert execution_options(line_of(method=section)).recovery == Recovery(3.0, 2.0, 4)


def test_the_keys_that_the_docs_give_are_what_pull_does():
    """All but the size of pieces, which is as the data are."""
    page = (DOCS / "simulation_engines.md").read_text(encoding="utf-8")
    block = page.partition("## What `pull` does")[2].partition("```toml\n")[2].partition("```")[0]
    said = execution_options(line_of(**tomllib.loads(block)))
    assert not any(value for key, value in said.options.items() if key != "solver")
    assert replace(said, options={}) == replace(PULLS, is_known=False, piece_bytes=262_144)
    assert PULLS.connections == Limits().connections
    assert piece_size(50_000_000) == 262_144
