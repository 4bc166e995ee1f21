"""Names that look alike are one name, or refused: none is another host in silence."""

from __future__ import annotations

import pytest

import datacollect as dc
from datacollect.files.host_names import fault_of

LOOK_ALIKE = {
    "S1\u00a0": "must not end with a blank, got NO-BREAK SPACE there; remove it",
    "S1 ": "must not end with a blank, got SPACE there",
    "\tS1": r"must not begin with a blank, got U\+0009 there",
    "\ufeffS1": "must not begin with an invisible character, got ZERO WIDTH NO-BREAK SPACE there",
    "S\u200b1": "must not hold invisible characters, got ZERO WIDTH SPACE in it; remove it",
    "S\u00ad1": "must not hold invisible characters, got SOFT HYPHEN in it; remove it",
    "New\u00a0York": "must not hold invisible characters, got NO-BREAK SPACE in it; write a space",
    "Zu\u0308rich": "must be Unicode in its composed form, NFC, got 7 characters for 6",
}
IDS = [ascii(name) for name in LOOK_ALIKE]


@pytest.mark.parametrize(("name", "rule"), LOOK_ALIKE.items(), ids=IDS)
def test_no_problem_has_a_host_that_looks_like_another(name, rule):
    hosts = [dc.Host(name, 1), dc.Host("D")]
    with pytest.raises(dc.ProblemError, match=f"its name {rule}"):
        dc.Problem.from_hosts(hosts, [dc.Link(name, "D", 1.0)], "D")


@pytest.mark.parametrize(("name", "rule"), LOOK_ALIKE.items(), ids=IDS)
def test_no_table_of_samples_has_one(tmp_path, name, rule):
    (tmp_path / "samples.csv").write_text(
        f'from,to,time_s,bandwidth_mbit_per_s\nS1,D,0,1\n"{name}",D,1,2\n', encoding="utf-8"
    )
    with pytest.raises(dc.ProblemError, match=f"line 3: from '.*', the name of a host, {rule}"):
        dc.read_samples(tmp_path / "samples.csv")


@pytest.mark.parametrize(
    "name", ["New York", "Zürich", "\u0646\u0645\u06cc\u200c\u062f", "S 1-2_3.x", "東京"]
)
def test_what_is_seen_is_a_name(name):
    assert fault_of(name) == ""
