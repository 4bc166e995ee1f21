"""Sources that need a while before the first byte of an answer, as from a tape: all comes.

Here it is above the ten seconds after which others would have their turn, only faster: 0.2 s.
"""

import pytest
from instances.web_answers import manifest
from instances.web_servers import tiny_server

import datacollect as dc
from datacollect.transfer.pull.core import under_way

FILES = {f"f{i}": bytes([i]) * 60_000 for i in range(3)}
LIMITS = {"timeout_s": 4.0, "patience_s": 8.0, "connections": 2, "piece_bytes": 65536}


class Slow:
    """Has a server answer its requests for data after a time; counts them by path."""

    def __init__(self, first_byte_s):
        self.first_byte_s, self.is_over = first_byte_s, None

    def __call__(self, _, headers):
        if headers.get("Range") != "bytes=0-0":
            self.is_over.wait(self.first_byte_s)


def pulled_from_server(collection_of, tmp_path, slow, files, limits):
    with tiny_server(files, respond=slow) as tiny:
        slow.is_over = tiny.is_over
        entry = {"url": tiny.url, "plain_http": True, "manifest": manifest(tmp_path, files)}
        collection = collection_of(limits=limits) | {"servers": {"W": entry}}
        return dc.pull(collection, tmp_path / "into")


@pytest.mark.slow
@pytest.mark.parametrize("n_files", [1, 3])
def test_files_of_a_server_come_whose_first_byte_is_below_the_time_out(
    collection_of, tmp_path, monkeypatch, n_files
):
    monkeypatch.setattr(under_way, "STALL_S", 0.2)
    files = dict(list(FILES.items())[:n_files])
    answer = pulled_from_server(collection_of, tmp_path, Slow(0.5), files, LIMITS)
    assert answer.complete, answer.missing
    assert {name: (tmp_path / f"into/W/{name}").read_bytes() for name in files} == files


@pytest.mark.slow
@pytest.mark.parametrize("n_files", [1, 3])
def test_files_of_an_agent_come_whose_first_byte_is_below_the_time_out(
    agents, collection_of, tmp_path, monkeypatch, n_files
):
    monkeypatch.setattr(under_way, "STALL_S", 0.2)
    files = dict(list(FILES.items())[:n_files])
    agent = agents("S1", files, first_byte_s=0.5)
    answer = dc.pull(collection_of(agent, limits=LIMITS), tmp_path / "into")
    assert answer.complete, answer.missing
    assert {name: (tmp_path / f"into/S1/{name}").read_bytes() for name in files} == files


@pytest.mark.slow
def test_a_file_of_a_server_comes_whose_first_byte_takes_longer_than_ten_seconds(
    collection_of, tmp_path
):
    """With a time-out of a minute and patience of five; nothing here is made faster."""
    files = {"f0": FILES["f0"]}
    limits = LIMITS | {"timeout_s": 60.0, "patience_s": 300.0}
    answer = pulled_from_server(collection_of, tmp_path, Slow(10.5), files, limits)
    assert answer.complete, answer.missing


@pytest.mark.slow
@pytest.mark.parametrize("leads_on", [0, 2])
def test_a_size_comes_by_several_questions_each_below_the_time_out(
    collection_of, tmp_path, leads_on
):
    """A file of one byte is asked for twice, or led on twice: each answer takes most of it."""
    with tiny_server({"one": b"1"}) as tiny:

        def respond(path, _):
            tiny.is_over.wait(0.45)
            if path.startswith("to"):
                n = int(path[2])
                return (302, {"Location": f"{tiny.url}to{n - 1}" if n else f"{tiny.url}one"}, b"")
            return None

        tiny.respond = respond
        name = f"to{leads_on - 1}" if leads_on else "one"
        entry = {"url": tiny.url, "plain_http": True, "paths": [name]}
        entry |= {"redirects_to": ["127.0.0.1"]} if leads_on else {}
        limits = LIMITS | {"timeout_s": 0.7}
        collection = collection_of(limits=limits) | {"servers": {"W": entry}}
        answer = dc.pull(collection, tmp_path / "into")
    assert answer.complete, answer.missing
