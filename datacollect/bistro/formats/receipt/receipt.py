"""Receipts: files that prove, without any network, what was handed in and by when."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from datacollect.bistro.formats.event.kinds import Hex
from datacollect.bistro.formats.log.acknowledgement import Acknowledgement
from datacollect.bistro.formats.log.checkpoints import SIZE_STOP, TIME_STOP
from datacollect.bistro.formats.log.entry import MARK_BYTES, Commitment
from datacollect.bistro.formats.log.notes import decoded
from datacollect.bistro.formats.log.one_meaning import json_file
from datacollect.bistro.formats.log.proofs import LogProof
from datacollect.errors import ProblemError, naming
from datacollect.files.fields import Document, Field, Rows, Table
from datacollect.files.kinds import ListOf, Schema, Text, Whole, wrong
from datacollect.net.keys import SIGNATURE_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# The first is of events of version 1, whose entries have no owner.
RECEIPT_FORMATS = ("datacollect-receipt/1", "datacollect-receipt/2")
AMENDMENTS_FORMAT = "datacollect-amendments/1"
MOST_BYTES = 16 * 2**20
MOST_TOKEN_BYTES = 65_536
MOST_PROOFS = 64
# Of one log, that are kept: a few prove that it breaks them.
MOST_WORDS = 4


@dataclass(frozen=True)
class Base64:
    """Bytes in Base64."""

    n_bytes: int | None = None

    def read(self, value: Any, place: str) -> bytes:
        """Return the bytes."""
        raw = decoded(Text().read(value, place))
        if raw is None or len(raw) > MOST_TOKEN_BYTES or len(raw) != (self.n_bytes or len(raw)):
            many = f"{self.n_bytes}" if self.n_bytes else f"at most {MOST_TOKEN_BYTES}"
            raise wrong(place, f"must be {many} bytes in Base64", value, "copy the receipt again")
        return raw

    def schema(self) -> Schema:
        """Return the JSON Schema of such bytes."""
        return {"type": "string", "contentEncoding": "base64"}


@dataclass(frozen=True)
class Number(Whole):
    """A whole number in digits, one text for one meaning: neither 11.0 nor "11 B"."""

    def read(self, value: Any, place: str) -> int:
        """Return the number."""
        if type(value) is not int:
            rule = "must be a whole number" + (self.of and f" of {self.of}")
            remedy = self.remedy or "copy the receipt again"
            raise wrong(place, f"{rule}, in digits alone", value, remedy)
        return super().read(value, place)

    def schema(self) -> Schema:
        """Return the JSON Schema of such numbers."""
        return Whole(minimum=self.minimum, stop=self.stop).schema()


@dataclass(frozen=True)
class ProofText:
    """A tlog-proof, as text."""

    def read(self, value: Any, place: str) -> LogProof:
        """Return the proof."""
        return LogProof.parse(Text().read(value, place).encode(), place)

    def schema(self) -> Schema:
        """Return the JSON Schema of such texts."""
        return {"type": "string", "pattern": "^c2sp.org/tlog-proof@v1\n"}


PROOFS = ListOf(ProofText(), 0, MOST_PROOFS, f"must be a list of at most {MOST_PROOFS} proofs")

ACKNOWLEDGEMENT = Table(
    "an acknowledgement",
    "What a service said at once: that it holds the entry.",
    (
        Field("log", Text(), "Origin (name) of the service's log.", required=True),
        Field("index", Number(stop=SIZE_STOP), "The entry's index in the log.", required=True),
        Field(
            "time_s",
            Number("seconds", stop=TIME_STOP),
            "Time by the service's own clock.",
            required=True,
        ),
        Field("signature", Base64(SIGNATURE_BYTES), "Signature by the log's key.", required=True),
    ),
)

RECEIPT = Document(
    "the receipt",
    "Proves that sealed bytes were ready by a time. Tells nothing of what is in them.",
    (
        Field("format", Text(RECEIPT_FORMATS[::-1]), "Format and version.", required=True),
        Field("event", Hex(), "The event's id.", required=True),
        Field("salt", Hex(), "Random.", required=True),
        Field("size", Number("bytes", stop=SIZE_STOP), "Bytes of the sealed file.", required=True),
        Field("ciphertext_sha256", Hex(), "Hash of the sealed file.", required=True),
        Field("content_p", Hex(), "Hash of what is sealed, keyed by a secret.", required=True),
        Field(
            "owner",
            Hex(),
            "Public key: only the holder of its private half can send the file.",
            nullable=True,
        ),
        Field(
            "mark",
            Hex(MARK_BYTES),
            "Mark: the last bytes of the entry; null where entries of the event have none.",
            nullable=True,
        ),
        Field(
            "acknowledgements",
            Rows(ACKNOWLEDGEMENT),
            "Services' signed acknowledgements.",
            default=(),
        ),
        Field(
            "proofs", PROOFS, "Proofs that logs hold the entry, with witnesses' times.", default=()
        ),
        Field(
            "tokens",
            ListOf(Base64(), 0, 32, "must be a list of tokens"),
            "Time stamps of outside authorities (RFC 3161).",
            default=(),
        ),
        Field(
            "bistro_receipts",
            ListOf(Text()),
            "Receipts that bistros have signed for the file.",
            default=(),
        ),
        Field(
            "collected",
            Text(),
            "Proof, from the destination's log of verdicts, of what became of the file.",
            nullable=True,
        ),
    ),
    remedy="`datacollect upload` writes one",
)

AMENDMENTS = Document(
    "the amendments",
    "What the organiser has changed, as the logs have published it.",
    (
        Field("format", Text((AMENDMENTS_FORMAT,)), "Format and version.", required=True),
        Field("event", Hex(), "The event's id.", required=True),
        Field(
            "amendments",
            Rows(
                Table(
                    "an amendment",
                    "An amendment, and its proofs.",
                    (
                        Field(
                            "note", Text(), "The organiser's amendment, as a whole.", required=True
                        ),
                        Field("proofs", PROOFS, "Proofs of logs.", required=True),
                    ),
                )
            ),
            "In any order.",
            required=True,
        ),
    ),
    remedy="`datacollect audit EVENT.toml --log` writes one",
)


@dataclass(frozen=True)
class Receipt:
    """Receipt that a person keeps of something handed in.

    Attributes
    ----------
    commitment : Commitment
        To what; its `entry` stands in the logs.
    acknowledgements : tuple of Acknowledgement
    proofs : tuple of LogProof
    tokens : tuple of bytes
        Answers of outside authorities over the entry, RFC 3161, DER.
    bistro_receipts : tuple of str
    collected : str or None
    """

    commitment: Commitment
    acknowledgements: tuple[Acknowledgement, ...] = ()
    proofs: tuple[LogProof, ...] = ()
    tokens: tuple[bytes, ...] = ()
    bistro_receipts: tuple[str, ...] = ()
    collected: str | None = None

    @property
    def entry(self) -> bytes:
        """Return what stands in the logs."""
        return self.commitment.entry

    @property
    def data(self) -> bytes:
        """The receipt as a file holds it."""
        commitment = self.commitment
        owner = {} if commitment.owner is None else {"owner": commitment.owner.hex()}
        mark = {} if commitment.mark is None else {"mark": commitment.mark.hex()}
        tree = {
            "format": RECEIPT_FORMATS[bool(owner)],
            "event": commitment.event.hex(),
            "salt": commitment.salt.hex(),
            "size": commitment.size,
            "ciphertext_sha256": commitment.ciphertext_sha256.hex(),
            "content_p": commitment.content.hex(),
            **owner,
            **mark,
            "acknowledgements": [
                {
                    "log": each.log,
                    "index": each.index,
                    "time_s": each.time_s,
                    "signature": _base64(each.signature),
                }
                for each in self.acknowledgements
            ],
            "proofs": [each.data.decode() for each in self.proofs],
            "tokens": [_base64(each) for each in self.tokens],
            "bistro_receipts": list(self.bistro_receipts),
            "collected": self.collected,
        }
        return (json.dumps(tree, indent=1, ensure_ascii=False) + "\n").encode()

    def with_word(self, word: Acknowledgement) -> Receipt:
        """Return the receipt with a service's word: of one log the first ones and the last.

        A service that gives its word again and again, and breaks it, makes it no longer.
        """
        own = [each for each in self.acknowledgements if each.log == word.log]
        given_up = own[MOST_WORDS - 1 :]
        kept = tuple(each for each in self.acknowledgements if each not in given_up)
        return replace(self, acknowledgements=_united(kept, [word]))

    def with_more(
        self,
        acknowledgements: Iterable[Acknowledgement] = (),
        proofs: Iterable[LogProof] = (),
        tokens: Iterable[bytes] = (),
        bistro_receipts: Iterable[str] = (),
    ) -> Receipt:
        """Return the receipt with what has come since; what it has already is not added again."""
        return replace(
            self,
            acknowledgements=_united(self.acknowledgements, acknowledgements),
            proofs=_united(self.proofs, proofs),
            tokens=_united(self.tokens, tokens),
            bistro_receipts=_united(self.bistro_receipts, bistro_receipts),
        )


@dataclass(frozen=True)
class PublishedAmendment:
    """An amendment's note, and where logs have published it."""

    note: bytes
    proofs: tuple[LogProof, ...] = ()


def read_receipt(data: bytes, name: str = "the receipt") -> Receipt:
    """Return the receipt that the bytes of a file are; raise `ProblemError` where they are none."""
    values = _read(RECEIPT, data, name)
    if (values["owner"] is None) != (values["format"] == RECEIPT_FORMATS[0]):
        raise ProblemError(
            f"{name}: a receipt must have owner if its format is {RECEIPT_FORMATS[1]}, and only "
            "then; copy the receipt again"
        )
    return Receipt(
        commitment=Commitment(
            event=values["event"],
            salt=values["salt"],
            size=values["size"],
            ciphertext_sha256=values["ciphertext_sha256"],
            content=values["content_p"],
            owner=values["owner"],
            mark=values["mark"],
        ),
        acknowledgements=tuple(Acknowledgement(**row) for row in values["acknowledgements"]),
        proofs=tuple(values["proofs"]),
        tokens=tuple(values["tokens"]),
        bistro_receipts=tuple(values["bistro_receipts"]),
        collected=values["collected"],
    )


def acknowledgements_body(words: Sequence[Acknowledgement], *, is_list: bool) -> bytes:
    """Return the body of the answer that says them, or the only one; the log it does not name."""
    rows = [
        {"index": word.index, "time_s": word.time_s, "signature": _base64(word.signature)}
        for word in words
    ]
    return json.dumps(rows if is_list else rows[0]).encode()


def read_acknowledgement(data: bytes, log: str) -> Acknowledgement:
    """Return the acknowledgement that a service's answer says.

    Parameters
    ----------
    data : bytes
        The body of the answer: it does not name the log.
    log : str
        Origin of the service's log.

    Raises
    ------
    ProblemError
        It says none.
    """
    place = "the acknowledgement"
    tree = json_file(data, place)
    if not isinstance(tree, dict):
        raise ProblemError(f"{place} must be a JSON object")
    return Acknowledgement(**ACKNOWLEDGEMENT.read({**tree, "log": log}, place))


def amendments_data(event: bytes, amendments: Iterable[PublishedAmendment]) -> bytes:
    """Return the file of an event's amendments and of where they stand."""
    rows = [
        {"note": each.note.decode(), "proofs": [proof.data.decode() for proof in each.proofs]}
        for each in amendments
    ]
    tree = {"format": AMENDMENTS_FORMAT, "event": event.hex(), "amendments": rows}
    return (json.dumps(tree, indent=1, ensure_ascii=False) + "\n").encode()


def read_amendments(
    data: bytes, event: bytes, name: str = "the amendments"
) -> list[PublishedAmendment]:
    """Return the amendments of a file; raise `ProblemError` where it is none, or of others."""
    values = _read(AMENDMENTS, data, name)
    if values["event"] != event:
        raise ProblemError(
            f"{name}: event must be {event.hex()}, got {values['event'].hex()}; take the file of "
            "this event"
        )
    return [
        PublishedAmendment(row["note"].encode(), tuple(row["proofs"]))
        for row in values["amendments"]
    ]


def _read(document: Document, data: bytes, name: str) -> dict[str, Any]:
    if len(data) > MOST_BYTES:
        raise ProblemError(f"{name}: must have at most {MOST_BYTES} bytes, got {len(data)}")
    tree = json_file(data, name)
    with naming(name):
        return document.read(tree)


def _united(some: tuple[Any, ...], more: Iterable[Any]) -> tuple[Any, ...]:
    return some + tuple(each for each in more if each not in some)


def _base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
