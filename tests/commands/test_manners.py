"""Manners of all commands: JSON, overwriting, closed streams, full disks, interruptions."""

from __future__ import annotations

import os
import random
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from instances.agents import KEY, running, write_agent
from instances.command_line import start, strict_json
from instances.host_profiles import profile
from instances.how_many import many

from datacollect.bistro.http.signals import Told
from datacollect.commands.main import run
from datacollect.measurement.sample_store import write_part
from datacollect.net.http_asking import Answer, Asker
from datacollect.net.keys import write_private_key

BOTH = ("figure1.toml", "plan.json")
LISTED = ("--manifest", "files.csv")
CURL = ("--as", "curl", *LISTED, "--url", "http://{host}/{source}/{path}")
SWEEP = """
engine = "fluid"
scenario = "scenario_small.toml"
seeds = {least = 1, most = 1, batch = 1}
axes = [{name = "flows", key = "background.flows", values = [0]}]
"""

HOSTS = f"""
format = "datacollect-hosts/1"
destination = "D"
key = "own.key"
[hosts.D]
url = "https://127.0.0.1:1"
fingerprint = "sha256:{0:064}"
[hosts.S]
url = "https://127.0.0.1:2"
fingerprint = "sha256:{1:064}"
"""

AGENT = ("--name", "N", "--serve", "into", "--collector", KEY.public, "--address", "n.example")
BISTRO = (
    *("--name", "N", "--event", "event.toml", "--bytes", "2 TB"),
    *("--collector", KEY.public, "--address", "n.example"),
)

# Every command as it is used, without --json and -o.
COMMANDS = {
    "plan": ("plan", "figure1.toml"),
    "compare": ("compare", "figure1.toml"),
    "check": ("check", *BOTH),
    "pulls": ("pulls", *BOTH),
    "pulls --as": ("pulls", *BOTH, *CURL, "-o", "scripts"),
    "plot": ("plot", *BOTH, "-o", "new.png"),
    "schema": ("schema", "problem"),
    "example": ("example", "minimal"),
    "examples": ("example",),
    "estimate": ("estimate", "samples.csv"),
    "host predict": ("host", "predict", "PROFILE.toml", "--tls", "--to-disk", "--relay"),
    "measure hosts": ("measure", "hosts", "--iperf3", "S=s:1", "--iperf3", "D=d:1"),
    "measure problem": ("measure", "problem", "measured", "--destination", "D"),
    "measure watch": ("measure", "watch", "measured", "-o", "new.html"),
    "progress": ("progress", "into", *LISTED, "--host", "D"),
    "replan": ("replan", *BOTH, "progress.json"),
    "advise": ("advise", "figure1.toml"),
    "explain": ("explain", "figure1.toml"),
    "front": ("front", "prices.toml"),
    "simulate": ("simulate", "scenario_small.toml", "--engine", "fluid"),
    "sweep": ("sweep", "experiment.toml", "-o", "swept", "--workers", "0"),
    "report": ("report", "done"),
    "feed plan": (
        *("feed", "plan", "--rate", "16 Mbit/s"),
        *("--rtt", "50 ms", "--bandwidth", "20 Mbit/s"),
    ),
    "keys new": ("keys", "new", "new.key"),
    "keys show": ("keys", "show", "own.key"),
    "agent": ("agent", "agent.toml"),
    "agent init": ("agent", "init", *AGENT),
    "bistro init": ("bistro", "init", *BISTRO),
    "collection new": ("collection", "new", "-o", "other.toml", "--key", "own.key"),
    "collection add": ("collection", "add", "S2", "https://s2.example:1", f"sha256:{'0' * 64}"),
    "manifest": ("manifest", "pulled", "-o", "made.csv"),
    "spool list": ("spool", "list", "keeping.toml"),
    "doctor": ("doctor", "collection.toml", "--into", "again"),
    "pull": ("pull", "collection.toml", "--into", "again"),
    "status": ("status", "pulled"),
    "tunnel": ("tunnel", "collection.toml", "S:echo", "--listen", "0"),
    "event new": ("event", "new", "draft.toml", "-o", "new-event.toml"),
    "event tickets": (
        *("event", "tickets", "event.toml", "--people", "people.csv"),
        *("--key", "organiser.key", "-o", "tickets"),
    ),
    "upload": ("upload", "return.txt", "--event", "event.toml"),
    "measure ping": ("measure", "ping", "hosts.toml", "--dry-run"),
    "measure tcp": ("measure", "tcp", "hosts.toml", "--dry-run"),
    "verify": ("verify", "return.txt.receipt.json", "--event", "event.toml"),
    "audit": ("audit", "event.toml", "--log"),
    "timestamp": ("timestamp", "service.toml"),
    "witness": ("witness", "witness.toml"),
}
# They say where they are in one line, however long.
SERVERS = ("agent", "timestamp", "tunnel", "witness")
# They print a line that is copied into a file, however long.
COPIED = ("agent init", "bistro init", "event new", "feed plan")
# Seconds each; `tests/commands/test_simulate.py` and its neighbours look at what they show.
SLOW = ("plot", "front", "simulate", "sweep", "report")
# Where files are written: the option's value, and the file that must not be overwritten.
WRITES = {
    "plan": ("new.json", "new.json"),
    "pulls --as": (None, "scripts/D.sh"),
    "plot": (None, "new.png"),
    "schema": ("new.json", "new.json"),
    "example": (".", "minimal.toml"),
    "estimate": ("new.csv", "new.csv"),
    "measure hosts": ("new.toml", "new.toml"),
    "measure problem": ("new.toml", "new.toml"),
    "measure watch": (None, "new.html"),
    "progress": ("new.toml", "new.toml"),
    "replan": ("new.json", "new.json"),
    "front": ("new.png", "new.png"),
    "simulate": ("outcome", "outcome/run.json"),
    "report": ("page", "page/index.html"),
    "audit": ("new.json", "new.json"),
}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A folder with all that commands read, and an agent that answers."""
    folder, before = tmp_path_factory.mktemp("manners"), Path.cwd()
    os.chdir(folder)
    try:
        for name in ("figure1", "prices", "scenario_small"):
            assert run(["example", name]) == 0
        assert run(["plan", "figure1.toml", "-o", "plan.json"]) == 0
        Path("files.csv").write_text("host,path,bytes\nS1,a,1000000\nS2,b,1000000\n")
        Path("samples.csv").write_text(
            "time,from,to,bandwidth_bytes_per_s\n2026-01-01T00:00:00Z,S,D,5.0\n"
        )
        Path("progress.json").write_text('{"format": "datacollect-progress/1", "at_s": 0.5}')
        Path("experiment.toml").write_text(SWEEP)
        Path("PROFILE.toml").write_text(profile().to_toml())
        Path("into").mkdir()
        assert run(["sweep", "experiment.toml", "-o", "done", "--workers", "0"]) == 0
        write_private_key("own.key", KEY)
        Path("hosts.toml").write_text(HOSTS)
        write_agent(folder, "agent", serve="data")
        (folder / "data" / "file").write_bytes(bytes(1000))
        write_agent(
            folder,
            "keeping",
            connect_to={"S": "s.example:1"},
            more='spool = { folder = "spool", bytes = 1_000_000 }',
        )
        write_servers()
        write_handed_in()
        write_measured()
        with running(write_agent(folder, "S", serve="data")) as source:
            Path("collection.toml").write_text(
                'format = "datacollect-collection/1"\ndestination = "D"\nkey = "own.key"\n'
                f'[agents.S]\nurl = "https://{source.place}"\n'
                f'fingerprint = "{source.agent.fingerprint}"\n'
            )
            assert run(["pull", "collection.toml", "--into", "pulled"]) == 0
            os.chdir(before)
            yield folder
    finally:
        os.chdir(before)


def write_servers():
    """Write the files of an event's service and of a witness."""
    from instances.events import event_bytes, event_of, key_of

    Path("event.toml").write_bytes(event_bytes())
    write_private_key("s0.key", key_of("s0"))
    listen = 'listen = "127.0.0.1:0"'
    Path("service.toml").write_text(
        f'format = "datacollect-service/1"\nevent = "event.toml"\nkey = "s0.key"\n{listen}\n'
        'folder = "log"\n'
    )
    Path("witness.toml").write_text(
        f'format = "datacollect-witness/1"\nname = "w"\nkey = "own.key"\n{listen}\n'
        f'folder = "signed"\nlogs = ["{event_of().services[0].log.text}"]\n'
    )


def write_measured():
    """Write what a test between two hosts leaves."""
    row = {"from": "S", "to": "D", "time_s": 1.7e9, "tool": "tcp", "ended": "done"}
    Path("measured").mkdir()
    write_part(Path("measured"), "1", [{**row, "bandwidth_bytes_per_s": 5.0}])


def write_handed_in():
    """Write what an organiser has, and a file whose receipt proves all."""
    from instances.events import draft_text, event_of, key_of, proof_of

    from datacollect.bistro.formats.event.tickets import new_ticket
    from datacollect.bistro.person.items import items_of, kept_item

    event = event_of()
    write_private_key("organiser.key", key_of("organiser"))
    Path("draft.toml").write_text(draft_text())
    Path("people.csv").write_text("person\nann\nbob\n")
    Path("return.txt").write_text("mine")
    ticket = new_ticket(event, bytes(15) + b"\1", bytes(32), key_of("organiser"))
    [item] = items_of(["return.txt"], None)
    with kept_item(item, event, b"", ticket) as (_, receipt):
        proof = proof_of(receipt.entry, event.services[0].log.name, event.deadline_s)
        item.save(receipt.with_more(proofs=[proof]))


class Nothing(Asker):
    """Services that have published nothing."""

    def get(self, path, most_bytes=0):
        return Answer(404, b"")


class ToldToEnd(Told):
    """As if a signal had come before a server is ready: it ends when it is."""

    def __init__(self, *given):
        super().__init__(*given)
        self.to_end.set()


def run_and_stop(agent, ready):
    """Run an agent that has been told to stop: it ends when it is ready."""
    ready()
    agent.stop()
    agent.run()


@pytest.fixture
def here(prepared, tmp_path, monkeypatch, empty_pictures):
    """A copy of it that a test may write to."""
    import shutil

    folder = shutil.copytree(prepared, tmp_path / "here")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("datacollect.transfer.agent.run.run_agent", run_and_stop)
    listener = "datacollect.transfer.tunnel.listening.TunnelListener"
    monkeypatch.setattr(f"{listener}.run", lambda _: None)
    monkeypatch.setattr("datacollect.bistro.auditor.audit_event.Asker", Nothing)
    for server in ("log_service.server.service", "witness.server"):
        monkeypatch.setattr(f"datacollect.bistro.{server}.Told", ToldToEnd)
    return folder


def test_all_commands_are_looked_at(call):
    _, out, _ = call("--help")
    listed = re.findall(r"^  ([a-z]+) ", out.partition("Commands:")[2], re.MULTILINE)
    # To join takes an organiser who answers: tests/bistro/joining.
    assert set(listed) - {"join"} == {words[0] for words in COMMANDS.values()}


@pytest.mark.parametrize("name", COMMANDS)
def test_json_is_one_object_and_nothing_else(name, here, call):
    code, out, err = call(*COMMANDS[name], "--json")
    assert code == 0, err
    assert strict_json(out)
    assert "Traceback" not in err


# The tests of sweeps and manifests look at what happens to their files. Help of a group, such as
# measure, has no options.
_WRITERS = {name.split()[0] for name in WRITES} - {"measure"} | {"sweep", "manifest", "upload"}


@pytest.mark.parametrize("name", COMMANDS)
def test_help_says_whether_o_is_a_file_or_a_folder(name, call):
    _, out, _ = call(COMMANDS[name][0], "--help")
    words = " ".join(out.split())
    said = re.search(r"-o, --output (\S+)", words)
    if said is not None:
        assert said[1] in ("FILE", "DIR", "OUT", "PATH")
    # Shown at least where one can write at all.
    assert (said is not None) == (COMMANDS[name][0] in _WRITERS)


@pytest.mark.parametrize(
    "name", [n for n in COMMANDS if n not in (*SLOW, *SERVERS, *COPIED, "schema")]
)
def test_tables_fit_80_columns(name, here, call):
    _, out, _ = call(*COMMANDS[name])
    assert max(map(len, out.splitlines()), default=0) <= 80


@pytest.mark.parametrize("name", WRITES)
def test_nothing_is_overwritten_without_force(name, here, call):
    target, file = WRITES[name]
    arguments = [*COMMANDS[name], *(() if target is None else ("-o", target))]
    path = here / file
    path.parent.mkdir(exist_ok=True)
    path.write_text("precious")
    code, out, err = call(*arguments)
    assert (code, out) == (2, "")
    assert "exists already; --force overwrites" in err
    assert path.read_text() == "precious"


def test_a_sweep_goes_on_in_its_folder(here, call):
    for _ in range(2):
        assert call("sweep", "experiment.toml", "-o", "done", "--workers", "0")[0] == 0


def test_an_invalid_schedule_is_said_in_json_too(here, call):
    text = (here / "plan.json").read_text()
    (here / "plan.json").write_text(re.sub('"makespan_s": [0-9.]+', '"makespan_s": 99.0', text))
    code, out, err = call("check", *BOTH, "--json")
    assert code == 1
    assert strict_json(out)["valid"] is False
    assert "plan.json: invalid: " in err


# Streams ------------------------------------------------------------------------------------


def in_shell(line, folder):
    command = line.replace("datacollect", f"{shlex.quote(sys.executable)} -m datacollect")
    return subprocess.run(
        ["bash", "-c", command], check=False, capture_output=True, text=True, cwd=folder
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("datacollect check figure1.toml plan.json >&-", 2, "error: standard output: is closed"),
        ("datacollect example --json >&-", 2, "error: standard output: is closed"),
        (
            "datacollect check figure1.toml plan.json > /dev/full",
            3,
            "error: standard output: cannot be",
        ),
        ("datacollect compare nothing.toml 2>&-", 2, ""),
        ("datacollect compare nothing.toml 2> /dev/full", 2, ""),
        # Nothing goes to standard output here, and the file is not what is closed.
        ("datacollect schema problem -o new.json >&-", 0, "saved to new.json"),
        ("datacollect plan figure1.toml -o /dev/full", 3, "error: /dev/full: cannot be written"),
        ("datacollect keys show own.key >&-", 2, "error: standard output: is closed"),
        ("datacollect status pulled >&-", 2, "error: standard output: is closed"),
        ("datacollect agent agent.toml >&-", 2, "error: standard output: is closed"),
    ],
)
def test_closed_and_full_streams_end_in_one_line(line, code, said, here):
    done = in_shell(line, here)
    assert done.returncode == code, done.stderr
    assert done.stderr.startswith(said)
    assert len(done.stderr.splitlines()) <= 1


# Disks --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WRITES)
def test_a_full_disk_is_three_and_leaves_no_empty_file(name, here, call, monkeypatch):
    import errno

    target, file = WRITES[name]
    arguments = [*COMMANDS[name], *(() if target is None else ("-o", target)), "--force"]
    real = Path.write_bytes

    def full(path, data):
        if ".tmp" not in path.name:
            return real(path, data)
        real(path, data[:10])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    code, _, err = call(*arguments)
    # Nor had it been refused: --force overwrites what is there.
    assert code == 3
    assert [line for line in err.splitlines() if line.startswith("error: ")]
    assert "cannot be written: No space left on device" in err
    assert not (here / file).exists()
    assert not list(here.rglob("*.tmp"))


@pytest.mark.parametrize(("name", "file"), [("keys new", "new.key"), ("agent", "agent.key.pem")])
def test_keys_on_a_full_disk_are_three_and_leave_no_empty_file(name, file, here, call, monkeypatch):
    import errno

    def full(_number):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("datacollect.files.documents.os.fsync", full)
    code, out, err = call(*COMMANDS[name])
    assert (code, out) == (3, "")
    assert f"{file}: cannot be written: No space left on device" in err
    assert len(err.splitlines()) == 1
    assert not (here / file).exists()


def test_a_key_is_not_even_overwritten_by_force(here, call):
    (here / "new.key").write_text("precious")
    code, out, err = call(*COMMANDS["keys new"])
    assert (code, out) == (2, "")
    assert "exists already; a key overwritten is lost: name another file" in err
    assert (here / "new.key").read_text() == "precious"
    assert call(*COMMANDS["keys new"], "--force")[0] == 2


def test_a_pull_into_what_is_no_folder_is_two(here, call):
    code, out, err = call("pull", "collection.toml", "--into", "figure1.toml")
    assert (code, out) == (2, "")
    assert err.startswith("error: figure1.toml: is not a folder that can be written to: ")
    assert len(err.splitlines()) == 1


def test_a_folder_that_is_read_only_is_two(here, call, monkeypatch):
    def refuse(_path, _data):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "write_bytes", refuse)
    code, out, err = call("plan", "figure1.toml", "-o", "new.json")
    assert (code, out) == (2, "")
    assert (
        err
        == "error: new.json: cannot be written: Permission denied; give this user permission to "
        "write there\n"
    )


# Interruptions ------------------------------------------------------------------------------

# What runs, once it says that it is up: Python's own start is nobody's to shape.
BEGIN = "import sys, datacollect.__main__ as m; print(flush=True); sys.argv[1:] = {}; m.main()"


def interrupted(arguments, after_s, folder):
    process = subprocess.Popen(
        [sys.executable, "-c", BEGIN.format(list(arguments))],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
    )
    process.stdout.readline()
    time.sleep(after_s)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    return process.returncode, err


@pytest.mark.slow
def test_ctrl_c_at_any_instant_ends_in_one_line(prepared):
    """At instants from the first import to the end of planning."""
    at_instants(prepared, many(80))


def test_an_interruption_that_python_wraps_while_it_loads_ends_in_one_line(tmp_path):
    """Python 3.11 makes an error of its own of what comes while a class names its fields."""
    text = (
        "import datacollect.__main__ as program\n"
        "def load():\n"
        "    raise RuntimeError('Error calling __set_name__') from KeyboardInterrupt()\n"
        "program._load = load; program.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", text], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (130, "interrupted\n")


def test_an_interruption_that_c_code_would_print_ends_in_one_line(tmp_path):
    """C code that imports modules prints what is raised meanwhile, and goes on."""
    text = (
        "import sys; from unittest.mock import patch; import datacollect.__main__ as program\n"
        "def swallowed(): sys.excepthook(KeyboardInterrupt, KeyboardInterrupt(), None)\n"
        "with patch('datacollect.commands.main.main', swallowed): program.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", text], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (130, "interrupted\n")


def at_instants(folder, n):
    rng = random.Random(n)
    began = time.monotonic()
    whole = start("compare", "figure1.toml", cwd=folder)
    assert whole.returncode == 0
    length_s = time.monotonic() - began
    for i in range(n):
        # A little longer, too: what is done is done.
        after_s = 1.1 * length_s * (i + rng.random()) / n
        code, err = interrupted(("compare", "figure1.toml"), after_s, folder)
        # It may have ended before, or not have begun: then there is nothing more to say.
        err = err.removeprefix(whole.stderr)
        told = err.startswith("interrupted; nothing was written, ") and err.count("\n") == 1
        assert (code, told or err) in ((130, True), (130, "interrupted\n"), (0, "")), (after_s, err)


# Completion ---------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands(shell, here):
    environment = os.environ | {
        "_DATACOLLECT_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": "datacollect pu",
        "COMP_CWORD": "1",
        "_TYPER_COMPLETE_ARGS": "datacollect pu",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    done = start(env=environment)
    assert done.returncode == 0
    assert "pulls" in done.stdout


BASH = """
eval "$(datacollect --show-completion bash)"
complete -p datacollect
asked() {
    COMP_WORDS=(datacollect "$@") COMP_CWORD=$#
    # The function that bash itself would call, with what it passes.
    _datacollect_completion datacollect "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
    echo "${COMPREPLY[*]}"
}
asked pu
asked plan --me
asked plan --method ''
asked keys ''
"""


@pytest.mark.slow
def test_completion_works_in_bash(tmp_path):
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "--norc", "-c", BASH],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment | {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "complete -o default -F _datacollect_completion datacollect",
        "pulls pull",
        "--method",
        "direct best-path coordinated",
        "new show",
    ]


# ns-3 ---------------------------------------------------------------------------------------


@pytest.fixture
def no_ns3(monkeypatch):
    def missing():
        from datacollect.errors import SimulationError

        raise SimulationError("ns-3 is not installed: pip install 'clone[ns3]'")

    monkeypatch.setattr("datacollect.simulation.ns3.process.check_installed", missing)


def test_without_ns3_both_remedies_are_said(here, call, no_ns3):
    code, out, err = call("simulate", "scenario_small.toml")
    assert (code, out) == (3, "")
    assert "pip install 'clone[ns3]'" in err
    assert "or use the fluid engine: --engine fluid" in err


def test_auto_falls_back_and_says_so(here, call, no_ns3):
    code, out, err = call("simulate", "scenario_small.toml", "--engine", "auto", "--json")
    tree = strict_json(out)
    assert (code, tree["engine"]) == (0, "fluid")
    assert "ns-3 is not installed" in tree["fallback"]
    assert "note: the fluid engine is used: " in err
