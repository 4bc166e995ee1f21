"""Two ends on one machine, in a program that takes everything with it when it ends.

``python -m datacollect.measuring.hosts.two_ends`` ends with its parent; it reads one line of JSON,
what to do, and writes one, what came of it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datacollect.errors import TransferError
from datacollect.measuring.hosts.namespaces import SYSTEM_PATH, Ends, made_ends
from datacollect.measuring.hosts.processor_times import allowed_processors
from datacollect.orphans import end_when_closed, held_pipe

if TYPE_CHECKING:
    from collections.abc import Sequence

PATIENCE_S = 60.0


@dataclass(frozen=True)
class Wanted:
    """Task of two ends.

    Attributes
    ----------
    does : str
        ``connections``: TCP and TLS; ``datagrams``: the program `program`.
    seconds : float
        For all of it.
    apart : bool
        Whether each end is in a namespace of its own.
    cores : tuple of int
        The sender's processor, and the receiver's.
    program : str
        Path of what measures datagrams.
    folder : str
        Where the sender's file lies.
    cases : tuple of (str, int, int)
        Of connections: ``tcp`` or ``tls``, bytes handed over at once, connections; by default those
        of a calibration.
    """

    does: str
    seconds: float
    apart: bool
    cores: tuple[int, int]
    program: str = ""
    folder: str = ""
    cases: tuple[tuple[str, int, int], ...] = ()


def why_not_apart() -> str | None:
    """Return why ends cannot have namespaces and processors of their own; None where they can."""
    if sys.platform != "linux":
        return "not Linux"
    if len(allowed_processors()) < 2:
        return "there is one processor"
    for program in ("unshare", "ip"):
        if shutil.which(program, path=SYSTEM_PATH) is None:
            return f"there is no program {program}"
    done = _run_apart([sys.executable, "-c", "import ctypes"], b"")
    return None if done.returncode == 0 else done.stderr.decode(errors="replace").strip()


def processors_of_ends() -> tuple[int, int]:
    """Return a processor for each end: two cores where there are two, not two halves of one."""
    allowed = allowed_processors()
    first = allowed[0]
    others = [number for number in allowed[1:] if _core(number) != _core(first)] or allowed[1:]
    return first, (others or [first])[0]


def between_two_ends(wanted: Wanted) -> Any:
    """Have two ends do something in a program of their own; return what it says.

    Raises
    ------
    TransferError
        It fails, or does not end.
    """
    command = [sys.executable, "-m", __name__]
    text = json.dumps(asdict(wanted)).encode()
    with held_pipe() as pipe:
        command.append(str(pipe))
        patience_s = wanted.seconds + PATIENCE_S
        run = _run_apart if wanted.apart else _run
        try:
            done = run(command, text, patience_s, pipe)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise TransferError(f"{wanted.does}: {error}") from None
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise TransferError(f"{wanted.does}: {said[-1] if said else f'code {done.returncode}'}")
    return json.loads(done.stdout)


def _run(
    command: Sequence[str], text: bytes, timeout_s: float = PATIENCE_S, pipe: int | None = None
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        command,
        input=text,
        capture_output=True,
        check=False,
        timeout=timeout_s,
        pass_fds=() if pipe is None else (pipe,),
    )


def _run_apart(
    command: Sequence[str], text: bytes, timeout_s: float = PATIENCE_S, pipe: int | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run a command in namespaces of its own: as process 1 there, with which all others end."""
    as_user = ["--user", "--map-root-user"] if os.geteuid() else []
    unshare = shutil.which("unshare", path=SYSTEM_PATH) or "unshare"
    apart = [
        unshare,
        *as_user,
        "--net",
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
    ]
    return _run([*apart, *command], text, timeout_s, pipe)


def _core(number: int) -> str:
    path = Path(f"/sys/devices/system/cpu/cpu{number}/topology/core_id")
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return str(number)


# In the program itself -------------------------------------------------------------------------


def _answer(wanted: Wanted, ends: Ends) -> Any:
    if wanted.does == "datagrams":
        from datacollect.measuring.hosts.datagrams import run_program

        words = [wanted.program, ends.addresses[1], str(wanted.seconds), *ends.namespaces]
        os.sched_setaffinity(0, {ends.cores[0]})
        return run_program(words, wanted.seconds)
    from datacollect.measuring.hosts.connections import CASES, measured_between

    return measured_between(ends, wanted.seconds, Path(wanted.folder), wanted.cases or CASES)


def main() -> None:
    """Read what to do, do it, say what came of it."""
    end_when_closed(int(sys.argv[1]))
    tree = json.loads(sys.stdin.readline() or sys.stdin.read())
    wanted = Wanted(**{**tree, "cores": tuple(tree["cores"])})
    # One thread sends and receives datagrams: what is done for them on another processor would cost
    # it an interrupt to wake that, or none, as it happens.
    cores = wanted.cores[:1] * 2 if wanted.does == "datagrams" else wanted.cores
    try:
        answer = _answer(wanted, made_ends(cores, apart=wanted.apart))
    except (OSError, TransferError) as error:
        sys.exit(str(error))
    with suppress(BrokenPipeError):
        sys.stdout.write(json.dumps(answer))
        sys.stdout.flush()


if __name__ == "__main__":
    # Threads of this program would have namespaces of their own.
    assert threading.active_count() == 1
    main()
