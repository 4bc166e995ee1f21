"""The last lines of commands: what to do next, beside the answer, and all of it can be done."""

from __future__ import annotations

import shlex

import pytest

SAMPLES = "from,to,time_s,bandwidth_mbit_per_s\nS,D,0,80\n"
TO_D = ("--destination", "D", "--backlog", "S=1 GB")


def steps(err):
    """Return the commands that are advised."""
    lines = err.splitlines()
    at = next((i for i, line in enumerate(lines) if line.startswith("next: ")), len(lines))
    return [shlex.split(line.removeprefix("next: "))[1:] for line in lines[at:]]


def test_a_reader_is_led_from_measurements_to_pulls(here, call):
    """Each command is one that the last has named."""
    (here / "my tests.csv").write_text(SAMPLES)
    code, _, err = call("estimate", "my tests.csv", *TO_D, "-o", "my problem.toml")
    assert code == 0
    ran = []
    while following := [step for step in steps(err) if step[0] not in ran]:
        ran.append(following[0][0])
        code, _, err = call(*following[0])
        assert code == 0, err
    assert ran == ["compare", "plan", "check", "pulls"]


def test_all_that_is_advised_can_be_done(here, call):
    (here / "t.csv").write_text(SAMPLES)
    assert call("estimate", "t.csv", *TO_D, "-o", "p.json")[0] == 0
    seen = set()
    todo = [["compare", "p.json"]]
    while todo:
        step = todo.pop()
        if step[0] in seen:
            continue
        seen.add(step[0])
        code, _, err = call(*step)
        assert code == 0, (step, err)
        todo += steps(err)
    assert seen == {"compare", "advise", "plan", "check", "pulls", "plot"}


@pytest.mark.parametrize("option", ["--json", "--quiet"])
def test_programs_hear_nothing_of_it(option, planned, call):
    for command in (
        ("compare", "figure1.toml"),
        ("advise", "figure1.toml"),
        ("check", "figure1.toml", "plan.json"),
        ("plan", "figure1.toml", "-o", f"other{option}.json"),
    ):
        code, out, err = call(*command, option)
        assert code == 0
        assert "next" not in out + err


def test_what_is_piped_is_the_answer_alone(planned, call):
    _, out, err = call("compare", "figure1.toml")
    assert "next" not in out
    assert steps(err) == [
        ["plan", "figure1.toml", "-o", "figure1.json"],
        ["advise", "figure1.toml"],
    ]


def test_a_plan_that_is_there_is_not_made_again(planned, call):
    """What would be refused, as the file exists, is no step."""
    (planned / "figure1.json").write_text("{}")
    assert steps(call("compare", "figure1.toml")[2]) == [["advise", "figure1.toml"]]
    (planned / "other.png").write_text("")
    _, _, err = call("plan", "figure1.toml", "-o", "other.json")
    assert [step[0] for step in steps(err)] == ["check", "pulls"]


RATES = {("S", "D"): 1e6, ("S", "K"): 1e6, ("K", "D"): 1e6}
SHOWN = {"S": "shown_uplink_bytes_per_s = 2e6", "D": "shown_downlink_bytes_per_s = 2e6"}


def triangle(rates, shown=(), n_bytes=4_000_000):
    """S, with all data, the relay K, and D."""
    lines = ['destination = "D"', "[hosts.K]"]
    for host in "SD":
        lines += [f"[hosts.{host}]", *([SHOWN[host]] if host in shown else [])]
        lines += [f"backlog_bytes = {n_bytes}"] if host == "S" else []
    for (tail, head), rate in rates.items():
        lines += ["[[links]]", f'from = "{tail}"', f'to = "{head}"']
        lines += [f"bandwidth_bytes_per_s = {rate}"]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "take", "expected"),
    [
        (triangle(RATES, "SD"), "Take relays", ["plan", "p.toml", "-o", "p.json"]),
        (
            triangle({("S", "D"): 1e6}),
            "Send directly",
            ["plan", "p.toml", "--method", "direct", "-o", "p.json"],
        ),
        (
            triangle(RATES),
            "Measure before",
            shlex.split(
                "measure flood hosts.toml --from S --to D --to K --streams 4 --seconds 5 "
                "--bytes 6250001"
            ),
        ),
        (triangle(RATES, n_bytes=0), "There is nothing to move", None),
    ],
)
def test_after_advice_comes_what_it_says(here, call, text, take, expected):
    (here / "p.toml").write_text(text)
    code, out, err = call("advise", "p.toml")
    assert code == 0
    assert take in out
    assert steps(err) == ([] if expected is None else [expected])


def test_no_plan_opens_more_connections(here, call):
    """One of ours beside three of others gets 4 of 16 bytes/s; three get 8."""
    rate = "bandwidth_bytes_per_s = 4.0\ncapacity_bytes_per_s = 16.0"
    text = triangle(dict.fromkeys(RATES, 4.0), n_bytes=60).replace(
        "bandwidth_bytes_per_s = 4.0", rate
    )
    (here / "p.toml").write_text(text)
    _, out, err = call("advise", "p.toml")
    assert "Open more connections" in out
    assert steps(err) == []


def test_standard_input_is_not_read_again(here, call, monkeypatch):
    import io

    text = (here / "figure1.toml").read_text()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    code, _, err = call("compare", "-")
    assert (code, err) == (0, "")


def test_an_answer_of_no_leads_nowhere(planned, call):
    tree = (planned / "plan.json").read_text()
    (planned / "plan.json").write_text(tree.replace('"finish_s": 1', '"finish_s": 9'))
    code, _, err = call("check", "figure1.toml", "plan.json")
    if code:
        assert "next" not in err
    code, _, err = call("plan", "figure1.toml", "--deadline", "0.1")
    assert code == 1
    assert "next" not in err
