"""``datacollect pulls``: what each host requests."""

from __future__ import annotations

from instances.command_line import strict_json

from datacollect.commands.answers import parts_text


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


FILES = "host,path,bytes\nS1,a,300000\nS1,run/b,700000\nS2,c,1000000\n"


def test_ranges_name_their_files(planned, call):
    """Each byte that the destination requests is in one file; whole files come together again."""
    (planned / "files.csv").write_text(FILES)
    toml = planned / "figure1.toml"
    toml.write_text('manifest = "files.csv"\n' + toml.read_text())
    code, out, err = call("pulls", "figure1.toml", "plan.json", "--json")
    assert (code, err) == (0, "")
    pulls = strict_json(out)["pulls"]
    first = {"a": 0, "run/b": 300_000, "c": 0}
    arrived: dict[str, int] = {}
    for pull in pulls:
        parts = pull["files"]
        assert sum(part["bytes"] for part in parts) == pull["bytes"]
        assert first[parts[0]["path"]] + parts[0]["offset_bytes"] == pull["offset_bytes"]
        for part in parts if pull["host"] == "D" else ():
            arrived[part["path"]] = arrived.get(part["path"], 0) + part["bytes"]
    assert arrived == {"a": 300_000, "run/b": 700_000, "c": 1_000_000}
    code, out, _ = call("pulls", "figure1.toml", "plan.json")
    assert code == 0
    assert "run/b (" in out
    assert max(map(len, out.splitlines())) <= 80


def test_without_a_manifest_no_files_are_named(planned, call):
    pulls = strict_json(call("pulls", "figure1.toml", "plan.json", "--json")[1])["pulls"]
    assert all("files" not in pull for pull in pulls)
    assert "files" not in call("pulls", "figure1.toml", "plan.json")[1]


def test_of_many_files_the_first_and_the_last_are_named():
    parts = [{"path": f"f{i}", "offset_bytes": 0, "bytes": 1000} for i in range(9)]
    parts[0]["offset_bytes"] = 7
    assert parts_text(parts) == "f0 (1 kB from byte 7), 7 more, f8 (1 kB)"
    assert parts_text(parts[1:4]) == "f1 (1 kB), f2 (1 kB), f3 (1 kB)"


def test_a_host_like_none_is_answered_with_those_there_are(planned, call):
    code, _, err = call("pulls", "figure1.toml", "plan.json", "--host", "zurich")
    assert code == 2
    assert "has no host 'zurich'; there are S1, S2, " in err
