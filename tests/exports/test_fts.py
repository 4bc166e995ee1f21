"""Jobs for FTS: what is in them, against FTS's schema and what its server does with them."""

from __future__ import annotations

import json
import unicodedata
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from instances.real_files import NAMES, RELAY, make_files, problem_of_files
from judges.fts_judge import transfers

import datacollect as dc
from datacollect.exports.export import export
from datacollect.exports.templates import read_templates
from datacollect.problem.manifest import Files, read_manifest

DAVS = "davs://{host}.example:443/{source}/{path}"
ROOT = "root://{host}.example//data/{source}/{path}"
ADLER = "0badf00d"


def exported(setting, *urls, **options):
    problem, plan, manifest = setting
    templates = read_templates(urls, [], problem.names, is_url=True)
    return export(problem, plan, manifest, "fts", templates, **options)


def trees_of(found):
    return [json.loads(text) for text in found.texts.values()]


def arrivals(trees):
    """Return what arrives at the destination, by source, in FTS's order."""
    return [
        (file["metadata"]["source"], file["destinations"][0])
        for tree in trees
        for file in tree["files"]
        if file["metadata"]["to"] == "D"
    ]


@pytest.fixture(scope="module")
def setting(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    problem = problem_of_files()
    return problem, dc.coordinated(problem), read_manifest(make_files(folder))


def test_jobs_fit_its_schema_and_chain_what_is_relayed(setting):
    found = exported(setting, DAVS)
    trees = trees_of(found)
    for tree in trees:
        transfers(tree)
    chains = [tree for tree in trees if tree["params"]["multihop"]]
    assert chains
    for chain in chains:
        first, second = chain["files"]
        # FTS: each source of a chain is the destination before it.
        assert first["destinations"] == second["sources"]
        assert first["metadata"]["to"] == RELAY
        assert first["checksum"].startswith("SHA256:")
    assert sum(file["filesize"] for tree in trees for file in tree["files"][-1:]) > 0
    assert any("FTS knows no start times and no rate limits" in text for text in found.notes)
    assert any("fts fetches whole files: 1 that the plan cuts" in text for text in found.notes)


def test_every_file_is_in_exactly_one_job_those_without_bytes_too(setting):
    arrived = arrivals(trees_of(exported(setting, DAVS)))
    wanted = sorted((source, name) for source, files in NAMES.items() for name, _ in files)
    paths = [
        (source, unquote(urlsplit(address).path).removeprefix(f"/{source}/"))
        for source, address in arrived
    ]
    assert sorted(paths) == wanted


def test_what_an_earlier_attempt_left_at_relays_is_overwritten_and_nothing_else(setting):
    """By the judge's reading of FTS, not by the parameter's name."""
    for tree in trees_of(exported(setting, DAVS)):
        *hops, last = transfers(tree)
        assert not last.overwrite
        if tree["params"]["multihop"]:
            assert [hop.overwrite for hop in hops] == [True]
        else:
            assert not any(transfer.overwrite for transfer in hops)


def straight_and_relayed(files, *, rate=1e6):
    """S sends to D straight and, twice as fast, by K; E, with no bytes, has a link to K only."""
    problem = dc.Problem.from_hosts(
        [dc.Host("S", files.total_bytes), dc.Host("E"), dc.Host("K"), dc.Host("D")],
        [
            dc.Link("S", "D", rate),
            dc.Link("S", "K", 2 * rate),
            dc.Link("E", "K", rate),
            dc.Link("K", "D", 2 * rate),
        ],
        "D",
    )
    return problem, dc.coordinated(problem), {"S": files}


def files_of(*names, sizes=None, **checksums):
    sizes = sizes or [1000] * len(names)
    return Files(names, np.array(sizes), ("",) * len(names), **checksums)


def test_the_checksum_that_grids_know_is_taken_and_one_may_be_asked_for():
    files = Files(
        ("all", "md5", "sha", "none"),
        np.array([10] * 4),
        ("1" * 64, "", "2" * 64, ""),
        adler32=(ADLER, "", "", ""),
        md5=("3" * 32, "4" * 32, "", ""),
    )
    setting = straight_and_relayed(files)

    def checksums(**options):
        trees = trees_of(exported(setting, DAVS, **options))
        for tree in trees:
            for transfer in transfers(tree):
                # FTS compares all of a job, or nothing of it.
                assert transfer.mode == ("both" if ":" in transfer.checksum else "none")
        last = [
            tree["files"][-1:] if tree["params"]["multihop"] else tree["files"] for tree in trees
        ]
        return {
            file["destinations"][0].rpartition("/")[2]: file.get("checksum")
            for files in last
            for file in files
        }

    assert checksums() == {
        "all": f"ADLER32:{ADLER}",
        "md5": f"MD5:{'4' * 32}",
        "sha": f"SHA256:{'2' * 64}",
        "none": None,
    }
    assert checksums(options={"checksum": "md5"}) == {
        "all": f"MD5:{'3' * 32}",
        "md5": f"MD5:{'4' * 32}",
        "sha": None,
        "none": None,
    }


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ({}, "No checksum is known of any file: there FTS compares sizes only."),
        ({"adler32": (ADLER, "")}, "No checksum is known of 1 of 2 files"),
        ({"adler32": (ADLER, ADLER)}, None),
    ],
)
def test_what_is_not_compared_is_said(known, said):
    notes = exported(straight_and_relayed(files_of("a", "b", **known)), DAVS).notes
    found = [note for note in notes if "No checksum" in note]
    assert len(found) == (said is not None)
    assert said is None or found[0].startswith(said)


def test_what_ftss_own_command_needs_is_said_where_there_are_checksums():
    for known, is_said in (({}, False), ({"adler32": (ADLER,)}, True)):
        notes = exported(straight_and_relayed(files_of("a", **known)), DAVS).notes
        assert any("--checksum-mode both" in note for note in notes) == is_said


def test_sha_256_alone_is_said_to_be_rare():
    files = Files(("a",), np.array([5]), ("1" * 64,))
    assert any(
        "Of 1 of 1 files SHA-256 is compared" in note
        for note in exported(straight_and_relayed(files), DAVS).notes
    )


def test_between_xrootds_gfal2_compares_adler32_only():
    """One hop by WebDAV is none of these: S sends `b` there, and `a` to the relay's XRootD."""
    files = files_of("a", "b", md5=("1" * 32, "2" * 32))
    found = exported(straight_and_relayed(files), ROOT)
    assert not any("checksum" in file for tree in trees_of(found) for file in tree["files"])
    assert [note for note in found.notes if "only MD5 or SHA-256" in note]
    assert not any("No checksum is known" in note for note in found.notes)
    for options in ({"options": {"checksum": "md5"}}, {}):
        urls = [ROOT] if options else [ROOT, f"D={DAVS}", f"K={DAVS}"]
        trees = trees_of(exported(straight_and_relayed(files), *urls, **options))
        assert all("checksum" in file for tree in trees for file in tree["files"])


def test_a_checksum_that_no_file_has_cannot_be_asked_for():
    with pytest.raises(
        dc.ProblemError, match="--checksum md5: the manifest has this checksum for no file"
    ):
        exported(straight_and_relayed(files_of("a")), DAVS, options={"checksum": "md5"})


def test_names_follow_the_rules_of_their_schemes():
    """S is served by XRootD, which decodes nothing, D and the relay by WebDAV, which does."""
    setting = straight_and_relayed(files_of("ü#+=x"))
    urls = ("S=root://s.example//data/{path}", DAVS)
    found = exported(setting, *urls)
    files = [file for tree in trees_of(found) for file in tree["files"]]
    (first,) = [file for file in files if file["metadata"]["from"] == "S"]
    assert first["sources"] == ["root://s.example//data/ü#+=x"]
    (last,) = [file for file in files if file["metadata"]["to"] == "D"]
    assert last["destinations"] == ["davs://D.example:443/S/%C3%BC%23%2B%3Dx"]
    assert any(note.startswith("1 name with more than ASCII: root://") for note in found.notes)
    assert not any("ASCII" in note for note in exported(setting, DAVS).notes)


def test_a_destinations_own_address_is_not_the_relays():
    problem, plan, manifest = straight_and_relayed(files_of("a", "b"))
    own = [ROOT, "D=davs://d.example/{source}/{path}"]
    templates = read_templates(own, ["davs://k/{source}/{path}"], problem.names, is_url=True)
    trees = trees_of(export(problem, plan, manifest, "fts", templates))
    assert {address.rpartition("/")[0] for _, address in arrivals(trees)} == {"davs://d.example/S"}
    relays = {
        file["destinations"][0]
        for tree in trees
        for file in tree["files"][:-1]
        if tree["params"]["multihop"]
    }
    assert {address.rpartition("/")[0] for address in relays} == {"davs://k/S"}


@pytest.mark.parametrize(
    ("url", "name", "why"),
    [
        (ROOT, "a b", r"root:// cannot say ' ': FTS divides its commands there"),
        (ROOT, "a%20b", r"root:// cannot say '%': gfal2 decodes it, XRootD does not"),
        (ROOT, "50%", r"root:// cannot say '%'"),
        (ROOT, "a?b", r"root:// cannot say '\?': XRootD takes what follows for options"),
        (ROOT, "a&b", r"root:// cannot say '&': XRootD takes what follows for options in copies"),
        (ROOT, "a\nb", r"root:// cannot say '\\n': FTS drops control characters"),
        (ROOT, "a#", r"FTS drops '#' at the end"),
        (ROOT, "a\u3000", r"FTS drops '\\u3000' at the end"),
        (ROOT, "x/" * 600 + "x", r"FTS keeps 1100 characters of an address, this has 12"),
        (DAVS, "x/" * 600 + "x", r"FTS keeps 1100 characters of an address, this has 12"),
        ("roots://{host}//{source}/{path}", "a b", r"roots:// cannot say ' '"),
        ("gsiftp://{host}/{source}/{path}", "a+b", r"how gsiftp:// says 'a\+b' differs"),
        ("srm://{host}/x?SFN=/{source}/{path}", "ü", r"how srm:// says 'ü' differs"),
        ("file:///{host}/{source}/{path}", "a", r"FTS needs addresses such as root://"),
        ("{host}.example/{source}/{path}", "a", r"FTS needs addresses such as root://"),
        ("root:///{host}/{source}/{path}", "a", r"FTS needs a host after root://"),
        ("root://[{host}/{source}/{path}", "a", r"FTS needs a URL"),
        ("davs://{host}.example?{source}={path}", "a", r"FTS needs a path after the host"),
        ("davs://{host}/my data/{source}/{path}", "a", r"FTS divides its commands at spaces"),
    ],
)
def test_what_a_scheme_or_fts_cannot_say_is_refused_by_name(url, name, why):
    setting = straight_and_relayed(files_of("fine", name, sizes=[1, 1000]))
    remedy = "; rename them, or have them served by https:// or davs://"
    with pytest.raises(dc.ProblemError, match=rf"(?s)of 'S' \({why}.*{remedy}"):
        exported(setting, url)


def test_a_refusal_names_a_few_and_counts_the_rest():
    names = [f"a {k}" for k in range(5)]
    with pytest.raises(dc.ProblemError, match=r"'a 0' .*'a 1' .*'a 2' .*; and 2 more; rename"):
        exported(straight_and_relayed(files_of(*names)), ROOT)


def test_files_without_bytes_go_directly_or_by_a_route_of_the_plan():
    """E has nothing else to send, and no link to D: nothing says by whom its file could go."""
    problem, plan, manifest = straight_and_relayed(files_of("a", "e", sizes=[1000, 0]))
    trees = trees_of(exported((problem, plan, manifest), DAVS))
    assert sorted(address.rpartition("/")[2] for _, address in arrivals(trees)) == ["a", "e"]
    with pytest.raises(dc.ProblemError, match="'x' of 'E' has no bytes, and neither a link nor"):
        exported((problem, plan, manifest | {"E": files_of("x", sizes=[0])}), DAVS)


def test_files_without_bytes_pass_relays_where_all_do():
    problem = dc.Problem.from_hosts(
        [dc.Host("S", 1000), dc.Host("K"), dc.Host("D")],
        [dc.Link("S", "K", 1e6), dc.Link("K", "D", 1e6)],
        "D",
    )
    manifest = {"S": files_of("a", "e", sizes=[1000, 0])}
    trees = trees_of(exported((problem, dc.coordinated(problem), manifest), ROOT))
    sizes = [[file["filesize"] for file in tree["files"]] for tree in trees]
    assert sorted(sizes) == [[0, 0], [1000, 1000]]
    for tree in trees:
        first, second = transfers(tree)
        assert first.destination == second.source


def test_files_at_the_destination_already_need_no_job():
    problem = dc.Problem.from_hosts(
        [dc.Host("S", 1000), dc.Host("D")], [dc.Link("S", "D", 1e6)], "D"
    )
    manifest = {"S": files_of("a"), "D": files_of("here", sizes=[0])}
    trees = trees_of(exported((problem, dc.coordinated(problem), manifest), ROOT))
    assert [source for source, _ in arrivals(trees)] == ["S"]


HOSTILE = st.text(
    st.one_of(
        st.sampled_from(" %?#&+=;:@[]{}~\\\"'`$<>|^*!(),\n\r\t\x7f\xa0\u2028\u3000ü漢é😀A4f-."),
        st.characters(codec="utf-8", exclude_characters="\0/"),
    ),
    min_size=1,
    max_size=12,
).filter(lambda name: name not in (".", ".."))


@given(names=st.lists(HOSTILE, min_size=4, max_size=4, unique=True))
def test_webdav_says_any_name(names):
    """The judge reads jobs as FTS does; what a web server then decodes is the name."""
    setting = straight_and_relayed(files_of(*names, sizes=[0, 10, 500, 2000]))
    reached = []
    for tree in trees_of(exported(setting, DAVS)):
        copies = transfers(tree)
        reached += copies[-1:] if tree["params"]["multihop"] else copies
    paths = [unquote(urlsplit(copy.destination).path) for copy in reached]
    assert sorted(paths) == sorted(f"/S/{name}" for name in names)


@given(name=HOSTILE)
def test_xrootd_is_told_a_name_as_it_is_or_it_is_refused_and_only_what_is_lost_is_refused(name):
    as_it_is = f"root://D.example//data/S/{name}"
    copy = {"sources": ["root://S.example//data/S/x"], "destinations": [as_it_is]}
    (read,) = transfers({"files": [copy], "params": {"multihop": False}})
    controls = [c for c in name if unicodedata.category(c) == "Cc"]
    is_lost = read.destination != as_it_is or bool({*"?&%", *controls} & set(name))
    try:
        trees = trees_of(exported(straight_and_relayed(files_of(name)), ROOT))
    except dc.ProblemError:
        assert is_lost
    else:
        assert not is_lost
        assert [transfers(tree)[-1].destination for tree in trees] == [as_it_is]
