"""An agent of ours that serves a folder, for as long as something is measured."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from datacollect.errors import TransferError
from datacollect.orphans import running_program

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

NAME = "sender"
READY_S = 20.0


@contextmanager
def serving_agent(folder: Path, served: str, address: str, key: str) -> Iterator[dict[str, Any]]:
    """Have an agent serve a folder to a key; yield what it says when it is ready.

    Parameters
    ----------
    folder : Path
        Where its file lies, and what it keeps.
    served : str
        A folder in it.
    address : str
        Where it listens; the port is any that is free.
    key : str
        Of its collector, the public one.
    """
    config = folder / "agent.toml"
    config.write_text(
        f'format = "datacollect-agent/1"\nname = "{NAME}"\nlisten = "{address}:0"\n'
        f'collectors = ["{key}"]\nserve = "{served}"\n',
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "datacollect", "agent", str(config), "--json"]
    with running_program(command) as process:
        yield json.loads(line_of(process))


def line_of(process: subprocess.Popen[str]) -> str:
    """Return the first line that a program says; it must not end before."""
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise TransferError(
            f"the sending process has ended by itself, code {process.wait(READY_S)}"
        )
    return line
