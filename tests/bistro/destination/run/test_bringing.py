"""Bistros' files fetched from real agents: incrementally, and whoever is away holds nobody up."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from dataclasses import replace
from types import SimpleNamespace

import pytest
from instances.agents import KEY, running, write_agent
from instances.bistro_folders import HandedIn, MadeBistro, collecting_event
from transfer.pull.lying_agent import LyingAgent

from datacollect.bistro.destination.run.bringing import Bringing, with_network
from datacollect.bistro.destination.run.destination_round import REPORTS
from datacollect.bistro.formats.custody.segments import segment_name
from datacollect.bistro.formats.event.event import Bistro
from datacollect.errors import StoreError
from datacollect.net.keys import write_private_key
from datacollect.transfer.pull.config.file import Collection

EVENT = collecting_event()


@pytest.fixture
def served(tmp_path):
    """Yield an event whose bistros are agents here, their folders, and how to end one."""
    write_private_key(tmp_path / "collector.key", KEY)
    with ExitStack() as ending:
        bistros, made, ends = [], {}, {}
        for name in ("north", "south"):
            one = ExitStack()
            ending.enter_context(one)
            agent = one.enter_context(running(write_agent(tmp_path, name, serve=name)))
            bistros.append(
                Bistro(name, f"https://{agent.place}", "", fingerprint=agent.agent.fingerprint)
            )
            made[name], ends[name] = MadeBistro(EVENT, name, tmp_path / name), one.close
        yield replace(EVENT, bistros=tuple(bistros)), made, ends


def files_in(folder):
    return sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and ".datacollect" not in path.parts
    )


@pytest.mark.slow
def test_reports_and_then_wanted_segments_come(served, tmp_path):
    event, made, ends = served
    said = []
    bring = Bringing(
        event, tmp_path / "collector.key", tmp_path / "into", said.append, patience_s=1.0
    )
    for number in range(2):
        made["north"].push(HandedIn(EVENT, number))
    # South has nothing yet, and says so.
    assert bring({"north": REPORTS, "south": REPORTS}) == {"north", "south"}
    reports = [
        *(f"north/batches/{n:010}.batch" for n in range(2)),
        *(f"north/segments/{n:010}.index" for n in range(2)),
    ]
    assert files_in(tmp_path / "into") == reports
    bring({"north": [segment_name(1)]})
    assert files_in(tmp_path / "into") == sorted([*reports, f"north/{segment_name(1)}"])
    made["south"].push(HandedIn(EVENT, 3))
    ends["north"]()
    assert bring({"north": REPORTS, "south": REPORTS}) == {"south"}
    assert "south/batches/0000000000.batch" in files_in(tmp_path / "into")
    assert any("north" in line for line in said)
    ends["south"]()
    assert bring({"north": REPORTS, "south": REPORTS}) == set()


@pytest.mark.parametrize(
    ("limits", "most_s"),
    [
        ({}, 300.0),
        ({"patience_s": 600.0, "timeout_s": 60.0}, 660.0),
        ({"patience_s": 600.0, "time_s": 120.0}, 120.0),
        ({"time_s": 3600.0}, 3600.0),
    ],
)
def test_a_round_takes_as_long_as_its_collection_file_says(limits, most_s):
    """It says so itself, or by how long the slowest is waited for; else it is five minutes."""
    agents = {"north": {"url": "https://n.example:1", "fingerprint": "sha256:" + "0" * 64}}
    own = {"format": "datacollect-collection/1", "destination": "D", "key": "k", "agents": agents}
    bistros = Collection.from_dict(own | {"limits": {"time_s": 300.0}})
    network = Collection.from_dict(own | {"limits": limits})
    assert with_network(bistros, network).limits.time_s == most_s


def test_the_destination_has_a_name_that_no_bistro_has(tmp_path):
    bistros = (Bistro("destination", "https://a.example", "", "sha256:" + "0" * 64),)
    event = replace(EVENT, bistros=bistros)
    assert Bringing(event, tmp_path, tmp_path, print)._own_name() == "destination-"


def test_a_bistro_that_lists_what_fits_nowhere_keeps_nobody_from_being_collected(
    tmp_path, monkeypatch
):
    """Where nobody's fits, the disk is full."""
    pulled, said = [], []
    too_large = {"south"}

    def pull(collection, *_, **__):
        if too_large & collection.sources.keys():
            raise StoreError("must have room for 8 TB more")
        pulled.extend(collection.sources)
        return SimpleNamespace(missing=(), to_come=())

    monkeypatch.setattr("datacollect.bistro.destination.run.bringing.pull", pull)
    write_private_key(tmp_path / "collector.key", KEY)
    bring = Bringing(EVENT, tmp_path / "collector.key", tmp_path / "into", said.append)
    assert bring({"north": REPORTS, "south": REPORTS}) == {"north"}
    assert pulled == ["north"]
    assert said == ["south: must have room for 8 TB more"]
    too_large.add("north")
    with pytest.raises(StoreError):
        bring({"north": REPORTS, "south": REPORTS})


@pytest.mark.slow
def test_a_bistro_that_trickles_holds_the_others_up_for_so_long_and_no_longer(served, tmp_path):
    event, made, _ = served
    trickling = LyingAgent(
        "south", tmp_path, {"batches/0000000000.batch": b"b" * 10**5}, drips={"/v1/read": 0.001}
    )
    url = f"https://127.0.0.1:{trickling.address[1]}"
    south = Bistro("south", url, "", fingerprint=trickling.fingerprint)
    event = replace(event, bistros=(event.bistros[0], south))
    said = []
    bring = Bringing(
        event,
        tmp_path / "collector.key",
        tmp_path / "into",
        said.append,
        patience_s=600.0,
        most_s=2.0,
    )
    made["north"].push(HandedIn(EVENT, 0))
    # What south has listed has not come.
    assert bring({"north": REPORTS, "south": REPORTS}) == {"north"}
    trickling.stop()
    assert "north/batches/0000000000.batch" in files_in(tmp_path / "into")
    assert any(line == "given up: south: the pull was to end after 2 s" for line in said), said


def test_a_bistro_can_neither_fill_the_disk_nor_serve_what_is_larger_than_it_may_be(
    served, tmp_path
):
    event, made, _ = served
    (tmp_path / "south/batches").mkdir(parents=True, exist_ok=True)
    with (tmp_path / "south/batches/0000000007.batch").open("wb") as sparse:
        sparse.truncate(10**9)
    said = []
    bring = Bringing(event, tmp_path / "collector.key", tmp_path / "into", said.append)
    made["north"].push(HandedIn(EVENT, 0))
    assert bring({"north": REPORTS, "south": REPORTS}) == {"north"}
    assert "north/batches/0000000000.batch" in files_in(tmp_path / "into")
    assert "south/batches/0000000007.batch" not in files_in(tmp_path / "into")
    # Of the room that is free, half is the most that anybody may list.
    free = shutil.disk_usage(tmp_path).free
    found = bring._collection({"north": REPORTS})
    assert found.limits.spare_bytes == pytest.approx(free / 2, rel=0.1)
