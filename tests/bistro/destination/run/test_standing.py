"""What a destination leaves for whoever asks, and what is missing: by hand."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
from instances.bistro_folders import collecting_event

import datacollect as dc
from datacollect.bistro.destination.missing import Known, Missing
from datacollect.bistro.destination.run.event_run import predicted_s
from datacollect.bistro.destination.run.load_telling import SAME_BYTES_PER_S, loads_of
from datacollect.bistro.destination.run.missing_list import ShownReceipts, hidden_rows, missing_list
from datacollect.bistro.destination.run.standing import (
    MISSING_FILE,
    SETTLES_AFTER_S,
    SILENT_AFTER_S,
    STANDING_FILE,
    BistroStanding,
    LogStanding,
    Standing,
    contacts_before,
    read_standing,
    write_standing,
)
from datacollect.bistro.formats.custody.bistro_receipt import BistroReceipt
from datacollect.errors import ProblemError

EVENT = collecting_event()
A, B, C, D = (bytes([n]) * 32 for n in range(1, 5))
ALL = Standing(
    event=EVENT.id.hex(),
    name="Tax",
    time_s=1000,
    deadline_s=500,
    collect_until_s=900,
    in_time=3,
    late=1,
    collected=2,
    refused=0,
    superseded=1,
    waiting=0,
    missing={},
    lies=(),
    bistros=(BistroStanding("north", 5, 7, None),),
    predicted_s=None,
    verdicts_url=None,
    n_verdicts=4,
    logs=(LogStanding("https://s0.example", 9),),
    arrivals=((400, 2), (500, 1)),
    arrivals_each_s=10,
    is_whole=True,
)


def word(bistro: str, entry: bytes) -> BistroReceipt:
    return BistroReceipt(EVENT.id, bistro, entry, 1, bytes(32), False, 0, 0)


def test_standing_is_read_as_it_was_written(tmp_path):
    odd = replace(ALL, lies=(("north", "It has lied."),), missing={"does not open": 1})
    write_standing(odd, [Missing(A, "does not open", ("north", "south"), "07")], tmp_path)
    assert read_standing(tmp_path) == odd
    assert (tmp_path / MISSING_FILE).read_text() == (
        f"entry,evidence,bistros,ticket\n{A.hex()},does not open,north south,07\n"
    )


def test_a_bistro_is_silent_that_has_not_answered_for_long_or_never():
    at_s = ALL.time_s - SILENT_AFTER_S
    contacts = {"north": at_s, "south": at_s - 1, "west": None}
    found = replace(ALL, contacts=contacts)
    assert found.silent == ("south", "west")
    assert found.to_dict()["silent"] == ["south", "west"]


def test_when_bistros_have_answered_is_known_after_a_new_start(tmp_path):
    assert contacts_before(tmp_path, ALL.event) == {}
    write_standing(replace(ALL, contacts={"north": 7, "south": None}), [], tmp_path)
    assert contacts_before(tmp_path, ALL.event) == {"north": 7}
    # Of another event nothing is taken over.
    assert contacts_before(tmp_path, "ab" * 32) == {}


def test_nothing_is_settled_before_the_last_moment_or_with_words_left_to_say():
    last_s = ALL.collect_until_s + SETTLES_AFTER_S
    assert replace(ALL, time_s=last_s + 1).is_settled
    assert not replace(ALL, time_s=last_s).is_settled
    assert not replace(ALL, time_s=last_s + 1, is_whole=False).is_settled


@pytest.mark.parametrize("text", ["{}", "[]", "7", '{"format": "other/1"}', "{"])
def test_other_files_in_its_place_are_named(tmp_path, text):
    (tmp_path / STANDING_FILE).write_text(text)
    with pytest.raises(ProblemError, match=r"status\.json"):
        read_standing(tmp_path)


def test_each_entry_that_is_not_here_is_missing_once():
    known = [
        Known(A, 5, ("north",), ticket="07"),
        Known(B, 5, ("north",), "refused", "does not open"),
    ]
    shown = {A: (word("south", A),), C: (word("south", C),), D: ()}
    found = missing_list(known, shown, [B, D, bytes(32)], lambda some: some & {bytes(32)})
    assert found == [
        Missing(A, "receipt without data", ("north", "south"), "07"),
        Missing(B, "does not open", ("north",)),
        Missing(C, "receipt without data", ("south",)),
        Missing(D, "timestamp without upload"),
    ]


def test_a_receipt_for_a_row_that_its_batch_lacks_is_a_lie():
    """But not where the batch has not come yet."""
    of_batch = [replace(word("north", A), batch=n) for n in (2, 3)]
    shown = {A: tuple(of_batch), B: (word("south", B),)}
    found = hidden_rows(shown, lambda _: ["south"], {"north": 2, "south": 0}.__getitem__)
    assert [(lie.who, "batch 2, which does not" in lie.text) for lie in found] == [("north", True)]


def told(stored_bytes: int) -> dict:
    return {"stored_bytes": stored_bytes, "free_bytes": 100, "wait_s": 0.5}


def test_table_of_loads_knows_links_and_wires_that_several_share():
    links = [
        {"from": name, "to": "D", "bandwidth_bytes_per_s": rate}
        for name, rate in (("north", 4e6), ("south", 2e6), ("relay", 1e6))
    ]
    network = dc.Problem.from_dict(
        {
            "destination": "D",
            "hosts": {name: {} for name in ("north", "south", "relay", "D")},
            "links": links,
            "shared": [
                {
                    "name": "sea",
                    "links": [["north", "D"], ["south", "D"]],
                    "bandwidth_bytes_per_s": 3e6,
                },
                {"name": "own", "links": [["north", "D"]], "bandwidth_bytes_per_s": 3e6},
            ],
        }
    )
    facts = {"south": told(5), "north": told(9), "west": told(1)}
    loads = loads_of(EVENT, facts, network, 1234.5)
    assert [(row.bistro, row.stored_bytes, row.uplink_bytes_per_s) for row in loads.bistros] == [
        ("north", 9, 4e6),
        ("south", 5, 2e6),
        ("west", 1, SAME_BYTES_PER_S),
    ]
    assert [(wire.capacity_bytes_per_s, wire.bistros) for wire in loads.wires] == [
        (3e6, ("north", "south"))
    ]
    assert (loads.number, loads.time_s, loads.event) == (1_234_500, 1234, EVENT.id)
    assert loads_of(EVENT, facts, None, 1300).number > loads.number


def test_the_rest_takes_as_long_as_the_plan_says():
    network = dc.Problem.from_matrix(
        ["north", "south", "D"], [[0, 0, 1e6], [0, 0, 4e6], [0, 0, 0]], [0, 0, 0], "D"
    )
    assert predicted_s([], network) == 0
    assert predicted_s([(A, "north", 8_000_000)], None) is None
    waiting = [(A, "north", 8_000_000), (B, "south", 4_000_000), (C, "nowhere", 10**12)]
    assert predicted_s(waiting, network) == pytest.approx(8.0)
    # Of two copies the sooner one counts.
    assert predicted_s([*waiting, (A, "south", 8_000_000)], network) == pytest.approx(3.0)


def test_what_is_no_receipt_in_their_folder_is_named_once(tmp_path):
    said = []
    (tmp_path / "a.receipt.json").symlink_to("nowhere")
    (tmp_path / "b.receipt.json").symlink_to("b.receipt.json")
    os.mkfifo(tmp_path / "c.receipt.json")
    with (tmp_path / "d.receipt.json").open("wb") as file:
        file.truncate(2**40)
    shown = ShownReceipts(tmp_path, b"", said.append)
    for _ in range(2):
        assert shown.of(EVENT) == {}
    assert len(said) == 4


def test_a_folder_of_receipts_that_is_not_there_is_named(tmp_path):
    said = []
    assert ShownReceipts(tmp_path / "absent", b"", said.append).of(EVENT) == {}
    assert said == [f"{tmp_path}/absent: no such folder, so no receipts are read"]
