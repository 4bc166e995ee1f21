"""A package that brings an export, a reader and a kind of source: used and listed as ours are.

The package is `tests/plugins`; its method is tried by `tests/methods/test_brought_methods.py`.
"""

from __future__ import annotations

import importlib.metadata
import json
import os

import pytest
from instances.agents import KEY, running, write_agent
from instances.command_line import start
from instances.installed_packages import (
    EXAMPLE,
    forget_packages,
    install_package,
    install_project,
)

from datacollect.commands.main import run
from datacollect.exports.formats import EXPORTS
from datacollect.net.http_asking import Asker
from datacollect.net.keys import write_private_key
from datacollect.net.tls import web_context
from datacollect.transfer.agent.config.file import AgentConfig
from datacollect.transfer.agent.handlers import handlers_of
from datacollect.transfer.pull.config.file import Collection

TABLE = ("pulls", "figure1.toml", "plan.json", "--manifest", "files.csv", "--as")


@pytest.fixture
def find(monkeypatch):
    """Have Python, for this test, find the packages of a folder."""

    def found(folder):
        monkeypatch.syspath_prepend(folder)
        forget_packages()

    yield found
    forget_packages()


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working folder with the paper's Figure 1, its plan and a manifest."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["example", "figure1"]) == 0
    assert run(["plan", "figure1.toml", "-o", "plan.json"]) == 0
    (tmp_path / "files.csv").write_text("host,path,bytes\nS1,a,1000000\nS2,b,1000000\n")
    return tmp_path


@pytest.fixture
def example(tmp_path, find):
    """The example is installed."""
    folder = install_project(EXAMPLE, tmp_path / "packages")
    find(folder)
    return folder


@pytest.mark.usefixtures("here", "example")
def test_a_plan_is_exported_by_a_format_of_another_package(call):
    """Whole files, each over K or directly: to D comes one of each source."""
    code, out, err = call(*TABLE, "lines", "--separator", "comma")
    assert code == 0, err
    lines = [line.split(",") for line in out.splitlines()]
    assert sorted(words[2:] for words in lines if words[0] == "D") == [
        ["a", "1000000"],
        ["b", "1000000"],
    ]
    assert "note: Lines know no rates." in err


@pytest.mark.usefixtures("here", "example")
def test_its_option_is_judged_and_listed_as_ours_are(call):
    code, out, err = call(*TABLE, "lines", "--separator", "dots")
    assert (code, out) == (2, "")
    assert "--separator must be one of space, comma, got 'dots'" in err
    said = " ".join(call("pulls", "--help")[1].split())
    assert f"--as <{'|'.join(EXPORTS.own)}|lines>" in said
    assert said.count("lines: a line for each piece") == 1
    assert "lines takes --separator space|comma: what stands between words." in said
    assert call("pulls", "--help")[1] == call("pulls", "--help")[1]


@pytest.mark.usefixtures("here")
def test_without_the_package_the_name_is_unknown(call):
    code, _, err = call(*TABLE, "lines")
    assert code == 2
    assert "there is no export format 'lines'; there are curl, aria2, rclone" in err


@pytest.mark.usefixtures("here", "example")
def test_shells_that_complete_a_command_are_offered_it(capsys, monkeypatch):
    monkeypatch.setenv("_DATACOLLECT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "datacollect pulls a b --as l")
    monkeypatch.setenv("COMP_CWORD", "5")
    capsys.readouterr()
    with pytest.raises(SystemExit):
        run([])
    assert capsys.readouterr().out.split() == ["lines"]


@pytest.mark.usefixtures("here")
def test_our_own_names_look_for_no_packages(call, monkeypatch, tmp_path):
    (tmp_path / "s.csv").write_text("from,to,time_s,bandwidth_bytes_per_s\nS,D,0,1\n")
    (tmp_path / "sky.csv").write_text("src,dst,received_bps\nS,D,8\n")
    (tmp_path / "people.txt").write_text("iperf3: error - unable to connect\n")
    write_private_key(tmp_path / "k", KEY)
    (tmp_path / "c.toml").write_text(
        'format = "datacollect-collection/1"\ndestination = "D"\nkey = "k"\n'
        '[servers.S]\nurl = "https://127.0.0.1:9/"\npaths = ["a"]\n'
    )
    monkeypatch.setattr(importlib.metadata, "entry_points", None)
    assert call(*TABLE, "csv")[0] == 0
    assert call("estimate", "s.csv")[0] == call("estimate", "sky.csv")[0] == 0
    assert "the test failed, iperf3 says" in call("estimate", "people.txt")[2]
    assert Collection.from_file("c.toml").hosts == ["S"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.log", "speedlog 1700000000 S D 80\n"),
        ("a.json", '{"speedlog": [1700000000, "S", "D", 80]}'),
        ("a.csv", "at,sender,receiver,speed\n1700000000,S,D,80\n"),
    ],
)
def test_measurements_of_another_program_are_read(tmp_path, call, find, name, text):
    """80 Mbit/s are 10 MB/s; a folder is read by content, too."""
    (tmp_path / "logs").mkdir()
    file = tmp_path / "logs" / name
    file.write_text(text)
    assert call("estimate", str(file))[0] == 2
    find(install_project(EXAMPLE, tmp_path / "packages"))
    for given in (file, file.parent):
        code, out, err = call("estimate", str(given))
        assert code == 0, err
        assert out.splitlines()[1] == "S,D,10000000.0"


@pytest.mark.usefixtures("example")
def test_help_tells_of_readers(call):
    said = " ".join(call("estimate", "--help")[1].split())
    assert "iperf3: what iperf3 -J printed" in said
    assert "speedlog: logs of speedlog" in said


@pytest.fixture
def collection(tmp_path, monkeypatch):
    """A collection of one mounted folder with two files, 300 001 bytes."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "mounted" / "inner"
    folder.mkdir(parents=True)
    (folder / "large").write_bytes(os.urandom(300_000))
    (folder.parent / "small").write_bytes(b"x")
    write_private_key(tmp_path / "collector.key", KEY)
    (tmp_path / "collection.toml").write_text(
        'format = "datacollect-collection/1"\ndestination = "D"\nkey = "collector.key"\n'
        '[folders.S]\npath = "mounted"\n[limits]\npiece_bytes = 65536\n'
    )
    return tmp_path


PULL = ("pull", "collection.toml", "--into", "into", "--json")


@pytest.mark.slow
@pytest.mark.usefixtures("example")
def test_a_kind_of_source_of_another_package_is_pulled_from(collection, call):
    """Started again, what has come is not fetched; `status` needs the package no more."""
    code, out, err = call(*PULL)
    assert code == 0, err
    assert json.loads(out)["complete"]
    for path in ("small", "inner/large"):
        came = (collection / "into/S" / path).read_bytes()
        assert came == (collection / "mounted" / path).read_bytes()
    assert start("status", str(collection / "into")).returncode == 0
    (collection / "mounted/more").write_bytes(b"more")
    again = json.loads(call(*PULL)[1])
    assert (again["complete"], again["bytes"], again["routes"][0]["bytes"]) == (True, 300_005, 4)
    assert (collection / "into/S/more").read_bytes() == b"more"


@pytest.mark.usefixtures("example")
def test_its_keys_are_judged_and_in_the_schema(collection, call):
    file = collection / "collection.toml"
    text = file.read_text()
    file.write_text(text.replace("path =", "pth ="))
    assert "folders.S.pth: unknown key; did you mean 'path'?" in call(*PULL)[2]
    file.write_text(text.replace("[folders.S]", "[foldrs.S]"))
    assert "foldrs: unknown key; did you mean 'folders'?" in call(*PULL)[2]
    schema = json.loads(call("schema", "collection")[1])
    assert schema["properties"]["folders"]["description"] == "Folders of this machine, by name."
    assert schema["$defs"]["folder"]["required"] == ["path"]


@pytest.fixture
def beacon(tmp_path, monkeypatch):
    """The file of an agent with a table of another package."""
    monkeypatch.chdir(tmp_path)
    return write_agent(tmp_path, "B", serve="data", more='[beacon]\nword = "hello"')


@pytest.mark.usefixtures("example")
def test_a_command_of_another_package_runs(beacon, call):
    assert call("beacon", beacon.name, "--quiet") == (0, "hello\n", "")
    assert "Say the word of an agent." in call("beacon", "--help")[1]


@pytest.mark.slow
@pytest.mark.usefixtures("example")
def test_a_table_of_an_agent_s_file_is_answered_for(beacon):
    handlers = handlers_of("beacon").start(AgentConfig.from_file(beacon), print).handlers
    with running(beacon, handlers) as agent:
        fingerprint = agent.agent.fingerprint
        tls = web_context(fingerprint=fingerprint)
        url = f"https://{agent.place}"
        with Asker(url, tls, fingerprint=fingerprint) as asker:
            answer = asker.get("/beacon")
    assert (answer.status, answer.body) == (200, b"hello")


@pytest.mark.usefixtures("example")
def test_its_keys_and_files_are_judged_and_in_schemas(beacon, call):
    beacon.write_text(beacon.read_text().replace("word =", "wrd ="))
    assert "beacon.wrd: unknown key; did you mean 'word'?" in call("beacon", beacon.name)[2]
    beacon.write_text(beacon.read_text().replace("[beacon]", "[becon]"))
    assert "becon: unknown key; did you mean 'beacon'?" in call("agent", beacon.name)[2]
    schema = json.loads(call("schema", "agent")[1])
    assert schema["$defs"]["table_beacon"]["required"] == ["word"]
    assert json.loads(call("schema", "beacons")[1])["required"] == ["format", "word"]


def test_without_the_package_its_table_and_command_are_unknown(beacon, call):
    assert "beacon: unknown key" in call("agent", beacon.name)[2]
    assert call("beacon", beacon.name)[2].startswith("error: No such command 'beacon'")
    assert "'beacons' is not one of 'problem'" in call("schema", "beacons")[2]


# Commands by which what a package brings is imported, or all names are listed; a name of ours.
# `estimate` asks readers of packages, since files.csv is no table of samples.
FAULTS = {
    "methods": (
        ("plan", "figure1.toml", "--method", "new"),
        ("plan", "figure1.toml", "--help"),
        "direct",
    ),
    "exports": ((*TABLE, "new", "-o", "x"), ("pulls", "--help"), "csv"),
    "readers": (("estimate", "files.csv"), ("estimate", "--help"), "iperf3"),
    "sources": (("schema", "collection"), ("schema", "collection"), "agents"),
}
WORDS = {
    "import": "cannot be imported: ModuleNotFoundError",
    "kind": "must be of the class datacollect.",
    "taken": "a name that datacollect itself has; uninstall the package",
    "twice": "uninstall all but one of them",
}


@pytest.mark.slow
@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("group", FAULTS)
@pytest.mark.parametrize("fault", WORDS)
def test_what_a_package_does_wrongly_is_said_with_its_name(tmp_path, call, find, group, fault):
    importing, listing, ours = FAULTS[group]
    name = ours if fault == "taken" else "new"
    value = "not_there:X" if fault == "import" else "string:digits"
    packages = ["bad-one"] + ["bad-two"] * (fault == "twice")
    for package in packages:
        points = {f"datacollect.{group}": {name: value}}
        find(install_package(tmp_path / "packages" / package, package, points, {}))
    says = [call(*listing)]
    # What is listed lists the rest.
    assert says[0][0] == 0
    assert ours in says[0][1]
    if fault not in ("taken", "twice") and importing != listing:
        says.append(call(*importing))
        assert says[1][:2] == (2, "")
    for _, _, err in says:
        assert err.count(WORDS[fault]) == 1
        assert all(f"the package {package} 1.0" in err for package in packages)
        assert "Traceback" not in err
