"""HOSTS.toml, read and checked."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from datacollect.errors import ProblemError
from datacollect.measuring.plan.budget import Cost
from datacollect.measuring.plan.hosts_file import HostsFile
from datacollect.measuring.plan.rounds import plan_cycle

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


def test_a_destination_without_either_is_this_host(read):
    """Beside iperf3 servers alone, and only the destination: any other entry lacks something."""
    start, _ = FILE.split("[hosts.D]")
    text = start.replace('"D"', '"here"') + '[hosts.here]\n[hosts.S]\niperf3 = "s.example:5201"\n'
    assert read(text).hosts == {"here": None, "S": ("s.example", 5201)}
    for wrong in (text + "[hosts.other]\n", text.replace('iperf3 = "s.example:5201"', "")):
        with pytest.raises(ProblemError, match="must have either url or iperf3, got neither"):
            read(wrong)


def test_without_agents_no_key_is_needed_and_without_a_budget_there_is_no_limit():
    hosts = {name: {"iperf3": f"{name}.example:5201"} for name in ("a", "b")}
    tree = {"format": "datacollect-hosts/1", "destination": "a", "hosts": hosts}
    found = HostsFile.from_dict(tree)
    assert (found.key, found.budget) == (None, Cost(math.inf, math.inf))
    half = HostsFile.from_dict({**tree, "key": "k", "budget": {"time": 60}})
    assert (half.key, half.budget) == (Path("k"), Cost(math.inf, 60))


WIRE = """
[[shared]]
name = "peering"
bandwidth_bytes_per_s = "10 Mbit/s"
links = [["R", "D"], ["S", "R"], ["S", "D"]]
"""


def test_of_a_known_wire_one_link_is_tested_at_a_time(read):
    found = read(FILE + WIRE)
    wire = frozenset([("R", "D"), ("S", "R"), ("S", "D")])
    assert found.wires == [wire]
    assert found.shared[0]["bandwidth_bytes_per_s"] == 1.25e6
    assert set(found.shared[0]) == {"name", "bandwidth_bytes_per_s", "links"}
    hosts = {name: {"iperf3": f"{name}.example:5201"} for name in "ABCD"}
    row = {"name": "w", "bandwidth_bytes_per_s": 1, "links": [["A", "B"], ["C", "D"]]}
    tree = {"format": "datacollect-hosts/1", "destination": "A", "hosts": hosts}
    tested = [("A", "B"), ("C", "D")]
    for shared, n_rounds in (([], 1), ([row], 2)):
        wires = HostsFile.from_dict({**tree, "shared": shared}).wires
        assert len(plan_cycle(tested, wires).rounds) == n_rounds


@pytest.mark.parametrize(
    ("host", "message"),
    [("X", "shared[0].links must be links of the hosts, got ['R', 'X']"), ("d", "mean 'D'?")],
)
def test_a_wire_is_of_links_between_the_hosts(host, message, read):
    with pytest.raises(ProblemError, match=re.escape(message)):
        read(FILE + WIRE.replace('["R", "D"]', f'["R", "{host}"]'))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('format = "datacollect-hosts/1"', "", "key format is missing; add it to the hosts' file"),
        ("hosts/1", "hosts/2", "format"),
        ('"D"\n', '"d"\n', "one of the hosts, got 'd'; there are D, R, S; did you mean 'D'?"),
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
