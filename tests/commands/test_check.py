"""``datacollect check``: valid, or the rule that is broken."""

from __future__ import annotations

import json


def edited(path, edit):
    tree = json.loads(path.read_text())
    edit(tree)
    path.write_text(json.dumps(tree))


def test_check_accepts_what_plan_wrote(planned, call):
    code, out, err = call("check", "figure1.toml", "plan.json")
    assert (code, err) == (0, "next: datacollect pulls figure1.toml plan.json\n")
    assert out == "valid: coordinated, makespan 1.01 s (1.01 × the lower bound)\n"


def test_check_names_the_broken_rule(planned, call):
    def halve(tree):
        tree["transfers"][0]["finish_s"] /= 2

    edited(planned / "plan.json", halve)
    code, out, err = call("check", "figure1.toml", "plan.json")
    assert (code, out) == (1, "")
    assert err.startswith("error: plan.json: invalid: ")
    # S1 sends 1 MB to K in 1 s over a link of 1 MB/s; in half the time that needs twice as much.
    assert "link 'S1' -> 'K'" in err
    assert "2000000 bytes/s" in err


def test_schedule_of_another_problem_is_noted(planned, call):
    text = (planned / "figure1.toml").read_text().replace("2_000_000.0", "3_000_000.0")
    (planned / "figure1.toml").write_text(text)
    code, _, err = call("check", "figure1.toml", "plan.json")
    assert code == 0
    assert err.startswith("note: this schedule was made for another problem")
