"""What the shipped service for upload servers takes: to plan, to plan again, to write its lists.

    python experiments/upload_server_speed.py [--hosts 30] [--files 0,1000000] [--repeats 5]

Prints a table in Markdown, docs/tables/upload_server_speed.md. The hosts are a full mesh of
`synthetic_problems`, of which a quarter hold files of lognormal sizes. Processor time, medians of
repetitions, each on a fresh problem: to read the files' list; to plan; to plan again when half is
there and all bandwidths have changed; to write the lists of all hosts. Ratios: of planning over
one maximum flow by networkx through the same links; of planning again over planning; of writing
over `json.dumps` of the same lists. The last column is the longest that a request for a list
waited while another was planned and written, by the clock.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import networkx as nx
import numpy as np
import timed_calls
from aiohttp.test_utils import TestClient, TestServer
from synthetic_problems import SEED, mesh_problem
from timed_calls import in_words, timed

import datacollect as dc
from datacollect.examples import upload_server

HEAD = (
    *("hosts", "files", "read", "plan", "ratio", "plan again", "ratio", "lists", "ratio"),
    *("size of lists", "longest wait"),
)
ASKED = "h1"


def written(folder: Path, n_hosts: int, n_files: int) -> Path:
    """Write a problem file, with a manifest where there are to be files."""
    tree = mesh_problem(n_hosts).to_dict()
    sources = [name for name, host in tree["hosts"].items() if host.get("backlog_bytes")]
    if n_files:
        sizes = np.random.default_rng(SEED).lognormal(12.0, 2.0, n_files).astype(int) + 1
        with (folder / "files.csv").open("w", newline="", encoding="utf-8") as file:
            rows = csv.writer(file)
            rows.writerow(("host", "path", "bytes"))
            for i, size in enumerate(sizes.tolist()):
                rows.writerow((sources[i % len(sources)], f"run{i // 1000}/{i}.dat", size))
        tree["manifest"] = "files.csv"
        tree["hosts"] = {name: {} for name in tree["hosts"]}
    path = folder / "problem.json"
    path.write_text(json.dumps(tree), encoding="utf-8")
    return path


def max_flow(problem: dc.Problem) -> float:
    """Return what all links together bring per second, at most: one flow by networkx."""
    graph = nx.DiGraph()
    ends = zip(problem.link_from.tolist(), problem.link_to.tolist(), strict=True)
    rates = problem.bandwidth_bytes_per_s[0].tolist()
    for (tail, head), rate in zip(ends, rates, strict=True):
        graph.add_edge(tail, head, capacity=int(rate))
    for source in problem.sources:
        graph.add_edge("all", problem.host_index[source])
    return nx.maximum_flow_value(graph, "all", problem.destination_index)


def changed(problem: dc.Problem) -> dc.NewLinks:
    """Change all bandwidths by up to a half."""
    part = np.random.default_rng(SEED).uniform(0.5, 1.5, problem.n_links)
    names = problem.names
    ends = zip(problem.link_from.tolist(), problem.link_to.tolist(), strict=True)
    rates = (problem.bandwidth_bytes_per_s[0] * part).tolist()
    return dc.NewLinks.from_names(
        problem, {(names[a], names[b]): rate for (a, b), rate in zip(ends, rates, strict=True)}
    )


async def longest_wait_s(problem: dc.Problem) -> float:
    """Ask for a list again and again while a post is planned; return the longest wait."""
    async with TestClient(TestServer(upload_server.application(problem))) as client:
        async with client.get("/plan") as answer:
            plan = (await answer.json())["plan"]

        async def post() -> None:
            tree = {"format": "datacollect-progress/1", "at_s": 1.0}
            async with client.post(f"/plans/{plan}/progress", json=tree) as answer:
                assert answer.status == 200, await answer.text()

        task, longest_s = asyncio.ensure_future(post()), 0.0
        while not task.done():
            began_s = time.perf_counter()
            async with client.get(f"/pulls/{ASKED}") as answer:
                await answer.read()
            longest_s = max(longest_s, time.perf_counter() - began_s)
            await asyncio.sleep(0.005)
        await task
        return longest_s


def row(n_hosts: int, n_files: int, repeats: int) -> tuple[object, ...]:
    """Measure one problem."""
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder), n_hosts, n_files)
        read_s, problem = timed(dc.Problem.from_file, path)
    plan = dc.coordinated(problem)
    progress = dc.Progress.from_schedule(problem, plan, plan.makespan_s / 2, links=changed(problem))
    now = datetime.now(UTC)
    served = upload_server.Served.of(problem, plan, now)
    trees = [json.loads(text) for text in served.lists.values()]
    calls = (
        lambda: dc.coordinated(problem.replace()),
        lambda: max_flow(problem),
        lambda: dc.replan(problem, plan, progress),
        lambda: upload_server.Served.of(problem, plan, now),
        lambda: [json.dumps(tree) for tree in trees],
    )
    seconds = [[timed(call)[0] for call in calls] for _ in range(repeats)]
    planning, flow, again, lists, dumped = map(median, zip(*seconds, strict=True))
    waits = [asyncio.run(longest_wait_s(problem)) for _ in range(repeats)]
    return (
        *(n_hosts, n_files, in_words(read_s), in_words(planning), f"{planning / flow:.2g}"),
        *(in_words(again), f"{again / planning:.2g}", in_words(lists), f"{lists / dumped:.2g}"),
        *(f"{sum(map(len, served.lists.values())) / 1e6:.3g} MB", in_words(median(waits))),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--hosts", type=int, default=30)
    parser.add_argument("--files", default="0,1000000", help="numbers of files, by commas")
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    row(4, 10, 1)  # imports do not count
    rows = [row(given.hosts, int(n), given.repeats) for n in given.files.split(",")]
    print(timed_calls.markdown(HEAD, rows, n_left=0))


if __name__ == "__main__":
    main()
