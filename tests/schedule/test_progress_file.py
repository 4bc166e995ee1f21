"""Progress in files: what is read and written, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from instances.replanned import held_tree, relay_problem
from instances.small_problems import MB

import datacollect as dc


def test_progress_survives_a_file(tmp_path):
    problem = relay_problem()
    links = dc.NewLinks(
        np.array([0, 1]),
        np.array([1, 3]),
        np.array([[1.0, 2.0], [3.0, 4.0]]),
        np.array([np.nan, 7.0]),
        np.array([0.0, 5.0]),
    )
    progress = dc.Progress(2.5, (dc.Held("K", "S", 0, MB),), links, ("J",))
    path = tmp_path / "progress.json"
    path.write_text(json.dumps(progress.to_dict(problem)))
    read = dc.Progress.from_file(path, problem)
    assert (read.at_s, read.held, read.lost_hosts) == (2.5, progress.held, ("J",))
    for key in ("link_from", "link_to", "bandwidth_bytes_per_s", "price_per_gb", "periods_s"):
        np.testing.assert_array_equal(getattr(read.links, key), getattr(links, key))


def test_a_csv_brings_new_estimates_and_keeps_prices(tmp_path):
    problem = relay_problem(price_per_gb=np.arange(5.0))
    (tmp_path / "grid.csv").write_text("from,to,bandwidth_mbit_per_s\nS,K,4\nK,J,8\n")
    path = tmp_path / "progress.toml"
    path.write_text('format = "datacollect-progress/1"\nat_s = 0\nbandwidth_csv = "grid.csv"\n')
    rest = dc.remaining_problem(problem, dc.Progress.from_file(path, problem))
    i, new = rest.link_indices([0, 1], [1, 2]).tolist()
    assert rest.bandwidth_bytes_per_s[0, [i, new]].tolist() == [5e5, 1e6]
    before = problem.price_per_gb[problem.link_indices([0], [1])[0]]
    assert rest.price_per_gb[[i, new]].tolist() == [before, 0.0]


BAD_PROGRESS = [
    ({"at_s": -1.0}, r"at_s must be a finite number of seconds >= 0, got -1.*start of the plan"),
    ({}, "key at_s is missing"),
    ({"helt": []}, "helt: unknown key; did you mean 'held'"),
    ({"format": "datacollect-problem/1"}, "format must be .datacollect-progress/1."),
    ({"hosts": {}}, "this is a problem; name the problem first"),
    ({"transfers": []}, "this is a schedule; name the problem first"),
    ({"lost_hosts": ["X"]}, r"lost_hosts\[0\] must be one of the hosts, got 'X'"),
    ({"lost_hosts": ["D"]}, "'D' is the destination"),
    ({"held": [held_tree(host="X")]}, r"held\[0\].host must be one of the hosts, got 'X'"),
    ({"held": [held_tree(), held_tree(source="X")]}, r"held\[1\].source must be one of the hosts"),
    ({"held": [held_tree(offset=8 * MB)]}, "must lie within the backlog .* of another problem"),
    (
        {"held": [held_tree(), held_tree(host="D")]},
        "byte 0 lies at 'K' and at 'D'.*one holder per byte",
    ),
    ({"periods_s": [1.0]}, "periods_s must begin with 0"),
    (
        {"links": [{"from": "S", "to": "X", "bandwidth_bytes_per_s": 1.0}]},
        r"links\[0\].to must be one of the hosts",
    ),
    (
        {"links": [{"from": "S", "to": "K", "bandwidth_bytes_per_s": 1.0}] * 2},
        r"links\[1\]: link 'S' -> 'K' given twice",
    ),
]


@pytest.mark.parametrize(("progress", "message"), BAD_PROGRESS)
def test_bad_progress_is_refused_with_place_and_remedy(progress, message):
    problem = relay_problem()
    tree = {"format": "datacollect-progress/1", "at_s": 1.0, **progress}
    if not progress:
        del tree["at_s"]
    with pytest.raises(dc.ProblemError, match=message):
        dc.remaining_problem(problem, dc.Progress.from_dict(tree, problem))
