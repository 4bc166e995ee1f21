"""Remedies that exported scripts give, carried out where they run."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

from conftest import need
from exports.test_long_headers import N_BYTES, Handler, served
from exports.test_marks import rest_of
from exports.test_telling import part
from instances.exported_scripts import Scripts, data_of
from instances.odd_server import odd_server, part_of
from instances.ports import free_port
from remedies.trying import Example, call, in_new_folder

# What scripts need besides what fetches.
NEEDED = ("sh", "awk", "dd", "cut", "find", "sleep", "mkdir", "cat", "date", "sed", "grep")
# The first line of what each says of its version, as the scripts read it.
VERSIONS = {
    "curl": ("curl", "curl 8.9.1"),
    "aria2": ("aria2c", "aria2 version 1.37.0"),
    "rclone": ("rclone", "rclone v1.60.1"),
    "rsync": ("rsync", "rsync  version 3.4.1"),
}


@contextmanager
def programs(**own):
    """Lend a folder with what scripts need, and programs of one's own that print something."""
    with in_new_folder() as folder:
        for name in {*NEEDED} - {*own}:
            (folder / name).symlink_to(shutil.which(name))
        for name, lines in own.items():
            (folder / name).write_text(f"#!{shutil.which('sh')}\n{lines}\n")
            (folder / name).chmod(0o755)
        yield str(folder)


def dry(kind="curl", *options, **own):
    """Say what a script says before it would fetch, where some programs are installed."""

    def run():
        command, version = VERSIONS[kind]
        installed = {command: f"echo {version!r}"} if "is_bare" not in own else {}
        installed |= {name: text for name, text in own.items() if name != "is_bare"}
        with programs(**installed) as path, in_new_folder() as folder:
            scripts = Scripts(folder, kind)
            scripts.write("http://h.example" if kind in ("curl", "aria2") else "h:x")
            _, said = scripts.start(more=["--dry-run", *options], PATH=path)
        return said

    return run


def missing(kind):
    package = "aria2" if kind == "aria2" else kind
    return Example(f"Debian, Ubuntu: apt install {package}", dry(kind, is_bare=True), dry(kind))


# Answers -----------------------------------------------------------------------------------------


class Moved(Handler):
    """A server that leads on to another address, all of it behind many headers."""

    def do_GET(self):  # noqa: N802 - as http.server has it
        is_first = self.path == "/f"
        self.send_response(302 if is_first else 200)
        for i in range(160):
            self.send_header(f"X-{i}", "p" * 44)
        own = {"Location": "/g", "Content-Length": "0"}
        if not is_first:
            own = {"Content-Length": str(N_BYTES), "ETag": '"a"', "Content-Type": "text/plain"}
        for key, value in own.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(b"" if is_first else data_of("f", N_BYTES))


def led_on(kind, *, knows_hashes=False):
    def run():
        need(kind)
        with in_new_folder() as folder, served(Moved) as url:
            scripts = Scripts(folder, kind, ("f",), N_BYTES, knows_hashes)
            scripts.write(url)
            _, said = scripts.start()
            assert scripts.has_arrived() == (kind == "curl" or knows_hashes)
        return said

    return run


# What is there -----------------------------------------------------------------------------------


def taken_for_granted(is_planned_anew):
    """Start a script whose plan takes a half for granted, which is not there."""

    def run():
        need("curl")
        with (
            in_new_folder() as folder,
            odd_server(lambda asked: part_of(data_of("f"), asked, ETag='"1"')) as server,
        ):
            scripts = Scripts(folder)
            scripts.write(server.url, problem=rest_of(scripts))
            _, said = scripts.start()
            if is_planned_anew:
                told = call("progress into --manifest files.csv --at 5")
                assert '"held": []' in told or '"held"' not in told
                scripts.write(server.url)
                _, said = scripts.start()
                assert scripts.has_arrived()
        return said

    return run


# Servers of relays -------------------------------------------------------------------------------


def lacking():
    """Say of a relay that its server has answered for a minute that something is not there."""
    with in_new_folder() as folder:
        (folder / ".datacollect").mkdir()
        (folder / ".datacollect/lacks-0").write_text("100 k\nanswers 404 for k/f\n")
        settings = "named=\nclock() { now_cs=10000; }\nsay() { printf '%s\\n' \"$*\"; }\n"
        return part("tell", f"{settings}who_lacks", folder)


def is_there(url):
    try:
        with urllib.request.urlopen(url, timeout=20) as answer:
            return answer.status == 200
    except urllib.error.HTTPError:
        return False


def shown_at_once():
    """Serve a folder by rclone with the option: what was not there is, once it is written."""
    need("rclone")
    with in_new_folder() as folder:
        port = free_port()
        command = ["rclone", "serve", "http", str(folder), "--addr", f"127.0.0.1:{port}"]
        environment = os.environ | {"RCLONE_CONFIG": os.devnull}
        with subprocess.Popen(
            [*command, "--dir-cache-time", "0s"], env=environment, stderr=subprocess.DEVNULL
        ) as server:
            try:
                wait_for(port)
                assert not is_there(f"http://127.0.0.1:{port}/f")
                Path("f").write_text("mark")
                assert is_there(f"http://127.0.0.1:{port}/f")
            finally:
                server.kill()


def wait_for(port):
    until_s = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            assert time.monotonic() < until_s
            time.sleep(0.05)
        else:
            return


EXAMPLES = [
    *map(missing, VERSIONS),
    Example(
        "dd must know oflag=seek_bytes; install GNU coreutils",
        dry(dd="exit 1"),
        dry(),
    ),
    Example(
        "there is no option {}, only --dry-run; a folder of that name is ./{}",
        dry("curl", "--quick"),
        dry("curl"),
    ),
    Example("give a sha256, or take curl", led_on("aria2"), led_on("curl")),
    Example(
        "give a sha256", led_on("aria2"), led_on("aria2", knows_hashes=True), "exports.http.sh"
    ),
    Example(
        "run datacollect progress, and make a new plan from what is there",
        taken_for_granted(False),
        taken_for_granted(True),
    ),
    Example("(rclone: --dir-cache-time 0s)?", lacking, shown_at_once),
]
