"""The log of a collection: one JSON object a line, for programs and for those who ask why.

Tickets and URLs with their queries are never in it.
"""

from __future__ import annotations

import json
import os
import threading
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from datacollect.net.safe_text import without_secrets
from datacollect.transfer.store.folder.opening import unusable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

# In the state folder.
LOG_FILE = "log.jsonl"


class Log:
    """Lines are appended; any thread may write.

    Parameters
    ----------
    path : Path
    hear : callable, optional
        Takes each line as well, as plain data.

    Raises
    ------
    NotWrittenError
        It cannot be opened.
    """

    def __init__(
        self, path: Path, hear: Callable[[Mapping[str, Any]], None] = lambda _: None
    ) -> None:
        self._hear = hear
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            fd = os.open(path, flags, 0o600)
            self._file = os.fdopen(fd, "w", encoding="utf-8", buffering=1)
        except OSError as error:
            raise unusable(path, error) from None
        # Where the lines of this start begin.
        self.begins_at = os.fstat(fd).st_size
        self._begun_s = time.monotonic()
        self._lock = threading.Lock()

    def write(self, what: str, **about: Any) -> None:
        """Write what has happened: with the time, and the seconds since the start."""
        line = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "s": round(time.monotonic() - self._begun_s, 3),
            "what": what,
            **about,
        }
        text = without_secrets(json.dumps(line, ensure_ascii=True, default=str))
        with self._lock:
            if self._file.closed:  # a thread that has outlived its pull
                return
            # A full disk stops the pull where data are written, not here.
            try:
                self._file.write(text + "\n")
            except OSError:
                return
            self._hear(json.loads(text))

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            try:
                self._file.close()
            except OSError:
                return
