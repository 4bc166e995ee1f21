"""A pull in a process of its own that says how much memory it has taken; run as a program."""

import json
import re
import subprocess
import sys
import threading
import time
from pathlib import Path


def highest_kb():
    """Return the most memory that this process has had, kilobytes."""
    text = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", text)[1])


def measured(first, second, folder, *, plan_only=False, within_s=120.0, stop_after=None):
    """Pull `first`, then `second`, in another process; return what it says.

    Parameters
    ----------
    first, second : dict
        Collections: the first shows what a pull takes that nobody troubles.
    stop_after : (float, callable) or None
        After so many seconds the callable ends what would never end.
    """
    request = json.dumps([first, second, str(folder), plan_only])
    child = subprocess.Popen(
        [sys.executable, __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    timer = threading.Timer(*stop_after) if stop_after else None
    try:
        if timer:
            timer.start()
        out, _ = child.communicate(request, timeout=within_s)
    finally:
        child.kill()
        child.wait()
        if timer:
            timer.cancel()
    assert child.returncode == 0, out
    return json.loads(out)


def main():
    """Read two collections, pull them, and say what it took."""
    import datacollect as dc

    first, second, folder, plan_only = json.load(sys.stdin)
    dc.pull(first, Path(folder) / "first")
    before_kb = highest_kb()
    begun_s = time.monotonic()
    answer = dc.pull(second, Path(folder) / "second", plan_only=plan_only)
    json.dump(
        {
            "grown_mb": (highest_kb() - before_kb) / 1000,
            "took_s": time.monotonic() - begun_s,
            "complete": answer.complete,
            "listed": answer.listed,
            "missing": [[each.source, each.path, each.why] for each in answer.missing],
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main()
