"""What the page's script says, signs, keeps and sends beside what Python does, byte by byte.

The script's own sources run in node: what it makes of an item is held against what Python makes of
the same, and each reads what the other has written.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest
from conftest import REPOSITORY
from instances.events import (
    DEADLINE_S,
    before_proofs,
    event_bytes,
    key_of,
    owner_key,
    proof_of,
    ticket_of,
)
from instances.web_packages import web_folder

from datacollect.bistro.formats.event.amendments import amended
from datacollect.bistro.formats.event.file import read_event
from datacollect.bistro.formats.event.statements import (
    commit_statement,
    give_up_statement,
    hand_in_statement,
    push_statement,
)
from datacollect.bistro.formats.event.tickets import LINK_MARK, new_ticket, number_of
from datacollect.bistro.formats.log.checkpoints import log_key
from datacollect.bistro.formats.log.commit import Commit, read_commit
from datacollect.bistro.formats.log.content import content_digest, header_bytes
from datacollect.bistro.formats.log.entry import Commitment
from datacollect.bistro.formats.log.notes import signed
from datacollect.bistro.formats.receipt.content_proof import proof_of_content
from datacollect.bistro.formats.receipt.receipt import PublishedAmendment, Receipt, read_receipt
from datacollect.bistro.formats.receipt.upload_wish import Admission, push_metadata
from datacollect.bistro.formats.receipt.verify import published
from datacollect.bistro.formats.sealing.keep import (
    Kept,
    Sealing,
    Source,
    ciphertext_of,
    keep,
    keep_files,
    read_keep,
)
from datacollect.bistro.formats.sealing.sealed import Inner
from datacollect.bistro.person.items import commitment_of
from datacollect.net.keys import PrivateKey, public_key_bytes

BISTRO = {
    "name": "north",
    "url": "https://north.example/a",
    "key": key_of("north").public,
    "fingerprint": "sha256:" + "0" * 64,
}
VERDICTS = {"key": key_of("dest").public, "url": "https://dest.example"}
PROVED_S, UPLOAD = DEADLINE_S - 60, "0123456789abcdef" * 2
EVENT_DATA = {
    "tickets": event_bytes(bistros=[BISTRO]),
    "tickets, marks": event_bytes(bistros=[BISTRO], verdicts=VERDICTS),
    "open": event_bytes(bistros=[BISTRO], admission="open", verdicts=VERDICTS),
    "without proofs": before_proofs(event_bytes(bistros=[BISTRO])),
}
# Of those who hand in: letters that JSON writes in several ways.
NAMES = ["thesis.pdf", "Übung 1.txt", 'a "b" \\ \x7f \u2028 😀\t.txt']
MTIME_MS = 1_800_000_000_123

SCRIPT = """
import { readFileSync } from "node:fs";
import { base64, hex, textOf, unhex, utf8 } from "./bytes.js";
import { contentCode, entryOf, headerText, openedCode, openingOf } from "./commitment.js";
import { amended, linkedTicketText, readEvent, readTicket } from "./event.js";
import { filesHeaderText, frame, nameFaults } from "./files.js";
import { keepOf, readKeep } from "./keep.js";
import { markOf } from "./marks.js";
import { publicKey, publicText } from "./notes.js";
import { readReceipt, receiptFile, verdictOf } from "./receipt.js";
import { commit } from "./services.js";
import { hasProofs, proofTexts, readShown } from "./showing.js";
import * as statements from "./statements.js";
import { metadataText } from "./wish.js";

const given = JSON.parse(readFileSync(0, "utf8"));
const bytesOf = async (blob) => base64.encode(new Uint8Array(await blob.arrayBuffer()));

// What is sent instead of being sent.
const sent = [];
globalThis.fetch = async (url, { body }) => {
  sent.push([url, body]);
  return new Response('{"index": 0, "time_s": 0, "signature": ""}');
};

const each = (values, act) =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, act(value)]));

async function made({ event: data, item, keep, upload }) {
  const event = readEvent(base64.decode(data));
  const [bistro] = event.bistros;
  const [service] = event.services;
  item.mark = await markOf(item, event);
  const entry = entryOf(item);
  const { size, ciphertext_sha256 } = item.anew ?? item;
  const { key } = bistro;
  const ticket = item.id ?? "0".repeat(32);
  const said = {
    commit: statements.commitStatement(event.id, service.log.key, [entry, event.id]),
    push: statements.pushStatement(event.id, key, entry, ciphertext_sha256, size, ticket),
    give_up: statements.giveUpStatement(event.id, key, upload),
    hand_in: statements.handInStatement(event.id, item.salt, item.owner),
  };
  await commit(service, entry, item, new AbortController().signal);
  const kept = await readKeep(new Blob([base64.decode(keep)]));
  const { ciphertext, file, ...told } = kept;
  const again = { ...told, bytes: file.bytes, mtime_ms: file.mtime_ns / 1e6 };
  return {
    entry,
    owner: statements.publicOf(item.owner_seed),
    header: headerText(event.id, item.name, item.id, event.content),
    proof: hasProofs(item) ? proofTexts(item)() : null,
    said: each(said, textOf),
    signed: each(said, (bytes) => hex(statements.sign(item.owner_seed, bytes))),
    commit: sent.pop(),
    metadata: metadataText(item, event, bistro),
    receipt: await bytesOf(receiptFile(item)),
    kept: await bytesOf(keepOf(ciphertext, again)),
    keep: await bytesOf(keepOf(new Blob(["sealed"]), { ...item, mtime_ms: 0 })),
  };
}

// What the values of the page of bytes are by the script, in the same places.
async function valued(vectors) {
  const event = readEvent(utf8(vectors.event.inputs.file));
  const inputs = each(vectors, (vector) => vector.inputs);
  const { content_code: content, commit_statement: committed } = inputs;
  const { push_statement_of_the_owner: pushed } = inputs;
  const { give_up_statement: given_up, hand_in_statement: handed_in } = inputs;
  const codeOf = ({ secret, header, file }) =>
    hex(contentCode(secret, header).update(utf8(file)).digest());
  const opened = (name) => {
    const { event: _, ...codes } = openingOf(inputs[name].secret, inputs[name].header);
    return { ...codes, content_p: codeOf(inputs[name]) };
  };
  // Each proof is read again, as whoever is shown it does, with the receipt and the file.
  const several = (name) => {
    const { entry, secret, header, files } = inputs[name];
    const { event: of, files: n, ticket } = JSON.parse(header);
    const made = contentCode(secret, header);
    const body = files.map(({ name: each, file }) => {
      made.begin(each);
      made.update(utf8(file));
      return textOf(frame(each, utf8(file).length)) + file;
    });
    const content_p = hex(made.digest());
    const named = files.map((each, i) => ({ ...each, code: made.codes[i] }));
    // Of that entry, whatever it was made of.
    const proofOf = proofTexts({ ...inputs.entry, secret, header, files: named });
    const proofs = files.map((_, i) => proofOf(i).replace(/"entry":"[^"]*"/, `"entry":"${entry}"`));
    const opened = files.map(({ file }, i) => {
      const shown = readShown(utf8(proofOf(i)), inputs.entry);
      return hex(openedCode({ ...shown, event: of }).update(utf8(file)).digest());
    });
    const isOpened = opened.every((each) => each === content_p);
    const isAgain = isOpened && filesHeaderText(of, n, ticket) === header;
    const told = base64.encode(utf8(body.join("")));
    return { body: told, codes: made.codes, content_p, proofs, isAgain };
  };
  // Read as whoever is shown a proof reads it: with a receipt of that entry, and no secret.
  const { proof_file: { value: proof, inputs: shown } } = vectors;
  const receipt = { ...inputs.entry, content_p: proof.content_p, mark: shown.entry.slice(48) };
  const code = openedCode(readShown(utf8(proof.file), receipt)).update(utf8(shown.file));
  const said = {
    commit_statement: statements.commitStatement(
      committed.event, publicKey(committed.log_key), committed.entries),
    push_statement_of_the_owner: statements.pushStatement(
      pushed.event, publicKey(pushed.bistro_key), pushed.entry, pushed.sha256, pushed.size,
      pushed.ticket),
    give_up_statement: statements.giveUpStatement(
      given_up.event, publicKey(given_up.bistro_key), given_up.upload),
    hand_in_statement: statements.handInStatement(
      handed_in.event, handed_in.salt, handed_in.owner),
  };
  said.push_statement_of_the_ticket = said.push_statement_of_the_owner;
  const signed = Object.entries(said).map(([name, bytes]) => {
    const { seed } = vectors.keys[inputs[name].by];
    return [name, { lines: textOf(bytes), signature: statements.signText(seed, bytes) }];
  });
  const found = (name) => verdictOf(readReceipt(utf8(inputs[name].file)), event, [], undefined);
  const { value: named } = vectors.successor;
  const { amendments } = JSON.parse(named.file);
  const proved = (text) => {
    const told = { ...readReceipt(utf8(inputs.receipt.file)), collected: text };
    return verdictOf(told, event, amendments, undefined).collected ?? null;
  };
  const succeeded = {
    ...named,
    before_time_s: proved(named.before),
    too_late_time_s: proved(named.too_late),
    by_it_time_s: proved(named.by_it),
  };
  const times = ({ time, collected }) => ({ time_s: time, collected_s: collected ?? null });
  return {
    keys: each(vectors.keys, ({ seed }) => publicText(unhex(statements.publicOf(seed)))),
    event: event.id,
    content_code: codeOf(content),
    opened_content: opened("opened_content"),
    opened_content_without_ticket: opened("opened_content_without_ticket"),
    two_files: several("two_files"),
    three_files: several("three_files"),
    five_files: several("five_files"),
    proof_file: { file: proofTexts({ ...receipt, ...shown })(), content_p: hex(code.digest()) },
    entry: entryOf(inputs.entry),
    entry_of_version_1: entryOf(inputs.entry_of_version_1),
    entry_without_mark: entryOf(inputs.entry_without_mark),
    mark: await markOf({ ...inputs.entry, ticket_seed: vectors.keys[inputs.mark.by].seed }, event),
    ...Object.fromEntries(signed),
    receipt: times(found("receipt")),
    late_receipt: times(found("late_receipt")),
    successor: succeeded,
  };
}

const told = { cases: [], tickets: [], events: [] };
if (given.vectors) told.vectors = await valued(given.vectors);
for (const each of given.cases ?? []) told.cases.push(await made(each));
for (const [event, text] of given.tickets ?? []) {
  told.tickets.push(readTicket(text, readEvent(base64.decode(event))));
}
for (const [event, link] of given.links ?? []) {
  const found = readEvent(base64.decode(event));
  told.tickets.push(readTicket(linkedTicketText(link, found), found));
}
if (given.amended) {
  const [data, rows] = given.amended;
  const found = amended(readEvent(base64.decode(data)), rows);
  told.amended = [...found.ended.map(({ log }) => log.name), found.verdicts.log.name];
}
for (const data of given.several ?? []) {
  const { ciphertext, files, ...kept } = await readKeep(new Blob([base64.decode(data)]));
  const again = files.map(({ mtime_ns, ...file }) => ({ ...file, mtime_ms: mtime_ns / 1e6 }));
  told.events.push(await bytesOf(keepOf(ciphertext, { ...kept, files: again })));
}
for (const data of given.events ?? []) told.events.push(readEvent(base64.decode(data)).isOlder);
for (const names of given.names ?? []) told.events.push(nameFaults(names));
console.log(JSON.stringify(told));
"""


def by_the_script(given: dict[str, object]) -> dict[str, list]:
    """Return what the page's script makes of something."""
    folder = web_folder()
    (folder / "vectors.mjs").write_text(SCRIPT)
    done = subprocess.run(
        ["node", "vectors.mjs"],
        cwd=folder,
        input=json.dumps(given).encode(),
        check=False,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


class Case:
    """A file that Python has sealed and kept, and what the page has in its place."""

    def __init__(self, folder: Path, admission: str, name: str, *, is_anew: bool) -> None:
        self.data = EVENT_DATA[admission]
        event = self.event = read_event(self.data)
        self.name, self.is_anew = name, is_anew
        self.owner = owner_key(name)
        ticket = self.ticket = ticket_of(event) if event.admission == "tickets" else None
        self.number = (1).to_bytes(16, "big").hex()
        header = {"event": event.id.hex(), "name": name}
        if event.has_proofs:
            header["content"] = event.content
        if ticket is not None:
            header["ticket"] = self.number
        salt = hashlib.sha256(name.encode()).digest()
        said = hand_in_statement(event.id, salt, public_key_bytes(self.owner.public))
        file = folder / "file"
        file.write_bytes(name.encode())
        os.utime(file, ns=(0, MTIME_MS * 10**6))
        self.kept = keep(
            file,
            folder / "file.keep",
            event=event.id,
            salt=salt,
            inner=Inner(header_bytes(header), bytes(32), ticket and ticket.key.sign(said)),
            owner=self.owner,
            ticket=ticket,
            recipients=event.recipients,
        )
        self.keep = (folder / "file.keep").read_bytes()
        log = event.services[0].log.name
        proof = proof_of(self.commitment.entry, log, PROVED_S)
        self.receipt = Receipt(self.commitment).with_more(proofs=[proof])

    @property
    def commitment(self) -> Commitment:
        return commitment_of(self.kept, self.event)

    @property
    def pushed(self) -> tuple[bytes, int]:
        """Hash and length of what is pushed."""
        if self.is_anew:
            return hashlib.sha256(b"anew").digest(), self.commitment.size + 16
        return self.commitment.ciphertext_sha256, self.commitment.size

    @property
    def given(self) -> dict[str, object]:
        """What the script is given."""
        kept, ticket, receipt = self.kept, self.ticket, json.loads(self.receipt.data)
        signature = kept.inner.ticket_signature
        sha256, size = self.pushed
        item = {
            "id": self.number if ticket else None,
            "name": self.name,
            "event": self.event.id.hex(),
            "salt": kept.salt.hex(),
            "header": kept.inner.header.decode(),
            "secret": kept.inner.secret.hex(),
            "ticket_signature": signature and signature.hex(),
            "owner": public_key_bytes(self.owner.public).hex(),
            "owner_seed": self.owner.seed.hex(),
            "ticket": ticket and ticket.token,
            "ticket_seed": ticket and ticket.seed.hex(),
            "size": self.commitment.size,
            "ciphertext_sha256": self.commitment.ciphertext_sha256.hex(),
            "content_p": self.commitment.content.hex(),
            "bytes": kept.version.n_bytes,
            "anew": {"size": size, "ciphertext_sha256": sha256.hex()} if self.is_anew else None,
            "receipt": {
                name: receipt[name]
                for name in (
                    *("acknowledgements", "proofs", "tokens", "bistro_receipts", "collected"),
                )
            },
        }
        return {
            "event": base64.b64encode(self.data).decode(),
            "item": item,
            "keep": base64.b64encode(self.keep).decode(),
            "upload": UPLOAD,
        }


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    return [
        Case(tmp_path_factory.mktemp("case"), admission, name, is_anew=is_anew)
        for admission in EVENT_DATA
        for name in NAMES
        for is_anew in (False, True)
    ]


@pytest.fixture(scope="module")
def made(cases):
    """Each case, and what the script makes of it."""
    told = by_the_script({"cases": [case.given for case in cases]})["cases"]
    return list(zip(cases, told, strict=True))


@pytest.mark.slow
def test_entries_and_what_is_signed_of_them_are_the_same(made):
    for case, told in made:
        entry, event = case.commitment.entry, case.event
        sha256, size = case.pushed
        log, bistro = event.services[0].log.key, event.bistros[0].key
        owner = public_key_bytes(case.owner.public)
        number = case.ticket.number if case.ticket else bytes(16)
        said = {
            "commit": commit_statement(event.id, log, [entry, event.id]),
            "push": push_statement(event.id, bistro, entry, sha256, size, number),
            "give_up": give_up_statement(event.id, bistro, UPLOAD),
            "hand_in": hand_in_statement(event.id, case.kept.salt, owner),
        }
        assert told["entry"] == entry.hex()
        assert told["owner"] == owner.hex()
        assert told["header"] == case.kept.inner.header.decode()
        proof = proof_of_content(entry, case.kept.inner)
        assert (proof is not None) == event.has_proofs
        assert told["proof"] == (proof and proof.data.decode())
        assert told["said"] == {name: text.decode() for name, text in said.items()}
        assert told["signed"] == {name: case.owner.sign(text).hex() for name, text in said.items()}


@pytest.mark.slow
def test_the_values_of_the_page_of_bytes_are_the_scripts():
    vectors = json.loads((REPOSITORY / "docs" / "bistro" / "vectors.json").read_text())
    vectors.pop("about")
    keys = vectors["keys"]
    found = by_the_script({"vectors": vectors})["vectors"]
    # What the log that has ended says later counts no more.
    assert found["successor"].pop("too_late_time_s") is None
    assert found.pop("keys") == {name: each["key"] for name, each in keys.items()}
    for name in ("receipt", "late_receipt"):
        value = vectors[name]["value"]
        assert found.pop(name) == {each: value[each] for each in ("time_s", "collected_s")}
    for name in ("two_files", "three_files", "five_files"):
        said = found.pop(name)
        assert said.pop("isAgain")
        assert said == {each: vectors[name]["value"][each] for each in said}
    assert found == {name: vectors[name]["value"] for name in found}
    assert len(found) == 15


@pytest.mark.slow
def test_a_log_that_the_event_has_had_succeeds_none():
    """The organiser names a new one, it again, others that stand in the event; then a new one."""
    data = EVENT_DATA["tickets, marks"]
    event = read_event(data)
    fresh = [log_key(f"v.example/{i:016}", key_of(f"v{i}").public) for i in range(5)]
    named = [
        *(fresh[0], fresh[0], event.verdicts, event.services[0].log),
        log_key(event.verdicts.name, key_of("v1").public),
        log_key(fresh[1].name, event.witnesses[0].vkey.key),
        log_key(fresh[2].name, event.bistros[0].key),
        log_key(fresh[3].name, event.organiser),
        fresh[4],
    ]
    said = f'format = "datacollect-amendment/1"\nevent = "{event.id.hex()}"\n'
    notes = [
        signed(
            f'{said}number = {i}\nverdicts = {{ log = "{log.text}" }}\n',
            "organiser",
            key_of("organiser"),
        ).data
        for i, log in enumerate(named, 1)
    ]
    rows = [
        PublishedAmendment(note, (proof_of(note, event.services[0].log.name, PROVED_S),))
        for note in notes
    ]
    now = amended(event, published(event, rows, []))
    given = [
        {"note": row.note.decode(), "proofs": [proof.data.decode() for proof in row.proofs]}
        for row in reversed(rows)
    ]
    found = by_the_script({"amended": [base64.b64encode(data).decode(), given]})["amended"]
    assert found == [each.name for each in (event.verdicts, fresh[0], fresh[4])]
    assert found == [*(each.log.name for each in now.ended_verdicts), now.verdicts.name]


@pytest.mark.slow
def test_what_is_committed_is_what_python_reads_signed_for_one_log(made):
    for case, told in made:
        url, body = told["commit"]
        service, ticket, entry = case.event.services[0], case.ticket, case.commitment.entry
        assert url == f"{service.url}/commit"
        said = commit_statement(case.event.id, service.log.key, [entry])
        shown = (ticket.token, ticket.key.sign(said)) if ticket else (None, b"")
        assert read_commit(body.encode()) == Commit((entry,), False, *shown)


@pytest.mark.slow
def test_what_begins_an_upload_is_the_same_and_a_bistro_takes_it(made):
    for case, told in made:
        sha256, size = case.pushed
        key = case.event.bistros[0].key
        assert told["metadata"] == push_metadata(
            case.commitment,
            case.receipt.proofs[0].data,
            event=case.event,
            bistro_key=key,
            sha256=sha256,
            size=size,
            owner=case.owner,
            ticket=case.ticket,
        )
        wish = Admission(case.event, key, 10**9).wish_of(told["metadata"], size, PROVED_S)
        assert (wish.commitment, wish.sealed_anew) == (case.commitment, case.is_anew)


@pytest.mark.slow
def test_receipts_and_keeps_are_the_same_and_read_by_both(made, tmp_path):
    for case, told in made:
        assert base64.b64decode(told["receipt"]) == case.receipt.data
        assert read_receipt(case.receipt.data) == case.receipt
        # Read by the script, and written again.
        assert base64.b64decode(told["kept"]) == case.keep
        path = tmp_path / "page.keep"
        path.write_bytes(base64.b64decode(told["keep"]))
        found = read_keep(path)
        assert isinstance(found, Kept)
        with ExitStack() as stack:
            assert b"".join(stack.enter_context(ciphertext_of(path, found)))[:6] == b"sealed"
        assert (found.owner, found.ticket) == (case.owner, case.ticket)
        assert (found.inner, commitment_of(found, case.event)) == (case.kept.inner, case.commitment)


@pytest.mark.slow
def test_the_keep_of_several_files_is_the_same(tmp_path):
    event = read_event(EVENT_DATA["tickets"])
    ticket, owner, salt = ticket_of(event), owner_key("several"), bytes(32)
    sources = []
    for name in NAMES:
        file = tmp_path / f"{len(sources)}"
        file.write_bytes(name.encode())
        os.utime(file, ns=(0, MTIME_MS * 10**6))
        sources.append(Source(name.translate({ord(each): None for each in "\\\x7f\t"}), file))
    header = {"content": "datacollect-content/3", "event": event.id.hex(), "files": len(sources)}
    said = hand_in_statement(event.id, salt, public_key_bytes(owner.public))
    sealing = Sealing(
        event=event.id,
        salt=salt,
        inner=Inner(header_bytes(header), bytes(32), ticket.key.sign(said)),
        owner=owner,
        ticket=ticket,
        recipients=event.recipients,
    )
    keep_files(sources, tmp_path / "several.keep", sealing)
    data = base64.b64encode((tmp_path / "several.keep").read_bytes()).decode()
    assert by_the_script({"several": [data]})["events"] == [data]


@pytest.mark.slow
def test_what_is_said_of_a_content_is_the_same(made):
    for case, _ in made:
        inner = case.kept.inner
        found = content_digest(inner.secret, inner.header, [case.name.encode()])
        assert found == case.commitment.content


@pytest.mark.slow
def test_a_ticket_is_taken_whose_key_is_the_one_that_its_token_names():
    """Of any other the page says why, in words of its own: none of them has the seed."""
    data = EVENT_DATA["tickets"]
    event = read_event(data)
    ticket = ticket_of(event)
    seed, other = ticket.seed.hex(), PrivateKey(bytes(32)).seed.hex()
    foreign = ticket_of(read_event(event_bytes(name="Another")))
    texts = {
        ticket.text: None,
        ticket.text.replace(seed, other): "ticket_damaged",
        ticket.text.replace(seed, seed[:-2]): "ticket_damaged",
        ticket.text.replace(f'"{seed}"', seed): "ticket_none",
        ticket.text.replace(f'"{seed}"', f'"{seed}'): "ticket_none",
        ticket.text.replace("datacollect-ticket/2", "datacollect-ticket/1"): "ticket_older",
        ticket.text.replace("datacollect-ticket/2", "datacollect-ticket/3"): "ticket_none",
        foreign.text: "ticket_other",
        "": "ticket_none",
    }
    encoded = base64.b64encode(data).decode()
    told = by_the_script({"tickets": [[encoded, text] for text in texts]})["tickets"]
    number = (1).to_bytes(16, "big").hex()
    assert told[0] == {"token": ticket.token, "seed": seed, "id": number}
    assert told[1:] == [{"why": why} for why in list(texts.values())[1:]]


@pytest.mark.slow
def test_a_link_is_the_ticket_that_it_was_made_of():
    """With the number of its key, and with one of its own: token and seed are the file's."""
    data = EVENT_DATA["tickets"]
    event = read_event(data)
    given = ticket_of(event)
    number = number_of(given.key.public)
    usual = new_ticket(event, number, given.seed, key_of("organiser"))
    encoded = base64.b64encode(data).decode()
    links = [[encoded, each.link.removeprefix(LINK_MARK)] for each in (usual, given)]
    assert by_the_script({"links": links})["tickets"] == [
        {"token": each.token, "seed": each.seed.hex(), "id": each.number.hex()}
        for each in (usual, given)
    ]


@pytest.mark.slow
def test_names_that_no_hand_in_may_have_are_refused_by_the_page():
    """Also where only some systems take two for one; their proofs are called after them."""
    deep = [f"{i}" + "/d" * 14 + "/f" for i in range(666)]
    names = [
        ["a", "b/a", "a.proofs/b", "a.proof"],
        ["a", "b", "A.proof/b"],
        ["x/é", "x/e\u0301.proof/y"],
        ["a", "A/b"],
        ["../a", "a"],
        [*deep, "z/" * 10 + "f"],
        [*deep, "z/" * 11 + "f"],
    ]
    found = by_the_script({"names": names})["events"]
    assert [[each for each in faults if each] for faults in found] == [
        [],
        ["fault_proof"],
        ["fault_proof"],
        ["fault_twice"],
        ["fault_odd"],
        [],
        ["fault_folders"],
    ]


@pytest.mark.slow
def test_events_of_the_older_kind_are_known():
    data = EVENT_DATA["tickets"]
    older = data.replace(b"datacollect-event/2", b"datacollect-event/1")
    assert data != older
    events = [base64.b64encode(each).decode() for each in (data, older)]
    assert by_the_script({"events": events})["events"] == [False, True]
