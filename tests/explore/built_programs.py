"""Degenerate linear programs as the planner builds them: every solver against HiGHS, none hangs."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from unittest import mock

from judges.linear_proofs import disagreement

import datacollect as dc
from datacollect.flow import arrival_bounds, connection_flow
from datacollect.flow.shared import pricing
from datacollect.methods.connections import divided_rates
from datacollect.solvers.programs import LinearProgram

# Whoever builds linear programs.
BUILDERS = (pricing, arrival_bounds, connection_flow, divided_rates)
SOLVERS = ("ortools", "pulp")
# Of each case so many programs of each builder are solved again; one may build dozens alike.
MOST_PROGRAMS = 6
# Columns per program, for the dense matrices that HiGHS gets here.
MOST_COLUMNS = 400


def case(seed: int) -> str | None:
    """Plan a problem of few numbers; have every solver solve what was built for it."""
    rng = random.Random(f"built {seed}")
    way = WAYS[seed % len(WAYS)]
    # Whatever comes of the problem, what was built for it stands.
    with built_programs() as programs, suppress(dc.InfeasibleError, dc.ProblemError):
        way(rng)
    for name, found in programs.items():
        for program in rng.sample(found, min(MOST_PROGRAMS, len(found))):
            if program.n_columns <= MOST_COLUMNS and (wrong := disagreement(program, SOLVERS)):
                return f"{name}: {wrong}"
    return None


@contextmanager
def built_programs() -> Iterator[dict[str, list[LinearProgram]]]:
    """Collect the programs that are built meanwhile, by the builder's name."""
    found: dict[str, list[LinearProgram]] = {module.__name__: [] for module in BUILDERS}

    def kept(name: str) -> Callable[..., LinearProgram]:
        def build(*arguments: object, **options: object) -> LinearProgram:
            found[name].append(LinearProgram(*arguments, **options))
            return found[name][-1]

        return build

    with ExitStack() as stack:
        for module in BUILDERS:
            stack.enter_context(mock.patch.object(module, "LinearProgram", kept(module.__name__)))
        yield found


# Problems of few numbers, in which nearly all ties ------------------------------------------------


def _tied(rng: random.Random, *, periods: int = 1, n_shared: int = 0) -> dc.Problem:
    """Three to six hosts, rates and backlogs of one or two values each."""
    n = rng.randint(3, 6)
    names = [*(f"h{i}" for i in range(n - 1)), "D"]
    rates, amounts = [0.0, 1.0, rng.choice([1.0, 2.0])], [0, 4, rng.choice([4, 8])]

    def grid() -> list[list[float]]:
        return [[rng.choice(rates) if a != b else 0.0 for b in range(n)] for a in range(n)]

    grids = [grid() for _ in range(periods)]
    problem = dc.Problem.from_matrix(
        names,
        grids if periods > 1 else grids[0],
        [max(4, rng.choice(amounts)), *(rng.choice(amounts) for _ in names[2:]), 0],
        "D",
        periods_s=[float(2 * i) for i in range(periods)] if periods > 1 else None,
        uplink_bytes_per_s=[rng.choice([1.0, 2.0, float("inf")]) for _ in names],
        release_s=[*(rng.choice([0.0, 0.0, 1.0]) for _ in names[1:]), 0.0],
    )
    links = list(zip(problem.link_from.tolist(), problem.link_to.tolist(), strict=True))
    shared = [
        dc.SharedBottleneck(
            f"wire{i}",
            rng.choice([1.0, 2.0]),
            [(names[a], names[b]) for a, b in rng.sample(links, min(4, len(links)))],
        )
        for i in range(n_shared if links else 0)
    ]
    return problem.replace(shared=shared)


def _shared(rng: random.Random) -> None:
    problem = _tied(rng, periods=rng.choice([1, 3]), n_shared=rng.randint(1, 3))
    dc.coordinated(problem, chunk_s=0.0)


def _in_slots(rng: random.Random) -> None:
    dc.coordinated(_tied(rng, n_shared=rng.randint(1, 3)), slot_s=rng.choice([1.0, 2.0]))


def _earliest_arrival(rng: random.Random) -> None:
    problem = _tied(rng, periods=rng.choice([1, 2]), n_shared=rng.randint(1, 2))
    dc.coordinated(problem, prefer="earliest-arrival")
    dc.explain(problem)


def _connections(rng: random.Random) -> None:
    problem = _tied(rng, n_shared=rng.randint(0, 2))
    rate = problem.bandwidth_bytes_per_s[0]
    crowded = problem.replace(
        competitors=[float(rng.choice([0, 1, 3])) for _ in rate],
        capacity_bytes_per_s=rate * rng.choice([4.0, 8.0]),
        per_connection_bytes_per_s=rate,
    )
    dc.coordinated(crowded, connections=rng.randint(2, 8))


WAYS = (_shared, _in_slots, _earliest_arrival, _connections)
