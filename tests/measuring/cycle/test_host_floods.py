"""What plans lean on is measured by the book, over wires in memory: no user asks for a flood."""

from __future__ import annotations

import json
import re
import time

import pytest
from instances.modelled_lines import Lines, write_hosts_of
from testbed.networks import drawn

import datacollect as dc
from datacollect.measurement.sample_store import read_parts, settings_of
from datacollect.measuring.cycle import measure_cycle
from datacollect.measuring.results.samples_to_problem import problem_of_samples

MBIT = 125_000.0
GB = 10**9


@pytest.fixture
def lines(monkeypatch):
    """Return a function that has cycles measure such lines."""

    def of(up, **more):
        found = Lines(up, **more)
        found.take_part(monkeypatch)
        return found

    return of


def measured(tmp_path, names, backlog_bytes, cycles=1, **options):
    """Measure some cycles, and return what a problem file of them says."""
    hosts = write_hosts_of(tmp_path, names)
    for _ in range(cycles):
        dc.measure_cycle(hosts, tmp_path / "samples", **options)
    table = read_parts(tmp_path / "samples").frame
    return problem_of_samples(table, names[0], hosts={*names}, backlog_bytes=backlog_bytes)


def plan_of(found):
    return dc.coordinated(dc.Problem.from_dict(found.tree))


def test_one_line_of_a_source_is_found_by_the_book(tmp_path, lines):
    """S1 has one line of 40 Mbit/s, S2 one of 100: by its own line alone S1 needs 6 GB / 5 MB/s.

    Each pair alone shows S1's line again, so that S1 seems to have 80 Mbit/s.
    """
    of = lines({"D": 200 * MBIT, "S1": 40 * MBIT, "S2": 100 * MBIT})
    found = measured(tmp_path, ["D", "S1", "S2"], {"S1": 6 * GB, "S2": 10 * GB})
    assert {("S1", "D"), ("S1", "S2")} in of.floods()
    assert found.tree["hosts"]["S1"]["uplink_bytes_per_s"] == pytest.approx(40 * MBIT, rel=0.02)
    plan = plan_of(found)
    assert plan.makespan_s == pytest.approx(6 * GB / (40 * MBIT), rel=0.03)
    assert not plan.assumptions.matter
    assert plan.assumptions.gain == pytest.approx(1.0, abs=0.02)


def test_a_source_that_does_more_is_shown_to(tmp_path, lines):
    """S1 has 200 Mbit/s, of which each of its ways takes 40: together they are 80, for 5 s."""
    ways = {40 * MBIT: [("S1", "D")], 41 * MBIT: [("S1", "S2")]}
    lines({"D": 200 * MBIT, "S1": 200 * MBIT, "S2": 100 * MBIT}, wires=ways)
    found = measured(tmp_path, ["D", "S1", "S2"], {"S1": 6 * GB, "S2": 10 * GB})
    of_s1 = found.tree["hosts"]["S1"]
    assert of_s1["shown_uplink_bytes_per_s"] == pytest.approx(81 * MBIT, rel=0.02)
    assert "uplink_bytes_per_s" not in of_s1
    plan = plan_of(found)
    assert not plan.assumptions.leans_on
    # 16 GB over 140 Mbit/s into D, of which S2 has 100.
    assert plan.makespan_s == pytest.approx(16 * GB / (140 * MBIT), rel=0.03)


@pytest.mark.slow
def test_a_line_is_told_from_a_wire_of_two_links_by_a_third(tmp_path, lines):
    """S has 40 Mbit/s to D, K, and L: all three by its line, or the first two over one wire."""
    names, backlog = ["D", "S", "K", "L"], {"S": 6 * GB}
    rates = {"D": 400 * MBIT, "K": 300 * MBIT, "L": 290 * MBIT}
    lines(rates | {"S": 40 * MBIT})
    (tmp_path / "line").mkdir()
    found = measured(tmp_path / "line", names, backlog)
    assert found.tree["hosts"]["S"]["uplink_bytes_per_s"] == pytest.approx(40 * MBIT, rel=0.02)
    assert "shared" not in found.tree
    wires = {40 * MBIT: [("S", "D"), ("S", "K")], 41 * MBIT: [("S", "L")]}
    lines(rates | {"S": 400 * MBIT}, wires=wires)
    (tmp_path / "wire").mkdir()
    found = measured(tmp_path / "wire", names, backlog)
    assert "uplink_bytes_per_s" not in found.tree["hosts"]["S"]
    (wire,) = found.tree["shared"]
    assert sorted(wire["links"]) == [["S", "D"], ["S", "K"]]
    assert wire["bandwidth_bytes_per_s"] == pytest.approx(40 * MBIT, rel=0.02)
    # Over D or K, and over L, in the end.
    plan = plan_of(found)
    assert plan.makespan_s == pytest.approx(6 * GB / (81 * MBIT), rel=0.03)


def test_a_wire_of_a_private_network_is_found_by_floods_alone(tmp_path, lines):
    """S1 and S2 send over one wire of 40 Mbit/s; no route shows it. S3 has 100 of its own."""
    wire = {40 * MBIT: [(name, to) for name in ("S1", "S2") for to in ("D", "S3")]}
    lines(dict.fromkeys(["D", "S1", "S2"], 400 * MBIT) | {"S3": 100 * MBIT}, wires=wire)
    names = ["D", "S1", "S2", "S3"]
    found = measured(tmp_path, names, dict.fromkeys(names[1:], 5 * GB))
    assert "downlink_bytes_per_s" not in found.tree["hosts"]["D"]
    of_wire = sorted([tail, head] for tail in ("S1", "S2") for head in ("D", "S3"))
    assert of_wire in [sorted(row["links"]) for row in found.tree["shared"]]


@pytest.mark.slow
def test_a_fast_link_that_shares_a_wire_with_a_slow_one_is_found(tmp_path, lines):
    """S2 with 50 and S3 with 16 Mbit/s have 48 together into D. Fair shares leave S3 all it had.

    Of four links into D only that of S2 loses, and all together lose but a tenth.
    """
    into = [("S2", "D"), ("S3", "D")]
    rates = {"S1": 55 * MBIT, "S2": 50 * MBIT, "S3": 16 * MBIT, "S4": 60 * MBIT}
    of = lines({"D": 900 * MBIT, **rates}, wires={48 * MBIT: into})
    held = {"S1": GB, "S2": 5 * GB, "S3": GB, "S4": GB}
    found = measured(tmp_path, ["D", *rates], held)
    assert {*into} in of.floods()
    (wire,) = [row for row in found.tree["shared"] if ["S3", "D"] in row["links"]]
    assert ["S2", "D"] in wire["links"]
    assert wire["bandwidth_bytes_per_s"] == pytest.approx(48 * MBIT, rel=0.03)


@pytest.mark.slow
def test_the_line_of_the_destination_stays_its_limit(tmp_path, lines):
    """Four sources of 40 Mbit/s into a line of 100: two of them together get all of theirs."""
    names = ["D", "S1", "S2", "S3", "S4"]
    up = dict.fromkeys(names[1:], 40 * MBIT) | {"D": 400 * MBIT}
    lines(up, down={"D": 100 * MBIT})
    found = measured(tmp_path, names, dict.fromkeys(names[1:], 5 * GB))
    assert found.tree["hosts"]["D"]["downlink_bytes_per_s"] == pytest.approx(100 * MBIT, rel=0.02)
    assert not any(["S1", "D"] in row["links"] for row in found.tree.get("shared", []))


@pytest.mark.parametrize("n", [3, *(pytest.param(n, marks=pytest.mark.slow) for n in (4, 8))])
def test_floods_of_hosts_take_at_most_a_part_of_a_cycle(tmp_path, lines, n):
    """Whatever lines are: 30 % of the bytes of all other tests."""
    names = ["D", *(f"S{i}" for i in range(1, n))]
    lines({name: (20 + 7 * i) * MBIT for i, name in enumerate(names)} | {"D": 500 * MBIT})
    said = []
    measured(tmp_path, names, {"S1": GB}, tell=said.append)
    rows = read_parts(tmp_path / "samples").frame
    into_d = rows["settings"].map(lambda text: settings_of(text).get("host"))
    is_asked = (rows["tool"] == "flood") & ~((into_d == "D") & (rows["concurrency"] == n - 2))
    assert rows.loc[is_asked, "bytes"].sum() <= 0.3 * rows.loc[~is_asked, "bytes"].sum()
    (line,) = [line for line in said if line.startswith("floods of hosts that do more")]
    assert "in all" in line


def test_the_commands_of_the_book_answer_rightly(tmp_path, lines, call):
    """S1 has one line of 40 Mbit/s, S2 one of 100; nobody asks for a flood."""
    lines({"D": 200 * MBIT, "S1": 40 * MBIT, "S2": 100 * MBIT})
    hosts = write_hosts_of(tmp_path, ["D", "S1", "S2"])
    samples, problem = str(tmp_path / "samples"), str(tmp_path / "problem.toml")
    code, _, err = call("measure", "cycle", hosts, "-o", samples, "--dry-run")
    assert code == 0
    assert "floods of hosts that do more at once in a plan than was shown" in " ".join(err.split())
    assert call("measure", "cycle", hosts, "-o", samples)[0] == 0
    holds = ("--backlog", "S1=6 GB", "--backlog", "S2=10 GB")
    code, _, err = call("measure", "problem", samples, "--hosts", hosts, *holds, "-o", problem)
    assert code == 0
    assert "the uplink of S1 is taken as" in " ".join(err.split())
    code, out, _ = call("compare", problem, "--json")
    methods = json.loads(out)["methods"]
    real_s = 6 * GB / (40 * MBIT)
    assert methods["coordinated"]["makespan_s"] == pytest.approx(real_s, rel=0.03)
    assert methods["direct"]["makespan_s"] == pytest.approx(real_s, rel=0.03)
    code, out, err = call("plan", problem)
    assert "is to send" not in out + err


def test_what_is_not_known_is_named_with_its_cost_and_its_command(tmp_path, lines, call):
    """Tests of pairs alone: S1 is to send twice what its line carries, and nothing has shown it."""
    of = lines({"D": 200 * MBIT, "S1": 40 * MBIT, "S2": 100 * MBIT}, noise=0.0)
    hosts = write_hosts_of(tmp_path, ["D", "S1", "S2"])
    samples = str(tmp_path / "samples")
    call("measure", "cycle", hosts, "-o", samples, "--tools", "tcp")
    assert not of.floods()
    given = (samples, "--hosts", hosts, "--backlog", "S1=6 GB", "--backlog", "S2=10 GB")
    code, _, err = call("measure", "problem", *given)
    assert code == 0
    told = " ".join(err.split())
    # 6 GB while 16 GB pass the 140 Mbit/s of both sources.
    assert re.search(
        r"S1 is to send 52\.\d+ Mbit/s at once; no test has shown more than 40 Mb", told
    )
    assert "for at most 62.5 MB and 5 s:" in told
    (command,) = (line for line in err.splitlines() if "measure flood" in line)
    most = int(1.25 * 5 * 40 * MBIT) + 1
    assert command.split()[2:] == [
        *("flood", hosts, "--from", "S1", "--to", "D", "--to", "S2"),
        *("--streams", "4", "--seconds", "5", "--bytes", str(most)),
    ]
    # The command that is named can be run, and what it costs is what was said.
    code, _, err = call(*command.split()[1:], "--dry-run")
    assert code == 0
    assert "2 tests, all at once: at most 62.5 MB and 5 s" in " ".join(err.split())
    said = json.loads(call("measure", "problem", *given, "--json")[1])
    (unknown,) = said["not_shown"]
    assert (unknown["host"], unknown["most_bytes"], unknown["most_s"]) == ("S1", 2 * most, 5.0)
    assert unknown["shown_bytes_per_s"] == pytest.approx(40 * MBIT)
    assert unknown["cautious_makespan_s"] > 1.2 * unknown["makespan_s"]


def test_a_host_that_vanishes_between_costs_its_own_floods_only(tmp_path, lines):
    """S2 goes once all pairs are tested: what S1 sends stays unknown, and nothing is invented."""
    of = lines({"D": 200 * MBIT, "S1": 40 * MBIT, "S2": 100 * MBIT})

    def tell(line):
        if line.startswith("tcp: round 6 of 6"):
            of.away.add("S2")

    hosts = write_hosts_of(tmp_path, ["D", "S1", "S2"])
    done = dc.measure_cycle(hosts, tmp_path / "samples", tools=["tcp", "flood"], tell=tell)
    assert done.failed
    assert any("S2: is away" in one.why for one in done.failures)
    assert len(of.floods()) == len({frozenset(pairs) for pairs in of.floods()})
    table = read_parts(tmp_path / "samples").frame
    holds = {"S1": 6 * GB, "S2": 10 * GB}
    found = problem_of_samples(table, "D", hosts={"D", "S1", "S2"}, backlog_bytes=holds)
    assert not any("uplink_bytes_per_s" in host for host in found.tree["hosts"].values())
    assert plan_of(found).assumptions.matter
    # It is back, and the next cycle asks again.
    of.away.clear()
    dc.measure_cycle(hosts, tmp_path / "samples", tools=["tcp", "flood"])
    table = read_parts(tmp_path / "samples").frame
    found = problem_of_samples(table, "D", hosts={"D", "S1", "S2"}, backlog_bytes=holds)
    assert "uplink_bytes_per_s" in found.tree["hosts"]["S1"]
    assert not plan_of(found).assumptions.matter


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_cycle_killed_in_its_floods_goes_on_and_repeats_none(tmp_path, lines, monkeypatch, n):
    """The n-th flood is done, and cannot be kept any more; what was kept is not asked for again."""
    names = ["D", "S1", "S2", "S3"]
    of = lines({name: (40 + i) * MBIT for i, name in enumerate(names)} | {"D": 400 * MBIT})
    hosts, keep, killed = write_hosts_of(tmp_path, names), measure_cycle.write_part, []

    def kept(folder, test_id, rows):
        if "-flood" in test_id and len(of.floods()) == n and not killed:
            killed.append(test_id)
            raise Killed
        return keep(folder, test_id, rows)

    monkeypatch.setattr(measure_cycle, "write_part", kept)
    with pytest.raises(Killed):
        dc.measure_cycle(hosts, tmp_path / "samples", tools=["tcp", "flood"])
    done = dc.measure_cycle(hosts, tmp_path / "samples", tools=["tcp", "flood"])
    assert done.number == 0
    rows = read_parts(tmp_path / "samples").frame
    floods = rows[rows["tool"] == "flood"]
    kept_ones = {
        (settings_of(row["settings"])["flood"], row["from"], row["to"])
        for row in floods.to_dict("records")
    }
    # One was done and lost; of what was kept each row is there once, and each flood was one test.
    assert len(kept_ones) == len(floods)
    assert len({number for number, *_ in kept_ones}) == len(of.floods()) - 1
    assert len(of.floods()) <= len({frozenset(pairs) for pairs in of.floods()}) + 1


def test_what_a_flood_said_yesterday_is_asked_for_again(tmp_path, lines, monkeypatch):
    """S1 has a line of 40 Mbit/s, and of 200 some days later: then the old limit goes."""
    of = lines({"D": 400 * MBIT, "S1": 40 * MBIT, "S2": 150 * MBIT})
    hosts = write_hosts_of(tmp_path, ["D", "S1", "S2"])
    now_s = time.time()
    monkeypatch.setattr(time, "time", lambda: now_s - 3 * 86400)
    dc.measure_cycle(hosts, tmp_path / "samples", tools=["tcp", "flood"])
    monkeypatch.setattr(time, "time", lambda: now_s)
    of.up["S1"] = 200 * MBIT
    of.wires = {90 * MBIT: [("S1", "D")], 91 * MBIT: [("S1", "S2")]}
    dc.measure_cycle(hosts, tmp_path / "samples", tools=["tcp", "flood"])
    table = read_parts(tmp_path / "samples").frame
    found = problem_of_samples(table, "D", hosts={"D", "S1", "S2"}, backlog_bytes={"S1": GB})
    of_s1 = found.tree["hosts"]["S1"]
    assert of_s1["shown_uplink_bytes_per_s"] == pytest.approx(181 * MBIT, rel=0.02)
    assert "uplink_bytes_per_s" not in of_s1


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 7])
def test_what_is_promised_by_the_book_is_what_wires_carry(tmp_path, lines, seed):
    """Networks of the bed, in memory: plans of a cycle beside plans of what the wires are."""
    network = drawn(seed)
    shared = network.known["shared"]
    of_links = [
        (row["bandwidth_bytes_per_s"], [(row["from"], row["to"])]) for row in network.known["links"]
    ]
    of_wires = [(row["bandwidth_bytes_per_s"], map(tuple, row["links"])) for row in shared]
    # Rates are keys: equal ones are told apart by a hair.
    both = [
        (rate * (1 + i * 1e-6), [*links]) for i, (rate, links) in enumerate(of_links + of_wires)
    ]
    lines(dict.fromkeys(network.hosts, 1e12), wires=dict(both), noise=0.03)
    names = ["D", *network.hosts[:-1]]
    (tmp_path / "hosts").mkdir()
    dc.measure_cycle(write_hosts_of(tmp_path / "hosts", names), tmp_path / "samples")
    table = read_parts(tmp_path / "samples").frame
    for held in ((3, 1, 2), (1, 3, 1), (1, 1, 3)):
        backlog = {name: n * GB for name, n in zip(network.sources, held, strict=True)}
        plan = plan_of(problem_of_samples(table, "D", hosts={*names}, backlog_bytes=backlog))
        hosts = {
            name: {**limits, "backlog_bytes": backlog.get(name, 0)}
            for name, limits in network.known["hosts"].items()
        }
        known = dc.Problem.from_dict({**network.known, "destination": "D", "hosts": hosts})
        truth = dc.coordinated(known)
        assert plan.makespan_s == pytest.approx(truth.makespan_s, rel=0.1)
        assert plan.assumptions.gain == pytest.approx(truth.assumptions.gain, rel=0.1)
