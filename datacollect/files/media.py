"""Types of files by bytes, media type or name: HTML, XML, JSON, an LFS pointer, text or data.

Servers answer in documents where they do not give a file: a page to log in, an error in JSON or
XML, a sentence. Here is what tells documents from data, and what a document says.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Any

from datacollect.files.documents import peer_json


class ContentKind(Enum):
    """Kind of a file's content by its first bytes; the value is the word for it."""

    EMPTY = "empty"
    DATA = "data"
    TEXT = "text"
    POINTER = "a git-lfs pointer"
    JSON = "JSON"
    XML = "XML"
    HTML = "HTML"


DOCUMENTS = (ContentKind.HTML, ContentKind.XML, ContentKind.JSON)
# By the end of a file's name: which documents it promises.
_NAMES = {
    ContentKind.HTML: (".html", ".htm", ".xhtml", ".shtml"),
    ContentKind.XML: (
        ".xml",
        ".xhtml",
        ".svg",
        ".gml",
        ".gpx",
        ".kml",
        ".rdf",
        ".xsd",
        ".xsl",
        ".vtu",
    ),
    ContentKind.JSON: (".json", ".geojson", ".jsonl", ".ndjson", ".jsonld", ".ipynb"),
    ContentKind.TEXT: (
        ".txt",
        ".csv",
        ".tsv",
        ".md",
        ".rst",
        ".log",
        ".yaml",
        ".yml",
        ".toml",
        ".ini",
    ),
}
# Media types of documents, as regular expressions of a whole type that grep -E knows, too.
TYPES = {
    ContentKind.HTML: r"text/html|application/xhtml[+]xml",
    ContentKind.XML: r"(text|application)/(xml|[a-z0-9.-]+[+]xml)",
    ContentKind.JSON: r"(text|application)/(json|[a-z0-9.-]+[+]json)",
}
# What text may begin with: ASCII that is printed, blanks, the mark of an encoding.
_TEXT_BEGINS = frozenset(b"\t\n\r\xef" + bytes(range(0x20, 0x7F)))
_CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_BLANKS = b" \t\r\n\f"
_HTML = re.compile(rb"(<\?xml[^>]*>\s*)?(<!--.*?-->\s*)*<(!doctype\s+html|html|head|body|title)\b")
_XML = re.compile(rb"<([?!]|[a-z_])")
_JSON = re.compile(rb'\{\s*("|\}|$)|\[\s*([\[{"\]]|$|-?\d)')
_POINTER = re.compile(
    rb"version https?://[\w./-]*git-lfs[\w./-]*/v\d\n(?:ext-.*\n)*oid sha256:([0-9a-f]{64})\n"
)
# A pointer is smaller than this (git-lfs, docs/spec.md).
POINTER_BYTES = 1024


def looks_of(begins: bytes) -> ContentKind:
    r"""Return what a file looks like that begins so.

    >>> [looks_of(each).name for each in (b"", b"\x93NUMPY", b"a,b\n1,2", b'{"error": 1}')]
    ['EMPTY', 'DATA', 'TEXT', 'JSON']
    >>> looks_of(b"<Error/>").name, looks_of(b" <!DOCTYPE html>").name
    ('XML', 'HTML')
    """
    if not begins:
        return ContentKind.EMPTY
    if _CONTROLS.search(begins):
        return ContentKind.DATA
    text = begins.removeprefix(b"\xef\xbb\xbf").lstrip(_BLANKS)
    for looks, expected in ((ContentKind.HTML, _HTML), (ContentKind.XML, _XML)):
        if expected.match(text.lower()):
            return looks
    if not _is_utf8(begins):
        return ContentKind.DATA
    if _POINTER.match(text):
        return ContentKind.POINTER
    return ContentKind.JSON if _JSON.match(text) else ContentKind.TEXT


def may_be_text(first_byte: bytes) -> bool:
    r"""Return whether a text or a document may begin so; what is not known may.

    >>> may_be_text(b"<"), may_be_text(b"\x93"), may_be_text(b"")
    (True, False, True)
    """
    return not first_byte or first_byte[0] in _TEXT_BEGINS


def may_be_document(first_byte: bytes) -> bool:
    """Return whether HTML, XML or JSON may begin so; what is not known may.

    >>> may_be_document(b"<"), may_be_document(b"7"), may_be_document(b"")
    (True, False, True)
    """
    return not first_byte or first_byte in b"<{[\xef" + _BLANKS


def looks_by_type(content_type: str) -> ContentKind | None:
    """Return which document a header Content-Type speaks of; None where of none.

    >>> looks_by_type("Application/Problem+JSON; charset=utf-8"), looks_by_type("text/plain")
    (<ContentKind.JSON: 'JSON'>, None)
    """
    media_type = content_type.partition(";")[0].strip().lower()
    return next((looks for looks, of in TYPES.items() if re.fullmatch(of, media_type)), None)


def is_promised(name: str, looks: ContentKind) -> bool:
    """Return whether a file's name says that it looks so.

    >>> is_promised("a/index.HTML", ContentKind.HTML), is_promised("a.html.gz", ContentKind.HTML)
    (True, False)
    """
    return name.lower().endswith(_NAMES.get(looks, ()))


def documents_pattern() -> str:
    """Return, for shell scripts, media types of each kind of document and names that promise it.

    >>> documents_pattern().split()[:2]
    ['text/html|application/xhtml[+]xml', '[.]html|[.]htm|[.]xhtml|[.]shtml']
    """
    names = {looks: "|".join(f"[.]{end[1:]}" for end in _NAMES[looks]) for looks in DOCUMENTS}
    return " ".join(f"{TYPES[looks]} {names[looks]}" for looks in DOCUMENTS)


def _is_utf8(begins: bytes) -> bool:
    try:
        begins.decode()
    except UnicodeDecodeError as error:
        # A character may be cut.
        return error.reason == "unexpected end of data" and error.start >= len(begins) - 3
    return True


# What documents say ----------------------------------------------------------------------------

_KEYS = (
    "error",
    "errors",
    "code",
    "errorcode",
    "error_code",
    "status",
    "title",
    "fault",
    "message",
)
_SAYING = ("message", "detail", "error_description", "description", "title", "reason", "error")
_ROOTS = re.compile(rb"<(?:[\w.-]+:)?(\w*(?:error|fault|exception)\w*)[\s/>]", re.IGNORECASE)
_OF_ERRORS = re.compile(
    r"\b(errors?|denied|forbidden|unauthori[sz]ed|not authori[sz]ed|expired|not found|no such|"
    r"log ?-?in|logged (in|out)|sign ?-?in|session|quota|too many|rate limit|unavailable|"
    r"maintenance|not permitted|permission)\b",
    re.IGNORECASE,
)
# A longer text is no error's.
MOST_ERROR_BYTES = 4096


def error_in(begins: bytes, n_bytes: int) -> str | None:
    """Return what a small document says of an error, as it says it; None where it speaks of none.

    Parameters
    ----------
    begins : bytes
    n_bytes : int
        Of all of it.

    Examples
    --------
    >>> error_in(b'{"error": {"code": "expired", "message": "Log in again"}}', 57)
    'expired: Log in again'
    >>> error_in(b"<Error><Code>SlowDown</Code><Message>Reduce it</Message></Error>", 66)
    'SlowDown: Reduce it'
    >>> error_in(b"time,value", 10), error_in(b'{"title": "A map", "size": 3}', 29)
    (None, None)
    """
    if not 0 < n_bytes <= MOST_ERROR_BYTES:
        return None
    match looks_of(begins):
        case ContentKind.JSON:
            return _error_in_json(begins)
        case ContentKind.XML if _ROOTS.search(begins[:400]):
            return said_in(begins)
        case ContentKind.TEXT | ContentKind.HTML if _OF_ERRORS.search(said_in(begins) or ""):
            return said_in(begins)
    return None


def _error_in_json(begins: bytes) -> str | None:
    found = peer_json(begins)
    if not isinstance(found, dict):
        return None
    keys = {key.lower() for key in found}
    is_error = bool(keys & {"error", "errors", "fault", "errorcode", "error_code", "exception"})
    is_error |= keys & {"message", "detail"} != set() and keys <= {*_KEYS, *_SAYING, "path", "type"}
    return (said_in(begins) or "an error") if is_error else None


def said_in(document: bytes) -> str | None:
    r"""Return what a document says that came with a refusal: its code and message, or a sentence.

    >>> said_in(b"<html><title>403 Forbidden</title>...")
    '403 Forbidden'
    >>> said_in(b"no such bucket\n"), said_in(b"")
    ('no such bucket', None)
    """
    match looks_of(document):
        case ContentKind.JSON:
            parts = _parts_of_json(peer_json(document))
        case ContentKind.XML:
            parts = [_element(document, "code"), _element(document, "message|reason|faultstring")]
        case ContentKind.HTML:
            parts = [_element(document, "title")]
        case ContentKind.TEXT:
            parts = [document.decode(errors="replace").strip().partition("\n")[0].strip()]
        case _:
            parts = []
    return ": ".join(dict.fromkeys(part for part in parts if part)) or None


def _parts_of_json(found: Any) -> list[str | None]:
    if isinstance(found, list):
        found = found[0] if found else None
    if isinstance(found, str):
        return [found]
    if not isinstance(found, dict):
        return []
    by_key = {key.lower(): value for key, value in found.items()}
    for key in ("error", "errors", "fault"):
        if isinstance(by_key.get(key), dict | list):
            return _parts_of_json(by_key[key])
    codes = [by_key.get(key) for key in ("code", "errorcode", "error_code", "status", "error")]
    words = [by_key.get(key) for key in _SAYING]
    return [_first_text(codes), _first_text(words)]


def _first_text(values: list[Any]) -> str | None:
    texts = (str(each) for each in values if isinstance(each, str | int) and each not in ("", True))
    return next(texts, None)


def _element(document: bytes, names: str) -> str | None:
    """Return the text of the first element of a name, wherever it lies."""
    found = re.search(
        rf"<(?:[\w.-]+:)?(?:{names})\b[^>]*>\s*([^<]+?)\s*<",
        document.decode(errors="replace"),
        re.IGNORECASE,
    )
    return None if found is None else found[1]
