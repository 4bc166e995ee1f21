"""The shipped examples: they say what they are about, and it is true."""

from __future__ import annotations

import shlex
import tomllib

import pytest

import datacollect as dc
from datacollect.commands.main import run
from datacollect.examples import example_files, example_names, example_summary, program_names
from datacollect.problem.fields import HELD, HOST, LINK, PROBLEM, SHARED

# A machine's profile is old after a year, and users are told.
pytestmark = pytest.mark.filterwarnings(
    r"ignore:.*_profile\.toml. measured_at is .* ago:datacollect.DatacollectWarning"
)


@pytest.fixture
def read(tmp_path):
    def read(name):
        for file, text in example_files(name).items():
            (tmp_path / file).write_text(text, encoding="utf-8")
        return dc.Problem.from_file(tmp_path / f"{name}.toml")

    read.folder = tmp_path
    return read


@pytest.mark.slow
@pytest.mark.parametrize("name", example_names())
def test_every_method_plans_it_validly(name, read):
    problem = read(name)
    plans = [
        dc.direct(problem),
        dc.best_path(problem),
        dc.coordinated(problem),
        dc.coordinated(problem, slot_s=dc.lower_bound(problem)[0] / 50),
    ]
    for plan in plans:
        plan.check(problem)
        assert plan.makespan_s >= plan.lower_bound_s * (1 - 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", example_names())
def test_the_commands_in_its_comment_run(name, tmp_path, monkeypatch, capsys):
    text = example_files(name)[f"{name}.toml"]
    lines = [line.removeprefix("#   ") for line in text.splitlines()]
    commands = [shlex.split(line)[1:] for line in lines if line.startswith("datacollect ")]
    assert commands
    monkeypatch.chdir(tmp_path)
    assert run(["example", name]) == 0
    for command in commands:
        assert run(command) == 0, command
    assert "error" not in capsys.readouterr().err


@pytest.mark.parametrize("name", example_names())
def test_it_begins_with_what_it_shows_in_a_line_that_fits(name):
    assert example_files(name)[f"{name}.toml"].startswith("# ")
    assert 20 < len(example_summary(name)) <= 66


@pytest.mark.parametrize("name", program_names())
def test_a_program_begins_with_what_it_does_and_is_the_module_itself(name):
    (text,) = example_files(name).values()
    assert 20 < len(example_summary(name)) <= 66
    assert f'"""{example_summary(name)}\n' in text
    compile(text, name, "exec")


def test_figure1_by_hand(read):
    """2 units through a wire of 1 unit/s: 2 s. In slots of 0.5 s: S1 sends directly for 1 s; S2
    sends to K, which by then has passed on half and needs half a slot's capacity, one slot, for
    the rest: 1.5 s. Fluid: 1 unit/s directly and 1 unit/s through K, 1 s; pipelined one chunk more.
    """
    problem = read("figure1")
    assert dc.direct(problem).makespan_s == pytest.approx(2.0)
    assert dc.best_path(problem).makespan_s == pytest.approx(2.0)
    assert dc.coordinated(problem, slot_s=0.5).makespan_s == pytest.approx(1.5)
    plan = dc.coordinated(problem, chunk_s=0.01)
    assert plan.lower_bound_s == pytest.approx(1.0)
    assert plan.makespan_s == pytest.approx(1.01)


def test_figure1_all_through_the_relay_takes_three(read):
    """Without the direct links, in slots of 1 s: 1 unit reaches K in each of the first two slots
    and leaves in the slot after, so that the last one ends at 3 s.
    """
    problem = read("figure1")
    bandwidth = problem.bandwidth_bytes_per_s.copy()
    bandwidth[0, problem.link_indices([0, 1], [3, 3])] = 0.0
    through_k = problem.replace(bandwidth_bytes_per_s=bandwidth)
    assert dc.coordinated(through_k, slot_s=1.0).makespan_s == pytest.approx(3.0)


def test_upload_shows_that_coordination_pays(read):
    problem = read("upload")
    direct, best = dc.direct(problem).makespan_s, dc.best_path(problem).makespan_s
    coordinated = dc.coordinated(problem).makespan_s
    assert 8 <= problem.n_hosts <= 10
    assert len(problem.sources) == 6
    assert all(2e9 <= size <= 20e9 for size in problem.backlog_bytes if size)
    assert best < 0.9 * direct
    assert coordinated < 0.5 * best


def test_minimal_by_hand(read):
    """geneva alone needs 3 GB / 2.5 MB/s = 1200 s. Both ways into lyon carry 7.5 MB/s, all 4 GB
    take 4000 / 7.5 s = 533.3 s, and geneva's 3 GB fit beside zurich's 1 GB: 2.5·533 + 1667 = 3000.
    """
    problem = read("minimal")
    assert dc.direct(problem).makespan_s == pytest.approx(1200.0)
    assert dc.lower_bound(problem)[0] == pytest.approx(1600 / 3)


def test_prices_by_hand(read):
    """By day 80 MB/s reach frankfurt, with sao-paulo's 10 from 900 s on: 315 GB by 3600 s.

    London's disk is full by then, 40 GB more than what it passes on. By night 75 MB/s arrive
    directly and 112.5 enter london, so that 560 - 315 - 40 = 205 GB take 1093.3 s.
    With all the time there is, virginia and sao-paulo send directly (0.05 and 0.12 per GB), and
    tokyo (0.09): 15 + 16.2 + 9.6 = 40.8; at 15 MB/s tokyo's 180 GB take 12000 s.
    """
    problem = read("prices")
    assert dc.lower_bound(problem)[0] == pytest.approx(3600 + 205e3 / 187.5)
    cheapest = dc.front(problem, slack=[]).loc[float("inf")]
    assert cheapest["money"] == pytest.approx(40.8)
    assert cheapest["makespan_s"] == pytest.approx(12_000)
    kinds = {resource.kind for r in dc.explain(problem).advice.alone for resource in r.resources}
    assert kinds == {"link", "storage", "release"}


def test_constraints_shows_every_field():
    tree = tomllib.loads(example_files("constraints")["constraints.toml"])
    # With clock times and files is another: they replace what this one says in numbers.
    others = {"$schema", "bandwidth_csv", "daily_periods", "start", "timezone", "manifest"}
    assert set(tree) == set(PROBLEM.by_name) - others - {"file_tolerance"}
    tables = {
        HOST: tree["hosts"].values(),
        LINK: tree["links"],
        SHARED: tree["shared"],
        HELD: tree["held"],
    }
    # Numbers of connections mean nothing beside forecasts: they have an example of their own.
    counted = tomllib.loads(example_files("connections")["connections.toml"])
    # Nor do places on a map: the sites stand somewhere.
    sites = tomllib.loads(example_files("sites")["sites.toml"])["hosts"]
    hosts = [*counted["hosts"].values(), *sites.values()]
    also = {HOST: hosts, LINK: counted["links"], SHARED: counted["shared"]}
    for table, entries in tables.items():
        shown = set().union(*entries, *also.get(table, ()))
        # Windows need a clock: problems alone have them.
        assert shown - {"open"} == set(table.by_name) - {"open"}, table.name
    assert "open" in set().union(*sites.values())
    assert "bandwidth_csv" in tomllib.loads(example_files("upload")["upload.toml"])


def test_all_files_are_installed():
    # setup.cfg names *.toml and *.csv: nothing else may be needed.
    files = [file for name in example_names() for file in example_files(name)]
    assert {file.rpartition(".")[2] for file in files} == {"toml", "csv"}


def test_the_papers_motivating_size_is_planned_explained_and_carried_out(read):
    """A hundred servers with 10^11 bytes each. Directly the slowest path decides, at 9 Mbit/s
    88889 s; coordinated at most what all links into the destination carry together. Carried out in
    the fluid engine both take what was planned, but for chunks.
    """
    problem = read("returns")
    assert (len(problem.sources), int(problem.backlog_bytes.sum())) == (100, 10**13)
    direct, plan = dc.direct(problem), dc.coordinated(problem)
    into = problem.link_to == problem.destination_index
    slowest, whole = problem.bandwidth_bytes_per_s[0, into].min(), plan.lower_bound_s
    assert direct.makespan_s == pytest.approx(10**11 / slowest)
    assert whole >= 10**13 / problem.bandwidth_bytes_per_s[0, into].sum() * (1 - 1e-9)
    assert plan.makespan_s == pytest.approx(whole, rel=2e-3)
    assert plan.makespan_s < direct.makespan_s / 8
    assert "links to 'irs' together" in plan.bottleneck.text
    assert "Hosts 's00', 's01'" in str(dc.explain(problem, plan))
    for method, predicted_s in (("direct", direct.makespan_s), ("coordinated", plan.makespan_s)):
        scenario = {"problem": str(read.folder / "returns.toml"), "run": {"time_limit_s": 1e5}}
        run_ = dc.simulate(scenario, engine="fluid", method=method)
        assert run_.complete
        assert run_.collected_bytes == 10**13
        assert run_.makespan_s == pytest.approx(predicted_s, rel=2e-3)
