"""Agents that are set up by one call: what is written, what is refused, what stays."""

from __future__ import annotations

import socket
import stat
import tomllib

import pytest
from instances.agents import KEY

from datacollect.errors import ProblemError
from datacollect.net.keys import PrivateKey
from datacollect.net.tls import fingerprint_of_file
from datacollect.transfer.agent.config.file import AgentConfig
from datacollect.transfer.agent.config.setting_up import AgentSetting, set_up_agent

OTHER = PrivateKey(b"the key of some other collector!")
ADDRESS = "s1.example"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    return tmp_path


def setting(**changed):
    given = {"name": "S1", "collectors": [KEY.public], "serve": "data", "address": ADDRESS}
    return AgentSetting(**(given | changed))


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_the_file_is_one_that_an_agent_reads_and_the_line_says_how_to_reach_it(here):
    path, introduction = set_up_agent(setting(connect_to={"S2": "s2.example:7443"}))
    config = AgentConfig.from_file(path)
    assert (config.name, config.listen) == ("S1", ("0.0.0.0", 7443))
    assert config.collectors == {KEY.public}
    assert config.serve == (here / "data").resolve()
    assert config.connect_to == {"S2": ("s2.example", 7443)}
    assert introduction.url == "https://s1.example:7443"
    assert introduction.fingerprint == fingerprint_of_file(here / "S1.cert.pem")
    assert stat.S_IMODE((here / "S1.key.pem").stat().st_mode) == 0o600


def test_tunnels_lead_to_the_services_that_were_named_for_the_collectors(here):
    path, _ = set_up_agent(setting(serve=None, tunnel_to={"ssh": "127.0.0.1:22"}))
    config = AgentConfig.from_file(path)
    assert config.tunnel.to == {"ssh": ("127.0.0.1", 22)}
    assert config.tunnel.users == {KEY.public}


def test_the_same_again_changes_nothing(here):
    first = set_up_agent(setting())
    before = files(here)
    assert set_up_agent(setting()) == first
    assert files(here) == before


def test_a_file_that_says_something_else_stays_unless_forced(here):
    _, first = set_up_agent(setting())
    before = files(here)
    with pytest.raises(ProblemError, match=r"S1.toml: exists already, .*--force"):
        set_up_agent(setting(collectors=[OTHER.public]))
    assert files(here) == before
    path, second = set_up_agent(setting(collectors=[OTHER.public]), force=True)
    assert AgentConfig.from_file(path).collectors == {OTHER.public}
    # Collectors know the certificate.
    assert second == first


@pytest.mark.parametrize("kind", ["folder", "link"])
def test_what_is_no_file_is_not_replaced_even_by_force(here, kind):
    path = here / "S1.toml"
    path.mkdir() if kind == "folder" else path.symlink_to("nowhere")
    with pytest.raises(ProblemError, match="exists already"):
        set_up_agent(setting(), force=True)
    assert files(here) == {}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"name": "-S1"}, "the agent's name must be a name of ASCII letters"),
        ({"name": "../S1"}, "the agent's name must be a name of ASCII letters"),
        ({"collectors": ["ed25519:abc"]}, r"collectors\[0\] must be ed25519:"),
        ({"collectors": ["ed25519-private:abc"]}, "must be a public key, got a private one"),
        ({"serve": "gone"}, "serve must be an existing folder"),
        ({"serve": "."}, "lies in the folder that is served.*name another place with -o"),
        ({"serve": None}, "serve and connect_to are both missing"),
        ({"connect_to": {"S1": "a.example:1"}}, "names this agent itself"),
        ({"connect_to": {"S2": "a.example"}}, "connect_to.S2 must be HOST:PORT"),
        ({"tunnel_to": {"ssh": "22"}}, "tunnel.to.ssh must be HOST:PORT"),
        ({"connect_to": {"a b": "a.example:1"}}, "a name in connect_to"),
        ({"listen": "7443"}, "listen must be HOST:PORT"),
        ({"listen": "127.0.0.1:0"}, "port 0 means any free port, which nobody knows yet"),
        ({"address": "https://s1.example"}, "--address must be HOST or HOST:PORT"),
        ({"address": "s1.example:0"}, "--address must be HOST or HOST:PORT"),
        ({"address": "two words"}, "--address must be HOST or HOST:PORT"),
    ],
    ids=lambda value: None if isinstance(value, str) else str(value)[:40],
)
def test_what_is_refused_and_nothing_is_written(here, changed, message):
    with pytest.raises(ProblemError, match=message):
        set_up_agent(setting(**changed))
    assert files(here) == {}


@pytest.mark.parametrize(
    ("listen", "address", "url"),
    [
        ("127.0.0.1:7000", None, "https://127.0.0.1:7000"),
        ("127.0.0.1:7000", "s1.example", "https://s1.example:7000"),
        ("0.0.0.0:7000", "s1.example:443", "https://s1.example:443"),
        ("127.0.0.1:0", "s1.example:443", "https://s1.example:443"),
        ("[::1]:7000", None, "https://[::1]:7000"),
        ("[::]:7000", "[2001:db8::1]", "https://[2001:db8::1]:7000"),
        ("[::]:7000", "2001:db8::1", "https://[2001:db8::1]:7000"),
        ("0.0.0.0:7000", None, "https://lab.example:7000"),
    ],
)
def test_where_collectors_reach_it(monkeypatch, listen, address, url):
    monkeypatch.setattr(socket, "getfqdn", lambda: "lab.example")
    assert set_up_agent(setting(listen=listen, address=address))[1].url == url


def test_a_host_without_a_name_has_to_be_told_one(here, monkeypatch):
    monkeypatch.setattr(socket, "getfqdn", lambda: "localhost.localdomain")
    with pytest.raises(ProblemError, match="has no name of its own; give one with --address HOST"):
        set_up_agent(setting(address=None))
    assert files(here) == {}


def test_folders_with_any_characters_are_served(here):
    folder = here / 'a "b" \\ c\x7f é'
    folder.mkdir()
    path, _ = set_up_agent(setting(serve=str(folder)))
    assert tomllib.loads(path.read_text())["serve"] == str(folder.resolve())
    assert AgentConfig.from_file(path).serve == folder.resolve()
