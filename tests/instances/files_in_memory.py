"""Files that last as long as a case, kept from the disk where the system can."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def file_with(data: bytes, name: str) -> Iterator[Path]:
    """Yield a file with these bytes."""
    where = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=where) as folder:
        path = Path(folder, name)
        path.write_bytes(data)
        yield path
