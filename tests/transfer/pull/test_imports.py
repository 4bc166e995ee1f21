"""Imports before the first contact: later a process may be short of files."""

import json
import subprocess
import sys

import pytest

# Whatever is imported once the first host is asked would have to open files. Each method has a
# process of its own, which has imported no more than the command line has.
WATCHES = """
import json, os, sys
import datacollect as dc
from datacollect.transfer.pull import collecting

real = collecting.Collecting.run
late = []

def run(self, **options):
    before = set(sys.modules)
    try:
        return real(self, **options)
    finally:
        late.extend(sorted(set(sys.modules) - before))

collecting.Collecting.run = run
for method in sys.argv[3:]:
    if os.fork() == 0:
        answer = dc.pull(json.loads(sys.argv[1]), sys.argv[2] + method, method)
        print(json.dumps([method, answer.complete, late]), flush=True)
        os._exit(0)
    os.wait()
"""
METHODS = ["adaptive", "coordinated", "best-path", "direct"]


@pytest.mark.slow
@pytest.mark.parametrize("knows_links", [False, True])
def test_nothing_is_imported_once_hosts_are_asked(agents, collection_of, tmp_path, knows_links):
    one, two = agents("S1", {"a": b"a" * 300_000, "b": b""}), agents("S2", {"c": b"c" * 100})
    collection = collection_of(one, two, limits={"piece_bytes": 65536})
    for name in ("S1", "S2"):
        collection["agents"][name]["url"] = one_url(collection["agents"][name]["url"])
    if knows_links:
        collection["links"] = [
            {"from": name, "to": "D", "bandwidth_bytes_per_s": 1e7} for name in ("S1", "S2")
        ]
    done = subprocess.run(
        [sys.executable, "-c", WATCHES, json.dumps(collection), str(tmp_path / "into"), *METHODS],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert found == [[method, True, []] for method in METHODS], done.stderr


def one_url(url):
    """By a name, so that what looks names up is imported, too."""
    return url.replace("127.0.0.1", "localhost")
