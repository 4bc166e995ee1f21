"""The card on top says what has become of a hand-in: in Chromium and Firefox, on real services."""

from __future__ import annotations

import base64
import http.server
import io
import json
import re
import ssl
import threading
import time
import zipfile
from contextlib import ExitStack, contextmanager

import pytest
from conftest import BROWSER_MS, chromium
from instances.events import event_bytes, key_of, proof_of, ticket_of
from instances.firefox import firefox
from instances.handing_pages import CONTEXT, PageWorld, served
from instances.watched_pages import wait_until
from instances.web_packages import package_file

from datacollect.bistro.formats.custody.verdicts import Verdict
from datacollect.bistro.formats.event.amendments import sign_amendment
from datacollect.bistro.formats.event.file import read_event
from datacollect.bistro.formats.event.marks import own_mark_key
from datacollect.bistro.formats.event.tickets import Ticket
from datacollect.bistro.formats.receipt.content_proof import read_content_proof
from datacollect.bistro.formats.receipt.receipt import read_receipt
from datacollect.bistro.formats.receipt.verify import ShownContent, verify
from datacollect.bistro.page.files import page_files

PHONE = {"width": 360, "height": 640}
# 320 x 256 is what 1280 x 1024 leaves at 400 %.
VIEWPORTS = ((320, 256), (360, 640), (768, 1024), (1280, 900))
LANGUAGES = {"en": "Hand in", "de": "Abgeben", "fr": "Rendre"}


class Destination:
    """A log of verdicts that says of entries what a test wants."""

    def __init__(self, event) -> None:
        self.says: dict[str, tuple[str, str]] = {}
        self.event = event

    def answer(self, entry: str) -> str | None:
        if entry not in self.says:
            return None
        said = Verdict(self.event.id, bytes.fromhex(entry), *self.says[entry]).data
        log = self.event.verdicts.name
        proof = proof_of(said, log, int(time.time()), service="verdicts").data.decode()
        return json.dumps({"verdict": said.decode(), "proof": proof})


@contextmanager
def destination(world):
    """Run it where the event says that it is."""
    made = Destination(world.event)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            told = made.answer(self.path.rpartition("/")[2])
            self.send_response(404 if told is None else 200)
            self.send_header("Access-Control-Allow-Origin", "*")
            self.end_headers()
            self.wfile.write((told or "").encode())

        def log_message(self, *_: object) -> None:
            pass

    port = int(world.event.verdicts_url.rpartition(":")[2])
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(*world.world.tls)
    with http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield made
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with ExitStack() as held:
        verdicts = {"key": key_of("verdicts").public, "url": "https://there.example"}
        made = PageWorld(tmp_path_factory.mktemp("card"), held, verdicts=verdicts)
        made.destination = held.enter_context(destination(made))
        made.start()
        for name in ("north", "south"):
            held.enter_context(made.bistro(name))
        yield made


@pytest.fixture(scope="module", params=["chromium", "firefox"])
def new_page(request):
    """Open a page of nothing, in one browser or the other, dark in the one."""
    if request.param == "firefox":
        # In the dark, with 10 MB for a site, as a phone that is nearly full.
        little = {"dom.quotaManager.temporaryStorage.fixedLimit": 50_000}
        dark = {"layout.css.prefers-color-scheme.content-override": 0}
        with firefox(**little, **dark) as browser:
            yield lambda viewport, _=None: browser.new_page(viewport)
        return
    with chromium() as browser:

        def opened(viewport, url=None):
            context = browser.new_context(viewport=viewport, locale="en", **CONTEXT)
            context.set_default_timeout(BROWSER_MS)
            page = context.new_page()
            page.on("dialog", lambda dialog: dialog.accept())
            room = {"origin": url, "quotaSize": 10_000_000}
            if url is not None:
                context.new_cdp_session(page).send("Storage.overrideQuotaForOrigin", room)
            return page

        yield opened


def opened(new_page, url, *, has_room=True):
    page = new_page(PHONE) if has_room else new_page(PHONE, url)
    page.goto(url)
    wait_until(page, "document.getElementById('event-id').textContent !== ''")
    # What it saves is kept where the test looks; and its network can be cut.
    page.evaluate(
        """() => {
            globalThis.blobs = [];
            const make = URL.createObjectURL;
            URL.createObjectURL = (blob) => (blobs.push(blob), make.call(URL, blob));
            const ask = globalThis.fetch;
            const none = () => Promise.reject(new TypeError());
            globalThis.fetch = (...all) => (globalThis.isCut ? none() : ask(...all));
        }"""
    )
    page.evaluate(f"() => {{ {package_file('axe-core/axe.min.js').read_text()} }}")
    return page


def assert_all_can_use_it(page):
    """Nothing for axe to object to, nothing cut off at any width, 400 % among them."""
    for width, height in VIEWPORTS:
        page.set_viewport_size({"width": width, "height": height})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    tags = json.dumps(["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"])
    told = page.evaluate(f"axe.run({{ runOnly: {tags} }})")
    assert [(each["id"], each["nodes"][0]["html"]) for each in told["violations"]] == []
    page.set_viewport_size(PHONE)


def card(page, where="#now"):
    """Return a card's texts by their places."""
    return page.evaluate(
        f"""() => {{
            const root = document.querySelector("{where} article");
            const parts = [...root.querySelectorAll("h3, p")];
            const texts = parts.map((each) => [each.className || each.tagName, each.textContent]);
            return Object.fromEntries(texts);
        }}"""
    )


def drop(page, **files):
    """Drop files: names, with anything for their ends, and texts."""
    told = json.dumps([[name.replace("__", "."), text] for name, text in files.items()])
    page.evaluate(
        f"""() => {{
            const dataTransfer = new DataTransfer();
            for (const [name, text] of {told}) {{
                dataTransfer.items.add(new File([text], name, {{ lastModified: 1 }}));
            }}
            const how = {{ dataTransfer, bubbles: true, cancelable: true }};
            document.body.dispatchEvent(new DragEvent("drop", how));
        }}"""
    )
    wait_until(page, "document.querySelector('#chosen li') !== null")


def rows(page, where="#chosen"):
    """Return what is said of each file of a list."""
    return page.evaluate(
        f"[...document.querySelectorAll('{where} li')].map((row) => "
        "(row.querySelector('p') ?? row).textContent)"
    )


def hand_in(page, path):
    page.set_input_files("#file", path)
    wait_until(page, "document.querySelector('#chosen li') !== null")
    page.evaluate("document.getElementById('submit').focus()")
    page.keyboard.press("Enter")


def wait_for(page, is_, name="", where="#now"):
    told = json.dumps([is_, name])
    wait_until(
        page,
        f"""() => {{
            // Waits end early where the network is back.
            dispatchEvent(new Event("online"));
            const [is, name] = {told};
            const root = document.querySelector("{where} article");
            return root?.className === is && root.querySelector(".name").textContent.includes(name);
        }}""",
    )


def assert_it_is_before_ones_eyes(page):
    wait_until(page, "document.activeElement === document.querySelector('#now article')")
    top = page.evaluate("document.activeElement.getBoundingClientRect().top")
    assert -1 <= top < PHONE["height"] / 4


def save(page, what="the receipt") -> bytes:
    page.evaluate(
        f"""() => [...document.querySelectorAll("#now button")]
            .find((each) => each.textContent === "Save {what}").click()"""
    )
    wait_until(page, "blobs.length > 0")
    told = page.evaluate(
        """async () => {
            const bytes = new Uint8Array(await blobs.pop().arrayBuffer());
            return btoa(bytes.reduce((text, byte) => text + String.fromCharCode(byte), ""));
        }"""
    )
    return base64.b64decode(told)


def checked(page, *paths) -> str:
    page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    page.evaluate("document.getElementById('verdict').replaceChildren()")
    for name, path in zip(("receipt", "shown", "proof"), paths, strict=True):
        page.set_input_files(f"#{name}", path)
    page.evaluate("document.querySelector('#check button').click()")
    wait_until(page, "document.getElementById('verdict').textContent !== ''")
    return page.text_content("#verdict")


# As older pages have noted whose receipts were saved.
SAVED_BEFORE = """async () => {
    const [{ name }] = await indexedDB.databases();
    const opened = await new Promise((resolve) => {
        const request = indexedDB.open(name);
        request.onsuccess = () => resolve(request.result);
    });
    const change = opened.transaction(["items", "said"], "readwrite");
    const items = change.objectStore("items").getAllKeys();
    items.onsuccess = () => change.objectStore("said").put(new Set(items.result), "saved");
    await new Promise((resolve) => { change.oncomplete = resolve; });
    opened.close();
}"""


def wait_for_hint(page, words):
    hint = "document.querySelector('#now article .hint').textContent"
    wait_until(page, f"{hint}.includes({json.dumps(words)})")


@pytest.mark.slow
def test_from_the_click_to_the_end(new_page, world, tmp_path, request):
    number = 70 + len(request.node.callspec.id)
    path = world.ticket_file(tmp_path, number)
    ticket = Ticket.from_file(path)
    (tmp_path / "form.pdf").write_bytes(b"form" * 1000)
    (tmp_path / "other.pdf").write_bytes(b"other" * 1000)
    page = opened(new_page, f"{world.url}/{ticket.link}")
    wait_until(page, "document.getElementById('ticket-said').textContent.includes('this event')")
    # A link has brought it: it is not asked for.
    assert page.evaluate("document.getElementById('ticket-field').hidden")
    assert_all_can_use_it(page)

    # Without a network nothing is proved, and a receipt proves nothing.
    page.evaluate("() => { globalThis.isCut = true; }")
    hand_in(page, tmp_path / "form.pdf")
    wait_for(page, "not_yet", "form.pdf")
    assert_it_is_before_ones_eyes(page)
    wait_until(page, "document.querySelector('#now .line').textContent.includes('kept here')")
    assert card(page)["H3"] == "…Not yet: keep this page open"
    save(page)
    wait_for_hint(page, "saved it too early. Save it again when")
    page.evaluate("() => { globalThis.isCut = false; }")

    # In time, and sent; not green before it is collected.
    wait_for(page, "held", "form.pdf")
    wait_for_hint(page, "saved it too early. Save it again now")
    assert "form.pdf: Not collected yet: look again later. You were in time" in page.text_content(
        "#said"
    )
    colour = page.evaluate("getComputedStyle(document.querySelector('#now h3')).color")
    red, green, _ = map(int, re.findall(r"\d+", colour)[:3])
    assert red > green
    # Whoever has no mouse comes to the buttons from the card.
    page.evaluate("document.querySelector('#now article').focus()")
    for name in ("Save the receipt", "Save the proof"):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == name
        page.keyboard.press("Space")
    wait_until(page, "blobs.length === 2")
    page.evaluate("() => { blobs.length = 0; }")
    receipt = read_receipt(save(page))
    wait_for_hint(page, "The receipt is saved")
    first = receipt.entry.hex()
    assert card(page)["code"] == f"Write this code down: {first[:5]}\u00a0{first[5:10]}"
    found = verify(world.event_file.read_bytes(), receipt, amendments=[])
    assert found.outcome == "in time"
    # Of which file, the proof shows to anybody; what that reveals is said beside it.
    proof = read_content_proof(save(page, "the proof"))
    assert proof.entry == receipt.entry
    shown = ShownContent(proof.opening(world.event.id), [b"form" * 1000])
    found = verify(world.event_file.read_bytes(), receipt, content=shown, amendments=[])
    assert (found.covers, found.is_the_one) == ("the file", True)
    assert "Anyone who sees the proof can test guesses" in card(page)["hint shows"]
    assert "Save the receipt and the proof" in card(page)["to-do"]
    assert_all_can_use_it(page)

    # The same bytes make no second draft.
    hand_in(page, tmp_path / "form.pdf")
    wait_until(page, "document.querySelector('#now .note').textContent.includes('exactly this')")
    assert_it_is_before_ones_eyes(page)
    assert page.evaluate("document.querySelectorAll('article').length") == 1

    # Of two drafts one counts, and is said to.
    hand_in(page, tmp_path / "other.pdf")
    wait_for(page, "held", "other.pdf")
    assert_it_is_before_ones_eyes(page)
    wait_for(page, "replaced", "form.pdf", "#items")
    assert "it does not count: other.pdf, handed in" in card(page, "#items")["line"]
    assert "Of your 2 hand-ins here, this one counts" in page.text_content("#now article")
    second = read_receipt(save(page)).entry.hex()
    wait_for_hint(page, "The receipt is saved")

    # Collected: done; the receipt that was saved proves less.
    says = world.destination.says
    says |= {first: ("collected", ""), second: ("collected", "")}
    wait_for(page, "done", "other.pdf")
    assert card(page)["H3"] == "✓Done"
    wait_for_hint(page, "More is proved now")
    assert page.evaluate("document.title").startswith("✓ Done")
    receipt_data = save(page)
    assert read_receipt(receipt_data).collected is not None
    wait_for_hint(page, "The receipt is saved")
    assert_all_can_use_it(page)
    # What is shown to somebody is checked without anything of what this browser knows.
    (tmp_path / "other.receipt.json").write_bytes(receipt_data)
    (tmp_path / "other.proof").write_bytes(save(page, "the proof"))
    assert "In time: the file other.pdf was handed in by " in checked(
        page, tmp_path / "other.receipt.json", tmp_path / "other.pdf", tmp_path / "other.proof"
    )
    assert "The file is not the one" in checked(
        page, tmp_path / "other.receipt.json", tmp_path / "form.pdf", tmp_path / "other.proof"
    )
    page.evaluate(SAVED_BEFORE)
    page.reload()
    wait_for(page, "done", "other.pdf")
    wait_for(page, "replaced", "form.pdf", "#items")
    # What an older page has noted as saved may lack what is proved by now.
    wait_for_hint(page, "More is proved now")

    # A third one, from elsewhere: what was collected is asked for until all is settled.
    mark = own_mark_key(world.event, ticket.key).mark(bytes(24))
    says[second] = ("superseded", (bytes(24) + mark).hex())
    wait_for(page, "replaced", "other.pdf")
    page.reload()
    wait_for(page, "replaced", "other.pdf")
    assert "another of your hand-ins counts instead" in card(page)["line"]

    # After the deadline, by the services' clock, a sentence stands where the form was.
    wait_until(page, "document.getElementById('left').textContent.includes(\"services' clock\")")
    page.evaluate("() => { const now = Date.now; Date.now = () => now() + 3 * 3_600_000; }")
    wait_until(page, "document.getElementById('form-section').hidden")
    assert page.text_content("#ended-title") == "The deadline has passed."
    assert "Nothing more can be handed in here" in page.text_content("#ended-said")
    assert page.evaluate("document.getElementById('ended').closest('[role=status]') !== null")
    page.close()


# What a browser keeps of what services have told before.
HEARD = """async () => {
    const [{ name }] = await indexedDB.databases();
    const opened = await new Promise((resolve) => {
        const request = indexedDB.open(name);
        request.onsuccess = () => resolve(request.result);
    });
    const change = opened.transaction("said", "readwrite");
    change.objectStore("said").put(%s, "amendments");
    await new Promise((resolve) => { change.oncomplete = resolve; });
    opened.close();
}"""


@pytest.mark.slow
def test_of_an_event_that_was_cancelled_one_card_says_so(new_page, alone, tmp_path):
    """Nothing more can be chosen; what waits for services that take nothing more is at its end."""
    event = read_event((tmp_path / "event.toml").read_bytes())
    (tmp_path / "form.pdf").write_bytes(b"form")
    page = opened(new_page, f"{alone}/{ticket_of(event).link}")
    hand_in(page, tmp_path / "form.pdf")
    wait_until(page, "document.querySelector('#now .line')?.textContent.includes('kept here')")
    why = "the exam is moved to March"
    note = sign_amendment(event, {"cancelled": why}, 1, key_of("organiser"))
    proof = proof_of(note, event.services[0].log.name, event.deadline_s - 86_400)
    rows = [{"note": note.decode(), "proofs": [proof.data.decode()]}]
    page.evaluate(HEARD % json.dumps(rows))
    page.reload()

    wait_until(page, "document.getElementById('ended')?.hidden === false")
    assert page.text_content("#ended-title").startswith("This event was cancelled on Apr 1")
    assert page.text_content("#ended-title").endswith(": nothing more is taken or collected.")
    assert f"“{why}”" in page.text_content("#ended-said")
    assert page.evaluate("document.getElementById('form-section').hidden")
    assert page.text_content("#left") == ""
    wait_for(page, "cancelled", "form.pdf")
    assert card(page)["H3"] == "–Event cancelled"
    assert card(page)["line"] == "The event was cancelled before anything was proved."
    page.evaluate(f"() => {{ {package_file('axe-core/axe.min.js').read_text()} }}")
    assert_all_can_use_it(page)
    for language, said in (("de", "abgesagt: es wird nichts"), ("fr", "a été annulé le")):
        page.select_option("#language", language)
        assert said in page.text_content("#ended-title")
    page.close()


# As a browser gives a folder that is dropped: a file, and another one in a folder.
FOLDER = """() => {
    const fileAt = (fullPath) => {
        const blob = new File(["x"], fullPath.split("/").at(-1), { lastModified: 1 });
        return { isFile: true, fullPath, file: (done) => done(blob) };
    };
    const folderOf = (...entries) => ({
        isDirectory: true,
        createReader: () => ({ readEntries: (done) => done(entries.splice(0, 1)) }),
    });
    DataTransferItem.prototype.webkitGetAsEntry = () =>
        folderOf(fileAt("/folder/a.txt"), folderOf(fileAt("/folder/sub/b.txt")));
}"""


@contextmanager
def page_alone(folder, **limits):
    """Serve the page of an event none of whose services is there."""
    data = event_bytes(limits={"commitments_per_ticket": 10, **limits})
    for name, content in page_files(data, read_event(data)).items():
        (folder / name).write_bytes(content)
    with served(folder) as url:
        yield url


@pytest.fixture
def alone(tmp_path):
    with page_alone(tmp_path, files=6, bytes=2000) as url:
        yield url


@pytest.mark.slow
def test_what_a_browser_has_no_room_for_is_named_before_it_is_sealed(new_page, tmp_path):
    """Also where it says that it has: so do private windows, and phones that are nearly full."""
    with page_alone(tmp_path, bytes=10**9) as url:
        event = read_event((tmp_path / "event.toml").read_bytes())
        page = opened(new_page, f"{url}/{ticket_of(event).link}", has_room=False)
        page.evaluate("() => { navigator.storage.estimate = async () => ({ quota: 1e10 }); }")
        (tmp_path / "large.bin").write_bytes(bytes(30_000_000))
        hand_in(page, tmp_path / "large.bin")
        refusal = "document.getElementById('refusal').textContent"
        wait_until(page, f"{refusal}.includes('not have enough space')")
        assert "needs 30 MB when it is sealed" in page.text_content("#refusal")
        # What was chosen is there still, and nothing was begun.
        assert len(rows(page)) == 1
        assert page.evaluate("document.querySelectorAll('article').length") == 0
        page.close()


@pytest.mark.slow
def test_where_an_event_takes_one_file_several_are_not_cut_to_one(new_page, tmp_path):
    with page_alone(tmp_path, files=1) as url:
        page = opened(new_page, url)
        assert page.text_content("#file-label") == "Your file"
        assert page.evaluate("document.getElementById('folder').hidden")
        drop(page, a="1", b="2")
        page.evaluate("document.getElementById('submit').click()")
        assert "takes one file at a time, and you have chosen 2" in page.text_content("#refusal")
        page.evaluate("document.querySelectorAll('#chosen button')[0].click()")
        assert (rows(page), page.text_content("#refusal")) == (["b, 1 byte ready to hand in"], "")
        # Another choice takes its place.
        (tmp_path / "c").write_bytes(b"3")
        page.set_input_files("#file", tmp_path / "c")
        wait_until(page, "document.querySelector('#chosen li').textContent.startsWith('c,')")
        assert len(rows(page)) == 1
        page.close()


@pytest.mark.slow
def test_five_files_are_handed_in_together_and_a_draft_replaces_the_whole(
    new_page, world, tmp_path, request
):
    path = world.ticket_file(tmp_path, 90 + len(request.node.callspec.id))
    page = opened(new_page, f"{world.url}/{Ticket.from_file(path).link}")
    wait_until(page, "document.getElementById('ticket-said').textContent.includes('this event')")
    texts = {"a.txt": "alpha", "b.pdf": "beta " * 100_000, "c.txt": "", "d.md": "d", "e.md": "e"}

    def drop_and_hand_in(remove=None):
        drop(page, **texts)
        if remove is not None:
            page.evaluate(f"document.querySelectorAll('#chosen button')[{remove}].click()")
        page.evaluate("document.getElementById('submit').click()")

    drop_and_hand_in()
    wait_for(page, "held", "5 files: a.txt, …")
    assert_it_is_before_ones_eyes(page)
    assert rows(page) == []
    assert [row.split()[-1] for row in rows(page, "#now")] == ["arrived"] * 5
    assert [row.split(",")[0] for row in rows(page, "#now")] == list(texts)
    # What is to be done stands above them, however many they are.
    parts = "[...document.querySelector('#now article').children].map((each) => each.className)"
    assert page.evaluate(parts).index("to-do") < page.evaluate(parts).index("files")
    assert_all_can_use_it(page)
    # One receipt, and a proof of each.
    receipt_data = save(page)
    receipt = read_receipt(receipt_data)
    assert "Save the receipt and all proofs" in card(page)["to-do"]
    with zipfile.ZipFile(io.BytesIO(save(page, "all proofs"))) as zipped:
        assert zipped.testzip() is None
        proofs = {name: zipped.read(name) for name in zipped.namelist()}
    assert list(proofs) == [f"{name}.proof" for name in texts]
    for index, (text, data) in enumerate(zip(texts.values(), proofs.values(), strict=True)):
        proof = read_content_proof(data)
        assert (proof.entry, proof.among.index, proof.among.count) == (receipt.entry, index, 5)
        content = proof.opening(world.event.id).digest([text.encode()])
        assert content == receipt.commitment.content
    page.evaluate("document.querySelectorAll('#now .files button')[1].click()")
    wait_until(page, "blobs.length > 0")
    assert page.evaluate("() => blobs.pop().text()").encode() == proofs["b.pdf.proof"]
    # Checked without anything of what this browser knows, a file at a time.
    for name, data in (("r.receipt.json", receipt_data), ("a.proof", proofs["a.txt.proof"])):
        (tmp_path / name).write_bytes(data)
    for text, verdict in (("alpha", "In time: the file a.txt"), ("beta", "This proves nothing")):
        (tmp_path / "a.txt").write_text(text)
        files = (tmp_path / "r.receipt.json", tmp_path / "a.txt", tmp_path / "a.proof")
        assert verdict in checked(page, *files)

    # The same five make no second draft; four are another one, in the place of the whole.
    drop_and_hand_in()
    wait_until(page, "document.querySelector('#now .note').textContent.includes('exactly this')")
    assert page.evaluate("document.querySelectorAll('article').length") == 1
    drop_and_hand_in(remove=1)
    wait_for(page, "held", "4 files: a.txt, …")
    assert [row.split(",")[0] for row in rows(page, "#now")] == ["a.txt", "c.txt", "d.md", "e.md"]
    wait_for(page, "replaced", "5 files: a.txt, …", "#items")
    assert "it does not count: 4 files: a.txt, …, handed in" in card(page, "#items")["line"]
    page.close()


@pytest.mark.slow
def test_what_can_be_chosen_said_and_read_without_any_service(new_page, alone):
    page = opened(new_page, alone)

    # All that is dropped is in the list, in one order, each with its size and how it is.
    drop(page, c__pdf="", a__pdf="x", b__pdf="xx")
    assert rows(page) == [
        "a.pdf, 1 byte ready to hand in",
        "b.pdf, 2 bytes ready to hand in",
        "c.pdf, 0 bytes ready to hand in; it is empty",
    ]
    assert page.text_content("#taken") == "3 files, 3 bytes in all."
    assert page.evaluate("document.getElementById('file').files.length") == 3
    assert page.evaluate("document.activeElement.id") == "submit"
    assert_all_can_use_it(page)
    # One is removed; the next one's button has the focus then.
    page.evaluate("document.querySelectorAll('#chosen button')[0].click()")
    assert [row.split(",")[0] for row in rows(page)] == ["b.pdf", "c.pdf"]
    assert page.evaluate("document.activeElement.ariaLabel") == "Remove b.pdf"
    # What is added joins them; the very same one does not.
    drop(page, d__pdf="x", b__pdf="xx")
    assert page.evaluate("document.querySelectorAll('#chosen li').length") == 3

    # What cannot be is said beside each, before anything is sealed, and stands first.
    page.evaluate("document.getElementById('remove-all').click()")
    assert (rows(page), page.text_content("#taken")) == ([], "")
    drop(page, **{"a": "1", "long" * 75: "2", "odd\\name": "3", "z": "4"})
    drop(page, a="other")
    again = "rename it, and choose it again"
    assert [row.partition("byte")[2].lstrip("s ") for row in rows(page)] == [
        "another file or folder has the same name: remove one, or rename it and choose it again",
        "another file or folder has the same name: remove one, or rename it and choose it again",
        f"its name is too long: {again}",
        f"its name has a character that not every computer can write: {again}",
        "ready to hand in",
    ]
    page.evaluate("document.getElementById('submit').click()")
    assert "4 of your files cannot be handed in as they are" in page.text_content("#refusal")
    assert page.evaluate("document.activeElement.id") == "refusal"
    assert len(rows(page)) == 5
    assert_all_can_use_it(page)
    page.evaluate("document.getElementById('remove-all').click()")
    drop(page, **{f"{i}": "x" for i in range(7)})
    assert "You have chosen 7 files, and one hand-in may have 6" in page.text_content("#refusal")
    page.evaluate("document.querySelectorAll('#chosen button')[0].click()")
    assert page.text_content("#refusal") == ""
    drop(page, **{"0": "x" * 2001})
    page.evaluate("document.querySelectorAll('#chosen button')[1].click()")
    assert "sealed, a hand-in may have at most 2 kB" in page.text_content("#refusal")
    assert page.evaluate("document.querySelectorAll('article').length") == 0
    page.evaluate("document.getElementById('remove-all').click()")

    # A folder comes with all that lies in it.
    page.evaluate(FOLDER)
    drop(page, folder="")
    assert rows(page) == [
        "folder/a.txt, 1 byte ready to hand in",
        "folder/sub/b.txt, 1 byte ready to hand in",
    ]
    page.evaluate("document.getElementById('remove-all').click()")
    # What is dropped on the field of a receipt is that field's.
    how = "new DragEvent('drop', { bubbles: true, cancelable: true })"
    assert page.evaluate(f"document.getElementById('receipt').dispatchEvent({how})")
    assert not page.evaluate(f"document.getElementById('submit').dispatchEvent({how})")

    # Each language whole, and in its own way.
    dates = set()
    for language, submit in LANGUAGES.items():
        page.select_option("#language", language)
        assert page.evaluate("document.documentElement.lang") == language
        assert page.text_content("#submit") == submit
        dates.add(page.text_content("#deadline"))
        page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
        assert_all_can_use_it(page)
    assert len(dates) == len(LANGUAGES)

    # A device's clock alone closes no form, if it is not off by more than a day.
    page.evaluate("() => { globalThis.now = Date.now; }")
    deadline_ms = page.evaluate("Date.parse(document.getElementById('deadline-utc').textContent)")
    for more_h, is_closed in ((1, False), (25, True), (1, False)):
        page.evaluate(f"() => {{ Date.now = () => {deadline_ms} + {more_h} * 3_600_000; }}")
        closed = "document.getElementById('form-section').hidden"
        wait_until(page, f"{closed} === {json.dumps(is_closed)}")
    page.close()
