"""The two ends of `feed_bed.py`, in its bed: a source, and who watches what has arrived.

    feed_bed_ends.py make FEED.toml SECONDS OUT.npy   a source of the feed's rate, by the library
    feed_bed_ends.py watch FOLDER NAME OUT.npy        when how much of NAME.part was there
    feed_bed_ends.py gaps SECONDS OUT.npy             when how much this namespace had received

Rows of the files are an instant of the machine's own clock, and how many bytes there were then.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

from datacollect.feeds import send
from datacollect.feeds.formats.feed_file import FeedFile

LOOK_S = 0.002


def make(path: Path, seconds: float, out: Path) -> None:
    """Write a message whenever one is due; note when each was made."""
    feed = FeedFile.from_file(path)
    message = bytes(feed.message_bytes)
    n, rate = int(seconds * feed.rate_bytes_per_s / feed.message_bytes), feed.rate_bytes_per_s
    made = np.empty((n, 2))
    with send(feed) as sending:
        print("begun", flush=True)
        begun_s = time.monotonic()
        for i in range(n):
            due_s = begun_s + (i + 1) * feed.message_bytes / rate
            while (left_s := due_s - time.monotonic()) > 0:
                time.sleep(left_s)
            made[i] = time.monotonic(), (i + 1) * feed.message_bytes
            sending.write(message)
    np.save(out, made)
    said = {"counts": sending.counts.to_dict(), "delay": sending.delays.to_dict()}
    print(json.dumps(said), flush=True)


def watch(folder: Path, name: str, out: Path) -> None:
    """Note how the file grows, until it has its name."""
    part, whole, rows = folder / f"{name}.part", folder / name, [(0.0, 0)]
    while True:
        is_whole = whole.exists()
        try:
            n_bytes = (whole if is_whole else part).stat().st_size
        except FileNotFoundError:  # not begun yet, or it gets its name now
            n_bytes = rows[-1][1]
        if n_bytes > rows[-1][1]:
            rows.append((time.monotonic(), n_bytes))
        if is_whole:
            break
        time.sleep(LOOK_S)
    np.save(out, np.array(rows[1:]))


def interface_bytes() -> int:
    """Return what all interfaces of this namespace have received, but its own loop."""
    rows = Path("/proc/self/net/dev").read_text(encoding="ascii").splitlines()[2:]
    found = {name.strip(): int(rest.split()[0]) for name, _, rest in (r.partition(":") for r in rows)}
    return sum(n for name, n in found.items() if name != "lo")


def gaps(seconds: float, out: Path) -> None:
    """Note when packets come."""
    until_s, rows = time.monotonic() + seconds, [(time.monotonic(), interface_bytes())]
    while time.monotonic() < until_s:
        time.sleep(LOOK_S)
        rows.append((time.monotonic(), interface_bytes()))
    np.save(out, np.array(rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    hows = parser.add_subparsers(dest="how", required=True)
    how = hows.add_parser("make")
    how.add_argument("feed", type=Path)
    how.add_argument("seconds", type=float)
    how.add_argument("out", type=Path)
    how = hows.add_parser("watch")
    how.add_argument("folder", type=Path)
    how.add_argument("name")
    how.add_argument("out", type=Path)
    how = hows.add_parser("gaps")
    how.add_argument("seconds", type=float)
    how.add_argument("out", type=Path)
    asked = parser.parse_args()
    if asked.how == "make":
        make(asked.feed, asked.seconds, asked.out)
    elif asked.how == "watch":
        watch(asked.folder, asked.name, asked.out)
    else:
        gaps(asked.seconds, asked.out)


if __name__ == "__main__":
    main()
