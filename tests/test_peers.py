"""Servers of other people, as Debian has them: pulls and exported scripts move hostile names.

Each moves names that shells, URLs and lists stumble over, empty files and a large one, at once and
after a kill.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress

import pytest
from conftest import NO_RCLONE_S3, need
from instances.agents import KEY
from instances.exported_scripts import without_times
from instances.peers import (
    BUCKET,
    PATH_WITH_NEW_RCLONE,
    S3_KEY,
    apache,
    nginx_of,
    rclone_knows_s3,
    rclone_s3,
    rclone_serve,
    rsync_daemon,
)
from instances.real_files import NAMES

import datacollect as dc
from datacollect.commands.main import run
from datacollect.net.keys import write_private_key

PEERS = {
    "apache": apache,
    "nginx": nginx_of,
    "rclone http": lambda *how: rclone_serve("http", *how),
    "rclone webdav": lambda *how: rclone_serve("webdav", *how),
    "rclone s3": rclone_s3,
    "rsync daemon": rsync_daemon,
}
# Slow enough to be killed on the way, with 1.2 MB to come, whoever is held up for seconds.
SLOW_KIB_PER_S = 40


def need_peers(*names):
    """Names begin with that of a program: ``rclone webdav``."""
    need(*(name.split()[0] for name in names))
    if "rclone s3" in names and not rclone_knows_s3():
        pytest.skip(NO_RCLONE_S3)


def files_for(peer, folder):
    """Write files below ``data``, and a manifest; return their bytes by source and path.

    rclone has other names for line breaks in names, and finds no file by their own.
    """
    found, rows = {}, [["host", "path", "bytes", "sha256"]]
    for source, files in NAMES.items():
        for name, n_bytes in files:
            if "\n" in name and peer.startswith("rclone"):
                continue
            data = random.Random(name).randbytes(n_bytes)
            path = folder / "data" / source / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            found[source, name] = data
            rows.append([source, name, str(n_bytes), hashlib.sha256(data).hexdigest()])
    with (folder / "files.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    return found


def arrived(into):
    paths = [path for path in into.rglob("*") if path.is_file()]
    names = {path: path.relative_to(into).parts for path in paths}
    return {
        (source, "/".join(rest)): path.read_bytes()
        for path, (source, *rest) in names.items()
        if source != ".datacollect"
    }


# Pulls ----------------------------------------------------------------------------------------


def collection_of(folder, files, url):
    """Of S 1 nothing is known but names; of S2 sizes and hashes."""
    if not (folder / "collector.key").exists():
        write_private_key(folder / "collector.key", KEY)
    paths = ", ".join(json.dumps(path) for source, path in files if source == "S 1")
    (folder / "collection.toml").write_text(
        f"""
format = "datacollect-collection/1"
destination = "D"
key = "collector.key"
[servers.S1]
plain_http = true
url = "{url}/S%201/"
paths = [{paths}]
[servers.S2]
plain_http = true
url = "{url}/S2/"
manifest = "files.csv"
"""
    )
    return folder / "collection.toml"


@pytest.mark.slow
@pytest.mark.parametrize("peer", ["apache", "nginx", "rclone http", "rclone webdav"])
def test_pulls_move_every_name(tmp_path, peer):
    need_peers(peer)
    files = files_for(peer, tmp_path)
    with PEERS[peer](tmp_path / "data") as url:
        answer = dc.pull(collection_of(tmp_path, files, url), tmp_path / "into")
    assert answer.complete, answer.missing
    (tmp_path / "into" / "S1").rename(tmp_path / "into" / "S 1")
    assert arrived(tmp_path / "into") == files


@pytest.mark.slow
def test_a_killed_pull_goes_on(tmp_path):
    need("apache")
    files = files_for("apache", tmp_path)
    with apache(tmp_path / "data", SLOW_KIB_PER_S) as url:
        path = collection_of(tmp_path, files, url)
        command = [sys.executable, "-m", "datacollect", "pull", str(path), "--into", "into"]
        process = subprocess.Popen(
            command, cwd=tmp_path, stderr=subprocess.DEVNULL, start_new_session=True
        )
        killed_when(process, (tmp_path / "into" / "S1").exists)
    with apache(tmp_path / "data") as url:
        answer = dc.pull(collection_of(tmp_path, files, url), tmp_path / "into")
    assert answer.complete, answer.missing
    (tmp_path / "into" / "S1").rename(tmp_path / "into" / "S 1")
    assert arrived(tmp_path / "into") == files


def killed_when(process, has_begun):
    """Kill a process, and all that it has started, once something has begun and before it ends."""
    try:
        for _ in range(6000):
            if has_begun() or process.poll() is not None:
                break
            time.sleep(0.02)
        assert has_begun(), "nothing comes"
        assert process.poll() is None, "it has ended"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(60)


# Scripts --------------------------------------------------------------------------------------


def exported(folder, files, tool, peer, url, bytes_per_s=50e6):
    """Write the destination's script, for a plan in which each source sends straight."""
    sizes = Counter()
    for (source, _), data in files.items():
        sizes[source] += len(data)
    hosts = [dc.Host(name, backlog_bytes=size) for name, size in sizes.items()]
    links = [dc.Link(name, "D", bytes_per_s) for name in sizes]
    problem = dc.Problem.from_hosts([*hosts, dc.Host("D")], links, "D")
    dc.direct(problem).to_file(folder / "plan.json")
    (folder / "problem.json").write_text(json.dumps(problem.to_dict()))
    bucket = f"{BUCKET}/" if peer == "rclone s3" else ""
    place = f"{'w:' + bucket if tool == 'rclone' else url + '/'}{{source}}/{{path}}"
    words = [*("pulls", str(folder / "problem.json"), str(folder / "plan.json"), "--as", tool)]
    words += ["--manifest", str(folder / "files.csv"), "--url", place]
    assert run([*words, "-o", str(folder / "scripts"), "--force"]) == 0


def started(folder, peer, url):
    kind = peer.removeprefix("rclone ") if peer.startswith("rclone ") else "http"
    remote = {"TYPE": kind, "URL": url, "ENDPOINT": url, "PROVIDER": "Rclone"}
    remote |= dict(zip(("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"), S3_KEY, strict=True))
    environment = {
        **os.environ,
        **({"PATH": PATH_WITH_NEW_RCLONE} if kind == "s3" else {}),
        "DATACOLLECT_EVERY_S": "0.1",
        "DATACOLLECT_TRIES": "3",
        "RCLONE_CONFIG": os.devnull,
        **{f"RCLONE_CONFIG_W_{key}": value for key, value in remote.items()},
    }
    return subprocess.Popen(
        ["sh", str(folder / "scripts" / "D.sh"), str(folder / "into")],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def ended(process):
    said, _ = process.communicate(timeout=100)
    assert (process.returncode, without_times(said)) == (0, "D: done\n"), said


def move(folder, tool, peer):
    """Move all files of a peer by a tool."""
    need_peers(tool, peer)
    files = files_for(peer, folder)
    with PEERS[peer](folder / "data") as url:
        exported(folder, files, tool, peer, url)
        ended(started(folder, peer, url))
    assert arrived(folder / "into") == files


@pytest.mark.slow
@pytest.mark.parametrize("peer", ["apache", "nginx"])
def test_curl_moves_every_name(tmp_path, peer):
    move(tmp_path, "curl", peer)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tool", "peer"),
    [
        *(("curl", "rclone http"), ("curl", "rclone webdav")),
        *(("aria2", "apache"), ("aria2", "nginx"), ("aria2", "rclone http")),
        *(("rclone", peer) for peer in ("apache", "nginx", "rclone http", "rclone webdav")),
        *(("rclone", "rclone s3"), ("rsync", "rsync daemon")),
    ],
)
def test_other_scripts_move_every_name(tmp_path, tool, peer):
    move(tmp_path, tool, peer)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tool", "peer"),
    [
        *(("curl", "apache"), ("aria2", "nginx"), ("rclone", "rclone webdav")),
        ("rsync", "rsync daemon"),
    ],
)
def test_killed_scripts_go_on(tmp_path, tool, peer):
    """The plan is slow, so that it is killed on its way; what goes on has a plan of its own."""
    need_peers(tool, peer)
    files = files_for(peer, tmp_path)
    with PEERS[peer](tmp_path / "data") as url:
        exported(tmp_path, files, tool, peer, url, bytes_per_s=30e3)
        process = started(tmp_path, peer, url)
        try:
            killed_when(process, (tmp_path / "into" / ".datacollect" / "partial" / "S2").exists)
        finally:
            process.communicate()
        exported(tmp_path, files, tool, peer, url)
        ended(started(tmp_path, peer, url))
    assert arrived(tmp_path / "into") == files
