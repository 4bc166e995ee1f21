"""Receipts checked on the page say what Python's check says: small ones, made by hand."""

from __future__ import annotations

import base64
import hashlib
from contextlib import contextmanager
from dataclasses import replace

import pytest
from conftest import BROWSER_MS
from instances.events import (
    DEADLINE_S,
    event_bytes,
    key_of,
    marked_by,
    owner_key,
    owner_of,
    proof_of,
    ticket_of,
)
from instances.handing_pages import CONTEXT, served
from instances.watched_pages import wait_until

from datacollect.bistro.formats.custody.collected import collected_text
from datacollect.bistro.formats.custody.verdicts import Verdict
from datacollect.bistro.formats.event.amendments import sign_amendment
from datacollect.bistro.formats.event.file import read_event
from datacollect.bistro.formats.log.acknowledgement import acknowledge
from datacollect.bistro.formats.log.checkpoints import SignedCheckpoint
from datacollect.bistro.formats.log.content import content_digest, header_bytes
from datacollect.bistro.formats.log.entry import Commitment
from datacollect.bistro.formats.log.proofs import LogProof
from datacollect.bistro.formats.receipt.content_proof import proof_of_content
from datacollect.bistro.formats.receipt.receipt import PublishedAmendment, Receipt, amendments_data
from datacollect.bistro.formats.receipt.verify import verify
from datacollect.bistro.formats.sealing.keep import keep
from datacollect.bistro.formats.sealing.sealed import Inner
from datacollect.bistro.page.writing import write_page
from datacollect.bistro.person.items import commitment_of

SEALED = b"age-encryption.org/v1\nsealed"
VERDICTS = {"key": key_of("verdicts").public, "url": "https://verdicts.example"}
DATA = event_bytes(verdicts=VERDICTS)
EVENT = read_event(DATA)
LOG = EVENT.services[0].log.name
COMMITMENT = Commitment(
    EVENT.id, bytes(32), len(SEALED), hashlib.sha256(SEALED).digest(), b"p" * 32, owner_of("0")
)
COMMITMENT = marked_by(EVENT, COMMITMENT)
RECEIPT = Receipt(COMMITMENT)
ENTRY = RECEIPT.entry
LATEST_S = DEADLINE_S + EVENT.lag_s
NOTHING_TELLS = (
    "The page cannot tell how the file was sealed: choose its proof, too, or its .keep instead."
)
# The first line of the page, by outcome and what was shown.
SAID = {"in time": "In time: ", "late": "Late: ", "not proved": "This proves nothing."}


def proof(time_s=DEADLINE_S - 60, entry=ENTRY, log=LOG, **more):
    return proof_of(entry, log, time_s, **more)


def forged(found: LogProof) -> LogProof:
    """A proof whose first cosignature has one bit changed."""
    note = found.signed.note
    line = note.signatures[1]
    wrong = bytes([*line.signature[:-1], line.signature[-1] ^ 1])
    lines = (note.signatures[0], replace(line, signature=wrong), *note.signatures[2:])
    return replace(found, signed=replace(found.signed, note=replace(note, signatures=lines)))


def resigned(found: LogProof) -> LogProof:
    """A proof whose checkpoint another key has signed in the log's name."""
    other = proof(service="s1").signed.note.signatures[0]
    note = found.signed.note
    lines = (replace(note.signatures[0], signature=other.signature), *note.signatures[1:])
    return LogProof(
        found.index,
        found.hashes,
        SignedCheckpoint(found.signed.checkpoint, replace(note, signatures=lines)),
    )


def collected(why: str = "", shown: str | None = None) -> str:
    """The proof that it was collected; of a draft that counts again `why` is the other's entry.

    `shown`: what the line beside it says instead.
    """
    said = Verdict(EVENT.id, ENTRY, "collected", why)
    found = proof(entry=said.data, log=EVENT.verdicts.name, service="verdicts")
    return collected_text(found, said if shown is None else replace(said, why=shown))


def word(key="s0", index=0):
    return acknowledge(LOG, ENTRY, index, DEADLINE_S - 60, key_of(key))


OTHER = "ab" * 32
# Witnesses sign a second apart, the third makes the time: two seconds after the first.
CASES = {
    "in time": RECEIPT.with_more(proofs=[proof()]),
    "at the last second": RECEIPT.with_more(proofs=[proof(LATEST_S - 2)]),
    "a second late": RECEIPT.with_more(proofs=[proof(LATEST_S - 1)]),
    "late, and in time by another": RECEIPT.with_more(proofs=[proof(LATEST_S), proof()]),
    "too few": RECEIPT.with_more(proofs=[proof(n_witnesses=2)]),
    "four, of which the third counts": RECEIPT.with_more(
        proofs=[proof(LATEST_S - 2, n_witnesses=4)]
    ),
    "a forged cosignature": RECEIPT.with_more(proofs=[forged(proof())]),
    "another log's key": RECEIPT.with_more(proofs=[resigned(proof())]),
    "another entry": RECEIPT.with_more(proofs=[proof(entry=bytes(32))]),
    "a log of nobody": RECEIPT.with_more(proofs=[proof(log="nobody.example/0123456789abcdef")]),
    "nothing": RECEIPT,
    "a word alone": RECEIPT.with_more(acknowledgements=[word()]),
    "another's word": RECEIPT.with_more(acknowledgements=[word("s1")], proofs=[proof()]),
    "collected": replace(RECEIPT.with_more(proofs=[proof()]), collected=collected()),
    "collected again": replace(RECEIPT.with_more(proofs=[proof()]), collected=collected(OTHER)),
    "collected again, and what else there was is not said": replace(
        RECEIPT.with_more(proofs=[proof()]), collected=collected(OTHER, "")
    ),
    "collected again, and something else is said": replace(
        RECEIPT.with_more(proofs=[proof()]), collected=collected(OTHER, "cd" * 32)
    ),
    "collected, and something is said beside it": replace(
        RECEIPT.with_more(proofs=[proof()]), collected=collected("", OTHER)
    ),
    "collected, and what nobody reads is said beside it": replace(
        RECEIPT.with_more(proofs=[proof()]),
        collected=collected().replace("@v1\n", "@v1\nextra anything\n"),
    ),
    "another's verdict": replace(
        RECEIPT.with_more(proofs=[proof()]), collected=proof().data.decode()
    ),
    "of another event": replace(RECEIPT, commitment=replace(COMMITMENT, event=bytes(32))),
    "of an older event": replace(
        RECEIPT, commitment=replace(COMMITMENT, event=bytes(32), owner=None)
    ),
    "without a mark": replace(RECEIPT, commitment=replace(COMMITMENT, mark=None)),
    "of nobody": replace(RECEIPT, commitment=replace(COMMITMENT, owner=None)),
}


@contextmanager
def page_of(browser, folder, amendments=(), data=DATA):
    """The page without any service but one that knows amendments."""
    (folder / "event.toml").write_bytes(data)
    write_page(folder / "event.toml", folder / "page")

    def answer(route):
        if route.request.url.endswith("/amendments") and amendments is not None:
            body = amendments_data(EVENT.id, amendments)
            headers = {"Access-Control-Allow-Origin": "*"}
            route.fulfill(status=200, body=body, headers=headers)
        else:
            route.abort()

    new = browser.new_context(locale="en", timezone_id="UTC", **CONTEXT)
    with served(folder / "page") as url, new as context:
        context.route("https://*.example/**", answer)
        context.set_default_timeout(BROWSER_MS)
        page = context.new_page()
        page.goto(url)
        page.click("summary:has(#check-title)")
        yield page


@pytest.fixture(scope="module")
def page(browser, tmp_path_factory):
    with page_of(browser, tmp_path_factory.mktemp("checking")) as made:
        yield made


def checked(
    page, receipt: bytes, shown: bytes | None = SEALED, name="a.age", shows: bytes | None = None
) -> list[str]:
    """Return the lines that the page says of a receipt."""
    page.evaluate("document.getElementById('verdict').replaceChildren()")
    file = {"name": "a.receipt.json", "mimeType": "application/json", "buffer": receipt}
    page.set_input_files("#receipt", file)
    given = [] if shown is None else {"name": name, "mimeType": "", "buffer": shown}
    page.set_input_files("#shown", given)
    beside = [] if shows is None else {"name": "a.proof", "mimeType": "", "buffer": shows}
    page.set_input_files("#proof", beside)
    page.click("#check button")
    wait_until(page, "document.querySelectorAll('#verdict p').length > 0")
    return page.eval_on_selector_all("#verdict p", "all => all.map(each => each.textContent)")


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_the_page_says_of_a_receipt_what_python_says(page, case):
    receipt = CASES[case]
    first, *reasons = checked(page, receipt.data)
    of = receipt.commitment
    if of.event != EVENT.id or None in (of.owner, of.mark):
        assert (first, reasons) == (SAID["not proved"], ["The receipt is of another event."])
        return
    found = verify(DATA, receipt, ciphertext=[SEALED], amendments=[])
    assert first.startswith(SAID[found.outcome])
    assert ("the sealed file" in first) == (found.outcome != "not proved")
    assert len([each for each in reasons if "does not count" in each]) == len(
        [each for each in found.reasons if "does not count" in each]
    )
    assert ("and collected by" in first) == (found.collected_s is not None)


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        (b"age-encryption.org/v1\nother", "The sealed file is not the one that was handed in."),
        (b"a file", NOTHING_TELLS),
    ],
)
def test_another_file_than_the_receipts_proves_nothing(page, shown, said):
    first, *reasons = checked(page, CASES["in time"].data, shown)
    assert first == SAID["not proved"]
    assert said in reasons


def test_what_python_keeps_is_read_on_the_page(page, tmp_path):
    """A ``.keep`` and a receipt as `upload` makes them, whole and with one byte changed."""
    (tmp_path / "größe.txt").write_bytes(b"form")
    kept = keep(
        tmp_path / "größe.txt",
        tmp_path / "größe.txt.keep",
        event=EVENT.id,
        salt=bytes(32),
        inner=Inner('{"name":"größe.txt"}'.encode(), bytes(32), bytes(64)),
        owner=owner_key("0"),
        ticket=ticket_of(EVENT),
        recipients=EVENT.recipients,
    )
    receipt = Receipt(commitment_of(kept, EVENT))
    receipt = receipt.with_more(proofs=[proof(entry=receipt.entry)])
    data = (tmp_path / "größe.txt.keep").read_bytes()
    first, *_ = checked(page, receipt.data, data, "größe.txt.keep")
    assert first.startswith("In time: the sealed file")
    wrong = bytes([data[0] ^ 1]) + data[1:]
    first, *reasons = checked(page, receipt.data, wrong, "größe.txt.keep")
    assert first == SAID["not proved"]
    assert "The sealed file is not the one that was handed in." in reasons


def test_without_a_file_it_is_of_some_bytes(page):
    first, *reasons = checked(page, CASES["in time"].data, None)
    assert first.startswith("In time: some bytes, nobody knows which, existed by")
    assert "No file was given: choose the one that was handed in, and its proof." in reasons


FORM = b"a form"
INNER = Inner(
    header_bytes({"content": EVENT.content, "event": EVENT.id.hex(), "name": "form.pdf"}),
    bytes(range(32)),
    bytes(64),
)
OF_FORM = Receipt(
    marked_by(
        EVENT,
        replace(COMMITMENT, content=content_digest(INNER.secret, INNER.header, [FORM]), mark=None),
    )
)
SHOWN = OF_FORM.with_more(proofs=[proof(entry=OF_FORM.entry)])
PROOF = proof_of_content(OF_FORM.entry, INNER).data
OTHER_SECRET = proof_of_content(OF_FORM.entry, replace(INNER, secret=bytes(32))).data
NO_FILE = "The file is not the one that was handed in, or it was changed since."
NO_PROOF = "This is not the proof that belongs to this receipt: choose the one that was saved"


def test_with_its_proof_a_sentence_says_which_file_by_when_and_whether_it_was_collected(page):
    first, *_ = checked(page, SHOWN.data, FORM, "form.pdf", PROOF)
    when = "Apr 16, 2027, 3:59:01 AM UTC"
    unsaid = "nothing here proves that it was collected."
    assert first.replace("\u202f", " ") == f"In time: the file form.pdf existed by {when}; {unsaid}"
    said = Verdict(EVENT.id, OF_FORM.entry, "collected", "")
    found = proof(entry=said.data, log=EVENT.verdicts.name, service="verdicts")
    receipt = replace(SHOWN, collected=collected_text(found, said))
    first, *_ = checked(page, receipt.data, FORM, "form.pdf", PROOF)
    assert first.replace("\u202f", " ") == (
        f"In time: the file form.pdf was handed in by {when}, and collected by {when}."
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("receipt", "form", "shows", "said"),
    [
        (SHOWN, FORM + b"s", PROOF, NO_FILE),
        (SHOWN, b"", PROOF, NO_FILE),
        # Of another receipt: the same file, by the same secret, in another entry.
        (CASES["in time"], FORM, PROOF, NO_PROOF),
        (SHOWN, FORM, OTHER_SECRET, NO_FILE),
        *((SHOWN, FORM, each, NO_PROOF) for each in (b"", b"{}", b"\xff", PROOF * 100)),
        (SHOWN, FORM, PROOF.replace(b"proof/1", b"proof/2"), NO_PROOF),
        (SHOWN, FORM, PROOF.replace(b'"key"', b'"kay"'), NO_PROOF),
    ],
)
def test_a_proof_of_another_file_or_receipt_or_none_shows_nothing(page, receipt, form, shows, said):
    first, *reasons = checked(page, receipt.data, form, "form.pdf", shows)
    assert first == SAID["not proved"]
    assert any(each.startswith(said) for each in reasons)


@pytest.mark.slow
def test_what_a_proof_does_not_show_the_sealed_file_still_may(page):
    """Who gives a ``.keep`` or the sealed file, and the proof with it."""
    first, *_ = checked(page, SHOWN.data, SEALED, "a.age", PROOF)
    assert first.startswith("In time: the sealed file a.age existed by ")


@pytest.mark.slow
def test_of_an_event_whose_keeper_is_its_only_witness_that_is_said_in_each_language(
    browser, tmp_path
):
    data = event_bytes(n_witnesses=1, quorum=1, alone=True)
    event = read_event(data)
    of = marked_by(event, replace(COMMITMENT, event=event.id, mark=None))
    with page_of(browser, tmp_path, data=data) as page:
        for language, words in (
            ("en", "Its receipts prove nothing against that organiser"),
            ("de", "Ihre Belege beweisen nichts gegen ihn"),
            ("fr", "Ses reçus ne prouvent rien contre lui"),
        ):
            page.select_option("#language", language)
            assert words in page.text_content("details.warning p")
            assert any(words in each for each in checked(page, Receipt(of).data))


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"{}", b"[]", b"\xff"),
        *(b'{"format": "datacollect-receipt/1"}', b'{"format": "datacollect-receipt/2"}'),
        CASES["of nobody"].data.replace(b"receipt/1", b"receipt/2"),
        RECEIPT.data.replace(b"receipt/2", b"receipt/1"),
    ],
)
def test_what_is_no_receipt_is_said_to_be_none(page, text):
    (line,) = checked(page, text)
    assert line.startswith("This is not a receipt: ")


@pytest.mark.slow
@pytest.mark.parametrize("is_published", [True, False])
def test_a_later_deadline_counts_once_a_log_has_published_it(browser, tmp_path, is_published):
    """The receipt is a second late; the amendment moves the deadline by a day."""
    changes = {"deadline": "2027-04-16T23:59:59-04:00"}
    note = sign_amendment(EVENT, changes, 1, key_of("organiser"))
    proofs = (proof(entry=note),) if is_published else ()
    with page_of(browser, tmp_path, [PublishedAmendment(note, proofs)]) as page:
        moved = "2027-04-17 03:59:59 UTC" if is_published else "2027-04-16 03:59:59 UTC"
        wait_until(page, f"document.getElementById('deadline-utc').textContent === '{moved}'")
        first, *_ = checked(page, CASES["a second late"].data)
        assert first.startswith("In time: " if is_published else "Late: ")


@pytest.mark.slow
def test_where_no_service_answers_that_is_said(browser, tmp_path):
    with page_of(browser, tmp_path, None) as page:
        _, *reasons = checked(page, CASES["in time"].data)
        assert "Whether the deadline was moved is not known here." in reasons
        assert "by the clock of this device" in page.text_content("#left")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("language", "said"),
    [("en", "Nothing can be handed in here"), ("de", "Hier kann nichts abgegeben werden")],
)
def test_on_the_page_of_an_older_event_nothing_can_be_handed_in(browser, tmp_path, language, said):
    """No version writes such a page any more: somebody else has put the event into it."""
    older = DATA.replace(b"datacollect-event/2", b"datacollect-event/1")
    (tmp_path / "event.toml").write_bytes(DATA)
    write_page(tmp_path / "event.toml", tmp_path / "page")
    page_file = tmp_path / "page" / "index.html"
    put = [base64.b64encode(each).decode() for each in (DATA, older)]
    page_file.write_text(page_file.read_text().replace(*put))
    context = browser.new_context(locale=language, **CONTEXT)
    with served(tmp_path / "page") as url, context:
        asked = []
        context.on("request", lambda request: asked.append(request.url))
        context.set_default_timeout(BROWSER_MS)
        page = context.new_page()
        page.goto(url)
        wait_until(page, f"document.getElementById('refusal').textContent.includes('{said}')")
        assert page.is_disabled("#submit")
        assert {each.rpartition("/")[0] for each in asked} == {url}
