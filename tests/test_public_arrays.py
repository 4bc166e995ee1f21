"""Whatever takes numbers in Python takes them by one door: labels, durations, what is no number."""

from __future__ import annotations

import inspect
import re
from collections import deque
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from instances.host_profiles import profile
from judges.public import callables, public_classes
from scipy import sparse

import datacollect as dc

# What counts: numbers, with units or without, alone or several.
NUMBERS = re.compile(
    r"\b(float|int|InUnitsLike|ArrayLike|NDArray|(Int|Float|Index)Array|Seconds|Bytes|WholeBytes"
    r"|BytesPerS|Price)\b"
)
# Results, which nobody builds by hand; what is said of a problem's parts.
RESULTS = {
    *("Advisory", "Comparison", "Explanation", "Parcel", "Pulled", "Report", "Run", "Schedule"),
    "Certainty",
    "Verdicts",
}

HOSTS = ("S", "K", "D")
RATES = [[0, 5.0, 7.0], [0, 0, 6.0], [0, 0, 0]]
PROBLEM = dc.Problem.from_matrix(HOSTS, RATES, [20, 10, 0], "D")
PRICED = PROBLEM.replace(price_per_gb=[1.0, 2.0, 3.0])
PLAN = dc.direct(PROBLEM)
SAMPLES = pd.DataFrame(
    {"from": "S", "to": "D", "time_s": [1.0, 3600.0], "bandwidth_bytes_per_s": [1e6, 2.5e6]}
)
SAMPLES = SAMPLES.assign(bytes=[1, 2], duration_s=[1.0, 1.0], streams=[1, 1])
LINKS = pd.DataFrame({"from": ["S"], "to": ["D"], "bandwidth_bytes_per_s": [5.0]})
AXIS = {"name": "limit", "key": "run.time_limit_s", "values": [60, 90]}
SCENARIO = {
    "topology": {"kind": "line", "n_nodes": 2, "rate_bytes_per_s": 1e5},
    "hosts": {
        "destination": {"at": "N0"},
        "sources": [{"at": "N1", "backlog_bytes": 1_000_000}],
    },
}
EXPERIMENT = dc.Experiment.from_dict({"engine": "fluid", "axes": [AXIS]}, scenario=SCENARIO)
COLLECTION = {
    "format": "datacollect-collection/1",
    "destination": "D",
    "key": "no.key",
    "agents": {"S": {"url": "https://127.0.0.1:1", "fingerprint": f"sha256:{0:064}"}},
    "links": [{"from": "S", "to": "D", "bandwidth_bytes_per_s": 5.0}],
}
START = dict.fromkeys(("start",), "2026-11-22T20:00:00+01:00")


def _host(**given):
    hosts = [dc.Host("S", **{"latitude": 1.0, "longitude": 1.0} | given), dc.Host("D")]
    return dc.Problem.from_hosts(hosts, [dc.Link("S", "D", 5.0)], "D")


def _link(**given):
    link = dc.Link("S", "D", **{"bandwidth_bytes_per_s": 5.0, "competitors": 1.0} | given)
    return dc.Problem.from_hosts([dc.Host("S"), dc.Host("D")], [link], "D")


def _matrix(**given):
    every = {"bandwidth_bytes_per_s": RATES, "backlog_bytes": [20, 10, 0]} | given
    return dc.Problem.from_matrix(HOSTS, destination="D", **every)


def _transfers(**given):
    columns = {key: [0] for key in ("route", "hop", "offset_bytes")}
    times = {"start_s": [0.0], "finish_s": [1.0], "n_bytes": [1]}
    return dc.Transfers.build(**columns | times | {key: [x] for key, x in given.items()})


def _new_links(**given):
    columns = {"link_from": [0], "link_to": [2], "bandwidth_bytes_per_s": [[5.0]]}
    every = columns | {"price_per_gb": [0.0], "periods_s": [0.0]}
    return dc.NewLinks(**every | {key: [x] for key, x in given.items()})


def _bottleneck(**given):
    pairs = [("S", "D")]
    return dc.SharedBottleneck("w", **{"bandwidth_bytes_per_s": 5.0, "links": pairs} | given)


def _held(**given):
    return dc.Held("D", "S", **{"offset_bytes": 0, "n_bytes": 1} | given)


def _raw(**given):
    return dc.Problem(**{key: getattr(PRICED, key) for key in _fields()} | given)


def _fields():
    return [name for name in inspect.signature(dc.Problem).parameters if hasattr(PRICED, name)]


def _table(backlog_bytes=20, links=5.0, hosts=0.0, **given):
    table = LINKS.assign(bandwidth_bytes_per_s=pd.Series([links], dtype=object))
    limits = pd.DataFrame({"release_s": pd.Series([hosts, 0.0], ["S", "D"], dtype=object)})
    return dc.Problem.from_dataframe(table, {"S": backlog_bytes}, "D", hosts=limits, **given)


def _graph(backlog):
    return dc.Problem.from_networkx(PROBLEM.to_networkx(), backlog={"S": backlog})


def _estimate(samples=5.0, **given):
    return dc.estimate(SAMPLES.assign(bandwidth_bytes_per_s=[samples, 5.0]), **given)


def _predicted(does):
    """Return what calls a method of a profile; a window and a round trip belong together."""

    def call(**given):
        pair = {"window_bytes", "rtt_s"} & given.keys()
        other = {"window_bytes": 1.0, "rtt_s": 1.0} if pair else {}
        return getattr(profile(), does)(**other | given)

    return call


def _sweep(**given):
    return dc.sweep(EXPERIMENT, "unused", **given)


# Each public function and class that takes numbers, called with one of its arguments.
CALLS = {
    "Experiment.scenario_of": lambda seed: EXPERIMENT.scenario_of(["60"], [], seed),
    "Experiment.with_probe_scale": EXPERIMENT.with_probe_scale,
    "Experiment.with_scale": EXPERIMENT.with_scale,
    "Experiment.with_seeds": EXPERIMENT.with_seeds,
    "Held": _held,
    "Host": _host,
    "HostProfile.receives": _predicted("receives"),
    "HostProfile.relays": _predicted("relays"),
    "HostProfile.sends": _predicted("sends"),
    "Link": _link,
    "NewLinks": _new_links,
    "NewLinks.from_names": lambda periods_s: dc.NewLinks.from_names(
        PROBLEM, {("S", "D"): [5.0, 5.0]}, periods_s=[0, periods_s]
    ),
    "Problem": _raw,
    "Problem.from_dataframe": _table,
    "Problem.from_hosts": lambda periods_s: dc.Problem.from_hosts(
        [dc.Host("S"), dc.Host("D")], [dc.Link("S", "D", 5.0)], "D", periods_s=[0, periods_s]
    ),
    "Problem.from_matrix": _matrix,
    "Problem.from_networkx": _graph,
    "Problem.link_indices": lambda link_from=0, link_to=2: PROBLEM.link_indices(link_from, link_to),
    "Problem.links_out_of": lambda hosts: PROBLEM.links_out_of([hosts]),
    "Problem.replace": PRICED.replace,
    "Problem.until": PROBLEM.until,
    "Problem.with_links": lambda links: PROBLEM.with_links([links]),
    "Progress": dc.Progress,
    "Progress.from_schedule": lambda at_s: dc.Progress.from_schedule(PROBLEM, PLAN, at_s),
    "Schedule.replace": PLAN.replace,
    "SharedBottleneck": _bottleneck,
    "Transfers": lambda **given: dc.Transfers(
        **{k: getattr(PLAN.columns, k)[:1] for k in inspect.signature(dc.Transfers).parameters}
        | {key: [x] for key, x in given.items()}
    ),
    "Transfers.build": _transfers,
    "audit_event": lambda workers: dc.audit_event("event.toml", verdicts="v", workers=workers),
    "best_path": lambda **given: dc.best_path(PROBLEM, **given),
    "certainty": lambda **given: dc.certainty(PROBLEM, PLAN, SAMPLES, **given),
    "compare": lambda **given: dc.compare(PROBLEM, **given),
    "coordinated": lambda **given: dc.coordinated(PROBLEM, **given),
    "direct": lambda **given: dc.direct(PROBLEM, **{"at_a_time": 1} | given),
    "estimate": _estimate,
    "front": lambda slack: dc.front(PRICED, slack=[0.0, slack]),
    "measure_cycle": lambda patience_s: dc.measure_cycle("h.toml", "f", patience_s=patience_s),
    "perturb": lambda factor: dc.perturb(PROBLEM, factor),
    "perturb_random": lambda sigma=0.1, seed=1: dc.perturb_random(PROBLEM, sigma, seed=seed),
    "pull": lambda slot_s: dc.pull(COLLECTION, "unused", slot_s=slot_s),
    "replan": lambda **given: dc.replan(PROBLEM, PLAN, dc.Progress(0.0), **given),
    "simulate": lambda **given: dc.simulate(SCENARIO, engine="fluid", **given),
    "sweep": _sweep,
    "time_expanded_graph": lambda slot_s=1.0, n_slots=2: dc.time_expanded_graph(
        PROBLEM, slot_s, n_slots
    ),
    "tunnel": lambda buffer_bytes: dc.tunnel(COLLECTION, "S:ssh", buffer_bytes=buffer_bytes),
}
# Arguments of choices, of which numbers are one way to say them (`perturbed` refuses others).
OTHERWISE = {("perturb", "links"), ("perturb_random", "links")}
# Files are read before anything else.
AFTER_FILES = {("audit_event", "workers"), ("measure_cycle", "patience_s")}
# Tables, of which a column holds the number.
TABLES = {("Problem.from_dataframe", "links"), ("Problem.from_dataframe", "hosts")}


def takers():
    """Return the arguments that take numbers of all public functions, methods and classes."""
    every = callables() | {
        name: kind
        for name, kind in public_classes().items()
        if not issubclass(kind, BaseException | Warning) and name not in RESULTS
    }
    found = {}
    for name, function in every.items():
        for argument, parameter in inspect.signature(function).parameters.items():
            kind = re.sub(r"Callable\[.*", "", str(parameter.annotation))
            if parameter.kind is parameter.VAR_KEYWORD and "Unpack" in kind:
                found.setdefault(name, []).extend(_typed(re.search(r"Unpack\[(\w+)\]", kind)[1]))
            elif NUMBERS.search(kind) or (name, argument) in TABLES | {("estimate", "samples")}:
                found.setdefault(name, []).append(argument)
    return found


def _typed(name):
    """Return the keys of a typed mapping of arguments that take numbers."""
    from datacollect.problem.contents import ProblemChanges
    from datacollect.schedule.data.contents import ScheduleChanges
    from datacollect.schedule.data.transfers import TransferColumns

    tables = {t.__name__: t for t in (ProblemChanges, ScheduleChanges, TransferColumns)}
    kinds = {key: str(kind) for key, kind in tables[name].__annotations__.items()}
    return [key for key, kind in kinds.items() if NUMBERS.search(kind)]


CASES = [
    (function, argument)
    for function, arguments in takers().items()
    for argument in arguments
    if (function, argument) not in OTHERWISE | AFTER_FILES
]
# How messages name what stands in a table, a graph or a scenario.
IN_OTHER_WORDS = {
    ("Problem.from_dataframe", "links"): "bandwidth_bytes_per_s",
    ("Problem.from_dataframe", "hosts"): "release_s",
    ("Problem.from_networkx", "backlog"): "backlog_bytes",
    ("estimate", "samples"): "bandwidth_bytes_per_s",
    ("Experiment.with_probe_scale", "scale"): "probe_scale",
}
NO_NUMBERS = {
    "truth value": True,
    "numpy's truth value": np.True_,
    "complex": 1 + 0j,
    "masked": np.ma.masked,
    "date": datetime(2020, 1, 1, tzinfo=UTC),
    "months": np.timedelta64(1, "M"),
}


def test_every_taker_of_numbers_is_called_here():
    assert set(takers()) == set(CALLS)
    assert len(CASES) > 90


@pytest.mark.parametrize(("function", "argument"), CASES)
def test_what_is_no_number_is_refused_in_place_wherever_numbers_are_taken(function, argument):
    named = IN_OTHER_WORDS.get((function, argument), argument)
    for what, value in NO_NUMBERS.items():
        # Instants of measurements count from 1970: there dates are known.
        if what == "date" and argument in ("measured_s", "now_s"):
            continue
        with pytest.raises(dc.ProblemError) as refused:
            CALLS[function](**{argument: value})
        assert re.search(rf"\b{named}\b.* must be .*, got ", str(refused.value)), what


# Labels -------------------------------------------------------------------------------------

ORDERS = ([0, 1, 2], [2, 0, 1], [1, 2, 0])


def _containers(numbers):
    """Return the same numbers of hosts S, K and D in many containers."""
    names = list(HOSTS)
    yield list(numbers)
    yield tuple(numbers)
    yield deque(numbers)
    yield (x for x in numbers)
    yield np.array(numbers)
    yield np.array(numbers, dtype=object)
    yield np.array(numbers, dtype=np.longdouble)
    yield np.ma.array(numbers)
    yield pd.array(numbers)
    yield pd.Index(numbers)
    yield pd.Categorical(numbers)
    yield pa.array(numbers)
    yield pa.chunked_array([numbers])
    yield pa.array(numbers).dictionary_encode()
    yield [Decimal(x) for x in numbers]
    yield [Fraction(x) for x in numbers]
    yield pd.Series(numbers)
    yield pd.Series(numbers, dtype="Int64")
    yield pd.Series(numbers, dtype=pd.ArrowDtype(pa.int64()))
    for order in ORDERS:
        labels, data = [names[i] for i in order], [numbers[i] for i in order]
        yield dict(zip(labels, data, strict=True))
        for index in (labels, pd.CategoricalIndex(labels), pd.Index(pa.array(labels).to_pandas())):
            yield pd.Series(data, index)
            yield pd.Series(data, index, dtype=object)
            yield pd.Series(data, index, dtype="category")


@pytest.mark.slow
def test_numbers_of_hosts_are_the_same_in_every_container():
    for given in _containers([20, 10, 0]):
        assert _matrix(backlog_bytes=given).backlog_bytes.tolist() == [20, 10, 0]
    for given in _containers([20, 10, 0]):
        assert PROBLEM.replace(backlog_bytes=given).backlog_bytes.tolist() == [20, 10, 0]
    for given in _containers([3, 1, 2]):
        assert _matrix(release_s=given).release_s.tolist() == [3.0, 1.0, 2.0]


def _matrices():
    frame = pd.DataFrame(RATES)
    named = pd.DataFrame(RATES, HOSTS, HOSTS)
    yield RATES
    yield np.array(RATES)
    yield frame
    yield sparse.csr_matrix(np.array(RATES))
    yield sparse.coo_array(np.array(RATES))
    yield pa.table({name: named[name].to_numpy() for name in HOSTS})
    for down in ORDERS:
        for across in ORDERS:
            shuffled = named.iloc[down, across]
            yield shuffled
            yield shuffled.astype(pd.SparseDtype(float, 0.0))
            yield {name: shuffled.loc[name] for name in shuffled.index}
            yield {name: dict(row) for name, row in shuffled.iterrows()}


@pytest.mark.slow
def test_matrices_of_rates_are_the_same_in_every_container():
    for given in _matrices():
        assert _matrix(bandwidth_bytes_per_s=given) == PROBLEM


def test_rows_that_are_not_labelled_do_not_follow_columns_that_are():
    """Who reorders the columns has perhaps reordered the rows: nobody knows."""
    shuffled = pd.DataFrame(RATES, columns=HOSTS)[["D", "K", "S"]]
    with pytest.raises(dc.ProblemError, match="so index must have names, too; label both"):
        _matrix(bandwidth_bytes_per_s=shuffled)
    shuffled.index = list(HOSTS)  # the remedy
    assert _matrix(bandwidth_bytes_per_s=shuffled) == PROBLEM


def test_labels_of_links_are_their_ends():
    pairs = pd.MultiIndex.from_tuples([("K", "D"), ("S", "D"), ("S", "K")])
    rates = pd.Series([6.0, 7.0, 5.0], pairs)
    assert PROBLEM.replace(bandwidth_bytes_per_s=rates) == PROBLEM
    assert PROBLEM.replace(price_per_gb=rates).price_per_gb.tolist() == [5.0, 7.0, 6.0]
    assert dc.perturb(PROBLEM, pd.Series([3.0, 2.0], pairs[:2]), [("S", "D"), ("K", "D")]) == (
        PROBLEM.replace(bandwidth_bytes_per_s=[5.0, 14.0, 18.0])
    )


def test_limits_by_period_are_labelled_by_hosts():
    rows = pd.DataFrame({"D": [1.0, 2.0], "S": [3.0, 4.0], "K": [5.0, 6.0]})
    rates = [RATES, RATES]
    found = _matrix(bandwidth_bytes_per_s=rates, uplink_bytes_per_s=rows, periods_s=[0, 9])
    assert found.uplink_bytes_per_s.tolist() == [[3.0, 5.0, 1.0], [4.0, 6.0, 2.0]]
    found = _matrix(
        bandwidth_bytes_per_s=[pd.DataFrame(RATES, HOSTS, HOSTS).loc[list("DSK"), list("KDS")]] * 2,
        uplink_bytes_per_s=[rows.loc[0], rows.loc[1]],
        periods_s=[0, 9],
    )
    assert found.uplink_bytes_per_s.tolist() == [[3.0, 5.0, 1.0], [4.0, 6.0, 2.0]]
    assert (found.bandwidth_bytes_per_s == [[5.0, 7.0, 6.0]] * 2).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (pd.Series([20, 10, 0], [1, 2, 3]), r"labels must be the hosts' names, or 0 … 2 by place"),
        (pd.Series([20, 10, 0], [2, 1, 0]), r"labels must be the hosts' names, or 0 … 2 by place"),
        (pd.Series([20, 10, 0], ["S", "K", "d"]), r"got 'd'; did you mean 'D'\?"),
        (pd.Series([20, 10, 0], ["S", "K", "S"]), "host 'S' given twice; keep one"),
        (pd.Series([20, 10], ["S", "K"]), "no number for host 'D'; add it"),
        ({"S": 20, "K": 10}, "no number for host 'D'; add it"),
        ({20, 10, 0}, "must be in an order, got a set; give a list"),
        (pd.Series([True, False, False], HOSTS), "host 'S': backlog_bytes must be a number, got T"),
        (np.ma.array([20, 10, 0], mask=[0, 1, 0]), r"backlog_bytes\[1\] must be .* a masked value"),
        ([20, 10j, 0], r"backlog_bytes\[1\] must be a number, got 10j; take its real part"),
        (
            pd.Series([20, "10 MBs", 0], HOSTS),
            "host 'K': backlog_bytes must be a .* '10 MBs'",
        ),
        (
            np.array([20, 10, 0], "timedelta64[s]"),
            r"backlog_bytes\[0\] .* the duration 20 ",
        ),
        ([[20, 10], [0]], r"backlog_bytes must have one number per host \(3\), got shape"),
    ],
)
def test_what_fits_no_name_is_refused_in_place(given, message):
    for taker in (_matrix, PROBLEM.replace):
        with pytest.raises(dc.ProblemError, match=message):
            taker(backlog_bytes=given)


def test_columns_given_twice_are_refused():
    twice = pd.DataFrame(RATES, HOSTS, ["S", "K", "S"])
    with pytest.raises(dc.ProblemError, match="bandwidth_bytes_per_s: column 'S' given twice"):
        _matrix(bandwidth_bytes_per_s=twice)
    doubled = pd.concat([SAMPLES, SAMPLES["from"]], axis=1)
    with pytest.raises(dc.ProblemError, match="samples: column from given twice; keep one"):
        dc.estimate(doubled)
    hosts = pd.DataFrame([[1.0, 2.0], [1.0, 2.0]], ["S", "D"], ["release_s", "release_s"])
    with pytest.raises(dc.ProblemError, match="hosts: column release_s given twice; keep one"):
        dc.Problem.from_dataframe(LINKS, {}, "D", hosts=hosts)


# Times --------------------------------------------------------------------------------------


def _durations():
    yield np.array([5000, 0, 1500], "timedelta64[ms]")
    yield np.array([5000, 0, 1500], "timedelta64[ms]").astype("timedelta64[ns]")
    yield pd.Series(pd.to_timedelta(["5s", "0s", "1.5s"]))
    yield pd.Series(pd.to_timedelta(["1.5s", "5s", "0s"]), ["D", "S", "K"])
    yield pd.to_timedelta(["5s", "0s", "1.5s"])
    yield [timedelta(seconds=5), 0, "1500 ms"]
    yield pa.array([5000, 0, 1500], pa.duration("ms"))
    yield pd.Series([5000, 0, 1500], dtype=pd.ArrowDtype(pa.duration("ms")))
    yield {"K": 0.0, "D": np.timedelta64(1500, "ms"), "S": pd.Timedelta("5s")}


def test_durations_are_seconds():
    for given in _durations():
        assert _matrix(release_s=given).release_s.tolist() == [5.0, 0.0, 1.5]
    assert dc.coordinated(PROBLEM, slot_s=timedelta(minutes=1)).slot_s == 60.0
    by_hand = SAMPLES.assign(time_s=pd.to_timedelta(SAMPLES["time_s"], unit="s"))
    assert dc.estimate(by_hand).equals(dc.estimate(SAMPLES))


def test_dates_are_taken_where_a_start_is_known():
    """An hour after a start at 20:00 in Zurich, 19:00 UTC."""
    at = datetime(2026, 11, 22, 20, tzinfo=UTC)
    hosts, links = [dc.Host("S", 5, release_s=at), dc.Host("D")], [dc.Link("S", "D", 5.0)]
    problem = dc.Problem.from_hosts(hosts, links, "D", **START)
    assert problem.release_s.tolist() == [3600.0, 0.0]
    both = [pd.Timestamp("2026-11-22T22:00+01:00"), np.datetime64("2026-11-22T20:00:30")]
    assert problem.replace(release_s=both).release_s.tolist() == [7200.0, 30.0]
    assert problem.until(at) == problem.until(3600.0)
    assert dc.coordinated(problem, deadline_s=pd.Timestamp("2026-11-22T22:00Z")).deadline_s == 10800
    with pytest.raises(dc.ProblemError, match="dates need one, and none is known here"):
        PROBLEM.replace(release_s=[at, at, at])
    with pytest.raises(dc.ProblemError, match=r"release_s\[1\] must not lie before the start"):
        problem.replace(release_s=[at, datetime(2026, 11, 22, tzinfo=UTC)])


def test_dates_of_samples_count_from_1970():
    dates = pd.to_datetime(["2024-05-01T12:00", "2024-05-02T12:00"])
    for times in (
        dates,
        dates.tz_localize("UTC"),
        dates.tz_localize("UTC").tz_convert("Asia/Tokyo"),
    ):
        found = dc.estimate(SAMPLES.assign(time_s=times))
        assert found["newest_s"].tolist() == [1_714_651_200.0]


# Names --------------------------------------------------------------------------------------


def _names():
    yield HOSTS
    yield list(HOSTS)
    yield deque(HOSTS)
    yield (name for name in HOSTS)
    yield dict.fromkeys(HOSTS)
    yield np.array(HOSTS)
    yield np.array(HOSTS, dtype=object)
    yield np.array(HOSTS, dtype=np.dtypes.StringDType())
    yield pd.Index(HOSTS)
    yield pd.Series(HOSTS, [7, 8, 9])
    yield pd.Series(HOSTS, dtype="category")
    yield pd.Series(HOSTS, dtype=pd.ArrowDtype(pa.string()))
    yield pd.CategoricalIndex(HOSTS)
    yield pd.array(list(HOSTS), dtype="string")
    yield pa.array(HOSTS)
    yield pa.array(HOSTS).dictionary_encode()
    yield pa.chunked_array([list(HOSTS)])


def test_any_container_of_texts_is_names():
    for names in _names():
        assert dc.Problem.from_matrix(names, RATES, [20, 10, 0], "D") == PROBLEM
    for names in _names():
        assert PROBLEM.replace(names=names).names == HOSTS
    for names in _names():
        assert dc.Progress(0.0, lost_hosts=names).lost_hosts == HOSTS
    for name in (np.str_("D"), pa.scalar("D")):
        assert dc.Problem.from_matrix(HOSTS, RATES, [20, 10, 0], name) == PROBLEM


@pytest.mark.parametrize("names", ["SKD", {"S", "K", "D"}, 3, pd.DataFrame({"a": HOSTS})])
def test_what_is_no_list_of_names_is_refused(names):
    with pytest.raises(dc.ProblemError, match=r"names must be (a list of names|in an order), got"):
        dc.Problem.from_matrix(names, RATES, [20, 10, 0], "D")


@pytest.mark.slow
@pytest.mark.parametrize(
    "dtype",
    [
        *("category", "string", object, pd.ArrowDtype(pa.string())),
        pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string())),
    ],
    ids=str,
)
def test_tables_may_hold_names_in_any_way(dtype):
    kinds = {"from": dtype, "to": dtype}
    typed = LINKS.astype(kinds)
    assert dc.Problem.from_dataframe(typed, {"S": 5}, "D") == dc.Problem.from_dataframe(
        LINKS, {"S": 5}, "D"
    )
    assert dc.estimate(SAMPLES.astype(kinds)).equals(dc.estimate(SAMPLES))
    assert dc.estimate(pa.Table.from_pandas(SAMPLES)).equals(dc.estimate(SAMPLES))


def test_a_problem_that_was_measured_in_another_zone_comes_back():
    """What to_dict writes in UTC is one instant in any zone."""
    tree = {
        "destination": "D",
        **START,
        "timezone": "Europe/Zurich",
        "measured_at": "2026-11-01T00:00:00Z",
        "hosts": {"S": {"backlog_bytes": 10}, "D": {}},
        "links": [{"from": "S", "to": "D", "bandwidth_bytes_per_s": 5.0}],
    }
    problem = dc.Problem.from_dict(tree)
    again = dc.Problem.from_dict(problem.to_dict())
    assert (again, again.measured_s) == (problem, 1_793_491_200.0)
    assert dc.Problem.from_dict(tree | {"measured_at": "2026-11-01T01:00"}).measured_s == (
        problem.measured_s
    )


def test_newest_samples_of_links_are_in_seconds_and_may_be_dates():
    dated = LINKS.assign(newest_s=pd.to_datetime(["2024-05-01T12:00"]))
    assert dc.Problem.from_dataframe(dated, {}, "D").measured_s == 1_714_564_800.0
    with pytest.raises(dc.ProblemError, match=r"row 0: newest_s .* divide milliseconds by 1000"):
        dc.Problem.from_dataframe(LINKS.assign(newest_s=1_714_564_800_000), {}, "D")
