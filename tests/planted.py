"""Planted bugs: does some test of real transfers notice each of them, and which one first?

    python tests/planted.py [--only NUMBER ...]

Each is a mistake that somebody could make, planted alone in a copy of the repository. The half that
is marked as blind was chosen from the code, before anybody had looked at what tests there are.
CONTRIBUTING.md lists them with what has found each. Prints a line for each; code 1 where one is not
found.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from mutants import COPIED, ROOT, _copy

TRANSFER = "datacollect/transfer"
LONGEST_S = 600.0
# Quick ones first; the first that fails ends the search.
TESTS = (
    "tests/net/test_keys.py",
    "tests/net",
    "tests/transfer/store/test_pieces.py",
    "tests/transfer/store/test_paths.py",
    "tests/transfer/pull/test_core.py",
    "tests/transfer/test_simulated_agents.py",
    "tests/transfer/store/test_store.py",
    "tests/transfer/test_simulated_pulls.py",
    "tests/transfer/agent",
    "tests/transfer/store",
    "tests/transfer/pull",
)
# By themselves: what the simulation finds without any other test.
SIMULATION = ("tests/transfer/test_simulated_agents.py", "tests/transfer/test_simulated_pulls.py")
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


class Bug(NamedTuple):
    """A mistake: what it is called, where it is, what stood there, what stands there now."""

    name: str
    path: str
    before: str
    after: str
    is_blind: bool = False


BUGS = (
    Bug(
        "written files are not synced",
        f"{TRANSFER}/store/syncing.py",
        "                if name in whole:\n"
        "                    os.fsync(fd)\n"
        "                else:\n"
        "                    os.fdatasync(fd)\n",
        "                pass\n",
    ),
    Bug(
        "recorded before it is synced",
        f"{TRANSFER}/store/arriving.py",
        "            for fd, names in touched.items():\n"
        "                sync_files(fd, names, is_whole)\n"
        "            self.state.record(\n"
        "                ((self._sources[w.key.source].number, w.key.piece, w.digest) "
        "for w in group),\n"
        "                (span for written in group for span in written.spans),\n"
        "                (Settled(n, FileState.WAITING, None, *self._stamps[n]) "
        "for _, n in whole),\n"
        "            )\n",
        "            self.state.record(\n"
        "                ((self._sources[w.key.source].number, w.key.piece, w.digest) "
        "for w in group),\n"
        "                (span for written in group for span in written.spans),\n"
        "                (Settled(n, FileState.WAITING, None, *self._stamps[n]) "
        "for _, n in whole),\n"
        "            )\n"
        "            for fd, names in touched.items():\n"
        "                sync_files(fd, names, is_whole)\n",
    ),
    Bug(
        "the source's hash is not compared",
        f"{TRANSFER}/sources/agent/peer.py",
        "verdict = Verdict.VERIFIED if digest == answer.blake3 else Verdict.CORRUPT",
        "verdict = Verdict.VERIFIED",
    ),
    Bug(
        "a range is off by one",
        f"{TRANSFER}/store/pieces.py",
        "yield Span(file, low - start, high - low)",
        "yield Span(file, max(0, low - start - 1), high - low)",
    ),
    Bug(
        "a ticket's expiry is ignored",
        "datacollect/net/tickets.py",
        "    if now_s >= ticket.expires_s:\n",
        "    if now_s < 0:\n",
    ),
    Bug(
        "a used nonce is not remembered",
        f"{TRANSFER}/agent/core.py",
        "        self.used_until_s[ticket.nonce] = until_s\n",
        "",
    ),
    Bug(
        "used nonces are forgotten at a restart",
        f"{TRANSFER}/agent/core.py",
        "self.used_until_s = dict(used_nonces or {})",
        "self.used_until_s: dict[str, float] = {}",
    ),
    Bug(
        "a file is done before its folder is synced",
        f"{TRANSFER}/store/arriving.py",
        "        self._places.folders.sync()\n",
        "",
    ),
    Bug(
        "a piece that is there is counted again",
        f"{TRANSFER}/store/arriving.py",
        "            if key.piece in known.taken:\n                return False\n",
        "",
    ),
    Bug(
        "what a short write has left is not written",
        f"{TRANSFER}/store/arriving.py",
        "data, offset = data[n:], offset + n",
        'data, offset = memoryview(b""), offset + n',
    ),
    Bug(
        "a file's time is not compared",
        f"{TRANSFER}/agent/files.py",
        "        (found.st_size, found.st_mtime_ns, inode_of(found))\n"
        "        == (file.n_bytes, file.mtime_ns, file.inode)\n",
        "        (found.st_size, inode_of(found))\n        == (file.n_bytes, file.inode)\n",
        is_blind=True,
    ),
    Bug(
        "a way may pass an agent twice",
        "datacollect/net/tickets.py",
        "    if len({*ticket.agents, ticket.egress}) <= len(ticket.agents):\n",
        "    if not ticket.agents:\n",
        is_blind=True,
    ),
    Bug(
        "anybody may issue tickets",
        "datacollect/net/tickets.py",
        "    if not isinstance(issuer, str) or issuer not in collectors:\n",
        "    if not isinstance(issuer, str):\n",
        is_blind=True,
    ),
    Bug(
        "pieces that have come are asked for again",
        f"{TRANSFER}/pull/core.py",
        "            if piece not in todo:\n"
        "                self._came(session, piece)\n"
        "                continue\n",
        "",
        is_blind=True,
    ),
    Bug(
        "a changed time is no change in a listing",
        f"{TRANSFER}/store/relisting.py",
        "AND l.bytes = files.bytes AND l.mtime_s = files.mtime_s AND l.mtime_ns = files.mtime_ns",
        "AND l.bytes = files.bytes",
        is_blind=True,
    ),
    Bug(
        "bytes asked of a lost session stay asked",
        f"{TRANSFER}/pull/core.py",
        "        self._asked_bytes -= session.asked_bytes\n",
        "",
        is_blind=True,
    ),
    Bug(
        "a collected file that is gone is not missed",
        f"{TRANSFER}/store/preparing.py",
        "            after = self._after_change(number, name, row, found)\n",
        "            continue\n",
        is_blind=True,
    ),
    Bug(
        "a relay ticket leads to any host",
        f"{TRANSFER}/agent/core.py",
        "        if ticket.egress != name:\n",
        "        if ticket.egress is None:\n",
        is_blind=True,
    ),
    Bug(
        "a relay's byte budget is not counted down",
        f"{TRANSFER}/agent/splicing.py",
        "                self._left_bytes -= taken\n",
        "                self._left_bytes -= 0\n",
        is_blind=True,
    ),
    Bug(
        "any certificate is taken for the pinned one",
        "datacollect/net/tls.py",
        "    elif found != expected:\n",
        "    elif not found:\n",
        is_blind=True,
    ),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", type=int, nargs="+", help="numbers, from 1")
    parser.add_argument("--simulation", action="store_true", help="by simulated schedules alone")
    options = parser.parse_args()
    chosen = options.only or range(1, len(BUGS) + 1)
    tests = SIMULATION if options.simulation else TESTS
    n_missed = 0
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        for name in (*COPIED, "docs"):  # tests compare what documents say
            _copy(ROOT / name, Path(folder) / name)
        if found := first_failure(Path(folder), tests):
            sys.exit(f"the tests fail without any bug: {found}")
        for number in chosen:
            bug = BUGS[number - 1]
            found = found_by(Path(folder), bug, tests)
            n_missed += found is None
            blind = ", blind" if bug.is_blind else ""
            sys.stdout.write(f"{number}. {bug.name}{blind}: {found or 'NOT FOUND'}\n")
            sys.stdout.flush()
    sys.exit(n_missed > 0)


def found_by(folder: Path, bug: Bug, tests: tuple[str, ...]) -> str | None:
    """Plant a bug in the copy, run the tests, take it out again; return which test fails first."""
    path = folder / bug.path
    text = path.read_text(encoding="utf-8")
    path.write_text(planted(text, bug), encoding="utf-8")
    try:
        return first_failure(folder, tests)
    finally:
        path.write_text(text, encoding="utf-8")


def planted(text: str, bug: Bug) -> str:
    """The file's text with the bug; it must fit in exactly one place."""
    if text.count(bug.before) != 1:
        sys.exit(f"{bug.path}: {bug.name!r} fits {text.count(bug.before)} times; write it anew")
    return text.replace(bug.before, bug.after)


def first_failure(folder: Path, tests: tuple[str, ...]) -> str | None:
    """Run tests in the copy until one fails; return its name, or that they take too long."""
    options = ["-n", "0", "-x", "-q", "--no-header", "--tb=no", "-p", "no:cacheprovider"]
    environment = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        run = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *tests],
            check=False,
            timeout=LONGEST_S,
            capture_output=True,
            text=True,
            cwd=folder,
            env=environment,
        )
    except subprocess.TimeoutExpired:
        return f"they take more than {LONGEST_S:.0f} s"
    if run.returncode == 0:
        return None
    found = FAILED.search(run.stdout)
    return found[1] if found else f"code {run.returncode}: {run.stdout[-500:]}{run.stderr[-500:]}"


if __name__ == "__main__":
    main()
