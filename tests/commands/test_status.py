"""The command `status`: what it says of the whole, and of what the last start asked for."""

import json

import pytest
from instances.stores import Held, get_ready, put, rounds

from datacollect.commands.main import run
from datacollect.transfer.protocol.patterns import Narrowing, WantedFiles
from datacollect.transfer.protocol.source import Page
from datacollect.transfer.store.promises import KeptPull, keep
from datacollect.transfer.store.store import Store


def start(folder, held, include=None, exclude=()):
    """Fetch what a start asks for, as a pull does."""
    view = Narrowing(include, exclude)
    store = Store(folder)
    store.state.begin_start(["S"], view)
    listing = store.listing("S", WantedFiles(None, include, exclude))
    listing.take(Page(held.page().files))
    listing.end()
    store.prepare("S", 2**16, apart=False)
    store.know("S")
    for _ in rounds(store):
        for piece in store.needed("S"):
            put(store, held, piece)
    store.settle_remaining()
    store.close()


@pytest.mark.parametrize(
    ("include", "exclude", "said"),
    [
        (("small",), (), "of --include small; the rest was not listed"),
        (None, ("**",), "of --exclude '**'; the rest was not listed"),
    ],
)
def test_a_part_is_no_whole(tmp_path, capsys, include, exclude, said):
    start(tmp_path, Held(small=10, large=200_000), include, exclude)
    assert run(["status", str(tmp_path)]) == 1
    assert f"complete  {said}" in " ".join(capsys.readouterr().out.split(" "))
    assert run(["status", str(tmp_path), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["complete"], told["complete_as_asked"]) == (False, True)
    assert told["narrowed_to"] == {
        "include": None if include is None else list(include),
        "exclude": list(exclude),
    }
    assert run(["status", str(tmp_path), "--as-asked"]) == 0
    assert "yes; the last start asked for" in capsys.readouterr().out


def test_the_rest_that_was_listed_before_is_not_called_so(tmp_path, capsys):
    held = Held(small=10, large=200_000)
    store = Store(tmp_path)
    store.state.begin_start(["S"])
    get_ready(store, held)
    store.close()
    start(tmp_path, held, ("small",))
    assert run(["status", str(tmp_path)]) == 1
    assert "of --include small; some of the rest is not there" in capsys.readouterr().out
    start(tmp_path, held)
    assert run(["status", str(tmp_path)]) == 0
    start(tmp_path, held, ("small",))
    assert run(["status", str(tmp_path)]) == 0
    assert "yes; the last start asked for --include small" in capsys.readouterr().out


def test_promises_say_how_often_starts_ended_within_their_interval(tmp_path, capsys):
    """Three had an interval, two held; one did not end, one had none."""
    start(tmp_path, Held(small=10))
    ends = [(10.0, True, 8.0), (11.0, True, 8.0), (20.0, True, 8.0), (1.0, False, 8.0)]
    for took_s, complete, p10_s in [*ends, (10.0, True, None)]:
        p90_s = None if p10_s is None else 12.0
        keep(tmp_path, KeptPull(1.7e9, "direct", complete, 10.0, p10_s, p90_s, took_s, ("slow",)))
    assert run(["status", str(tmp_path), "--promises"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Of 3 starts with an interval 2 ended within it (67%; promised: 80%)." in out
    assert "ended, UTC" in out
    assert "2023-11-14 22:13 direct 8 s 10 s 12 s 20 s" in out
    assert "the last start ended later than promised: slow" in out
    assert run(["status", str(tmp_path), "--promises", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["promises"]
    assert (told["n_judged"], told["n_held"], len(told["starts"])) == (3, 2, 5)


def test_without_any_interval_promises_say_what_is_missing(tmp_path, capsys):
    start(tmp_path, Held(small=10))
    (tmp_path / ".datacollect/history.jsonl").write_text("{")
    assert run(["status", str(tmp_path), "--promises"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "No start that promised an interval has ended" in out
    assert "Skipped: 1 incomplete line of the record of starts." in out
