"""``datacollect pulls --as`` and ``datacollect progress``: what they write and refuse."""

from __future__ import annotations

import hashlib
import json
import tomllib

import pytest
from instances.command_line import strict_json

from datacollect.exports.formats import EXPORTS

URL = ("--url", "http://{host}.example/{source}/{path}")
CURL = ("pulls", "figure1.toml", "plan.json", "--as", "curl", "--manifest", "files.csv", *URL)


@pytest.fixture
def listed(planned):
    """A manifest of the example's two sources."""
    (planned / "files.csv").write_text("host,path,bytes\nS1,a,1000000\nS2,b,1000000\n")
    return planned


def test_scripts_are_written_into_a_folder(listed, call):
    code, out, err = call(*CURL, "-o", "scripts")
    assert code == 0, err
    assert {path.name for path in (listed / "scripts").iterdir()} == {"D.sh", "K.sh"}
    assert "expected of curl" in out
    assert "note: Relays forward whole pieces" in err
    assert max(map(len, out.splitlines())) <= 80


def test_nothing_is_overwritten_unless_asked_for(listed, call):
    assert call(*CURL, "-o", "scripts")[0] == 0
    code, out, err = call(*CURL, "-o", "scripts")
    assert (code, out) == (2, "")
    assert "exists already; --force overwrites it" in err
    assert call(*CURL, "-o", "scripts", "--force")[0] == 0


def test_programs_learn_what_was_written(listed, call):
    code, out, _ = call(*CURL, "-o", "scripts", "--json")
    tree = strict_json(out)
    assert code == 0
    assert sorted(tree["files"]) == ["scripts/D.sh", "scripts/K.sh"]
    assert tree["makespan_s"] >= tree["plan_makespan_s"]
    assert tree["format"] == "curl"


def test_one_hosts_script(listed, call):
    assert call(*CURL, "-o", "scripts", "--host", "K")[0] == 0
    assert [path.name for path in (listed / "scripts").iterdir()] == ["K.sh"]
    code, _, err = call(*CURL, "-o", "other", "--host", "S1")
    assert (code, err) == (2, "error: --host: 'S1' neither fetches nor forwards anything\n")


def test_a_table_goes_to_standard_output_or_to_a_file(listed, call):
    table = ("pulls", "figure1.toml", "plan.json", "--as", "csv", "--manifest", "files.csv")
    code, out, _ = call(*table)
    assert code == 0
    assert out.startswith("host,request_from,source,path,offset_bytes,bytes,")
    assert call(*table, "-o", "jobs.csv")[0] == 0
    assert (listed / "jobs.csv").read_text() == out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--as", "curl", "-o", "x"), "figure1.toml has no manifest; give --manifest FILE"),
        (("--url", "http://x/{path}"), "--url is for --as"),
        (("--as", "curl", "--manifest", "files.csv"), "--as curl needs -o"),
        (("--as", "curl", "--manifest", "files.csv", "-o", "x"), "no address is known for what"),
        (("--as", "curll"), "did you mean 'curl'"),
        (("--as", "fts", "--manifest", "none.csv", "-o", "x"), "none.csv: no such file"),
        (("--as", "csv", "--manifest", "files.csv", "-o", "files.csv"), "overwrite the input"),
    ],
)
def test_what_is_refused(listed, call, arguments, message):
    code, out, err = call("pulls", "figure1.toml", "plan.json", *arguments)
    assert (code, out) == (2, "")
    assert message in err


@pytest.fixture
def own(listed):
    """The same, and the problem names the manifest."""
    path = listed / "figure1.toml"
    path.write_text('manifest = "files.csv"\n' + path.read_text())
    return listed


def test_the_problems_own_manifest_is_taken(own, call):
    table = ("pulls", "figure1.toml", "plan.json", "--as", "csv")
    code, out, err = call(*table)
    assert code == 0, err
    assert out == call(*table, "--manifest", "files.csv")[1]
    assert {row.split(",")[3] for row in out.splitlines()[1:]} == {"a", "b"}


def test_a_manifest_that_contradicts_the_problems_is_refused(own, call):
    (own / "other.csv").write_text("host,path,bytes\nS1,a,1000000\nS2,c,1000000\n")
    table = ("pulls", "figure1.toml", "plan.json", "--as", "csv", "--manifest", "other.csv")
    code, out, err = call(*table)
    assert (code, out) == (2, "")
    assert "other.csv: 'S2': contradicts the problem's own manifest" in err
    assert "'b' of 1000000 bytes, got 'c' of 1000000 bytes" in err


FTS = ("pulls", "figure1.toml", "plan.json", "--as", "fts", "--manifest", "files.csv", "-o", "jobs")


def test_jobs_for_fts_have_the_checksum_that_is_asked_for(listed, call):
    (listed / "files.csv").write_text(
        f"host,path,bytes,adler32,md5\nS1,a,1000000,0badf00d,{'a' * 32}\nS2,b,1000000,0badf00e,\n"
    )
    davs = ("--url", "davs://{host}.example/{source}/{path}")
    assert call(*FTS, *davs, "--checksum", "md5")[0] == 0
    trees = [json.loads(path.read_text()) for path in (listed / "jobs").iterdir()]
    known = {
        file["metadata"]["source"]: file.get("checksum") for tree in trees for file in tree["files"]
    }
    assert known == {"S1": f"MD5:{'a' * 32}", "S2": None}


def test_what_fts_cannot_be_told_is_refused_and_nothing_written(listed, call):
    (listed / "files.csv").write_text("host,path,bytes\nS1,a b,1000000\nS2,b,1000000\n")
    code, out, err = call(*FTS, "--url", "root://{host}.example//{source}/{path}")
    assert (code, out) == (2, "")
    assert "'a b' of 'S1' (root:// cannot say ' '" in err
    assert not (listed / "jobs").exists()
    code, out, err = call(*CURL, "--checksum", "md5", "-o", "scripts")
    assert (code, out) == (2, "")
    assert "--checksum is for --as fts" in err


def test_progress_without_a_manifest_says_so(planned, call):
    code, out, err = call("progress", ".")
    assert (code, out) == (2, "")
    assert "--manifest" in err


def test_progress_of_folders(listed, call):
    (listed / "into" / "S1").mkdir(parents=True)
    (listed / "into" / "S1" / "a").write_bytes(bytes(1_000_000))
    begin = ("progress", "into", "--manifest", "files.csv", "--host", "D", "--at", "2")
    code, out, err = call(*begin, "-o", "progress.toml")
    assert (code, err) == (0, "saved to progress.toml\n")
    assert out.splitlines()[-1].split() == ["S1", "D", "1", "MB", "100.0%"]
    assert tomllib.loads((listed / "progress.toml").read_text())["at_s"] == 2.0
    assert call(*begin, "-o", "progress.toml")[0] == 2
    code, out, _ = call(*begin, "--json", "-o", "progress.json")
    assert strict_json(out) == json.loads((listed / "progress.json").read_text())
    code, out, err = call("replan", "figure1.toml", "plan.json", "progress.json", "--json")
    assert (code, strict_json(out)["at_s"]) == (0, 2.0), err


def test_progress_of_nothing(listed, call):
    (listed / "into").mkdir()
    code, out, err = call("progress", "into", "--manifest", "files.csv", "--host", "D")
    assert (code, out) == (0, "nothing has arrived\n")
    assert "nothing is saved" in err
    code, out, err = call("progress", "into", "--manifest", "files.csv", "-o", "x.csv")
    assert (code, out) == (2, "")
    assert "-o must name a progress file, .toml or .json, got 'x.csv'" in err


def test_progress_reads_again_and_gives_up_what_is_wrong(listed, call):
    """S1's complete file is not what its SHA-256 says; of S2's ranges one is, one is not."""
    right, wrong = b"r" * 600_000, b"w" * 400_000
    digest = hashlib.sha256(right).hexdigest()
    known = hashlib.sha256(bytes(1_000_000)).hexdigest()
    (listed / "files.csv").write_text(
        f"host,path,bytes,sha256\nS1,a,1000000,{known}\nS2,b,1000000,\n"
    )
    partial = listed / "into/.datacollect/partial/S2"
    partial.mkdir(parents=True)
    about = {"host": "D", "destination": "D", "partial": ".datacollect/partial"}
    (listed / "into/.datacollect/export.json").write_text(json.dumps(about))
    (listed / "into/S1").mkdir()
    (listed / "into/S1/a").write_bytes(b"a" * 1_000_000)
    (partial / "b").write_bytes(right + wrong)
    for offset, n_bytes in ((0, 600_000), (600_000, 400_000)):
        mark = f"datacollect-piece/1 {offset} {n_bytes} {digest}\n"
        (partial / f"b.datacollect-{offset}-{n_bytes}").write_text(mark)
    progress = ("progress", "into", "--manifest", "files.csv", "--at", "2", "--json")
    code, out, _ = call(*progress)
    assert (code, sum(each["bytes"] for each in strict_json(out)["held"])) == (0, 2_000_000)
    code, out, err = call(*progress, "--recheck")
    assert code == 1
    assert "bytes 600000 to 1000000 of 'b' of 'S2': its bytes were altered" in " ".join(err.split())
    assert "bytes 0 to 1000000 of 'a' of 'S1': its SHA-256 is" in " ".join(err.split())
    assert strict_json(out)["held"] == [
        {"host": "D", "source": "S2", "offset_bytes": 0, "bytes": 600_000}
    ]
    assert (listed / "into/S1/a.datacollect-wrong").stat().st_size == 1_000_000
    # What was wrong is gone: now all is as it came.
    code, again, _ = call(*progress, "--recheck")
    assert (code, again) == (0, out)


def test_progress_sees_what_tools_have_begun(listed, call):
    """12 of 20 MB of aria2: with a SHA-256 they count, without one they are named."""
    folder = listed / "into/.datacollect/partial/S1/a.datacollect-0-1000000.tmp"
    folder.mkdir(parents=True)
    (folder / "data").write_bytes(b"x" * 600_000)
    about = {"host": "D", "destination": "D", "partial": ".datacollect/partial"}
    (listed / "into/.datacollect/export.json").write_text(json.dumps(about))
    code, _, err = call("progress", "into", "--manifest", "files.csv")
    assert code == 0
    assert "600 kB more have arrived of incomplete files" in " ".join(err.split())
    (listed / "files.csv").write_text(f"host,path,bytes,sha256\nS1,a,1000000,{'0' * 64}\n")
    code, out, _ = call("progress", "into", "--manifest", "files.csv")
    assert out.splitlines()[-1].split() == ["S1", "D", "600", "kB", "60.0%"]


def test_help_tells_of_each_format_and_of_what_it_alone_takes(call):
    code, out, err = call("pulls", "--help")
    said = " ".join(out.split())
    assert code == 0, err
    assert f"--as <{'|'.join(EXPORTS.own)}>" in said
    assert "csv: a table." in said
    assert "fts takes --checksum adler32|md5|sha256: what FTS compares" in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*FTS, "--checksum", "md6"), "--checksum must be one of adler32, md5, sha256, got 'md6'"),
        ((*FTS, "--checksum"), "--checksum needs a value"),
        ((*FTS, "--checksums", "md5"), "No such option: --checksums"),
        (("pulls", "figure1.toml", "plan.json", "--checksum=md5"), "--checksum is for --as; say"),
        ((*CURL, "--checksum=md5", "-o", "x"), "is for --as fts; scripts compare SHA-256"),
    ],
)
def test_options_of_one_format_are_refused_elsewhere(listed, call, arguments, message):
    code, out, err = call(*arguments)
    assert (code, out) == (2, "")
    assert message in err
