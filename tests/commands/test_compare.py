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


def test_a_gain_that_rests_on_what_nobody_has_shown_has_a_second_number(here, call):
    """S has two ways of 1 MB/s, 4 MB: 2 s, or 4 s, as directly, where both are one line."""
    tree = {
        "destination": "D",
        "hosts": {
            "S": {"backlog_bytes": 4_000_000},
            "K": {},
            "D": {"downlink_bytes_per_s": "none"},
        },
        "links": [
            {"from": "S", "to": "D", "bandwidth_bytes_per_s": 1e6},
            {"from": "S", "to": "K", "bandwidth_bytes_per_s": 1e6},
            {"from": "K", "to": "D", "bandwidth_bytes_per_s": 1e6},
        ],
    }
    (here / "two.json").write_text(json.dumps(tree))
    said = "S is to send 16 Mbit/s at once; no test has shown more than 8 Mbit/s."
    for command in (["compare", "two.json"], ["plan", "two.json", "-o", "plan.json"]):
        code, out, _ = call(*command)
        assert code == 0
        assert said in out
        assert "over direct; 4 s, 1.00 × over" in " ".join(out.split())
        assert max(map(len, out.splitlines())) <= 80
    code, out, _ = call("plan", "two.json", "--json")
    found = strict_json(out)["assumptions"]
    assert (found["matter"], found["leans_on"][0]["host"]) == (True, "S")
    code, out, _ = call("compare", "two.json", "--json")
    methods = strict_json(out)["methods"]
    assert methods["coordinated"]["assumptions"]["cautious_gain"] == pytest.approx(1, rel=0.01)
    assert methods["direct"]["assumptions"]["leans_on"] == []
    code, out, _ = call("explain", "two.json", "plan.json")
    assert said in out
    code, out, _ = call("plan", "two.json", "--cautious", "-o", "careful.json")
    assert code == 0
    assert "no test has shown" not in out
    assert call("check", "two.json", "careful.json")[0] == 0
    assert json.loads((here / "careful.json").read_text())["cautious"] is True
    code, out, _ = call("explain", "two.json", "careful.json")
    assert code == 0
    assert "no test has shown" not in out
    tree["hosts"]["S"]["uplink_bytes_per_s"] = "none"
    (here / "two.json").write_text(json.dumps(tree))
    assert "no test has shown" not in call("compare", "two.json")[1]
    code, _, err = call("plan", "two.json", "--method", "direct", "--cautious")
    assert code == 0
    assert "--cautious has no meaning for direct, which leans on no host" in err
