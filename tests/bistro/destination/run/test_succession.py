"""A log of verdicts that never goes on is succeeded by another, and the event ends as it should."""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from instances.bistros import NAMES
from instances.events import key_of
from instances.lost_destinations import FILES, Collecting, collecting_world
from instances.timestamping import WITHIN_S, until

from datacollect.bistro.formats.event.amendments import amended
from datacollect.bistro.formats.receipt.receipt import read_amendments
from datacollect.bistro.formats.receipt.verify import published
from datacollect.net.keys import write_private_key

DESTINATION = ("--destination", "destination.toml")


class EventRun:
    """`event run` in a process of its own."""

    def __init__(self, world) -> None:
        self._world = world
        self.running: subprocess.Popen | None = None

    def start(self) -> None:
        with (self._world.folder / "run.log").open("ab") as log:
            self.running = subprocess.Popen(
                self._world.command("event", "run", "event.toml", *DESTINATION),
                cwd=self._world.folder,
                env=self._world.environment,
                stdout=log,
                stderr=log,
            )

    def kill(self) -> None:
        """End it at once."""
        if self.running is not None:
            self.running.kill()
            self.running.wait(WITHIN_S)
            self.running = None


@pytest.fixture
def collecting(tmp_path, capsys):
    """An event of which two files were collected, and two lie at bistros."""
    with collecting_world(tmp_path) as world:
        found, run = Collecting(world, capsys), EventRun(world)
        # Without one that the service writes itself: what is lost here none has.
        file = world.folder / "destination.toml"
        file.write_text(file.read_text().replace('mirrors = ["own"]\n', ""))
        try:
            for name in NAMES:
                found.start_bistro(name)
            yield found, run
        finally:
            run.kill()
            for name in [*found.bistros]:
                found.stop_bistro(name)


def loaded(folder: Path, event):
    """Return an event as the file of amendments beside it has changed it."""
    data = (folder / "event.amendments.json").read_bytes()
    return amended(event, published(event, read_amendments(data, event.id), []))


def restart_witnesses(world) -> None:
    for i in range(4):
        world.stop_witness(i)
    world.start_witnesses()


@pytest.mark.slow
@pytest.mark.long
def test_dead_log_is_succeeded_and_every_receipt_verifies(collecting):
    found, run = collecting
    world, folder = found.world, found.folder
    found.hand_in("a.txt", "b.txt")
    run.start()
    until(lambda: found.status().get("n_verdicts") == 2, "two verdicts")
    found.hand_in("a.txt", "b.txt")
    before = {name: receipt(folder, name)["collected"] for name in ("a.txt", "b.txt")}
    assert all(before.values())
    assert found.told("event", "mirror", "event.toml", "--into", "mirror", "--once")[0] == 0
    for name in ("c.txt", "d.txt"):
        (folder / name).write_bytes(FILES[name])
        found.told("upload", name, "--event", "event.toml", "--commit-only")
    # Two of four witnesses sign two entries that nobody else ever sees.
    world.stop_witness(2)
    world.stop_witness(3)
    found.hand_in("c.txt", "d.txt")
    until(lambda: all(signed_by(world, i) == 4 for i in (0, 1)), "two signatures")
    run.kill()
    shutil.rmtree(found.into)
    world.start_witnesses(2, 3)

    recover = ("event", "recover", "event.toml", *DESTINATION, "--from", "mirror")
    code, told, _ = found.told(*recover)
    assert (code, told["log"]["is_dead"], told["log"]["size"]) == (1, True, 2)
    said = found.words(*recover)
    assert "`datacollect event extend --verdicts`" in said, said

    # What it says is done, word by word.
    made = found.words("keys", "new", "verdicts2.key").split()
    public = next(each for each in made if each.startswith("ed25519:"))
    write_private_key(folder / "organiser.key", key_of("organiser"))
    extend = ("event", "extend", "event.toml", "--key", "organiser.key", "--verdicts", public)
    code, told, text = found.told(*extend)
    assert (code, told["number"]) == (0, 1), text
    again = found.told(*extend)[1]
    assert (again["number"], again["logs"]) == (1, told["logs"])
    now = loaded(folder, world.event)
    assert [each.text for each in now.log_keys] == told["logs"]
    world.event = now
    restart_witnesses(world)
    file = folder / "destination.toml"
    file.write_text(file.read_text().replace("verdicts.key", "verdicts2.key"))
    shutil.rmtree(found.into)
    code, _, text = found.told("event", "run", "event.toml", *DESTINATION)
    assert code == 2
    assert "`datacollect event recover` makes it" in text
    code, told, text = found.told(*recover)
    assert (code, told["log"]["goes_on"], told["n_taken_over"]) == (0, True, 2), text
    code, told, _ = found.told(*recover)
    assert (code, told["log"]["size"], told["n_taken_over"]) == (0, 2, 0)

    run.start()
    until(lambda: found.status().get("n_verdicts") == 4, "four verdicts")
    assert found.collected_files() == FILES
    status = found.status()
    assert {each["kind"] for each in status["lacking"]} == {"deadline"}
    found.hand_in(*FILES)
    for name in FILES:
        code, told, text = found.told(
            *("verify", f"{name}.receipt.json", "--event", "event.toml", "--file", name),
            *("--amendments", "event.amendments.json"),
        )
        assert (code, told["outcome"], told["collected_s"] is not None) == (0, "in time", True)
        assert before.get(name) in (None, receipt(folder, name)["collected"])
    # A mirror finds the new log by itself, and leaves the old one as it was.
    assert found.told("event", "mirror", "event.toml", "--into", "mirror", "--once")[0] == 0
    logs = json.loads((folder / "mirror" / "mirror.json").read_text())["logs"]
    assert {each["log"]: each["size"] for each in logs}[now.verdicts.name] == 4
    shutil.copytree(folder, folder / "receipts", ignore=only_receipts)
    code, told, text = found.told(
        *("audit", "event.toml", "--verdicts", now.verdicts_url),
        *("--batches", "collected/segments", "--receipts", "receipts"),
    )
    assert (code, told["evidence"]) == (0, []), text
    assert told["custody"]["collected"] == 4
    # Bistros let go by the word of the new log.
    until(lambda: all(each["stored_bytes"] == 0 for each in found.status()["bistros"]), "room")
    run.running.send_signal(signal.SIGTERM)
    assert run.running.wait(WITHIN_S) == 0
    # Who goes on with the old key is told why not.
    file.write_text(file.read_text().replace("verdicts2.key", "verdicts.key"))
    code, _, text = found.told("event", "run", "event.toml", *DESTINATION)
    assert code == 2
    assert "key is that of a log of verdicts that has ended" in text


def only_receipts(_folder: str, names: list[str]) -> set[str]:
    return {name for name in names if not name.endswith(".receipt.json")}


def receipt(folder: Path, name: str) -> dict:
    return json.loads((folder / f"{name}.receipt.json").read_text())


def signed_by(world, i: int) -> int:
    """Return how many entries of the log of verdicts a witness has signed."""
    file = world.folder / f"w{i}" / "witness.sqlite"
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
        rows = database.execute(
            "SELECT size FROM seen WHERE origin = ?", (world.event.verdicts.name,)
        )
        return max((size for (size,) in rows), default=0)
