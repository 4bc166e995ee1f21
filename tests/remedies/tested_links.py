"""Remedies about tests of links: agents that take part, iperf3 servers, floods, cycles."""

from __future__ import annotations

import json
import os
import shlex
import time
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import pandas as pd
from instances.agents import running, write_agent
from instances.measuring import (
    OPERATOR,
    entry_of,
    measure_table,
    measuring,
    token_of,
)
from instances.ports import free_port
from measuring.operator.test_packet_pairs import udp_socket
from remedies.trying import Example, call, in_folder, in_new_folder

from datacollect.errors import DatacollectError
from datacollect.measurement.sample_store import COLUMNS
from datacollect.measuring.agent.handlers import Measuring
from datacollect.measuring.agent.host_tests import HostTests
from datacollect.measuring.agent.table import MeasureConfig
from datacollect.measuring.agent.used_bytes import UsedBytes
from datacollect.measuring.cycle.measure_cycle import MOST_REASONS, CycleAnswer, Failure
from datacollect.measuring.operator.packet_pairs import PairsSettings
from datacollect.measuring.operator.pair_tests import measure_pair
from datacollect.measuring.operator.pings import PingSettings
from datacollect.measuring.results.mathis_check import compared_with_reno, notes_of
from datacollect.net.keys import PrivateKey, write_private_key
from datacollect.transfer.agent.config.file import AgentConfig

RECORDED = Path(__file__).parents[1] / "measurement/iperf3"
ONE_PING = PingSettings(1, 0.2)


# Agents ------------------------------------------------------------------------------------------


def with_agents(settings, knows="D", **receiver):
    """Say how a test from S to D has ended, where S's file has one address in connect_to."""

    def run():
        with in_new_folder() as folder, measuring(folder, "D", **receiver) as to:
            places = {"D": to.place if knows == "D" else "127.0.0.1:1"}
            with measuring(folder, "S", places) as by:
                return measure_pair(entry_of(by), entry_of(to), OPERATOR, settings)["ended"]

    return run


PAIRS = PairsSettings(half_width=1.0, seconds=1.0)


def into_a_port(is_taken):
    """Send packet pairs to a port that another program listens at, or to one that is free."""

    def run():
        with udp_socket() as other:
            port = other.getsockname()[1] if is_taken else free_port()
            return with_agents(PAIRS, udp_port=port)()

    return run


def into_a_free_port():
    return with_agents(PAIRS, udp_port=free_port())()


def told_of_the_operator(is_written):
    """Show an agent a ticket, whose file names another's key, or ours, which it reads once more."""
    other = PrivateKey(b"the key of somebody else in here")

    def run():
        with in_new_folder() as folder:
            path = write_agent(folder, "D", more=measure_table(operators=[other.public]))
            measured = Measuring(AgentConfig.from_file(path), lambda _: None)
            if is_written:
                write_private_key("operator.key", OPERATOR)
                shown = call("keys show operator.key").split()[0]
                path.write_text(path.read_text().replace(other.public, shown))
                measured.reread(AgentConfig.from_file(path))  # as at SIGHUP
            measured._tests._fingerprint = "f1"
            measured._tests.admit(token_of("f1", "f2", "f1"))

    return run


def leased(most_bytes):
    """Ask a host for its lease, of whose bytes of the hour 7 of 10 MB are taken."""

    def run():
        with in_new_folder() as folder:
            config = MeasureConfig(
                frozenset([OPERATOR.public]),
                ("tcp",),
                10**7,
                *[None] * 3,
                folder / "used",
                folder / "lock",
            )
            UsedBytes(config.used, 10**7).reserve("before", 7 * 10**6, time.time())
            tests = HostTests(config, config.used)
            tests._fingerprint = "f1"
            ticket = tests.admit(token_of("f1", "f1", "f2", most_bytes=most_bytes))
            tests.ask(ticket, 0, 5.0)
            tests.give_back(ticket, 0)

    return run


def reserved(n_bytes):
    def run():
        with in_new_folder() as folder:
            used = UsedBytes(folder / "used", 1000)
            used.reserve("a", 700, 0.0)
            used.reserve("b", n_bytes, 1.0)

    return run


# Files of hosts ----------------------------------------------------------------------------------


def hosts_asked(*lines):
    """Run commands where an agent S listens; ``URL`` is its address."""

    def run():
        with (
            in_new_folder() as folder,
            running(write_agent(folder, "S", serve="data")) as agent,
        ):
            for line in lines:
                said = call(line.replace("URL", f"https://{agent.place}"))
            return said

    return run


def nowhere(number):
    """Return the entry of an agent that is not there."""
    return f'url = "https://127.0.0.1:{number}"\nfingerprint = "sha256:{number:064}"\n'


AGENT, OTHER = nowhere(1), nowhere(2)
SERVER = 'iperf3 = "127.0.0.2:5201"\n'


def dry(line, *, is_dry=True, **hosts):
    """Say what would be tested between hosts."""
    tables = "".join(f"[hosts.{name}]\n{entry}" for name, entry in hosts.items())
    text = (
        'format = "datacollect-hosts/1"\ndestination = "D"\nkey = "operator.key"\n'
        f'budget = {{ bytes = "10 GB", time = "5 min" }}\n{tables}'
    )
    option = "--dry-run" if is_dry else ""
    return in_folder(f"measure {line} {option}", h_toml=text)


# iperf3 ------------------------------------------------------------------------------------------


@contextmanager
def in_place_of_iperf3(output):
    """Put a program first that prints a result, or let there be none."""
    with in_new_folder() as folder:
        (folder / "h.toml").write_text(
            'format = "datacollect-hosts/1"\ndestination = "D"\n'
            f'budget = {{ bytes = "1 GB", time = "5 min" }}\n[hosts.S]\n{SERVER}[hosts.D]\n'
        )
        (folder / "bin").mkdir()
        if output is not None:
            (folder / "output").write_text(json.dumps(output))
            program = folder / "bin/iperf3"
            program.write_text(f"#!/bin/sh\nexec /bin/cat {shlex.quote(str(folder / 'output'))}\n")
            program.chmod(0o755)
        with mock.patch.dict(os.environ, PATH=str(folder / "bin")):
            yield


def recorded(n_bytes):
    """Return what iperf3 has printed, with other bytes in 5 s."""
    tree = json.loads((RECORDED / "reverse.json").read_text())
    tree["end"]["sum_received"] |= {
        "bytes": n_bytes,
        "seconds": 5.0,
        "bits_per_second": 8 * n_bytes / 5.0,
    }
    return tree


def by_iperf3(output, options=""):
    """Say how a test has ended, whether or not it was done."""

    def run():
        with in_place_of_iperf3(output):
            try:
                return call(f"measure tcp h.toml -o samples {options}")
            except DatacollectError as error:
                return str(error)

    return run


# Floods ------------------------------------------------------------------------------------------


def flooded(options=""):
    """S sends to D and E, 1 MB/s to each, until the time or its bytes are over."""

    def flood(pairs, key, settings, *_):
        seconds = min(settings.seconds, settings.most_bytes / 1e6)
        return [
            {
                "from": by.name,
                "to": to.name,
                "time_s": 1.7e9,
                "tool": "flood",
                "ended": "done",
                "bandwidth_bytes_per_s": 1e6,
                "duration_s": seconds,
                "bandwidth_from_connect_bytes_per_s": 1e6,
            }
            for by, to in pairs
        ]

    def run():
        with (
            in_new_folder() as folder,
            mock.patch("datacollect.measuring.operator.flood_tests.measure_flood", flood),
        ):
            write_private_key(folder / "operator.key", OPERATOR)
            tables = "".join(f"[hosts.{name}]\n{nowhere(i)}" for i, name in enumerate("SDE", 1))
            (folder / "h.toml").write_text(
                'format = "datacollect-hosts/1"\ndestination = "D"\nkey = "operator.key"\n'
                f'budget = {{ bytes = "1 GB", time = "5 min" }}\n{tables}'
            )
            return call(f"measure flood h.toml --from S --seconds 10 -o samples {options}")

    return run


# What samples say --------------------------------------------------------------------------------


def notes_at(rate_bytes_per_s, limited_by):
    """Return what is said of connections at a rate, where 1 % of packets are lost in 100 ms."""
    row = {"from": "S", "to": "D", "time_s": 1.7e9, "ended": "done"}
    ping = json.dumps({"n": 1000, "every_s": 1.0, "by": "icmp"})
    rows = [
        row
        | {"tool": "tcp", "bandwidth_bytes_per_s": rate_bytes_per_s, "streams": 1}
        | {"limited_by": limited_by},
        row | {"tool": "ping", "rtt_s": 0.1, "loss": 0.01, "settings": ping},
    ]
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    assert limited_by in set(table["limited_by"])
    return "\n".join(notes_of(compared_with_reno(table)))


def failures(n):
    return [Failure("tcp", (f"S{i}", "D"), f"S{i} is away") for i in range(n)]


def cycle_ended(n, option=""):
    """Say of a cycle why tests have failed, each for a reason of its own."""
    ended = CycleAnswer(Path("samples"), 0, n, n, (), failures=tuple(failures(n)))

    def run():
        with mock.patch(
            "datacollect.measuring.cycle.measure_cycle.measure_cycle", return_value=ended
        ):
            hosts = {"D": AGENT, "S": OTHER}
            try:
                return dry(f"cycle h.toml {option}", is_dry=False, **hosts)()
            except DatacollectError as error:
                return str(error)

    return run


def names_all(run, n):
    """Look whether each reason is in what is said."""

    def look():
        said = run()
        assert all(f"S{i} is away" in said for i in range(n))
        return said

    return look


EXAMPLES = [
    Example(
        "this agent accepts no UDP packets: [measure] of its file has no udp_port, or a 0; write",
        with_agents(PAIRS, udp_port=0),
        into_a_free_port,
    ),
    Example(
        "UDP port {} of this host cannot be opened: {}; stop the program that uses it, or write "
        "another udp_port into [{}]",
        into_a_port(True),
        into_a_port(False),
    ),
    Example(
        "is not one of the addresses in this agent's connect_to, the only ones it sends to; "
        "write the address into connect_to",
        with_agents(ONE_PING, knows="another"),
        with_agents(ONE_PING),
    ),
    Example(
        "the ticket's issuer is not one of the agent's {}; write the public key (`datacollect keys "
        "show` "
        "prints it) into {} of the agent's file, and send it SIGHUP",
        told_of_the_operator(False),
        told_of_the_operator(True),
    ),
    Example(
        "bytes_per_hour are left; ask for less, or try later",
        leased(4 * 10**6),
        leased(3 * 10**6),
        module="measuring.agent.host_tests",
    ),
    Example(
        "bytes_per_hour are left; ask for less, or try later",
        reserved(400),
        reserved(300),
        module="measuring.agent.used_bytes",
    ),
    Example(
        "agents accept only signed tests, and the key {} beside {} is missing: `datacollect keys "
        "new` makes one",
        hosts_asked("measure hosts URL --iperf3 D=d:1 -o h.toml"),
        hosts_asked("keys new operator.key", "measure hosts URL --iperf3 D=d:1 -o h.toml"),
    ),
    Example(
        "give the one of --iperf3 another name",
        hosts_asked("measure hosts URL --iperf3 S=s:1 --destination S"),
        hosts_asked("measure hosts URL --iperf3 K=s:1 --destination S"),
    ),
    Example(
        "--tools names no tool; leave it out for {}",
        dry("cycle h.toml --tools ,", D=AGENT, S=OTHER),
        dry("cycle h.toml", D=AGENT, S=OTHER),
    ),
    Example(
        "is an iperf3 server, which these tests cannot ask; run an agent there",
        dry("scan h.toml", S=SERVER, D=AGENT),
        dry("scan h.toml", S=OTHER, D=AGENT),
    ),
    Example(
        "which these tests cannot ask; run an agent there, or measure it by `datacollect measure "
        "tcp` and `ping`",
        dry("scan h.toml", S=SERVER, D=""),
        dry("ping h.toml", S=SERVER, D=""),
    ),
    Example(
        "no pair of hosts is left; name two different ones by --from and --to",
        dry("tcp h.toml --from D", S=OTHER, D=AGENT),
        dry("tcp h.toml --from D --to S", S=OTHER, D=AGENT),
    ),
    Example(
        "with an empty table [hosts.NAME]; write one",
        dry("tcp h.toml", S=SERVER, D=AGENT),
        dry("tcp h.toml", S=SERVER, D=""),
    ),
    Example(
        "name other hosts by --from and --to, or run agents at both",
        dry("tcp h.toml", S=SERVER, K=OTHER, D=AGENT),
        dry("tcp h.toml --from K --to D", S=SERVER, K=OTHER, D=AGENT),
    ),
    Example(
        "run agents on these hosts, and name them by `datacollect measure hosts`",
        dry("cycle h.toml", S=SERVER, D=SERVER.replace("0.2", "0.3")),
        dry("cycle h.toml", S=AGENT, D=OTHER),
    ),
    Example(
        "or start this command on the destination, with an empty table [hosts.{}]",
        dry("cycle h.toml", S=SERVER, D=SERVER.replace("0.2", "0.3")),
        dry("cycle h.toml", S=SERVER, D=""),
    ),
    Example(
        "only pairs that matter are tested: run an agent there, or ask for --only all",
        dry("cycle h.toml --only matter", A=AGENT, B=OTHER, D=SERVER),
        dry("cycle h.toml --only all", A=AGENT, B=OTHER, D=SERVER),
    ),
    Example(
        "and {} more reasons: --json has them",
        cycle_ended(MOST_REASONS + 1),
        names_all(cycle_ended(MOST_REASONS + 1, "--json"), MOST_REASONS + 1),
    ),
    Example(
        "iperf3 is not installed on this host; apt install iperf3",
        by_iperf3(None),
        by_iperf3(recorded(5_000_000)),
    ),
    Example(
        "{}; repeat the test, with more --bytes",
        by_iperf3(recorded(0), "--bytes '1 MB'"),
        by_iperf3(recorded(5_000_000), "--bytes '100 MB'"),
    ),
    Example(
        "so the others had more bandwidth afterwards: give more --bytes{}",
        flooded("--bytes '1 MB'"),
        flooded("--bytes '10 MB'"),
    ),
    Example(
        "or a wire that they fill: limited_by of their samples may say it",
        lambda: notes_at(50_000.0, "receiver"),
        lambda: notes_at(200_000.0, "network"),
    ),
]
