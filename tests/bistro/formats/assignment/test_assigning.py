"""To which bistro something goes: by hand, by all choices, and where nothing is known."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from dataclasses import replace

import pandas as pd
import pytest

import datacollect as dc
from datacollect.bistro.formats.assignment.assigning import by_rendezvous
from datacollect.bistro.formats.assignment.loads import BistroLoad, Loads, Wire, read_loads
from datacollect.bistro.formats.log.checkpoints import log_key
from datacollect.bistro.formats.log.notes import signed
from datacollect.errors import ProblemError
from datacollect.net.keys import PrivateKey
from tests.bistro.formats.custody.test_custody import EVENT

assign = dc.bistro.assign


def test_the_bistro_is_taken_that_is_empty_sooner():
    """8 MB at 1 MB/s are gone after 8 s; 1 MB at 100 kB/s after 10 s."""
    loads = Loads((BistroLoad("a", 8_000_000, 1e6), BistroLoad("b", 1_000_000, 1e5)))
    assert assign(loads, ["b", "a"], 0, 0) == ["a"]
    # 2.5 MB more: 10.5 s against 35 s.
    assert assign(loads, ["b", "a"], 2_500_000, 0) == ["a"]


def test_a_wire_counts_with_what_lies_at_all_who_share_it():
    """By uplinks a and b are empty after 1 s, c after 3; a's and b's wire after 4."""
    loads = Loads(
        (BistroLoad("a", 100, 100.0), BistroLoad("b", 300, 300.0), BistroLoad("c", 300, 100.0)),
        (Wire(100.0, ("a", "b")),),
    )
    assert assign(loads, ["a", "b", "c"], 0, 0) == ["c"]
    assert assign(replace(loads, wires=()), ["a", "b", "c"], 0, 0) == ["a"]


def test_who_makes_wait_too_long_is_left_out():
    loads = Loads((BistroLoad("a", 0, 1.0, wait_s=5.0), BistroLoad("b", 9, 1.0, wait_s=2.0)))
    assert assign(loads, ["a", "b"], 1, 5.0) == ["a"]
    assert assign(loads, ["a", "b"], 1, 4.9) == ["b"]
    # None is soon enough: the soonest.
    assert assign(loads, ["a", "b"], 1, 1.0) == ["b"]


def test_where_two_are_alike_the_nearer_is_taken():
    loads = Loads((BistroLoad("a", 0, 1.0), BistroLoad("b", 0, 1.0)))
    assert assign(loads, ["b", "a"], 1, 0) == ["b"]
    assert assign(loads, {"a": 0.2, "b": 0.1}, 1, 0) == ["b"]


def test_a_full_bistro_is_left_out():
    loads = Loads((BistroLoad("a", 0, 1.0, free_bytes=9), BistroLoad("b", 99, 1.0)))
    assert assign(loads, ["a", "b"], 9, 0) == ["a"]
    assert assign(loads, ["a", "b"], 10, 0) == ["b"]
    with pytest.raises(ProblemError, match="no near bistro has room"):
        assign(loads, ["a"], 10, 0)


def test_a_second_copy_goes_where_the_first_has_no_wire():
    rows = (BistroLoad("a", 0, 9.0), BistroLoad("b", 0, 8.0), BistroLoad("c", 0, 1.0))
    assert assign(Loads(rows), ["a", "b", "c"], 1, 0, copies=2) == ["a", "b"]
    shared = Loads(rows, (Wire(99.0, ("a", "b")),))
    assert assign(shared, ["a", "b", "c"], 1, 0, copies=2) == ["a", "c"]
    assert assign(shared, ["a", "b"], 1, 0, copies=3) == ["a", "b"]


def test_a_frame_is_a_table():
    frame = pd.DataFrame(
        {
            "bistro": ["a", "b"],
            "stored_bytes": [10, 0],
            "uplink_bytes_per_s": [1.0, 1.0],
            "wait_s": [0.0, 7.0],
        }
    )
    assert assign(frame, ["a", "b"], 1, 10.0) == ["b"]
    assert assign(frame, ["a", "b"], 1, 1.0) == ["a"]


FRAME = pd.DataFrame({"bistro": ["a"], "stored_bytes": [1], "uplink_bytes_per_s": [1.0]})


@pytest.mark.parametrize(
    ("loads", "near", "size_bytes", "patience_s", "copies", "words"),
    [
        (FRAME, ["b"], 1, 1, 1, "near must name bistros of the table"),
        (FRAME, ["a"], -1, 1, 1, "0 or more"),
        (FRAME, ["a"], 1, float("nan"), 1, "0 or more"),
        (FRAME, ["a"], 1, 1, 0, "0 or more"),
        (FRAME, [], 1, 1, 1, "no near bistro"),
        (FRAME.drop(columns="stored_bytes"), ["a"], 1, 1, 1, "lacks stored_bytes"),
        (FRAME.assign(stored_bytes=-1), ["a"], 1, 1, 1, "0 or more"),
        (FRAME.assign(stored_bytes=float("nan")), ["a"], 1, 1, 1, "0 or more"),
        (FRAME.assign(uplink_bytes_per_s=0), ["a"], 1, 1, 1, "above 0"),
        (FRAME.assign(stored_bytes="1 GB"), ["a"], 1, 1, 1, "0 or more"),
        (pd.concat([FRAME, FRAME]), ["a"], 1, 1, 1, "one row for each"),
    ],
)
def test_what_makes_no_sense_is_refused(loads, near, size_bytes, patience_s, copies, words):
    with pytest.raises(ProblemError, match=words):
        assign(loads, near, size_bytes, patience_s, copies)


def test_uploads_one_after_the_other_come_near_the_least_possible_time():
    """Against all ways of placing six uploads at three bistros; list scheduling is within 2."""
    rng = random.Random(7)
    for _ in range(60):
        rates = {name: rng.uniform(1, 5) for name in "abc"}
        wire = Wire(rng.uniform(1, 6), ("a", "b"))
        sizes = sorted((rng.randint(1, 9) for _ in range(6)), reverse=True)

        def time_s(places, sizes=sizes, rates=rates, wire=wire):
            put = Counter()
            for place, size in zip(places, sizes, strict=True):
                put[place] += size
            return max(
                (put["a"] + put["b"]) / wire.capacity_bytes_per_s,
                *(put[name] / rate for name, rate in rates.items()),
            )

        put, places = Counter(), []
        for size in sizes:
            rows = tuple(BistroLoad(name, put[name], rate) for name, rate in rates.items())
            places += assign(Loads(rows, (wire,)), "abc", size, 0)
            put[places[-1]] += size
        best_s = min(map(time_s, itertools.product("abc", repeat=6)))
        assert best_s <= time_s(places) <= 2 * best_s


def test_rendezvous_spreads_evenly_and_moves_only_what_it_must():
    names = ["a", "b", "c", "d"]
    entries = [i.to_bytes(32, "big") for i in range(4000)]
    first = [by_rendezvous(entry, names)[0] for entry in entries]
    # 1000 each, with a standard deviation of 27.
    assert all(abs(n - 1000) < 120 for n in Counter(first).values())
    without = [by_rendezvous(entry, names[:3])[0] for entry in entries]
    assert all(old == new for old, new in zip(first, without, strict=True) if old != "d")
    assert by_rendezvous(entries[0], names) == by_rendezvous(entries[0], names[::-1])


KEY = PrivateKey(b"\3" * 32)
TABLE = Loads(
    (BistroLoad("north", 10, 1.5, 100, 0.5), BistroLoad("süd", 0, 2.0)),
    (Wire(9.0, ("north", "süd")),),
    EVENT.id,
    number=4,
    time_s=1000,
)


def test_a_signed_table_is_read_back():
    assert read_loads(TABLE.signed(EVENT, KEY).data, EVENT) == TABLE
    assert TABLE.is_fresh(1060)
    assert not TABLE.is_fresh(1061)
    assert not TABLE.is_fresh(930)


@pytest.mark.parametrize(
    ("table", "key"),
    [
        (TABLE, PrivateKey(b"\4" * 32)),
        (replace(TABLE, event=b"x" * 32), KEY),
        (replace(TABLE, bistros=(*TABLE.bistros, TABLE.bistros[0])), KEY),
        (replace(TABLE, bistros=(BistroLoad("north", -1, 1.0),)), KEY),
        (replace(TABLE, bistros=(BistroLoad("north", 1, 0.0),)), KEY),
        (replace(TABLE, wires=(Wire(-1.0, ("north",)),)), KEY),
        (replace(TABLE, number=-1), KEY),
    ],
)
def test_a_table_that_does_not_count_is_refused(table, key):
    with pytest.raises(ProblemError):
        read_loads(table.signed(EVENT, key).data, EVENT)


def test_no_changed_or_cut_table_counts():
    data = TABLE.signed(EVENT, KEY).data
    for i in range(len(data)):
        with pytest.raises(ProblemError):
            read_loads(data[:i] + bytes([data[i] ^ 1]) + data[i + 1 :], EVENT)
        with pytest.raises(ProblemError):
            read_loads(data[:i], EVENT)


def test_an_event_without_a_log_of_verdicts_has_no_tables():
    data = TABLE.signed(EVENT, KEY).data
    with pytest.raises(ProblemError, match="signed by"):
        read_loads(data, replace(EVENT, verdicts=None))
    with pytest.raises(ProblemError, match="signed by"):
        read_loads(data, replace(EVENT, verdicts=log_key("other.example/0", KEY.public)))


def test_a_table_signed_in_the_name_of_the_log_does_not_count():
    """One pair of keys, two purposes: a name for each."""
    text = TABLE.signed(EVENT, KEY).text
    with pytest.raises(ProblemError, match="signed by"):
        read_loads(signed(text, EVENT.verdicts.name, KEY).data, EVENT)
    assert signed(text, f"{EVENT.verdicts.name}/loads", KEY).data == TABLE.signed(EVENT, KEY).data


def mutated(rng: random.Random, text: str) -> str:
    """Return a table's text with one to four values, signs or pieces changed."""
    signs = ["-1", "1e999", "NaN", "null", "[]", "{}", '""', "9" * 400, ",", '"', "\\ud800", "true"]
    for _ in range(rng.randint(1, 4)):
        at, end = sorted(rng.randrange(len(text) + 1) for _ in range(2))
        end = min(end, at + rng.choice([0, 1, 3, 20]))
        text = text[:at] + rng.choice([*signs, text[at : at + 30]]) + text[end:]
    return text


@pytest.mark.slow
def test_whatever_the_destination_signs_is_a_table_or_refused():
    """The signature is good, so that what is behind it is read."""
    rng = random.Random(20)
    text = TABLE.signed(EVENT, KEY).text
    outcomes = Counter()
    for _ in range(2000):
        note = signed(mutated(rng, text), EVENT.verdicts.for_purpose("loads").name, KEY)
        try:
            outcomes[type(read_loads(note.data, EVENT))] += 1
        except ProblemError:
            outcomes[ProblemError] += 1
    assert outcomes[Loads] > 10
    assert outcomes[ProblemError] > 1000


def bottleneck_s(put, rates, wires):
    return max(
        *(put[name] / rate for name, rate in rates.items()),
        *(sum(put[n] for n in wire.bistros) / wire.capacity_bytes_per_s for wire in wires),
    )


def test_an_empty_bistro_more_never_makes_the_worst_bottleneck_of_the_next_upload_worse():
    rng = random.Random(5)
    for _ in range(300):
        rates = {name: rng.uniform(1, 5) for name in "abcd"}
        stored = {name: rng.randint(0, 30) for name in "abc"} | {"d": 0}
        wires = (Wire(rng.uniform(1, 6), ("a", "b")), Wire(rng.uniform(1, 6), ("c", "b")))
        rows = tuple(BistroLoad(n, stored[n], rate) for n, rate in rates.items())
        size = rng.randint(1, 20)
        worst_s = []
        for near in ("abc", "abcd"):
            name = assign(Loads(rows, wires), near, size, 0)[0]
            put = stored | {name: stored[name] + size}
            worst_s.append(bottleneck_s(put, rates, wires))
        assert worst_s[1] <= worst_s[0]
