"""The files of a page: what they say, what anybody can compare, how large they are."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re

import pytest
from conftest import REPOSITORY
from instances.events import event_bytes, key_of
from instances.handing_pages import served
from instances.words import flat

from datacollect.bistro.formats.event.amendments import sign_amendment
from datacollect.bistro.formats.event.file import read_event
from datacollect.bistro.formats.receipt.receipt import PublishedAmendment, amendments_data
from datacollect.bistro.page.files import page_files, policy_of
from datacollect.commands.main import run

BISTRO = {"name": "north", "url": "https://north.example/a", "key": key_of("north").public}
MOST_SCRIPT_BYTES, MOST_OTHER_BYTES = 270_000, 100_000
# What phones load, as servers pack it.
MOST_PACKED_BYTES = 90_000
LOADED = ("index.html", "page.js", "style.css")


@pytest.fixture
def made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [BISTRO | {"fingerprint": "sha256:" + "0" * 64}]
    (tmp_path / "event.toml").write_bytes(event_bytes(bistros=rows, name="Tea & <b>"))
    assert run(["event", "page", "event.toml", "-o", "page"]) == 0
    return tmp_path / "page"


def test_a_page_speaks_to_its_event_alone_and_runs_nothing_from_elsewhere(made):
    policy = dict(
        part.partition(" ")[::2]
        for part in policy_of(read_event((made / "event.toml").read_bytes())).split("; ")
    )
    # The test's services and its bistro; of URLs their origins.
    spoken_to = {"https://s0.example", "https://s1.example", "https://north.example"}
    assert set(policy.pop("connect-src").split()) == spoken_to
    assert policy == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "worker-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "datacollect",
    }
    page = (made / "index.html").read_text()
    assert "<title>Tea &amp; &lt;b&gt;</title>" in page
    assert "frame-ancestors" not in page  # only a header can say that
    assert "frame-ancestors 'none'" in (made / "headers.conf").read_text()
    assert not re.search(r"https?://", re.sub("connect-src[^;]*", "", page))


def test_a_page_holds_its_event_byte_by_byte_and_the_hashes_of_what_it_loads(made):
    page = (made / "index.html").read_text()
    (told,) = re.findall(r'id="event">([^<]*)<', page)
    assert base64.b64decode(told) == (made / "event.toml").read_bytes()
    for name in ("page.js", "style.css"):
        (integrity,) = re.findall(rf'"{name}" integrity="sha256-([^"]*)"', page)
        digest = hashlib.sha256((made / name).read_bytes()).digest()
        assert base64.b64decode(integrity) == digest


@pytest.mark.parametrize("name", ["index.html", "page.js", "style.css", "headers.conf"])
def test_one_altered_byte_is_found_by_the_sums_and_by_who_compares(made, name, capsys):
    assert run(["event", "page", "event.toml", "--check", "page"]) == 0
    sums = dict(line.split("  ")[::-1] for line in (made / "SHA256SUMS").read_text().splitlines())
    assert sums.keys() == {path.name for path in made.iterdir()} - {"SHA256SUMS"}
    data = bytearray((made / name).read_bytes())
    assert hashlib.sha256(data).hexdigest() == sums[name]
    data[len(data) // 2] ^= 1
    (made / name).write_bytes(data)
    assert hashlib.sha256(data).hexdigest() != sums[name]
    capsys.readouterr()
    assert run(["event", "page", "event.toml", "--check", "page", "--json"]) == 1
    (found,) = json.loads(capsys.readouterr().out)["differences"]
    assert found == f"{name}: is not what this version writes for the event"


def test_a_page_that_is_served_is_compared_and_so_are_its_headers(made, capsys):
    with served(made) as url:
        assert run(["event", "page", "event.toml", "--check", url]) == 0
        (made / "page.js").unlink()
        (made / "headers.conf").write_text("")
        capsys.readouterr()
        assert run(["event", "page", "event.toml", "--check", url]) == 1
    said = flat(capsys.readouterr().out)
    assert "page.js: is not there" in said
    assert (
        "index.html: is served without the header Content-Security-Policy of headers.conf" in said
    )


def test_each_header_is_compared_with_the_one_that_is_demanded(made, capsys):
    """A policy that lets no page frame it, and lets any script run, is none."""
    demanded = (made / "headers.conf").read_text()
    (made / "headers.conf").write_text(
        demanded.replace("script-src 'self'", "script-src 'self' 'unsafe-inline'").replace(
            'add_header Referrer-Policy "no-referrer" always;\n', ""
        )
    )
    with served(made) as url:
        capsys.readouterr()
        assert run(["event", "page", "event.toml", "--check", url, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)["differences"]
    assert found[0] == "headers.conf: is not what this version writes for the event"
    # The script, too: it runs in a worker, for which the headers of the page do not hold.
    assert [each.partition(": ")[0] for each in found[1:]] == [
        *("/page.js", "/page.js", "/index.html", "/index.html", "/", "/")
    ]
    policy, referrer = found[1:3]
    assert "its header Content-Security-Policy must be \"default-src 'none'; " in policy
    assert "script-src 'self' 'unsafe-inline'; " in policy.partition(", got ")[2]
    assert referrer.endswith("is served without the header Referrer-Policy of headers.conf")


def test_a_page_of_another_event_is_not_overwritten_unasked(made, capsys):
    again = ["event", "page", "event.toml", "-o", "page"]
    assert run(again) == 0
    (made / "index.html").write_text("mine")
    assert run(again) == 2
    assert "index.html: exists already" in flat(capsys.readouterr().err)
    assert run([*again, "--force"]) == 0
    assert (made / "index.html").read_text() != "mine"


def test_a_bistro_that_was_added_may_be_spoken_to(tmp_path, monkeypatch):
    """The amendment counts only with the proof of a log: without one nothing is added."""
    from instances.events import proof_of

    monkeypatch.chdir(tmp_path)
    data = event_bytes()
    event = read_event(data)
    (tmp_path / "event.toml").write_bytes(data)
    change = {"bistros": [BISTRO | {"fingerprint": "sha256:" + "0" * 64}]}
    note = sign_amendment(event, change, 1, key_of("organiser"))
    log = event.services[0].log.name
    for proofs, is_there in (((), False), ((proof_of(note, log, 1_800_000_000),), True)):
        rows = [PublishedAmendment(note, proofs)]
        (tmp_path / "changes.json").write_bytes(amendments_data(event.id, rows))
        arguments = ["event", "page", "event.toml", "-o", "page", "--force"]
        assert run([*arguments, "--amendments", "changes.json"]) == 0
        page = (tmp_path / "page" / "index.html").read_text()
        assert ("https://north.example" in page) is is_there


@pytest.mark.parametrize("more", [["-o", "new"], ["--check", "page"]])
def test_of_an_older_event_no_page_is_made(made, capsys, more):
    """Whoever hears a ticket of it can use it."""
    data = (made / "event.toml").read_bytes()
    older = data.replace(b"datacollect-event/2", b"datacollect-event/1")
    (made.parent / "event.toml").write_bytes(older)
    assert run(["event", "page", "event.toml", *more]) == 2
    said = flat(capsys.readouterr().err)
    assert "event.toml: format must be datacollect-event/2, got datacollect-event/1" in said
    assert not (made.parent / "new").exists()


def test_pinned_certificates_are_said_not_to_help_browsers(made, capsys):
    assert run(["event", "page", "event.toml", "-o", "page", "--force"]) == 0
    assert "north must show a certificate that browsers trust" in flat(capsys.readouterr().err)


def test_where_to_write_or_to_look_is_to_be_said(made, capsys):
    assert run(["event", "page", "event.toml"]) == 2
    assert run(["event", "page", "event.toml", "-o", "x", "--check", "page"]) == 2
    assert "name the folder to write with -o, or the folder" in flat(capsys.readouterr().err)


def test_the_script_and_what_is_painted_first_are_small():
    data = event_bytes()
    made = page_files(data, read_event(data))
    assert len(made["page.js"]) <= MOST_SCRIPT_BYTES
    assert len(made["index.html"]) + len(made["style.css"]) <= MOST_OTHER_BYTES


def test_all_that_a_phone_loads_is_small_once_it_is_packed():
    data = event_bytes()
    made = page_files(data, read_event(data))
    sizes = {name: len(gzip.compress(made[name], 9)) for name in LOADED}
    assert sum(sizes.values()) <= MOST_PACKED_BYTES, sizes


def test_what_an_event_proves_whose_keeper_is_its_only_witness_is_said_by_its_page_alone():
    told = {}
    for data in (event_bytes(), event_bytes(n_witnesses=1, quorum=1, alone=True)):
        event = read_event(data)
        told[event.alone] = page_files(data, event)["index.html"].decode()
    words = '<details class="warning"><summary data-text="alone_title">'
    assert {alone: words in page for alone, page in told.items()} == {False: False, True: True}
    assert not any("alone -->" in page for page in told.values())


NOTICE = """We, the school <office@school.example>, keep files for a year.

Ask us at https://school.example/privacy?a=1&b=2, or write.
"""


def test_a_privacy_notice_of_the_organiser_stands_in_the_place_of_the_pages_own(made, capsys):
    own = (made / "index.html").read_text()
    assert 'data-text="privacy_sealed"' in own
    (made.parent / "privacy.txt").write_text(NOTICE)
    more = ["--privacy", "privacy.txt"]
    assert run(["event", "page", "event.toml", "-o", "page", "--force", *more]) == 0
    page = (made / "index.html").read_text()
    assert 'data-text="privacy_sealed"' not in page
    assert "<p>We, the school &lt;office@school.example&gt;, keep files for a year.</p>" in page
    url = "https://school.example/privacy?a=1&amp;b=2"
    assert f'<p>Ask us at <a href="{url}" rel="noreferrer">{url}</a>, or write.</p>' in page
    # All else is as it was.
    assert page.partition("<p>We")[0] == own.partition('<p data-text="privacy_sealed"')[0]
    assert run(["event", "page", "event.toml", "--check", "page", *more]) == 0
    assert run(["event", "page", "event.toml", "--check", "page"]) == 1


@pytest.mark.parametrize("text", ["", " \n", "a" * 20_001])
def test_a_notice_of_no_letters_or_of_too_many_is_refused(made, capsys, text):
    (made.parent / "privacy.txt").write_text(text)
    new = ["event", "page", "event.toml", "-o", "new", "--privacy", "privacy.txt"]
    assert run(new) == 2
    said = flat(capsys.readouterr().err)
    assert "privacy.txt: a privacy notice must have 1 to 20000 letters, got" in said
    assert not (made.parent / "new").exists()


def test_the_script_makes_no_code_of_texts_and_needs_no_webassembly():
    data = event_bytes()
    script = page_files(data, read_event(data))["page.js"].decode()
    for name in ("WebAssembly", "eval(", "new Function", "innerHTML", "document.write"):
        assert name not in script


def test_the_lock_names_a_hash_for_each_package_and_licences_those_that_are_in():
    lock = json.loads((REPOSITORY / "datacollect/bistro/page/src/package-lock.json").read_text())
    packages = {path: each for path, each in lock["packages"].items() if path}
    assert all(each["integrity"].startswith("sha512-") for each in packages.values())
    event_data = event_bytes()
    licences = page_files(event_data, read_event(event_data))["licences.txt"].decode()
    for name in (
        *("age-encryption", "tus-js-client", "@noble/curves", "@noble/hashes"),
        "smol-toml",
    ):
        version = packages[f"node_modules/{name}"]["version"]
        assert f"{name} {version} (" in licences
