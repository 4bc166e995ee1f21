"""Files of services and witnesses: what they may say, and what is said where they are wrong."""

from __future__ import annotations

import ipaddress
import re

import pytest
from instances.events import event_bytes, event_of, key_of

from datacollect.bistro.http.config import ServiceConfig, WitnessConfig
from datacollect.errors import ProblemError
from datacollect.net.keys import write_private_key

LOGS = [service.log.text for service in event_of().services]
SERVICE = """
format = "datacollect-service/1"
event = "event.toml"
key = "a.key"
listen = "[::1]:7443"
folder = "log"
"""
WITNESS = f"""
format = "datacollect-witness/1"
name = "w.example"
key = "a.key"
listen = "0.0.0.0:443"
folder = "signed"
logs = ["{LOGS[0]}"]
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "event.toml").write_bytes(event_bytes())
    write_private_key(tmp_path / "a.key", key_of("s0"))
    return tmp_path


def test_service_has_paths_beside_its_file_and_defaults(folder):
    (folder / "s.toml").write_text(SERVICE)
    config = ServiceConfig.from_file(folder / "s.toml")
    assert config.event == event_of()
    assert config.event_data == event_bytes()
    assert config.key == key_of("s0")
    assert config.folder == folder / "log"
    assert (config.listening.address, config.listening.tls) == (("::1", 7443), None)
    assert (config.workers, config.behind) == (0, ())


def test_service_has_what_its_file_says(folder):
    more = 'workers = 3\nbehind = ["10.0.0.0/8", "::1"]\n'
    tls = 'tls = { certificate = "c.pem", key = "/k.pem" }\n'
    (folder / "s.toml").write_text(SERVICE + more + tls)
    config = ServiceConfig.from_file(folder / "s.toml")
    assert config.listening.tls is not None
    assert [str(path) for path in config.listening.tls] == [str(folder / "c.pem"), "/k.pem"]
    networks = [ipaddress.ip_network("10.0.0.0/8"), ipaddress.ip_network("::1")]
    assert (config.workers, [*config.behind]) == (3, networks)


def test_clock_of_a_witness_is_the_kernels_unless_it_is_trusted(folder):
    (folder / "w.toml").write_text(WITNESS)
    assert WitnessConfig.from_file(folder / "w.toml").is_trusted is False
    (folder / "w.toml").write_text(WITNESS + 'clock = "trusted"\n')
    config = WitnessConfig.from_file(folder / "w.toml")
    assert config.is_trusted is True
    assert [log.text for log in config.logs] == LOGS[:1]


@pytest.mark.parametrize(
    ("kind", "old", "new", "said"),
    [
        (ServiceConfig, '"event.toml"', '"other.toml"', "other.toml: no such file"),
        (ServiceConfig, '"a.key"', '"event.toml"', "must hold one line ed25519-private:"),
        (ServiceConfig, "[::1]:7443", "nowhere", "listen must be HOST:PORT"),
        (ServiceConfig, 'folder = "log"', "", "folder is missing"),
        (ServiceConfig, "folder", "workers = 257\nfolder", "workers must be"),
        (ServiceConfig, "folder", 'behind = ["10.0.0.1/8"]\nfolder', "an address or a network"),
        (ServiceConfig, "service/1", "witness/1", "this is a witness"),
        (WitnessConfig, '"w.example"', '"w example"', "name must be a name"),
        (WitnessConfig, "folder", 'clock = "mine"\nfolder', '"kernel" or "trusted"'),
        (WitnessConfig, '["', '["x", "', "must be a verifier key"),
        (WitnessConfig, '["', f'["{LOGS[0]}", "', "logs must name each log once"),
        (WitnessConfig, f'["{LOGS[0]}"]', "[]", "must be a list of 1 to 10000"),
    ],
)
def test_wrong_files_are_refused_in_words(folder, kind, old, new, said):
    text = SERVICE if kind is ServiceConfig else WITNESS
    assert old in text
    (folder / "file.toml").write_text(text.replace(old, new, 1))
    with pytest.raises(ProblemError, match=re.escape(said)):
        kind.from_file(folder / "file.toml")
