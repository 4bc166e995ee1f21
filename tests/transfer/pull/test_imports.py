"""What a pull needs is imported before the first contact: later a process may be short of files."""

import json
import subprocess
import sys

import pytest

# Whatever is imported once the first host is asked would have to open files.
WATCHES = """
import json, sys
import datacollect as dc
from datacollect.transfer.pull import collecting

late = []
real = collecting.Collecting.run

def run(self, **options):
    before = set(sys.modules)
    try:
        return real(self, **options)
    finally:
        late.extend(sorted(set(sys.modules) - before))

collecting.Collecting.run = run
answer = dc.pull(json.loads(sys.argv[1]), sys.argv[2], sys.argv[3])
assert answer.complete, answer.missing
print(json.dumps(late))
"""


@pytest.mark.parametrize("method", ["adaptive", "coordinated", "best-path", "direct"])
@pytest.mark.parametrize("knows_links", [False, True])
def test_nothing_is_imported_once_hosts_are_asked(
    agents, collection_of, tmp_path, method, knows_links
):
    one, two = agents("S1", {"a": b"a" * 300_000, "b": b""}), agents("S2", {"c": b"c" * 100})
    collection = collection_of(one, two, limits={"piece_bytes": 65536})
    for name in ("S1", "S2"):
        collection["agents"][name]["url"] = one_url(collection["agents"][name]["url"])
    if knows_links:
        collection["links"] = [
            {"from": name, "to": "D", "bandwidth_bytes_per_s": 1e7} for name in ("S1", "S2")
        ]
    done = subprocess.run(
        [sys.executable, "-c", WATCHES, json.dumps(collection), str(tmp_path / "into"), method],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == []


def one_url(url):
    """By a name, so that what looks names up is imported, too."""
    return url.replace("127.0.0.1", "localhost")
