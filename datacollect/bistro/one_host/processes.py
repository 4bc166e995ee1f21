"""Servers as child processes of one: started in order, started again, ended together.

However the parent ends, its children end with it (`datacollect.orphans`).
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacollect.bistro.one_host.server_log import ServerLog
from datacollect.errors import StoreError, TransferError
from datacollect.orphans import begun_program, held_pipe

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

# How long a server may take to say that it is ready, and to end once it is told to: on a host with
# much else to do minutes, and one that ends before says so at once.
READY_WITHIN_S, ENDS_WITHIN_S = 300.0, 20.0
# When one is started again that has ended by itself; doubled each time, until it runs for a while.
AGAIN_S, LONGEST_AGAIN_S, WELL_S = 1.0, 60.0, 120.0
# What is shown of a server that does not start: the end of what it has written.
LAST_BYTES = 2000


class Server:
    """One server of several.

    Parameters
    ----------
    name : str
    command : sequence of str
        It writes a line to standard output once it is ready.
    log : Path
        Takes what it writes to standard error, as `ServerLog` does.
    environment : mapping of str to str
    """

    def __init__(
        self, name: str, command: Sequence[str], log: Path, environment: Mapping[str, str]
    ) -> None:
        self.name = name
        self._command, self._log, self._environment = command, log, environment
        self._server_log = ServerLog(log)
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe = ExitStack()
        self._began_s = self.again_at_s = 0.0
        self._pause_s = AGAIN_S

    def start(self) -> None:
        """Start it, without waiting until it is ready.

        Raises
        ------
        NotWrittenError, TransferError
            Its log cannot be written, or this host has no room for one more process.
        """
        self._pipe.close()
        pipe = self._pipe.enter_context(held_pipe())
        with self._server_log.taking() as log:
            try:
                self._process = begun_program(
                    self._command, pipe, log, {**os.environ, **self._environment}
                )
            except OSError as error:
                raise TransferError(f"{self.name} cannot be started: {error.strerror}") from None
        self._began_s = time.monotonic()

    def await_ready(self, within_s: float = READY_WITHIN_S) -> None:
        """Wait until it says that it is ready.

        Raises
        ------
        StoreError
            It ends before, or takes too long: the message has its last words.
        """
        assert self._process is not None
        assert self._process.stdout is not None
        if select.select([self._process.stdout], [], [], within_s)[0]:
            if os.read(self._process.stdout.fileno(), LAST_BYTES):
                return
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(1)
        why = "is not ready in time"
        if self._process.poll() is not None:
            why = "has ended"
            self._server_log.await_end()
        raise StoreError(f"the {self.name} {why}: {self._last_words()}; its whole log: {self._log}")

    def _last_words(self) -> str:
        try:
            with self._log.open("rb") as file:
                file.seek(max(self._log.stat().st_size - LAST_BYTES, 0))
                lines = file.read().decode(errors="replace").splitlines()
        except OSError:
            lines = []
        begins = [i for i, line in enumerate(lines) if line.startswith("error: ")]
        said = " ".join(lines[begins[-1] :] if begins else lines[-1:])
        return said.removeprefix("error: ") or "it says nothing"

    @property
    def code(self) -> int | None:
        """Its exit code; None: it runs."""
        return None if self._process is None else self._process.poll()

    def plan_again(self) -> float:
        """Decide when it is started again after it has ended by itself; return in how long."""
        now_s = time.monotonic()
        if now_s - self._began_s > WELL_S:
            self._pause_s = AGAIN_S
        self.again_at_s, pause_s = now_s + self._pause_s, self._pause_s
        self._pause_s = min(2 * self._pause_s, LONGEST_AGAIN_S)
        self._forget()
        return pause_s

    @property
    def is_due(self) -> bool:
        """Whether it has ended, and is to be started again now."""
        return self._process is None and time.monotonic() >= self.again_at_s

    def tell(self, number: int) -> None:
        """Send it a signal, if it runs."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)

    def end(self) -> None:
        """Have it end, soon."""
        if self._process is not None:
            self.tell(signal.SIGTERM)
            try:
                self._process.wait(ENDS_WITHIN_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._forget()
            self._server_log.await_end()
        self._pipe.close()

    def _forget(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process = None


@dataclass(frozen=True)
class Watch:
    """Keeps servers running.

    Attributes
    ----------
    servers : sequence of Server
    say : function
        Takes lines on who has ended, and when it is started again.
    """

    servers: Sequence[Server]
    say: Callable[[str], None]

    def look(self) -> None:
        """Start those again that have ended by themselves, each after a while."""
        for each in self.servers:
            if (code := each.code) is not None:
                pause_s = each.plan_again()
                how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
                self.say(f"the {each.name} has ended {how}; started again in {pause_s:.0f} s")
            elif each.is_due:
                each.start()
