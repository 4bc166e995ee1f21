"""One answer for all names, or half of them, at a first start and at a second: no file is lost.

Judged by the bytes in the folder. What looks alike and is right arrives.
"""

import hashlib
import os
import shutil
from collections import Counter

import pytest
from conftest import NO_NGINX
from instances.agents import KEY
from instances.web_answers import manifest, paths_of, ranged, whys
from instances.web_servers import nginx, tiny_server

import datacollect as dc
from datacollect.net.keys import write_private_key
from datacollect.transfer.store.status import status_of

NAMES = [f"f{n:02d}.bin" for n in range(6)]
MANY = {name: b"\x93" + os.urandom(2999) for name in NAMES}
HALF = set(NAMES[::2])

JSON = b'{"error": {"code": 401, "message": "token expired"}}'
XML = b"<?xml version='1.0'?><Error><Code>ExpiredToken</Code><Message>Log in</Message></Error>"
HTML = b"<!DOCTYPE html><title>Sign in</title>" * 20
OID = hashlib.sha256(MANY["f00.bin"]).hexdigest()
POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{OID}\nsize 3000\n".encode()


def for_all(body, media_type="application/octet-stream", etag='"all"', *, ranges=True):
    """Answer all names alike; `body` may depend on the name."""

    def respond(path, headers):
        data = body(path) if callable(body) else body
        asked = dict(headers) if ranges else {}
        if not data and "Range" in asked:
            return 416, {"Content-Range": "bytes */0"}, b""
        status, more, part = ranged(data, asked, etag, **{"Content-Type": media_type})
        return status, {key: value for key, value in more.items() if value}, part

    return respond


def moved(body, media_type):
    def respond(path, headers):
        if path != "sorry":
            return 302, {"Location": f"sorry?for={path}"}, b""
        return for_all(body, media_type)(path, headers)

    return respond


def for_half(respond):
    return lambda path, headers: respond(path, headers) if path in {*HALF, "sorry"} else None


KINDS = {
    "JSON": for_all(JSON, "application/json"),
    "JSON under another type": for_all(JSON),
    "JSON without an ETag": for_all(JSON, "text/plain", ""),
    "text": for_all(b"Error: your session has expired\n", "text/plain"),
    "XML": for_all(XML, "application/xml"),
    "XML under another type": for_all(XML),
    "a pointer": for_all(POINTER, "text/plain"),
    "HTML": for_all(HTML, "text/html"),
    "HTML under another type": for_all(HTML),
    "a page of its own for each": for_all(lambda path: HTML + path.encode(), "text/html", ""),
    "an error of its own for each": for_all(lambda path: b"<Error>" + path.encode() + b"</Error>"),
    "200 without ranges": for_all(HTML, "text/html", ranges=False),
    "JSON behind redirects": moved(JSON, "application/json"),
    "an image behind redirects": moved(b"\x89PNG" + bytes(200), "image/png"),
    "403": lambda *_: (403, {}, XML),
}
# Nothing shows at a first start that these are no files: what is equal, or short, may be right.
LATER_KINDS = {
    "nothing": for_all(b""),
    "a placeholder": for_all(b"\x89PNG" + bytes(200), "image/png"),
    "a part": for_all(lambda path: MANY[path][:1000]),
    "text of its own for each": for_all(lambda path: b"no data for " + path.encode() * 2),
}


@pytest.fixture
def pulled_all(tmp_path):
    """Return a function that pulls from a server of each kind, all at once."""
    write_private_key(tmp_path / "key", KEY)

    def pull(tiny, kinds, **options):
        servers = {
            f"W{n}": {"url": f"{tiny.url}{n}/", "plain_http": True, "paths": NAMES}
            for n in range(len(kinds))
        }
        collection = {
            "format": "datacollect-collection/1",
            "destination": "D",
            "key": str(tmp_path / "key"),
            "servers": servers,
            "limits": {"patience_s": 20.0, "timeout_s": 20.0, "connections": 8},
        }
        return dc.pull(collection, tmp_path / "into", **options)

    return pull


@pytest.fixture
def arrived_of(tmp_path):
    """Return a function that reads what has come of a kind."""

    def read(n):
        return {path.name: path.read_bytes() for path in (tmp_path / f"into/W{n}").glob("*")}

    return read


def each_its_kind(kinds, *, is_half):
    """Let the server of each kind answer so: for all names, or for half of them."""
    responds = [for_half(respond) if is_half else respond for respond in kinds.values()]

    def respond(path, headers):
        n, _, name = path.partition("/")
        # Redirects have led to what lies nowhere.
        return responds[int(n)](name, headers) if n.isdecimal() else None

    return respond


def named(answer, n):
    return {each.path: each.why for each in answer.missing if each.source == f"W{n}"}


def many_of(kinds):
    return {f"{n}/{name}": data for n in range(len(kinds)) for name, data in MANY.items()}


@pytest.mark.slow
def test_no_file_becomes_an_answer_for_many_at_a_first_start(pulled_all, arrived_of):
    right = {name: data for name, data in MANY.items() if name not in HALF}
    with tiny_server(many_of(KINDS), respond=each_its_kind(KINDS, is_half=True)) as tiny:
        answer = pulled_all(tiny, KINDS)
        for n, kind in enumerate(KINDS):
            assert arrived_of(n) == right, kind
            assert named(answer, n).keys() == HALF, kind
        assert not answer.complete
        assert "('ExpiredToken: Log in')" in named(answer, list(KINDS).index("403"))["f00.bin"]
        # What was refused by then comes when it is right.
        tiny.respond = None
        assert pulled_all(tiny, KINDS).complete
    assert all(arrived_of(n) == MANY for n in range(len(KINDS)))


@pytest.mark.slow
def test_nothing_comes_of_servers_that_have_one_answer_for_all_at_a_first_start(
    pulled_all, arrived_of
):
    with tiny_server(many_of(KINDS), respond=each_its_kind(KINDS, is_half=False)) as tiny:
        answer = pulled_all(tiny, KINDS)
    for n, kind in enumerate(KINDS):
        assert arrived_of(n) == {}, kind
        assert named(answer, n).keys() == {*NAMES}, kind


@pytest.mark.parametrize(
    "is_half", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["all", "half"]
)
def test_no_verified_file_becomes_an_answer_for_many(pulled_all, arrived_of, tmp_path, is_half):
    kinds, told = KINDS | LATER_KINDS, []
    with tiny_server(many_of(kinds)) as tiny:
        assert pulled_all(tiny, kinds).complete
        tiny.respond = each_its_kind(kinds, is_half=is_half)
        answer = pulled_all(tiny, kinds, tell=told.append)
        for n, kind in enumerate(kinds):
            assert arrived_of(n) == MANY, kind
            whys = named(answer, n)
            assert whys.keys() == (HALF if is_half else {*NAMES}), kind
            assert all(why.startswith("kept as verified") for why in whys.values()), kind
            (note,) = [line for line in told if f" W{n}: {len(whys)} files are kept" in line]
            assert "--keep" in note
        assert not answer.complete
        assert not status_of(tmp_path / "into").complete
        # The user may say that this will do; and what is right again is confirmed.
        assert pulled_all(tiny, kinds, keep=True).complete
        assert status_of(tmp_path / "into").complete
        tiny.respond = None
        assert pulled_all(tiny, kinds).complete
    assert all(arrived_of(n) == MANY for n in range(len(kinds)))


def test_what_is_meant_is_taken_by_overwrite_or_by_a_manifest(pulled, arrived, tmp_path):
    """Both remedies that the reason names; data become text, and text becomes data again."""
    with tiny_server({"a.bin": MANY["f00.bin"], "b.bin": b"\1" * 900}) as tiny:
        assert pulled(tiny, paths_of(tiny)).complete
        tiny.files = {"a.bin": b"by now a text", "b.bin": b"\2" * 900}
        answer = pulled(tiny, paths_of(tiny))
        assert "start with --overwrite, or give its bytes and sha256" in whys(answer)["a.bin"]
        assert pulled(tiny, paths_of(tiny), options={"overwrite": True}).complete
        assert arrived() == tiny.files
        tiny.files = {"a.bin": b'{"and": "JSON"}', "b.bin": b"\2" * 900}
        assert not pulled(tiny, paths_of(tiny)).complete
        entry = {"url": tiny.url, "manifest": manifest(tmp_path, tiny.files)}
        assert pulled(tiny, entry).complete
    assert arrived() == tiny.files


def test_copies_that_their_server_has_no_more_are_kept_and_may_count(pulled, arrived):
    with tiny_server(dict(MANY)) as tiny:
        assert pulled(tiny, paths_of(tiny)).complete
        entry = paths_of(tiny)
        tiny.files = {"f00.bin": MANY["f00.bin"]}
        answer = pulled(tiny, entry)
        assert whys(answer).keys() == {*NAMES[1:]}
        assert "kept as verified" in whys(answer)["f01.bin"]
        assert "no such file (404)" in whys(answer)["f01.bin"]
        assert pulled(tiny, entry, options={"keep": True}).complete
    assert arrived() == MANY


def test_overwrite_takes_no_page_for_a_file(pulled, arrived):
    with tiny_server(MANY) as tiny:
        assert pulled(tiny, paths_of(tiny)).complete
        tiny.respond = for_all(JSON, "application/json")
        answer = pulled(tiny, paths_of(tiny), options={"overwrite": True})
    assert not answer.complete
    assert "one and the same JSON for 6 files" in answer.missing[0].why
    assert "--overwrite" not in answer.missing[0].why
    assert arrived() == MANY


def test_a_copy_that_its_hash_proves_is_complete_whatever_the_server_says(
    pulled, arrived, tmp_path
):
    rows = [f"{{url}}{p},{hashlib.sha256(data).hexdigest()}" for p, data in MANY.items()]
    with tiny_server(MANY) as tiny:
        text = "\n".join(["url,sha256", *rows, ""]).replace("{url}", tiny.url)
        (tmp_path / "urls.csv").write_text(text)
        entry = {"urls": str(tmp_path / "urls.csv")}
        assert pulled(tiny, entry).complete
        tiny.respond = for_all(JSON, "application/json")
        assert pulled(tiny, entry).complete
    assert arrived() == MANY


def test_what_has_come_of_a_file_is_kept_where_its_server_answers_with_an_error(pulled, arrived):
    """Half of a large file is there; then all are one error, then the rest is asked for."""
    files = {"large.bin": b"\x93" + os.urandom(299_999), "b.bin": MANY["f00.bin"]}
    with tiny_server(files) as tiny:
        half = files["large.bin"][:131_072]

        def fails_midway(path, headers):
            begin = int(headers.get("Range", "bytes=0-").removeprefix("bytes=").split("-")[0])
            return 403 if path == "large.bin" and begin >= len(half) else None

        tiny.respond = fails_midway
        assert whys(pulled(tiny, paths_of(tiny), piece_bytes=65536)).keys() == {"large.bin"}
        tiny.respond = for_all(JSON, "application/json")
        answer = pulled(tiny, paths_of(tiny), piece_bytes=65536)
        assert whys(answer).keys() == set(files)
        tiny.respond = None
        tiny.calls.clear()
        assert pulled(tiny, paths_of(tiny), piece_bytes=65536).complete
    assert arrived() == files
    ranges = [headers["Range"] for *_, headers in tiny.calls]
    begins = {int(each.removeprefix("bytes=").split("-")[0]) for each in ranges} - {0}
    assert begins, "the rest was fetched"
    assert min(begins) >= len(half), "what had come was fetched again"


def test_one_error_of_nodes_that_differ_in_their_etags_is_no_file(pulled, arrived):
    """Each second request is answered by a node that has another strong ETag for all."""
    n_asked = Counter()

    def respond(path, headers):
        n_asked[path] += 1
        etag = f'"{n_asked[path] % 2}"'
        asked = dict(headers)
        if asked.pop("If-Range", etag) != etag:
            asked.pop("Range")
        return ranged(JSON, asked, etag, **{"Content-Type": "application/json"})

    with tiny_server(MANY, respond=respond) as tiny:
        answer = pulled(tiny, paths_of(tiny))
    assert not answer.complete
    assert arrived() == {}


def changed_each(files):
    return {path: b"\x94" + os.urandom(len(data) - 1) for path, data in files.items()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("files", "later", "etag"),
    [
        (dict.fromkeys(NAMES, MANY["f00.bin"]), dict.fromkeys(NAMES, MANY["f01.bin"]), None),
        (dict.fromkeys(NAMES, b""), dict.fromkeys(NAMES, b""), '"e"'),
        (MANY, changed_each(MANY), '"{}"'),
        ({"a.txt": b"1 2\n", "b.txt": b"3 4\n"}, {"a.txt": b"1 2 3\n", "b.txt": b"3 5\n"}, None),
        ({"a.json": b'{"a": 1}'}, {"a.json": b'{"a": [1, 2]}'}, None),
        ({"log": b"an error\n" * 9}, {"log": b"an error\n"}, None),
    ],
    ids=["duplicates", "empty files", "one ETag for all", "texts", "JSON", "a log begun again"],
)
def test_what_looks_alike_and_is_right_arrives_also_when_it_has_changed(
    pulled, arrived, files, later, etag
):
    """Such as nginx's ETag, which is of time and size: one for all that are written together."""
    for n, by_now in enumerate((files, later, later)):
        etags = {} if etag is None else dict.fromkeys(by_now, etag.format(n > 0))

        def respond(path, headers, by_now=by_now, etags=etags):
            data = by_now[path]
            if not data and "Range" in headers:
                return 416, {"Content-Range": "bytes */0"}, b""
            own = f'"{hashlib.md5(data).hexdigest()}"'
            return ranged(data, headers, etags.get(path, own))

        with tiny_server(by_now, respond=respond) as tiny:
            if n == 0:
                port = tiny.port
            entry = paths_of(tiny)
            answer = pulled(tiny, entry)
        assert answer.complete, (n, port, answer.missing)
        assert arrived() == by_now


def test_pointers_that_are_the_files_arrive_with_a_note(pulled, arrived):
    files = {f"{n}.bin": POINTER.replace(b"size 3000", b"size %d" % n) for n in range(1000, 1004)}
    files["again.bin"] = files["1000.bin"]
    told = []
    with tiny_server(files) as tiny:
        answer = pulled(tiny, paths_of(tiny), options={"tell": told.append})
    assert answer.complete, answer.missing
    assert arrived() == files
    assert [line for line in told if "git-lfs pointers, and arrive as such" in line]


@pytest.mark.skipif(not shutil.which("nginx"), reason=NO_NGINX)
def test_nginx_has_one_etag_for_files_of_one_time_and_size(tmp_path):
    """Before and after a change of all of them."""
    write_private_key(tmp_path / "key", KEY)
    with nginx(tmp_path, tls=False) as server:
        collection = {
            "format": "datacollect-collection/1",
            "destination": "D",
            "key": str(tmp_path / "key"),
            "servers": {"W": {"url": server.url, "plain_http": True, "paths": NAMES}},
        }
        for n, files in enumerate((MANY, changed_each(MANY))):
            for name, data in files.items():
                (server.root / name).write_bytes(data)
                os.utime(server.root / name, (1_600_000_000 + n, 1_600_000_000 + n))
            answer = dc.pull(collection, tmp_path / "into")
            assert answer.complete, answer.missing
            base = tmp_path / "into/W"
            assert {path.name: path.read_bytes() for path in base.iterdir()} == files
