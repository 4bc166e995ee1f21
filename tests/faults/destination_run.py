"""Fail the n-th call of a destination: all that is there is collected, nothing goes too early.

Run as a script in a process of its own, as `log_run`. Each experiment is a copy of this process:
rounds on what two bistros serve, with the register, the log of verdicts and its witnesses. Then the
same without a fault, in the same folder: every verdict must be there and right, every file on the
disk, and no bistro was ever told to let go what the log did not hold.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from faults import shim

shim.install()

from faults.copies import BROKEN, DONE, SAID, Trial  # noqa: E402
from faults.signing import Witnesses  # noqa: E402
from faults.time_limits import limit_s  # noqa: E402
from instances.bistro_folders import FIRST_IDENTITY, HandedIn, MadeBistro, event_file  # noqa: E402
from instances.entry_times import EntryTimes  # noqa: E402
from instances.events import key_of  # noqa: E402

from datacollect.bistro.destination.opening import Opener  # noqa: E402
from datacollect.bistro.destination.register import Register  # noqa: E402
from datacollect.bistro.destination.run import destination_round  # noqa: E402
from datacollect.bistro.destination.run.destination_round import Destination  # noqa: E402
from datacollect.bistro.formats.custody.verdicts import read_covered, read_verdict  # noqa: E402
from datacollect.bistro.formats.event.file import read_event  # noqa: E402
from datacollect.bistro.formats.log.notes import Note  # noqa: E402
from datacollect.bistro.http.config import Listening, ServiceConfig  # noqa: E402
from datacollect.bistro.log_service import core  # noqa: E402
from datacollect.bistro.log_service.server import sequencer, verdict_log  # noqa: E402
from datacollect.bistro.log_service.server.verdict_log import VerdictLog  # noqa: E402
from datacollect.bistro.log_service.store import LogStore  # noqa: E402
from datacollect.errors import DatacollectError, StoreError  # noqa: E402
from datacollect.files.held_folder import Held  # noqa: E402

DATA = event_file(admission="open")
EVENT = read_event(DATA)
LOG = EVENT.verdicts
N_UPLOADS = 6
# The last one does not open, the one before is late.
UPLOADS = [HandedIn(EVENT, number, b"content %d" % number) for number in range(N_UPLOADS)]
JUNK, LATE = UPLOADS[-1], UPLOADS[-2]
JUNK.sealed = bytes(len(JUNK.sealed))
JUNK.commitment = replace(JUNK.commitment, ciphertext_sha256=sha256(JUNK.sealed).digest())
WANTED = {
    each.entry: "refused: does not open"
    if each is JUNK
    else "refused: is late"
    if each is LATE
    else "collected"
    for each in UPLOADS
}


def serve(folder: Path) -> None:
    """Lay out what bistros hold."""
    north, south = (
        MadeBistro(EVENT, name, folder / "served" / name) for name in ("north", "south")
    )
    for each in UPLOADS[:3]:
        north.push(each)
    south.push(UPLOADS[3], LATE)
    south.push(JUNK)


class Round:
    """A destination's rounds in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def bring(self, wanted: Mapping[str, Sequence[str]]) -> Collection[str]:
        try:
            self._copy(wanted)
        except OSError as error:
            raise StoreError(f"what was fetched cannot be written: {error}") from None
        return wanted.keys()

    def _copy(self, wanted: Mapping[str, Sequence[str]]) -> None:
        for name, patterns in wanted.items():
            served = self._folder / "served" / name
            for path in (path for pattern in patterns for path in served.glob(pattern)):
                to = self._folder / "fetched" / name / path.relative_to(served)
                if not to.exists():
                    # As a pull does: a name only once all is there.
                    to.parent.mkdir(parents=True, exist_ok=True)
                    beside = to.with_suffix(".part")
                    shutil.copyfile(path, beside)
                    beside.rename(to)

    def tell(self, notes: Mapping[str, Note]) -> None:
        """Hold what may go against the log, as it is on the disk by then."""
        held = {entry for entry, _ in self.logged()}
        for name, note in notes.items():
            covered = read_covered(note.data, EVENT)
            for number, entries in SEGMENTS[name].items():
                assert number not in covered or entries <= held, "let go before its time"

    def logged(self) -> Iterator[tuple[bytes, str]]:
        store = self.log._store
        for data in store.entries(0, max(self.log.published_size, 0)):
            verdict = read_verdict(data, EVENT.id)
            yield verdict.entry, f"{verdict.word}: {verdict.why}" if verdict.why else verdict.word

    def run(self) -> None:
        config = ServiceConfig(
            *(EVENT, DATA, key_of("verdicts"), Listening(("127.0.0.1", 0), None)),
            *(self._folder / "log", 0, ()),
        )
        opener = Opener(
            (str(FIRST_IDENTITY),), None, self._folder / "fetched", self._folder / "into"
        )
        with VerdictLog(config, lambda _: None) as self.log:
            register = Register(str(self._folder / "register"), EVENT)
            try:
                destination = Destination(
                    *(EVENT, key_of("verdicts"), register, opener, self.log, self.bring),
                    EntryTimes(EVENT, lambda entry: EVENT.latest_s + (entry == LATE.entry)),
                    self.tell,
                    opened_here,
                )
                for _ in range(2):
                    while destination.do_round(EVENT.collect_until_s + 1):
                        pass
            finally:
                register.close()


# By bistro and number of each segment: the entries that lie there.
SEGMENTS = {
    "north": {number: {each.entry} for number, each in enumerate(UPLOADS[:3])},
    "south": {0: {UPLOADS[3].entry, LATE.entry}, 1: {JUNK.entry}},
}


def opened_here(opener: Opener, openings):
    """Open in this process, where calls fail."""
    opener.prepare()
    for each in openings:
        yield opener.open(each)


def run(folder: Path, generation: int) -> int:
    """Do rounds once; return how that ended."""
    core.GROUP_S = core.CHECKPOINT_S = sequencer.RETRY_S = 0.005
    destination_round.LOOK_S = 0.01
    verdict_log.WitnessClient = Witnesses(folder, EVENT, LOG)
    VerdictLog.record.__defaults__ = (limit_s(20.0) if generation else 0.3,)
    try:
        Round(folder).run()
    except DatacollectError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return SAID if str(error) else BROKEN
    return DONE


def lost_or_wrong(folder: Path) -> str:
    """Say what is wrong after a start without a fault."""
    said: dict[bytes, list[str]] = {}
    store = LogStore(Held(folder / "log"), LOG.text)
    try:
        for data in store.entries(0, 99):
            verdict = read_verdict(data, EVENT.id)
            words = f"{verdict.word}: {verdict.why}" if verdict.why else verdict.word
            said.setdefault(verdict.entry, []).append(words)
    finally:
        store.close()
    if said != {entry: [words] for entry, words in WANTED.items()}:
        return f"the log says {sorted((entry.hex()[:8], each) for entry, each in said.items())}"
    files = {path.relative_to(folder / "into") for path in (folder / "into").rglob("*.pdf")}
    wanted = {Path(e.entry.hex(), "return.pdf") for e in UPLOADS if WANTED[e.entry] == "collected"}
    if files != wanted:
        return f"there are the files {sorted(map(str, files))}"
    for each in UPLOADS[:4]:
        if (folder / "into" / each.entry.hex() / "return.pdf").read_bytes() != each.content:
            return f"{each.entry.hex()} has other bytes"
    left = [path.name for path in (folder / "into").iterdir() if path.is_file()]
    return f"there is left: {left}" if left else ""


TRIAL = Trial("destination", serve, run, lost_or_wrong)


if __name__ == "__main__":
    sys.stdout.flush()
    code = TRIAL.carry_out()
    sys.stdout.flush()
    os._exit(code)
