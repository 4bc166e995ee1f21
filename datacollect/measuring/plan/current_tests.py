"""Current tests: files that processes which test leave in the folder of samples, for observers.

Each is a file that its process holds a lock on. The kernel ends the lock with the process, so that
a test whose process was killed is none.
"""

from __future__ import annotations

import fcntl
import json
import secrets
import time
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from datacollect.files.documents import peer_json
from datacollect.files.locks import is_locked
from datacollect.measurement.outcomes import listed
from datacollect.problem.link_table import LAST_SINCE_1970_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

BEGINS = ".running-"
TEXTS = ("tool", "links", "about")
LEFT_S = 10.0


@contextmanager
def running_test(
    folder: Path, tool: str, pairs: Sequence[tuple[str, str]], about: str = ""
) -> Iterator[None]:
    """Leave word of a test for as long as it runs.

    Parameters
    ----------
    folder : Path
        Of the samples; it is there.
    tool : str
    pairs : sequence of (str, str)
        Who sends to whom.
    about : str
        How it tests, in a few words.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as name:
    ...     with running_test(Path(name), "tcp", [("S", "D")], "4 streams"):
    ...         [test] = running_tests(Path(name))
    ...     test["tool"], test["links"], running_tests(Path(name))
    ('tcp', 'S → D', [])
    """
    links = listed([f"{tail} → {head}" for tail, head in pairs])
    facts = {"tool": tool, "links": links, "about": about, "begun_s": time.time()}
    path = folder / f"{BEGINS}{secrets.token_hex(8)}"
    _remove_left(folder)
    with ExitStack() as held:
        # No test fails for who looks on, as where the disk is full.
        with suppress(OSError):
            file = held.enter_context(path.open("w", encoding="utf-8"))
            held.callback(_remove, path)
            fcntl.flock(file, fcntl.LOCK_EX)
            json.dump(facts, file)
            file.flush()
        yield


def running_tests(folder: Path) -> list[dict[str, Any]]:
    """Return the tests that run, the oldest first.

    Returns
    -------
    list of dict
        ``tool``, ``links``, ``about``, and ``begun_s`` in seconds since 1970.
    """
    found = []
    for path in folder.glob(f"{BEGINS}*"):
        with suppress(OSError):
            tree = peer_json(path.read_bytes()) if is_locked(path) else None
            if isinstance(tree, dict) and _is_number(tree.get("begun_s")):
                texts = {key: str(tree.get(key))[:200] for key in TEXTS}
                found.append({**texts, "begun_s": float(tree["begun_s"])})
    return sorted(found, key=lambda test: test["begun_s"])


def _remove_left(folder: Path) -> None:
    """Remove the words of tests whose processes were killed."""
    with suppress(OSError):
        for path in folder.glob(f"{BEGINS}*"):
            # A word that was just left has no lock yet.
            if time.time() - path.stat().st_mtime > LEFT_S and not is_locked(path):
                _remove(path)


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < LAST_SINCE_1970_S
