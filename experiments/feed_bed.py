"""Feeds in a bed, beside the report whose numbers they repeat.

    python experiments/feed_bed.py RESULTS.jsonl [--only losses rates …] [--at-once 2]
    python experiments/feed_bed.py RESULTS.jsonl --only losses --names cubic-20-0
    python experiments/feed_bed.py RESULTS.jsonl --tables docs/tables

Needs root. Each part is a bed of namespaces, or a computation, with the library's own senders,
relays and receivers; the ends run before what else the machine does. Results are a line of JSON
each; what is there is not measured again.

Beside ours stand the numbers of the EXPReS "Protocols Performance Report", 2009.
"""

from __future__ import annotations

import argparse
import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import feed_bed_parts as parts
from feed_bed_runs import Setting, row_of
from feed_bed_tables import TABLES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Row = dict[str, Any]

CONGESTIONS, LINKS_MBIT, RELAYS = ("reno", "cubic", "bbr"), (20, 18, 36), (0, 2)
# Reno may be late for most of this, over 18 Mbit/s; others are timely again within 4 s.
RENO_EACH_S, EACH_S = 20.0, 8.0


def losses() -> dict[str, Callable[[], Row]]:
    """Ten losses each: congestion control, link, relays."""
    found = {
        f"{congestion}-{link}-{n_relays}": partial(
            row_of, Setting(congestion, link, n_relays, spacing_s=each_s), seed=1
        )
        for link in LINKS_MBIT
        for congestion in CONGESTIONS
        for n_relays in RELAYS
        for each_s in (EACH_S if n_relays or congestion != "reno" else RENO_EACH_S,)
    }
    slow = Setting("cubic", 20, spacing_s=RENO_EACH_S)
    return {**found, "cubic-20-0-slow": partial(row_of, slow, seed=1)}


def rates() -> dict[str, Callable[[], Row]]:
    """Losses at random, with a window of one bandwidth-delay product, and with ones that grow."""
    return {
        f"{loss:g}-{'window' if n_bytes else 'grows'}": partial(parts.rate_of_losses, loss, n_bytes)
        for n_bytes in (parts.ONE_BDP_BYTES, None)
        for loss in parts.LOSSES
    }


def bursts() -> dict[str, Callable[[], Row]]:
    """How packets leave after a loss, paced as feeds are, and as TCP sends by itself."""
    return {
        f"{congestion}-{'paced' if is_paced else 'unpaced'}": partial(
            parts.bursts, congestion, is_paced
        )
        for congestion in ("reno", "cubic")
        for is_paced in (True, False)
    }


def three() -> dict[str, Callable[[], Row]]:
    """Three feeds by UDP to one receiver."""
    return {"three": parts.three}


def buffers() -> dict[str, Callable[[], Row]]:
    """Losses at a receiver by the room that it asks for."""
    return {str(kilobytes): partial(parts.buffer, kilobytes) for kilobytes in parts.BUFFERS_KB}


def gaps() -> dict[str, Callable[[], Row]]:
    """Gaps between packets at 2 Mbit/s, and the processor's time: unicast, multicast and TCP."""
    paced = round(parts.PACED_PER_S * parts.PACED_FOR_S)
    return {
        f"{to}-{speed}": partial(parts.gaps, to, per_s, n)
        for to in ("unicast", "multicast", "tcp")
        for speed, per_s, n in (
            ("paced", parts.PACED_PER_S, paced),
            ("fast", parts.FAST_PER_S, parts.FAST),
        )
    }


PARTS: dict[str, Callable[[], dict[str, Callable[[], Row]]]] = {
    each.__name__: each for each in (losses, rates, bursts, three, buffers, gaps)
}
# At a bridge whose names are its own, or at rates that fill processors: one at a time.
ALONE = ("buffers", "gaps")


def rows_of(path: Path) -> list[Row]:
    """Read results; none where the file is not there."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def run(path: Path, wanted_parts: Sequence[str], at_once: int, names: Sequence[str] = ()) -> None:
    """Measure what is not there yet; of some names, or all."""
    done = {(row["part"], row["name"]) for row in rows_of(path)}
    writing = threading.Lock()

    def measure(part: str, name: str, measured: Callable[[], Row]) -> None:
        row = {"part": part, "name": name, **measured(), "load": round(os.getloadavg()[0], 1)}
        with writing, path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        print(f"{part} {name}: done", flush=True)

    wanted = [
        (part, name, measured)
        for part in wanted_parts
        for name, measured in PARTS[part]().items()
        if (part, name) not in done and (not names or name in names)
    ]
    with ThreadPoolExecutor(at_once) as pool:
        together = [pool.submit(measure, *one) for one in wanted if one[0] not in ALONE]
        for each in together:
            each.result()
    for one in wanted:
        if one[0] in ALONE:
            measure(*one)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--names", nargs="+", default=[], help="only these rows of the parts")
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("--tables", type=Path, help="write tables there, and measure nothing")
    asked = parser.parse_args()
    if asked.tables is None:
        run(asked.results, asked.only, asked.at_once, asked.names)
    rows = rows_of(asked.results)
    for name, made in TABLES.items():
        if asked.tables is None:
            print(f"{name}\n\n{made(rows)}")
        else:
            (asked.tables / f"{name}.md").write_text(made(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
