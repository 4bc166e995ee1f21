"""Who of 100 000 people has handed in what: how long does `event list` take?

    python experiments/list_speed.py [--people 100000]

Makes the folder of a destination as `event run` leaves it, with a file on the disk for nine people
of ten; of the others half have a timestamp alone, and half have nothing. Prints the processor time
of the command, beside that of reading each file's name, length and time alone, which it must.
"""

from __future__ import annotations

import argparse
import os
import resource
import secrets
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from datacollect.bistro.destination.marking import MarkKeys
from datacollect.bistro.destination.missing import WITHOUT_UPLOAD, Missing
from datacollect.bistro.destination.place import Place
from datacollect.bistro.destination.register import Register
from datacollect.bistro.destination.run.standing import Standing, write_standing
from datacollect.bistro.formats.event.tickets import new_ticket, number_of, token_hash
from datacollect.bistro.formats.log.entry import MARKED_BYTES
from datacollect.bistro.one_host.places import Places
from datacollect.bistro.one_host.servers import destination_text
from datacollect.bistro.one_host.setting_up import (
    KEYS,
    Wanted,
    make_event,
    make_folder,
    make_keys,
)
from datacollect.bistro.organiser.ticket_files import LIST, Listed, write_ticket_list
from datacollect.net.keys import PrivateKey, read_private_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.bistro.formats.event.event import Event

CONTENT = b"an essay\n"


def made_event(places: Places) -> Event:
    """Make an event whose deadline is tomorrow."""
    make_folder(places)
    make_keys(places, KEYS)
    deadline = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)
    return make_event(places, Wanted("essay", deadline, "UTC", ("127.0.0.1", 8443), 10**8))


def made_people(places: Places, event: Event, n_people: int) -> Sequence[tuple[Listed, bytes]]:
    """Make a ticket and an entry for each; write the list of tickets."""
    organiser = read_private_key(places.key("organiser"))
    marks = MarkKeys(event, read_private_key(places.key("verdicts")))
    found = []
    for i in range(n_people):
        key = PrivateKey(secrets.token_bytes(32))
        number = number_of(key.public)
        token = new_ticket(event, number, key.seed, organiser).token
        beginning = secrets.token_bytes(MARKED_BYTES)
        mark = marks.of(key.public)
        assert mark is not None
        row = Listed(f"Person {i}", number.hex(), token_hash(token).hex(), token)
        found.append((row, beginning + mark.mark(beginning)))
    places.tickets.mkdir()
    write_ticket_list(places.tickets / LIST, (row for row, _ in found))
    return found


def left(places: Places, event: Event, people: Sequence[tuple[Listed, bytes]]) -> None:
    """Leave a register, files and lists as `event run` does."""
    folder = places.folder / "collected"
    here = Place.of(folder)
    handed_in = [each for i, each in enumerate(people) if i % 10]
    bare = [each for i, each in enumerate(people) if i % 20 == 0]
    with closing(Register(str(folder / "register"), event, here)):
        pass
    with closing(apsw.Connection(str(folder / "register" / "register.sqlite"))) as database:
        database.execute("BEGIN")
        for row, entry in handed_in:
            file = f"{entry.hex()}/essay.txt"
            path = folder / "files" / file
            path.parent.mkdir(parents=True)
            path.write_bytes(CONTENT)
            database.execute(
                "INSERT INTO entries (entry, time_s, word, why, is_logged, ticket, file) "
                "VALUES (?, ?, 'collected', '', 1, ?, ?)",
                (entry, event.deadline_s - 60, row.number, file),
            )
            database.execute(
                "INSERT INTO kept VALUES (?, ?, ?, ?, ?, ?, ?)",
                (entry, here.host, here.machine, here.folder, file, len(CONTENT), bytes(32)),
            )
        database.execute("COMMIT")
    standing = Standing(
        event=event.id.hex(),
        name=event.name,
        time_s=int(time.time()),
        deadline_s=event.deadline_s,
        collect_until_s=event.collect_until_s,
        in_time=len(people),
        late=0,
        collected=len(handed_in),
        refused=0,
        superseded=0,
        waiting=len(bare),
        missing={},
        lies=(),
        bistros=(),
        predicted_s=None,
        verdicts_url=None,
        n_verdicts=len(handed_in),
        logs=(),
        arrivals=(),
        arrivals_each_s=1,
        is_whole=True,
        contacts={},
        latest_s=event.latest_s,
        unread=(),
        event_file=str(places.event),
    )
    missing = [Missing(entry, WITHOUT_UPLOAD, (), None) for _, entry in bare]
    write_standing(standing, missing, folder)


def main() -> None:
    """Make all, run the command, print the line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=100_000)
    parser.add_argument("--profile", metavar="FILE", help="of cProfile, of a run more")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as into:
        places = Places(Path(into) / "essay")
        event = made_event(places)
        left(places, event, made_people(places, event, given.people))
        places.destination_file.write_text(destination_text(places, ""))
        command = ["-m", "datacollect", "event", "list", str(places.destination_file)]
        table = ["-o", str(places.folder / "list.csv"), "--force"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        began_s = time.monotonic()
        done = subprocess.run(
            [sys.executable, *command, *table], check=False, capture_output=True, text=True
        )
        taken_s = time.monotonic() - began_s
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        processor_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        assert done.returncode == 1, done.stderr
        began_s = time.process_time()
        for folder in os.scandir(places.folder / "collected/files"):
            os.lstat(f"{folder.path}/essay.txt")
        looking_s = time.process_time() - began_s
        print(" ".join(done.stdout.split("\n")))
        print(
            f"event list of {given.people:,} people: {processor_s:.2f} s of a processor, "
            f"{taken_s:.2f} s in all; looking at the files alone {looking_s:.2f} s; load "
            f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"
        )
        if given.profile:
            profiled = [sys.executable, "-m", "cProfile", "-o", given.profile]
            subprocess.run([*profiled, *command, *table], check=False, capture_output=True)


if __name__ == "__main__":
    main()
