"""``feed send`` and ``feed run``: exit codes, answers, what is interrupted."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request

import pytest
from instances.feeds import feed_tree, kept_report, receiving

from datacollect.commands.main import run
from datacollect.feeds.sender.source import counted_bytes, read_blocks
from datacollect.pictures.live_views import LIVE_VIEWS


def write_feed(folder, *agents, **keys):
    """Write a feed's file as JSON, which readers take, too."""
    tree = feed_tree(folder, *agents, **keys)
    path = folder / f"{tree['name']}.json"
    path.write_text(json.dumps(tree))
    return str(path)


def test_a_file_is_sent_and_what_has_become_of_it_told(tmp_path, capfd):
    data = counted_bytes(0, 50_001)
    (tmp_path / "recording").write_bytes(data)
    with receiving(tmp_path) as agent:
        feed = write_feed(tmp_path, agent)
        assert run(["feed", "send", feed, str(tmp_path / "recording")]) == 0
        out = capfd.readouterr().out
        assert re.search(r"feed +scan7 to D: whole\nmade +13 messages, 50 kB", out)
        assert re.search(r"missing +none\ndelay +half within .*; by one\s+clock", out)
        assert (tmp_path / "feeds" / "scan7").read_bytes() == data
        # The name is taken by now.
        assert run(["feed", "send", feed, str(tmp_path / "recording")]) == 2
        assert "there is a whole feed scan7" in capfd.readouterr().err


@pytest.mark.slow
def test_something_missing_is_exit_code_1(tmp_path, capfd):
    (tmp_path / "recording").write_bytes(bytes(200_000))
    with receiving(tmp_path) as agent:
        feed = write_feed(tmp_path, agent, buffer_bytes=4096, when_full="drop-new", rate=10**8)
        assert run(["feed", "send", feed, str(tmp_path / "recording"), "--json"]) == 1
    told = json.loads(capfd.readouterr().out)
    counts = told["counts"]
    assert (told["complete"], told["ended"]) == (False, True)
    assert counts["received"] + counts["lost"] == counts["made"] == 49
    assert kept_report(tmp_path).counts.lost == counts["lost"] > 0


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["recording", "--generate", "1 s"], "give either FILE or --generate, got both"),
        (["nowhere"], "nowhere': No such file or directory"),
        (["--generate", "0"], "--generate must be"),
    ],
)
def test_a_source_that_is_none(tmp_path, capfd, words, why):
    (tmp_path / "feed.json").write_text(
        json.dumps(
            {
                "format": "datacollect-feed/1",
                "to": "D",
                "key": "k",
                "rate": 1,
                "agents": {"D": {"url": "https://d.example", "ca": "ca.pem"}},
            }
        )
    )
    assert run(["feed", "send", str(tmp_path / "feed.json"), *words]) == 2
    assert why in capfd.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("has_spill", [False, True])
def test_an_interruption_ends_the_source_or_leaves_it_to_the_spill(tmp_path, has_spill):
    with receiving(tmp_path) as agent:
        keys = {"spill": str(tmp_path / "spill")} if has_spill else {}
        feed = write_feed(tmp_path, agent, **keys)
        command = [sys.executable, "-m", "datacollect", "feed", "send", feed, "--json"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            process.stdin.write(b"x" * 10_000)
            process.stdin.flush()
            part = tmp_path / "feeds" / "scan7.part"
            until_s = time.monotonic() + 60
            while not part.exists() or part.stat().st_size < 8192:
                assert time.monotonic() < until_s
                time.sleep(0.02)
            process.send_signal(signal.SIGTERM)
            told = json.loads(process.stdout.read())
        assert (process.returncode, told["complete"]) == ((1, False) if has_spill else (0, True))
        assert (tmp_path / "feeds" / "scan7").exists() is not has_spill
        if has_spill:
            process = subprocess.run(command, input=b"y" * 10, stdout=subprocess.PIPE, check=False)
            assert process.returncode == 0
            data = (tmp_path / "feeds" / "scan7").read_bytes()
            assert data == b"x" * 10_000 + b"y" * 10


@pytest.mark.slow
def test_several_feeds_and_their_page(tmp_path):
    with receiving(tmp_path) as agent:
        for name in ("one", "two"):
            write_feed(tmp_path, agent, name=name)
        (tmp_path / "feeds.toml").write_text(
            'format = "datacollect-feeds/1"\n[[feeds]]\nfile = "one.json"\ngenerate = "6 s"\n'
            '[[feeds]]\nfile = "two.json"\ninput = "one.json"\n'
        )
        words = ["feed", "run", "feeds.toml", "--page", "0", "--json"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        command = [sys.executable, "-m", "datacollect", *words]
        with subprocess.Popen(command, cwd=tmp_path, **pipes) as process:
            url = next(line for line in process.stderr if line.startswith("open ")).split()[1]
            address, _, token = url.partition("#")
            asked = urllib.request.Request(
                f"{address}events", headers={"Authorization": f"Bearer {token}"}
            )
            with urllib.request.urlopen(asked, timeout=10) as answer:
                line = answer.readline().decode()
            told = json.loads(process.stdout.read())
        assert '"one", "16 Mbit/s"' in line
        assert process.returncode == 0
        assert [(each["name"], each["complete"]) for each in told["feeds"]] == [
            ("one", True),
            ("two", True),
        ]
        assert (tmp_path / "feeds" / "two").read_bytes() == (tmp_path / "one.json").read_bytes()


def test_the_page_has_its_files():
    view = LIVE_VIEWS.get("feeds")
    assert all(view.styles().values())
    assert all(view.scripts().values())


def test_a_pipe_is_read_as_it_comes():
    reading, writing = os.pipe()
    os.write(writing, b"abc")
    os.close(writing)
    assert list(read_blocks(reading, 1.0, skip_bytes=2)) == [b"abc"]
    os.close(reading)
