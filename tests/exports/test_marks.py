"""Restarts of exported scripts: data that are gone, changed, or not theirs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from importlib.resources import files as package_files

import pytest
from conftest import NO_BUSYBOX, need
from instances.exported_scripts import N_BYTES, PARTIAL, PARTS, Scripts, data_of
from instances.odd_server import Answer, odd_server, part_of

import datacollect as dc

DATA = data_of("f")
HALF = N_BYTES // 2


def honest(request):
    return part_of(DATA, request, ETag='"1"')


def only_the_first_half(request):
    return honest(request) if request.first == 0 else Answer(503)


@pytest.fixture
def begun(tmp_path):
    """Half of a file has come, and its server would give the rest."""
    scripts = Scripts(tmp_path)
    with odd_server(only_the_first_half) as server:
        scripts.write(server.url)
        assert scripts.start()[0] == 1
        server.answer = honest
        yield scripts, server
    mark = f"f.datacollect-0-{HALF}"
    assert (tmp_path / PARTIAL / mark).exists() or scripts.has_arrived()


@pytest.mark.parametrize("damage", ["gone", "changed"])
def test_data_that_are_not_what_came_are_fetched_again_at_the_same_start(begun, damage):
    scripts, server = begun
    whole = scripts.folder / PARTIAL / "f"
    if damage == "gone":
        whole.unlink()
    else:
        with whole.open("r+b") as file:
            file.write(b"damaged")
    del server.requests[:]
    code, said = scripts.start()
    assert (code, scripts.has_arrived()) == (0, True), said
    asked = sorted(request.first for request in server.requests)
    assert asked == [0, HALF]
    assert (f"S/f: its {HALF} bytes from 0 on are not those that came" in said) == (
        damage == "changed"
    )


def rest_of(scripts):
    """The problem when D holds the first half."""
    return scripts.problem.replace(held=[dc.Held("D", "S", 0, HALF)])


def _strange(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(N_BYTES))


def _linked(path):
    _strange(path.with_name("elsewhere"))
    path.unlink(missing_ok=True)
    path.symlink_to("elsewhere")


def _altered(path):
    """Written to, as its time says, which lies behind that of whatever came."""
    path.write_bytes(bytes(N_BYTES))
    os.utime(path, (path.stat().st_atime, path.stat().st_mtime + 10))


def _replaced(path):
    """By a file that is older, as a copy from elsewhere may be."""
    path.rename(path.with_name("away"))
    _strange(path)
    os.utime(path, (1, 1))


@pytest.mark.parametrize(
    ("damage", "is_done"),
    [(_strange, False), (_linked, False), (_altered, True), (_replaced, True)],
)
def test_under_its_name_a_file_counts_by_its_hash(tmp_path, damage, is_done):
    """Of the right size alone; what is wrong stays under another name."""
    scripts = Scripts(tmp_path, knows_hashes=True)
    with odd_server(honest) as server:
        scripts.write(server.url)
        if is_done:
            assert scripts.start()[0] == 0
        damage(tmp_path / "into/S/f")
        code, said = scripts.start()
        assert (code, scripts.has_arrived()) == (0, True), said
    assert "S/f: its SHA-256 is not" in said
    assert (tmp_path / "into/S/f.datacollect-wrong").read_bytes() == bytes(N_BYTES)


def test_what_was_proved_under_its_name_is_not_read_again(tmp_path):
    """A change that leaves size, time and number alone is not noticed; it would be if it were."""
    scripts = Scripts(tmp_path, knows_hashes=True)
    with odd_server(honest) as server:
        scripts.write(server.url)
        assert scripts.start()[0] == 0
        path = tmp_path / "into/S/f"
        about = path.stat()
        path.write_bytes(bytes(N_BYTES))
        os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
        assert scripts.start()[0] == 0
        assert path.read_bytes() == bytes(N_BYTES)
        (tmp_path / "into/.datacollect/placed/S/f").unlink()
        assert scripts.start()[0] == 0
    assert scripts.has_arrived()


def test_a_new_plan_tests_what_it_takes_for_granted(begun):
    scripts, server = begun
    scripts.write(server.url, problem=rest_of(scripts))
    (scripts.folder / PARTIAL / "f").unlink()
    code, said = scripts.start()
    assert code == 1
    assert (
        f"the plan takes {HALF} bytes of S/f from 0 on for granted here, but they are not" in said
    )
    assert "run datacollect progress, and make a new plan" in said
    assert scripts.is_missing()
    # A plan for all of it helps.
    scripts.write(server.url)
    assert scripts.start()[0] == 0
    assert scripts.has_arrived()


def test_a_new_plan_uses_what_is_there(begun):
    scripts, server = begun
    del server.requests[:]
    scripts.write(server.url, problem=rest_of(scripts))
    assert scripts.start() == (0, "D: done\n")
    assert scripts.has_arrived()
    assert all(request.first >= HALF for request in server.requests)


def test_data_that_are_wrong_from_the_first_are_given_up_and_starting_again_helps(tmp_path):
    """The server has another file of this size, and no word of versions; its SHA-256 tells."""
    scripts = Scripts(tmp_path, knows_hashes=True)
    with odd_server(lambda request: part_of(data_of("another"), request)) as server:
        scripts.write(server.url)
        code, said = scripts.start()
        assert code == 1
        assert "S/f: its SHA-256 is not" in said
        assert "though each range is as it came; all of it is given up: start again" in said
        server.answer = honest
        assert scripts.start()[0] == 0
    assert scripts.has_arrived()


# Relays ----------------------------------------------------------------------------------------


@pytest.fixture
def relayed(tmp_path):
    """A relay has the file, and serves its folder; its script has ended."""
    scripts = Scripts(tmp_path, n_ranges=1, relay=True)

    def relay(request):
        path = tmp_path / request.path.removeprefix("/").replace("%20", " ")
        if path.name == "f" and not request.path.startswith("/K/"):
            return honest(request)
        return part_of(path.read_bytes(), request) if path.is_file() else Answer(404)

    with odd_server(relay) as server:
        scripts.write(server.url)
        assert scripts.start("K", "K") == (0, "K: done\n")
        yield scripts, server, relay


def test_a_relays_mark_proves_what_it_sends(relayed):
    scripts, _, _ = relayed
    code, said = scripts.start()
    assert (code, scripts.has_arrived()) == (0, True), said


@pytest.mark.slow
def test_a_login_page_is_no_mark(relayed):
    scripts, server, relay = relayed

    def page_for_marks(request):
        if ".datacollect-" in request.path:
            return Answer(200, b"<html>Sign in</html>", {"Content-Type": "text/html"})
        return relay(request)

    server.answer = page_for_marks
    code, said = scripts.start()
    assert (code, scripts.is_missing()) == (1, True)
    assert "its relay does not have" in said


def test_bytes_that_are_not_those_of_the_relays_mark_are_refused(relayed):
    scripts, _, _ = relayed
    with (scripts.folder / "K/S/f").open("r+b") as file:
        file.write(b"damaged")
    code, said = scripts.start()
    assert (code, scripts.is_missing()) == (1, True)
    assert "its bytes are not what the mark of its relay says" in said


# Tools -----------------------------------------------------------------------------------------


def test_rsync_follows_links_and_has_no_comments(tmp_path):
    need("rsync")
    names = ("#hash", ";semicolon", "link", "d/#e")
    scripts = Scripts(tmp_path, "rsync", names)
    for name in names:
        (tmp_path / "there" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "there" / name).write_bytes(data_of(name))
    (tmp_path / "there/link").rename(tmp_path / "target")
    (tmp_path / "there/link").symlink_to(tmp_path / "target")
    scripts.write(str(tmp_path / "there"))
    assert scripts.start() == (0, "D: done\n")
    assert scripts.has_arrived()
    assert not (tmp_path / "into/S/link").is_symlink()


def test_rsync_refuses_a_file_of_another_size(tmp_path):
    need("rsync")
    scripts = Scripts(tmp_path, "rsync")
    (tmp_path / "there").mkdir()
    (tmp_path / "there/f").write_bytes(DATA + b"more")
    scripts.write(str(tmp_path / "there"))
    code, said = scripts.start()
    assert (code, scripts.is_missing()) == (1, True)
    assert f"there is no file of {N_BYTES} bytes, for which the plan was made" in said


def test_rclone_goes_on_where_it_was(tmp_path):
    """Half of a whole file is appended; the other half alone is fetched."""
    need("rclone")
    scripts = Scripts(tmp_path, "rclone", n_ranges=1)
    part = tmp_path / PARTIAL / f"f.datacollect-0-{N_BYTES}.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(DATA[:HALF])
    with odd_server(honest) as server:
        scripts.write(f":http,url='{server.url}':")
        assert scripts.start() == (0, "D: done\n")
        assert server.sent_bytes == HALF
    assert scripts.has_arrived()


def test_rclone_finds_out_servers_without_ranges(tmp_path):
    need("rclone")
    scripts = Scripts(tmp_path, "rclone")
    with odd_server(lambda _: Answer(200, DATA)) as server:
        scripts.write(f":http,url='{server.url}':")
        code, said = scripts.start()
    assert code == 0
    assert "its server knows no byte ranges; the whole file is fetched" in said
    assert scripts.has_arrived()


def test_aria2_follows_no_torrents_and_reads_no_configuration(tmp_path):
    need("aria2")
    (tmp_path / ".aria2").mkdir()
    (tmp_path / ".aria2/aria2.conf").write_text("dir=/nonexistent\ndry-run=true\n")
    scripts = Scripts(tmp_path, "aria2", ("f.torrent",))
    data = data_of("f.torrent")
    torrent = {"Content_Type": "application/x-bittorrent"}
    with odd_server(lambda request: part_of(data, request, **torrent)) as server:
        scripts.write(server.url)
        assert scripts.start()[0] == 0
    assert scripts.has_arrived()


@pytest.mark.parametrize(
    ("address", "listed", "is_http"),
    [
        ("w:a/f", "w: http", True),
        ("w:a/f", "ww:    s3\\nw:     http   the lab, not s3", True),
        ("w:a/f", "w:     s3     was http", False),
        ("my remote:f", "my:        s3\\nmy remote: http", True),
        ("W:f", "w: http", True),
        ("w,url=x:f", "w: http", True),
        (":http,url='http://x':f", "", True),
        ("/http/f", "", False),
    ],
)
def test_of_which_kind_a_remote_is_of_rclone_is_asked_once(tmp_path, address, listed, is_http):
    """Newer versions list descriptions, and variables' names in lowercase."""
    fake = tmp_path / "rclone"
    fake.write_text(f"#!/bin/sh\necho asked >>'{tmp_path}/asked'\nprintf '{listed}\\n'\n")
    fake.chmod(0o755)
    script = package_files("datacollect.exports") / "rclone.sh"
    commands = ["sh", "-c", f'. "{script}"; is_http; is_http; echo "$?"']
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "address": address}
    said = subprocess.run(commands, env=environment, check=True, capture_output=True).stdout
    assert said == b"%d\n" % (not is_http)
    if ":f" not in address.partition(",")[2] and listed:
        assert (tmp_path / "asked").read_text() == "asked\n"


@pytest.mark.parametrize("kind", list(PARTS))
def test_a_tool_that_is_too_old_is_refused(tmp_path, kind):
    (tmp_path / "bin").mkdir()
    command = {"aria2": "aria2c"}.get(kind, kind)
    words = {"curl": "curl 7.29.0", "rclone": "rclone v1.49.1", "aria2": "aria2 version 1.18.10"}
    said = words.get(kind, "rsync  version 3.0.9  protocol version 30")
    old = tmp_path / "bin" / command
    old.write_text(f"#!/bin/sh\necho '{said}'\n")
    old.chmod(0o755)
    scripts = Scripts(tmp_path, kind)
    scripts.write("http://127.0.0.1:9")
    code, said = scripts.start(PATH=f"{tmp_path}/bin:{os.environ['PATH']}")
    assert code == 3
    assert " is too old, " in said
    assert "apt install" in said


@pytest.mark.parametrize("kind", PARTS)
def test_no_two_parts_of_a_script_define_one_function(kind):
    """The later one would count, silently."""
    folder = package_files("datacollect.exports")
    parts = [(folder / f"{part}.sh").read_text(encoding="utf-8") for part in PARTS[kind]]
    names = re.findall(r"^(\w+)\(\)", "\n".join(parts), re.MULTILINE)
    assert len(names) > 20
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("shell", ["dash", "bash", "busybox sh"])
def test_other_shells_understand_the_scripts(tmp_path, shell):
    if shutil.which(shell.split()[0]) is None:
        pytest.skip(NO_BUSYBOX)
    for kind in PARTS:
        scripts = Scripts(tmp_path, kind)
        scripts.write("http://127.0.0.1:9")
        subprocess.run([*shell.split(), "-n", str(tmp_path / "D.sh")], check=True)
    scripts = Scripts(tmp_path)
    environment = scripts.environment
    if shell == "busybox sh":
        # Its own awk, dd, sed, sort and the like, too.
        (tmp_path / "bin").mkdir()
        subprocess.run(["busybox", "--install", "-s", str(tmp_path / "bin")], check=True)
        environment["PATH"] = f"{tmp_path}/bin:{environment['PATH']}"
    with odd_server(honest) as server:
        scripts.write(server.url)
        command = [*shell.split(), "D.sh", "into"]
        ended = subprocess.run(command, cwd=tmp_path, env=environment, check=False)
    assert ended.returncode == 0
    assert scripts.has_arrived()
