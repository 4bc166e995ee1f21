"""Job files and tables, against their schemas; what is said about what cannot be expressed."""

from __future__ import annotations

import csv
import io
import re
import shlex

import numpy as np
import pytest
from conftest import REPOSITORY
from instances.real_files import RELAY, make_files, problem_of_files

import datacollect as dc
from datacollect.errors import InfeasibleError
from datacollect.exports.export import export
from datacollect.exports.formats import EXPORTS
from datacollect.exports.jobs import jobs_of
from datacollect.exports.script_texts import summary_lines
from datacollect.exports.templates import read_templates
from datacollect.problem.manifest import Files, read_manifest


@pytest.fixture(scope="module")
def setting(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    problem = problem_of_files()
    return problem, dc.coordinated(problem), read_manifest(make_files(folder))


def exported(setting, kind, *own, **options):
    problem, plan, manifest = setting
    templates = read_templates(own, [], problem.names, is_url=kind not in ("rsync", "rclone"))
    return export(problem, plan, manifest, kind, templates, **options)


def test_tables_say_all_that_is_known(setting):
    found = exported(setting, "csv")
    rows = list(csv.DictReader(io.StringIO(found.texts[""], newline="")))
    assert sum(int(row["bytes"]) for row in rows if row["host"] == "D") == setting[0].total_bytes
    assert {row["forward_to"] for row in rows if row["host"] == RELAY} == {"D"}
    assert max(float(row["finish_s"]) for row in rows) == found.makespan_s
    assert {row["address"] for row in rows} == {""}
    assert "two\nlines" in {row["path"] for row in rows}


def test_scripts_stand_in_one_folder_and_say_how_long_they_take(setting):
    found = exported(setting, "curl", "http://h.example/{host}/{source}/{path}")
    assert set(found.texts) == {"re%2Flay.sh", "D.sh"}
    assert found.makespan_s >= setting[1].makespan_s
    assert any("Relays forward whole pieces" in text for text in found.notes)


def test_a_relay_without_the_room_is_refused(setting):
    problem, plan, manifest = setting
    tight = problem.replace(storage_bytes=[float("inf"), float("inf"), 5000.0, float("inf")])
    url = read_templates(["http://h/{host}/{source}/{path}"], [], problem.names, is_url=True)
    with pytest.raises(InfeasibleError, match=r"nothing deletes at 're/lay' .* is 5 kB"):
        export(tight, plan, manifest, "curl", url)


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ((), "No SHA-256 is known: sizes are compared only."),
        (("S1",), "The SHA-256 of one file is not known: there sizes are compared only."),
        (("S1", "S2"), None),
    ],
)
def test_files_of_one_name_at_several_sources_are_several(known, said, tmp_path):
    """Two sources call their file `a`, of 1 MB each."""
    rows = [f"{host},a,1000000,{'0' * 64 if host in known else ''}\n" for host in ("S1", "S2")]
    (tmp_path / "files.csv").write_text("host,path,bytes,sha256\n" + "".join(rows))
    problem = two_sources()
    setting = problem, dc.direct(problem), read_manifest(tmp_path / "files.csv")
    notes = exported(setting, "curl", "http://{host}.example/{path}").notes
    assert [note for note in notes if "SHA-256" in note] == ([said] if said else [])


def two_sources():
    """Each sends 1 MB at 1 MB/s; S2 not before 1 s, when S1 has ended."""
    return dc.Problem.from_hosts(
        [dc.Host("S1", 1_000_000), dc.Host("S2", 1_000_000, release_s=1.0), dc.Host("D")],
        [dc.Link("S1", "D", 1e6), dc.Link("S2", "D", 1e6)],
        "D",
    )


def test_the_rate_of_a_host_is_what_it_takes_together_at_any_time():
    """One source after the other: 1 MB/s, 8 Mbit/s, though each has a lane of its own."""
    problem = two_sources()
    one = Files(("a",), np.array([1_000_000]), ("",))
    jobs = jobs_of(problem, dc.direct(problem), {"S1": one, "S2": one})
    assert {job.lane for job in jobs.jobs} == {0, 1}
    assert summary_lines(jobs.jobs) == (2, "2 MB", "8 Mbit/s")


def test_the_documents_say_of_each_tool_what_its_format_says():
    page = (REPOSITORY / "docs" / "exports.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\w+) \| (yes|no)[^|]*\|[^|]*\| (yes|no)", page, re.MULTILINE)
    formats = [EXPORTS.get(name) for name in EXPORTS.own]
    assert {name.lower(): (cuts == "yes", timed == "yes") for name, cuts, timed in rows} == {
        each.name: (each.may_cut, each.is_timed) for each in formats if each.next_step
    }


def test_rsync_needs_a_folder_to_list_names_in(setting):
    with pytest.raises(dc.ProblemError, match=r"rsync needs an address that ends in /\{path\}"):
        exported(setting, "rsync", "{host}:/data/{source}/x{path}.tar")


@pytest.mark.parametrize(
    ("folder", "base"),
    [
        ("{host}:/data/{source}/", "{host}:/data/{source}/./"),
        ("/data/a::b/{source}/", "/data/a::b/{source}/./"),
        ("rsync://me@{host}:873/m o/{source}/a/", "rsync://me@{host}:873/m o/./{source}/a/"),
        ("RSYNC://[::1]/{source}/", "RSYNC://[::1]/{source}/./"),
        ("{host}::m/{source}/", "{host}::m/./{source}/"),
        ("me@[::1]::m/{source}/", "me@[::1]::m/./{source}/"),
    ],
)
def test_an_rsync_daemon_is_asked_for_names_below_its_module(setting, folder, base):
    others = [f"{host}=/mnt/{{source}}/{{path}}" for host in ("S 1", RELAY)]
    text = exported(setting, "rsync", folder + "{path}", *others).texts["D.sh"]
    address = base.format(host="S2", source="S2") + "deep/er/big.tar"
    assert f" {shlex.quote(address)} " in text


@pytest.mark.parametrize("url", ["rsync://{host}/{path}", "rsync://{host}:873/{path}"])
def test_an_rsync_daemon_needs_a_module(setting, url):
    with pytest.raises(dc.ProblemError, match="must name a module before"):
        exported(setting, "rsync", url)


@pytest.mark.parametrize(
    ("kind", "url"), [("curl", "ftp://x/{path}"), ("curl", "x/{path}"), ("aria2", "file:///{path}")]
)
def test_addresses_of_which_nothing_can_be_proved_are_refused(setting, kind, url):
    with pytest.raises(
        dc.ProblemError, match=f"{kind} scripts can check data only over https or http"
    ):
        exported(setting, kind, url.replace("{path}", "{source}/{path}"))


def test_scripts_list_what_they_take_for_granted(setting):
    """D holds all of S2's file and the first 300 000 bytes of S 1's first one."""
    problem, _, manifest = setting
    held = [dc.Held("D", "S2", 0, 600_000), dc.Held("D", "S 1", 0, 300_000)]
    rest = problem.replace(held=held)
    templates = read_templates(["https://h/{source}/{path}"], [], problem.names, is_url=True)
    text = export(rest, dc.direct(rest), manifest, "curl", templates).texts["D.sh"]
    lines = [line.split() for line in text.splitlines() if line.startswith("    have ")]
    numbers = [tuple(map(int, words[1:4])) for words in lines]
    assert numbers == [(0, 300_000, 400_000), (0, 600_000, 600_000)]


def test_no_credentials_and_no_other_addresses_than_given_are_written(setting):
    for kind in ("curl", "aria2", "rclone", "rsync", "fts"):
        for text in exported(
            setting, kind, "https://h.example/{host}/{source}/{path}"
        ).texts.values():
            assert "password" not in text.lower()
            # Kind words about where credentials are kept, nothing else.
            assert "Authorization" not in text
