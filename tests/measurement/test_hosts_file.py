"""HOSTS.toml, read and checked."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from datacollect.errors import ProblemError
from datacollect.measurement.cycle.budget import Cost
from datacollect.measurement.hosts_file import HostsFile

PRINT = "sha256:" + "0" * 64

FILE = f"""
format = "datacollect-hosts/1"
destination = "D"
key = "operator.key"
budget = {{ bytes = "2 GB", time = "90 min" }}

[hosts.D]
url = "https://D.example:7443"
fingerprint = "{PRINT}"

[hosts.R]
url = "https://r.example"
ca = "ca.pem"

[hosts.S]
iperf3 = "[2001:db8::1]:5201"
"""


@pytest.fixture
def read(tmp_path):
    def read(text):
        file = tmp_path / "HOSTS.toml"
        file.write_text(text)
        return HostsFile.from_file(file)

    return read


def test_hosts_have_agents_or_iperf3_servers(read, tmp_path):
    found = read(FILE)
    assert found.destination == "D"
    assert found.key == tmp_path / "operator.key"
    assert found.budget == Cost(2_000_000_000, 5400.0)
    assert list(found.hosts) == ["D", "R", "S"]
    assert found.hosts["D"].address == ("d.example", 7443)
    assert found.hosts["D"].fingerprint == PRINT
    assert (found.hosts["R"].address, found.hosts["R"].ca) == (
        ("r.example", 443),
        tmp_path / "ca.pem",
    )
    assert found.hosts["S"] == ("2001:db8::1", 5201)


def test_without_agents_no_key_is_needed_and_without_a_budget_there_is_no_limit():
    hosts = {name: {"iperf3": f"{name}.example:5201"} for name in ("a", "b")}
    tree = {"format": "datacollect-hosts/1", "destination": "a", "hosts": hosts}
    found = HostsFile.from_dict(tree)
    assert (found.key, found.budget) == (None, Cost(math.inf, math.inf))
    half = HostsFile.from_dict({**tree, "key": "k", "budget": {"time": 60}})
    assert (half.key, half.budget) == (Path("k"), Cost(math.inf, 60))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('format = "datacollect-hosts/1"', "", "key format is missing; add it to the hosts' file"),
        ("hosts/1", "hosts/2", "format"),
        ('"D"\n', '"d"\n', "destination must be one of the hosts, got 'd'; did you mean 'D'?"),
        ('key = "operator.key"', "", "key is missing, and the agent of hosts.D asks for one"),
        ("2 GB", "2 Mbit/s", "budget.bytes"),
        ("90 min", "0 s", "budget.time"),
        ("bytes = ", "byte = ", "budget.byte: unknown key; did you mean 'bytes'?"),
        ('iperf3 = "[2001:db8::1]:5201"', "", "hosts.S: must have either url or iperf3, got nei"),
        ("[hosts.S]\n", '[hosts.S]\nurl = "https://s.example"\n', "got both"),
        ("[hosts.S]\n", '[hosts.S]\nca = "x.pem"\n', "hosts.S.ca: iperf3 servers have no certifi"),
        ('ca = "ca.pem"', "", "hosts.R: must have either fingerprint or ca, got neither"),
        (PRINT, "sha256:00", "hosts.D.fingerprint must be sha256: and 64 lowercase hexadecimal"),
        ("https://r", "http://r", "hosts.R.url must be https://HOST:PORT"),
        ("[2001:db8::1]:5201", "s.example", "hosts.S.iperf3"),
        ("https://r.example", "https://d.example:7443", "hosts.D and hosts.R are one host, d.exa"),
        ('ca = "ca.pem"', f'fingerprint = "{PRINT}"', "hosts.D and hosts.R are one host, sha256:0"),
    ],
)
def test_wrong_files_are_refused_in_words(read, old, new, message):
    assert old in FILE
    with pytest.raises(ProblemError) as raised:
        read(FILE.replace(old, new, 1))
    assert "HOSTS.toml" in str(raised.value)
    assert message in str(raised.value)


def test_one_host_alone_has_nobody_to_be_tested_with(read):
    with pytest.raises(ProblemError, match="hosts must name at least two, got D"):
        read(FILE[: FILE.index("[hosts.R]")])


def test_another_file_is_named_as_what_it_is(read):
    with pytest.raises(ProblemError, match="this is a problem; the documentation has one"):
        read(FILE.replace("datacollect-hosts/1", "datacollect-problem/1"))
