"""``datacollect pulls``: what each host requests."""

from __future__ import annotations

from instances.command_line import strict_json


def test_pulls_add_up_to_the_backlog(planned, call):
    code, out, err = call("pulls", "figure1.toml", "plan.json", "--json")
    assert (code, err) == (0, "")
    pulls = strict_json(out)["pulls"]
    assert sum(pull["bytes"] for pull in pulls if pull["host"] == "D") == 2_000_000
    relayed = [pull for pull in pulls if pull["host"] == "K"]
    assert {pull["forward_to"] for pull in relayed} == {"D"}
    assert {pull["slot"] for pull in pulls} == {None}


def test_pulls_of_one_host(planned, call):
    code, out, _ = call("pulls", "figure1.toml", "plan.json", "--host", "K")
    assert code == 0
    assert out.splitlines()[0] == "K requests"
    assert "D requests" not in out
    code, out, _ = call("pulls", "figure1.toml", "plan.json", "--host", "S1")
    assert (code, out) == (0, "S1 requests nothing\n")


def test_pulls_of_nobody(planned, call):
    code, out, err = call("pulls", "figure1.toml", "plan.json", "--host", "SS1")
    assert (code, out) == (2, "")
    assert "figure1.toml has no host 'SS1'; did you mean 'S1'?" in err


def test_a_schedule_of_other_hosts_is_refused(planned, call):
    text = (planned / "figure1.toml").read_text()
    (planned / "other.toml").write_text(text.replace("S1", "T1"))
    for command in (["pulls"], ["plot", "-o", "plan.png"], ["replan", "--json"]):
        name, *options = command
        files = ["other.toml", "plan.json"]
        if name == "replan":
            (planned / "progress.json").write_text(
                '{"format": "datacollect-progress/1", "at_s": 0.0}'
            )
            files.append("progress.json")
        code, out, err = call(name, *files, *options)
        assert (code, out) == (2, ""), err
        assert "does not belong to the problem: host 'S1' of its route" in err
        assert "give the problem that it was made for" in err
    assert not (planned / "plan.png").exists()
