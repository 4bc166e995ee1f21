"""Pulls from other servers: a tiny one here, presigned and unkind; through a relay too."""

import os
import time

import pytest
from instances.agents import running, write_agent
from instances.web_servers import tiny_server

DATA = os.urandom(200_000)
FILES = {"a.bin": DATA, "run 7/b#.bin": DATA[:70_000], "empty": b""}


def paths_of(tiny):
    return {"url": tiny.url, "paths": sorted(tiny.files)}


def sha256(data):
    import hashlib

    return hashlib.sha256(data).hexdigest()


def test_every_file_arrives_and_it_is_said_what_was_verified(pulled, arrived):
    with tiny_server(FILES) as tiny:
        answer = pulled(tiny, paths_of(tiny))
    assert answer.complete, answer.missing
    assert arrived() == FILES
    (assurance,) = answer.assurances
    assert (assurance.tagged_files, assurance.hashed_files, assurance.unsure_files) == (2, 0, 0)
    assert "anyone on the way" in assurance.text


def test_without_a_strong_tag_changes_cannot_be_excluded(pulled):
    with tiny_server(FILES, etags=False) as tiny:
        answer = pulled(tiny, paths_of(tiny))
    assert answer.complete
    assert "2 files have no known hash and no strong ETag" in answer.assurances[0].text


def manifest(tmp_path, files, wrong=()):
    rows = [f"W,{p},{len(d)},{sha256(d + b'!' * (p in wrong))}" for p, d in files.items()]
    (tmp_path / "files.csv").write_text("\n".join(["host,path,bytes,sha256", *rows, ""]))
    return str(tmp_path / "files.csv")


def test_hashes_of_a_manifest_are_compared_before_a_file_has_its_name(pulled, tmp_path, arrived):
    with tiny_server(FILES, etags=False) as tiny:
        entry = {"url": tiny.url, "manifest": manifest(tmp_path, FILES, wrong=["a.bin"])}
        answer = pulled(tiny, entry)
        assert [missing.path for missing in answer.missing] == ["a.bin"]
        assert "its SHA-256 must be" in answer.missing[0].why
        assert arrived() == {k: v for k, v in FILES.items() if k != "a.bin"}
        # What a manifest says entirely is not asked for before it is fetched.
        assert all("bytes=0-0" not in headers.get("Range", "") for *_, headers in tiny.calls)
        entry = {"url": tiny.url, "manifest": manifest(tmp_path, FILES)}
        answer = pulled(tiny, entry)
    assert answer.complete
    assert arrived() == FILES
    assert answer.assurances[0].hashed_files == 2


def test_a_size_that_is_not_the_manifests_is_missing(pulled, tmp_path):
    (tmp_path / "files.csv").write_text("host,path,bytes\nW,a.bin,7\nW,empty,0\n")
    with tiny_server(FILES) as tiny:
        answer = pulled(tiny, {"url": tiny.url, "manifest": str(tmp_path / "files.csv")})
    assert [(m.path, "200000 bytes, and 7" in m.why) for m in answer.missing] == [("a.bin", True)]


def urls(tmp_path, tiny, *paths, expires_s):
    rows = [f"{tiny.sign(path, expires_s)},{path}" for path in paths]
    (tmp_path / "urls.csv").write_text("\n".join(["url,path", *rows, ""]))
    return {"urls": str(tmp_path / "urls.csv")}


def everything_written(tmp_path):
    state = tmp_path / "into/.datacollect"
    return b"".join(path.read_bytes() for path in state.rglob("*") if path.is_file())


def test_presigned_urls_are_nowhere_in_log_or_state(pulled, tmp_path):
    with tiny_server({"a.bin": DATA, "b": b"b"}, presigned=True) as tiny:
        entry = urls(tmp_path, tiny, "a.bin", "b", expires_s=time.time() + 600)
        answer = pulled(tiny, entry)
    assert answer.complete, answer.missing
    for text in (everything_written(tmp_path), str(answer).encode()):
        assert b"Signature" not in text
        assert b"Expires" not in text


def test_expired_urls_are_named_and_renewed_ones_go_on(pulled, tmp_path, arrived):
    """The second start knows what has come before, and so needs only the rest."""
    files = {"a.bin": DATA, "b.bin": DATA[::-1], "c.bin": b"c"}
    with tiny_server(files, presigned=True) as tiny:
        expired = time.time() - 60
        entry = urls(tmp_path, tiny, *files, expires_s=expired)
        answer = pulled(tiny, entry)
        assert {missing.path for missing in answer.missing} == files.keys()
        assert all("its URL expired at" in missing.why for missing in answer.missing)
        assert all("urls.csv, line" in missing.why for missing in answer.missing)
        assert "Signature" not in str(answer)
        # While it goes on, they expire: each file answers a few times, and then no more.
        entry = urls(tmp_path, tiny, *files, expires_s=time.time() + 600)
        tiny.answers["b.bin"] = [(206, part(files["b.bin"], 0, 0), files["b.bin"][:1]), *[403] * 99]
        answer = pulled(tiny, entry)
        assert [missing.path for missing in answer.missing] == ["b.bin"]
        assert "signed again" in answer.missing[0].why
        tiny.answers.clear()
        tiny.calls.clear()
        answer = pulled(tiny, entry)
    assert answer.complete
    assert arrived() == files
    ranges = {headers.get("Range") for _, path, headers in tiny.calls if "b.bin" not in path}
    # Of the file of one byte all is asked for, too: one byte is soon said.
    assert ranges == {"bytes=0-0", None}, "what had come is fetched again"


def part(data, first, last):
    return {"Content-Range": f"bytes {first}-{last}/{len(data)}", "ETag": '"x"'}


def test_a_file_that_changes_meanwhile_is_fetched_again(pulled, arrived):
    with tiny_server(dict(FILES)) as tiny:
        first = tiny.etag("a.bin")
        tiny.answers["a.bin"] = [
            (206, part(DATA, 0, 0) | {"ETag": first}, DATA[:1]),
        ]
        changed = DATA[::-1] + b"more"

        class Changing(list):
            """After the listing it has other bytes."""

            def pop(self, index):
                tiny.files["a.bin"] = changed
                return super().pop(index)

        tiny.answers["a.bin"] = Changing(tiny.answers["a.bin"])
        answer = pulled(tiny, paths_of(tiny))
    assert answer.complete, answer.missing
    assert arrived() == FILES | {"a.bin": changed}


@pytest.mark.slow
def test_a_server_that_cannot_now_is_left_alone_as_long_as_it_asks(pulled, arrived):
    with tiny_server({"a.bin": DATA}) as tiny:
        busy = (503, {"Retry-After": "1"}, b"slow down")
        tiny.answers["a.bin"] = [busy]
        begun_s = time.monotonic()
        answer = pulled(tiny, paths_of(tiny), patience_s=20.0)
        assert answer.complete, answer.missing
        assert time.monotonic() - begun_s >= 1.0
    assert arrived() == {"a.bin": DATA}


def test_answers_cut_short_are_asked_for_again(pulled, arrived):
    with tiny_server({"a.bin": DATA}, truncated={"a.bin": 2}) as tiny:
        answer = pulled(tiny, paths_of(tiny), patience_s=20.0)
    assert answer.complete, answer.missing
    assert arrived() == {"a.bin": DATA}


def test_a_server_without_ranges_is_said_to_be_one(pulled):
    with tiny_server({"a.bin": DATA}, knows_ranges=False) as tiny:
        answer = pulled(tiny, paths_of(tiny))
    assert "whole files only" in answer.missing[0].why


def test_a_file_that_fails_for_ever_is_missing_and_others_are_not(pulled, arrived):
    with tiny_server(dict(FILES)) as tiny:
        tiny.answers["a.bin"] = [
            (206, part(DATA, 0, 0) | {"ETag": tiny.etag("a.bin")}, DATA[:1]),
            *[500] * 1000,
        ]
        answer = pulled(tiny, paths_of(tiny))
    assert [missing.path for missing in answer.missing] == ["a.bin"]
    assert "500" in answer.missing[0].why
    assert arrived() == {k: v for k, v in FILES.items() if k != "a.bin"}


@pytest.mark.slow
def test_names_on_the_way_to_loopback_are_not_followed(pulled):
    """Redirects to names count only where they lead outside; 'localhost' is here."""
    with tiny_server({"a.bin": DATA}) as tiny:
        tiny.answers["a.bin"] = [
            (302, {"Location": f"http://localhost:{tiny.port}/a.bin"}, b"") for _ in range(99)
        ]
        answer = pulled(tiny, paths_of(tiny) | {"redirects_to": ["localhost"]})
    assert "in this host or its own network" in answer.missing[0].why


def test_a_server_behind_a_relay_is_reached_through_it(pulled, tmp_path, arrived):
    """Without TLS, as the relay's own file says."""
    with tiny_server(FILES) as tiny:
        place = {"W": f"127.0.0.1:{tiny.port}"}
        relay = write_agent(tmp_path, "R", connect_to=place, more='plain_http_to = ["W"]')
        with running(relay) as agent:
            entry = {"url": f"https://{agent.place}", "ca": str(tmp_path / "R.cert.pem")}
            hidden = {"url": "http://127.0.0.1:1/", "paths": sorted(FILES)}
            answer = pulled(tiny, hidden, agents={"R": entry}, patience_s=10.0)
    assert answer.complete, answer.missing
    assert arrived() == FILES
    assert [use.hosts for use in answer.routes] == [("W", "R", "D")]


def test_a_server_without_tls_behind_a_relay_has_to_be_named_there(pulled, tmp_path, arrived):
    with tiny_server(FILES) as tiny:
        relay = write_agent(tmp_path, "R", connect_to={"W": f"127.0.0.1:{tiny.port}"})
        with running(relay) as agent:
            entry = {"url": f"https://{agent.place}", "ca": str(tmp_path / "R.cert.pem")}
            hidden = {"url": "http://127.0.0.1:1/", "paths": sorted(FILES)}
            answer = pulled(tiny, hidden, agents={"R": entry}, patience_s=4.0)
    assert not answer.complete
    assert arrived() == {}
    assert all("name it in `plain_http_to` of its file" in each.why for each in answer.missing)


def test_a_server_that_refuses_ranges_makes_no_file_empty(pulled, arrived):
    """A gateway answers 416 to all: it says that there is something, or nothing at all."""
    refusals = {"a.bin": [(416, {"Content-Range": "bytes */100000"}, b"")] * 9}
    files = {"a.bin": DATA, "run 7/b#.bin": DATA[:70_000], "empty": b""}
    refusals |= {"run 7/b#.bin": [(416, {}, b"")] * 9, "empty": [(416, {}, b"")]}
    with tiny_server(files) as tiny:
        tiny.answers = refusals
        answer = pulled(tiny, paths_of(tiny))
    assert not answer.complete
    assert arrived() == {"empty": b""}
    whys = {each.path: each.why for each in answer.missing}
    assert "100000 bytes, and refuses the first" in whys["a.bin"]
    assert "416" in whys["run 7/b#.bin"]
