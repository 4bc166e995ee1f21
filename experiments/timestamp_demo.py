"""An event from its draft to receipts that convince offline, on this machine: under a minute.

    python experiments/timestamp_demo.py FOLDER

Two services and four witnesses, of whom one dies and one backdates by an hour; 50 people hand in,
most before the deadline, some after it; the organiser extends the deadline; then every receipt is
verified with nothing but a copy of the event's file and of what was changed. No root, no TLS, no
other host; the clocks are this machine's.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import shutil
import socket
import subprocess
import sys
import sysconfig
import textwrap
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyrage

import datacollect as dc
from datacollect.bistro.formats.event.file import read_event
from datacollect.bistro.formats.log.checkpoints import witness_key
from datacollect.bistro.formats.log.witnessing import MOST_REQUEST_BYTES
from datacollect.bistro.http.clocks import now
from datacollect.bistro.http.config import WitnessConfig
from datacollect.bistro.http.exchange import Reply
from datacollect.bistro.http.web import WebServer, body_of, bound_socket
from datacollect.bistro.witness.core import Cosigned, WitnessCore
from datacollect.net.keys import PrivateKey, new_private_key, write_private_key

if TYPE_CHECKING:
    from aiohttp.web import BaseRequest

    from datacollect.bistro.now import Now

DATACOLLECT = Path(sysconfig.get_path("scripts"), "datacollect")
N_PEOPLE, N_LATE = 50, 10
AT_ONCE = 8
LAG_S = 2
BACKDATED_S = 3600.0


def shown(
    *arguments: str, folder: Path, codes: tuple[int, ...] = (0,), last: int | None = None
) -> str:
    """Run a command of ours, showing it; return what it prints.

    With `last`, no more than so many of its last lines are shown, unless it fails.
    """
    line = f"$ datacollect {' '.join(arguments)}"
    print(textwrap.fill(line, 78, subsequent_indent="    "), flush=True)
    done = subprocess.run(
        [DATACOLLECT, *arguments],
        cwd=folder,
        check=False,
        stdout=subprocess.PIPE,
        stderr=None if last is None else subprocess.STDOUT,
        text=True,
    )
    if done.returncode not in codes:
        sys.exit(f"{done.stdout}ended with {done.returncode}")
    lines = done.stdout.splitlines(keepends=True)
    print(
        "".join(lines if last is None else lines[max(len(lines) - last, 0) :]), end="", flush=True
    )
    return done.stdout


def begun(*arguments: str, folder: Path) -> subprocess.Popen[str]:
    """Start a server of ours; return it once it is ready."""
    print(f"$ datacollect {' '.join(arguments)} &", flush=True)
    log = (folder / f"{arguments[-1]}.log").open("wb")
    child = subprocess.Popen(
        [DATACOLLECT, *arguments, "--json"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
    )
    assert child.stdout is not None
    if not child.stdout.readline():
        sys.exit(f"{arguments[-1]} does not start: see its log")
    return child


def free_ports(n: int) -> list[int]:
    """Return ports that nobody listens on, below those that whoever connects is given."""
    found: dict[int, None] = {}
    while len(found) < n:
        port = random.randint(10_240, 32_767)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            found[port] = None
    return [*found]


class Backdating:
    """A witness whose clock is an hour behind, on purpose."""

    def __init__(self, config: WitnessConfig) -> None:
        self._config = config
        self._core = WitnessCore(config.name, config.key, config.logs, {}, 0, self._now())

    def _now(self) -> Now:
        true = now()
        return replace(true, unix_s=true.unix_s - BACKDATED_S)

    async def handle(self, request: BaseRequest) -> Reply:
        """Sign as the others do, with another time."""
        body = await body_of(request, MOST_REQUEST_BYTES)
        decision = self._core.add_checkpoint(body, self._now())
        if isinstance(decision, Cosigned):
            return Reply(200, decision.answer)
        return Reply(decision.status, decision.answer, decision.content_type)

    def run(self) -> None:
        """Serve, in a thread of its own."""

        async def serve() -> None:
            server = WebServer(self._config.listening, self.handle)
            await server.start(bound_socket(self._config.listening))
            await asyncio.Event().wait()

        asyncio.run(serve())


class Parties:
    """Keys, ports and files of all who take part, below a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        ports = free_ports(6)
        self.service_ports, self.witness_ports = ports[:2], ports[2:]
        self.service_keys = [self.key(f"service{i}") for i in range(2)]
        self.witness_keys = [self.key(f"witness{i}") for i in range(4)]
        self.organiser = self.key("organiser")

    def key(self, name: str) -> PrivateKey:
        """Make a private key, and its file."""
        key = new_private_key()
        write_private_key(self.folder / f"{name}.key", key)
        return key

    def write_draft(self, deadline: datetime, more: str = "") -> None:
        """Write the draft of the event; the destination's two identities lie beside it.

        Parameters
        ----------
        deadline : datetime
        more : str
            Further tables of the draft.
        """
        recipients = []
        for name in ("destination", "kept-offline"):
            identity = pyrage.x25519.Identity.generate()
            (self.folder / f"{name}.identity").write_text(f"{identity}\n")
            recipients.append(str(identity.to_public()))
        services = "".join(
            f'[[services]]\nurl = "http://127.0.0.1:{port}"\nkey = "{key.public}"\n'
            for port, key in zip(self.service_ports, self.service_keys, strict=True)
        )
        witnesses = "".join(
            f'[[witnesses]]\nurl = "http://127.0.0.1:{port}"\n'
            f'vkey = "{witness_key(f"w{i}.example", key.public).text}"\n'
            for i, (port, key) in enumerate(zip(self.witness_ports, self.witness_keys, strict=True))
        )
        (self.folder / "draft.toml").write_text(
            f'name = "Demo"\ndeadline = {deadline.isoformat()}\ntimezone = "UTC"\n'
            f"lag_s = {LAG_S}\ncollect_until = {(deadline + timedelta(days=2)).isoformat()}\n"
            f"keep_until = {(deadline + timedelta(days=30)).isoformat()}\n"
            f'organiser = "{self.organiser.public}"\nrecipients = {json.dumps(recipients)}\n'
            f"quorum = 3\n{services}{witnesses}{more}"
        )

    def start(self) -> tuple[list[subprocess.Popen[str]], list[subprocess.Popen[str]]]:
        """Start witnesses, then services; return both."""
        event = read_event((self.folder / "event.toml").read_bytes())
        logs = [*(each.log for each in event.services), event.verdicts]
        texts = json.dumps([log.text for log in logs if log is not None])
        for i, port in enumerate(self.witness_ports):
            (self.folder / f"witness{i}.toml").write_text(
                f'format = "datacollect-witness/1"\nname = "w{i}.example"\nkey = "witness{i}.key"\n'
                f'listen = "127.0.0.1:{port}"\nfolder = "signed{i}"\nclock = "trusted"\n'
                f"logs = {texts}\n"
            )
        for i, port in enumerate(self.service_ports):
            (self.folder / f"service{i}.toml").write_text(
                f'format = "datacollect-service/1"\nevent = "event.toml"\nkey = "service{i}.key"\n'
                f'listen = "127.0.0.1:{port}"\nfolder = "log{i}"\n'
            )
        liar = WitnessConfig.from_file(self.folder / "witness3.toml")
        threading.Thread(target=Backdating(liar).run, daemon=True).start()
        witnesses = [begun("witness", f"witness{i}.toml", folder=self.folder) for i in range(3)]
        services = [begun("timestamp", f"service{i}.toml", folder=self.folder) for i in range(2)]
        return witnesses, services


def handed_in(folder: Path, people: range) -> list[str]:
    """Have people hand in, several at once; return the outcome of each."""

    def one(i: int) -> str:
        own = folder / "people" / f"p{i}"
        own.mkdir(parents=True)
        (own / "return.txt").write_text(f"what person {i} declares")
        ticket = folder / "tickets" / f"p{i}.ticket"
        done = dc.upload(own / "return.txt", folder / "event.toml", ticket=ticket)
        return done.files[0].outcome

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(one, people))


def verified(offline: Path, amendments: Path | None) -> Counter[str]:
    """Verify all receipts in a folder that holds a copy of the event's file, and nothing else."""
    return Counter(
        dc.verify_receipt(path, offline / "event.toml", amendments=amendments).outcome
        for path in sorted(offline.glob("*.receipt.json"))
    )


def main() -> None:
    """Hold the event."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("demo/timestamp"))
    folder = parser.parse_args().folder.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    began_s = time.monotonic()
    parties = Parties(folder)
    # Long enough for slow machines to start all, and for most people.
    deadline = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=25)
    parties.write_draft(deadline)
    shown(
        *("event", "new", "draft.toml", "-o", "event.toml"),
        *("--identity", "destination.identity", "--identity", "kept-offline.identity"),
        folder=folder,
    )
    people = "\n".join(["person", *(f"p{i}" for i in range(N_PEOPLE))])
    (folder / "people.csv").write_text(f"{people}\n")
    with_key = ("--key", "organiser.key")
    shown(
        *("event", "tickets", "event.toml", "--people", "people.csv", *with_key, "-o", "tickets"),
        folder=folder,
    )
    witnesses, services = parties.start()
    try:
        table = hold(folder, deadline, witnesses, with_key)
    finally:
        for child in [*services, *witnesses]:
            child.kill()
    print()
    for what, said in table:
        print(f"{what:52} {said}")
    print(f"{'seconds in all':52} {time.monotonic() - began_s:.0f}")


def hold(
    folder: Path,
    deadline: datetime,
    witnesses: list[subprocess.Popen[str]],
    with_key: tuple[str, ...],
) -> list[tuple[str, str]]:
    """Let people hand in, before and after the deadline; return the rows of the table."""
    half = (N_PEOPLE - N_LATE) // 2
    print(f"{half} people hand in; then a witness dies", flush=True)
    outcomes = handed_in(folder, range(half))
    witnesses[0].kill()
    print(f"{half} more hand in, with one witness dead and one that backdates", flush=True)
    outcomes += handed_in(folder, range(half, 2 * half))
    wait_s = deadline.timestamp() + LAG_S + 1 - time.time()
    print(f"the deadline passes in {max(wait_s, 0):.0f} s; {N_LATE} people are late", flush=True)
    time.sleep(max(wait_s, 0))
    late = handed_in(folder, range(N_PEOPLE - N_LATE, N_PEOPLE))
    later = (deadline + timedelta(hours=1)).isoformat()
    shown("event", "extend", "event.toml", *with_key, "--deadline", later, folder=folder)
    offline = folder / "offline"
    offline.mkdir()
    shutil.copy(folder / "event.toml", offline)
    for path in (folder / "people").glob("*/return.txt.receipt.json"):
        shutil.copy(path, offline / f"{path.parent.name}.receipt.json")
    shown("audit", "event.toml", "--log", "--receipts", "people", folder=folder)
    before, after = (
        verified(offline, amendments) for amendments in (None, folder / "event.amendments.json")
    )
    return [
        ("handed in before the deadline", str(dict(Counter(outcomes)))),
        ("handed in after it", str(dict(Counter(late)))),
        ("verified offline by the event's file alone", str(dict(before))),
        ("verified offline, the extension counted", str(dict(after))),
        ("witnesses", "4: one honest, one dead, one backdates by an hour, one honest"),
    ]


if __name__ == "__main__":
    main()
