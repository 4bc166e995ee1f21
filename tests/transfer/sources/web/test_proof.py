"""Bytes only with proof: what servers say of sizes, versions and pages, as others have seen it."""

import base64
import gzip
import hashlib
import os
import threading
import time
from collections import Counter

import pytest
from instances.web_answers import manifest, paths_of, ranged, whys
from instances.web_servers import RESET, tiny_server

from datacollect.transfer.sources.web import listing

DATA = os.urandom(200_000)
OTHER = DATA[::-1]
NAMES = [f"f{n:02d}.bin" for n in range(20)]
MANY = {name: b"\x93" + os.urandom(2999) for name in NAMES}


# Sizes ----------------------------------------------------------------------------------------

# Servers that say of a file's first byte what is not so.
WRONG_FIRST_BYTES = {
    "refuses it and is empty": (416, {"Content-Range": "bytes */0"}, b""),
    "refuses it and is not empty": (416, {"Content-Range": "bytes */100000"}, b""),
    "refuses it": (416, {}, b""),
    "takes it for all": (200, {}, DATA[:1]),
    "has nothing": (200, {}, b""),
    "has a part of nothing": (206, {"Content-Range": "bytes 0-0/1"}, DATA[:1]),
}


def wrong_first_byte(path, headers):
    """Answer so where the first byte is asked for, and as usual else."""
    return WRONG_FIRST_BYTES.get(path) if headers.get("Range") == "bytes=0-0" else None


ALL_RIGHT = dict.fromkeys(WRONG_FIRST_BYTES, DATA)


def test_no_status_makes_a_file_empty_or_a_byte_long(pulled, arrived):
    with tiny_server(ALL_RIGHT, respond=wrong_first_byte) as tiny:
        answer = pulled(tiny, paths_of(tiny))
    assert not answer.complete
    assert whys(answer).keys() == ALL_RIGHT.keys()
    assert arrived() == {}


def test_what_was_verified_stays_where_the_server_contradicts_itself(pulled, arrived):
    with tiny_server(ALL_RIGHT) as tiny:
        assert pulled(tiny, paths_of(tiny)).complete
        tiny.respond = wrong_first_byte
        for _ in range(2):
            pulled(tiny, paths_of(tiny))
            assert arrived() == ALL_RIGHT
        tiny.respond = None
        tiny.calls.clear()
        assert pulled(tiny, paths_of(tiny)).complete
        assert {headers["Range"] for *_, headers in tiny.calls} == {"bytes=0-0"}


def test_a_server_that_refuses_everything_and_has_bytes_has_no_empty_file(pulled, arrived):
    """As caches and model hubs have answered, at the first start and at the next."""
    refuses = (416, {"Content-Range": "bytes */100000"}, b"")
    with tiny_server({"a.bin": DATA}, respond=lambda *_: refuses) as tiny:
        answer = pulled(tiny, paths_of(tiny))
        assert "says that it has 100000 bytes, and refuses the first" in whys(answer)["a.bin"]
        assert arrived() == {}
        tiny.respond = None
        assert pulled(tiny, paths_of(tiny)).complete
        tiny.respond = lambda *_: refuses
        pulled(tiny, paths_of(tiny))
    assert arrived() == {"a.bin": DATA}


@pytest.mark.slow
@pytest.mark.parametrize("by_now", [b"", b"\1", DATA[:1000]], ids=["empty", "byte", "part"])
def test_what_the_server_says_in_two_ways_replaces_what_was_verified(pulled, arrived, by_now):
    with tiny_server({"a.bin": DATA, "b.bin": OTHER}) as tiny:
        assert pulled(tiny, paths_of(tiny)).complete
        tiny.files = {"a.bin": by_now, "b.bin": OTHER}
        assert pulled(tiny, paths_of(tiny)).complete
    assert arrived() == {"a.bin": by_now, "b.bin": OTHER}


@pytest.mark.slow
def test_what_was_verified_stays_until_what_replaces_it_has_come(pulled, arrived):
    """The server says in two ways that it has another version, and never sends it."""
    with tiny_server({"a.bin": DATA, "b.bin": OTHER}) as tiny:
        assert pulled(tiny, paths_of(tiny)).complete

        def respond(path, headers):
            if path != "a.bin":
                return None
            if headers.get("Range", "bytes=0-0") == "bytes=0-0":
                return ranged(DATA[:1000], headers, '"v2"')
            return 500

        tiny.respond = respond
        answer = pulled(tiny, paths_of(tiny))
    assert whys(answer).keys() == {"a.bin"}
    assert arrived() == {"a.bin": DATA, "b.bin": OTHER}


def test_a_manifest_that_is_contradicted_is_asked_about_again(pulled, arrived, tmp_path):
    """The first answer is of a cache that has a part for all."""
    wrong = [(206, {"Content-Range": "bytes 0-0/7", "ETag": '"part"'}, DATA[:1])]
    with tiny_server({"a.bin": DATA}, answers={"a.bin": wrong}) as tiny:
        listed = manifest(tmp_path, tiny.files, hashed=False)
        answer = pulled(tiny, {"url": tiny.url, "manifest": listed})
    assert answer.complete, answer.missing
    assert arrived() == {"a.bin": DATA}


def test_a_file_of_another_size_than_its_manifest_says_is_named_at_once(pulled, tmp_path):
    with tiny_server({"a.bin": DATA, "b.bin": OTHER}) as tiny:
        listed = manifest(tmp_path, {"a.bin": DATA[:-5], "b.bin": OTHER})
        answer = pulled(tiny, {"url": tiny.url, "manifest": listed})
    assert whys(answer) == {"a.bin": "it has 200000 bytes, and 199995 in the manifest"}


def test_a_file_whose_parts_and_whole_are_of_two_sizes_is_asked_for_once(pulled, arrived, tmp_path):
    """What is known of it is contradicted by parts, and said again by the whole."""

    def respond(_, headers):
        if "Range" not in headers:
            return None
        status, more, body = ranged(DATA, headers)
        return status, more | {"Content-Range": more["Content-Range"].replace("/2", "/3")}, body

    with tiny_server({"a.bin": DATA}, respond=respond) as tiny:
        answer = pulled(tiny, {"url": tiny.url, "manifest": manifest(tmp_path, tiny.files)})
        # Of each of four pieces once, and what it is told twice.
        assert len(tiny.calls) <= 16
    assert "contradicts itself: 300000 bytes" in whys(answer)["a.bin"]
    assert arrived() == {}


def test_a_server_that_sends_less_at_a_time_is_asked_for_the_rest(pulled, arrived):
    def capped(_, headers):
        if "Range" not in headers:
            return None
        first, last = map(int, headers["Range"].removeprefix("bytes=").split("-"))
        capped = {"Range": f"bytes={first}-{min(last, first + 9_999)}"}
        return ranged(DATA, capped)

    with tiny_server({"a.bin": DATA}, respond=capped) as tiny:
        answer = pulled(tiny, paths_of(tiny))
        n_calls = len(tiny.calls)
    assert answer.complete, answer.missing
    assert arrived() == {"a.bin": DATA}
    assert n_calls < 40


def test_answers_that_are_cut_are_gone_on_with_where_they_end(pulled, arrived):
    """Each ends after 20 000 bytes, whatever was asked for: a piece of 65 536 never comes whole."""
    with tiny_server({"a.bin": DATA, "b.bin": OTHER}) as tiny:
        whole = tiny.files["a.bin"]

        def cut(path, headers):
            if path != "a.bin" or "Range" not in headers:
                return None
            status, more, body = ranged(whole, headers)
            length = {"Content-Length": str(len(body)), "Connection": "close"}
            return status, more | length, body[:20_000]

        tiny.respond = cut
        answer = pulled(tiny, paths_of(tiny))
    assert answer.complete, answer.missing
    assert arrived() == {"a.bin": DATA, "b.bin": OTHER}


# Files that fail ------------------------------------------------------------------------------

FAILURES = {
    NAMES[0]: 503,
    NAMES[3]: 500,
    NAMES[4]: (503, {"Retry-After": "0"}, b"later"),
    NAMES[8]: (429, {"Retry-After": "0"}, b"less"),
    NAMES[19]: RESET,
}
GOOD = {name: data for name, data in MANY.items() if name not in FAILURES}


def fail(path, _):
    return FAILURES.get(path)


@pytest.mark.slow
def test_files_that_fail_while_they_are_listed_cost_themselves_alone(pulled, arrived):
    with tiny_server(MANY, respond=fail) as tiny:
        answer = pulled(tiny, paths_of(tiny), patience_s=20.0)
    assert whys(answer).keys() == FAILURES.keys()
    assert all("while the server answered for other files" in why for why in whys(answer).values())
    assert "reset" in whys(answer)[NAMES[19]]
    assert "500" in whys(answer)[NAMES[3]]
    assert arrived() == GOOD


@pytest.mark.slow
def test_files_that_fail_while_they_come_cost_themselves_alone(pulled, arrived, tmp_path):
    with tiny_server(MANY, respond=fail) as tiny:
        entry = {"url": tiny.url, "manifest": manifest(tmp_path, MANY)}
        answer = pulled(tiny, entry, patience_s=20.0, connections=1)
        assert whys(answer).keys() == FAILURES.keys()
        assert all(
            "while the server answered for other files" in why for why in whys(answer).values()
        )
        assert arrived() == GOOD
        tiny.respond = None
        assert pulled(tiny, entry).complete


@pytest.mark.slow
def test_a_server_that_is_away_is_no_files_fault(pulled, arrived):
    """It is tried until patience ends, and then started again."""
    with tiny_server(MANY, respond=lambda *_: RESET) as tiny:
        answer = pulled(tiny, paths_of(tiny), patience_s=1.0)
        assert whys(answer).keys() == MANY.keys()
        assert not any(
            "the server answered for other files" in why for why in whys(answer).values()
        )
        assert arrived() == {}
        tiny.respond = None
        assert pulled(tiny, paths_of(tiny)).complete


@pytest.mark.slow
def test_what_was_listed_is_not_asked_for_again_when_the_server_comes_back(
    pulled, arrived, monkeypatch
):
    monkeypatch.setattr(listing, "ASKERS", 1)
    before, after = set(), set()
    n_refused = Counter()

    def respond(path, headers):
        if headers.get("Range") != "bytes=0-0":
            return None
        if len(before) >= 10 and n_refused.total() < 20:
            n_refused[path] += 1
            return RESET
        (after if n_refused else before).add(path)
        return None

    with tiny_server(MANY, respond=respond) as tiny:
        answer = pulled(tiny, paths_of(tiny), patience_s=20.0)
    assert answer.complete, answer.missing
    assert arrived() == MANY
    assert n_refused.total() == 20
    # One may be asked for whether the server is there.
    assert len(before & after) <= 1


# Servers that want to be asked less ------------------------------------------------------------


class OneAtATime:
    """Answers 429 to all requests that come while another is under way."""

    def __init__(self, retry_after):
        self.retry_after = {} if retry_after is None else {"Retry-After": retry_after}
        self.is_busy = threading.Lock()
        self.n_refused, self.is_refused = 0, threading.Event()

    def __call__(self, path, headers):
        if not self.is_busy.acquire(blocking=False):
            self.n_refused += 1
            self.is_refused.set()
            return 429, self.retry_after, b"one at a time"
        try:
            # The first one lasts until another has come meanwhile.
            assert self.is_refused.wait(60)
            threading.Event().wait(0.01)
            return ranged(MANY[path], headers)
        finally:
            self.is_busy.release()


def test_a_file_is_not_blamed_where_its_server_is_busy_for_a_moment(pulled, arrived):
    """It answers for others, names a pause of none, and half a second later gives this one, too."""
    begun_s = []

    def respond(path, headers):
        if path == "f02.bin":
            begun_s.append(time.monotonic())
            if begun_s[-1] - begun_s[0] < 0.5:
                return 429, {"Retry-After": "0"}, b"too many"
        return ranged(MANY[path], headers)

    with tiny_server(MANY, respond=respond) as tiny:
        answer = pulled(tiny, paths_of(tiny), patience_s=20.0)
    assert answer.complete, answer.missing
    assert arrived() == MANY


def test_a_server_that_serves_one_at_a_time_is_listed_and_fetched(pulled, arrived):
    one = OneAtATime("0")
    with tiny_server(MANY, respond=one) as tiny:
        answer = pulled(tiny, paths_of(tiny), patience_s=20.0)
    assert answer.complete, answer.missing
    assert arrived() == MANY
    assert 0 < one.n_refused < 40


# Versions, encodings, places -------------------------------------------------------------------


def farm(files):
    """Two nodes behind one name, in turn, whose ETags differ."""
    n = Counter()

    def respond(path, headers):
        n[path] += 1
        etag = f'"node-{"ab"[n[path] % 2]}"'
        if "If-Range" in headers and headers["If-Range"] != etag:
            return 200, {"ETag": etag}, files[path]
        return ranged(files[path], headers, etag)

    return respond


def test_nodes_that_differ_in_etags_are_named_with_what_to_do(pulled, arrived):
    files = {"a.bin": DATA}
    with tiny_server(files, respond=farm(files)) as tiny:
        answer = pulled(tiny, paths_of(tiny))
        n_calls = len(tiny.calls)
    why = whys(answer)["a.bin"]
    assert '"node-a"' in why
    assert '"node-b"' in why
    assert "in turn: nodes behind it differ" in why
    assert "sha256 in a manifest" in why
    assert n_calls < 20
    assert arrived() == {}


def test_nodes_that_differ_in_etags_do_not_matter_where_the_hash_is_known(
    pulled, arrived, tmp_path
):
    files = {"a.bin": DATA, "b.bin": OTHER}
    with tiny_server(files, respond=farm(files)) as tiny:
        answer = pulled(tiny, {"url": tiny.url, "manifest": manifest(tmp_path, files)})
        assert answer.complete, answer.missing
        rows = [f"{tiny.url}{p},{hashlib.sha256(d).hexdigest()}" for p, d in files.items()]
        (tmp_path / "urls.csv").write_text("\n".join(["url,sha256", *rows, ""]))
        tiny.calls.clear()
        assert pulled(tiny, {"urls": str(tmp_path / "urls.csv")}).complete
        assert all(headers.get("Range") == "bytes=0-0" for *_, headers in tiny.calls)
    assert arrived() == files


def test_a_version_that_is_new_each_time_is_named(pulled, arrived):
    n = Counter()

    def respond(path, headers):
        n[path] += 1
        return ranged(DATA, {"Range": headers.get("Range", "bytes=0-199999")}, f'"{n[path]}"')

    with tiny_server({"a.bin": DATA}, respond=respond) as tiny:
        answer = pulled(tiny, paths_of(tiny))
        assert len(tiny.calls) < 20
    assert "has a new version of it each time" in whys(answer)["a.bin"]
    assert arrived() == {}


PACKED = gzip.compress(b"stored packed " * 1000, mtime=0)


def stored_packed(_, headers):
    return ranged(PACKED, headers, **{"Content-Encoding": "gzip"})


def test_what_is_stored_packed_is_proved_by_its_hash_and_named_without(pulled, arrived, tmp_path):
    files = {"a.gz": PACKED}
    with tiny_server(files, respond=stored_packed) as tiny:
        why = whys(pulled(tiny, paths_of(tiny)))["a.gz"]
        assert "it is stored that way; give the bytes and the sha256 of what is stored" in why
        answer = pulled(tiny, {"url": tiny.url, "manifest": manifest(tmp_path, files)})
    assert answer.complete, answer.missing
    assert arrived() == files


def test_what_is_packed_on_its_way_is_told_apart(pulled):
    packs = (200, {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}, PACKED)
    with tiny_server({"a.txt": DATA}, respond=lambda *_: packs) as tiny:
        answer = pulled(tiny, paths_of(tiny))
    assert "it compresses what it sends; turn compression off" in whys(answer)["a.txt"]


def test_a_bucket_elsewhere_is_named(pulled):
    elsewhere = (301, {"x-amz-bucket-region": "eu-west-1"}, b"<Error>PermanentRedirect</Error>")
    with tiny_server({"a.bin": DATA}, respond=lambda *_: elsewhere) as tiny:
        answer = pulled(tiny, paths_of(tiny))
    assert "region of the bucket belongs in its URL: eu-west-1" in whys(answer)["a.bin"]


def test_a_bad_request_of_a_url_that_has_expired_says_so(pulled, tmp_path):
    """As Google's stores answer."""
    with tiny_server({"a.bin": DATA}, respond=lambda *_: 400) as tiny:
        (tmp_path / "urls.csv").write_text(f"url\n{tiny.sign('a.bin', 1_700_000_000)}\n")
        answer = pulled(tiny, {"urls": str(tmp_path / "urls.csv")})
    assert "its URL expired at 2023-11-14 22:13:20 UTC (400)" in whys(answer)["a.bin"]


def digest(data):
    return f"sha-256=:{base64.b64encode(hashlib.sha256(data).digest()).decode()}:"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Content-Digest", "Repr-Digest"])
def test_bytes_that_contradict_their_servers_own_digest_are_no_file(
    pulled, arrived, tmp_path, name
):
    """RFC 9530: somebody between changes a byte; of a file with a known hash that decides."""
    data = DATA[:50_000]  # one piece

    def respond(path, headers):
        status, more, body = ranged(data, headers)
        honest = data if name == "Repr-Digest" else body
        more |= {name: f"md5=:AAAA:, {digest(honest)}"}
        return status, more, body if path == "a.bin" else b"!" * len(body)

    with tiny_server({"a.bin": data, "b.bin": data}, respond=respond) as tiny:
        answer = pulled(tiny, paths_of(tiny))
        assert arrived() == {"a.bin": data}
        assert "another SHA-256 than its server says" in whys(answer)["b.bin"]
        listed = manifest(tmp_path, {"b.bin": OTHER})
        wrong = {name: digest(data)}
        tiny.respond = lambda _, headers: ranged(OTHER, headers, **wrong)
        answer = pulled(tiny, {"url": tiny.url, "manifest": listed})
    assert answer.complete, answer.missing
    assert arrived()["b.bin"] == OTHER


def test_a_digest_counts_for_what_one_answer_has_brought(pulled, arrived):
    """The first half of a range has come when its connection ends: the digest is of the rest."""
    data, cut = DATA[:50_000], []

    def respond(path, headers):
        status, more, body = ranged(data, headers)
        if len(body) == len(data) and not cut:
            cut.append(path)
            return status, more | {"Content-Length": str(len(body))}, body[: len(body) // 2]
        return status, more | {"Content-Digest": digest(body)}, body

    with tiny_server({"a.bin": data}, respond=respond) as tiny:
        answer = pulled(tiny, paths_of(tiny), patience_s=20.0, timeout_s=1.0)
    assert cut
    assert answer.complete, answer.missing
    assert arrived() == {"a.bin": data}
