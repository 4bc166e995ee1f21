"""Fail the n-th call of a bistro: what it has signed is there, and goes on being there.

Run as a script in a process of its own, as `log_run`. Each experiment is a copy of this process:
the bistro of a folder, people who push in parts and come again, a destination that fetches what is
closed and says that it may go. Then the same without a fault, in the same folder. After each start,
however it ended, no index names bytes that are not there, and the batches' chain has no gap.
"""

from __future__ import annotations

import hashlib
import sys
import time
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from faults import shim

shim.install()

from faults.copies import BROKEN, DONE, SAID, Trial  # noqa: E402
from faults.time_limits import Waiting, limit_s  # noqa: E402
from instances.bistros import PUSH, bistro_event, commitment_to, metadata  # noqa: E402
from instances.events import key_of  # noqa: E402

from datacollect.bistro.formats.custody.batches import FIRST, opening, read_batch  # noqa: E402
from datacollect.bistro.formats.custody.bistro_receipt import read_bistro_receipt  # noqa: E402
from datacollect.bistro.formats.custody.segments import number_of, read_index  # noqa: E402
from datacollect.bistro.formats.custody.verdicts import Covered, ranges_of  # noqa: E402
from datacollect.bistro.formats.event.file import read_event  # noqa: E402
from datacollect.bistro.formats.log.checkpoints import log_key  # noqa: E402
from datacollect.bistro.http.published import Found  # noqa: E402
from datacollect.bistro.upload_server import amending, core  # noqa: E402
from datacollect.bistro.upload_server import server as bistro  # noqa: E402
from datacollect.bistro.upload_server.requests import POSTS  # noqa: E402
from datacollect.bistro.upload_server.table import AcceptConfig  # noqa: E402
from datacollect.bistro.upload_server.tus import Tus  # noqa: E402
from datacollect.errors import DatacollectError  # noqa: E402
from datacollect.net.keys import write_private_key  # noqa: E402

N_UPLOADS, BYTES, PART_BYTES = 6, 1000, 600
PAUSE_S = 0.02
# Whoever has a fault waits without result; without one, slow machines take a while.
PATIENCE_S = (1.0, 20.0)
LOG = log_key("dest.example/0123456789abcdef", key_of("verdicts").public).text


class Request:
    """A request without a connection, and what it is answered."""

    address = ""

    def __init__(self, method: str, target: str, body: bytes = b"", **headers: str) -> None:
        self.method, self.target, self._body = method, target, body
        self.headers = {"tus-resumable": "1.0.0"}
        self.headers |= {name.replace("_", "-"): value for name, value in headers.items()}
        self.body_bytes = len(body)
        self.status, self.found, self.why = 0, {}, b""

    def read(self) -> bytes:
        data, self._body = self._body, b""
        return data

    def answer(self, status: int, headers=(), body: bytes = b"") -> None:
        self.status, self.why = status, body
        self.found = {name.lower(): value for name, value in headers}

    def hold_place(self, holds: bool) -> None:
        """There are places enough."""

    def cut(self, why: str) -> None:
        raise AssertionError(why)


def asked(tus: Tus, *args, **headers) -> Request:
    request = Request(*args, **headers)
    tus.answer(request)
    assert request.status in (200, 201, 204, 404, 409, 500, 507), (request.status, request.why)
    return request


def data_of(i: int, generation: int) -> bytes:
    return hashlib.sha256(f"{generation}/{i}".encode()).digest() * (BYTES // 32)


def pushed(tus: Tus, event, data: bytes, patience_s: float) -> str | None:
    """Push in parts, coming again where that is asked for; return the receipt."""
    commitment = commitment_to(event, data)
    text = metadata(event, commitment)
    path = ""
    waiting = Waiting(patience_s)
    while not waiting.is_over():
        if path:
            found = asked(tus, "HEAD", path)
        else:
            found = asked(tus, "POST", "/tus/", upload_length=str(len(data)), upload_metadata=text)
            path = found.found.get("location", "")
        while found.status in (200, 201, 204):
            if "datacollect-receipt" in found.found:
                return found.found["datacollect-receipt"]
            at = int(found.found["upload-offset"])
            part = data[at : at + PART_BYTES]
            found = asked(tus, "PATCH", path, part, content_type=PUSH, upload_offset=str(at))
        path = "" if found.status == 404 else path
        time.sleep(PAUSE_S)
    return None


class Fetched:
    """What a destination has fetched of a bistro's folder."""

    def __init__(self, folder: Path, event) -> None:
        self._served, self._copy = folder / "up" / "served", folder / "fetched"
        self._event = event

    def fetch(self) -> None:
        """Copy what is closed; what is there already never changes."""
        for path in sorted(self._served.glob("*/*")):
            assert number_of(path.relative_to(self._served)) is not None, path
            place = self._copy / path.relative_to(self._served)
            place.parent.mkdir(parents=True, exist_ok=True)
            data = path.read_bytes()
            if place.exists():
                assert place.read_bytes() == data, f"{path} has changed"
            # A bistro that is killed meanwhile must not leave half a copy behind.
            beside = self._copy / path.name
            beside.write_bytes(data)
            beside.replace(place)

    def require_whole(self) -> None:
        """No index names bytes that are not there, and batches follow one another."""
        for path in self._served.glob("segments/*.index"):
            pieces = read_index(path.read_bytes())
            segment = path.with_suffix(".segment")
            assert segment.exists(), f"{segment} is not there, and its index is"
            assert pieces["n_bytes"].sum() == segment.stat().st_size
        previous = FIRST
        for number, path in enumerate(sorted(self._served.glob("batches/*"))):
            batch = read_batch(path.read_bytes(), self._event)
            assert (batch.number, batch.previous) == (number, previous), "a gap in the chain"
            assert opening(batch.rows, self._event).all()
            previous = batch.digest

    def lacks(self, tokens: list[str]) -> str:
        """Say what is not there of what was signed."""
        rows, found, of = {}, {}, {}
        for path in sorted(self._copy.glob("batches/*")):
            batch = read_batch(path.read_bytes(), self._event)
            rows |= {bytes(row["entry"]): batch.number for row in batch.rows}
            of |= {bytes(row["entry"]): int(row["upload"]) for row in batch.rows}
        for path in sorted(self._copy.glob("segments/*.index")):
            segment = path.with_suffix(".segment").read_bytes()
            for piece in read_index(path.read_bytes()):
                at, start, n = (int(piece[f]) for f in piece.dtype.names[1:])
                data = found.setdefault(int(piece["upload"]), bytearray(BYTES))
                data[at : at + n] = segment[start : start + n]
        for token in tokens:
            word = read_bistro_receipt(token, self._event)
            if rows.get(word.entry) != word.batch:
                return f"batch {word.batch} lacks a row, it is in {rows.get(word.entry)}"
            data = bytes(found.get(of.get(word.entry), b""))[: word.size]
            if hashlib.sha256(data).digest() != word.sha256:
                return f"bytes are lost of what batch {word.batch} says"
        return ""

    def covered(self) -> Covered:
        numbers = [int(path.stem) for path in self._copy.glob("segments/*.index")]
        n_batches = len([*self._copy.glob("batches/*")])
        return Covered(self._event.id, "north", 1, n_batches, ranges_of(numbers), int(time.time()))


def serve(folder: Path, generation: int) -> int:
    event = read_event((folder / "event.toml").read_bytes())
    config = AcceptConfig(
        folder / "event.toml", folder / "up", 10**9, folder / "north.receipts", 3600.0, 0.0
    )
    fetched, signed = Fetched(folder, event), folder / "acknowledged"
    patience_s = limit_s(PATIENCE_S[generation])
    with closing(bistro.Bistro(config, lambda _: None)) as north:
        tus = Tus(north)
        for i in range(N_UPLOADS):
            token = pushed(tus, event, data_of(i, generation), patience_s)
            if token is None:
                return SAID
            with signed.open("a") as file:
                file.write(token + "\n")
            if i == N_UPLOADS // 2:  # what was collected goes while others still push
                if not is_collected(fetched, signed, patience_s):
                    return SAID
                note = fetched.covered().signed(event, key_of("verdicts")).data
                north.answer_posted(POSTS["/covered"], Request("POST", "/covered", note))
        return DONE if is_collected(fetched, signed, patience_s) else SAID


def is_collected(fetched: Fetched, signed: Path, patience_s: float) -> bool:
    waiting = Waiting(patience_s)
    while not waiting.is_over():
        fetched.fetch()
        if not fetched.lacks(signed.read_text().split()):
            return True
        time.sleep(PAUSE_S)
    return False


def run(folder: Path, generation: int) -> int:
    """Serve once; return how that ended."""
    core.CLOSED_AFTER_S = core.BATCH_AFTER_S = bistro.TICK_S = bistro.AGAIN_S = 0.01
    amending.amendments_of = lambda *_: Found([], {}, {})
    try:
        return serve(folder, generation)
    except DatacollectError as error:
        return SAID if str(error) else BROKEN


def prepare(folder: Path) -> None:
    """Make the folder of an event with a bistro."""
    bistro_event(folder, verdicts={"log": LOG}, limits={"commitments_per_ticket": 1000})
    write_private_key(folder / "north.receipts", key_of("north"))


def fetched_of(folder: Path) -> Fetched:
    return Fetched(folder, read_event((folder / "event.toml").read_bytes()))


def lost(folder: Path) -> str:
    """Say what is not there of what was signed."""
    fetched = fetched_of(folder)
    fetched.fetch()
    return fetched.lacks((folder / "acknowledged").read_text().split())


TRIAL = Trial(
    "bistro", prepare, run, lost, lambda folder: fetched_of(folder).require_whole(), is_ended=True
)


if __name__ == "__main__":
    sys.exit(TRIAL.carry_out())
