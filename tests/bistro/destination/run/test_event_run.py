"""`event run` with everybody there: services, witnesses, bistros, people; and all that stops it."""

from __future__ import annotations

import json
import select
import signal
import subprocess
from contextlib import ExitStack, contextmanager
from functools import partial

import pytest
from instances.bistros import run_bistro
from instances.children import children_of, command_of
from instances.events import key_of, ticket_of
from instances.lost_destinations import world_with_destination
from instances.timestamping import WITHIN_S, until

import datacollect as dc
from datacollect.bistro.destination.file_sets import LIST, read_set
from datacollect.bistro.destination.run.logged_entries import (
    LOGGED_WITHIN_S,
    LoggedEntries,
    read_over_http,
)
from datacollect.bistro.destination.run.moved_deadline import moved_to_s
from datacollect.bistro.destination.run.standing import MISSING_FILE, read_standing
from datacollect.bistro.formats.assignment.loads import read_loads
from datacollect.bistro.formats.custody.verdicts import COLLECTED, Verdict
from datacollect.bistro.formats.event.statements import hand_in_statement
from datacollect.bistro.formats.log.content import header_bytes
from datacollect.bistro.formats.log.opening import Among
from datacollect.bistro.formats.log.proofs import LogProof
from datacollect.bistro.formats.receipt.counted_time import time_in
from datacollect.bistro.formats.sealing.keep import keep
from datacollect.bistro.formats.sealing.sealed import Inner
from datacollect.commands.main import run
from datacollect.errors import ProblemError
from datacollect.net.http_asking import Asker
from datacollect.net.keys import public_key_bytes, write_private_key


@contextmanager
def running_world(folder):
    """One service, three witnesses, two bistros that do not run yet, a destination's file."""
    with world_with_destination(folder, 1.0) as made:
        (folder / "tickets").mkdir()
        made.start_witnesses(0, 1, 2)
        made.start(0)
        yield made


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A world that tests share, and with it one log of verdicts."""
    with running_world(tmp_path_factory.mktemp("world")) as made:
        yield made


@pytest.fixture
def person(world, tmp_path, monkeypatch):
    """A folder with somebody's ticket; commands run there."""
    return arrived(world, tmp_path, monkeypatch)


@pytest.fixture
def own_world(tmp_path_factory):
    """A world whose witnesses have signed no verdict yet."""
    with running_world(tmp_path_factory.mktemp("own-world")) as made:
        yield made


def arrived(world, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(world.authority))
    number = int.from_bytes(tmp_path.name.encode(), "big") % 2**127
    ticket = ticket_of(world.event, number)
    (tmp_path / "my.ticket").write_text(ticket.text)
    (world.folder / "tickets" / f"{tmp_path.name}.ticket").write_text(ticket.text)
    (tmp_path / "event.toml").write_bytes((world.folder / "event.toml").read_bytes())
    return tmp_path


def destination_of(world, name: str, **changes: object):
    """Write the file of a destination; return it."""
    port = world.event.verdicts_url.rpartition(":")[2]
    values = {
        "format": "datacollect-destination/1",
        "key": "verdicts.key",
        "collector": "collector.key",
        "identities": ["own.identity"],
        "tickets": "tickets",
        "folder": name,
        "listen": f"127.0.0.1:{port}",
        "every_s": 0.2,
        **changes,
    }
    lines = [f"{key} = {json.dumps(value)}" for key, value in values.items() if value is not None]
    path = world.folder / f"{name}.toml"
    tls = '\ntls = { certificate = "tls.pem", key = "tls.key" }\n' if values["listen"] else "\n"
    path.write_text("\n".join(lines) + tls)
    return path


def running_event(world, file):
    with file.with_suffix(".log").open("ab") as log:
        process = subprocess.Popen(
            world.command(
                "event", "run", str(world.folder / "event.toml"), "--destination", str(file)
            ),
            env=world.environment,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    ready, _, _ = select.select([process.stdout], [], [], WITHIN_S)
    assert ready, file.with_suffix(".log").read_text()
    assert process.stdout.readline().startswith("collecting; verdicts are read at https://")
    return process


@contextmanager
def collecting(world, file):
    process = running_event(world, file)
    try:
        yield process
    finally:
        process.kill()
        process.wait(WITHIN_S)
        process.stdout.close()


def handed_in(person, name: str, content: bytes, *more: str):
    (person / name).write_bytes(content)
    arguments = ["upload", name, "--event", "event.toml", "--ticket", "my.ticket", "--json"]
    return run([*arguments, *more])


def standing(folder):
    try:
        return read_standing(folder)
    except ProblemError:
        return None


def once_collected(folder, n: int):
    def found():
        now = standing(folder)
        return now if now is not None and now.collected == n else None

    return until(found, f"{n} collected")


@pytest.mark.slow
def test_what_was_handed_in_is_collected_proved_and_let_go(world, person, capsys):
    """Also where the destination is killed, and where its certificate changes."""
    file, folder = destination_of(world, "whole"), world.folder / "whole"
    with ExitStack() as held:
        bistros = [run_bistro(world, name, held) for name in ("north", "south")]
        assert handed_in(person, "a.txt", b"what I declare") == 0
        (told,) = json.loads(capsys.readouterr().out)["files"]
        with collecting(world, file) as process:
            once_collected(folder, 1)
            openers = [pid for pid in children_of(process.pid) if "spawn_main" in command_of(pid)]
            assert openers
        # They have the identities in their memory, and do not outlive it.
        until(lambda: not any(map(command_of, openers)), "the end of those who open")
        with collecting(world, file) as process:
            (person / "src").mkdir()
            (person / "src" / "empty").write_bytes(b"")
            assert handed_in(person, "b.txt", b"and more", "src") == 0
            (several,) = json.loads(capsys.readouterr().out)["files"]
            found = once_collected(folder, 2)
            # Whoever asks gets no proof before witnesses have signed.
            until(lambda: read_standing(folder).n_verdicts == 2, "two verdicts")
            # All of them, or none: the receipt proves it of the draft, each proof of its file.
            assert run(["upload", several["keep"], "--event", "event.toml"]) == 0
            capsys.readouterr()
            verdict = dc.verify_receipt(several["receipt"], "event.toml", file="src/empty")
            assert (verdict.among, verdict.collected_s is None) == (Among(1, 2), False)
            assert (found.in_time, found.missing, found.lies) == (2, {}, ())
            assert found.silent == ()
            verdict = Verdict(world.event.id, bytes.fromhex(told["entry"]), COLLECTED)
            with Asker(world.event.verdicts_url, world.trusting) as asker:
                answer = asker.get(f"/proof/{told['entry']}")
                proof = LogProof.parse(answer.body)
                counted = time_in(world.event.verdicts, proof, verdict.data, world.event)
                assert counted.time_s is not None
                refused = asker.post("/commit", b'{"entry": "00"}', "application/json")
                assert refused.status >= 400
            loads = until(
                lambda: (
                    world.get(world.services[0], "/loads").status == 200
                    and read_loads(world.get(world.services[0], "/loads").body, world.event)
                ),
                "the table of loads",
            )
            assert {row.bistro for row in loads.bistros} == {"north", "south"}
            # All is let go, once the bistros have closed what they had under way.
            until(lambda: not any(b._core.stored_bytes for b in bistros), "that bistros let go")
            new = world.new_certificate()
            process.send_signal(signal.SIGHUP)
            until(lambda: world.certificate(world.event.verdicts_url) == new, "the certificate")
            process.send_signal(signal.SIGTERM)
            assert process.wait(WITHIN_S) == 0
    files, of_several = folder / "files", folder / "files" / several["entry"]
    assert {path.name for path in files.iterdir()} == {told["entry"], several["entry"]}
    assert (files / told["entry"] / "a.txt").read_bytes() == b"what I declare"
    assert (of_several / "b.txt").read_bytes() == b"and more"
    assert (of_several / "src" / "empty").read_bytes() == b""
    assert [each.name for each in read_set(of_several / LIST)] == ["b.txt", "src/empty"]
    # Before the deadline nothing but that is lacking.
    assert run(["event", "status", str(file)]) == 1
    said = capsys.readouterr().out
    assert "      2    collected" in said
    assert run(["event", "status", str(file), "--json", "--verify"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["collected"], told["files_here"], told["verified"]) == (2, 2, True)
    assert [each["kind"] for each in told["lacking"]] == ["deadline"]


@pytest.mark.slow
def test_a_stolen_ticket_seals_nothing_that_another_pushes(world, person, capsys, monkeypatch):
    """Its key is the thief's, it is revoked; he commits and pushes with a ticket of his own."""
    stolen = ticket_of(world.event, 2**100)
    (world.folder / "tickets" / "stolen.ticket").write_text(stolen.text)

    def kept_as_the_victims(*args, inner, salt, owner, **more):
        tree = json.loads(inner.header) | {"ticket": stolen.number.hex()}
        said = hand_in_statement(world.event.id, salt, public_key_bytes(owner.public))
        inner = Inner(header_bytes(tree), inner.secret, stolen.key.sign(said))
        return keep(*args, inner=inner, salt=salt, owner=owner, **more)

    # There is one log of verdicts, and its folder is that of the test before.
    file, folder = destination_of(world, "whole"), world.folder / "whole"
    with ExitStack() as held:
        run_bistro(world, "north", held)
        with monkeypatch.context() as patch:
            patch.setattr("datacollect.bistro.person.items.keep", kept_as_the_victims)
            assert handed_in(person, "forged.txt", b"what the victim never said") == 0
        (forged,) = json.loads(capsys.readouterr().out)["files"]
        assert handed_in(person, "own.txt", b"his own") == 0
        (own,) = json.loads(capsys.readouterr().out)["files"]

        def verdict(entry):
            with Asker(world.event.verdicts_url, world.trusting) as asker:
                found = asker.get(f"/verdict/{entry}")
            return json.loads(found.body)["verdict"] if found.status == 200 else None

        for _ in range(2):  # and again, by another process
            with collecting(world, file):
                said = until(lambda: verdict(forged["entry"]), "a verdict")
                assert said.endswith("\nrefused: lacks the ticket's signature\n")
                said = until(lambda: verdict(own["entry"]), "another")
                assert said.endswith("\ncollected\n")
    assert [*folder.glob(f"files/{forged['entry']}/*")] == []
    (path,) = folder.glob(f"files/{own['entry']}/*")
    assert path.read_bytes() == b"his own"


@pytest.mark.slow
def test_what_is_not_there_is_named_with_its_evidence(world, person, capsys):
    network = world.folder / "network.toml"
    network.write_text(
        'format = "datacollect-collection/1"\ndestination = "D"\nkey = "collector.key"\n'
        "limits = { patience_s = 1 }\n"
    )
    file = destination_of(
        world,
        "named",
        receipts=str(person),
        listen=None,
        collection="network.toml",
        collector=None,
    )
    with ExitStack() as held:
        north = run_bistro(world, "north", held)
        assert handed_in(person, "lost.bin", b"lost" * 100) == 0
        (told,) = json.loads(capsys.readouterr().out)["files"]
        until(
            lambda: [*(world.folder / "north-up").rglob("batches/*.batch")],
            "that the batch is closed",
        )
        assert north.name == told["held_by"] == "north"
    # The bistro has lost all; its person shows what it has signed.
    arguments = ["event", "run", str(world.folder / "event.toml"), "--destination", str(file)]
    assert run([*arguments, "--once"]) == 1
    capsys.readouterr()
    assert read_standing(world.folder / "named").silent == ("north", "south")
    assert run(["event", "status", str(file)]) == 1
    assert "missing so far: receipt without data" in capsys.readouterr().out
    rows = (world.folder / "named" / MISSING_FILE).read_text().splitlines()
    assert f"{told['entry']},receipt without data,north," in rows


def test_entries_that_were_never_sent_are_known_after_the_deadline(world, person, capsys):
    assert handed_in(person, "c.txt", b"kept back", "--commit-only") == 0
    (told,) = json.loads(capsys.readouterr().out)["files"]
    said = []
    logs = LoggedEntries(partial(read_over_http, tls=world.trusting), said.append)
    event = world.event
    assert logs.known(event, event.latest_s) == frozenset()
    assert bytes.fromhex(told["entry"]) in logs.known(event, event.latest_s + LOGGED_WITHIN_S + 1)
    assert said == []


FAULTS = {
    "another's key": ({"key": "collector.key"}, "key must be that of the event's log of verdicts"),
    "no tickets": ({"tickets": None}, "tickets must be the folder of everybody's tickets"),
    "an empty folder": ({"tickets": "."}, "must hold everybody's tickets"),
    "no identity": ({"identities": ["verdicts.key"]}, "must hold an identity of age"),
    "no collector": ({"collector": None}, "collector must be the file of the key"),
    "a certificate of nobody": (
        {"listen": None, "tls": {"certificate": "tls.pem", "key": "tls.key"}},
        "tls",
    ),
    "an unknown method": ({"method": "fastest"}, "method must be"),
    "no collection": ({"collection": "absent.toml"}, "absent.toml: no such file"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_cannot_be_begun_says_what_to_change(world, person, capsys, fault):
    changes, words = FAULTS[fault]
    tls = changes.pop("tls", None) if fault == "a certificate of nobody" else None
    file = destination_of(world, "faulty", **{"listen": None, **changes})
    if tls is not None:
        file.write_text(file.read_text() + 'tls = { certificate = "tls.pem", key = "tls.key" }\n')
    code = run(
        ["event", "run", str(world.folder / "event.toml"), "--destination", str(file), "--once"]
    )
    assert code == 2
    assert words in " ".join(capsys.readouterr().err.split())


def test_an_event_of_version_1_is_collected_by_nobody(world, person, capsys):
    text = (world.folder / "event.toml").read_text()
    (person / "older.toml").write_text(text.replace("datacollect-event/2", "datacollect-event/1"))
    file = destination_of(world, "older", listen=None)
    assert run(["event", "run", "older.toml", "--destination", str(file), "--once"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "older.toml: format must be datacollect-event/2, got datacollect-event/1" in said


def test_status_before_anything_was_begun(world, person, capsys):
    file = destination_of(world, "never")
    assert run(["event", "status", str(file)]) == 2
    assert "nothing was collected there yet" in " ".join(capsys.readouterr().err.split())


@pytest.mark.slow
def test_a_deadline_that_was_moved_is_known_from_services_without_a_destination(
    world, person, capsys
):
    """The last test here: it moves the deadline for all."""
    file = destination_of(world, "moved", listen=None)
    arguments = ["event", "run", "event.toml", "--destination", str(file), "--once"]
    assert run(arguments) == 1
    found, folder = read_standing(world.folder / "moved"), world.folder / "moved"
    assert found.event_file == str(person / "event.toml")
    assert moved_to_s(found, folder) is None
    write_private_key(person / "organiser.key", key_of("organiser"))
    extended = ["event", "extend", "event.toml", "--key", "organiser.key"]
    assert run([*extended, "--deadline", "2027-04-16T23:59:59-04:00"]) == 0
    capsys.readouterr()
    assert moved_to_s(found, folder) == found.latest_s + 86400
    assert found.unread == tuple(each.url for each in world.event.services)


def lacking_of(file, capsys) -> list[str]:
    """Return the kinds of what is lacking, as `event status` tells it."""
    capsys.readouterr()
    run(["event", "status", str(file), "--json"])
    return [each["kind"] for each in json.loads(capsys.readouterr().out)["lacking"]]


@pytest.mark.slow
def test_an_event_that_was_cancelled_is_collected_no_more(own_world, tmp_path, monkeypatch, capsys):
    """Its verdicts are published, so it needs a log that no other test's folder holds."""
    world, person = own_world, arrived(own_world, tmp_path, monkeypatch)
    file, folder = destination_of(world, "cancelled"), world.folder / "cancelled"
    if not (person / "organiser.key").exists():
        write_private_key(person / "organiser.key", key_of("organiser"))
    with ExitStack() as held:
        run_bistro(world, "north", held)
        assert handed_in(person, "before.txt", b"in time") == 0
        assert handed_in(person, "timestamp.txt", b"never pushed", "--commit-only") in (0, 1)
        with collecting(world, file) as process:
            until(lambda: [*folder.glob("files/*/before.txt")], "what was handed in before")
            command = ["event", "cancel", "event.toml", "--key", "organiser.key"]
            assert run([*command, "--why", "the exam is moved"]) == 0
            until(lambda: getattr(standing(folder), "cancelled", None), "what was cancelled")
            # Until it is ended people are shown by it that theirs was collected.
            with Asker(world.event.verdicts_url) as asker:
                assert asker.get("/checkpoint", 10_000).status in (200, 404)
            until(lambda: "not published" not in lacking_of(file, capsys), "the verdict published")
            process.terminate()
            assert process.wait(WITHIN_S) == 0
        capsys.readouterr()
        assert handed_in(person, "after.txt", b"too late") == 1
        told = capsys.readouterr()
        assert "the event was cancelled: the exam is moved" in " ".join(told.err.split()) + told.out
    assert run(["event", "status", str(file)]) == 1
    assert "the event was cancelled: the exam is moved" in " ".join(capsys.readouterr().out.split())
    # What was moved is taken over at the next start, and what is lost then is said, as ever.
    moved, elsewhere = destination_of(world, "elsewhere"), world.folder / "elsewhere"
    folder.rename(elsewhere)
    again = ["event", "run", "event.toml", "--destination", str(moved), "--once"]
    assert run(again) == 1
    capsys.readouterr()
    assert lacking_of(moved, capsys) == ["cancelled"]
    [lost] = elsewhere.glob("files/*/before.txt")
    lost.unlink()
    assert run(again) == 1
    assert read_standing(elsewhere).not_here == 1
