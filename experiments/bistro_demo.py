"""An event from its draft to proofs of what became of every file, on this machine: three minutes.

    python experiments/bistro_demo.py FOLDER

Two services; four witnesses, of whom one dies and one backdates by an hour; three bistros on
limited links, of which one is killed and comes back, and one drops a person's row from what it has
signed; a destination that collects while people still push; 200 people, five of them in Chromium,
some of whom are late. One has lost its sealed file, one never sends it, one finds no service. No
root, no other host.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import page_people
from timestamp_demo import Parties, begun, free_ports, shown

import datacollect as dc
from datacollect.bistro.formats.custody.batches import read_batch, sign_batch
from datacollect.bistro.formats.custody.bistro_receipt import read_bistro_receipt
from datacollect.bistro.formats.custody.segments import batch_name
from datacollect.bistro.formats.event.file import read_event
from datacollect.bistro.formats.receipt.receipt import read_receipt
from datacollect.net.keys import new_private_key, read_private_key, write_private_key
from datacollect.net.tls import fingerprint_of_file, make_certificate

if TYPE_CHECKING:
    from collections.abc import Iterable

N_PEOPLE, N_LATE = 200, 12
# So many of them in a browser, on the event's page.
N_BROWSERS = 5
# By their numbers: who loses what was sealed, never sends it, finds no service.
N_IN_TIME = N_PEOPLE - N_LATE - 3
LOST, SILENT, AWAY = N_IN_TIME, N_IN_TIME + 1, N_PEOPLE - 1
AT_ONCE = 6
# By name: what the bistro's link carries, bytes per second.
LINKS = {"north": 4e6, "south": 2e6, "west": 1e6}
LIAR, KILLED = "west", "north"
DEADLINE_AFTER_S, COLLECTED_AFTER_S = 75, 60
MOST_BYTES = 200_000


class Link:
    """A way to a port of this host that carries so much each second and direction.

    Parameters
    ----------
    port : int
        Where it begins.
    to_port : int
    bytes_per_s : float
    """

    def __init__(self, port: int, to_port: int, bytes_per_s: float) -> None:
        self._port, self._to_port, self._rate = port, to_port, bytes_per_s
        self._free_s = [0.0, 0.0]

    def run(self) -> None:
        """Carry, in a thread of its own."""

        async def serve() -> None:
            server = await asyncio.start_server(self._carry, "127.0.0.1", self._port)
            await server.serve_forever()

        asyncio.run(serve())

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._to_port)
        except OSError:
            writer.close()
            return
        with suppress(OSError):
            await asyncio.gather(
                self._pass(reader, far_writer, 0), self._pass(far_reader, writer, 1)
            )

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, direction: int
    ) -> None:
        try:
            while data := await reader.read(16_384):
                now_s = time.monotonic()
                self._free_s[direction] = (
                    max(self._free_s[direction], now_s) + len(data) / self._rate
                )
                await asyncio.sleep(self._free_s[direction] - now_s)
                writer.write(data)
                await writer.drain()
        finally:
            writer.close()


@dataclass
class Bistros:
    """Upload servers: their files, links and processes."""

    folder: Path
    ports: dict[str, int]
    inner_ports: dict[str, int]
    running: dict[str, subprocess.Popen[str]]

    @classmethod
    def made(cls, folder: Path) -> Bistros:
        """Make keys and certificates."""
        ports = free_ports(2 * len(LINKS))
        found = cls(folder, dict(zip(LINKS, ports[:3], strict=True)), {}, {})
        found.inner_ports = dict(zip(LINKS, ports[3:], strict=True))
        for name in LINKS:
            (folder / f"{name}-state").mkdir()
            write_private_key(folder / f"{name}.key", new_private_key())
            certificate, key = make_certificate(name, "127.0.0.1")
            (folder / f"{name}.cert.pem").write_bytes(certificate)
            (folder / f"{name}.tls.pem").write_bytes(key)
            (folder / f"{name}.tls.pem").chmod(0o600)
        return found

    def draft(self) -> str:
        """Return the tables of the event's draft."""
        return "".join(
            f'[[bistros]]\nname = "{name}"\nurl = "https://127.0.0.1:{port}"\n'
            f'key = "{read_private_key(self.folder / f"{name}.key").public}"\n'
            f'fingerprint = "{fingerprint_of_file(self.folder / f"{name}.cert.pem")}"\n'
            for name, port in self.ports.items()
        )

    def start(self, collector: str) -> None:
        """Write the agents' files; start all, and the links to them."""
        for name, rate in LINKS.items():
            (self.folder / f"{name}.toml").write_text(
                f'format = "datacollect-agent/1"\nname = "{name}"\n'
                f'listen = "127.0.0.1:{self.inner_ports[name]}"\ncollectors = ["{collector}"]\n'
                f'tls = {{ certificate = "{name}.cert.pem", key = "{name}.tls.pem" }}\n'
                f'state = "{name}-state"\n'
                f'[accept]\nevent = "event.toml"\nfolder = "{name}-uploads"\nbytes = 1000000000\n'
                f'receipt_key = "{name}.key"\n'
            )
            self.begin(name)
            link = Link(self.ports[name], self.inner_ports[name], rate)
            threading.Thread(target=link.run, daemon=True).start()

    def begin(self, name: str) -> None:
        """Start one, again too."""
        self.running[name] = begun("agent", f"{name}.toml", folder=self.folder)

    def drop_a_row(self, people: Path) -> str:
        """Have the liar sign a batch anew without a row of it; return whose that was."""
        event = read_event((self.folder / "event.toml").read_bytes())
        for path in sorted(people.glob("*/*.receipt.json")):
            for token in read_receipt(path.read_bytes(), path.name).bistro_receipts:
                word = read_bistro_receipt(token, event)
                place = self.folder / f"{word.bistro}-uploads/served" / batch_name(word.batch)
                if word.bistro != LIAR or not place.exists():
                    continue
                true = read_batch(place.read_bytes(), event)
                rows = true.rows[[row["entry"].tobytes() != word.entry for row in true.rows]]
                key = read_private_key(self.folder / f"{LIAR}.key")
                chain = (true.number, true.previous, true.time_s)
                false = sign_batch(event, LIAR, *chain, rows, key, true.n_segments)
                beside = place.with_suffix(".new")
                beside.write_bytes(false.data)
                beside.replace(place)
                return path.parent.name
        sys.exit(f"{LIAR} holds nothing")


class People:
    """Those who hand in: a folder each, and what became of them."""

    def __init__(self, folder: Path, random_seed: int = 1) -> None:
        self.folder, self._random = folder, random.Random(random_seed)
        self.outcomes: dict[str, str] = {}

    def file_of(self, number: int) -> Path:
        """Return a person's file, made where it is absent."""
        path = self.folder / "people" / f"p{number}" / "return.bin"
        if not path.exists():
            path.parent.mkdir(parents=True)
            path.write_bytes(self._random.randbytes(self._random.randrange(1000, MOST_BYTES)))
        return path

    def hand_in(self, numbers: Iterable[int], *, commit_only: bool = False) -> None:
        """Have people hand in, several at once."""

        def one(number: int) -> None:
            ticket = self.folder / "tickets" / f"p{number}.ticket"
            event = self.folder / "event.toml"
            path = self.file_of(number)
            done = dc.upload(path, event, ticket=ticket, commit_only=commit_only).files[0]
            held = f", held by {done.held_by}" if done.held_by else ""
            self.outcomes[f"p{number}"] = f"{done.outcome}{held}"

        numbers = [*numbers]
        for number in numbers:
            self.file_of(number)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(one, numbers))

    def hand_in_by_browser(self, numbers: Iterable[int]) -> None:
        """Have people hand in on the event's page, in Chromium; by `upload` where there is none."""
        numbers = [*numbers]
        if page_people.chromium_path() is None:
            print("no Chromium here: they hand in by upload", flush=True)
            self.hand_in(numbers)
            return
        tickets = [self.folder / "tickets" / f"p{number}.ticket" for number in numbers]
        people = [*zip(map(self.file_of, numbers), tickets, strict=True)]
        event, page = self.folder / "event.toml", self.folder / "page"
        for number, line in zip(numbers, page_people.hand_in(event, page, people), strict=True):
            is_held = page_people.HELD in line
            self.outcomes[f"p{number}"] = "in time, by browser" if is_held else line

    def lose_sealed_file(self, number: int) -> None:
        """Have a person's disk return other bytes of what was sealed."""
        path = self.file_of(number).with_name("return.bin.keep")
        with path.open("r+b") as file:
            file.seek(400)
            file.write(bytes(100))

    def without_network(self, number: int) -> subprocess.Popen[bytes]:
        """Have a person hand in whose network is away; return its process."""
        code = (
            "import datacollect.net.dialling as d, datacollect as dc, sys\n"
            "from datacollect.errors import TransferError\n"
            "def away(*_, **__): raise TransferError('the network is away')\n"
            "import datacollect.net.http_asking as h; h.dial = away\n"
            "print(dc.upload(sys.argv[1], sys.argv[2], ticket=sys.argv[3]).files[0].outcome)\n"
        )
        own = self.file_of(number)
        ticket = self.folder / "tickets" / f"p{number}.ticket"
        return subprocess.Popen(
            [sys.executable, "-c", code, own, self.folder / "event.toml", ticket],
            stdout=subprocess.PIPE,
        )


def write_destination(folder: Path, port: int) -> None:
    """Write the destination's file, and what it knows of links."""
    links = "".join(
        f'[[links]]\nfrom = "{name}"\nto = "D"\nbandwidth_bytes_per_s = {rate}\n'
        for name, rate in LINKS.items()
    )
    (folder / "network.toml").write_text(
        'format = "datacollect-collection/1"\ndestination = "D"\nkey = "collector.key"\n'
        f"limits = {{ patience_s = 5 }}\n{links}"
    )
    (folder / "destination.toml").write_text(
        'format = "datacollect-destination/1"\nkey = "verdicts.key"\ncollection = "network.toml"\n'
        'identities = ["destination.identity"]\ntickets = "tickets"\nfolder = "collected"\n'
        f'receipts = "people"\nlisten = "127.0.0.1:{port}"\nmethod = "coordinated"\nevery_s = 2\n'
    )


def hold(
    folder: Path, deadline: datetime, bistros: Bistros, witness: subprocess.Popen[str]
) -> tuple[People, str]:
    """Let people hand in, before and after the deadline; return them and whom the liar dropped."""
    people = People(folder)
    away = people.without_network(AWAY)
    half = N_IN_TIME // 2
    print(f"{half} people hand in, {N_BROWSERS} in browsers", flush=True)
    with ThreadPoolExecutor(1) as beside:
        browsers = beside.submit(people.hand_in_by_browser, range(N_BROWSERS))
        people.hand_in(range(N_BROWSERS, half))
        browsers.result()
    print(f"a witness dies, and {KILLED} is killed", flush=True)
    witness.kill()
    bistros.running[KILLED].kill()
    bistros.running[KILLED].wait()
    print(f"{N_IN_TIME - half} more hand in meanwhile", flush=True)
    people.hand_in(range(half, N_IN_TIME))
    people.hand_in([LOST, SILENT], commit_only=True)
    people.lose_sealed_file(LOST)
    bistros.begin(KILLED)
    wait_s = deadline.timestamp() + 3 - time.time()
    print(f"the deadline passes in {max(wait_s, 0):.0f} s; {N_LATE} people are late", flush=True)
    time.sleep(max(wait_s, 0))
    people.hand_in([LOST])
    people.hand_in(range(SILENT + 1, AWAY))
    dropped = bistros.drop_a_row(folder / "people")
    print(f"{LIAR} signs a batch anew, without the row of {dropped}", flush=True)
    people.outcomes[f"p{AWAY}"] = away.communicate()[0].decode().strip()
    return people, dropped


def standing_at_the_end(folder: Path, wanted: int, within_s: float) -> dict[str, Any]:
    """Wait until so much is collected, or for so long; return how far the event is."""
    until_s = time.monotonic() + within_s
    while True:
        path = folder / "collected/status.json"
        found = json.loads(path.read_text()) if path.exists() else {"collected": 0}
        is_all = found["collected"] >= wanted and found["missing"]
        if is_all or time.monotonic() > until_s:
            return found
        time.sleep(1)


def verified(folder: Path) -> Counter[str]:
    """Verify all receipts in a folder that holds a copy of the event's file, and nothing else."""
    offline = folder / "offline"
    offline.mkdir()
    shutil.copy(folder / "event.toml", offline)
    for path in (folder / "people").glob("*/return.bin.receipt.json"):
        shutil.copy(path, offline / f"{path.parent.name}.receipt.json")
    found: Counter[str] = Counter()
    for path in sorted(offline.glob("*.receipt.json")):
        verdict = dc.verify_receipt(path, offline / "event.toml")
        found[verdict.outcome] += 1
        found["collected"] += verdict.collected_s is not None
    return found


def main() -> None:
    """Hold the event."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("demo/bistro"))
    folder = parser.parse_args().folder.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    began_s = time.monotonic()
    parties, bistros = Parties(folder), Bistros.made(folder)
    verdicts, collector = parties.key("verdicts"), parties.key("collector")
    port = free_ports(1)[0]
    deadline = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=DEADLINE_AFTER_S)
    parties.write_draft(
        deadline,
        f'[verdicts]\nkey = "{verdicts.public}"\nurl = "http://127.0.0.1:{port}"\n'
        + bistros.draft(),
    )
    shown(
        *("event", "new", "draft.toml", "-o", "event.toml"),
        *("--identity", "destination.identity", "--identity", "kept-offline.identity"),
        folder=folder,
    )
    names = "\n".join(["person", *(f"p{i}" for i in range(N_PEOPLE))])
    (folder / "people.csv").write_text(f"{names}\n")
    shown(
        *("event", "tickets", "event.toml", "--people", "people.csv"),
        *("--key", "organiser.key", "-o", "tickets"),
        folder=folder,
    )
    (folder / "people").mkdir()
    write_destination(folder, port)
    witnesses, services = parties.start()
    children = [*witnesses, *services]
    try:
        bistros.start(collector.public)
        run = begun(
            *("event", "run", "event.toml", "--destination", "destination.toml"), folder=folder
        )
        children.append(run)
        people, dropped = hold(folder, deadline, bistros, witnesses[0])
        in_time = sum(each.startswith("in time") for each in people.outcomes.values())
        standing_at_the_end(folder, in_time - 1, COLLECTED_AFTER_S)
        # Who asks once more learns what became of it, but for who keeps silent.
        people.hand_in(i for i in range(N_PEOPLE - 1) if i != SILENT)
        shown("event", "status", "destination.toml", folder=folder, codes=(0, 1))
        audit = ("audit", "event.toml", "--verdicts", f"http://127.0.0.1:{port}")
        sources = ("--batches", "collected/segments", "--receipts", "people")
        shown(*audit, *sources, folder=folder, codes=(0, 1))
        audited = dc.audit_event(
            folder / "event.toml",
            verdicts=f"http://127.0.0.1:{port}",
            batches=folder / "collected/segments",
            receipts=folder / "people",
        )
        standing = json.loads((folder / "collected/status.json").read_text())
        run.send_signal(signal.SIGTERM)
        print(f"the destination ends with {run.wait()}", flush=True)
        offline = verified(folder)
    finally:
        for child in [*children, *bistros.running.values()]:
            child.kill()
    print()
    assert audited.custody is not None
    counts = audited.custody.counts
    n_missing = sum(standing["missing"].values())
    rows = [
        ("", "destination", "audit"),
        ("in time", standing["in_time"] + n_missing, counts["in_time"]),
        ("collected", standing["collected"], counts["collected"]),
        ("missing", n_missing, counts["missing"]),
        ("late", "not sent", counts["late"]),
        (
            "who lied",
            ", ".join(sorted({lie["who"] for lie in standing["lies"]})),
            ", ".join(sorted({lie.who for lie in audited.evidence})),
        ),
    ]
    for row in rows:
        print("{:14}{!s:>14}{!s:>14}".format(*row))
    outcomes = Counter(each.partition(",")[0] for each in people.outcomes.values())
    for what, said in (
        ("what people were told", str(dict(outcomes))),
        ("verified offline by the event's file alone", str(dict(offline))),
        ("whose row was dropped", f"{dropped}, by {LIAR}"),
        ("seconds in all", f"{time.monotonic() - began_s:.0f}"),
    ):
        print(f"{what:46} {said}")
    if (
        {lie.who for lie in audited.evidence} != {LIAR}
        or counts["collected"] != in_time - 1
        or any(str(ours) != str(theirs) for _, ours, theirs in rows[1:4])
    ):
        sys.exit("the audit does not say what has happened")


if __name__ == "__main__":
    main()
