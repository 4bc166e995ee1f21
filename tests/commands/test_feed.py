"""The command ``datacollect feed plan``, and the door for others."""

import json
import tomllib

import pytest

from datacollect.commands import feed
from datacollect.commands.brought import FEED_COMMANDS, CommandSpec
from datacollect.commands.feed import feed_group
from datacollect.commands.main import run
from datacollect.measurement.sample_store import write_part

PLAN = ("feed", "plan", "--rate", "16 Mbit/s")
PATH = ("--rtt", "50 ms", "--bandwidth", "20 Mbit/s")


def test_a_newcomer_is_told_whether_it_keeps_up(capsys):
    assert run([*PLAN, *PATH, "--loss", "1e-5", "--via", "K1", "--via", "K2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("reno  ") and " yes " in line for line in lines)
    assert any(line.startswith("cubic via K1, K2") for line in lines)
    text = " ".join(line.strip() for line in lines)
    assert "timely again after each" in text
    assert "srt-live-transmit file://con" in text
    told = tomllib.loads("\n".join(lines[-3:]))
    assert (told["rate"], told["transport"]) == ("16 Mbit/s", "tcp")
    assert told["buffer_bytes"] == "110 kB"


def test_json_says_the_same(capsys):
    assert run([*PLAN, *PATH, "--json"]) == 0
    tree = json.loads(capsys.readouterr().out)
    assert tree["keeps_up"] is True
    by_name = {one["transport"]: one for one in tree["transports"]}
    assert set(by_name) == {"reno", "cubic", "bbr", "udp"}
    assert by_name["reno"]["no_deficit_bytes_per_s"] == 4e6
    assert by_name["bbr"]["worst_delay_s"] is None
    assert by_name["udp"]["fits"] is True


def test_what_does_not_fit_is_a_no_with_a_drop_set(capsys):
    path = ("--rtt", "10 ms", "--bandwidth", "1 Gbit/s")
    assert run(["feed", "plan", "--rate", "1024 Mbit/s", *path]) == 1
    out = capsys.readouterr().out
    assert "6.5% would be lost" in " ".join(out.split())
    told = tomllib.loads("\n".join(out.splitlines()[-3:]))
    assert told["transport"] == "udp"
    # What is left fits the wire, in frames of 1538 bytes with 1412 of data, and hardly more would.
    carried = (1 - told["udp"]["drop"]) * 1024e6 * 1538 / 1412
    assert 0.998e9 < carried <= 1e9


def test_a_drop_set_is_named_only_where_one_is_needed(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(feed, "KERNEL", tmp_path / "kernel")
    feed.KERNEL.write_text("reno cubic")
    path = ("--rtt", "10 ms", "--bandwidth", "1 Gbit/s", "--loss", "0.5")
    assert run(["feed", "plan", "--rate", "500 Mbit/s", *path]) == 0
    assert capsys.readouterr().out.endswith('transport = "udp"\n')


def test_measured_paths_are_taken_from_samples(tmp_path, capsys):
    rows = [
        {"from": a, "to": b, "time_s": 0.0, "tool": "tcp", "ended": "done"} | more
        for a, b, rtt_s in (("S", "D", 0.05), ("S", "K", 0.02), ("K", "D", 0.03))
        for more in ({"bandwidth_bytes_per_s": 2.5e6}, {"rtt_s": rtt_s, "loss": 0.0})
    ]
    write_part(tmp_path, "one", rows)
    given = ("--samples", str(tmp_path), "--from", "S", "--to", "D", "--via", "K", "--json")
    assert run([*PLAN, *given]) == 0
    tree = json.loads(capsys.readouterr().out)
    assert tree["rtt_s"] == 0.05
    assert ["K"] in [one.get("via") for one in tree["transports"]]
    assert tree["transports"][0]["verdict"] == "timely"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((), "--rtt is missing"),
        (("--rtt", "50 ms"), "--bandwidth is missing"),
        ((*PATH, "--loss", "1"), "--loss must be a part"),
        ((*PATH, "--from", "S"), "needs --samples"),
        ((*PATH, "--via", "K=60ms"), "must sum to less than --rtt"),
        ((*PATH, "--via", "K", "--via", "K"), "must begin with a relay's name, each relay once"),
        (("--samples", "nowhere"), "needs --from HOST and --to HOST"),
        (("--samples", "nowhere", "--from", "S", "--to", "D"), "no such folder"),
        (("--samples", "x", "--rtt", "1 s"), "leave one of them out"),
    ],
)
def test_bad_input_is_refused_in_words(given, message, capsys):
    assert run([*PLAN, *given]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("rate", ["0", "-1 Mbit/s", "fast", "nan"])
def test_rates_that_are_none_are_refused(rate, capsys):
    assert run(["feed", "plan", "--rate", rate, *PATH]) == 2
    assert "--rate" in capsys.readouterr().err


def carry() -> int:
    """Carry a feed."""
    return 0


class Brought:
    """A registry in which a wing has one command."""

    own = ("carry",)

    def get(self, name):
        return CommandSpec(name, carry)


def names_of_feed():
    return [
        command.name or command.callback.__name__ for command in feed_group().registered_commands
    ]


def test_a_wing_brings_commands_of_feeds_by_registration(monkeypatch):
    assert names_of_feed() == ["plan", *FEED_COMMANDS.own]
    monkeypatch.setattr("datacollect.commands.feed.FEED_COMMANDS", Brought())
    assert names_of_feed() == ["plan", "carry"]
