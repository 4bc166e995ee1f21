"""Jobs for FTS carried out at a real XRootD, hop by hop: what arrives, and under which names."""

from __future__ import annotations

import hashlib
import json
import random
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from instances.xrootd import (
    copy_by_gfal2,
    copy_by_gfal2_and_a_file,
    copy_by_xrdcp,
    require_gfal2,
    xrootd,
)
from judges.fts_judge import transfers

import datacollect as dc
from datacollect.exports.export import export
from datacollect.exports.templates import read_templates
from datacollect.problem.manifest import Files

# What other schemes would have to encode.
SAYABLE = (
    "plain",
    "#a#b",
    "a=b;c+d,e",
    "we'ird\"$(x)`\\|<>^*!",
    "[x]{y}(z)~",
    "-rf",
    "deep/er/x:y@z",
    "ü漢é😀",
    "no-break\u00a0space",
)
# Each by its own reader on the way: FTS's REST server, its command line, gfal2, XRootD.
LOST = (
    "end#",
    "end\u3000",
    "two\nlines",
    "tab\there",
    "a b",
    "a%20b",
    "a%41b",
    "what?",
    "what?x=y",
)


@pytest.fixture(scope="module")
def server():
    with xrootd() as running:
        yield running


@pytest.fixture(params=[copy_by_xrdcp, copy_by_gfal2_and_a_file], ids=["xrdcp", "gfal2"])
def copy(request):
    if request.param is copy_by_gfal2_and_a_file:
        require_gfal2()
    return request.param


def write(server, host, name, data):
    path = server.data / host / "S" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    server.own(path, *(folder for folder in path.parents if server.data in folder.parents))


def arrived(server, host):
    folder = server.data / host / "S"
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def jobs(server, contents, tag, *, algorithm):
    """Return the jobs of a plan by which S sends straight, and twice as much by K."""
    sizes = [len(data) for data in contents.values()]
    known = tuple(
        f"{zlib.adler32(data):08x}" if algorithm == "adler32" else hashlib.md5(data).hexdigest()
        for data in contents.values()
    )
    files = Files(tuple(contents), np.array(sizes), ("",) * len(sizes), **{algorithm: known})
    links = [dc.Link("S", "D", 1e6), dc.Link("S", "K", 2e6), dc.Link("K", "D", 2e6)]
    hosts = [dc.Host("S", files.total_bytes), dc.Host("K"), dc.Host("D")]
    problem = dc.Problem.from_hosts(hosts, links, "D")
    url = f"{server.url}/{tag}-{{host}}/{{source}}/{{path}}"
    templates = read_templates([url], [], problem.names, is_url=True)
    found = export(problem, dc.coordinated(problem), {"S": files}, "fts", templates)
    return [json.loads(text) for text in found.texts.values()]


def carry_out(trees, copy):
    """Do as FTS does, all copies of all jobs, some at once; return what went wrong."""

    def in_turn(hops):
        for hop in hops:
            checksum = hop.checksum if hop.mode == "both" else None
            why = copy(hop.source, hop.destination, checksum, overwrite=hop.overwrite)
            if why is not None:
                return hop, why
        return None

    chains = []
    for tree in trees:
        hops = transfers(tree)
        chains += [hops] if tree["params"]["multihop"] else [[hop] for hop in hops]
    with ThreadPoolExecutor(4) as at_once:
        return [wrong for wrong in at_once.map(in_turn, chains) if wrong is not None]


def arrive(server, copy, tag, *, names=SAYABLE, algorithm="adler32"):
    """Have all files of S arrive at D, after an attempt that was cut short at the relay."""
    chance = random.Random(7)
    contents = {name: chance.randbytes(chance.randrange(1, 9000)) for name in names}
    contents["empty"] = b""
    for name, data in contents.items():
        write(server, f"{tag}-S", name, data)
    for name in names:
        write(server, f"{tag}-K", name, b"half")
    trees = jobs(server, contents, tag, algorithm=algorithm)
    assert any(tree["params"]["multihop"] for tree in trees)
    assert carry_out(trees, copy) == []
    assert arrived(server, f"{tag}-D") == contents


@pytest.mark.slow
def test_all_files_arrive_under_their_names_directly_and_by_the_relay(server, copy):
    arrive(server, copy, copy.__name__)


def test_files_of_which_only_md5_is_known_arrive_too(server):
    """Without it, since gfal2 compares eight digits of it, as the next test shows."""
    require_gfal2()
    arrive(server, copy_by_gfal2_and_a_file, "md5", names=SAYABLE[:3], algorithm="md5")


def test_gfal2_takes_no_md5_between_xrootds(server):
    require_gfal2()
    write(server, "cut-S", "a", b"data")
    copy = (f"{server.url}/cut-S/S/a", f"{server.url}/cut-D/S/a")
    right = f"MD5:{hashlib.md5(b'data').hexdigest()}"
    assert copy_by_xrdcp(*copy, right, overwrite=False) is None
    assert "checksum error" in copy_by_gfal2_and_a_file(*copy, right, overwrite=True).lower()


@pytest.mark.slow
def test_an_ampersand_begins_an_option_of_copies_from_server_to_server(server):
    require_gfal2()
    write(server, "option-S", "a&tpc.src=x", b"data")
    copy = (f"{server.url}/option-S/S/a&tpc.src=x", f"{server.url}/option-D/S/a&tpc.src=x")
    assert "Invalid address" in copy_by_gfal2(*copy, None, overwrite=False)


@pytest.mark.slow
def test_all_files_arrive_from_server_to_server(server):
    """As FTS has it: each copy waits seconds for its destination, which starts an xrdcp."""
    require_gfal2()
    arrive(server, copy_by_gfal2, "servers")


def test_what_lies_at_the_destination_already_is_kept(server, copy):
    tag = f"{copy.__name__}-kept"
    write(server, f"{tag}-S", "a", b"new")
    write(server, f"{tag}-D", "a", b"old")
    (wrong,) = carry_out(jobs(server, {"a": b"new"}, tag, algorithm="adler32"), copy)
    assert "exist" in wrong[1].lower()
    assert arrived(server, f"{tag}-D") == {"a": b"old"}


def test_other_bytes_than_the_manifests_are_found_out(server, copy):
    tag = f"{copy.__name__}-other"
    write(server, f"{tag}-S", "a", b"odd")
    (wrong,) = carry_out(jobs(server, {"a": b"new"}, tag, algorithm="adler32"), copy)
    assert "checksum" in wrong[1].lower()


@pytest.mark.slow
@pytest.mark.parametrize("name", LOST, ids=ascii)
def test_names_that_are_refused_would_not_arrive(server, name):
    """Each is tried as it is, as a job that nobody refuses would have it."""
    require_gfal2()
    tag = f"lost-{LOST.index(name)}"
    write(server, f"{tag}-S", name, b"data")
    with pytest.raises(dc.ProblemError, match="FTS cannot take these files"):
        jobs(server, {name: b"data"}, tag, algorithm="adler32")
    copy = {
        "sources": [f"{server.url}/{tag}-S/S/{name}"],
        "destinations": [f"{server.url}/{tag}-D/S/{name}"],
    }
    carry_out([{"files": [copy], "params": {"multihop": False}}], copy_by_gfal2_and_a_file)
    assert arrived(server, f"{tag}-D") != {name: b"data"}


def test_an_encoded_name_is_another_file_to_xrootd(server):
    """Why nothing is encoded: `%20` is not found, and at a destination appears as it is."""
    write(server, "encoded", "a b", b"data")
    root = f"{server.url}/encoded/S"
    missing = copy_by_xrdcp(f"{root}/a%20b", f"{root}/new", None, overwrite=False)
    assert "no such file" in missing.lower()
    assert copy_by_xrdcp(f"{root}/a b", f"{root}/b%20c", None, overwrite=False) is None
    assert set(arrived(server, "encoded")) == {"a b", "b%20c"}
