"""An event from its draft to proofs of what became of every file, on this machine: four minutes.

    python experiments/bistro_demo.py FOLDER

Two services, of which one acknowledges entries that it never logs, and uses the tickets that it
hears at the other; four witnesses, of whom one dies and one backdates by an hour; three bistros on
limited links, of which one is killed and comes back, and one drops a person's row from what it has
signed; a destination that collects while people still push, and whose disk is lost midway: its log
of verdicts is made again from a mirror, and its files are fetched once more; 200 people, five of
them in Chromium, some of whom are late. One has lost its sealed file, one sends it only once the
destination misses it, one finds no service. No root, no other host.
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
import textwrap
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
from timestamp_demo import DATACOLLECT, Parties, begun, free_ports, shown

import datacollect as dc
from datacollect.bistro.formats.custody.batches import read_batch, sign_batch
from datacollect.bistro.formats.custody.bistro_receipt import read_bistro_receipt
from datacollect.bistro.formats.custody.segments import batch_name
from datacollect.bistro.formats.event.file import read_event
from datacollect.bistro.formats.log.acknowledgement import acknowledge
from datacollect.bistro.formats.log.commit import MOST_COMMIT_BYTES, read_commit
from datacollect.bistro.formats.receipt.receipt import acknowledgements_body, read_receipt
from datacollect.bistro.http.config import Listening
from datacollect.bistro.http.exchange import JSON_TYPE, TEXT_TYPE, Reply
from datacollect.bistro.http.web import WebServer, body_of, bound_socket
from datacollect.net.http_asking import Asker
from datacollect.net.keys import new_private_key, read_private_key, write_private_key
from datacollect.net.tls import fingerprint_of_file, make_certificate

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aiohttp.web import BaseRequest

N_PEOPLE, N_LATE = 200, 12
# So many of them in a browser, on the event's page.
N_BROWSERS = 5
# By their numbers: who loses what was sealed, sends it at the end only, finds no service.
N_IN_TIME = N_PEOPLE - N_LATE - 3
LOST, SILENT, AWAY = N_IN_TIME, N_IN_TIME + 1, N_PEOPLE - 1
AT_ONCE = 6
# By name: what the bistro's link carries, bytes per second.
LINKS = {"north": 4e6, "south": 2e6, "west": 1e6}
LIAR, KILLED = "west", "north"
# Of the entries that it is asked to log, the lying service drops one of so many.
ONE_OF = 4
DEADLINE_AFTER_S, COLLECTED_AFTER_S = 90, 120
MOST_BYTES = 200_000
WIDTH = 78


def say(text: str) -> None:
    """Tell what happens, and when, in the event."""
    first = f"{time.monotonic() - BEGAN_S:4.0f} s  "
    print(textwrap.fill(first + text, WIDTH, subsequent_indent=" " * len(first)), flush=True)


BEGAN_S = time.monotonic()


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


class LyingService:
    """A service that drops entries that it acknowledges, and tries their tickets elsewhere.

    Parameters
    ----------
    parties : Parties
        Of whom it is the second service; its log is kept by an honest one behind it.
    """

    def __init__(self, parties: Parties) -> None:
        self._log = read_event((parties.folder / "event.toml").read_bytes()).services[1].log
        self._key = parties.service_keys[1]
        self._other = f"http://127.0.0.1:{parties.service_ports[0]}"
        self._outer_port, inner_port = parties.service_ports[1], free_ports(1)[0]
        parties.service_ports[1] = inner_port
        self._inner = f"http://127.0.0.1:{inner_port}"
        self.n_asked, self.n_dropped, self.n_used_elsewhere = 0, 0, 0

    @property
    def name(self) -> str:
        """The origin of its log."""
        return self._log.name

    def run(self) -> None:
        """Serve, in a thread of its own."""

        async def serve() -> None:
            listening = Listening(("127.0.0.1", self._outer_port), None)
            await WebServer(listening, self._handle).start(bound_socket(listening))
            await asyncio.Event().wait()

        asyncio.run(serve())

    async def _handle(self, request: BaseRequest) -> Reply:
        body = await body_of(request, MOST_COMMIT_BYTES) if request.method == "POST" else None
        if request.path == "/commit" and body is not None:
            self.n_asked += 1
            if self.n_asked % ONE_OF == 0:
                return await asyncio.to_thread(self._drop, body)
        return await asyncio.to_thread(self._pass_on, request.path, body)

    def _drop(self, body: bytes) -> Reply:
        entry = read_commit(body).entries[0]
        with Asker(self._other) as asker:
            # What it has heard, word for word: another entry it cannot sign for.
            taken = asker.post("/commit", body, JSON_TYPE).status == 200
        self.n_used_elsewhere += taken
        self.n_dropped += 1
        word = acknowledge(self._log.name, entry, 0, int(time.time()), self._key)
        return Reply(200, acknowledgements_body([word], is_list=False), JSON_TYPE)

    def _pass_on(self, path: str, body: bytes | None) -> Reply:
        with Asker(self._inner) as asker:
            answer = asker.get(path) if body is None else asker.post(path, body, TEXT_TYPE)
        content_type = answer.headers.get("content-type", TEXT_TYPE)
        again_s = None if answer.retry_after_s is None else int(answer.retry_after_s)
        return Reply(answer.status, answer.body, content_type, again_s)


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
            say("no Chromium here: they hand in by upload")
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


class Destination:
    """Who collects: its files, its process, and the disk that it loses.

    Parameters
    ----------
    folder : Path
    port : int
        At which it serves its log of verdicts.
    """

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.url = folder, f"http://127.0.0.1:{port}"
        links = "".join(
            f'[[links]]\nfrom = "{name}"\nto = "D"\nbandwidth_bytes_per_s = {rate}\n'
            for name, rate in LINKS.items()
        )
        (folder / "network.toml").write_text(
            'format = "datacollect-collection/1"\ndestination = "D"\nkey = "collector.key"\n'
            f"limits = {{ patience_s = 5 }}\n{links}"
        )
        (folder / "destination.toml").write_text(
            'format = "datacollect-destination/1"\nkey = "verdicts.key"\n'
            'collection = "network.toml"\nidentities = ["destination.identity"]\n'
            'tickets = "tickets"\nfolder = "collected"\nreceipts = "people"\n'
            f'listen = "127.0.0.1:{port}"\nmethod = "coordinated"\nevery_s = 2\n'
            'mirrors = ["mirror"]\n'
        )
        (folder / "mirror").mkdir()

    def begin(self) -> None:
        """Start it, again too."""
        run = ("event", "run", "event.toml", "--destination", "destination.toml")
        self.running = begun(*run, folder=self.folder)

    def standing(self) -> dict[str, Any]:
        """Return how far the event is, as it says."""
        path = self.folder / "collected/status.json"
        empty: dict[str, Any] = {"collected": 0, "missing": {}, "n_verdicts": 0}
        return json.loads(path.read_text()) if path.exists() else empty

    def wait_for(self, wanted: int, *, is_all_read: bool = False) -> dict[str, Any]:
        """Wait until so much is collected, or for so long; return how far the event is."""
        until_s = time.monotonic() + COLLECTED_AFTER_S
        while True:
            found = self.standing()
            is_there = found["collected"] >= wanted and found["n_verdicts"] >= wanted
            is_read = not is_all_read or self.lacks_nothing_but_honesty()
            if (is_there and is_read) or time.monotonic() > until_s:
                return found
            time.sleep(1)

    def lacks_nothing_but_honesty(self) -> bool:
        """Whether `event status` names nothing that is missing, but for who has lied."""
        done = subprocess.run(
            [DATACOLLECT, "event", "status", "destination.toml", "--json"],
            cwd=self.folder,
            check=False,
            stdout=subprocess.PIPE,
        )
        return {each["kind"] for each in json.loads(done.stdout)["lacking"]} <= {"lie"}

    def lose_disk(self) -> None:
        """Kill it, and delete all that it had; make it again from the mirror."""
        before = self.standing()
        n_files = sum(path.is_file() for path in (self.folder / "collected/files").rglob("*"))
        self.running.kill()
        self.running.wait()
        shutil.rmtree(self.folder / "collected")
        say(
            f"the destination's disk is lost: {n_files} files, its register, its log of "
            f"{before['n_verdicts']} verdicts"
        )
        recover = ("event", "recover", "event.toml", "--destination", "destination.toml")
        shown(*recover, "--from", "mirror", folder=self.folder)
        self.begin()


def hold(
    folder: Path,
    deadline: datetime,
    bistros: Bistros,
    witness: subprocess.Popen[str],
    destination: Destination,
) -> tuple[People, str]:
    """Let people hand in, before and after the deadline; return them and whom the liar dropped."""
    people = People(folder)
    away = people.without_network(AWAY)
    half = N_IN_TIME // 2
    say(f"{half} people hand in, {N_BROWSERS} of them in browsers")
    with ThreadPoolExecutor(1) as beside:
        browsers = beside.submit(people.hand_in_by_browser, range(N_BROWSERS))
        people.hand_in(range(N_BROWSERS, half))
        browsers.result()
    say(f"a witness dies, and bistro {KILLED} is killed; {N_IN_TIME - half} more hand in")
    witness.kill()
    bistros.running[KILLED].kill()
    bistros.running[KILLED].wait()
    with ThreadPoolExecutor(1) as beside:
        more = beside.submit(people.hand_in, range(half, N_IN_TIME))
        destination.lose_disk()
        more.result()
    people.hand_in([LOST, SILENT], commit_only=True)
    people.lose_sealed_file(LOST)
    bistros.begin(KILLED)
    wait_s = deadline.timestamp() + 3 - time.time()
    say(f"the deadline passes in {max(wait_s, 0):.0f} s; {N_LATE} people are late")
    time.sleep(max(wait_s, 0))
    people.hand_in([LOST])
    people.hand_in(range(SILENT + 1, AWAY))
    dropped = bistros.drop_a_row(folder / "people")
    say(f"bistro {LIAR} signs a batch anew, without the row of {dropped}")
    people.outcomes[f"p{AWAY}"] = away.communicate()[0].decode().strip()
    return people, dropped


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
    parties, bistros = Parties(folder), Bistros.made(folder)
    verdicts, collector = parties.key("verdicts"), parties.key("collector")
    destination = Destination(folder, free_ports(1)[0])
    deadline = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=DEADLINE_AFTER_S)
    parties.write_draft(
        deadline,
        f'[verdicts]\nkey = "{verdicts.public}"\nurl = "{destination.url}"\n' + bistros.draft(),
    )
    new = ("event", "new", "draft.toml", "-o", "event.toml")
    shown(*new, "--identity", "destination.identity", folder=folder, last=0)
    names = "\n".join(["person", *(f"p{i}" for i in range(N_PEOPLE))])
    (folder / "people.csv").write_text(f"{names}\n")
    tickets = ("event", "tickets", "event.toml", "--people", "people.csv")
    shown(*tickets, "--key", "organiser.key", "-o", "tickets", folder=folder, last=0)
    (folder / "people").mkdir()
    liar = LyingService(parties)
    witnesses, services = parties.start()
    threading.Thread(target=liar.run, daemon=True).start()
    children = [*witnesses, *services]
    try:
        bistros.start(collector.public)
        destination.begin()
        children.append(begun("event", "mirror", "event.toml", "--into", "mirror", folder=folder))
        people, dropped = hold(folder, deadline, bistros, witnesses[0], destination)
        in_time = sum(each.startswith("in time") for each in people.outcomes.values())
        destination.wait_for(in_time - 1)
        missing = (folder / "collected/missing.csv").read_text().splitlines()[1:]
        say(f"{len(missing)} entry is missing: p{SILENT} has not sent it; it is told, and sends")
        people.hand_in([SILENT])
        destination.wait_for(in_time, is_all_read=True)
        # Who asks once more learns what became of it.
        people.hand_in(range(N_PEOPLE - 1))
        shown("event", "status", "destination.toml", "--verify", folder=folder, codes=(1,), last=5)
        sources = ("--batches", "collected/segments", "--receipts", "people")
        audit = ("audit", "event.toml", "--verdicts", destination.url, *sources)
        shown(*audit, folder=folder, codes=(1,), last=7)
        audited = dc.audit_event(
            folder / "event.toml",
            verdicts=destination.url,
            batches=folder / "collected/segments",
            receipts=folder / "people",
        )
        standing = destination.standing()
        destination.running.send_signal(signal.SIGTERM)
        destination.running.wait()
        offline = verified(folder)
    finally:
        for child in [*children, *bistros.running.values(), destination.running]:
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
    ]
    for row in rows:
        print("{:14}{!s:>14}{!s:>14}".format(*row))
    outcomes = Counter(each.partition(",")[0] for each in people.outcomes.values())
    accused = {lie.who for lie in audited.evidence}
    for what, said in (
        ("who lied, by evidence", ", ".join(sorted(accused))),
        (f"{liar.name.partition('/')[0]} dropped", f"{liar.n_dropped} of {liar.n_asked}"),
        ("tickets that it used elsewhere", liar.n_used_elsewhere),
        ("whose row was dropped", f"{dropped}, by {LIAR}"),
        ("what people were told", ", ".join(f"{n} {said}" for said, n in outcomes.items())),
        ("verified offline", ", ".join(f"{n} {said}" for said, n in offline.items())),
        ("seconds in all", f"{time.monotonic() - BEGAN_S:.0f}"),
    ):
        print(f"{what:32} {said}")
    if (
        accused != {LIAR, liar.name}
        or liar.n_used_elsewhere
        or not counts["collected"] == offline["collected"] == in_time
        or any(str(ours) != str(theirs) for _, ours, theirs in rows[1:4])
    ):
        sys.exit("the audit does not say what has happened")


if __name__ == "__main__":
    main()
