"""Pages instead of files, such as those to log in: what tells them, and what is no page at all."""

import os

import pytest
from instances.web_answers import manifest, paths_of, ranged, whys
from instances.web_servers import tiny_server

DATA = os.urandom(200_000)
NAMES = [f"f{n:02d}.bin" for n in range(20)]
MANY = {name: b"\x93" + os.urandom(2999) for name in NAMES}

PAGE = b"<!DOCTYPE html><title>Sign in</title>" * 20
HTML = {"Content-Type": "text/html; charset=utf-8"}


def login(path, headers):
    """Lead everything to one page, which knows ranges."""
    if path != "login":
        return 302, {"Location": f"/login?next=/{path}"}, b"go there"
    return ranged(PAGE, headers, **HTML)


def page(_, headers):
    """Answer with one page for everything, which knows ranges."""
    return ranged(PAGE, headers, **HTML)


def page_without_etag(_, headers):
    status, more, body = ranged(PAGE, headers, **HTML)
    return status, {key: value for key, value in more.items() if key != "ETag"}, body


def whole_page(*_):
    return 200, HTML | {"ETag": '"p"'}, PAGE


PAGES = [login, page, page_without_etag, whole_page]


@pytest.mark.slow
@pytest.mark.parametrize("answers", PAGES)
def test_one_page_for_all_files_is_no_file(pulled, arrived, answers):
    with tiny_server(MANY, respond=answers) as tiny:
        answer = pulled(tiny, paths_of(tiny))
    assert not answer.complete
    assert all("a login page?" in missing.why for missing in answer.missing)
    assert arrived() == {}


@pytest.mark.slow
@pytest.mark.parametrize("answers", PAGES)
def test_what_was_verified_is_not_replaced_by_pages(pulled, arrived, answers):
    for files in (MANY, {"a.bin": DATA}):
        with tiny_server(files) as tiny:
            assert pulled(tiny, paths_of(tiny)).complete
            tiny.respond = answers
            pulled(tiny, paths_of(tiny))
        assert files.items() <= arrived().items()


def test_files_that_need_no_login_arrive_beside_those_that_do(pulled, arrived):
    closed = set(NAMES[::2])
    with tiny_server(MANY) as tiny:
        tiny.respond = lambda p, h: login(p, h) if p in closed or p == "login" else None
        answer = pulled(tiny, paths_of(tiny))
    assert set(whys(answer)) == closed
    assert all("a login page?" in why and "/login" in why for why in whys(answer).values())
    assert arrived() == {name: MANY[name] for name in NAMES if name not in closed}


SAME = dict.fromkeys(NAMES, b"the same 26 bytes as others")
PAGES_BY_NAME = {f"{n}.html": PAGE for n in range(4)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("files", "headers", "etag"),
    [
        (SAME, {"Content-Type": "application/octet-stream"}, '"same"'),
        (SAME, {}, '"same"'),
        (SAME, {"Content-Type": "text/plain"}, None),
        (PAGES_BY_NAME, HTML, '"same"'),
        # Programs that say text/html of all that they send, and nothing of versions.
        (MANY, HTML, None),
    ],
)
def test_equal_files_and_pages_that_are_named_so_arrive(pulled, arrived, files, headers, etag):
    files = {
        name: b"\x93" + data[1:] if data in MANY.values() else data for name, data in files.items()
    }

    def respond(path, asked):
        status, more, body = ranged(files[path], asked, etag or "", **headers)
        return status, {key: value for key, value in more.items() if value}, body

    with tiny_server(files, respond=respond) as tiny:
        answer = pulled(tiny, paths_of(tiny))
    assert answer.complete, answer.missing
    assert arrived() == files


@pytest.mark.slow
def test_redirects_of_all_files_to_one_place_for_each_arrive(pulled, arrived):
    """As object stores do: one host, one folder, a signature, another name for each."""

    def respond(path, headers):
        if not path.startswith("blobs/"):
            return 302, {"Location": f"/blobs/{path}?Signature=x"}, b""
        return ranged(MANY[path.removeprefix("blobs/")], headers)

    with tiny_server(MANY, respond=respond) as tiny:
        answer = pulled(tiny, paths_of(tiny))
    assert answer.complete, answer.missing
    assert arrived() == MANY


def test_a_page_that_a_manifest_speaks_of_is_a_file(pulled, arrived, tmp_path):
    files = dict.fromkeys(NAMES[:3], PAGE)
    with tiny_server(files, respond=login) as tiny:
        entry = {"url": tiny.url, "manifest": manifest(tmp_path, files, hashed=False)}
        answer = pulled(tiny, entry)
    assert answer.complete, answer.missing
    assert arrived() == files
