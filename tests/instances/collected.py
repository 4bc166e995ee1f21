"""A destination's folder after its event: two files collected, the register, what was left."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

from instances.bistro_folders import FIRST_IDENTITY, HandedIn, MadeBistro, event_file
from instances.events import DEADLINE_S

from datacollect.bistro.destination.opening import Opener
from datacollect.bistro.destination.place import Place
from datacollect.bistro.destination.register import Register
from datacollect.bistro.destination.run.standing import Standing, write_standing
from datacollect.bistro.formats.custody.batches import read_batch
from datacollect.bistro.formats.custody.segments import index_name, read_index, segment_name
from datacollect.bistro.formats.event.file import read_event

EVENT_DATA = event_file(admission="open")
EVENT = read_event(EVENT_DATA)
# Ten minutes after all is over.
NOW_S = EVENT.collect_until_s + 600
CONTENTS = {1: b"income", 2: b"and more"}


class Collected:
    """What `event run` leaves, made by its own parts; some may be left out, or differ.

    Attributes
    ----------
    folder, register : Path
    uploads : dict of int to HandedIn
        By number.
    standing : Standing
    """

    def __init__(
        self,
        folder: Path,
        place: str | None = None,
        here: Place | None = None,
        *,
        is_logged: bool = True,
        opened: tuple[int, ...] = (1, 2),
        times_s: dict[int, int] | None = None,
        names: dict[int, str] | None = None,
    ) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.place = str(folder / "register") if place is None else place
        north = MadeBistro(EVENT, "north", folder / "segments/north")
        self.uploads = {
            n: HandedIn(EVENT, n, content, name=(names or {}).get(n, "return.pdf"))
            for n, content in CONTENTS.items()
        }
        north.push(*self.uploads.values())
        opener = Opener((str(FIRST_IDENTITY),), None, folder / "segments", folder / "files")
        opener.prepare()
        with closing(Register(self.place, EVENT, here or Place.of(folder))) as register:
            batch = folder.glob("segments/north/batches/*.batch")
            register.held.take_batch(read_batch(next(batch).read_bytes(), EVENT))
            served = folder / "segments/north"
            register.held.take_index("north", 0, read_index((served / index_name(0)).read_bytes()))
            register.held.take_segment("north", 0, (served / segment_name(0)).stat().st_size)
            at_s = times_s or {}
            register.take_times(
                (each.entry, at_s.get(n, DEADLINE_S)) for n, each in self.uploads.items()
            )
            register.judge_times()
            wanted = {self.uploads[n].entry for n in opened}
            for opening in [*register.held.to_open()]:
                if opening.upload.commitment.entry in wanted:
                    register.opened(*opener.open(opening))
            if is_logged:
                register.logged(register.to_log())
            counts = register.counts()._asdict()
        self.standing = Standing(
            event=EVENT.id.hex(),
            name="Tax",
            time_s=NOW_S,
            deadline_s=EVENT.deadline_s,
            collect_until_s=EVENT.collect_until_s,
            **counts,
            missing={},
            lies=(),
            bistros=(),
            predicted_s=None,
            verdicts_url=None,
            n_verdicts=2,
            logs=(),
            arrivals=(),
            arrivals_each_s=1,
            is_whole=True,
            contacts={"north": NOW_S, "south": NOW_S},
            latest_s=EVENT.latest_s,
            unread=(),
        )
        self.leave()

    def leave(self, listed=(), **changes: object) -> None:
        """Leave how far the event is, and what is missing."""
        write_standing(replace(self.standing, **changes), listed, self.folder)

    def file(self, number: int) -> Path:
        """Return the file that was collected."""
        return self.folder / "files" / self.uploads[number].entry.hex() / "return.pdf"
