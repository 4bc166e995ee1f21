"""Crowds that mean no good, in a process of their own: silent, slow, or pushing what is refused.

Run as a script: ``crowds.py PORT PATH FOLDER KIND=NUMBER …``; slow ones post to that path. It says
``here`` once all have come, goes on until its standard input ends, and says then what it has met:
JSON, by kind.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import ssl
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from instances.bistros import Client, commitment_to

from datacollect.bistro.formats.event.event import Event
from datacollect.bistro.formats.event.file import read_event

# Some addresses each, other than those of honest people.
ADDRESSES = [f"127.0.0.{i}" for i in range(2, 8)]
# Who was sent away comes again so much later; who is slow sends so often.
AGAIN_S, DRIP_S = 1.0, 1.0
AT_ONCE = 50
JUNK_BYTES = 300_000


class Crowd:
    """All of one process.

    Attributes
    ----------
    met : Counter
        What has come of them, by kind and word.
    """

    def __init__(self, port: int, path: str, folder: Path) -> None:
        self.port, self.path, self.folder = port, path, folder
        self.met: Counter[str] = Counter()
        self._n_slow = 0
        self._tls = ssl.create_default_context()
        self._tls.check_hostname, self._tls.verify_mode = False, ssl.CERT_NONE

    async def gather(self, idle: int, slow: int, pushers: int) -> None:
        """Let all come, and stay until the end."""
        turns = asyncio.Semaphore(AT_ONCE)
        come = asyncio.Semaphore(0)
        kinds = [(self._idle, "idle")] * idle + [(self._slow, "slow")] * slow
        tasks = [
            asyncio.create_task(self._stays(stay, kind, ADDRESSES[i % 6], turns, come))
            for i, (stay, kind) in enumerate(kinds)
        ]
        threads = [
            threading.Thread(
                target=self._push, args=(number, come, asyncio.get_running_loop()), daemon=True
            )
            for number in range(pushers)
        ]
        for thread in threads:
            thread.start()
        for _ in (*tasks, *threads):
            await come.acquire()
        _say("here")
        await asyncio.to_thread(sys.stdin.read)
        _say(json.dumps(self.met))
        # Whatever still waits for an answer.
        os._exit(0)

    async def _stays(self, stay, kind, address, turns, come) -> None:
        is_first = True
        while True:
            try:
                async with turns:
                    self.met[f"{kind} come"] += 1
                    reader, writer = await asyncio.wait_for(
                        asyncio.open_connection(
                            "127.0.0.1",
                            self.port,
                            local_addr=(address, 0),
                            ssl=self._tls if kind == "slow" else None,
                        ),
                        60,
                    )
                    if is_first:
                        come.release()
                        is_first = False
                with contextlib.closing(writer):
                    await stay(reader, writer)
            except (OSError, TimeoutError):
                if is_first:
                    come.release()
                    is_first = False
            self.met[f"{kind} sent away"] += 1
            await asyncio.sleep(AGAIN_S)

    async def _idle(self, reader, writer) -> None:
        await reader.read()

    async def _slow(self, reader, writer) -> None:
        """Send a byte now and then: of a body that was promised, or of a head without an end."""
        self._n_slow += 1
        end = "Content-Length: 999\r\n\r\n" if self._n_slow % 2 else "X: "
        writer.write(f"POST {self.path} HTTP/1.1\r\nHost: a\r\n{end}".encode())
        while not reader.at_eof():
            writer.write(b"x")
            await writer.drain()
            with suppress(TimeoutError):
                await asyncio.wait_for(reader.read(1000), DRIP_S)

    def _push(self, number: int, come, loop) -> None:
        """With a ticket of its own: junk, wrong checksums, cuts, other bytes than promised."""
        event = read_event((self.folder / "event.toml").read_bytes())
        client = Client(("127.0.0.1", self.port), source=ADDRESSES[number % 6])
        is_first = True
        turn = 0
        while True:
            turn += 1
            try:
                self._push_once(event, client, number, turn)
            except (OSError, ValueError, AssertionError) as error:
                self.met[f"pushers {type(error).__name__}"] += 1
                client.close()
            except Exception as error:  # noqa: BLE001 - a half answer, whatever kind of it
                self.met[f"pushers {type(error).__name__}"] += 1
                client.close()
            if is_first:
                loop.call_soon_threadsafe(come.release)
                is_first = False

    def _push_once(self, event: Event, client: Client, number: int, turn: int) -> None:
        wanted = commitment_to(event, bytes(JUNK_BYTES), salt=10_000 + 2 * number + turn % 2)
        wanted = replace(wanted, size=10 * JUNK_BYTES)
        status, headers, _ = client.create(event, wanted, number=10_000 + number)
        self.met[f"pushers POST {status}"] += 1
        if status != 201:
            time.sleep(0.1)
            return
        path, offset = headers["location"], int(headers["upload-offset"])
        wrong = {"Upload_Checksum": "sha1 AAAA"} if turn % 3 else {}
        status, _, _ = client.patch(path, offset, bytes(JUNK_BYTES), **wrong)
        self.met[f"pushers PATCH {status}"] += 1
        if turn % 4 == 0:
            connection = client.connection()
            connection.putrequest("PATCH", path)
            for name, value in (
                ("Tus-Resumable", "1.0.0"),
                ("Content-Type", "application/offset+octet-stream"),
                ("Upload-Offset", str(offset)),
                ("Content-Length", str(JUNK_BYTES)),
            ):
                connection.putheader(name, value)
            connection.endheaders(bytes(JUNK_BYTES // 2))
            connection.close()
        if turn % 5 == 0:
            self.met[f"pushers DELETE {client.give_up(event, path, wanted)[0]}"] += 1


@contextmanager
def crowd(
    port: int, path: str, folder: Path, within_s: float, **kinds: int
) -> Iterator[dict[str, int]]:
    """Have a crowd at a server of this host; what it has met is there in the end."""
    met: dict[str, int] = {}
    given = [f"{kind}={n}" for kind, n in kinds.items()]
    with subprocess.Popen(
        [sys.executable, __file__, str(port), path, str(folder), *given],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "here\n"
            yield met
            assert process.poll() is None
            said, _ = process.communicate(timeout=within_s)
            met.update(json.loads(said))
        finally:
            process.kill()


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    port, path, folder, *given = sys.argv[1:]
    kinds = {"idle": 0, "slow": 0, "pushers": 0}
    kinds |= {kind: int(n) for kind, _, n in (each.partition("=") for each in given)}
    made = Crowd(int(port), path, Path(folder))
    asyncio.run(made.gather(**kinds))


if __name__ == "__main__":
    main()
