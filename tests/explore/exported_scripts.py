"""Scripts of plans, read and carried out in memory: each byte once, in time, within storage.

The scripts' own lines are carried out: lanes side by side, each line after its start time and at no
more than its rate, a relay's piece once it is whole there. Rates are shared max-min fair by
progressive filling, written here apart; nothing is ever deleted. Carried out once more, each line
has its request, and looks at a relay that is not ready every five seconds: that ends within a
twentieth of the deadline. What is refused is planned once more as the refusal advises, and is not
refused for that any more.
"""

from __future__ import annotations

import math
import re
import shlex
from dataclasses import dataclass
from typing import Any

import numpy as np

import datacollect as dc
from datacollect.errors import InfeasibleError
from datacollect.exports.export import export
from datacollect.exports.templates import Templates
from datacollect.problem.manifest import Files

# Of rates, and of data: what takes seconds at a rate takes minutes here, and requests little of it.
MB, DATA = 10**8, 10**10
ADDRESSES = Templates({"": "https://{host}.example/{source}/{path}"}, {})
# Of times, and of bytes: what rounding may do.
SAME = 1e-6
REQUEST_S, LOOK_S, REQUESTS_PART = 0.5, 5.0, 0.05


@dataclass
class Line:
    """A line of a script: what it fetches, and how far it is."""

    host: str
    lane: tuple[str, int]
    peer: str
    file: str
    start_s: float
    rate: float
    offset: int
    n_bytes: int
    size: int
    waits: bool
    left: float = 0.0
    done_s: float = math.inf

    @property
    def key(self) -> tuple[str, int, int]:
        """What it brings."""
        return self.file, self.offset, self.n_bytes


def case(seed: int) -> str | None:
    """Plan by a deadline, export, carry out; say what is wrong."""
    rng = np.random.default_rng(seed)
    problem = random_problem(rng)
    try:
        earliest_s = dc.coordinated(problem).makespan_s
        deadline_s = earliest_s * float(rng.uniform(1.02, 1.6))
        # Of many pieces cases would take minutes each.
        chunk_s = earliest_s / float(rng.integers(20, 100))
        keep = bool(rng.integers(0, 2))
        plan = dc.coordinated(problem, deadline_s=deadline_s, chunk_s=chunk_s, keep_relayed=keep)
    except InfeasibleError:
        return None  # not by then with such chunks, or where relays keep what they forward
    manifest = random_files(problem, rng)
    piece_bytes = int(rng.integers(10, 200)) * DATA if rng.random() < 0.3 else None
    try:
        found = export(problem, plan, manifest, "curl", ADDRESSES, piece_bytes=piece_bytes)
    except InfeasibleError as refusal:
        return wrong_refusal(problem, plan, manifest, piece_bytes, str(refusal))
    lines = [line for host, text in by_host(found).items() for line in lines_of(host, text)]
    return wrong_bytes(problem, manifest, lines) or wrong_run(problem, lines, deadline_s, found)


def random_problem(rng: np.random.Generator) -> dc.Problem:
    """Three to five hosts, up to three periods in which links may be closed, storage, prices."""
    n = int(rng.integers(3, 6))
    names = [f"H{i}" for i in range(n)]
    n_periods = int(rng.integers(1, 4))
    starts = [0.0, *np.cumsum(100 * rng.integers(20, 200, n_periods - 1)).astype(float).tolist()]
    links = []
    for i in range(1, n):
        for j in range(n):
            if i == j or (j and rng.random() < 0.4):
                continue
            rates = rng.integers(1, 20, n_periods) * MB * (rng.random(n_periods) < 0.8)
            rates[-1] = max(rates[-1], MB)  # in the end all can arrive
            price = float(rng.integers(0, 4)) / 100
            links.append(
                dc.Link(names[i], names[j], rates.astype(float).tolist(), price_per_gb=price)
            )
    hosts = [dc.Host(names[0])]
    for name in names[1:]:
        backlog = int(rng.integers(0, 1500)) * DATA if rng.random() < 0.7 else 0
        storage = float(rng.integers(0, 800)) * DATA if rng.random() < 0.4 else math.inf
        hosts.append(dc.Host(name, backlog_bytes=backlog, storage_bytes=storage))
    if sum(host.backlog_bytes for host in hosts) == 0:
        hosts[1] = dc.Host(names[1], backlog_bytes=500 * DATA)
    return dc.Problem.from_hosts(hosts, links, names[0], periods_s=starts)


def random_files(problem: dc.Problem, rng: np.random.Generator) -> dict[str, Files]:
    """Each backlog as one to three files."""
    found = {}
    for i, name in enumerate(problem.names):
        backlog = int(problem.backlog_bytes[i])
        if backlog:
            cuts = np.unique(rng.integers(1, backlog, int(rng.integers(0, 3))))
            sizes = np.diff([0, *cuts.tolist(), backlog])
            paths = tuple(f"f{k}" for k in range(len(sizes)))
            found[name] = Files(paths, sizes.astype(np.int64), ("",) * len(sizes))
    return found


def wrong_refusal(
    problem: dc.Problem, plan: dc.Schedule, manifest: Any, piece_bytes: int | None, text: str
) -> str | None:
    """Carry out what a refusal advises; say where that does not help."""
    size = re.search(r"with --piece-bytes (\d+) they keep it", text)
    try:
        if size or "leave --piece-bytes out" in text:
            smaller = int(size[1]) if size else None
            export(problem, plan, manifest, "curl", ADDRESSES, piece_bytes=smaller)
        elif "--keep-relayed" in text:
            kept = dc.coordinated(problem, keep_relayed=True)
            export(problem, kept, manifest, "curl", ADDRESSES)
        elif "earlier deadline" not in text:
            return f"advises nothing: {text}"
        # Where all of a size is asked for, a smaller one or none may do.
        elif piece_bytes is not None:
            export(problem, plan, manifest, "curl", ADDRESSES)
            return f"the default would hold, but was not named: {text}"
    except InfeasibleError as again:
        if (
            size
            or "leave --piece-bytes out" in text
            or ("nothing deletes" in str(again) and "--keep-relayed" in text)
        ):
            return f"{text}: carried out, it is refused again: {again}"
    return None


def by_host(found: Any) -> dict[str, str]:
    """Return each host's script."""
    return {found.hosts[name]: text for name, text in found.texts.items()}


def lines_of(host: str, text: str) -> list[Line]:
    """Read what a script fetches, lane by lane."""
    lines, lane = [], -1
    for row in text[text.index("# ---- The plan") :].splitlines():
        if found := re.match(r"lane_(\d+)\(\) \{", row):
            lane = int(found[1])
        elif row.startswith("    { get "):
            words = shlex.split(
                row.strip().removeprefix("{ get ").partition(";")[0].split(" &&")[0]
            )
            start_s, rate, offset, n_bytes, size = map(int, words[:5])
            peer = words[6].removeprefix("https://").partition(".")[0]
            waits = bool(words[7])
            lines.append(
                Line(
                    host, (host, lane), peer, words[5], start_s, rate, offset, n_bytes, size, waits
                )
            )
    return lines


def wrong_bytes(problem: dc.Problem, manifest: Any, lines: list[Line]) -> str | None:
    """Look whether the destination fetches every byte of every file once."""
    ranges: dict[str, list[tuple[int, int]]] = {}
    for line in lines:
        if line.host == problem.destination:
            end = line.offset + line.n_bytes
            ranges.setdefault(line.file, []).append((line.offset, end))
    for source, files in manifest.items():
        for path, size in zip(files.paths, files.n_bytes.tolist(), strict=True):
            found = sorted(ranges.get(f"{source}/{path}", []))
            if [0, *[b for _, b in found]] != [*[a for a, _ in found], size]:
                return f"{source}/{path}: {found} are not its {size} bytes, each once"
    return None


def wrong_run(problem: dc.Problem, lines: list[Line], deadline_s: float, found: Any) -> str | None:
    """Carry the lines out; say who is late, or full."""
    stored: dict[str, float] = {}
    end_s = carried_out(problem, lines, stored)
    if end_s > deadline_s * (1 + SAME):
        return f"ends at {end_s}, its deadline is {deadline_s}"
    if abs(end_s - found.makespan_s) > 1.0 + 0.01 * end_s:
        return f"ends at {end_s}, expected was {found.makespan_s}"
    for host, n_bytes in stored.items():
        room = float(problem.storage_bytes[problem.host_index[host]])
        if n_bytes > room * (1 + SAME):
            return f"{host} stores {n_bytes}, its room is {room}"
    asked_s = carried_out(problem, lines, {}, requests=True)
    if asked_s > deadline_s * (1 + REQUESTS_PART + SAME):
        return f"with its requests it ends at {asked_s}, its deadline is {deadline_s}"
    return None


def carried_out(
    problem: dc.Problem, lines: list[Line], stored: dict[str, float], *, requests: bool = False
) -> float:
    """Carry lines out from event to event; return the end, and the most that relays store."""
    lanes: dict[tuple[str, int], list[Line]] = {}
    for line in lines:
        line.left = float(line.n_bytes)
        lanes.setdefault(line.lane, []).append(line)
    for lane in lanes.values():
        lane.reverse()  # the next one is last
    whole: dict[tuple[str, tuple[str, int, int]], float] = {}
    free_s = dict.fromkeys(lanes, 0.0)
    come: dict[str, float] = {}
    copied: dict[tuple[str, int], float] = {}
    periods = [*problem.periods_s.tolist(), math.inf]
    now = 0.0

    def begins_s(line: Line) -> float:
        asks_s = max(free_s[line.lane], line.start_s)
        there_s = whole.get((line.peer, line.key), math.inf) if line.waits else asks_s
        if not requests:
            return max(asks_s, there_s)
        return REQUEST_S + (asks_s if there_s <= asks_s else there_s + LOOK_S)

    while any(lanes.values()):
        heads = [(begins_s(lane[-1]), lane[-1]) for lane in lanes.values() if lane]
        ready = [line for at_s, line in heads if at_s <= now]
        period = max(i for i in range(len(periods) - 1) if periods[i] <= now)
        rates = fair(problem, ready, period)
        ends = [
            now + line.left / rate if rate else math.inf
            for line, rate in zip(ready, rates, strict=True)
        ]
        later = [at_s for at_s, _ in heads if at_s > now]
        then = min([*ends, *later, periods[period + 1]])
        if not math.isfinite(then):
            return math.inf
        for line, rate, end in zip(ready, rates, ends, strict=True):
            before = line.left
            line.left -= rate * (then - now)
            if end <= then * (1 + 1e-9):
                line.left = 0.0
                lanes[line.lane].pop()
                whole[line.host, line.key] = free_s[line.lane] = then
                copied[line.lane] = line.n_bytes if line.n_bytes < line.size else 0
            come[line.host] = come.get(line.host, 0.0) + before - line.left
        now = then
        _store(problem, come, copied, stored)
    return now


def _store(
    problem: dc.Problem,
    come: dict[str, float],
    copied: dict[tuple[str, int], float],
    stored: dict[str, float],
) -> None:
    """Count what lies at relays: all that has come, and once more what is just being copied."""
    at = {host: n_bytes for host, n_bytes in come.items() if host != problem.destination}
    for (host, _), n_bytes in copied.items():
        if host in at:
            at[host] += n_bytes
    for host, n_bytes in at.items():
        stored[host] = max(stored.get(host, 0.0), n_bytes)


def fair(problem: dc.Problem, lines: list[Line], period: int) -> list[float]:
    """Share links max-min fair: all rates rise together until a link or a limit is full."""
    index = problem.host_index
    row = {
        pair: k
        for k, pair in enumerate(
            zip(problem.link_from.tolist(), problem.link_to.tolist(), strict=True)
        )
    }
    link = [row[index[line.peer], index[line.host]] for line in lines]
    room = problem.bandwidth_bytes_per_s[min(period, problem.n_periods - 1)].tolist()
    rates = [0.0] * len(lines)
    rising = set(range(len(lines)))
    while rising:
        on = {k: sum(link[i] == k for i in rising) for k in set(link)}
        step = min(min(lines[i].rate - rates[i], room[link[i]] / on[link[i]]) for i in rising)
        for i in rising:
            rates[i] += step
            room[link[i]] -= step
        rising = {
            i
            for i in rising
            if lines[i].rate - rates[i] > 1e-6 and room[link[i]] > 1e-6 * max(1.0, rates[i])
        }
    return rates
