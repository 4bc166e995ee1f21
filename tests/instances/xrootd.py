"""A real XRootD on loopback, and who copies there: ``xrdcp``, or gfal2, FTS's library."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import NO_GFAL2, NO_XROOTD
from instances.ports import free_port

# gfal2's plugin has servers copy from each other, for which they run xrdcp.
_CONFIG = """
all.export /data
oss.localroot {folder}/root
all.adminpath {folder}/admin
all.pidpath {folder}/admin
xrd.port {port}
xrd.network nodnr
xrootd.chksum max 2 adler32 md5
ofs.tpc autorm ttl 60 60 pgm {xrdcp} --server
"""
# Debian's Python, for which gfal2 is built, not the one that runs the tests.
_SYSTEM_PYTHON = "/usr/bin/python3"
_GFAL2 = """
import json, sys, gfal2
context = gfal2.creat_context()
*places, checksum, overwrite = json.load(sys.stdin)
try:
    for source, destination in zip(places, places[1:]):
        params = context.transfer_parameters()
        params.overwrite = overwrite
        params.create_parent = True
        if checksum:
            params.set_checksum(gfal2.checksum_mode.both, *checksum.split(":"))
        context.filecopy(params, source, destination)
    print("null")
except gfal2.GError as error:
    print(json.dumps(str(error)))
"""


@dataclass(frozen=True)
class XRootD:
    """A running server: `root://` addresses that begin with `url` are files below `data`."""

    data: Path
    port: int
    # Who it runs as, where that is not who runs the tests.
    user: pwd.struct_passwd | None

    @property
    def url(self) -> str:
        return f"root://127.0.0.1:{self.port}//data"

    def own(self, *paths: Path) -> None:
        """Give files to the server's user, who may then overwrite them."""
        if self.user is not None:
            for path in paths:
                os.chown(path, self.user.pw_uid, self.user.pw_gid)


@contextmanager
def xrootd():
    """Run XRootD; it and its files end with the block."""
    if shutil.which("xrootd") is None or shutil.which("xrdcp") is None:
        pytest.skip(NO_XROOTD)
    # Not below pytest's folders, which none but their owner may enter. Its user, who is another
    # where root runs the tests, reads what they write, whatever their umask.
    with _umask(0o022), tempfile.TemporaryDirectory(prefix="xrootd-") as name:
        folder = Path(name)
        data = folder / "root/data"
        data.mkdir(parents=True)
        (folder / "admin").mkdir()
        port = free_port()
        config = folder / "xrootd.cfg"
        config.write_text(
            _CONFIG.format(folder=folder, port=port, xrdcp=shutil.which("xrdcp")), encoding="utf-8"
        )
        command = ["xrootd", "-c", str(config), "-l", str(folder / "admin/log")]
        # It refuses to be root.
        user = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        server = XRootD(data, port, user)
        server.own(folder, folder / "root", data, folder / "admin")
        if user is not None:
            command += ["-R", user.pw_name]
        process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            _wait(process, port)
            yield server
        finally:
            process.terminate()
            process.wait(30)


@contextmanager
def _umask(mask: int):
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def _wait(process: subprocess.Popen, port: int) -> None:
    for _ in range(600):
        assert process.poll() is None, "XRootD did not start"
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise AssertionError("XRootD did not listen within 30 s")


def copy_by_xrdcp(
    source: str, destination: str, checksum: str | None, *, overwrite: bool
) -> str | None:
    """Copy one file; return why it failed, None where it arrived and its checksum is right."""
    command = ["xrdcp", "--silent", "--path", *(["--force"] if overwrite else [])]
    if checksum:
        algorithm, value = checksum.split(":")
        command += ["--cksum", f"{algorithm.lower()}:{value}"]
    done = subprocess.run(
        [*command, source, destination],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return None if done.returncode == 0 else done.stderr.strip() or f"exit {done.returncode}"


def copy_by_gfal2(
    source: str, destination: str, checksum: str | None, *, overwrite: bool
) -> str | None:
    """Copy one file by FTS's library, from server to server, as FTS does; return why it failed."""
    return _by_gfal2(source, destination, checksum, overwrite)


def copy_by_gfal2_and_a_file(
    source: str, destination: str, checksum: str | None, *, overwrite: bool
) -> str | None:
    """Do so by way of a file here: seconds faster, and names are read by the same code."""
    with tempfile.TemporaryDirectory() as folder:
        return _by_gfal2(source, f"file://{folder}/x", destination, checksum, overwrite)


def _by_gfal2(*wish: str | bool | None) -> str | None:
    code, text = [_SYSTEM_PYTHON, "-c", _GFAL2], json.dumps(wish)
    done = subprocess.run(code, input=text, capture_output=True, text=True, timeout=60, check=True)
    return json.loads(done.stdout)


def require_gfal2() -> None:
    """Skip where FTS's library is not there."""
    command = [_SYSTEM_PYTHON, "-c", "import gfal2"]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip(NO_GFAL2)
