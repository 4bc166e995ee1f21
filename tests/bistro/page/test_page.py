"""People hand in on the page, in Chromium: real services, witnesses and bistros on loopback."""

from __future__ import annotations

import base64
import io
import json
import re
import time
from contextlib import ExitStack, suppress
from urllib.parse import urlsplit

import pytest
from conftest import BROWSER_MS
from instances.events import key_of, proof_of
from instances.handing_pages import CONTEXT, NARROW, WIDE, PageWorld
from instances.timestamping import until
from instances.watched_pages import wait_until
from instances.web_packages import package_file

from datacollect.bistro.formats.custody.bistro_receipt import read_bistro_receipt
from datacollect.bistro.formats.custody.verdicts import DOES_NOT_OPEN, REASONS, Verdict
from datacollect.bistro.formats.event.marks import own_mark_key
from datacollect.bistro.formats.event.statements import (
    give_up_statement,
    hand_in_statement,
    is_by_key,
)
from datacollect.bistro.formats.event.tickets import ID_BYTES, Ticket, owned
from datacollect.bistro.formats.log.acknowledgement import acknowledge
from datacollect.bistro.formats.receipt.receipt import MOST_WORDS, read_receipt
from datacollect.bistro.formats.receipt.verify import Content, verify
from datacollect.bistro.formats.sealing.keep import ciphertext_of, read_keep
from datacollect.bistro.formats.sealing.sealed import open_sealed
from datacollect.bistro.person.items import commitment_of
from datacollect.bistro.person.verify_receipt import verify_receipt
from datacollect.commands.main import run
from datacollect.net.keys import is_signed

CONTENT = bytes(range(256)) * 400  # 100 KB
# What the page says once a server holds the file; and before any has.
HELD, READY = "says that it has your hand-in", "in time. "
MANY_BYTES = 200_000_000


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with ExitStack() as held:
        verdicts = {"key": key_of("verdicts").public, "url": "https://there.example"}
        made = PageWorld(tmp_path_factory.mktemp("page"), held, verdicts=verdicts)
        made.start()
        yield made


@pytest.fixture(scope="module")
def both_bistros(world):
    with world.bistro("north") as north, world.bistro("south") as south:
        yield north, south


@pytest.fixture
def context(browser, world):
    with_all = browser.new_context(viewport=WIDE, locale="en", timezone_id="UTC", **CONTEXT)
    with with_all as made:
        made.set_default_timeout(BROWSER_MS)
        made.asked = []
        made.faults = []
        # The destination is not there: tests answer in its place.
        made.route(f"{world.event.verdicts_url}/**", lambda route: route.fulfill(status=404))
        made.on("request", lambda request: made.asked.append(request.url))
        made.on("weberror", lambda error: made.faults.append(str(error.error)))
        yield made
        assert made.faults == []


@pytest.fixture
def person(tmp_path, world, monkeypatch):
    """A folder with a file and a ticket of its own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Übung 1.txt").write_bytes(CONTENT)
    number = int.from_bytes(tmp_path.name.encode()[-ID_BYTES:], "big")
    world.ticket_file(tmp_path, number).rename(tmp_path / "my.ticket")
    return tmp_path


def opened(context, world, path="/"):
    context.set_default_timeout(BROWSER_MS)
    page = context.new_page()
    page.goto(world.url + path)
    wait_until(page, "document.getElementById('event-id').textContent !== ''")
    return page


def hand_in(page, person, file=None):
    page.set_input_files("#ticket", person / "my.ticket")
    wait_until(page, "document.getElementById('ticket-said').textContent.includes('this event')")
    page.set_input_files("#file", file or person / "Übung 1.txt")
    page.click("#submit")


def lines(page):
    return page.eval_on_selector_all("article .line", "all => all.map(each => each.textContent)")


def wait_for_line(page, text, n=1):
    told = json.dumps(text)
    wait_until(
        page,
        "[...document.querySelectorAll('article .line')].filter(each => "
        f"each.textContent.includes({told})).length === {n}",
    )


def saved(page, button, person):
    """Press a button of the newest card that saves a file; return its path."""
    with page.expect_download() as waiting:
        page.get_by_role("button", name=re.compile(button)).first.click()
    path = person / waiting.value.suggested_filename
    waiting.value.save_as(path)
    return path


def leave(page):
    """Close a page without being asked whether that is meant."""
    page.on("dialog", lambda dialog: dialog.accept())
    page.close(run_before_unload=False)


# One file, from the click to the end --------------------------------------------------------


@pytest.mark.slow
def test_a_file_is_handed_in_and_all_that_python_makes_of_it_is_the_same(
    context, world, both_bistros, person
):
    page = opened(context, world)
    hand_in(page, person)
    wait_for_line(page, HELD)
    receipt_path = saved(page, "Save the receipt", person)
    keep_path = saved(page, r"\.keep$", person)
    assert receipt_path.name == "Übung 1.txt.receipt.json"
    assert keep_path.name == "Übung 1.txt.keep"
    assert saved(page, "Save the proof", person).name == "Übung 1.txt.proof"

    receipt = read_receipt(receipt_path.read_bytes())
    kept = read_keep(keep_path)
    assert commitment_of(kept, world.event) == receipt.commitment
    ticket = Ticket.from_file(person / "my.ticket")
    assert kept.is_whole
    assert kept.ticket == ticket
    said = hand_in_statement(world.event.id, kept.salt, receipt.commitment.owner)
    assert is_signed(said, kept.inner.ticket_signature, owned(ticket, world.event).key)
    assert kept.version.n_bytes == len(CONTENT)
    header = json.loads(kept.inner.header)
    assert header == {
        "content": "datacollect-content/2",
        "event": world.event.id.hex(),
        "name": "Übung 1.txt",
        "ticket": header["ticket"],
    }

    out = io.BytesIO()
    with ciphertext_of(keep_path, kept) as blocks:
        sealed = b"".join(blocks)
    inside = open_sealed(io.BytesIO(sealed), out, [str(world.identity)])
    assert (out.getvalue(), inside.inner) == (CONTENT, kept.inner)
    assert inside.content_p == receipt.commitment.content

    content = Content(kept.inner.secret, kept.inner.header, [CONTENT])
    found = verify(world.event_file.read_bytes(), receipt, content=content, amendments=[])
    assert (found.outcome, found.covers) == ("in time", "the file")
    # The proof lies beside file and receipt: nothing else is needed, the `.keep` least of all.
    keep_path.rename(person / "elsewhere")
    found = verify_receipt(receipt_path, world.event_file, file=person / "Übung 1.txt")
    assert (found.outcome, found.covers, found.is_the_one) == ("in time", "the file", True)
    word = read_bistro_receipt(receipt.bistro_receipts[0], world.event)
    assert (word.sha256, word.sealed_anew) == (receipt.commitment.ciphertext_sha256, False)

    # What it has spoken to: its own files, and the event's services and bistros.
    origins = {"{0.scheme}://{0.netloc}".format(urlsplit(url)) for url in context.asked}
    spoken_to = {each.url for each in (*world.event.services, *world.event.bistros)}
    assert {world.url} < origins <= {world.url, "blob://", world.event.verdicts_url} | spoken_to
    leave(page)


def told_by(request) -> bytes:
    """Return what a request tells its receiver, with what is in Base64 in its headers."""
    headers = request.all_headers()
    values = re.split("[ ,]", headers.get("upload-metadata", ""))[1::2]
    decoded = [base64.b64decode(each) for each in values]
    text = f"{request.url}\n{json.dumps(headers)}\n".encode()
    return b"\n".join([text, *decoded, request.post_data_buffer or b""])


def written(seed: bytes) -> set[bytes]:
    """Return the ways in which a seed may stand in something."""
    alike = {base64.b64encode(seed), base64.urlsafe_b64encode(seed)}
    return {seed, seed.hex().encode(), *(each.rstrip(b"=") for each in alike)}


def kept_in_the_browser(page) -> str:
    """Return all texts that the browser keeps for the page."""
    return page.evaluate(
        """async () => {
            const told = [JSON.stringify(localStorage)];
            for (const { name } of await indexedDB.databases()) {
                const found = await new Promise((resolve) => {
                    const request = indexedDB.open(name);
                    request.onsuccess = () => resolve(request.result);
                });
                for (const store of found.objectStoreNames) {
                    const request = found.transaction(store).objectStore(store).getAll();
                    await new Promise((resolve) => { request.onsuccess = resolve; });
                    told.push(JSON.stringify(request.result));
                }
                found.close();
            }
            return told.join();
        }"""
    )


@pytest.mark.slow
def test_no_seed_leaves_the_browser_but_in_the_keep(context, world, both_bistros, person):
    """The ticket's, the owner's: neither in what is sent, sealed or shown, nor in a receipt."""
    requests, printed = [], []

    def note(request):
        requests.append(request)

    context.on("request", note)
    context.on("console", lambda message: printed.append(message.text))
    page = opened(context, world, f"/{Ticket.from_file(person / 'my.ticket').link}")
    hand_in(page, person)
    wait_for_line(page, HELD)
    keep = saved(page, r"\.keep$", person)
    kept = read_keep(keep)
    seeds = written(kept.owner.seed) | written(kept.ticket.seed)
    assert sum(seed in keep.read_bytes() for seed in seeds) == 2
    out = io.BytesIO()
    with ciphertext_of(keep, kept) as blocks:
        inside = open_sealed(io.BytesIO(b"".join(blocks)), out, [str(world.identity)])
    told = [
        *map(told_by, requests),
        *(each.encode() for each in (*printed, repr(inside.inner), page.content())),
        saved(page, "Save the receipt", person).read_bytes(),
    ]
    assert {request.method for request in requests} >= {"GET", "POST"}
    assert any(kept.ticket.token.encode() in each for each in told)
    assert [each for each in told if any(seed in each for seed in seeds)] == []
    leave(page)


@pytest.mark.slow
def test_what_is_removed_leaves_no_key_behind(context, world, both_bistros, person):
    """Of two files the first alone; of the last the ticket, too."""
    page = opened(context, world)
    page.on("dialog", lambda dialog: dialog.accept())
    seed = Ticket.from_file(person / "my.ticket").seed.hex()
    (person / "other.txt").write_bytes(b"other")
    hand_in(page, person)
    wait_for_line(page, HELD)
    first = read_keep(saved(page, r"\.keep$", person))
    hand_in(page, person, person / "other.txt")
    wait_for_line(page, "it does not count: other.txt, handed in")
    wait_for_line(page, HELD)
    second = read_keep(saved(page, r"\.keep$", person))
    owners = [each.owner.seed.hex() for each in (first, second)]
    there = kept_in_the_browser(page)
    assert all(each in there for each in (seed, *owners))
    for n_left, card in ((1, -1), (0, 0)):
        page.get_by_role("button", name="Remove from this browser").nth(card).click()
        wait_until(page, f"document.querySelectorAll('article').length === {n_left}")
        until(lambda: page.evaluate("0") or owners[0] not in kept_in_the_browser(page), "removal")
        there = kept_in_the_browser(page)
        assert [each in there for each in owners] == [False, n_left == 1]
        assert seed in there or n_left == 0
    until(lambda: seed not in kept_in_the_browser(page), "removal of the ticket")
    assert second.ticket.token not in kept_in_the_browser(page)
    leave(page)


@pytest.mark.slow
def test_what_is_removed_while_services_are_asked_does_not_come_back(context, world, person):
    asked = []

    def abort(route):
        asked.append(route.request.url)
        route.abort()

    context.route("**/commit", abort)
    page = opened(context, world)
    page.on("dialog", lambda dialog: dialog.accept())
    hand_in(page, person)
    wait_for_line(page, "Sealed and kept here")
    until(lambda: page.evaluate("0") or len(asked) > 1, "questions to both services")
    page.get_by_role("button", name="Remove from this browser").click()
    wait_until(page, "document.querySelectorAll('article').length === 0")

    def is_quiet():
        before = len(asked)
        for _ in range(10):
            # Waits end early where the network is back.
            page.evaluate("dispatchEvent(new Event('online'))")
            page.wait_for_timeout(50)
        return len(asked) == before

    until(is_quiet, "that nobody is asked any more")
    assert lines(page) == []
    seed = Ticket.from_file(person / "my.ticket").seed.hex()
    until(lambda: page.evaluate("0") or seed not in kept_in_the_browser(page), "removal")
    assert "owner_seed" not in kept_in_the_browser(page)
    leave(page)


def test_a_ticket_comes_with_the_link_and_does_not_stay_in_the_address(context, world, person):
    page = opened(context, world, f"/{Ticket.from_file(person / 'my.ticket').link}")
    wait_until(page, "document.getElementById('ticket-said').textContent.includes('this event')")
    assert "ticket" not in page.url
    assert not any("ticket" in url for url in context.asked[1:])
    # Nothing is left to choose, unless somebody asks for it.
    assert not page.is_visible("#ticket")
    page.click("#ticket-other")
    assert page.is_visible("#ticket")
    assert page.evaluate("document.activeElement.id") == "ticket"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ticket", "said"),
    [
        ("", "This is not a ticket"),
        ("damaged", "This ticket is damaged"),
        ("other", "This ticket is for another event"),
    ],
)
def test_a_ticket_that_does_not_count_is_refused_before_anything_is_sealed(
    context, world, person, ticket, said
):
    path = person / "my.ticket"
    text = path.read_text()
    event = world.event.id.hex()
    changed = {
        "": "hello",
        "damaged": re.sub('seed = ".*"', f'seed = "{"1" * 64}"', text),
        "other": text.replace(f'event = "{event}"', f'event = "{event[::-1]}"'),
    }
    path.write_text(changed[ticket])
    page = opened(context, world)
    page.set_input_files("#ticket", path)
    wait_until(page, f"document.getElementById('ticket-said').textContent.includes('{said}')")
    page.set_input_files("#file", person / "Übung 1.txt")
    page.click("#submit")
    wait_until(page, "document.getElementById('refusal').textContent.includes('ticket first')")
    assert lines(page) == []


@pytest.mark.slow
@pytest.mark.parametrize("hours", [-2, 2])
def test_time_left_is_by_the_services_clock(context, world, hours):
    """The deadline is two hours after the start: by this clock it is past, or four hours off."""
    off_ms = hours * 3_600_000
    context.add_init_script(f"const now = Date.now; Date.now = () => now() + {off_ms}")
    page = opened(context, world)
    wait_until(page, "document.getElementById('left').textContent.includes(\"services' clock\")")
    assert "1 h" in page.text_content("#left")
    off = page.text_content("#clock")
    assert re.search(r"wrong by (2 h|1 h 59 min)", off), off


@pytest.mark.slow
def test_a_file_that_has_gone_is_named_and_nothing_is_kept(context, world, person):
    page = opened(context, world)
    page.set_input_files("#file", person / "Übung 1.txt")
    (person / "Übung 1.txt").unlink()
    page.set_input_files("#ticket", person / "my.ticket")
    wait_until(page, "document.getElementById('ticket-said').textContent.includes('this event')")
    page.click("#submit")
    wait_until(page, "document.getElementById('refusal').textContent.includes('cannot be read')")
    wait_until(page, "document.querySelectorAll('article').length === 0")
    assert not any(url.endswith("/commit") for url in context.asked)


@pytest.mark.slow
def test_where_there_is_no_room_nothing_is_handed_in(context, world, person):
    (person / "large.bin").write_bytes(bytes(10_000_000))
    page = context.new_page()
    session = context.new_cdp_session(page)
    # Before the page comes: Chromium looks seldom.
    room = {"origin": world.url, "quotaSize": 1_000_000}
    session.send("Storage.overrideQuotaForOrigin", room)
    page.goto(world.url)
    wait_until(page, "document.getElementById('event-id').textContent !== ''")
    hand_in(page, person, person / "large.bin")
    wait_until(
        page, "document.getElementById('refusal').textContent.includes('not have enough space')"
    )
    assert lines(page) == []
    assert not any(url.endswith("/commit") for url in context.asked)


@pytest.mark.slow
def test_what_a_browser_says_of_its_room_is_tried_before_a_file_is_sealed(context, world, person):
    """Private windows say that there is more than there is."""
    (person / "large.bin").write_bytes(bytes(30_000_000))
    page = context.new_page()
    session = context.new_cdp_session(page)
    room = {"origin": world.url, "quotaSize": 20_000_000}
    session.send("Storage.overrideQuotaForOrigin", room)
    page.goto(world.url)
    wait_until(page, "document.getElementById('event-id').textContent !== ''")
    page.evaluate("() => { navigator.storage.estimate = async () => ({ quota: 1e10, usage: 0 }); }")
    page.evaluate(
        """() => {
            globalThis.told = [];
            const place = document.querySelector("#said");
            const look = () => told.push(place.textContent);
            new MutationObserver(look).observe(place, { childList: true });
        }"""
    )
    hand_in(page, person, person / "large.bin")
    wait_until(
        page, "document.getElementById('refusal').textContent.includes('not have enough space')"
    )
    (fits,) = re.findall(
        r"needs 30 MB when it is sealed, and (\d+)[.\d]* MB fit\.", page.text_content("#refusal")
    )
    assert 0 < int(fits) < 20
    assert any("has enough space for your hand-in" in each for each in page.evaluate("told"))
    assert not any("page seals" in each for each in page.evaluate("told"))
    assert lines(page) == []
    assert not any(url.endswith("/commit") for url in context.asked)


@pytest.mark.slow
def test_german_is_spoken_to_who_speaks_it_and_to_who_chooses_it(browser, world):
    with browser.new_context(locale="de-AT", **CONTEXT) as context:
        page = opened(context, world)
        assert page.text_content("#submit") == "Abgeben"
        assert page.get_attribute("html", "lang") == "de"
        page.select_option("#language", "en")
        assert page.text_content("#submit") == "Hand in"
        page.reload()
        wait_until(page, "document.getElementById('submit').textContent === 'Hand in'")


@pytest.mark.slow
def test_who_closes_the_page_before_the_receipt_is_saved_is_asked(
    context, world, both_bistros, person
):
    page = opened(context, world)
    asked = []

    def stay(dialog):
        asked.append(dialog.type)
        dialog.dismiss()

    page.on("dialog", stay)
    hand_in(page, person)
    wait_for_line(page, HELD)
    page.close(run_before_unload=True)
    wait_until(page, "document.querySelector('article .hint').textContent.includes('Before')")
    saved(page, "Save the receipt", person)
    wait_until(page, "document.querySelector('article .hint').textContent.includes('is saved')")
    with page.expect_event("close"):
        page.close(run_before_unload=True)
    assert asked == ["beforeunload"]


# Interruptions ------------------------------------------------------------------------------


def slow(context, page, bytes_per_s):
    """Let the page send so much a second; -1: as much as it can."""
    session = context.new_cdp_session(page)
    session.send(
        "Network.emulateNetworkConditions",
        {
            "offline": False,
            "latency": 0,
            "downloadThroughput": -1,
            "uploadThroughput": bytes_per_s,
        },
    )
    return session


def wait_for_part(page):
    """Return once some of a file was sent, and not all of it."""
    wait_until(page, "(document.querySelector('article progress')?.value ?? 0) > 0.02")


def stored_bytes(bistros) -> int:
    return sum(each._core.stored_bytes for each in bistros)


@pytest.fixture
def large(person):
    path = person / "large.bin"
    path.write_bytes(bytes(range(256)) * 12_000)  # 3 MB
    return path


@pytest.mark.slow
def test_reloaded_in_mid_upload_it_goes_on_from_where_it_was(
    context, world, both_bistros, person, large
):
    before = stored_bytes(both_bistros)
    page = opened(context, world)
    slow(context, page, 100_000)
    hand_in(page, person, large)
    wait_for_line(page, "sends to server")
    wait_for_part(page)
    # A server has some of what the page believes it has sent.
    until(lambda: page.evaluate("0") or stored_bytes(both_bistros) > before, "what was sent")
    offsets = []
    context.on(
        "request",
        lambda request: (
            offsets.append(int(request.headers.get("upload-offset", -1)))
            if request.method == "PATCH"
            else None
        ),
    )
    page.on("dialog", lambda dialog: dialog.accept())
    page.reload()
    slow(context, page, -1)
    wait_for_line(page, HELD)
    assert offsets[0] > 0
    leave(page)


@pytest.mark.slow
def test_without_network_for_a_while_it_goes_on(context, world, both_bistros, person, large):
    page = opened(context, world)
    slow(context, page, 100_000)
    hand_in(page, person, large)
    wait_for_line(page, "sends to server")
    wait_for_part(page)
    context.set_offline(True)
    time.sleep(2)
    context.set_offline(False)
    slow(context, page, -1)
    wait_for_line(page, HELD)
    leave(page)


@pytest.mark.slow
def test_sealed_offline_it_is_handed_in_once_the_network_is_back(
    context, world, both_bistros, person
):
    page = opened(context, world)
    wait_until(page, "document.getElementById('left').textContent.includes(\"services' clock\")")
    context.set_offline(True)
    hand_in(page, person)
    wait_for_line(page, "Sealed and kept here")
    context.set_offline(False)
    wait_for_line(page, HELD)
    leave(page)


@pytest.mark.slow
def test_of_three_tabs_one_works_and_another_goes_on_when_it_is_closed(
    context, world, both_bistros, person
):
    def is_commit(url):
        return url.endswith("/commit")

    context.route(is_commit, lambda route: route.abort())
    first, second, third = (opened(context, world) for _ in range(3))
    hand_in(first, person)
    for page in (first, second, third):
        wait_for_line(page, "Sealed and kept here")
    leave(first)
    context.unroute(is_commit)
    wait_for_line(second, HELD)
    wait_for_line(third, HELD)
    texts = [saved(page, "Save the receipt", person).read_text() for page in (second, third)]
    assert texts[0] == texts[1]
    assert len(json.loads(texts[0])["bistro_receipts"]) == 1
    leave(second)
    leave(third)


def lose_ciphertexts(page):
    page.evaluate(
        """async () => {
            const name = (await indexedDB.databases())[0].name;
            const found = await new Promise((resolve) => {
                const request = indexedDB.open(name);
                request.onsuccess = () => resolve(request.result);
            });
            const change = found.transaction("parts", "readwrite");
            change.objectStore("parts").clear();
            await new Promise((resolve) => { change.oncomplete = resolve; });
        }"""
    )


@pytest.mark.slow
def test_a_bistro_is_asked_by_the_owner_to_forget_what_was_begun_before_it_was_sealed_anew(
    context, world, both_bistros, person, large
):
    page = opened(context, world)
    slow(context, page, 100_000)
    hand_in(page, person, large)
    wait_for_line(page, "sends to server")
    wait_for_part(page)
    lose_ciphertexts(page)
    page.on("dialog", lambda dialog: dialog.accept())
    page.reload()
    slow(context, page, -1)
    wait_for_line(page, "has lost what was sealed")
    # What the browser asks beforehand, whether it may, is no request of the page.
    with page.expect_response(lambda each: each.request.method == "DELETE") as waiting:
        page.set_input_files("article input[type=file]", large)
    wait_for_line(page, HELD)
    receipt = read_receipt(saved(page, "Save the receipt", person).read_bytes())
    request = waiting.value.request
    key = next(each.key for each in world.event.bistros if request.url.startswith(each.url))
    said = give_up_statement(world.event.id, key, request.url.rpartition("/")[2])
    signature = base64.b64decode(request.all_headers()["datacollect-signature"])
    assert is_by_key(said, signature, receipt.commitment.owner)
    assert waiting.value.status == 204
    leave(page)


@pytest.mark.slow
def test_a_lost_ciphertext_is_sealed_anew_from_the_same_file_alone(
    browser, world, both_bistros, person
):
    """No bistro is there at first; before one comes the browser has lost the ciphertext."""
    with browser.new_context(viewport=WIDE, locale="en", **CONTEXT) as context:
        context.route("**/tus/**", lambda route: route.abort())
        page = opened(context, world)
        hand_in(page, person)
        wait_for_line(page, READY)
        lose_ciphertexts(page)
        page.on("dialog", lambda dialog: dialog.accept())
        page.reload()
        wait_for_line(page, "has lost what was sealed")
        (person / "other.txt").write_bytes(b"other")
        page.set_input_files("article input[type=file]", person / "other.txt")
        wait_until(page, "document.querySelector('article .note').textContent.includes('not what')")
        context.unroute("**/tus/**")
        page.set_input_files("article input[type=file]", person / "Übung 1.txt")
        wait_for_line(page, HELD)
        receipt = read_receipt(saved(page, "Save the receipt", person).read_bytes())
        word = read_bistro_receipt(receipt.bistro_receipts[0], world.event)
        assert word.sealed_anew
        assert word.sha256 != receipt.commitment.ciphertext_sha256
        leave(page)


@pytest.mark.slow
def test_what_the_page_keeps_is_gone_on_with_by_the_command(
    browser, world, both_bistros, person, monkeypatch, capsys
):
    """The page finds no bistro; `upload` sends what it has saved."""
    monkeypatch.setenv("SSL_CERT_FILE", str(world.world.authority))
    with browser.new_context(viewport=WIDE, locale="en", **CONTEXT) as context:
        context.route("**/tus/**", lambda route: route.abort())
        page = opened(context, world)
        hand_in(page, person)
        wait_for_line(page, READY)
        saved(page, "Save the receipt", person)
        keep = saved(page, r"\.keep$", person)
        leave(page)
    assert run(["upload", keep.name, "--event", str(world.event_file), "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)["files"]
    assert told["outcome"] == "in time"
    assert told["held_by"] in ("north", "south")


@pytest.mark.slow
def test_bistro_that_has_nothing_for_ever_is_left_for_one_that_takes_the_file(
    context, world, both_bistros, person
):
    tried, taking = [], []
    statuses = {"POST": 201, "PATCH": 204, "HEAD": 200, "OPTIONS": 204}
    headers = {
        "Access-Control-Allow-Origin": "*",
        "Access-Control-Allow-Methods": "POST, PATCH, HEAD, DELETE",
        "Access-Control-Allow-Headers": "*",
        "Access-Control-Expose-Headers": "Location, Upload-Offset",
        "Location": "a",
        "Upload-Offset": "0",
    }

    def answer(route):
        """The first that is asked takes all it is sent, and says that it has nothing."""
        place, method = urlsplit(route.request.url).port, route.request.method
        if not taking:
            taking.append(place)
        if place != taking[0]:
            route.continue_()
            return
        tried.append(method)
        route.fulfill(status=statuses[method], headers=headers)

    context.route("**/tus/**", answer)
    page = opened(context, world)
    hand_in(page, person)
    wait_for_line(page, HELD)
    # Five tries.
    assert tried.count("PATCH") == 5
    leave(page)


# What the destination says ---------------------------------------------------------------------


def say_verdict(context, world, word, why=""):
    """Have the destination's log say this of whatever entry it is asked for."""

    def answer(route):
        entry = bytes.fromhex(urlsplit(route.request.url).path.removeprefix("/verdict/"))
        said = Verdict(world.event.id, entry, word, why).data
        log = world.event.verdicts.name
        proof = proof_of(said, log, int(time.time()), service="verdicts").data.decode()
        route.fulfill(
            status=200,
            headers={"Access-Control-Allow-Origin": "*"},
            body=json.dumps({"verdict": said.decode(), "proof": proof}),
        )

    context.route(f"{world.event.verdicts_url}/verdict/*", answer)


@pytest.mark.slow
@pytest.mark.parametrize("other", ["", "ab" * 32])
def test_what_is_collected_is_said_to_be_and_stands_in_the_receipt(
    context, world, both_bistros, person, other
):
    """Also of a draft that another has superseded, and that counts again."""
    say_verdict(context, world, "collected", other)
    page = opened(context, world)
    hand_in(page, person)
    wait_for_line(page, "and collected by")
    receipt = read_receipt(saved(page, "Save the receipt", person).read_bytes())
    found = verify(world.event_file.read_bytes(), receipt, amendments=[])
    assert found.collected_s is not None
    leave(page)


@pytest.mark.slow
@pytest.mark.parametrize("why", [each for each in REASONS if each != DOES_NOT_OPEN])
def test_what_is_refused_is_said_with_its_reason(context, world, both_bistros, person, why):
    say_verdict(context, world, "refused", why)
    page = opened(context, world)
    hand_in(page, person)
    wait_for_line(page, f"the destination refused it: it {why}.")
    leave(page)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("is_own", "said"),
    [(True, "another of your hand-ins counts instead"), (False, "lacks your ticket's mark")],
)
def test_whose_entry_stands_in_a_drafts_place_is_seen_by_its_mark(
    context, world, both_bistros, person, is_own, said
):
    key = own_mark_key(world.event, Ticket.from_file(person / "my.ticket").key)
    other = bytes(24) + (key.mark(bytes(24)) if is_own else bytes(8))
    say_verdict(context, world, "superseded", other.hex())
    page = opened(context, world)
    hand_in(page, person)
    wait_for_line(page, said)
    leave(page)


@pytest.mark.slow
def test_what_does_not_open_is_sealed_anew_from_the_same_file(context, world, both_bistros, person):
    say_verdict(context, world, "refused", "does not open")
    page = opened(context, world)
    hand_in(page, person)
    wait_for_line(page, "says that it cannot open it")
    page.set_input_files("article input[type=file]", person / "Übung 1.txt")
    wait_for_line(page, HELD)
    receipt = read_receipt(saved(page, "Save the receipt", person).read_bytes())
    words = [read_bistro_receipt(each, world.event) for each in receipt.bistro_receipts]
    assert [word.sealed_anew for word in words] == [False, True]
    leave(page)


def break_words(context, world, i, indices, late_s=None):
    """Have a service acknowledge whatever it is sent, each time elsewhere, and hold nothing.

    But once it proves a late time, where one is given.
    """
    service, allowed = world.event.services[i], {"Access-Control-Allow-Origin": "*"}
    late = [] if late_s is None else [late_s]

    def commit(route):
        entry = bytes.fromhex(json.loads(route.request.post_data)["entry"])
        at_s = int(time.time())
        word = acknowledge(service.log.name, entry, len(indices), at_s, key_of(f"s{i}"))
        signature = base64.b64encode(word.signature).decode()
        tree = {"index": word.index, "time_s": at_s, "signature": signature}
        indices.append(word.index)
        route.fulfill(status=200, headers=allowed, body=json.dumps(tree))

    def prove(route):
        if not late:
            route.fulfill(status=404, headers=allowed)
            return
        entry = bytes.fromhex(urlsplit(route.request.url).path.removeprefix("/proof/"))
        proof = proof_of(entry, service.log.name, late.pop(), service=f"s{i}")
        route.fulfill(status=200, headers=allowed, body=proof.data)

    context.route(f"{service.url}/commit", commit)
    context.route(f"{service.url}/proof/*", prove)


@pytest.mark.slow
def test_a_receipt_stays_short_where_services_give_their_word_and_break_it_again_and_again(
    context, world, person
):
    """The first words and the last are kept; each is evidence against its service."""
    said = [[], []]
    for i, indices in enumerate(said):
        break_words(context, world, i, indices)
    page = opened(context, world)
    hand_in(page, person)

    def are_many():
        # Waits end early where the network is back.
        page.evaluate("dispatchEvent(new Event('online'))")
        page.wait_for_timeout(50)
        return min(map(len, said)) > 2 * MOST_WORDS

    until(are_many, "words of both services")
    receipt = read_receipt(saved(page, "Save the receipt", person).read_bytes())
    for service in world.event.services:
        own = [w.index for w in receipt.acknowledgements if w.log == service.log.name]
        assert len(own) <= MOST_WORDS
        assert own[0] == 0
        assert own[-1] >= 2 * MOST_WORDS - 1
    leave(page)


@pytest.mark.slow
def test_services_that_break_their_words_once_a_late_time_is_proved_are_left_alone(
    context, world, person
):
    said = [[], []]
    for i, indices in enumerate(said):
        break_words(context, world, i, indices, late_s=world.event.latest_s + 100)
    page = opened(context, world)
    hand_in(page, person)
    wait_for_line(page, "Late")

    def is_quiet():
        before = sum(map(len, said))
        for _ in range(10):
            # Waits end early where the network is back.
            page.evaluate("dispatchEvent(new Event('online'))")
            page.wait_for_timeout(100)
        return sum(map(len, said)) == before

    # For ten seconds one more witness might make it one in time.
    until(is_quiet, "that nobody is asked any more")
    leave(page)


# Who cannot see it, or has no mouse -----------------------------------------------------------


@pytest.mark.slow
def test_what_a_screen_reader_reads_of_the_card_comes_first_and_is_said_once(
    browser, world, both_bistros, person
):
    """And nothing for axe to object to in the dark; `test_card` asks it in the light."""
    source = package_file("axe-core/axe.min.js").read_text()
    look = {"viewport": NARROW, "color_scheme": "dark", "locale": "en"}
    with browser.new_context(**look, **CONTEXT) as context:
        page = opened(context, world)
        page.evaluate(source)
        hand_in(page, person)
        wait_for_line(page, HELD)
        page.click("summary")
        assert page.evaluate("axe.run()")["violations"] == []
        title, name = "Not collected yet: look again later", "Übung 1.txt"
        rows = page.locator("main").aria_snapshot().splitlines()
        # The first one is the place itself; what has a colon is quoted.
        said = [row.strip("- ").replace("'", "") for row in rows[1:]]
        assert said[0].startswith(f'status: "{name}: {title}. You were in time')
        assert said[1:4] == [
            'region "Your hand-in":',
            'heading "Your hand-in" [level=2]',
            f'article "{title} {name}":',
        ]
        assert said[4] == f'heading "{title}" [level=3]'
        assert [each for each in said if each.startswith("status: ") and title in each] == said[:1]
        leave(page)


@pytest.mark.slow
def test_the_keyboard_alone_hands_in_and_saves(context, world, both_bistros, person):
    page = opened(context, world)

    def tab_to(selector):
        for _ in range(30):
            page.keyboard.press("Tab")
            if page.evaluate(f"document.activeElement.matches({json.dumps(selector)})"):
                return
        raise AssertionError(f"the keyboard does not reach {selector}")

    # Listened for from now on: Playwright is not asked to by the first key.
    choosers = []

    def note(chooser):
        choosers.append(chooser)

    page.on("filechooser", note)
    for name, path in (("#file", "Übung 1.txt"), ("#ticket", "my.ticket")):
        tab_to(name)
        page.keyboard.press("Space")
        until(lambda: page.evaluate("0") or choosers, "a file chooser")
        choosers.pop().set_files(person / path)
        wait_until(page, f"document.querySelector('{name}').files.length === 1")
    wait_until(page, "document.getElementById('ticket-said').textContent.includes('this event')")
    tab_to("#submit")
    page.keyboard.press("Enter")
    wait_for_line(page, HELD)
    tab_to("article button")
    with page.expect_download() as waiting:
        page.keyboard.press("Space")
    assert waiting.value.suggested_filename.endswith(".receipt.json")
    assert page.get_attribute("#said", "role") == "status"
    leave(page)


# Large files --------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_large_file_takes_little_memory(browser, world, both_bistros, person):
    path = person / "huge.bin"
    with path.open("wb") as file:
        for _ in range(MANY_BYTES // 1_000_000):
            file.write(CONTENT[:100_000] * 10)
    with browser.new_context(viewport=WIDE, locale="en", **CONTEXT) as context:
        page = opened(context, world)
        session = context.new_cdp_session(page)
        heaps = Heaps(session)
        hand_in(page, person, path)
        while not any(HELD in line for line in lines(page)):
            heaps.look()
            time.sleep(0.1)
            assert page.text_content("#refusal") == ""
        assert 0 < heaps.most_bytes["page"] < 100_000_000
        assert 0 < heaps.most_bytes["worker"] < 100_000_000
        leave(page)


class Heaps:
    """The heaps of a page and of its worker, as the browser tells them."""

    def __init__(self, session) -> None:
        self.session = session
        self.most_bytes = {"page": 0, "worker": 0}
        self._worker = None
        self._n = 0
        session.on("Target.attachedToTarget", self._attached)
        session.on("Target.receivedMessageFromTarget", self._received)
        session.send(
            "Target.setAutoAttach",
            {"autoAttach": True, "waitForDebuggerOnStart": False, "flatten": False},
        )

    def _attached(self, event) -> None:
        if event["targetInfo"]["type"] == "worker":
            self._worker = event["sessionId"]

    def _received(self, event) -> None:
        with suppress(KeyError):
            self._note("worker", json.loads(event["message"])["result"])

    def _note(self, where, told) -> None:
        used = told["usedSize"] + told.get("embedderHeapUsedSize", 0)
        used += told.get("backingStorageSize", 0)
        self.most_bytes[where] = max(self.most_bytes[where], used)

    def look(self) -> None:
        self._note("page", self.session.send("Runtime.getHeapUsage"))
        if self._worker is None:  # it has yet to begin
            return
        self._n += 1
        message = json.dumps({"id": self._n, "method": "Runtime.getHeapUsage"})
        self.session.send(
            "Target.sendMessageToTarget", {"sessionId": self._worker, "message": message}
        )
