"""What predictions of this machine are worth: each beside a measurement, with the load meanwhile.

    python experiments/host_costs.py                  # all rows, some four minutes
    python experiments/host_costs.py --only udp       # or connections, pull, calibrate
    python experiments/host_costs.py --memory-as-it-is  # see below

Datagrams, TCP and TLS are calibrated with two sizes and predicted for others, which another run or
other repeats have measured. Pulls over loopback to disk are predicted by a profile of the same
machine, by 1, 2, 4 and 16 connections: the agent that sends and the pull share its processors, and
what they take and use of them was calibrated by smaller pulls. One more pull goes before them, so
that programs are loaded. Everything but datagrams needs an idle machine: others' time is counted,
too. Beside each prediction stands what the pulls themselves used and took.

A virtual machine may give free memory back to its host, which returns it slowly: new pages then
cost a second of processors for each GiB and more, more than to write them. Before it calibrates and
pulls on such a machine, this fills free memory by what is in it after some days: pages of files;
and again after each pull, by as much as was removed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from datacollect.machine.parts import BOTH, DISK, GIB, RECEIVES, SENDS, TCP, TLS, Parts
from datacollect.machine.profile import HostProfile, host_profile
from datacollect.measuring.hosts import datagrams, two_ends
from datacollect.measuring.hosts.new_memory import memory_held
from datacollect.measuring.hosts.processor_times import ProcessorTimes
from datacollect.measuring.hosts.repeats import Interval, line_through
from datacollect.measuring.hosts.seen import gives_memory_back, usable_processors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

PROGRAM = (sys.executable, "-m", "datacollect")
# The ends are calibrated, what lies between is predicted.
SIZES = {
    TCP: (2**14, 2**15, 2**16, 2**17, 2**18, 2**19),
    TLS: (2**16, 2**18, 2**19, 2**20, 2**22, 2**24),
}
GIB_PULLED = 2
# Those that are calibrated; the usual number is 16.
PULLED_BY = (1, 2, 4, None)
# Pulls by each number, in turn; the one in the middle counts.
ROUNDS = 3
PULL_HEAD = (
    "| connections | processors used | s of them for each GiB | predicted, Gbit/s "
    "| came in each round, Gbit/s | error | within | others busy |\n"
    "|--:|---|---|---|---|--:|---|--:|"
)
# What stays free when memory is filled, as the kernel itself likes to have it.
LEFT_BYTES = 2**29


class Row(NamedTuple):
    """A row of the table: what, what it came to, what it is to reach, and the load."""

    what: str
    came: str
    wanted: str
    load: float


class Prediction(NamedTuple):
    """What a pull is to use and take of processors, and bring."""

    share: float
    s_per_gib: float
    bytes_per_s: Interval


class Pulled(NamedTuple):
    """A pull beside its prediction."""

    predicted: Prediction
    bytes_per_s: float
    load: float
    connections: int | None = None
    share: float = math.nan
    s_per_gib: float = math.nan

    @property
    def error(self) -> float:
        """By which part the prediction is too high."""
        return self.predicted.bytes_per_s.value / self.bytes_per_s - 1

    @property
    def is_within(self) -> bool:
        """Whether it is as fast as was predicted at worst and at best."""
        _, low, high = self.predicted.bytes_per_s
        return low <= self.bytes_per_s <= high


def load() -> float:
    """Return what others keep busy now, a part of all processors."""
    return ProcessorTimes().others(0.5)


def errors_in_words(errors: Sequence[float]) -> str:
    """Write the median and the worst of errors."""
    sizes = [abs(error) for error in errors]
    return f"median {median(sizes):.1%}, worst {max(sizes):.1%} of {len(sizes)}"


def free_bytes() -> int:
    """Return how much memory is free and holds nothing."""
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    [free] = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemFree:")]
    return free


def udp_rows(folder: Path) -> list[Row]:
    """Calibrate with two sizes, predict six of another run."""
    program = datagrams.compiled(folder)
    if program is None:
        return [Row("UDP", "there is no C compiler", "median 5 %, worst 12 %", load())]

    def over_loopback() -> datagrams.Bursts:
        return datagrams.run_program([str(program), "127.0.0.1", "2"], 2.0)

    def over_veth() -> datagrams.Bursts:
        cores = two_ends.processors_of_ends()
        wanted = two_ends.Wanted("datagrams", 2.0, True, cores, program=str(program))
        found = two_ends.between_two_ends(wanted)
        return {int(size): bursts for size, bursts in found.items()}

    runs: dict[str, Callable[[], datagrams.Bursts]] = {"loopback": over_loopback}
    if two_ends.why_not_apart() is None:
        runs["veth"] = over_veth
    rows = []
    for over, run in runs.items():
        before, calibration, judged = load(), run(), run()
        errors = []
        for end in (0, 1):
            line = datagrams.line_of(calibration, end)
            for size in datagrams.SIZES:
                if size not in (datagrams.SMALL, datagrams.LARGE):
                    least_s = min(burst[end] for burst in judged[size]) * 1e-9
                    errors.append(line.at(size) / least_s - 1)
        what = f"UDP over {over}, two sizes calibrated, six predicted, another run"
        came = errors_in_words(errors)
        rows.append(Row(what, came, "median 5 %, worst 12 %", max(before, load())))
    return rows


def connection_rows(folder: Path, seconds: float) -> list[Row]:
    """Calibrate with two sizes of calls and requests, predict four others."""
    cases = tuple((kind, size, 1) for kind, sizes in SIZES.items() for size in sizes)
    apart = two_ends.why_not_apart() is None
    cores = two_ends.processors_of_ends()
    wanted = two_ends.Wanted("connections", seconds, apart, cores, folder=str(folder), cases=cases)
    before, seen = load(), two_ends.between_two_ends(wanted)
    rows, busy = [], max(before, load())
    for kind, sizes in SIZES.items():
        errors = []
        for column in ("sender_s", "receiver_s"):
            taken = {
                size: median(
                    row[column] / row["n_bytes"] * size
                    for row in seen
                    if (row["kind"], row["unit_bytes"]) == (kind, size)
                )
                for size in sizes
            }
            line = line_through({size: taken[size] for size in (sizes[0], sizes[-1])})
            errors += [line.at(size) / taken[size] - 1 for size in sizes[1:-1]]
        what = f"{kind.upper()}, two settings calibrated, four predicted, five repeats"
        rows.append(Row(what, errors_in_words(errors), "median 15 %, idle", busy))
    return rows


def predicted_on_one_machine(profile: HostProfile, connections: int | None = None) -> Prediction:
    """Return what a pull brings whose agent is on the same machine: both share its processors.

    What both take of them, and for which part of the time, smaller pulls by so many connections
    have told; to write takes what it took alone. Older profiles have what each end took apart.
    """
    parts = profile.parts
    assert parts.cost(DISK, RECEIVES) is not None, profile.refused
    (share, s_per_gib, rate), (_, _, low), (_, _, high) = (
        of_parts(each, connections) for each in (parts, parts.at_worst(), parts.at_best())
    )
    return Prediction(share, s_per_gib, Interval(rate, low, high))


def of_parts(parts: Parts, connections: int | None) -> tuple[float, float, float]:
    """Return the part of processors used, seconds for each GiB, and bytes per second."""
    share, disk, write = (
        parts.share_used(connections),
        parts.rate(DISK),
        parts.cost(DISK, RECEIVES),
    )
    assert write is not None
    s_per_gib = parts.pull_s_per_gib(connections)
    both_s = both_ends_s_per_byte(parts) if s_per_gib is None else s_per_gib / GIB
    used, s_per_byte = 1.0 if share is None else share, both_s + write.s_per_byte()
    rate = used * parts.processors / s_per_byte
    rate = min(rate, math.inf if disk is None else disk.bytes_per_s)
    return used, s_per_byte * GIB, rate


def both_ends_s_per_byte(parts: Parts) -> float:
    """Return what it takes to send and to receive a byte, each end apart where they could be."""
    costs = [parts.cost(TLS, end) for end in (RECEIVES, SENDS)]
    found = [cost for cost in costs if cost is not None]
    assert len(found) == len(costs)
    return sum(cost.s_per_byte() for cost in (found[:1] if found[0].end == BOTH else found))


def pulled(
    folder: Path,
    profile: HostProfile,
    connections: Sequence[int | None] = (None,),
    hold: Callable[[int], None] = lambda _: None,
) -> list[Pulled]:
    """Pull over loopback from an agent on this machine; return each beside its prediction.

    After each, as much memory is held as has become free: no pull gets what another had.
    """
    served = folder / "to_pull"
    served.mkdir()
    n_bytes = int(GIB_PULLED * GIB)
    with (served / "bytes").open("wb") as file:
        for _ in range(n_bytes // 2**24):
            file.write(os.urandom(2**24))
    key = said("keys", "new", str(folder / "key")).split()[-1]
    (folder / "agent.toml").write_text(
        'format = "datacollect-agent/1"\nname = "S"\nlisten = "127.0.0.1:0"\n'
        f'collectors = ["{key}"]\nserve = "to_pull"\n'
    )
    command = (*PROGRAM, "agent", str(folder / "agent.toml"), "--json")
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as agent:
        try:
            assert agent.stdout is not None
            facts = json.loads(agent.stdout.readline())
            found = []
            for each in connections:
                found.append(pulled_by(folder, profile, facts, n_bytes, each))
                hold(n_bytes)
            return found
        finally:
            agent.terminate()


def pulled_by(
    folder: Path,
    profile: HostProfile,
    facts: Mapping[str, str],
    n_bytes: int,
    connections: int | None,
) -> Pulled:
    """Pull by so many connections, or by as many as pulls open."""
    limits = "" if connections is None else f"[limits]\nconnections = {connections}\n"
    (folder / "collection.toml").write_text(
        f'format = "datacollect-collection/1"\ndestination = "D"\nkey = "key"\n{limits}'
        f'[agents.S]\nurl = "{facts["url"]}"\nfingerprint = "{facts["fingerprint"]}"\n'
    )
    os.sync()
    before, times = load(), ProcessorTimes()
    words = ("pull", str(folder / "collection.toml"), "--into", str(folder / "into"))
    begun_s, busy_s = time.monotonic(), sum(times.busy_s().values())
    answer = json.loads(said(*words, "--json", "--quiet"))
    took_s, busy_s = time.monotonic() - begun_s, sum(times.busy_s().values()) - busy_s
    busy = max(before, load())
    assert answer["complete"], answer
    shutil.rmtree(folder / "into")
    return Pulled(
        predicted_on_one_machine(profile, connections),
        n_bytes / answer["makespan_s"],
        busy,
        connections,
        busy_s / (took_s * usable_processors()),
        busy_s / n_bytes * GIB,
    )


def said(*words: str) -> str:
    """Run a command of ours; return what it prints."""
    done = subprocess.run([*PROGRAM, *words], check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


def calibrated(folder: Path, seconds: float) -> tuple[HostProfile, Row]:
    """Calibrate this machine, however busy; return the profile, and what that took."""
    path, begun_s = folder / "PROFILE.toml", time.monotonic()
    said("host", "calibrate", "-o", str(path), "--seconds", f"{seconds:g}", "--anyway", "--quiet")
    took_s = time.monotonic() - begun_s
    profile = host_profile(path)
    wanted = "90 s, 1 GB" if seconds == 60 else "1.5 times as long, 1 GB"
    row = Row(f"calibrate --seconds {seconds:g}", f"{took_s:.0f} s", wanted, profile.parts.load)
    return profile, row


def pull_table(
    folder: Path,
    profile: HostProfile,
    rounds: int = ROUNDS,
    hold: Callable[[int], None] = lambda _: None,
) -> tuple[Row, list[str]]:
    """Pull to disk beside predictions: smaller pulls by as many connections were calibrated.

    Return a row of all, and the lines of a table: the middle of all rounds counts.
    """
    by = (None, *PULLED_BY * rounds)
    _, *found = pulled(folder, profile, by, hold)  # the first loads programs
    lines, middles = [PULL_HEAD], []
    for connections in PULLED_BY:
        tried = [each for each in found if each.connections == connections]
        middles.append(middle_of(tried))
        lines.append(pull_line(middles[-1], tried))
    what = f"pulls of {GIB_PULLED} GiB over loopback to disk, by each number of connections"
    busy = max(profile.parts.load, *(each.load for each in found))
    within = sum(middle.is_within for middle in middles)
    came = f"{errors_in_words([each.error for each in middles])}; {within} within their range"
    return Row(what, came, "± 20 %, idle", busy), lines


def middle_of(tried: Sequence[Pulled]) -> Pulled:
    """Return a pull in the middle of some by the same number of connections, in each respect."""
    return tried[0]._replace(
        bytes_per_s=median(each.bytes_per_s for each in tried),
        load=max(each.load for each in tried),
        share=median(each.share for each in tried),
        s_per_gib=median(each.s_per_gib for each in tried),
    )


def pull_line(middle: Pulled, tried: Sequence[Pulled]) -> str:
    """Return the table's line of some pulls and the one in their middle."""
    share, s_per_gib, interval = middle.predicted
    rate, low, high = (8e-9 * each for each in interval)
    came = ", ".join(f"{8e-9 * each.bytes_per_s:.2f}" for each in tried)
    return (
        f"| {middle.connections or 'the usual'} | {share:.0%} ({middle.share:.0%}) "
        f"| {s_per_gib:.2f} ({middle.s_per_gib:.2f}) | {rate:.2f} ({low:.2f} to {high:.2f}) "
        f"| {came} | {middle.error:+.0%} | {'yes' if middle.is_within else 'no'} "
        f"| {middle.load:.0%} |"
    )


def main() -> None:
    """Measure, and print a row for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=("udp", "connections", "pull", "calibrate"))
    parser.add_argument("--seconds", type=float, default=60.0, help="of a calibration")
    parser.add_argument("--folder", type=Path, help="on the disk that is measured")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of pulls")
    parser.add_argument("--memory-as-it-is", action="store_true", help="do not fill it")
    given = parser.parse_args()
    print("| what | came | at least | others busy |\n|---|---|---|--:|", flush=True)

    def show(*rows: Row) -> None:
        for row in rows:
            print(f"| {row.what} | {row.came} | {row.wanted} | {row.load:.0%} |", flush=True)

    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        if given.only in (None, "udp"):
            show(*udp_rows(folder))
        if given.only in (None, "connections"):
            show(*connection_rows(folder, given.seconds))
        if given.only in (None, "pull", "calibrate"):
            with memory_held(folder) as hold:
                if gives_memory_back() and not given.memory_as_it_is:
                    hold(max(free_bytes() - LEFT_BYTES, 0))
                profile, row = calibrated(folder, given.seconds)
                show(row)
                if given.only != "calibrate":
                    row, lines = pull_table(folder, profile, given.rounds, hold)
                    show(row)
                    print("", *lines, sep="\n")


if __name__ == "__main__":
    main()
