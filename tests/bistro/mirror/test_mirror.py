"""A mirror of an event: services as real processes; those that are silent or lie stop no other."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest
from instances.custody import custody_event_bytes
from instances.events import key_of
from instances.timestamping import WITHIN_S, World, until

from datacollect.bistro.formats.log.checkpoints import SignedCheckpoint, cosigned_times
from datacollect.bistro.formats.receipt.receipt import read_amendments
from datacollect.bistro.log_service.log_copy import LogCopy, folder_name
from datacollect.bistro.mirror import mirror as mirroring
from datacollect.bistro.mirror.mirror import STATUS_FILE, mirror_once
from datacollect.commands.main import run
from datacollect.net import fan_out as fan_out_module


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Two services with 300 and 2 entries; a log of verdicts that nobody keeps."""
    folder = tmp_path_factory.mktemp("world")
    with (
        pytest.MonkeyPatch.context() as patch,
        World(
            folder, n_services=2, verdicts={"key": key_of("verdicts").public}, admission="open"
        ) as made,
    ):
        patch.setenv("SSL_CERT_FILE", str(made.authority))
        made.start_witnesses()
        for i, n in enumerate([300, 2]):
            service = made.start(i)
            made.commit(service, [bytes([i]) * 30 + j.to_bytes(2, "big") for j in range(n)])
            made.proof(service, bytes([i]) * 30 + bytes(2))
        yield made


def copy_of(world, folder, i: int) -> LogCopy:
    log = world.event.services[i].log
    return LogCopy(folder / folder_name(log), log, world.event)


def is_signed_by_all(world, service) -> bool:
    head = SignedCheckpoint.parse(world.get(service, "/checkpoint").body)
    return len(cosigned_times(head.note, world.event.witness_keys)) == len(world.event.witnesses)


def by_log(status: dict) -> dict[str, dict]:
    return {each["log"]: each for each in status["logs"]}


@pytest.mark.slow
def test_logs_are_copied_as_their_services_publish_them(world, tmp_path, capsys):
    into = tmp_path / "mirror"
    command = ["event", "mirror", str(world.folder / "event.toml"), "--into", str(into)]
    # With each cosignature that comes later a checkpoint is published again.
    for service in world.services:
        until(lambda s=service: is_signed_by_all(world, s), "the last witness")
    code = run([*command, "--once", "--json"])
    found = by_log(json.loads(capsys.readouterr().out))
    for i, service in enumerate(world.services):
        copy = copy_of(world, into, i)
        assert copy.head.note.data == world.get(service, "/checkpoint").body
        assert found[world.event.services[i].log.name]["size"] == copy.size > 0
        listed = world.get(service, "/sizes/0").body.decode().split()
        assert [*map(str, copy.sizes())] == listed
        for size in listed:
            served = world.get(service, f"/checkpoints/{size}").body
            assert copy.checkpoint(int(size)).note.data == served
        assert read_amendments(copy.amendments(), world.event.id) == []
    verdicts = world.event.verdicts.name
    assert (code, found[verdicts]["size"]) == (1, -1)
    assert [*found[verdicts]["troubles"]] == [world.event.verdicts_url]
    assert "300" in (run([*command, "--once"]) and capsys.readouterr().out)


@pytest.mark.slow
def test_mirror_goes_on_until_it_is_ended_and_where_it_was_killed(world, tmp_path):
    into, service = tmp_path / "mirror", world.services[0]

    def started():
        process = subprocess.Popen(
            world.command("event", "mirror", str(world.folder / "event.toml"), "--into", str(into)),
            env=world.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout.readline().startswith("copying logs into")
        return process

    sizes = []
    for i, number in enumerate([signal.SIGKILL, signal.SIGTERM]):
        process = started()
        try:
            entry = bytes([9, i]) * 16
            world.commit(service, entry)
            world.proof(service, entry)
            until(lambda e=entry: e in [*copy_of(world, into, 0).leaves()], "the copy")
            if i:
                event = str(world.folder / "event.toml")
                assert run(["event", "mirror", event, "--into", str(into), "--once"]) == 2
        finally:
            process.send_signal(number)
            assert process.wait(WITHIN_S) == (0 if number == signal.SIGTERM else -signal.SIGKILL)
            process.stdout.close()
            process.stderr.close()
        sizes.append(copy_of(world, into, 0).size)
    assert sizes[0] < sizes[1]
    assert json.loads((into / STATUS_FILE).read_text())["event"] == world.event.id.hex()


@pytest.mark.slow
def test_silent_log_stops_no_other_and_is_read_from_another_mirror(world, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    mirror_once(world.folder / "event.toml", first)
    world.kill(world.services[1])
    try:
        said: list[str] = []
        found = mirror_once(world.folder / "event.toml", second, report=said.append)
        sizes = {each.log: each.size for each in found.logs}
        names = [each.log.name for each in world.event.services]
        assert sizes[names[0]] >= 300
        assert sizes[names[1]] == -1
        assert any(line.startswith(f"{names[1]}: {world.services[1].url}") for line in said)
        with served(first) as url:
            for place in (str(first), url):
                third = tmp_path / f"third{len(place)}"
                mirror_once(world.folder / "event.toml", third, [place])
                held = copy_of(world, third, 1)
                assert [*held.leaves()] == [*copy_of(world, first, 1).leaves()] != []
    finally:
        world.start(1)


class served:  # noqa: N801 - reads as what it is
    """A folder over HTTP, by a server that knows nothing of logs."""

    def __init__(self, folder) -> None:
        class Quiet(SimpleHTTPRequestHandler):
            def __init__(self, *args) -> None:
                super().__init__(*args, directory=str(folder))

            def log_message(self, *_) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Quiet)

    def __enter__(self) -> str:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __exit__(self, *_) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.mark.slow
def test_log_that_hangs_is_named_after_a_while(world, tmp_path, monkeypatch):
    """The while is over once the first log has been copied, however long that takes."""
    event, clock = threading.Event(), [0.0]
    monkeypatch.setattr(mirroring, "ONCE_S", 3.0)
    monkeypatch.setattr(fan_out_module, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    real, copy = mirroring.LogCopying.take, mirroring.Mirror._copy

    def copied(self, service, *, is_once):
        copy(self, service, is_once=is_once)
        if service.log == world.event.services[0].log:
            clock[0] = 1e9

    def take(self, asker):
        if self.copy.log == world.event.services[1].log:
            event.wait(WITHIN_S)
        return real(self, asker)

    monkeypatch.setattr(mirroring.LogCopying, "take", take)
    monkeypatch.setattr(mirroring.Mirror, "_copy", copied)
    found = mirror_once(world.folder / "event.toml", tmp_path / "mirror")
    event.set()
    first, second, _ = found.logs
    assert first.size >= 300
    assert second.troubles[mirroring.HERE] == "its sources have not ended within 3 s"


def test_folder_of_another_event_is_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(mirroring.Mirror, "copy_once", lambda _: None)
    (tmp_path / "one.toml").write_bytes(custody_event_bytes())
    (tmp_path / "other.toml").write_bytes(custody_event_bytes(name="another"))
    mirror_once(tmp_path / "one.toml", tmp_path / "mirror")
    command = ["event", "mirror", "other.toml", "--once", "--into", str(tmp_path / "mirror")]
    monkeypatch.chdir(tmp_path)
    assert run(command) == 2
    assert "is the mirror of another event; name another folder" in capsys.readouterr().err
    assert run([*command[:-1], "new", "--from", "nowhere"]) == 2
    assert "nowhere: must be a mirror's folder, or its address" in capsys.readouterr().err
