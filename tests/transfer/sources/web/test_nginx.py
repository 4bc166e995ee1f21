"""A real nginx: directly and behind a relay, killed halfway, with files changed in between."""

import gzip
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest
from conftest import NO_NGINX
from instances.agents import KEY, running, write_agent
from instances.web_servers import nginx

import datacollect as dc
from datacollect.net.keys import write_private_key
from datacollect.transfer.store.status import status_of

pytestmark = pytest.mark.skipif(not shutil.which("nginx"), reason=NO_NGINX)
TEXT = b"the quick brown fox jumps over the lazy dog\n" * 5000
FILES = {"a b/x#.bin": os.urandom(300_000), "t.txt": TEXT, "empty": b""}


def write(root, files):
    for path, data in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)


def collection_file(folder, server, entry, relay=""):
    """Write a collection of one server, and perhaps a relay."""
    write_private_key(folder / "collector.key", KEY)
    paths = ", ".join(f'"{path}"' for path in sorted(entry.pop("files", FILES)))
    lines = [f'{key} = "{value}"' for key, value in entry.items()]
    text = f"""
format = "datacollect-collection/1"
destination = "D"
key = "collector.key"
limits = {{ connections = 4, patience_s = 20.0 }}
{relay}
[servers.W]
paths = [{paths}]
"""
    (folder / "collection.toml").write_text("\n".join([text, *lines, ""]))
    return folder / "collection.toml"


def arrived(folder):
    base = folder / "into/W"
    return {str(p.relative_to(base)): p.read_bytes() for p in base.rglob("*") if p.is_file()}


@pytest.mark.parametrize("known_by", ["fingerprint", "ca"])
def test_every_file_arrives_and_compression_is_asked_for_never(tmp_path, known_by):
    """nginx would compress all it sends here, and weaken its ETags, if it were let."""
    with nginx(tmp_path) as server:
        write(server.root, FILES)
        entry = {"url": server.url}
        entry[known_by] = server.fingerprint if known_by == "fingerprint" else server.certificate
        answer = dc.pull(collection_file(tmp_path, server, entry), tmp_path / "into")
    assert answer.complete, answer.missing
    assert arrived(tmp_path) == FILES
    assert answer.assurances[0].text == (
        "2 files have no known hash, and one strong ETag throughout"
    )


def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path):
    with nginx(tmp_path) as server:
        write(server.root, FILES)
        path = collection_file(tmp_path, server, {"url": server.url})
        path.write_text(path.read_text().replace("patience_s = 20.0", "patience_s = 3.0"))
        answer = dc.pull(path, tmp_path / "into")
    assert "give the authority that signed it as ca, or its fingerprint" in answer.missing[0].why
    assert arrived(tmp_path) == {}


def test_behind_a_relay(tmp_path):
    """The relay leads to nginx, which is not where its URL says; TLS is nginx's own."""
    with nginx(tmp_path) as server:
        write(server.root, FILES)
        path = write_agent(tmp_path, "R", connect_to={"W": f"127.0.0.1:{server.port}"})
        with running(path) as agent:
            relay = f'[agents.R]\nurl = "https://{agent.place}"\nca = "R.cert.pem"\n'
            entry = {"url": "https://127.0.0.1:1/", "fingerprint": server.fingerprint}
            answer = dc.pull(collection_file(tmp_path, server, entry, relay), tmp_path / "into")
    assert answer.complete, answer.missing
    assert arrived(tmp_path) == FILES
    assert [use.hosts for use in answer.routes] == [("W", "R", "D")]


@pytest.mark.slow
def test_killed_halfway_it_goes_on_and_what_changed_is_fetched_anew(tmp_path):
    """The first nginx is too slow to end; killed once something is recorded, the rest comes."""
    stays, changes = os.urandom(3_000_000), os.urandom(1_000_000)
    with nginx(tmp_path, more="limit_rate 100k;") as server:
        write(server.root, {"stays": stays, "changes": changes})
        entry = {"url": server.url, "ca": "cert.pem", "files": ["stays", "changes"]}
        path = collection_file(tmp_path, server, entry)
        into = tmp_path / "into"
        command = [sys.executable, "-m", "datacollect", "pull", str(path), "--into", str(into)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_for_bytes(into, process)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait(60)
    kept = status_of(into).recorded_bytes
    assert 0 < kept < len(stays) + len(changes)
    with nginx(tmp_path, port=server.port) as server:
        write(server.root, {"changes": changes[::-1] + b"more"})
        answer = dc.pull(path, into)
    assert answer.complete, answer.missing
    assert arrived(tmp_path) == {"stays": stays, "changes": changes[::-1] + b"more"}
    came = sum(use.n_bytes for use in answer.routes)
    assert came <= len(stays) + len(changes) + 4
    assert came >= len(changes) + 4


def wait_for_bytes(into, process):
    """Wait until something is recorded of a pull that cannot have ended."""
    for _ in range(3000):
        with suppress(dc.ProblemError):  # there is no state yet
            if status_of(into).recorded_bytes:
                return
        assert process.poll() is None, "it has ended"
        time.sleep(0.02)
    raise AssertionError("nothing comes")


SMALL = {f"{n}.bin": os.urandom(2000) for n in range(12)}


def test_a_login_page_is_no_file_and_what_was_collected_stays(tmp_path):
    """All names lead to one page, which nginx sends in any ranges, with a strong ETag."""
    with nginx(tmp_path) as server:
        write(server.root, SMALL | {"login.html": b"<!DOCTYPE html><title>Sign in</title>\n"})
        entry = {"url": server.url, "ca": "cert.pem", "files": [*SMALL]}
        path = collection_file(tmp_path, server, entry)
        assert dc.pull(path, tmp_path / "into").complete
    closed = "types { text/html html; } rewrite ^/(?!login) /login.html redirect;"
    for into, there in (("into", SMALL), ("elsewhere", {})):
        with nginx(tmp_path, port=server.port, more=closed):
            answer = dc.pull(path, tmp_path / into)
        base = tmp_path / into / "W"
        assert {p.name: p.read_bytes() for p in base.glob("*")} == there
        assert not answer.complete
        assert "a login page?" in answer.missing[0].why
        assert "/login.html for 12 files" in answer.missing[0].why


@pytest.mark.slow
def test_a_server_that_limits_requests_is_listed_and_fetched(tmp_path):
    zone = "limit_req_zone $binary_remote_addr zone=z:1m rate=20r/s; limit_req_status 429;"
    with nginx(tmp_path, http=zone, more="limit_req zone=z burst=2 nodelay;") as server:
        write(server.root, SMALL)
        entry = {"url": server.url, "ca": "cert.pem", "files": [*SMALL]}
        answer = dc.pull(collection_file(tmp_path, server, entry), tmp_path / "into")
        n_refused = sum(" 429 " in line for line in server.requests())
    assert answer.complete, answer.missing
    assert arrived(tmp_path) == SMALL
    assert n_refused < 40  # on a slow machine nobody may have come too often


def test_what_is_stored_packed_comes_where_its_hash_is_known(tmp_path):
    """nginx sends NAME.gz for NAME, with Content-Encoding: gzip, whatever it is asked for."""
    packed = gzip.compress(TEXT, mtime=0)
    with nginx(tmp_path, more="gzip_static always;") as server:
        write(server.root, {"t.txt.gz": packed, "t.txt": b"never sent"})
        entry = {"url": server.url, "ca": "cert.pem", "files": ["t.txt"]}
        path = collection_file(tmp_path, server, entry)
        answer = dc.pull(path, tmp_path / "into")
        assert "it is stored that way" in answer.missing[0].why
        row = f"W,t.txt,{len(packed)},{hashlib.sha256(packed).hexdigest()}"
        (tmp_path / "files.csv").write_text(f"host,path,bytes,sha256\n{row}\n")
        path.write_text(path.read_text().replace('paths = ["t.txt"]', 'manifest = "files.csv"'))
        answer = dc.pull(path, tmp_path / "into")
    assert answer.complete, answer.missing
    assert arrived(tmp_path) == {"t.txt": packed}
