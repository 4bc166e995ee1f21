"""Remedies about samples, and about tests of the network."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
from remedies.trying import Example, call, in_new_folder

import datacollect as dc
from datacollect.measurement.sample_store import write_part
from datacollect.measurement.series.day_and_night import day_and_night
from datacollect.measuring.commands.hosts import _require_destination
from datacollect.measuring.operator.flood_tests import flooded_host
from datacollect.measuring.operator.iperf3_tests import require_by_iperf3
from datacollect.measuring.operator.pings import PingSettings
from datacollect.measuring.operator.tcp_tests import TcpSettings
from datacollect.measuring.operator.traces import TraceSettings
from datacollect.measuring.plan.hosts_file import HostsFile
from datacollect.measuring.probes.pair_trains import capacity_by_train

NOON_S = 1_795_377_600.0
CSV = "from,to,time_s,bandwidth_mbit_per_s\na,b,0,8\n"
OF_STREAMS = "from,to,time_s,bandwidth_mbit_per_s,streams\na,b,0,8,1\na,b,1,64,8\na,b,2,64,8\n"
FINGERPRINT = "sha256:" + "ab" * 32
HOSTS = f"""format = "datacollect-hosts/1"
destination = "D"
KEY
[hosts.D]
iperf3 = "d:1"
[hosts.S]
url = "https://s:1"
fingerprint = "{FINGERPRINT}"
"""


def result(**more):
    """Return what iperf3 -J prints of a test from a to b at 8 Mbit/s."""
    total = {"seconds": 1.0, "bytes": 10**6, "bits_per_second": 8e6}
    start = {
        "connected": [{"local_host": "a", "remote_host": "b"}],
        "timestamp": {"timesecs": 1},
        "test_start": {"num_streams": 1, "reverse": 0},
    }
    return json.dumps({"start": start | more, "end": {"sum_received": total}})


def estimated(options="", file="s.txt", text=CSV, **more):
    def run():
        with in_new_folder(**more) as folder:
            (folder / file).write_text(text)
            return call(f"estimate {file} {options}")

    return run


def table(how="median", now_s=None, **columns):
    values = {"from": ["a"], "to": ["b"], "time_s": [0.0], "bandwidth_bytes_per_s": [5.0]}
    samples = pd.DataFrame(values | columns)
    return lambda: dc.estimate(samples, how=how, now_s=now_s)


def halves(rate):
    """Take the mean of day and night over two days, where one test has some rate."""
    rates = [rate, *[2.0] * 47]
    samples = pd.DataFrame(
        {
            "from": "a",
            "to": "b",
            "time_s": NOON_S + 3600.0 * np.arange(48),
            "bandwidth_bytes_per_s": rates,
        }
    )
    return lambda: day_and_night(samples[samples["bandwidth_bytes_per_s"] >= 0], "UTC")


def held_back(by):
    """Make a problem of a test that was held back, or was not, and return what is said."""

    def run():
        sample = {"from": "a", "to": "b", "time_s": 1.7e9, "tool": "tcp", "ended": "done"}
        sample |= {"bandwidth_bytes_per_s": 5.0, "streams": 1, "limited_by": by}
        with in_new_folder() as folder:
            (folder / "samples").mkdir()
            write_part(folder / "samples", "one", [sample])
            return call("measure problem samples --destination b")

    return run


def flooded(*durations_s):
    """Make a problem of a flood whose tests took so long, and return what is said."""

    def run():
        sample = {"from": "a", "time_s": 1.7e9, "ended": "done", "bandwidth_bytes_per_s": 5.0}
        said = json.dumps({"host": "a", "flood": "1"})
        alone = [sample | {"to": to, "tool": "tcp"} for to in "bc"]
        at_once = [
            sample | {"to": to, "tool": "flood", "settings": said, "duration_s": duration_s}
            for to, duration_s in zip("bc", durations_s, strict=True)
        ]
        with in_new_folder() as folder:
            (folder / "samples").mkdir()
            write_part(folder / "samples", "one", [*alone, *at_once])
            return call("measure problem samples --destination b")

    return run


def train(gap_s):
    """Measure a wire that takes 2.4 ms for each packet by pairs that left so far apart."""
    arrivals = [(2 * k + i, k * 10**9 + i * 2_400_000) for k in range(20) for i in (0, 1)]
    return lambda: capacity_by_train(1500, [gap_s] * 20, arrivals)


def hosts_of(key):
    def read():
        with in_new_folder(h_toml=HOSTS.replace("KEY", key)):
            return HostsFile.from_file("h.toml")

    return read


def by_iperf3(settings):
    return lambda: require_by_iperf3(settings)


EXAMPLES = [
    Example(
        "long before the others; measure it again, with more --bytes",
        flooded(1.0, 5.0),
        flooded(5.0, 5.0),
    ),
    Example(
        'which how = "mean" needs: all bytes over all seconds; add it',
        table("mean"),
        table("mean", bytes=[10], duration_s=[2.0]),
    ),
    Example('all seconds; add it, or use "median"', table("mean"), table("median")),
    Example(
        "drop samples of the future first",
        table(time_s=[10.0], now_s=5.0),
        table(time_s=[4.0], now_s=5.0),
    ),
    Example(
        "{}: address {} is not in names; add it, with --name {}=HOST",
        estimated("--name a=lyon", text=result()),
        estimated("--name a=lyon --name b=bern", text=result()),
    ),
    Example(
        "written with --json-stream; use iperf3 -J without it",
        estimated(text='{"event": "start", "data": {}}'),
        estimated(text=result()),
    ),
    Example(
        "is given twice, so its direction is unknown",
        estimated(text=result().replace('"end": {', '"end": {"sum_received": {}, ')),
        estimated(text=result()),
    ),
    Example(
        "is esmond's answer, which does not say {}; take what `esmond-ps-get",
        estimated(text='[{"ts": 1, "val": 2.0}]'),
        estimated(
            text="source,destination,event_type,timestamp,value\n"
            "a,b,throughput,2026-01-01 00:00:00,8000000\n"
        ),
    ),
    Example(
        "--name is for iperf3's output; a CSV of samples names its hosts",
        estimated("--name a=lyon"),
        estimated(),
    ),
    Example(
        "has no column {}, of which --only takes the rows with",
        estimated("--only tier=a", text=CSV),
        estimated("--only from=a", text=CSV),
    ),
    Example(
        "samples, row {}: time_s must be {}, got {}; {}",
        table(time_s=[NOON_S * 1000]),
        table(time_s=[NOON_S * 1000 / 1000]),
    ),
    Example(
        "bandwidth_bytes_per_s must be > 0, got {}; leave out tests that failed",
        halves(0.0),
        halves(-1.0),
    ),
    Example(
        "give the receiver larger windows (--window)", held_back("receiver"), held_back("network")
    ),
    Example(
        "give the sender larger buffers (--window)",
        held_back("send buffer"),
        held_back("network"),
    ),
    Example(
        "the sending host cannot space packets closely enough for this path",
        train(2.3e-3),
        train(2e-5),
    ),
    Example(
        "asks for one; `datacollect keys new FILE` makes one",
        hosts_of(""),
        hosts_of('key = "k.key"'),
    ),
    Example(
        "iperf3 does not limit windows as agents do; leave out --window",
        by_iperf3(TcpSettings(window_bytes=10**6)),
        by_iperf3(TcpSettings()),
    ),
    Example(
        "ask for --seconds of at least 2, got {}",
        by_iperf3(TcpSettings(seconds=1.0)),
        by_iperf3(TcpSettings(seconds=2.0)),
    ),
    Example(
        "ask for --bytes of at least {}, got {}",
        by_iperf3(TcpSettings(most_bytes=1000)),
        by_iperf3(TcpSettings(most_bytes=4 * 131_072)),
    ),
    Example(
        "an iperf3 server cannot take part in {}; run an agent there, or measure it by",
        by_iperf3(TraceSettings()),
        by_iperf3(PingSettings()),
    ),
    Example(
        "name one by --from and the others by --to, or the other way round",
        lambda: flooded_host([("a", "c"), ("b", "d")]),
        lambda: flooded_host([("a", "c"), ("a", "d")]),
    ),
    Example(
        "destination must be one of the hosts, got {}; there are {}: say which one with "
        "--destination",
        lambda: _require_destination("D", ["E", "S"]),
        lambda: _require_destination("E", ["E", "S"]),
    ),
    Example(
        "choose with --streams (streams, in Python)",
        estimated(text=OF_STREAMS),
        estimated("--streams 8", text=OF_STREAMS),
    ),
]
