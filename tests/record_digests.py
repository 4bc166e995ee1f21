"""Record digests of simulations again: what a run's result is from now on.

    python tests/record_digests.py                      what is not recorded yet
    python tests/record_digests.py --why "TEXT"         what has changed, too

Later changes that alter a digest name it and why: the text goes to the run's ``changed`` in
``tests/simulation/digests_ENGINE.json``, in the same commit as the change. Where something has
changed, nothing is written without ``--why``, and the script ends with 1.

On another platform than the recorded one a run counts as changed where it differs by more than
1e-9; all is then recorded to the last digit of this platform.
"""

from __future__ import annotations

import argparse
import sys
import time

from instances.digest_runs import RUNS
from judges import digests


def main(arguments=None):
    """Record, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engine", choices=list(RUNS), help="one engine's runs only")
    parser.add_argument("--why", help="why runs that were recorded have changed")
    given = parser.parse_args(arguments)
    engines = list(RUNS) if given.engine is None else [given.engine]
    return max(record(engine, given.why) for engine in engines)


def record(engine, why):
    """Carry all runs of an engine out and write their digests; 1 where changes have no reason."""
    before, here = digests.read(engine), digests.platform_of(engine)
    exactly = before["platform"] == here
    runs, unexplained = {}, 0
    for name in RUNS[engine]:
        began_s = time.perf_counter()
        found, old = digests.run_case(engine, name), before["runs"].get(name)
        lines = [] if old is None else digests.differences(old, found, exactly=exactly)
        state = "new" if old is None else "changed" if lines else "the same"
        say(f"{engine} {name}: {state}, {time.perf_counter() - began_s:.1f} s", *lines)
        changed = "" if old is None else old["changed"]
        runs[name] = {"changed": why if lines and why else changed, **found}
        if lines and not why:
            unexplained += 1
    for name in before["runs"].keys() - runs.keys():
        say(f"{engine} {name}: gone")
    if unexplained:
        say(f"{engine}: {unexplained} runs have changed; say --why. Nothing is written.")
        return 1
    digests.write(engine, {"platform": here, "runs": runs})
    return 0


def say(first, *rest):
    """Write lines, all but the first indented."""
    sys.stdout.write("\n    ".join((first, *rest)) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
