"""Feeds by UDP over a wire between two network namespaces: what is lost, what it costs, how steady.

    python experiments/feed_speed.py [--seconds 60] [--rate "900 Mbit/s"] [--only file bare …]
    python experiments/feed_speed.py --only file --folder /var/tmp
    python experiments/feed_speed.py --only means --means 86400 --means-rate "100 Mbit/s"

Needs root. An agent runs at one end, `datacollect feed send --generate` at the other, both under
SCHED_FIFO. Prints a row each: a feed to a file at the rate, in packets of 1500 bytes and in long
ones; beside it what bare loops of Python take for the same packets, a call for each and a call for
many (`feed_bare.py`); a drop set of 6.5 %, its 10^6 messages compared with what the set says; and a
feed to no file, with the means of each 30 s. Beside each stands the load of the machine: where it
is busy with other work, losses and times are its, too.

Processor times are those of all threads of a program, those of its start left out where that is
said. Files lie in memory that was in use before, or in a folder of a disk.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from datacollect.feeds.udp.drop_sets import dropped
from datacollect.files.kinds import Number
from datacollect.files.quantities import BYTES_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator

GIB = 2**30
MESSAGE_BYTES, LONG_MESSAGE_BYTES, LONG_MTU = 1412, 8904, 9000
HEAD_BYTES = 40
HERE, THERE = ("fs0", "10.213.78.1"), ("fs1", "10.213.78.2")
MEAN_S, MOST_OFF = 30.0, 1e-3
# What a program's start takes is over, and its end has not begun.
STEADY_AFTER_S, STEADY_UNTIL = 4.0, 0.9
IN_MEMORY = "/dev/shm"
BARE = Path(__file__).with_name("feed_bare.py")
BARE_S = 5.0


def ip(*words: str) -> None:
    """Have iproute2 do something."""
    subprocess.run(["ip", *words], check=True, capture_output=True)


@contextmanager
def wire() -> Iterator[None]:
    """Make two namespaces with a wire between them, and take them away."""
    for name, _ in (HERE, THERE):
        subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)
    with ExitStack() as ending:
        for name, _ in (HERE, THERE):
            ip("netns", "add", name)
            ending.callback(ip, "netns", "del", name)
        names = (HERE[0], "link", "add", "end0", "type", "veth", "peer", "name", "end1")
        ip("-n", *names, "netns", THERE[0])
        for number, (name, address) in enumerate((HERE, THERE)):
            ip("-n", name, "address", "add", f"{address}/24", "dev", f"end{number}")
            ip("-n", name, "link", "set", f"end{number}", "up")
            ip("-n", name, "link", "set", "lo", "up")
        time.sleep(0.5)
        yield


def before_others(namespace: str, *words: str) -> list[str]:
    """Return the words that run a program of Python in a namespace, before other programs."""
    return ["ip", "netns", "exec", namespace, "chrt", "--fifo", "1", sys.executable, *words]


def command(namespace: str, *words: str) -> list[str]:
    """Return the words that run a command of datacollect so."""
    return before_others(namespace, "-m", "datacollect", *words)


def processor_s(pid: int) -> float:
    """Return what a process has used of processors."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass
class Receiver:
    """An agent at the other end."""

    folder: Path
    process: subprocess.Popen[str]
    said: dict[str, str]

    def processor_s(self) -> float:
        """Return what it has used of processors."""
        return processor_s(self.process.pid)

    def received_bytes(self) -> int:
        """Return what its interface has received."""
        rows = Path(f"/proc/{self.process.pid}/net/dev").read_text().splitlines()
        return next(int(row.split()[1]) for row in rows if row.strip().startswith("end1:"))


@contextmanager
def receiver(folder: Path, public: str) -> Iterator[Receiver]:
    """Run an agent that takes feeds."""
    (folder / "feeds").mkdir()
    rows = [
        'format = "datacollect-agent/1"',
        'name = "D"',
        f'listen = "{THERE[1]}:7443"',
        f'collectors = ["{public}"]',
        "[feed]",
        f'users = ["{public}"]',
        'folder = "feeds"',
        'bytes = "200 GB"',
        'most_rate = "10 Gbit/s"',
    ]
    path = folder / "D.toml"
    path.write_text("\n".join(rows) + "\n")
    words = command(THERE[0], "agent", str(path), "--json")
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield Receiver(folder / "feeds", process, json.loads(process.stdout.readline()))
        finally:
            process.terminate()


def feed_file(
    folder: Path,
    at: Receiver,
    name: str,
    rate: str,
    udp: str,
    message_bytes: int = MESSAGE_BYTES,
) -> Path:
    """Write a feed's file."""
    path = folder / f"{name}.toml"
    path.write_text(
        f'format = "datacollect-feed/1"\nname = "{name}"\nto = "D"\nkey = "instrument.key"\n'
        f'rate = "{rate}"\nmessage_bytes = {message_bytes}\ntransport = "udp"\n'
        f'buffer_bytes = "64 MB"\nwhen_full = "drop-new"\nudp = {{ {udp} }}\n'
        f'[agents.D]\nurl = "{at.said["url"]}"\nfingerprint = "{at.said["fingerprint"]}"\n'
    )
    return path


def look(at: Receiver) -> tuple[float, int]:
    """Return when the receiver's interface had received how much, as exactly as this host can."""
    found = []
    for _ in range(20):
        before_s = time.monotonic()
        n_bytes = at.received_bytes()
        after_s = time.monotonic()
        found.append((after_s - before_s, (before_s + after_s) / 2, n_bytes))
    return min(found)[1:]


@dataclass(frozen=True)
class Sent:
    """What became of a feed, and what it took: in all, and of processors each second amid it."""

    tree: dict[str, object]
    processor_s: float
    receiver_s: float
    steady: tuple[float, float]

    @property
    def counts(self) -> dict[str, int]:
        """The counts of its report."""
        found = self.tree["counts"]
        assert isinstance(found, dict)
        return found


def sent(file: Path, seconds: float, at: Receiver) -> Sent:
    """Send a feed of data that are made up."""
    before_s = at.processor_s()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = command(HERE[0], "feed", "send", str(file), "--generate", f"{seconds} s", "--json")
    looks = []
    with (
        tempfile.TemporaryFile("w+") as told,
        subprocess.Popen(words, stdout=subprocess.PIPE, stderr=told, text=True) as process,
    ):
        begun_s = time.monotonic()
        for at_s in (STEADY_AFTER_S, seconds * STEADY_UNTIL):
            time.sleep(max(begun_s + at_s - time.monotonic(), 0.0))
            looks.append((time.monotonic(), processor_s(process.pid), at.processor_s()))
        assert process.stdout is not None
        said = process.stdout.read()
        code = process.wait()
        told.seek(0)
        errors = told.read()
    if code not in (0, 1):
        raise SystemExit(errors)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    own_s = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
    for line in errors.splitlines():
        print(f"  {line}", flush=True)
    first, last = looks
    amid_s = max(last[0] - first[0], 1e-9)
    steady = ((last[1] - first[1]) / amid_s, (last[2] - first[2]) / amid_s)
    return Sent(json.loads(said), own_s, at.processor_s() - before_s, steady)


def say(what: str, *facts: str) -> None:
    """Print a row, and the load."""
    print(f"{what}: {'; '.join(facts)}; load {os.getloadavg()[0]:.1f}", flush=True)


def touch_memory(folder: Path, n_bytes: int) -> None:
    """Have so much memory at hand: to a virtual machine its host gives it as it is first touched.

    That takes processor time which is not the feed's.
    """
    path, block = folder / "touched", bytes(2**20)
    with path.open("wb") as file:
        for _ in range(n_bytes // len(block)):
            file.write(block)
    path.unlink()


def to_a_file(
    folder: Path, at: Receiver, rate: str, seconds: float, message_bytes: int = MESSAGE_BYTES
) -> None:
    """Print what is lost at a rate, and what it costs."""
    name = f"tofile{message_bytes}"
    is_in_memory = folder.is_relative_to(IN_MEMORY)
    if is_in_memory:
        touch_memory(at.folder, int(Number(BYTES_PER_S).read(rate, "--rate") * seconds))
    found = sent(feed_file(folder, at, name, rate, "", message_bytes), seconds, at)
    (at.folder / name).unlink(missing_ok=True)
    counts = found.counts
    made, gib = counts["made"], counts["made_bytes"] / GIB
    lost = made - counts["received"]
    by_path = counts["sent"] - counts["received"]
    gib_per_s = gib / seconds
    own, there = (each / gib_per_s for each in found.steady)
    say(
        f"UDP to a file {'in memory' if is_in_memory else 'on a disk'}, {rate}, "
        f"messages of {message_bytes} bytes, {seconds:g} s",
        f"lost {lost} of {made} ({lost / max(made, 1):.2g}), {by_path} of them after it was sent",
        f"processor s/GiB: sender {own:.2f}, receiver {there:.2f}; with their starts "
        f"{found.processor_s / gib:.2f}, {found.receiver_s / gib:.2f}",
    )


def bare(rate_bytes_per_s: float) -> None:
    """Print what bare loops take for the same packets, with nothing made, checked or written."""
    size = HEAD_BYTES + MESSAGE_BYTES
    for how in ("plain", "together"):
        words = [str(BARE), "receive", THERE[1], str(size), how]
        with subprocess.Popen(
            before_others(THERE[0], *words), stdout=subprocess.PIPE, text=True
        ) as receiving:
            assert receiving.stdout is not None
            assert receiving.stdout.readline() == "ready\n"
            per_s = str(rate_bytes_per_s / MESSAGE_BYTES)
            words = [str(BARE), "send", THERE[1], str(size), how, str(BARE_S), per_s]
            sending = subprocess.run(
                before_others(HERE[0], *words), check=True, capture_output=True, text=True
            )
            ends = [json.loads(sending.stdout), json.loads(receiving.stdout.readline())]
        costs = [end["processor_s"] / (end["packets"] * MESSAGE_BYTES / GIB) for end in ends]
        say(
            f"bare loops, {how}, packets of {size} bytes",
            f"processor s/GiB: sender {costs[0]:.2f}, receiver {costs[1]:.2f}",
        )


def by_a_drop_set(folder: Path, at: Receiver, rate_bytes_per_s: float) -> None:
    """Print whether what is missing of 10^6 messages is the drop set, exactly."""
    rate = f"{rate_bytes_per_s * 8e-6:g} Mbit/s"
    file = feed_file(folder, at, "dropset", rate, 'drop = 0.065, drop_set = "bunches", seed = 7')
    found = sent(file, 1e6 * MESSAGE_BYTES / rate_bytes_per_s, at)
    made = found.counts["made"]
    rows = (at.folder / "dropset.holes").read_text().splitlines()[1:]
    missing: set[int] = set()
    for row in rows:
        first, n = map(int, row.split(",")[:2])
        missing.update(range(first, first + n))
    wanted = set(dropped("bunches", 0.065, 7, made))
    say(
        f"drop set 6.5 %, {made} messages, {rate}",
        f"{len(missing)} missing, {len(wanted)} to be dropped",
        f"{len(wanted - missing)} came all the same, {len(missing - wanted)} were lost besides",
    )


def steady(folder: Path, at: Receiver, rate: str, seconds: float) -> None:
    """Print how far means of 30 s lie from each other."""
    file = feed_file(folder, at, "steady", rate, "keep = false")
    words = command(HERE[0], "feed", "send", str(file), "--generate", f"{seconds} s", "--json")
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        time.sleep(5.0)
        looks = [look(at)]
        while process.poll() is None:
            time.sleep(max(looks[-1][0] + MEAN_S - time.monotonic(), 0.0))
            looks.append(look(at))
        assert process.stdout is not None
        counts = json.loads(process.stdout.read())["counts"]
    means = [(there - here) / (later - now) for (now, here), (later, there) in pairwise(looks[:-1])]
    (first_s, first), (last_s, last) = looks[0], looks[-2]
    mean = (last - first) / max(last_s - first_s, 1e-9)
    off = [abs(each / mean - 1) for each in means]
    say(
        f"{rate} to no file, {seconds:g} s",
        f"{len(means)} means of {MEAN_S:g} s, {sum(each <= MOST_OFF for each in off)} of them "
        f"within 1:{1 / MOST_OFF:g} of the whole's, all within 1:{1 / max(1e-9, *off):.0f}"
        if means
        else "too short",
        f"lost {counts['made'] - counts['received']} of {counts['made']}",
    )


def with_long_packets(folder: Path, at: Receiver, rate: str, seconds: float) -> None:
    """Do as `to_a_file` over a wire that carries long packets."""
    for number, (name, _) in enumerate((HERE, THERE)):
        ip("-n", name, "link", "set", f"end{number}", "mtu", str(LONG_MTU))
    to_a_file(folder, at, rate, seconds, LONG_MESSAGE_BYTES)


PARTS = ("file", "bare", "dropset", "means", "long")


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rate", default="900 Mbit/s")
    parser.add_argument("--drop-rate", type=float, default=50e6, help="bytes per second")
    parser.add_argument("--means", type=float, default=0.0, help="seconds; 0: not done")
    parser.add_argument("--means-rate", default="100 Mbit/s")
    parser.add_argument("--folder", default=IN_MEMORY, help="where files lie")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.folder) as name, wire():
        folder = Path(name)
        key = [sys.executable, "-m", "datacollect", "keys", "new", str(folder / "instrument.key")]
        public = subprocess.run(key, check=True, capture_output=True, text=True).stdout.strip()
        with receiver(folder, public) as at:
            if "file" in asked.only:
                to_a_file(folder, at, asked.rate, asked.seconds)
            if "bare" in asked.only:
                bare(Number(BYTES_PER_S).read(asked.rate, "--rate"))
            if "dropset" in asked.only:
                by_a_drop_set(folder, at, asked.drop_rate)
            if asked.means and "means" in asked.only:
                steady(folder, at, asked.means_rate, asked.means)
            if "long" in asked.only:
                with_long_packets(folder, at, asked.rate, asked.seconds)


if __name__ == "__main__":
    main()
