"""A PostgreSQL server of a test's own, in a folder, spoken to by a socket there."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

# Debian keeps them out of PATH, and the server refuses to run as root.
DEBIAN = Path("/usr/lib/postgresql")
USER = "postgres"


def program(name: str) -> str | None:
    """Return the path of one of PostgreSQL's programs, the newest that is installed."""
    found = sorted(DEBIAN.glob(f"*/bin/{name}"), key=lambda path: int(path.parts[-3]))
    return str(found[-1]) if found else shutil.which(name)


@contextmanager
def postgres() -> Iterator[str]:
    """Run a server; yield the address of its database."""
    with TemporaryDirectory(prefix="pg-", dir="/tmp") as name:
        folder = Path(name)
        as_user = {}
        if os.geteuid() == 0:
            user = pwd.getpwnam(USER)
            os.chown(folder, user.pw_uid, user.pw_gid)
            as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}

        def run(name: str, *words: str) -> None:
            command = [str(program(name)), *words]
            subprocess.run(
                command, check=True, stdout=subprocess.DEVNULL, cwd=folder, timeout=120, **as_user
            )

        data = str(folder / "data")
        run("initdb", "-D", data, "-U", "test", "-A", "trust", "-N", "--no-instructions")
        options = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
        log = str(folder / "log")
        run("pg_ctl", "-D", data, "-w", "-l", log, "-o", options, "start")
        try:
            yield f"postgresql:///postgres?host={folder}&user=test"
        finally:
            run("pg_ctl", "-D", data, "-w", "-m", "immediate", "stop")
