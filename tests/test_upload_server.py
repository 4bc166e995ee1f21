"""The shipped service for upload servers, over HTTP: plans, refusals, posts at once, real start."""

from __future__ import annotations

import ast
import asyncio
import io
import json
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

pytest.importorskip("aiohttp")
from aiohttp.test_utils import TestClient, TestServer
from instances.ports import free_port

import datacollect as dc
from datacollect.commands.main import run
from datacollect.examples import upload_server

FORMAT = "datacollect-progress/1"
MB = 10**6


@pytest.fixture
def problem():
    """S has 100 MB for D: 1 MB/s directly, 1 MB/s over K; I has nothing to do."""
    rate = float(MB)
    rates = {("S", "D"): rate, ("S", "K"): rate, ("K", "D"): rate, ("I", "D"): rate}
    return dc.Problem.from_hosts(
        [dc.Host("S", 100 * MB), *map(dc.Host, "KID")],
        [dc.Link(*ends, rate) for ends, rate in rates.items()],
        "D",
    )


def served(problem, use):
    """Run a coroutine function with a client of the service; return what it returns."""

    async def go():
        async with TestClient(TestServer(upload_server.application(problem))) as client:
            return await use(client)

    return asyncio.run(go())


async def got(client, path):
    """Return status and JSON of a GET."""
    async with client.get(path) as answer:
        assert answer.content_type == "application/json"
        return answer.status, await answer.json()


async def posted(client, what, body, plan=None):
    """Return status and JSON of a POST, for the plan under way unless another is named."""
    plan = plan or (await got(client, "/plan"))[1]["plan"]
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    async with client.post(f"/plans/{plan}/{what}", data=data) as answer:
        assert answer.content_type == "application/json"
        return answer.status, await answer.json()


def progress(at_s, *held, **more):
    rows = [
        {"host": host, "source": "S", "offset_bytes": first, "bytes": n} for host, first, n in held
    ]
    return {"format": FORMAT, "at_s": at_s, "held": rows, **more}


# What it is for ------------------------------------------------------------------------------


def test_each_host_gets_its_own_list(problem):
    """Half of 100 MB goes each way at 1 MB/s: 50 s, and a chunk more."""

    async def use(client):
        return [await got(client, path) for path in ("/plan", *(f"/pulls/{n}" for n in "SKID"))]

    (_, plan), *lists = served(problem, use)
    assert [status for status, _ in lists] == [200] * 4
    assert plan["makespan_s"] == pytest.approx(50, rel=0.01)
    assert plan["is_planning"] is False
    of = {name: answer["pulls"] for name, (_, answer) in zip("SKID", lists, strict=True)}
    assert of["S"] == of["I"] == []
    assert [row["request_from"] for row in of["K"]] == ["S"]
    assert {row["request_from"] for row in of["D"]} == {"S", "K"}
    assert sum(row["bytes"] for row in of["D"]) == 100 * MB
    assert of["K"][0]["route"] == ["S", "K", "D"]
    assert of["K"][0]["slot"] is None
    for _, answer in lists:
        assert {key: answer[key] for key in ("plan", "begins", "destination", "makespan_s")} == {
            key: plan[key] for key in ("plan", "begins", "destination", "makespan_s")
        }


def test_progress_is_planned_from_where_the_data_lie(problem):
    """After 20 s D has 60 MB, and K is lost: 40 MB at 1 MB/s from S alone."""

    async def use(client):
        _, before = await got(client, "/plan")
        status, after = await posted(
            client, "progress", progress(20, ("D", 0, 60 * MB), lost_hosts=["K"])
        )
        return status, before, after, await got(client, "/pulls/D"), await got(client, "/pulls/K")

    status, before, after, (_, of_d), (_, of_k) = served(problem, use)
    assert status == 200
    assert after["makespan_s"] == pytest.approx(40)
    assert after["plan"] != before["plan"]
    begins = [datetime.fromisoformat(each["begins"]) for each in (before, after)]
    assert begins[1] - begins[0] == timedelta(seconds=20)
    assert of_k["pulls"] == []
    assert [(r["request_from"], r["offset_bytes"], r["bytes"]) for r in of_d["pulls"]] == [
        ("S", 60 * MB, 40 * MB)
    ]
    assert of_d["plan"] == of_k["plan"] == after["plan"]


def test_new_bandwidths_are_planned_with_at_once(problem):
    """Directly 3 MB/s and 1 over K: 100 MB take 25 s, less what has come since the start."""

    async def use(client):
        status, after = await posted(client, "links", {"S": {"D": "24 Mbit/s"}})
        return status, after, await got(client, "/pulls/D")

    status, after, (_, of_d) = served(problem, use)
    assert status == 200
    assert 20 < after["makespan_s"] < 25.5
    rates = [r["rate_bytes_per_s"] for r in of_d["pulls"] if r["route"] == ["S", "D"]]
    assert sum(rates) == pytest.approx(3 * MB, rel=0.02)


def test_posts_follow_each_other_to_the_end(problem):
    async def use(client):
        found = [await posted(client, "progress", progress(10, ("D", 0, 20 * MB)))]
        found.append(await posted(client, "links", {"K": {"D": 0}}))
        found.append(await posted(client, "progress", progress(90, ("D", 0, 100 * MB))))
        return found, await got(client, "/pulls/D")

    answers, (_, of_d) = served(problem, use)
    assert [status for status, _ in answers] == [200] * 3
    assert answers[1][1]["makespan_s"] == pytest.approx(80, rel=0.05)
    assert answers[2][1]["makespan_s"] == 0
    assert of_d["pulls"] == []


def test_where_the_problem_has_a_clock_plans_begin_by_it(problem):
    hosts = [dc.Host("S", 100 * MB), dc.Host("D")]
    timed = dc.Problem.from_hosts(
        hosts, [dc.Link("S", "D", 1e6)], "D", start="2026-11-22T20:00:00+01:00"
    )

    async def use(client):
        return await got(client, "/plan"), await posted(client, "progress", progress("1 min"))

    (_, before), (_, after) = served(timed, use)
    assert before["begins"] == "2026-11-22T20:00:00+01:00"
    assert after["begins"] == "2026-11-22T20:01:00+01:00"


def test_files_of_the_manifest_are_in_the_lists_and_names_may_be_any(tmp_path):
    (tmp_path / "files.csv").write_text("host,path,bytes\na/b ü,one,3\na/b ü,two,7\n")
    (tmp_path / "p.toml").write_text(
        'destination = "D"\nmanifest = "files.csv"\n[hosts."a/b ü"]\n[hosts.D]\n'
        '[[links]]\nfrom = "a/b ü"\nto = "D"\nbandwidth_bytes_per_s = 1.0\n',
        encoding="utf-8",
    )

    async def use(client):
        return await got(client, "/pulls/D"), await got(client, "/pulls/a%2Fb%20%C3%BC")

    (_, of_d), (status, _) = served(dc.Problem.from_file(tmp_path / "p.toml"), use)
    assert status == 200
    assert of_d["pulls"][0]["files"] == [
        {"path": "one", "offset_bytes": 0, "bytes": 3},
        {"path": "two", "offset_bytes": 0, "bytes": 7},
    ]


# What is refused -----------------------------------------------------------------------------

PROGRESS, LINKS = "progress", "links"
REFUSED = {
    "malformed JSON": (PROGRESS, b"{bad", 400, "the body is no JSON: .*line 1 column 2"),
    "no UTF-8": (LINKS, b'"\xff"', 400, "the body is no JSON: 'utf-8' codec"),
    "nothing": (PROGRESS, b"", 400, "the body is no JSON"),
    "a list": (PROGRESS, [], 400, r"the top level must be a table of keys and values, got \[\]"),
    "brackets without end": (LINKS, b"[" * 200_000, 400, "the body is no JSON: .*recursion"),
    "a number of 9999 digits": (LINKS, b"9" * 9999, 400, "the body is no JSON"),
    "another format": (PROGRESS, {"format": "datacollect-problem/1"}, 400, "format"),
    "no instant": (PROGRESS, {"format": FORMAT}, 400, "at_s is missing"),
    "an instant before 0": (PROGRESS, progress(-1), 400, "at_s must be .* >= 0, got -1"),
    "an instant that is none": (PROGRESS, progress(float("nan")), 400, "at_s must be a finite"),
    "an instant beyond calendars": (PROGRESS, progress(1e300), 400, "at_s is beyond all calend"),
    "another roster, held": (
        PROGRESS,
        progress(1, ("Q", 0, 5)),
        400,
        r"held\[0\].host must be one of the hosts, got 'Q'",
    ),
    "another roster, lost": (PROGRESS, progress(1, lost_hosts=["Q"]), 400, "got 'Q'"),
    "another roster, links": (LINKS, {"S": {"Q": 1}}, 400, "unknown host 'Q'; hosts are 'S', 'K'"),
    "more than there is": (
        PROGRESS,
        progress(1, ("D", 0, 101 * MB)),
        400,
        "within the backlog of 100000000 bytes.*is this the progress of another problem",
    ),
    "the same bytes twice": (PROGRESS, progress(1, ("D", 0, 9), ("K", 8, 9)), 400, "progress: "),
    "a file of the server": (
        PROGRESS,
        progress(1, bandwidth_csv="/etc/passwd"),
        400,
        "bandwidth_csv would be a file of this server",
    ),
    "the destination lost": (PROGRESS, progress(1, lost_hosts=["D"]), 400, "'D' is the destinat"),
    "the source lost": (PROGRESS, progress(1, lost_hosts=["S"]), 422, "bytes lie at 'S' only"),
    "no way left": (
        LINKS,
        {"S": {"D": 0, "K": 0}},
        422,
        "the data at 'S' cannot reach the destination 'D'",
    ),
    "bandwidths that are none": (LINKS, {"S": {"D": -1}}, 400, "'S' -> 'D' must be >= 0"),
    "bandwidths without a unit": (LINKS, {"S": {"D": "fast"}}, 400, "'S' -> 'D' must be a finite"),
    "bandwidths in a list": (LINKS, [["S", "D", 1]], 400, "links must be named by"),
}


def test_what_is_refused_says_why_and_leaves_the_old_plan(problem):
    """All of it by one service, which each time answers as before, and in the end plans again."""

    async def use(client):
        before = await got(client, "/plan"), await got(client, "/pulls/D")
        for name, (what, body, status, message) in REFUSED.items():
            found, answer = await posted(client, what, body)
            assert (found, set(answer)) == (status, {"error"}), name
            assert re.search(message, answer["error"]), name
            assert (await got(client, "/plan"), await got(client, "/pulls/D")) == before, name
        return await posted(client, "links", {"S": {"D": "24 Mbit/s"}})

    assert served(problem, use)[0] == 200


def test_progress_of_another_plan_is_refused(problem):
    async def use(client):
        _, first = await got(client, "/plan")
        body = progress(20, ("D", 0, 40 * MB))
        _, second = await posted(client, "progress", body)
        late = await posted(client, "progress", body, plan=first["plan"])
        assert (await got(client, "/plan"))[1] == second
        return first, second, late

    first, second, (status, answer) = served(problem, use)
    assert status == 409
    assert answer["error"] == f"the plan under way is {second['plan']}, not {first['plan']}"


def test_what_is_not_there_says_so(problem):
    async def use(client):
        answers = [await got(client, path) for path in ("/pulls/Q", "/pulls/", "/nothing")]
        answers.append(await posted(client, "nothing", {}))
        async with client.delete("/plan") as answer:
            return [*answers, (answer.status, await answer.json())]

    answers = served(problem, use)
    assert [status for status, _ in answers] == [404, 404, 404, 404, 405]
    assert answers[0][1] == {"error": "there is no host 'Q'"}


# While it plans ------------------------------------------------------------------------------


@pytest.fixture
def held_up(monkeypatch):
    """Planning again that begins, and goes on when it is told to."""
    begun, goes_on, replan = threading.Event(), threading.Event(), dc.replan

    def slow(*given, **more):
        begun.set()
        assert goes_on.wait(60)
        return replan(*given, **more)

    monkeypatch.setattr(dc, "replan", slow)
    yield begun, goes_on
    goes_on.set()


def test_the_old_plan_is_served_while_the_next_is_made_and_a_second_post_is_refused(
    problem, held_up
):
    begun, goes_on = held_up

    async def use(client):
        before = await got(client, "/pulls/D")
        first = asyncio.ensure_future(posted(client, "links", {"S": {"D": "24 Mbit/s"}}))
        assert await asyncio.to_thread(begun.wait, 60)
        _, meanwhile = await got(client, "/plan")
        assert meanwhile["is_planning"]
        for _ in range(20):
            assert await got(client, "/pulls/D") == before
        second = await posted(client, "progress", progress(20, ("D", 0, 40 * MB)))
        assert not first.done()
        goes_on.set()
        return second, await first, await got(client, "/plan")

    (status, refused), (done, planned), (_, now) = served(problem, use)
    assert (status, done) == (409, 200)
    assert refused == {"error": "another post is being planned; get its plan, then post"}
    assert planned == now
    assert now["is_planning"] is False


def test_a_client_that_leaves_gets_its_plan_made(problem, held_up):
    begun, goes_on = held_up

    async def use(client):
        _, before = await got(client, "/plan")
        first = asyncio.ensure_future(posted(client, "links", {"S": {"D": "24 Mbit/s"}}))
        assert await asyncio.to_thread(begun.wait, 60)
        first.cancel()
        goes_on.set()
        for _ in range(3000):
            _, now = await got(client, "/plan")
            if now["plan"] != before["plan"]:
                return now
            await asyncio.sleep(0.05)
        return None

    assert served(problem, use)["is_planning"] is False


def test_planning_that_takes_too_long_is_refused(problem, monkeypatch):
    def late(*_, **given):
        assert given["time_limit_s"] == upload_server.MOST_PLANNING_S
        raise dc.TimeLimitError("the time limit passed")

    monkeypatch.setattr(dc, "replan", late)
    answer = served(problem, lambda client: posted(client, "links", {"S": {"D": 1}}))
    assert answer == (503, {"error": "the time limit passed"})


def test_a_body_that_is_too_large_is_refused(problem):
    async def use(client):
        large = io.BytesIO(b" " * (upload_server.MOST_BODY_BYTES + 1))
        _, plan = await got(client, "/plan")
        async with client.post(f"/plans/{plan['plan']}/links", data=large) as answer:
            return (answer.status, await answer.json()), await got(client, "/pulls/D")

    (status, answer), (after, _) = served(problem, use)
    assert (status, after) == (413, 200)
    assert "exceeded" in answer["error"]


@pytest.mark.slow
def test_a_body_that_does_not_come_holds_nobody_and_is_given_up(problem, monkeypatch):
    monkeypatch.setattr(upload_server, "MOST_BODY_S", 1.0)

    async def use(client):
        _, plan = await got(client, "/plan")
        reader, writer = await asyncio.open_connection(client.host, client.port)
        head = (
            f"POST /plans/{plan['plan']}/links HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{{"
        )
        writer.write(head.encode())
        await writer.drain()
        assert (await posted(client, "links", {"S": {"D": "24 Mbit/s"}}))[0] == 200
        answer = await asyncio.wait_for(reader.readuntil(b"}"), 30)
        writer.close()
        return answer

    answer = served(problem, use)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b'{"error": "the body did not come within 1 s"}' in answer


def test_a_problem_that_cannot_be_planned_is_not_served(problem):
    cut = problem.replace(bandwidth_bytes_per_s=[[0.0] * problem.n_links])
    with pytest.raises(dc.InfeasibleError, match="cannot reach the destination"):
        upload_server.application(cut)


# As it is started ----------------------------------------------------------------------------


def ask(url, body=None):
    """Return status and JSON of a GET, or with a body of a POST."""
    try:
        with urllib.request.urlopen(url, body, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


@pytest.mark.slow
def test_it_runs_as_it_is_written_beside_a_shipped_problem(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(["example", "alps"]) == 0
    assert run(["example", "upload-server"]) == 0
    port = free_port()
    command = [sys.executable, "upload_server.py", "alps.toml", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as server:
        try:
            url = f"http://127.0.0.1:{port}"
            for _ in range(3000):
                assert server.poll() is None, server.stdout.read()
                try:
                    _, plan = ask(f"{url}/plan")
                    break
                except OSError:
                    time.sleep(0.1)
            assert plan["makespan_s"] == pytest.approx(1119, abs=1)
            assert datetime.fromisoformat(plan["begins"]) <= datetime.now(UTC)
            _, before = ask(f"{url}/pulls/zurich")
            body = b'{"lyon": {"zurich": 0}, "milan": {"zurich": "20 Mbit/s"}}'
            status, _ = ask(f"{url}/plans/{plan['plan']}/links", body)
            assert status == 200
            _, after = ask(f"{url}/pulls/zurich")
            assert {row["request_from"] for row in before["pulls"]} == {"lyon", "milan"}
            assert {row["request_from"] for row in after["pulls"]} == {"milan"}
            assert ask(f"{url}/plans/{plan['plan']}/links", body)[0] == 409
        finally:
            server.send_signal(signal.SIGTERM)
            assert server.wait(300) == 0


@pytest.mark.slow
def test_what_cannot_be_served_is_said_in_a_line(tmp_path):
    command = [sys.executable, upload_server.__file__, "nowhere.toml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "error: nowhere.toml: no such file; check the path\n"


@pytest.mark.slow
def test_without_aiohttp_it_says_how_to_install_it(tmp_path):
    block = "import runpy, sys; sys.modules['aiohttp'] = None; "
    code = f"{block}runpy.run_path({upload_server.__file__!r}, run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == "aiohttp is missing: pip install 'aiohttp>=3.14'\n"


def test_it_stays_short_enough_to_be_read():
    tree = ast.parse(Path(upload_server.__file__).read_text(encoding="utf-8"))
    said = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    ]
    code = Path(upload_server.__file__).read_text(encoding="utf-8").splitlines()
    for node in said:  # docstrings
        code[node.lineno - 1 : node.end_lineno] = [""] * (node.end_lineno - node.lineno + 1)
    assert len([line for line in code if line.strip()]) <= 120
