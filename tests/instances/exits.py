"""A process that has imported the command line, and makes copies of itself which end by it.

Run as a script it takes requests on standard input, an object of JSON a line, carries each out in a
copy whose standard streams are what the request says, and answers with its exit code.
"""

from __future__ import annotations

import builtins
import gc
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

# What a standard stream can be, beside a file by its name.
FULL, CLOSED, PIPE = "full", "closed", "broken pipe"


@dataclass(frozen=True)
class Command:
    """Program to start, and what it raises before it does anything, by the name of its kind."""

    arguments: Sequence[str] = ()
    raises: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)


class Bench:
    """Commands started with any streams, by a process that has imported them."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self._process, self._folder = process, folder

    def exit_code(
        self, command: Command, standard_output: str, standard_error: str
    ) -> tuple[int, str, str]:
        """Run a command; return its exit code, and what it wrote to files `out` and `err`."""
        for name in ("out", "err"):
            (self._folder / name).write_bytes(b"")
        request = {**asdict(command), "streams": (standard_output, standard_error)}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        code = json.loads(self._process.stdout.readline())
        return code, *((self._folder / name).read_text() for name in ("out", "err"))


@contextmanager
def bench(folder: Path, *, buffered: bool) -> Iterator[Bench]:
    """Yield a bench whose commands run in a folder, with Python's streams buffered or not."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    process = subprocess.Popen(
        [sys.executable, __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,  # a stream that can be sought would notice that a pipe cannot
        text=True,
        cwd=folder,
        env=environment | ({} if buffered else {"PYTHONUNBUFFERED": "1"}),
    )
    with process:
        yield Bench(process, folder)
        process.stdin.close()


def take_requests() -> dict | None:
    """Answer requests; return None in the end, and in each copy what that copy has to do."""
    replies = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            return json.loads(line)
        _, status = os.waitpid(pid, 0)
        replies.write(f"{os.waitstatus_to_exitcode(status)}\n")
        replies.flush()
    return None


def become(number: int, stream: str) -> None:
    """Make standard output or error what a request says."""
    if stream == CLOSED:
        os.close(number)
        setattr(sys, ("stdin", "stdout", "stderr")[number], None)  # as Python itself does
        return
    if stream == PIPE:
        reader, writer = os.pipe()
        os.close(reader)
    else:
        writer = os.open("/dev/full" if stream == FULL else stream, os.O_WRONLY)
    os.dup2(writer, number)
    os.close(writer)


def main() -> None:
    """Serve until standard input ends; a copy leaves by the program's own exit."""
    import datacollect.__main__ as program
    import datacollect.commands.main as commands

    gc.freeze()
    task = take_requests()
    if task is None:
        return

    os.environ.update(task["environment"])
    if task["raises"] is not None:

        def fails(*_: object) -> None:
            raise getattr(builtins, task["raises"])("as it should")

        commands.typer.main.get_command = fails
    sys.argv = ["datacollect", *task["arguments"]]
    for number, stream in enumerate(task["streams"], 1):
        become(number, stream)
    program.main()


if __name__ == "__main__":
    main()
