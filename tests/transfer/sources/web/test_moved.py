"""A collection whose file says something else at the next start: bytes are what it wants by now.

Judged by the bytes in the folder.
"""

import hashlib
import os

import pytest
from instances.web_answers import paths_of, ranged, whys
from instances.web_servers import tiny_server

from datacollect.transfer.sources.web.core.urls import Target, target_of
from datacollect.transfer.store.status import status_of

OLD, NEW = (b"\x93" + os.urandom(2999) for _ in range(2))
# As nginx makes it: of time and size.
OF_TIME = '"660f0000-bb8"'


def with_etag(etag):
    """Answer with one ETag for all, or with none."""

    def answer(tiny):
        def respond(path, headers):
            status, more, data = ranged(tiny.files[path], headers, etag)
            return status, {key: value for key, value in more.items() if value}, data

        tiny.respond = respond

    return answer


@pytest.mark.parametrize("etag", [OF_TIME, None], ids=["of time and size", "none"])
def test_at_another_address_an_equal_version_says_nothing(pulled, arrived, etag):
    for data in (OLD, NEW):
        with tiny_server({"a.bin": data}) as tiny:
            with_etag(etag)(tiny)
            assert pulled(tiny, paths_of(tiny)).complete
        assert arrived() == {"a.bin": data}


def test_urls_that_change_places_bring_what_they_lead_to(pulled, arrived, tmp_path):
    entry = {"urls": str(tmp_path / "urls.csv")}
    with tiny_server({"a": OLD, "b": NEW}) as tiny:
        with_etag(OF_TIME)(tiny)
        for one, other in ("ab", "ba"):
            (tmp_path / "urls.csv").write_text(
                f"url,path\n{tiny.url}{one},x\n{tiny.url}{other},y\n"
            )
            assert pulled(tiny, entry).complete
            assert arrived() == {"x": tiny.files[one], "y": tiny.files[other]}


@pytest.mark.slow
def test_an_etag_that_is_a_hash_is_the_file_wherever_it_lies(pulled, arrived):
    for n in range(2):
        with tiny_server({"a.bin": OLD}) as tiny:
            with_etag(f'"{hashlib.md5(OLD).hexdigest()}"')(tiny)
            answer = pulled(tiny, paths_of(tiny))
        assert answer.complete
        assert sum(route.n_bytes for route in answer.routes) == (0 if n else len(OLD))
    assert arrived() == {"a.bin": OLD}


@pytest.mark.slow
def test_a_folder_of_a_version_that_noted_no_addresses_is_gone_on_with(
    pulled, arrived, monkeypatch
):
    with tiny_server({"a.bin": OLD}) as tiny:
        with_etag(OF_TIME)(tiny)
        with monkeypatch.context() as before:
            before.setattr(Target, "mark", None)
            assert pulled(tiny, paths_of(tiny)).complete
        answer = pulled(tiny, paths_of(tiny))
        assert answer.complete
        assert not answer.routes
    assert arrived() == {"a.bin": OLD}


def test_neither_tls_nor_a_signature_makes_another_address():
    marks = {
        target_of(url).mark
        for url in ("https://x.example/a?sig=1", "http://x.example/a", "https://x.example:443/a")
    }
    assert len(marks) == 1
    assert target_of("https://x.example/b").mark not in marks
    assert target_of("https://x.example:8443/a").mark not in marks


@pytest.mark.parametrize("wanted", ["bytes", "sha256"])
def test_no_copy_counts_that_the_collection_contradicts(pulled, arrived, tmp_path, wanted):
    """Neither where its server refuses it now, and the user keeps what was verified."""
    told = {"bytes": str(len(NEW) + 1), "sha256": hashlib.sha256(NEW).hexdigest()}
    entry = {"urls": str(tmp_path / "urls.csv")}
    with tiny_server({"a.bin": OLD}) as tiny:
        (tmp_path / "urls.csv").write_text(f"url\n{tiny.url}a.bin\n")
        assert pulled(tiny, entry).complete
        (tmp_path / "urls.csv").write_text(f"url,{wanted}\n{tiny.url}a.bin,{told[wanted]}\n")
        tiny.respond = lambda *_: 403
        answer = pulled(tiny, entry, options={"keep": True})
    assert not answer.complete
    assert "denies access (403)" in whys(answer)["a.bin"]
    assert "; what is here" in whys(answer)["a.bin"]
    assert not status_of(tmp_path / "into").complete
    assert arrived() == {"a.bin": OLD}


OF_BYTES = f'"{hashlib.md5(OLD).hexdigest()}"'


@pytest.mark.parametrize(
    ("refusal", "etag"),
    [
        (403, OF_TIME),
        (404, OF_TIME),
        ((200, {}, b"<html>Log in</html>"), OF_TIME),
        (403, OF_BYTES),
    ],
    ids=["refused", "not there", "a page", "refused, a hash"],
)
def test_no_copy_counts_that_came_from_another_address(pulled, arrived, tmp_path, refusal, etag):
    """Its server is the one by now, which has never confirmed it."""
    entry = {"urls": str(tmp_path / "urls.csv")}
    with tiny_server({"old": OLD, "new": NEW}) as tiny:
        with_etag(etag)(tiny)
        (tmp_path / "urls.csv").write_text(f"url,path\n{tiny.url}old,x\n")
        assert pulled(tiny, entry).complete
        (tmp_path / "urls.csv").write_text(f"url,path\n{tiny.url}new,x\n")
        tiny.respond = lambda *_: refusal
        assert not pulled(tiny, entry, options={"keep": True}).complete
        assert not status_of(tmp_path / "into").complete
        assert arrived() == {"x": OLD}
        with_etag(OF_TIME)(tiny)
        assert pulled(tiny, entry).complete
    assert arrived() == {"x": NEW}


CHANGES = {
    "another address": lambda url, _: [f"{url}a,a,,", f"{url}c,b,,"],
    "another hash": lambda url, known: [f"{url}a,a,,", f"{url}b,b,{len(NEW)},{known}"],
    "another file": lambda url, _: [f"{url}a,a,,", f"{url}b,b,,", f"{url}c,c,,"],
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_was_listed_is_not_all_where_the_collection_says_something_else_by_now(
    pulled, tmp_path, change
):
    """A narrowed start asks for a file that is as it was; the others were never listed so."""
    entry, into = {"urls": str(tmp_path / "urls.csv")}, tmp_path / "into"
    with tiny_server({"a": OLD, "b": OLD, "c": NEW}) as tiny:

        def started(rows, include=None):
            text = "\n".join(["url,path,bytes,sha256", *rows, ""])
            (tmp_path / "urls.csv").write_text(text)
            return pulled(tiny, entry, options={"include": include})

        before = [f"{tiny.url}a,a,,", f"{tiny.url}b,b,,"]
        assert started(before).complete
        assert started(before, ["a"]).complete
        assert status_of(into).complete
        rows = CHANGES[change](tiny.url, hashlib.sha256(OLD).hexdigest())
        assert started(rows, ["a"]).complete
        assert status_of(into, as_asked=True).complete
        assert not status_of(into).complete
        assert started(rows).complete
        assert status_of(into).complete


def test_an_only_copy_does_not_become_an_empty_file(pulled, arrived):
    """One file has no neighbours that could show it; each question is answered by nothing."""
    with tiny_server({"a.bin": OLD}) as tiny:
        assert pulled(tiny, paths_of(tiny)).complete
        tiny.files = {"a.bin": b""}
        answer = pulled(tiny, paths_of(tiny))
        assert "it is empty now, and had 3000 bytes" in whys(answer)["a.bin"]
        assert arrived() == {"a.bin": OLD}
        assert pulled(tiny, paths_of(tiny), options={"overwrite": True}).complete
    assert arrived() == {"a.bin": b""}
