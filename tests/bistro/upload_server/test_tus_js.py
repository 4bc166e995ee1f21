"""tus-js-client, which browsers and node use, against a bistro; cut at places that a seed says.

https://github.com/tus/tus-js-client, 4.3.1. Its package lock lies in `tus_js`; npm fetches it.
"""

from __future__ import annotations

import base64
import json
import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import NO_NODE, NO_TUS_JS
from instances.bistros import bistro_event, commitment_to, metadata, running_bistro
from instances.cutting import cutting
from instances.how_many import many

from datacollect.bistro.formats.custody.bistro_receipt import read_bistro_receipt

FILES = Path(__file__).with_name("tus_js")
LIMIT_S = 300
BYTES = 3_000_000

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def tus_js(tmp_path_factory):
    """A folder with the client and what drives it."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        pytest.skip(NO_NODE)
    folder = tmp_path_factory.mktemp("tus")
    shutil.copytree(FILES, folder, dirs_exist_ok=True)
    command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    made = subprocess.run(command, cwd=folder, check=False, capture_output=True, timeout=LIMIT_S)
    if made.returncode:
        pytest.skip(NO_TUS_JS)
    return folder


@pytest.fixture
def event(tmp_path):
    return bistro_event(tmp_path, limits={"bytes": 10**8, "commitments_per_ticket": 100})


def data_of(seed: int) -> bytes:
    return random.Random(seed).randbytes(BYTES)


def push(folder: Path, port: int, event, data: bytes, **more: object) -> dict:
    """Return what the client says of a push."""
    commitment = commitment_to(event, data)
    given = {
        "endpoint": f"https://127.0.0.1:{port}/tus/",
        "data": base64.b64encode(data).decode(),
        "metadata": metadata(event, commitment),
    }
    done = subprocess.run(
        ["node", "push.cjs"],
        cwd=folder,
        env=os.environ | {"NODE_TLS_REJECT_UNAUTHORIZED": "0"},
        input=json.dumps(given | more).encode(),
        check=False,
        capture_output=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def require_receipt(said: dict, event, data: bytes) -> None:
    assert said["error"] is None
    word = read_bistro_receipt(said["receipt"], event)
    assert (word.entry, word.size) == (commitment_to(event, data).entry, len(data))


@pytest.mark.parametrize("seed", range(many(14)))
@pytest.mark.parametrize(
    "ways",
    [
        {"chunk_bytes": 400_000},
        {"together": True},
        {"chunk_bytes": 250_000, "checksum": True},
        {"chunk_bytes": 700_000, "together": True},
    ],
    ids=["chunks", "together", "checksums", "together and chunks"],
)
def test_push_goes_on_after_each_cut_and_ends_with_a_receipt(tmp_path, event, tus_js, ways, seed):
    places = [random.Random(seed).randrange(1, BYTES // 2) for _ in range(8)]
    data = data_of(seed)
    with (
        running_bistro(tmp_path) as (client, _),
        cutting(client.address[1], places) as way,
    ):
        said = push(tus_js, way.port, event, data, **ways)
        require_receipt(said, event, data)
        assert way.n_cut > 2
        assert client.facts()["reserved_bytes"] == 0
        client.close()


def test_push_that_was_left_goes_on_in_another_process(tmp_path, event, tus_js):
    data = data_of(1)
    with running_bistro(tmp_path) as (client, _):
        port = client.address[1]
        left = push(tus_js, port, event, data, chunk_bytes=500_000, stop_at=BYTES // 2)
        assert (left["receipt"], left["error"]) == (None, None)
        said = push(tus_js, port, event, data, url=left["url"])
        assert said["requests"] == [["HEAD", 200], ["PATCH", 204]]
        require_receipt(said, event, data)
        client.close()


def test_upload_is_terminated_by_its_owner_alone(tmp_path, event, tus_js):
    """The client sends no signature by itself; whoever has it sends the owner's."""
    data = data_of(2)
    with running_bistro(tmp_path) as (client, _):
        said = push(
            tus_js, client.address[1], event, data, chunk_bytes=500_000, stop_at=1, terminate=True
        )
        assert ["DELETE", 403] in said["requests"]
        path = said["url"][said["url"].index("/tus/") :]
        assert client.give_up(event, path, commitment_to(event, data))[0] == 204
        assert client.facts()["reserved_bytes"] == 0
        client.close()


def test_expired_upload_begins_again(tmp_path, event, tus_js):
    data = data_of(3)
    with running_bistro(tmp_path, expire_s=3.0) as (client, _):
        port = client.address[1]
        left = push(tus_js, port, event, data, chunk_bytes=500_000, stop_at=1)
        path = left["url"][left["url"].index("/tus/") :]
        while client.ask("HEAD", path)[0] != 404:
            pass
        said = push(tus_js, port, event, data, url=left["url"])
        assert said["requests"][:2] == [["HEAD", 404], ["POST", 201]]
        require_receipt(said, event, data)
        client.close()


def test_refusals_are_the_users_to_read(tmp_path, event, tus_js):
    data = data_of(4)
    with running_bistro(tmp_path, most_bytes=BYTES // 2) as (client, _):
        said = push(tus_js, client.address[1], event, data, n_tries=1)
        assert "507" in said["error"]
        assert "south" in said["error"]
        client.close()
