"""What a receipt of an event proves, by docs/bistro/protocol.md alone.

Nothing of `datacollect` is imported: so would a stranger write a verifier from the page. Where the
library and this program differ, one of them or the page is wrong. It takes the event's file for one
that keeps the rules of such files. Tokens of RFC 3161 are left out: what they alone prove, it does
not see. Nor does it keep the bounds that a program may set.
"""

import hashlib
import hmac
import json
import re
import tomllib
from base64 import b64decode, b64encode
from collections.abc import Iterable
from datetime import datetime
from math import inf
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

LISTS = {each: [] for each in ("acknowledgements", "proofs", "tokens", "bistro_receipts")}
PARTS = ("event", "salt", "ciphertext_sha256", "content_p", "owner")
AMENDMENT = {"format", "event", "number", "deadline", "revoked", "bistros", "verdicts", "cancelled"}
PROOF = {"format", "entry", "key", "name", "ticket"}
Verdict = tuple[str, int | None, int | None]


def verdict(event_file: bytes, receipt_file: bytes, amendments: bytes | None) -> Verdict:
    """Return the outcome, the time that counts, and by when the entry was collected.

    Raises `ValueError` where the receipt or the amendments are none, or of another event.
    """
    event = event_of(event_file)
    try:
        receipt = receipt_of(read_json(receipt_file), event)
        event = amended(amendments and read_json(amendments), event)
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError("it has not the form of the page") from error
    entry = entry_of(receipt)
    times = [time_of(proof_of(text), entry, event["logs"], event) for text in receipt["proofs"]]
    time_s, collected_s = min(times, default=inf), collected_of(receipt["collected"], entry, event)
    is_late = time_s > event["deadline_s"] + event.get("lag_s", 10)
    outcome = "not proved" if time_s == inf else "late" if is_late else "in time"
    return outcome, *(None if each == inf else int(each) for each in (time_s, collected_s))


# Files ------------------------------------------------------------------------------------------


def event_of(data: bytes) -> dict[str, Any]:
    """Return what an event's file says, its id, and its keys by their names."""
    event = tomllib.loads(data.decode()) | {"id": hashlib.sha256(data).hexdigest()}
    event["logs"] = keys_of(each["log"] for each in event["services"])
    event["witnesses"] = keys_of(each["vkey"] for each in event["witnesses"])
    kind = event["format"], event.get("admission", "tickets")
    event["marks"] = kind == ("datacollect-event/2", "tickets") and "verdicts" in event
    named = [event["verdicts"]["log"]] if "verdicts" in event else []
    return event | {"verdicts": [(keys_of([log]), inf) for log in named]}


def receipt_of(told: dict[str, Any], event: dict[str, Any]) -> dict[str, Any]:
    """Return a receipt of this event, or raise `ValueError`; nothing in it is verified yet."""
    version = event["format"].removeprefix("datacollect-event/")
    if version == "1" and told.get("owner", "") is None:
        del told["owner"]
    if told.get("mark", "") is None:
        del told["mark"]
    parts = PARTS if version == "2" else PARTS[:-1]
    must({"format", "size", *parts} <= told.keys())
    must(told.keys() <= {"format", "size", *parts, "mark", "collected", *LISTS})
    must(("mark" in told) == event["marks"] and re.fullmatch("|[0-9a-f]{16}", told.get("mark", "")))
    must((told["format"], told["event"]) == (f"datacollect-receipt/{version}", event["id"]))
    must(is_number(told["size"], 2**63))
    must(all(re.fullmatch("[0-9a-f]{64}", told[key]) for key in parts))
    receipt = {"collected": None} | LISTS | told
    must(all(isinstance(receipt[key], list) for key in LISTS))
    for word in receipt["acknowledgements"]:
        must(word.keys() == {"log", "index", "time_s", "signature"} and word["log"].encode())
        must(is_number(word["index"], 2**63) and is_number(word["time_s"], 2**34))
        from_base64(word["signature"], 64)
    must(all(map(proof_of, receipt["proofs"])) and all(map(from_base64, receipt["tokens"])))
    must(all(text.encode() for text in receipt["bistro_receipts"]))
    must(receipt["collected"] is None or receipt["collected"].encode())
    return receipt


def amended(told: dict[str, Any] | None, event: dict[str, Any]) -> dict[str, Any]:
    """Return the event with the latest deadline, and all logs of verdicts, each with its end."""
    counting: dict[tuple[int, bytes], tuple[dict[str, Any], float]] = {}
    rows = [] if told is None else told["amendments"]
    form = {"format": "datacollect-amendments/1", "event": event["id"], "amendments": [*rows]}
    must(told is None or told == form)
    for row in rows:
        text, signatures = note_of(row["note"])
        must(is_by("organiser", public_key(event["organiser"]), text, signatures))
        said = tomllib.loads(text)
        must(said["format"] == "datacollect-amendment/1" and said["event"] == event["id"])
        must(said["number"] in range(1, 100_001) and said.keys() <= AMENDMENT)
        must(row == {"note": row["note"], "proofs": [*row["proofs"]]} and len(signatures) == 1)
        leaf, proofs = row["note"].encode(), [proof_of(each) for each in row["proofs"]]
        times = [time_of(proof, leaf, event["logs"], event) for proof in proofs]
        _, known_s = counting.get((said["number"], leaf), (said, inf))
        if (time_s := min([known_s, *times])) < inf:
            counting[said["number"], leaf] = said, time_s
    texts, verdicts = [event["deadline"]], event["verdicts"]
    for _, (said, time_s) in sorted(counting.items(), key=lambda each: each[0]):
        texts += [said["deadline"]] if "deadline" in said else []
        if "verdicts" in said and verdicts:
            named = keys_of([said["verdicts"]["log"]])
            verdicts = [*verdicts[:-1], (verdicts[-1][0], time_s), (named, inf)]
    deadline = max(datetime.fromisoformat(str(text)) for text in texts)
    return event | {"deadline_s": int(deadline.timestamp()), "verdicts": verdicts}


def entry_of(receipt: dict[str, Any]) -> bytes:
    """Return the entry that the first lines of a receipt make; a mark stands at its end."""
    label = f"datacollect-commitment/{2 if 'owner' in receipt else 1}\n".encode()
    event, salt, *rest = (bytes.fromhex(receipt.get(key, "")) for key in PARTS)
    size = receipt["size"].to_bytes(8, "big")
    digest = hashlib.sha256(b"".join((label, event, salt, size, *rest))).digest()
    return digest[:24] + bytes.fromhex(receipt["mark"]) if "mark" in receipt else digest


def content_of(secret: bytes, header: bytes, file: bytes) -> bytes:
    """Return the content's code P."""
    if header.startswith(b'{"content":"datacollect-content/3",'):
        return list_of(secret, header, file)["content_p"]
    if not header.startswith(b'{"content":"datacollect-content/2",'):
        said = b"datacollect-content/1\n" + len(header).to_bytes(4, "big") + header + file
        return mac(secret, said)
    told = read_json(header)
    return opened(*opening_of(secret, header), bytes.fromhex(told["event"]), file)


def opening_of(secret: bytes, header: bytes) -> tuple[bytes, bytes, bytes]:
    """Return what opens a content, of a header whose parts are committed to apart."""
    told = read_json(header)
    number = bytes.fromhex(told.get("ticket", ""))
    name = mac(key_of(secret, "name"), told["name"].encode())
    return key_of(secret, "file"), name, mac(key_of(secret, "ticket"), number)


def key_of(secret: bytes, what: str) -> bytes:
    """Return the key of a part."""
    return mac(secret, b"datacollect-content-key/2\n" + what.encode())


def opened(key: bytes, name: bytes, ticket: bytes, event: bytes, file: bytes) -> bytes:
    """Return the code P of a file, by what opens it."""
    return mac(key, b"datacollect-content/2\n" + event + name + ticket + file)


def list_of(secret: bytes, header: bytes, body: bytes) -> dict[str, Any]:
    """Return what is committed to of several files, or raise `ValueError`."""
    told, files = read_json(header), files_of(body)
    must(told.keys() | {"ticket"} == {"content", "event", "files", "ticket"})
    must(is_number(told["files"], 10_001) and told["files"] == len(files) > 1)
    names = [name for name, _ in files]
    folders = {name[:at] for name in names for at in range(len(name)) if name[at] == "/"}
    must(len({*names}) == len(names) and folders.isdisjoint(names) and len(folders) <= 10_000)
    must(folders.isdisjoint(f"{name}.proof" for name in names))
    rows = []
    for i, (name, file) in enumerate(files):
        key, code = key_of(secret, f"file {i}"), mac(key_of(secret, f"name {i}"), name.encode())
        rows.append({"key": key, "name": code, "code": file_code(key, code, file)})
    ticket = mac(key_of(secret, "ticket"), bytes.fromhex(told.get("ticket", "")))
    root, paths = tree_of([row["code"] for row in rows])
    content_p = list_code(bytes.fromhex(told["event"]), ticket, len(rows), root)
    both = [row | {"path": path} for row, path in zip(rows, paths, strict=True)]
    return {"ticket": ticket, "files": both, "root": root, "content_p": content_p}


def files_of(body: bytes) -> list[tuple[str, bytes]]:
    """Return names and bytes of all files of a body, or raise `ValueError`."""
    files, at = [], 0
    while at < len(body):
        begin = at + 4 + int.from_bytes(body[at : at + 4], "big")
        name, end = body[at + 4 : begin].decode(), begin + 8
        at = end + int.from_bytes(body[begin:end], "big")
        must(at <= len(body) and end <= len(body) and len(name.encode()) <= 1024)
        parts = name.split("/")
        must(len(parts) <= 16 and not re.search(r"[\x00-\x1f\x7f\\]", name))
        must(all(part not in ("", ".", "..") and len(part.encode()) <= 255 for part in parts))
        files.append((name, body[end:at]))
    return files


def file_code(key: bytes, name: bytes, file: bytes) -> bytes:
    """Return the code of one of several files, by its key and its name's code."""
    return mac(key, b"datacollect-file/3\n" + name + file)


def list_code(event: bytes, ticket: bytes, count: int, root: bytes) -> bytes:
    """Return the code P of several files."""
    said = event + ticket + count.to_bytes(4, "big") + root
    return hashlib.sha256(b"datacollect-content/3\n" + said).digest()


def tree_of(codes: list[bytes]) -> tuple[bytes, list[list[bytes]]]:
    """Return the root over some leaves, and the path of each, from below, halving the tree."""
    if len(codes) == 1:
        return hashlib.sha256(b"\0" + codes[0]).digest(), [[]]
    half = 1 << ((len(codes) - 1).bit_length() - 1)
    (left, lefts), (right, rights) = tree_of(codes[:half]), tree_of(codes[half:])
    paths = [[*path, right] for path in lefts] + [[*path, left] for path in rights]
    return hashlib.sha256(b"\1" + left + right).digest(), paths


def shows(event_file: bytes, receipt_file: bytes, proof_file: bytes, file: bytes) -> bool:
    """Whether a receipt is of this file, by a proof; raise `ValueError` where one is none."""
    event = event_of(event_file)
    try:
        receipt, proof = receipt_of(read_json(receipt_file), event), read_json(proof_file)
        is_one = proof.keys() == PROOF
        must(is_one or proof.keys() == {*PROOF, "index", "count", "path"})
        must(proof["format"] == f"datacollect-proof/{1 if is_one else 2}")
        path = proof.get("path", [])
        must(isinstance(path, list) and len(path) <= 14 and (is_one or path))
        hashes = [proof[name] for name in ("entry", "key", "name", "ticket")] + path
        must(all(re.fullmatch("[0-9a-f]{64}", text) for text in hashes))
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError("it has not the form of the page") from error
    must(proof["entry"] == entry_of(receipt).hex())
    key, name, ticket = (bytes.fromhex(proof[each]) for each in ("key", "name", "ticket"))
    of_event = bytes.fromhex(event["id"])
    if is_one:
        return opened(key, name, ticket, of_event, file).hex() == receipt["content_p"]
    index, count = proof["index"], proof["count"]
    must(is_number(count, 10_001) and is_number(index, count) and count > 1)
    leaf = file_code(key, name, file)
    root = root_of(leaf, index, count, [bytes.fromhex(each) for each in path])
    said = root and list_code(of_event, ticket, count, root).hex()
    return said == receipt["content_p"]


def mark_of(seed: bytes, other: bytes, event_id: bytes, entry: bytes) -> bytes:
    """Return the mark of an entry by one of two private keys and the other one's public half."""
    p, y = 2**255 - 19, int.from_bytes(other, "little") % 2**255
    point = ((1 + y) * pow(1 - y, -1, p) % p).to_bytes(32, "little")
    secret = X25519PrivateKey.from_private_bytes(hashlib.sha512(seed).digest()[:32])
    shared = secret.exchange(X25519PublicKey.from_public_bytes(point))
    key = HKDF(SHA256(), 33, event_id, b"datacollect-mark/2\n").derive(shared)
    code = Cipher(AES(key[:32]), CBC(bytes(16))).encryptor().update(entry[:24] + bytes(8))
    return key[32:] + code[16:23]


def collected_of(text: str | None, entry: bytes, event: dict[str, Any]) -> float:
    """Return when the log of verdicts said that the entry was collected; infinity: it did not."""
    try:
        extra = re.match(r"[^\n]*\nextra (.*)\n", text or "")
        again = f": {from_base64(extra[1], 32).hex()}" if extra else ""
        said = f"datacollect-verdict/1\n{event['id']}\n{entry.hex()}\ncollected{again}\n"
        proof = proof_of(text or "")
        times = [(time_of(proof, said.encode(), log, event), s) for log, s in event["verdicts"]]
        return min((time_s for time_s, end_s in times if time_s <= end_s), default=inf)
    except ValueError:
        return inf


# Logs, notes and times --------------------------------------------------------------------------


def time_of(proof: Any, leaf: bytes, logs: dict[str, bytes], event: dict[str, Any]) -> float:
    """Return the time of a leaf by a proof of one of these logs; infinity: it has none."""
    index, path, text, signatures = proof
    origin, size, root, _ = text.split("\n")
    if origin not in logs or not is_by(origin, logs[origin], text, signatures):
        return inf
    if root_of(leaf, index, int(size), path) != from_base64(root):
        return inf
    witnesses = event["witnesses"].items()
    return sorted(witness_time(*each, text, signatures) for each in witnesses)[event["quorum"] - 1]


def proof_of(proof: str) -> tuple[int, list[bytes], str, list[tuple[str, bytes]]]:
    """Return index, path, checkpoint and signatures of a tlog-proof, or raise `ValueError`."""
    head, _, note = proof.partition("\n\n")
    whole, hashes = "(0|[1-9][0-9]{0,18})", r"((?:\n[^\n]*)*)"
    first = r"c2sp\.org/tlog-proof@v1(?:\nextra .*)?"
    said = re.fullmatch(f"{first}\nindex {whole}{hashes}", head)
    text, signatures = note_of(note)
    head = re.fullmatch(f"(.+)\n{whole}\n(.*)\n", text)
    must(said and head and max(int(said[1]), int(head[2])) < 2**63)
    path = [from_base64(line, 32) for line in said[2].split("\n")[1:]]
    return int(said[1]), path, text, signatures if from_base64(head[3], 32) else []


def note_of(note: str) -> tuple[str, list[tuple[str, bytes]]]:
    """Return the text of a signed note, and name and bytes of each signature."""
    text, gap, below = note.rpartition("\n\n")
    must(gap and below.endswith("\n") and not re.search(r"[\x00-\x09\x0b-\x1f]", note))
    lines = [re.fullmatch(r"— ([^\s+\x7f]+) (\S{7,})", line) for line in below[:-1].split("\n")]
    must(all(lines) and note.encode())
    return text + "\n", [(line[1], from_base64(line[2])) for line in lines]


def is_by(name: str, key: bytes, text: str, signatures: list[tuple[str, bytes]]) -> bool:
    """Whether a key has signed a note's text, and no line in its name is forged."""
    lines = lines_of(name, 1, key, signatures)
    return lines != [] and all(is_signed(key, each, text.encode()) for each in lines)


def witness_time(name: str, key: bytes, text: str, signatures: Any) -> float:
    """Return the earliest time at which a witness has signed a checkpoint, or infinity."""
    times = []
    for line in lines_of(name, 4, key, signatures):
        time_s = int.from_bytes(line[:8], "big")
        said = f"cosignature/v1\ntime {time_s}\n{text}".encode()
        times += [time_s] if time_s < 2**34 and is_signed(key, line[8:], said) else []
    return min(times, default=inf)


def lines_of(name: str, kind: int, key: bytes, signatures: Any) -> list[bytes]:
    """Return the signatures that say that they are by a key of a kind, in a name."""
    key_id = hashlib.sha256(f"{name}\n".encode() + bytes([kind]) + key).digest()[:4]
    return [raw[4:] for said, raw in signatures if (said, raw[:4]) == (name, key_id)]


def root_of(leaf: bytes, index: int, size: int, path: list[bytes]) -> bytes | None:
    """Return the root that a leaf and its path make, halving the tree; None: they make none."""
    if not path or not 0 <= index < size or size == 1:
        return hashlib.sha256(b"\0" + leaf).digest() if (index, size, path) == (0, 1, []) else None
    left = 1 << ((size - 1).bit_length() - 1)
    part, is_left = (index, left) if index < left else (index - left, size - left), index < left
    node = root_of(leaf, *part, path[:-1]) or b""
    both = node + path[-1] if is_left else path[-1] + node
    return hashlib.sha256(b"\1" + both).digest() if node else None


# What else a receipt shows ----------------------------------------------------------------------


def claims_of(token: str, key: bytes, assertion: str) -> dict[str, Any]:
    """Return what a token says, a bistro's or a ticket's, or raise `ValueError`."""
    body = token.removeprefix("v4.public.")
    raw = from_base64(body.translate({45: "+", 95: "/"}) + "=" * (-len(body) % 4))
    parts = (b"v4.public.", raw[:-64], b"", assertion.encode())
    said = b"".join(len(part).to_bytes(8, "little") + part for part in parts)
    must(token != body and re.fullmatch("[A-Za-z0-9_-]+", body))
    must(is_signed(key, raw[-64:], len(parts).to_bytes(8, "little") + said))
    return read_json(raw[:-64])


def acknowledges(word: dict[str, Any], entry: bytes, event: dict[str, Any]) -> bool:
    """Whether a log of the event has said that it holds the entry."""
    log, signature = word["log"], from_base64(word["signature"])
    said = f"{log}\n{entry.hex()}\n{word['index']}\n{word['time_s']}\n"
    said, key = f"datacollect-acknowledgement/1\n{said}".encode(), event["logs"].get(log)
    return key is not None and is_signed(key, signature, said)


# Values -----------------------------------------------------------------------------------------


def must(holds: Any) -> None:
    if not holds:
        raise ValueError("it is not as the page says")


def mac(key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, "sha256")


def keys_of(texts: Iterable[str]) -> dict[str, bytes]:
    """Return the public keys of verifier keys, by their names."""
    parts = [text.split("+", 2) for text in texts]
    return {name: from_base64(key, 33)[1:] for name, _, key in parts}


def public_key(text: str) -> bytes:
    return from_base64(text.removeprefix("ed25519:"), 32)


def is_signed(key: bytes, signature: bytes, message: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except InvalidSignature:
        return False
    return True


def read_json(data: bytes) -> dict[str, Any]:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        must(len(pairs) == len(dict(pairs)))
        return dict(pairs)

    # The last is told of NaN and Infinity, which JSON has not.
    text = data.decode("utf-8-sig")
    return json.loads(text, object_pairs_hook=once, parse_constant=lambda _: must(False))


def is_number(value: Any, stop: int) -> bool:
    return type(value) is int and 0 <= value < stop


def from_base64(text: str, n_bytes: int | None = None) -> bytes:
    raw = b64decode(text, validate=True)
    must(
        b64encode(raw).decode() == text
        and len(raw) in (n_bytes, len(raw) if n_bytes is None else -1)
    )
    return raw
