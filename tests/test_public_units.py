"""Wherever Python takes an amount, a time or a rate, it takes a text with its unit, too."""

from __future__ import annotations

import inspect
import re
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from instances.agents import KEY, running, write_agent
from instances.host_profiles import profile
from judges.public import callables, public_classes

import datacollect as dc
from datacollect.measuring.plan.hosts_file import HostsFile
from datacollect.net.keys import PrivateKey, write_private_key
from datacollect.transfer.tunnel.tunnel import opener_of

UNIT = re.compile(r"_(bytes|s|bytes_per_s|per_gb)$")

# What says its numbers' unit, and holds no texts.
NO_TEXTS = {
    "Problem": "columns of numbers, which the `from_...` functions fill from texts",
    "Transfers": "columns of numbers, which `Transfers.build` fills from texts",
    "NewLinks": "columns of numbers, which `NewLinks.from_names` fills from texts",
    "Schedule": "what methods and files say; `Schedule.replace` takes texts",
    "Parcel": "what a problem says of itself",
    "Certainty": "what `certainty` returns",
    "Advisory": "what `advise` returns",
    "Comparison": "what `compare` returns",
    "Explanation": "what `explain` returns",
    "Pulled": "what `pull` returns",
    "Run": "what `simulate` returns",
}

PROBLEM = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
PLAN = dc.direct(PROBLEM)
DAILY = dc.Problem.from_dict(
    {
        "destination": "D",
        "start": "2026-11-22T20:00+01:00",
        "daily_periods": ["08:00", "18:00"],
        "hosts": {"S": {"backlog_bytes": 10}, "D": {}},
        "links": [{"from": "S", "to": "D", "bandwidth_bytes_per_s": [1.0, 2.0]}],
    }
)
PROFILE = profile()
SCENARIO = {
    "topology": {"kind": "line", "n_nodes": 2, "rate_bytes_per_s": 1e5},
    "hosts": {
        "destination": {"at": "N0"},
        "sources": [{"at": "N1", "backlog_bytes": 1_000_000}],
    },
}
SAMPLES = pd.DataFrame(
    {"from": "S", "to": "D", "time_s": [0, 3600], "bandwidth_bytes_per_s": [1e6, 2.5e6]}
)
LINKS = pd.DataFrame({"from": ["S"], "to": ["D"], "bandwidth_bytes_per_s": [5.0]})
PERIODS = LINKS.assign(period=0), LINKS.assign(period=1)


def _cycle(**given):
    """Two hosts that are not there: what became of their tests."""
    with tempfile.TemporaryDirectory() as folder:
        write_private_key(f"{folder}/operator.key", PrivateKey(bytes(32)))
        hosts = {
            name: {"url": f"https://127.0.0.1:{i + 1}", "fingerprint": f"sha256:{i:064}"}
            for i, name in enumerate("DS")
        }
        tree = {"format": "datacollect-hosts/1", "destination": "D", "key": "operator.key"}
        file = HostsFile.from_dict(tree | {"hosts": hosts}, folder)
        done = dc.measure_cycle(file, folder, tools=["ping"], **given)
        return done.tests, done.failed


def _of_host(**given):
    """A host; what is made there is made at a rate, of a backlog."""
    made = {"produces_bytes_per_s": 1.0} if "made_bytes" in given else {}
    source = dc.Host("S", **{"backlog_bytes": 10**6} | made | given)
    return dc.Problem.from_hosts([source, dc.Host("D")], [dc.Link("S", "D", 5.0)], "D")


def _of_link(**given):
    link = dc.Link("S", "D", **{"bandwidth_bytes_per_s": 1000.0, "competitors": 0.0} | given)
    return dc.Problem.from_hosts([dc.Host("S"), dc.Host("D")], [link], "D")


def _from_hosts(periods_s):
    return dc.Problem.from_hosts(
        [dc.Host("S"), dc.Host("D")], [dc.Link("S", "D", [1.0, 2.0])], "D", periods_s=periods_s
    )


def _from_matrix(**given):
    rates = {"bandwidth_bytes_per_s": [[0, 1000.0], [0, 0]], "backlog_bytes": [10, 0]} | given
    if "periods_s" in given:
        rates["bandwidth_bytes_per_s"] = [[[0, 1.0], [0, 0]], [[0, 2.0], [0, 0]]]
    more = {} if "periods_s" in given else {"competitors": 0.0}
    return dc.Problem.from_matrix(["S", "D"], destination="D", **more | rates)


def _from_dataframe(**given):
    links = pd.concat(PERIODS) if "periods_s" in given else LINKS
    return dc.Problem.from_dataframe(links, **{"backlog_bytes": {}, "destination": "D"} | given)


def _replaced(**given):
    constant = PROBLEM.replace(bandwidth_bytes_per_s=[1000.0], competitors=[0.0])
    if "periods_s" in given:
        given["bandwidth_bytes_per_s"] = [[1.0], [2.0]]
        constant = PROBLEM
    return constant.replace(**given)


def _transfers(**given):
    columns = {"offset_bytes": [0], "n_bytes": [5], "start_s": [0.0], "finish_s": [9e9]}
    return dc.Transfers.build(route=[0], hop=[0], **columns | given)


def _graph(slot_s):
    graph = dc.time_expanded_graph(PROBLEM, slot_s, 2)
    return graph.slot_s, graph.capacity_bytes.tolist()


def _new_links(periods_s):
    new = dc.NewLinks.from_names(PROBLEM, {("S", "D"): [1.0, 2.0]}, periods_s=periods_s)
    return new.periods_s.tolist()


def _simulated(time_limit_s):
    return dc.simulate(SCENARIO, engine="fluid", time_limit_s=time_limit_s).collected_bytes


def _tunnel(**given):
    """What is asked for; nobody is connected to."""
    with tempfile.TemporaryDirectory() as folder:
        write_private_key(f"{folder}/collector.key", PrivateKey(bytes(32)))
        tree = {
            "format": "datacollect-collection/1",
            "destination": "D",
            "key": f"{folder}/collector.key",
            "agents": {"S1": {"url": "https://127.0.0.1:1", "fingerprint": f"sha256:{0:064}"}},
        }
        return opener_of(tree, "S1:ssh", **given)._buffer_bytes


def _predicted(does):
    """Return what calls a method of a profile; a window and a round trip belong together."""

    def call(**given):
        pair = {"window_bytes", "rtt_s"} & given.keys()
        other = {"window_bytes": 10**6, "rtt_s": 0.1} if pair else {}
        return getattr(PROFILE, does)(**other | given)

    return call


def _pull(slot_s):
    """Plan a pull of a second's bytes, which take a whole slot, from an agent in a thread."""
    told = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = write_agent(folder, "S", serve="data")
        (folder / "data/file").write_bytes(bytes(10**6))
        write_private_key(folder / "collector.key", KEY)
        with running(source) as each:
            agent = {"url": each.agent.url, "fingerprint": each.agent.fingerprint}
            tree = {
                "format": "datacollect-collection/1",
                "destination": "D",
                "key": str(folder / "collector.key"),
                "agents": {"S": agent},
                "links": [{"from": "S", "to": "D", "bandwidth_bytes_per_s": 1e6}],
            }
            dc.pull(tree, folder / "into", plan_only=True, slot_s=slot_s, log=told.append)
    return [record["makespan_s"] for record in told if record["what"] == "planned"]


# Each public function and class with such arguments: what comes of them.
CALLS = {
    "Held": lambda **given: dc.Held("D", "S", **{"offset_bytes": 0, "n_bytes": 1} | given),
    "Host": _of_host,
    "HostProfile.receives": _predicted("receives"),
    "HostProfile.relays": _predicted("relays"),
    "HostProfile.sends": _predicted("sends"),
    "Link": _of_link,
    "NewLinks.from_names": _new_links,
    "Problem.from_dataframe": _from_dataframe,
    "Problem.from_hosts": _from_hosts,
    "Problem.from_matrix": _from_matrix,
    "Problem.replace": _replaced,
    "Problem.until": DAILY.until,
    "Progress": lambda at_s: dc.Progress(at_s).at_s,
    "Progress.from_schedule": lambda at_s: dc.Progress.from_schedule(PROBLEM, PLAN, at_s).held,
    "Schedule.replace": PLAN.replace,
    "SharedBottleneck": lambda **given: dc.SharedBottleneck(
        "w", **{"bandwidth_bytes_per_s": 500.0, "links": [("S", "D")]} | given
    ),
    "Transfers.build": _transfers,
    "best_path": lambda **given: dc.best_path(PROBLEM, **given),
    "compare": lambda **given: dc.compare(PROBLEM, **given),
    "coordinated": lambda **given: dc.coordinated(PROBLEM, **given),
    "direct": lambda **given: dc.direct(PROBLEM, at_a_time=1, **given),
    "estimate": lambda **given: dc.estimate(SAMPLES, **given).to_dict("records"),
    "measure_cycle": _cycle,
    "pull": _pull,
    "replan": lambda **given: dc.replan(PROBLEM, PLAN, dc.Progress(0.0), **given),
    "simulate": _simulated,
    "time_expanded_graph": _graph,
    "tunnel": _tunnel,
}

# By the argument's name, or by its unit: a text, and the number that it says.
SAID = {
    "_bytes": ("1 kB", 1000),
    "_s": ("2 s", 2.0),
    "_bytes_per_s": ("8 kbit/s", 1000.0),
    "_per_gb": ("20 per TB", 0.02),
    "buffer_bytes": ("8 kB", 8000),
    "chunk_s": ("1 ms", 0.001),
    "time_limit_s": ("5 min", 300.0),
    "now_s": ("1 h 30 min", 5400.0),
    "periods_s": ([0, "1 h"], [0, 3600.0]),
    "until": ("10 d", 864_000.0),
}
COLUMNS = {
    "Problem.from_matrix": {
        "bandwidth_bytes_per_s": lambda x: [[0, x], [0, 0]],
        "backlog_bytes": lambda x: [x, 0],
    },
    "Problem.from_dataframe": {"backlog_bytes": lambda x: {"S": x}},
    "Problem.replace": {name: lambda x: [x] for name in ("bandwidth_bytes_per_s", "price_per_gb")}
    | {name: lambda x: [x] for name in ("per_connection_bytes_per_s", "capacity_bytes_per_s")}
    | {"backlog_bytes": lambda x: [x, 0]},
    "Transfers.build": dict.fromkeys(
        ("offset_bytes", "n_bytes", "start_s", "finish_s"), lambda x: [x]
    ),
}


def options_of(function):
    """Return the names of a function's arguments, those of its typed keywords among them."""
    found = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            kind = re.search(r"Unpack\[(\w+)\]", str(parameter.annotation))[1]
            rooms = [room for key, room in sys.modules.items() if key.startswith("datacollect")]
            tables = [vars(room)[kind] for room in rooms if kind in vars(room)]
            found += tables[0].__annotations__
        else:
            found.append(name)
    return found


def takers():
    """Return the arguments with units of all public functions, methods and classes."""
    every = callables() | {
        name: kind
        for name, kind in public_classes().items()
        if not issubclass(kind, BaseException | Warning)
    }
    found = {
        name: [x for x in options_of(function) if UNIT.search(x)]
        for name, function in every.items()
    }
    return {name: names for name, names in found.items() if names}


TAKERS = takers()
CASES = [(name, x) for name, names in TAKERS.items() if name not in NO_TEXTS for x in names]


def said(function, argument):
    """Return a text for an argument, and the number that it says, both as it takes them."""
    unit = UNIT.search(argument)[0]
    pair = SAID.get(argument, SAID[unit]) if function != "Problem.until" else SAID["until"]
    return tuple(map(shape_of(function, argument), pair))


def shape_of(function, argument):
    """Return what makes of one value all that an argument takes."""
    return COLUMNS.get(function, {}).get(argument, lambda value: value)


def test_every_taker_of_numbers_with_units_is_called_here_or_excused():
    assert set(TAKERS) == set(CALLS) | set(NO_TEXTS)
    assert not set(CALLS) & set(NO_TEXTS)
    assert len(CASES) > 50


@pytest.mark.slow
@pytest.mark.parametrize(("function", "argument"), CASES)
def test_a_text_says_what_a_number_says(function, argument):
    text, number = said(function, argument)
    of_text, of_number = (CALLS[function](**{argument: value}) for value in (text, number))
    assert of_text == of_number


@pytest.mark.parametrize(("function", "argument"), CASES)
def test_a_text_that_says_nothing_is_refused_in_place_with_a_remedy(function, argument):
    shape = shape_of(function, argument)
    nonsense = [0, "5 parsecs"] if argument == "periods_s" else shape("5 parsecs")
    with pytest.raises(dc.ProblemError) as refused:
        CALLS[function](**{argument: nonsense})
    message = str(refused.value)
    assert re.search(rf"\b{argument}(\[\d+\])* must be a (finite|whole) number of ", message)
    assert "got '5 parsecs'; 'parsecs' is no unit of " in message
    assert "write it like" in message


def test_deadlines_may_be_clock_times():
    start = dc.Problem.from_hosts(
        [dc.Host("S", 10), dc.Host("D")], [dc.Link("S", "D", 5.0)], "D", start="2026-11-22T20:00Z"
    )
    assert dc.coordinated(start, deadline_s="20:00:04") == dc.coordinated(start, deadline_s=4.0)
    with pytest.raises(dc.ProblemError, match="deadline_s must lie after the start"):
        dc.coordinated(start, deadline_s="2026-11-22T20:00Z")
    with pytest.raises(dc.ProblemError, match="deadline_s: a clock time needs start"):
        dc.coordinated(PROBLEM, deadline_s="20:00:04")


def test_samples_made_by_hand_may_hold_texts():
    texts = SAMPLES.assign(time_s=["0 s", "1 h"], bandwidth_bytes_per_s=["8 Mbit/s", 2.5e6])
    assert dc.estimate(texts).equals(dc.estimate(SAMPLES))
    whole = SAMPLES.assign(bytes=[1000, 2000], duration_s=[60.0, 3600.0])
    texts = SAMPLES.assign(bytes=["1 kB", 2000], duration_s=["1 min", "1 h"])
    assert dc.estimate(texts, "mean").equals(dc.estimate(whole, "mean"))
    with pytest.raises(dc.ProblemError, match="samples: time_s, row 0 must be a finite number"):
        dc.estimate(texts.assign(time_s="1 GB"))


@pytest.mark.slow
def test_slots_of_pulls_are_as_long_as_they_say():
    assert _pull("2 s") == [2.0]


def test_numbers_of_numpy_are_taken_as_they_are():
    assert dc.direct(PROBLEM, at_a_time=1, time_slot_s=np.float64(2.0)).turns.time_slot_s == 2.0
    assert dc.Held("D", "S", np.int64(3), 4).offset_bytes == 3
