"""Comparisons of links within a cycle: what the budget pays for, whatever has ended it before."""

from __future__ import annotations

import json
import time

import pytest
from instances.measuring import OPERATOR

import datacollect as dc
from datacollect.measuring.cycle.planning import plan_cycle_of
from datacollect.measuring.cycle.several_links import Asking
from datacollect.measuring.operator.tools import TOOLS
from datacollect.measuring.operator.traces import TraceSettings
from datacollect.measuring.plan.hosts_file import HostsFile
from datacollect.net.keys import write_private_key

# Of a comparison: three times two links alone, and both at once; nothing is known of their rates.
COST_BYTES = 3 * 4 * 100_000_000
ROUTER = json.dumps(["9.9.9.9"])


class Killed(BaseException):
    """The process ends here."""


@pytest.fixture
def hosts(tmp_path):
    """Six hosts, and a budget for one comparison and a half."""
    write_private_key(tmp_path / "operator.key", OPERATOR)
    return HostsFile.from_dict(
        {
            "format": "datacollect-hosts/1",
            "destination": "A",
            "key": str(tmp_path / "operator.key"),
            "budget": {"bytes": COST_BYTES * 3 // 2},
            "hosts": {
                name: {"url": f"https://127.0.0.1:{i + 1}", "fingerprint": f"sha256:{i:064}"}
                for i, name in enumerate("ABCDEF")
            },
        }
    )


@pytest.fixture
def compared(monkeypatch):
    """Put tests in place that are done at once, over one router; return what is compared."""
    asked = []

    def trace(sender, receiver, key, settings, patience_s=0.0, report=None):
        row = {"from": sender.name, "to": receiver.name, "time_s": time.time(), "tool": "trace"}
        yield {**row, "ended": "done", "routers": ROUTER}

    def compare(self, comparison, run):
        asked.append((comparison.name, run))
        said = {"links": comparison.links, "run": f"{comparison.name}-{run}"}
        for together in (False, True):
            for tail, head in comparison.links:
                row = {"from": tail, "to": head, "time_s": time.time(), "tool": "shared"}
                settings = json.dumps(said | {"together": together})
                row |= {"ended": "done", "bandwidth_bytes_per_s": 1e6, "settings": settings}
                yield row

    monkeypatch.setitem(
        TOOLS,
        "trace",
        TOOLS["trace"]._replace(settings_for=lambda _: TraceSettings(), measure=trace),
    )
    monkeypatch.setattr(Asking, "compare", compare)
    return asked


def measure(hosts, folder, tell=None):
    return dc.measure_cycle(hosts, folder, tools=["trace", "shared"], tell=tell)


def test_the_budget_pays_for_one(tmp_path, hosts, compared):
    said = []
    measure(hosts, tmp_path / "samples", said.append)
    assert len(compared) == 3
    assert said[-1] == "the test of these links is left out: the budget is too small for it"


@pytest.mark.slow
def test_links_of_hosts_whose_agents_have_gone_are_compared_no_more(tmp_path, compared):
    """A and B had agents once, and a router in common with E and F; now A is an iperf3 server."""
    hosts = {
        name: {"url": f"https://127.0.0.1:{i + 1}", "fingerprint": f"sha256:{i:064}"}
        for i, name in enumerate("ABEF")
    }
    write_private_key(tmp_path / "operator.key", OPERATOR)
    tree = {"format": "datacollect-hosts/1", "destination": "B", "key": f"{tmp_path}/operator.key"}
    folder = tmp_path / "samples"
    measure(HostsFile.from_dict(tree | {"hosts": hosts}), folder)
    assert compared
    for part in folder.glob("*-shared-*"):
        part.unlink()
    compared.clear()
    now = hosts | {"A": {"iperf3": "127.0.0.2:5201"}, "B": {}}
    said = []
    measure(HostsFile.from_dict(tree | {"hosts": now}), folder, said.append)
    assert not compared
    assert not any("share a wire" in line for line in said)


@pytest.mark.parametrize("tools", [["shared"], ["flood"], ["flood", "shared"]])
def test_tests_of_several_links_may_be_all_that_is_asked_for(tmp_path, hosts, tools):
    planned = plan_cycle_of(hosts, tmp_path, tools)
    assert len(planned.chosen.pairs) == 30
    assert (planned.flood is None) == ("flood" not in tools)


@pytest.mark.slow
@pytest.mark.parametrize("n_runs", [1, 3])
def test_a_cycle_that_goes_on_has_paid_for_what_was_compared(tmp_path, hosts, compared, n_runs):
    """It is killed within the first comparison, or when it is decided: none is run twice."""

    original = Asking.compare

    def compare(self, comparison, run):
        if len(compared) == n_runs:
            raise Killed
        return original(self, comparison, run)

    def tell(line):
        if len(compared) == 3:
            raise Killed

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Asking, "compare", compare)
        with pytest.raises(Killed):
            measure(hosts, tmp_path / "samples", tell)
    assert len(compared) == n_runs
    measure(hosts, tmp_path / "samples")
    assert len(compared) == len(set(compared)) == 3
