"""Explanations in notebooks and on a prompt."""

from __future__ import annotations

import datacollect as dc

PROBLEM = dc.Problem.from_matrix(["<S>", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")


def test_the_repr_is_one_short_line():
    assert repr(dc.explain(PROBLEM)).startswith("<Explanation: lower bound 2 s, binds: ")
    planned = dc.explain(PROBLEM, dc.direct(PROBLEM))
    assert repr(planned).startswith("<Explanation: direct 2 s, lower bound 2 s, binds: ")
    assert "\n" not in repr(planned)


def test_the_table_says_what_binds_when_and_escapes_names():
    html = dc.explain(PROBLEM, dc.direct(PROBLEM))._repr_html_()
    assert "<b>Explanation of direct</b>" in html
    assert "<th>from</th><th>to</th><th>rate</th><th>what</th>" in html
    assert "<td>0 s</td><td>2 s</td><td>40 bit/s</td>" in html
    assert "&lt;S&gt;" in html
    assert "<S>" not in html
