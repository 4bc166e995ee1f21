"""AGENT.toml: what it may say, and what is said where it says something else."""

from __future__ import annotations

import pytest
from conftest import REPOSITORY
from instances.agents import KEY

from datacollect.errors import ProblemError
from datacollect.transfer.agent.config.fields import LIMITS, agent_with
from datacollect.transfer.agent.config.file import AgentConfig, AgentLimits, SpoolConfig
from datacollect.transfer.agent.config.tables import AGENT_TABLES

MINIMAL = f"""\
format = "datacollect-agent/1"
name = "S1"
listen = "127.0.0.1:7443"
collectors = ["{KEY.public}"]
serve = "data"
"""


@pytest.fixture
def read(tmp_path):
    """Read a file of this text beside a folder data."""
    (tmp_path / "data").mkdir()

    def read(text: str) -> AgentConfig:
        (tmp_path / "a.toml").write_text(text)
        return AgentConfig.from_file(tmp_path / "a.toml")

    return read


def test_a_small_file_and_its_defaults(read, tmp_path):
    config = read(MINIMAL)
    assert (config.name, config.listen) == ("S1", ("127.0.0.1", 7443))
    assert config.serve == tmp_path / "data"
    assert (config.connect_to, config.limits, config.congestion) == ({}, AgentLimits(), None)
    assert config.certificate == tmp_path / "a.cert.pem"
    assert config.own_certificate
    assert config.spool is None


def test_everything_that_the_contract_shows(read, tmp_path):
    config = read(
        MINIMAL
        + 'connect_to = { S2 = "s2.example:7443", S3 = "[2001:db8::1]:7443" }\n'
        + 'spool = { folder = "spool", bytes = 50_000_000_000 }\n'
        + 'tls = { certificate = "cert.pem", key = "key.pem" }\n'
        + "limits = { sessions = 5, drain_s = 0 }\n"
    )
    assert config.connect_to == {"S2": ("s2.example", 7443), "S3": ("2001:db8::1", 7443)}
    assert (config.certificate, config.own_certificate) == (tmp_path / "cert.pem", False)
    assert config.spool == SpoolConfig(tmp_path / "spool", 50_000_000_000)
    assert config.limits == AgentLimits(sessions=5, drain_s=0.0)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("agent/1", "agent/2", 'format must be "datacollect-agent/1"'),
        ('name = "S1"\n', "", "key name is missing; add it to the agent's file"),
        ('"S1"', '"New York"', "name must be a name of ASCII letters, digits"),
        ('"S1"', '"_lab"', "begins with a letter or digit, got '_lab'"),
        ('"S1"', '""', "name must not be empty"),
        (":7443", "", "listen must be HOST:PORT"),
        (":7443", ":65536", "a port of 0 to 65535"),
        ("127.0.0.1", "::1", "listen must be HOST:PORT"),
        (KEY.public, "ed25519:abc", r"collectors\[0\] must be ed25519: and 32 bytes in Base64"),
        (KEY.public, "ed25519-private:abc", "must be a public key, got a private one"),
        ('serve = "data"', 'serve = "dat"', "serve must be an existing folder, got 'dat'"),
        ('serve = "data"', 'serve = "."', "serve must not hold the agent's own files"),
        ('serve = "data"', "", "serve and connect_to are both missing"),
        ("serve", "serves", "serves: unknown key; did you mean 'serve'"),
        ("serve", 'connect_to = { S2 = "s2" }\nserve', r"connect_to\.S2 must be HOST:PORT"),
        ("serve", 'connect_to = { S2 = "s2:0" }\nserve', r"connect_to\.S2 must be HOST:PORT"),
        (
            "serve",
            'connect_to = { "a:b" = "s2:1" }\nserve',
            "a name in connect_to must be a name of",
        ),
        ("serve", 'connect_to = { _x = "s2:1" }\nserve', "a name in connect_to must be"),
        ("serve", 'connect_to = { S1 = "s2:1" }\nserve', "names this agent itself"),
        ("serve", 'connect_to = "s2:1"\nserve', "must hold an address for each name"),
        ("serve", "limits = { sessions = 0 }\nserve", r"limits\.sessions must be a whole number"),
        ("serve", "limits = { head_s = 0 }\nserve", r"limits\.head_s must be a finite number"),
        ("serve", 'tls = { certificate = "c" }\nserve', "tls: key key is missing"),
        ("serve", 'state = "no"\nserve', "state must be an existing folder"),
        ("serve", "spool = {}\nserve", "spool: keys folder, bytes are missing"),
        ("serve", "[serve", "not valid TOML"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(read, old, new, message):
    assert old in MINIMAL
    with pytest.raises(ProblemError, match=message) as caught:
        read(MINIMAL.replace(old, new, 1))
    assert "a.toml" in str(caught.value)


def test_the_documents_list_every_key():
    text = (REPOSITORY / "docs/formats.md").read_text(encoding="utf-8")
    for field in agent_with(map(AGENT_TABLES.get, AGENT_TABLES.own)).fields:
        assert f"\n| `{field.name}` | " in text
    for field in LIMITS.fields:
        assert f"\n| `{field.name}` | " in text
        default = "unlimited" if field.default is None else f"{field.default:g}"
        assert f"| {default} |\n" in text
    assert AgentLimits() == AgentLimits(**LIMITS.read({}, "limits"))


def test_the_key_of_the_agent_is_never_served(read, tmp_path):
    (tmp_path / "own").mkdir()
    with pytest.raises(ProblemError, match="own files"):
        read(MINIMAL.replace('"data"', '"own"') + 'state = "own"\n')
    (tmp_path / "data/link").symlink_to(tmp_path)
    with pytest.raises(ProblemError, match="own files"):
        read(MINIMAL.replace('"data"', '"data/link"'))


def test_a_file_that_is_no_toml_is_named_once(tmp_path):
    path = tmp_path / "agent.toml"
    path.write_text('name = "S1"]\n')
    with pytest.raises(ProblemError) as caught:
        AgentConfig.from_file(path)
    assert str(caught.value).count(str(path)) == 1
