"""``datacollect compare``: a row for each method, and what binds."""

from __future__ import annotations

import json
import re

import pytest
from instances.command_line import PLAN_KEYS, strict_json


def test_compare_of_figure1(here, call):
    code, out, err = call("compare", "figure1.toml", "--json")
    assert (code, err) == (0, "")
    answer = strict_json(out)
    assert answer["lower_bound_s"] == pytest.approx(1.0)
    assert list(answer["methods"]) == ["direct", "best-path", "coordinated"]
    for name, values in answer["methods"].items():
        assert values["method"] == name
        assert set(values) >= PLAN_KEYS
    assert answer["methods"]["direct"]["makespan_s"] == pytest.approx(2.0)


def test_compare_shows_a_row_per_method_and_what_binds(here, call):
    _, out, _ = call("compare", "figure1.toml", "--slot", "0.5")
    rows = {line.split("  ")[0]: re.split(r"  +", line) for line in out.splitlines()}
    assert rows["direct"][1:4] == ["2 s", "2.000", "1.00×"]
    assert rows["coordinated"][1:4] == ["1.5 s", "1.500", "1.33×"]
    assert rows["lower bound"][1] == "1 s"
    assert "'N1 to D'" in out.rpartition("lower bound")[2]


def test_compare_says_why_a_method_has_no_plan(here, call):
    tree = {
        "destination": "D",
        "hosts": {"S": {"backlog_bytes": 10}, "K": {}, "D": {}},
        "links": [
            {"from": "S", "to": "K", "bandwidth_bytes_per_s": 5.0},
            {"from": "K", "to": "D", "bandwidth_bytes_per_s": 5.0},
        ],
    }
    (here / "relay.json").write_text(json.dumps(tree))
    code, out, _ = call("compare", "relay.json")
    assert code == 0
    assert re.search(r"^direct +–", out, re.MULTILINE)
    assert re.search(r"^direct: no usable link from 'S'", out, re.MULTILINE)
    code, out, _ = call("compare", "relay.json", "--json")
    assert code == 0
    assert "no usable link" in strict_json(out)["methods"]["direct"]["error"]
    assert strict_json(out)["methods"]["direct"]["makespan_s"] is None
