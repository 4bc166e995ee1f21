"""The commands pull and status: what they print, and their exit codes."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

import pytest
from instances.agents import KEY
from instances.web_servers import tiny_server

from datacollect.commands.main import run
from datacollect.net.keys import write_private_key


def test_an_absent_file_is_bad_input(tmp_path, capsys):
    assert run(["pull", str(tmp_path / "c.toml"), "--into", str(tmp_path)]) == 2
    assert "no such file" in capsys.readouterr().err


def test_status_of_a_folder_without_a_pull_is_bad_input(tmp_path, capsys):
    assert run(["status", str(tmp_path)]) == 2
    assert "no pull has written into this folder" in capsys.readouterr().err


@pytest.fixture
def nobody(tmp_path):
    """A collection whose only agent does not answer."""
    from datacollect.net.keys import new_private_key, write_private_key

    write_private_key(tmp_path / "key", new_private_key())
    (tmp_path / "c.toml").write_text(
        'format = "datacollect-collection/1"\ndestination = "D"\nkey = "key"\n'
        f'[agents.S1]\nurl = "https://127.0.0.1:1"\nfingerprint = "sha256:{"0" * 64}"\n'
        "[limits]\npatience_s = 0.1\n"
    )
    return tmp_path


def test_what_cannot_be_had_is_exit_1_and_named(nobody, capsys):
    into = str(nobody / "into")
    assert run(["pull", str(nobody / "c.toml"), "--into", into, "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert said["complete"] is False
    assert [entry["source"] for entry in said["missing"]] == ["S1"]
    assert set(said) >= {
        "complete",
        "bytes",
        "files",
        "predicted_makespan_s",
        "makespan_s",
        "method",
        "routes",
        "refetched_bytes",
        "missing",
    }
    assert run(["pull", str(nobody / "c.toml"), "--into", into]) == 1
    assert "missing: S1: all of it" in capsys.readouterr().out


def test_a_missing_key_is_bad_input(nobody, capsys):
    (nobody / "key").unlink()
    assert run(["pull", str(nobody / "c.toml"), "--into", str(nobody / "into")]) == 2
    assert "key: no such file" in capsys.readouterr().err


# Ends -------------------------------------------------------------------------------------------

KEPT = "what is verified is kept, and the same command continues"
# Some who start tests let their children ignore it.
HEARS_SIGINT = """
import signal
from datacollect.__main__ import main
signal.signal(signal.SIGINT, signal.default_int_handler)
main()
"""


@pytest.fixture
def slow(tmp_path):
    """A collection whose only agent takes long for each answer; the agent."""
    from transfer.pull.lying_agent import LyingAgent

    from datacollect.net.keys import new_private_key, write_private_key

    agent = LyingAgent("S1", tmp_path, {f"{i}": b"x" * 100_000 for i in range(100)}, slow_s=0.05)
    write_private_key(tmp_path / "key", new_private_key())
    (tmp_path / "c.toml").write_text(
        'format = "datacollect-collection/1"\ndestination = "D"\nkey = "key"\n'
        f'[agents.S1]\nurl = "{agent.entry["url"]}"\nfingerprint = "{agent.fingerprint}"\n'
        "[limits]\npiece_bytes = 65536\n"
    )
    yield tmp_path
    agent.stop()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sent", "code", "said"),
    [
        (signal.SIGTERM, 143, f"terminated; {KEPT}"),
        (signal.SIGINT, 130, f"interrupted; {KEPT}"),
    ],
)
def test_sigterm_ends_like_ctrl_c_in_one_line(slow, sent, code, said, capsys):
    with (slow / "c.toml").open("a") as file:
        file.write("connections = 1\n")  # the whole takes long, however late this is sent
    with subprocess.Popen(
        [sys.executable, "-c", HEARS_SIGINT, "pull", "c.toml", "--into", "into"],
        cwd=slow,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        try:
            deadline_s = time.monotonic() + 300
            while not list(slow.glob("into/S1/*")):
                assert child.poll() is None
                assert time.monotonic() < deadline_s
                time.sleep(0.05)
            child.send_signal(sent)
            err = child.stderr.read()
            child.wait(300)
        finally:  # where this fails, the next test is not to be blamed for it
            child.kill()
    assert (child.returncode, err.splitlines()) == (code, [said])
    run(["status", str(slow / "into"), "--json"])
    there = json.loads(capsys.readouterr().out)
    assert not there["complete"]
    assert there["recorded_bytes"] > 0


def test_the_library_installs_no_handler_of_signals(slow):
    import datacollect as dc

    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    dc.pull(str(slow / "c.toml"), slow / "into", plan_only=True)
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before


def test_why_a_source_is_not_reached_is_told_while_it_is_tried(nobody, capsys):
    assert run(["pull", str(nobody / "c.toml"), "--into", str(nobody / "into")]) == 1
    said = capsys.readouterr().err
    assert said.startswith("note: S1: cannot be reached at 127.0.0.1:1: Connection refused;")
    assert "given up: S1: cannot be reached" in said


def test_a_permanent_failure_ends_at_once_with_its_remedy(slow, capsys):
    """Another fingerprint would be another agent for the hour that is allowed for."""
    text = (slow / "c.toml").read_text() + "patience_s = 3600.0\n"
    known = re.search(r"sha256:[0-9a-f]{64}", text)[0]
    (slow / "c.toml").write_text(text.replace(known, f"sha256:{'0' * 64}"))
    assert run(["pull", str(slow / "c.toml"), "--into", str(slow / "into")]) == 1
    said = capsys.readouterr().err
    assert "its certificate must have the fingerprint sha256:0000" in said
    assert f"got {known}" in said
    assert "it is tried again" not in said


# What is shown ----------------------------------------------------------------------------------


@pytest.fixture
def often(monkeypatch):
    """A line of progress every 20 ms."""
    monkeypatch.setattr("datacollect.commands.console.LINE_S", 0.02)


@pytest.mark.slow
@pytest.mark.usefixtures("often")
def test_in_a_pipe_lines_say_how_far_it_is(slow, capsys):
    assert run(["pull", str(slow / "c.toml"), "--into", str(slow / "into")]) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if " files" in line]
    assert lines
    assert all(re.match(r"\d+ %: [\d.]+ k?M?B of 10 MB, \d+ of 100 files", each) for each in lines)


@pytest.mark.usefixtures("often")
def test_quiet_says_nothing_but_the_answer(slow, capsys):
    assert run(["pull", str(slow / "c.toml"), "--into", str(slow / "into"), "--quiet"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert "100 files" in said.out


@pytest.mark.slow
def test_verbose_says_what_the_log_has(slow, capsys):
    """-v what becomes of sources and files, -vv each line."""
    command = ["pull", str(slow / "c.toml"), "--into", str(slow / "into")]
    assert run([*command, "-v"]) == 0
    said = capsys.readouterr().err
    assert re.search(r"^\d+\.\d s: host reached: host S1", said, re.MULTILINE)
    assert "bytes by route" not in said
    log = slow / "into/.datacollect/log.jsonl"
    before = len(log.read_text().splitlines())
    assert run([*command, "-vv"]) == 0
    lines = log.read_text().splitlines()[before:]
    assert [json.loads(each) for each in capsys.readouterr().err.splitlines()] == [
        json.loads(each) for each in lines
    ]


# Verified again ---------------------------------------------------------------------------------


@pytest.fixture
def pulled(slow, capsys):
    """The folder of a collection that is complete."""
    assert run(["pull", str(slow / "c.toml"), "--into", str(slow / "into")]) == 0
    capsys.readouterr()
    return slow


def test_status_says_what_was_listed(pulled, capsys):
    assert run(["status", str(pulled / "into")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["complete", "yes"]
    assert any(line.split()[:2] == ["S1", "yes"] for line in lines)


def test_status_verify_reads_all_again_and_names_what_is_altered(pulled, capsys):
    into = pulled / "into"
    assert run(["status", str(into), "--verify", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["verified"]["files"] == 100
    there = (into / "S1/7").stat()
    (into / "S1/7").write_bytes(b"y" * 100_000)
    os.utime(into / "S1/7", ns=(there.st_atime_ns, there.st_mtime_ns))
    assert run(["status", str(into)]) == 0  # nothing is read
    capsys.readouterr()
    assert run(["status", str(into), "--verify"]) == 1
    said = capsys.readouterr()
    assert "not intact: S1/7: its hash differs" in said.out
    assert "pull … --verify" in said.err
    assert run(["pull", str(pulled / "c.toml"), "--into", str(into), "--verify"]) == 0
    assert "S1/7: its hash differs from when it came; it is fetched again" in (
        capsys.readouterr().err
    )
    assert (into / "S1/7").read_bytes() == b"x" * 100_000
    assert run(["status", str(into), "--verify"]) == 0


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_reading_again_goes_on_where_it_was_interrupted(sent, code, pulled, capsys, monkeypatch):
    from datacollect.transfer.store import verifying

    read = []
    real = verifying.is_as_recorded

    def interrupted_at_the_third(*given):
        read.append(given)
        if len(read) == 3:
            os.kill(os.getpid(), sent)
            time.sleep(60)
        return real(*given)

    monkeypatch.setattr(verifying, "is_as_recorded", interrupted_at_the_third)
    command = ["status", str(pulled / "into"), "--verify"]
    with pytest.raises(SystemExit) as ended:
        run(command)
    assert ended.value.code == code
    said = capsys.readouterr().err
    assert said.endswith("; what was read is saved, and the same command continues\n")
    assert run([*command, "-v"]) == 0
    assert len(read) == 3 + 98
    said = capsys.readouterr()
    assert "100 files" in said.out
    assert re.search(r"\d\.\d s: reading .* again took", " ".join(said.err.split()))


@pytest.mark.usefixtures("often")
def test_in_a_pipe_lines_say_how_much_was_read_again(pulled, capsys, monkeypatch):
    """The last file is read once a line has been written."""
    from datacollect.commands import console
    from datacollect.transfer.store import verifying

    real, write = verifying.is_as_recorded, console.note
    read, said = [], threading.Event()

    def note(text):
        write(text)
        said.set()

    def slowly(*given):
        read.append(given)
        assert len(read) < 100 or said.wait(60)
        return real(*given)

    monkeypatch.setattr(console, "note", note)
    monkeypatch.setattr(verifying, "is_as_recorded", slowly)
    monkeypatch.setattr(verifying, "REPORT_S", 0.0)
    monkeypatch.setattr("datacollect.commands.console.RARELY_S", 0.0)
    assert run(["status", str(pulled / "into"), "--verify"]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert lines
    assert all(re.match(r"\d+ %: [\d.]+ k?M?B of 10 MB, \d+ of 100 files", each) for each in lines)


@pytest.mark.slow
def test_what_is_in_the_way_is_kept_and_named_unless_it_may_be_replaced(slow, capsys):
    into = slow / "into"
    (into / "S1").mkdir(parents=True)
    (into / "S1/7").write_text("mine")
    command = ["pull", str(slow / "c.toml"), "--into", str(into)]
    assert run(command) == 1
    assert "missing: S1/7:" in capsys.readouterr().out
    assert (into / "S1/7").read_text() == "mine"
    assert run([*command, "--overwrite"]) == 0
    assert (into / "S1/7").read_bytes() == b"x" * 100_000


def test_verified_files_that_nobody_confirms_are_named_and_count_by_keep(tmp_path, capsys):
    files = {f"{n}.bin": b"\x93" + bytes([n]) * 99 for n in range(3)}
    write_private_key(tmp_path / "key", KEY)
    with tiny_server(files) as tiny:
        names = ", ".join(f'"{name}"' for name in files)
        (tmp_path / "c.toml").write_text(
            'format = "datacollect-collection/1"\ndestination = "D"\nkey = "key"\n'
            f'[servers.W]\nurl = "{tiny.url}"\nplain_http = true\npaths = [{names}]\n'
        )
        into = str(tmp_path / "into")
        command = ["pull", str(tmp_path / "c.toml"), "--into", into]
        assert run(command) == 0
        assert re.search(r"^received twice +nothing$", capsys.readouterr().out, re.MULTILINE)
        tiny.respond = lambda *_: (403, {}, b'{"message": "session has ended"}')
        capsys.readouterr()
        assert run(command) == 1
        said = capsys.readouterr()
        assert "missing: W/0.bin: kept as verified" in said.out
        assert "note: W: 3 files are kept as they were verified" in said.err
        assert "('session has ended')" in said.err
        assert run(["status", into]) == 1
        assert run([*command, "--keep"]) == 0
        assert "they count, because of --keep" in capsys.readouterr().err
        assert run(["status", into]) == 0
    assert {path.name: path.read_bytes() for path in (tmp_path / "into/W").iterdir()} == files


def test_what_was_altered_has_its_own_remedy(pulled, capsys):
    """Another size or time is seen at once; what `status` says to do is what helps."""
    into = pulled / "into"
    (into / "S1/7").write_bytes(b"mine")
    (into / "S1/8").unlink()
    assert run(["status", str(into), "--verify", "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert said["complete"] is False
    assert [entry["path"] for entry in said["missing"]] == ["7", "8"]
    assert run(["status", str(into), "--verify"]) == 1
    assert "--verify" not in capsys.readouterr().err
    assert run(["pull", str(pulled / "c.toml"), "--into", str(into)]) == 1
    assert "--overwrite, which replaces it" in capsys.readouterr().out
    assert (into / "S1/8").exists()
    assert run(["pull", str(pulled / "c.toml"), "--into", str(into), "--overwrite"]) == 0
    assert run(["status", str(into), "--verify"]) == 0


@pytest.mark.slow
@pytest.mark.parametrize("closed", ["2>&-", "<&- 2>&-"])
def test_with_standard_error_closed_it_ends_as_otherwise(slow, closed):
    command = f'"{sys.executable}" -m datacollect pull c.toml --into into {closed}'
    assert subprocess.run(["sh", "-c", command], cwd=slow, check=False).returncode == 0


def test_no_file_is_opened_as_standard_error():
    """What a library writes there would be written into it."""
    code = (
        "import os\nfrom datacollect.commands import main\nmain.run = lambda _: "
        "os.write(1, os.readlink('/proc/self/fd/2').encode()) * 0\nmain.main()"
    )
    command = f'"{sys.executable}" -c "{code}" 2>&-'
    done = subprocess.run(["sh", "-c", command], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"/dev/null")


def test_a_dry_run_says_what_would_come_of_the_files_that_are_wanted(slow, capsys):
    """Of files 0 to 99 those are meant that begin with 1: 1, and 10 to 19 but for 15."""
    command = ["pull", str(slow / "c.toml"), "--into", str(slow / "into"), "--dry-run"]
    assert run([*command, "--include", "1*", "--exclude", "15"]) == 0
    out = capsys.readouterr().out
    assert ["S1", "10", "1", "MB"] in [line.split() for line in out.splitlines()]
    assert "missing" not in out  # nothing is wrong with what is to come
    assert not (slow / "into/S1").exists()
    assert run([*command, "--include", ""]) == 2
    assert "include: a pattern must not be empty" in capsys.readouterr().err
