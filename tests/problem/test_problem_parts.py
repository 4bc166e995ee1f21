"""Parcels of a problem, and the problem with fewer links."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
from hypothesis import given
from instances.replanned import direct_links, ends_of, mesh, two_sources_on_a_wire

import datacollect as dc

# Parcels -------------------------------------------------------------------------------------


@st.composite
def scattered(draw) -> tuple[dc.Problem, dict[str, list[str]]]:
    """Backlogs in which every byte lies at some host: the problem, and where each byte is."""
    names = ["D", "S", "K", "J"]
    lies_at = {
        source: draw(st.lists(st.sampled_from(names), min_size=1, max_size=12))
        for source in ("D", "S", "K")
    }
    held = [
        dc.Held(host, source, byte, 1)
        for source, hosts in lies_at.items()
        for byte, host in enumerate(hosts)
        if host != source or draw(st.booleans())  # at its source it need not be listed
    ]
    backlog = [len(lies_at.get(name, [])) for name in names]
    hosts = [
        dc.Host(name, n, 5.0 * i) for i, (name, n) in enumerate(zip(names, backlog, strict=True))
    ]
    links = [dc.Link(name, "D", 1.0) for name in names[1:]]
    problem = dc.Problem.from_hosts(hosts, links, "D", held=draw(st.permutations(held)))
    return problem, lies_at


@given(scattered())
def test_parcels_say_of_every_byte_where_it_lies(case):
    problem, lies_at = case
    found = {
        (problem.names[p.source], p.offset_bytes + byte): (problem.names[p.host], p.release_s)
        for p in problem.parcels
        for byte in range(p.n_bytes)
    }
    release = dict(zip(problem.names, problem.release_s.tolist(), strict=True))
    assert found == {
        (source, byte): (host, release[source] if host == source else 0.0)
        for source, hosts in lies_at.items()
        for byte, host in enumerate(hosts)
        if host != "D"
    }
    assert sum(p.n_bytes for p in problem.parcels) == len(found) == problem.total_bytes
    assert list(problem.parcels) == sorted(problem.parcels)
    own = [p for p in problem.parcels if p.host == p.source]
    ends = {(p.source, p.offset_bytes + p.n_bytes) for p in own}
    assert not ends & {(p.source, p.offset_bytes) for p in own}  # as few as can be


# Fewer links ---------------------------------------------------------------------------------


def test_fewer_links_are_the_problem_with_fewer_links():
    problem = mesh(9, 1, limits=True)
    assert problem.sha256  # what is remembered must not be handed on
    links = np.array([0, 3, 17, 40])
    few = problem.with_links(links)
    same = problem.replace(
        link_from=problem.link_from[links],
        link_to=problem.link_to[links],
        bandwidth_bytes_per_s=problem.bandwidth_bytes_per_s[:, links],
    )
    assert few.sha256 == same.sha256
    assert few.link_indices([few.link_from[2]], [few.link_to[2]]).tolist() == [2]
    out = problem.links_out_of([2, 5])
    assert out.tolist() == np.flatnonzero(np.isin(problem.link_from, [2, 5])).tolist()


def test_fewer_links_keep_what_they_share():
    problem = two_sources_on_a_wire()
    assert [links.tolist() for links in problem.shared_links]
    few = problem.with_links(np.sort(problem.link_indices([1, 0, 2], [3, 2, 3])))
    assert [(s.name, list(s.links)) for s in few.shared] == [("wire", [("T", "D")])]
    assert ends_of(few, few.shared_links[0]) == [("T", "D")]
    assert few.sha256 == few.replace(shared=few.shared).sha256
    assert problem.with_links(direct_links(problem, "K")).shared == ()
