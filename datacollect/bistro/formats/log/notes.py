"""Signed notes and the keys that verify them (c2sp.org/signed-note, 2025).

A note is a text, an empty line, and a line for each signature. A key is written with the name of
who signs and with the kind of signature, so that one pair of keys cannot sign for two purposes
unnoticed. Signatures of unknown keys are ignored; what is no note at all is refused.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from datacollect.errors import ProblemError
from datacollect.files.kinds import shown
from datacollect.net.keys import KEY_BYTES, PUBLIC, is_signed, public_key_bytes

if TYPE_CHECKING:
    from datacollect.net.keys import PrivateKey

# Kinds of signatures: of a note's text, and of a witness with its time.
OF_NOTE, OF_WITNESS = 0x01, 0x04

KEY_ID_BYTES = 4
MOST_SIGNATURES = 64
# An entry of a log, which an amendment's note becomes, has so many at most.
MOST_NOTE_BYTES = 65_535

# What a name must not have: spaces of Unicode, plus, control characters.
_NAME = re.compile(r"[^\s+\x00-\x1f\x7f]{1,255}")
_LINE = re.compile(r"— (?P<name>\S+) (?P<signature>[A-Za-z0-9+/]+={0,2})")
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f]")


@dataclass(frozen=True)
class VerifierKey:
    """A public key with its name and the kind of signatures that count: a vkey.

    Attributes
    ----------
    name : str
        Of a log: its origin.
    key : str
        The public key, ``ed25519:BASE64``.
    kind : int
        `OF_NOTE` or `OF_WITNESS`.

    Examples
    --------
    >>> from datacollect.net.keys import PrivateKey
    >>> VerifierKey("log.example/7", PrivateKey(bytes(32)).public, OF_NOTE).text
    'log.example/7+36fcd847+ATtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop'
    """

    name: str
    key: str
    kind: int

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ProblemError(
                "the name of a key must have 1 to 255 characters, and neither spaces nor plus, got "
                f"{shown(self.name)}; choose another"
            )

    @classmethod
    def parse(cls, text: str, kind: int, place: str) -> VerifierKey:
        """Return the key that a text says.

        Raises
        ------
        ProblemError
            It is no vkey, is of another kind, or its parts contradict each other.
        """
        name, plus, rest = text.partition("+")
        written_id, second, material = rest.partition("+")
        raw = decoded(material) if plus and second else None
        if raw is None or len(raw) != 1 + KEY_BYTES or not _NAME.fullmatch(name):
            raise ProblemError(
                f"{place} must be a verifier key NAME+ID+BASE64 of an Ed25519 key, got "
                f"{shown(text)}; copy the line that its owner has published"
            )
        if raw[0] != kind:
            kinds = {OF_NOTE: "a log", OF_WITNESS: "a witness"}
            whose = kinds.get(raw[0], f"signatures of kind {raw[0]}")
            raise ProblemError(
                f"{place} must be the verifier key of {kinds[kind]}, got one of {whose}: "
                f"{shown(text)}; ask its owner for the other"
            )
        key = cls(name, PUBLIC + base64.b64encode(raw[1:]).decode(), kind)
        public_key_bytes(key.key, place)
        if written_id != key.key_id.hex():
            raise ProblemError(
                f"{place}: its ID must be {key.key_id.hex()} by its name and key, got "
                f"{shown(written_id)}; a letter is missing or wrong: copy it again"
            )
        return key

    def for_purpose(self, purpose: str) -> VerifierKey:
        """Return the same key in a name of its own, so that what it signs passes for nothing else.

        >>> from datacollect.net.keys import PrivateKey
        >>> VerifierKey("log.example/7", PrivateKey(bytes(32)).public, 1).for_purpose("loads").name
        'log.example/7/loads'
        """
        return replace(self, name=f"{self.name}/{purpose}")

    @cached_property
    def key_id(self) -> bytes:
        """The first four bytes of a hash of name, kind and key."""
        named = f"{self.name}\n".encode() + bytes([self.kind]) + public_key_bytes(self.key)
        return hashlib.sha256(named).digest()[:KEY_ID_BYTES]

    @property
    def text(self) -> str:
        """The key as files write it."""
        material = base64.b64encode(bytes([self.kind]) + public_key_bytes(self.key)).decode()
        return f"{self.name}+{self.key_id.hex()}+{material}"


@dataclass(frozen=True)
class NoteSignature:
    """A line below a note: who signs, with which key, and the bytes of the signature."""

    name: str
    key_id: bytes
    signature: bytes

    @property
    def line(self) -> str:
        """The line as it stands in the note, with its newline."""
        return f"— {self.name} {base64.b64encode(self.key_id + self.signature).decode()}\n"

    def is_of(self, key: VerifierKey) -> bool:
        """Return whether this line says that it is by a key."""
        return self.name == key.name and self.key_id == key.key_id


@dataclass(frozen=True)
class Note:
    r"""A text and those who have signed it.

    Attributes
    ----------
    text : str
        With its last newline, without the empty line.
    signatures : tuple of NoteSignature

    Examples
    --------
    >>> from datacollect.net.keys import PrivateKey
    >>> key = PrivateKey(bytes(32))
    >>> note = signed("tea\n", "kettle", key)
    >>> parse_note(note.data) == note, is_by(note, VerifierKey("kettle", key.public, OF_NOTE))
    (True, True)
    """

    text: str
    signatures: tuple[NoteSignature, ...] = ()

    @property
    def data(self) -> bytes:
        """The note as bytes."""
        return (self.text + "\n" + "".join(each.line for each in self.signatures)).encode()

    def with_more(self, *signatures: NoteSignature) -> Note:
        """Return the note with further signatures below."""
        return replace(self, signatures=(*self.signatures, *signatures))


def signed(text: str, name: str, key: PrivateKey) -> Note:
    """Return a note of a text that a key has signed in a name."""
    signer = VerifierKey(name, key.public, OF_NOTE)
    return Note(text, (NoteSignature(name, signer.key_id, key.sign(text.encode())),))


def is_by(note: Note, key: VerifierKey) -> bool:
    """Return whether a key has signed the note's text, and no line in its name is forged."""
    lines = [each for each in note.signatures if each.is_of(key)]
    message = note.text.encode()
    return bool(lines) and all(is_signed(message, each.signature, key.key) for each in lines)


def parse_note(data: bytes, place: str = "the note", most_bytes: int = MOST_NOTE_BYTES) -> Note:
    """Return the note that bytes are.

    Raises
    ------
    ProblemError
        They are none, or are too many.
    """
    if len(data) > most_bytes:
        raise ProblemError(f"{place} must have at most {most_bytes} bytes, got {len(data)}")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ProblemError(f"{place} must be UTF-8, but byte {error.start} is not") from None
    if _CONTROL.search(text):
        raise ProblemError(f"{place} must have no control characters but newlines")
    body, gap, lines = text.rpartition("\n\n")
    if not gap or not lines.endswith("\n"):
        raise ProblemError(f"{place} must be a text, an empty line, and lines of signatures")
    return Note(body + "\n", parse_signatures(lines, place))


def parse_signatures(lines: str, place: str) -> tuple[NoteSignature, ...]:
    """Return the signatures that lines say, each with its newline."""
    found = lines.removesuffix("\n").split("\n")
    if not lines.endswith("\n") or len(found) > MOST_SIGNATURES:
        raise ProblemError(
            f"{place} must end with 1 to {MOST_SIGNATURES} lines of signatures, got {len(found)}"
        )
    return tuple(_signature(line, place) for line in found)


def _signature(line: str, place: str) -> NoteSignature:
    found = _LINE.fullmatch(line)
    raw = decoded(found["signature"]) if found else None
    if not found or raw is None or len(raw) <= KEY_ID_BYTES or not _NAME.fullmatch(found["name"]):
        raise ProblemError(f"{place}: a signature must be '— NAME BASE64', got {shown(line)}")
    return NoteSignature(found["name"], raw[:KEY_ID_BYTES], raw[KEY_ID_BYTES:])


def decoded(text: str) -> bytes | None:
    r"""Decode standard Base64, one text for one meaning; None where it is none.

    >>> decoded("AA=="), decoded("AB=="), decoded("A")
    (b'\x00', None, None)
    """
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return raw if base64.b64encode(raw).decode() == text else None
