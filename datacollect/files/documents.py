"""Files as such: from bytes to text and to the tree that TOML or JSON describe; safe writing."""

from __future__ import annotations

import bz2
import codecs
import gzip
import json
import os
import re
import stat
import sys
import tomllib
import zlib
from collections import Counter
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datacollect.errors import NotWrittenError, ProblemError
from datacollect.files.durability import name_durably, sync
from datacollect.files.kinds import shown, shown_text
from datacollect.files.refusals import Refusal, refusal_of
from datacollect.files.stages import LOG

if TYPE_CHECKING:
    from collections.abc import Iterator
    from os import PathLike

STANDARD_INPUT = "standard input"

# What files give as their format: a reader of one kind notices when it is given another.
PROBLEM_FORMAT = "datacollect-problem/1"
SCHEDULE_FORMAT = "datacollect-schedule/1"
PROGRESS_FORMAT = "datacollect-progress/1"
COLLECTION_FORMAT = "datacollect-collection/1"

# Longer paths are shortened in messages.
NAME_LENGTH = 300

# What packed files begin with, and what unpacks them.
PACKED = {b"\x1f\x8b": gzip.decompress, b"BZh": bz2.decompress}

# What files begin with that hold no text, and what is to be done with them.
_NO_TEXT = {
    **dict.fromkeys(PACKED, "packed twice; unpack it once"),
    b"\xfd7zXZ\0": "packed by xz; unpack it first",
    b"\x28\xb5\x2f\xfd": "packed by Zstandard; unpack it first",
    b"7z\xbc\xaf\x27\x1c": "an archive of 7-Zip; unpack it first",
    b"PK\3\4": "a ZIP archive or a spreadsheet; unpack it, or save the sheet as CSV",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "a spreadsheet of old Excel; save the sheet as CSV",
    b"PAR1": "a table in Parquet; save it as CSV",
    b"%PDF-": "a PDF; save its content as text",
}

# Byte order marks, and how the text behind them is encoded. The longer ones begin as the others do.
MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
    codecs.BOM_UTF8: "utf-8-sig",
}


class CutOffError(ProblemError):
    """A packed file ends too early, or is damaged: what it held is lost."""


def document_name(path: str | PathLike[str]) -> str:
    """Return the name of a file for messages; ``-`` is standard input."""
    name = str(path)
    if name == "-":
        return STANDARD_INPUT
    return name if name.isprintable() and len(name) <= NAME_LENGTH else shown_text(name)


def folder_of(path: str | PathLike[str]) -> Path:
    """Return what a file's own file names are relative to; for ``-`` the working directory."""
    return Path() if str(path) == "-" else Path(path).parent


def read_tree(path: str | PathLike[str], remedy: str = "") -> Any:
    """Read TOML or JSON, whichever the text is.

    Parameters
    ----------
    path : path
    remedy : str
        What helps who has nothing in the file: the command that writes such a file.

    Raises
    ------
    ProblemError
        It cannot be read, is no text, or breaks TOML's or JSON's rules.
    """
    name = document_name(path)
    text = read_text(path)
    if not text.strip():
        what = "no input; pipe a file into it" if name == STANDARD_INPUT else "the file is empty"
        raise ProblemError(f"{name}: {what}" + (remedy and f"; {remedy}"))
    # No TOML file begins with a brace, no JSON object with anything else. What begins with a
    # bracket may be a table of TOML or a list of JSON: there the name decides.
    begins = text.lstrip()[0]
    named_json = Path(path).suffix.lower() == ".json"
    if begins == "{" or (named_json and not _TOML_LINE.match(text)):
        return parse_json(text, name)
    return parse_toml(text, name)


# What a file of TOML may begin with: a key and its value, a table, or a comment.
_TOML_LINE = re.compile(
    r"\s*(?:#|[\w.\"' -]+=|\[\[?[A-Za-z_\"'][\w.\"' -]*\]\]?\s*(?:#.*)?$)", re.MULTILINE
)


def read_text(path: str | PathLike[str]) -> str:
    """Read a file, or with ``-`` standard input, as text: see `text_of`."""
    return text_of(read_bytes(path), document_name(path))


def text_of(data: bytes, name: str) -> str:
    """Return the text that the bytes of a file are, whatever the file is called.

    They may be packed by gzip or bzip2. Text is UTF-8, or what its byte order mark says.

    Raises
    ------
    ProblemError
        The packed file is cut off or damaged, or its content is no such text.

    Examples
    --------
    >>> text_of(gzip.compress("Zürich".encode("utf-16")), "places.txt.gz")
    'Zürich'
    """
    return decode(unpacked(data, name), name)


def unpacked(data: bytes, name: str) -> bytes:
    """Return the content of a file that gzip or bzip2 may have packed."""
    for magic, unpack in PACKED.items():
        if data.startswith(magic):
            try:
                return unpack(data)
            except (OSError, EOFError, ValueError, zlib.error) as error:
                raise CutOffError(
                    f"{name}: a packed file that is cut off or damaged ({error}); pack it again"
                ) from None
    return data


def read_bytes(path: str | PathLike[str]) -> bytes:
    """Read a file, or with ``-`` standard input."""
    if str(path) == "-":
        return sys.stdin.buffer.read()
    file, name = Path(path), document_name(path)
    try:
        data = file.read_bytes()
        LOG.debug("read %s: %d bytes", name, len(data))
        return data
    except FileNotFoundError:
        hint = _nearest_file(file) or "; check the path"
        raise ProblemError(f"{name}: no such file{hint}") from None
    except IsADirectoryError:
        raise ProblemError(f"{name}: is a folder; name a file in it") from None
    except OSError as error:
        raise ProblemError(f"{name}: cannot be read: {error.strerror}") from None
    except ValueError:
        raise ProblemError(f"{name}: no file can have a name with a NUL character") from None


def toml_text(value: object) -> str:
    """Return a text, or a list of texts, as TOML writes them: as JSON does, but for one letter.

    >>> toml_text(["a", "b"])
    '["a", "b"]'
    """
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def write_atomically(path: str | PathLike[str], data: bytes) -> None:
    """Write a file so that no reader ever sees half of it."""
    # A link keeps pointing to what is written; a device or pipe is written to, not replaced.
    file = Path(os.path.realpath(path))
    with _naming_unwritten(path):
        if file.exists() and not file.is_file():
            file.write_bytes(data)
            return
        with _beside(file) as beside:
            _write_beside(file, beside, data)
            beside.replace(file)


@contextmanager
def written_durably(path: str | PathLike[str]) -> Iterator[Path]:
    """Yield where to write what then takes a file's place, and outlasts a loss of power.

    Raises
    ------
    NotWrittenError
        It cannot be written: the file is as it was.
    """
    file = Path(os.path.realpath(path))
    with _naming_unwritten(path), _beside(file) as beside:
        yield beside
        name_durably(beside, file)


@contextmanager
def _beside(file: Path) -> Iterator[Path]:
    # Names are limited in bytes: one that is just short enough must not get too long by this.
    name = os.fsencode(file.name)[:100].decode(errors="ignore")
    beside = file.with_name(f".{name}.{os.getpid()}.tmp")
    try:
        yield beside
    finally:
        beside.unlink(missing_ok=True)


@contextmanager
def naming_unread(path: str | PathLike[str]) -> Iterator[None]:
    """Turn what the system says while a file is looked at into `ProblemError`, which names it."""
    try:
        yield
    except OSError as error:
        raise ProblemError(f"{document_name(path)}: cannot be read: {error.strerror}") from None


@contextmanager
def _naming_unwritten(path: str | PathLike[str]) -> Iterator[None]:
    try:
        yield
    except ProblemError:
        raise  # of what was to be written: it names its own reason
    except (OSError, ValueError) as error:
        raise not_written(path, error) from None


def not_written(path: str | PathLike[str], error: OSError | ValueError) -> NotWrittenError:
    """Return what to say where a file cannot be written, and what to do about it."""
    if isinstance(error, OSError):
        reason, remedy = refusal_of(error)
        if not Path(os.path.realpath(path)).parent.exists():
            remedy = "make the folder first"
    else:  # the name itself
        reason, remedy = shown_text(str(error)), None
    message = f"{document_name(path)}: cannot be written: {Refusal(reason, remedy)}"
    return NotWrittenError(message, getattr(error, "errno", None))


def not_made(folder: str | PathLike[str], error: OSError, what: str = "") -> NotWrittenError:
    """Return what to say where a folder cannot be made; `what` is said before that."""
    reason, remedy = refusal_of(error)
    message = f"{document_name(folder)}: {what}cannot be made: {reason}; {remedy or 'name another'}"
    return NotWrittenError(message, error.errno)


def _write_beside(file: Path, beside: Path, data: bytes) -> None:
    """Write what is to take a file's place, for those alone who may read that file."""
    mode = stat.S_IMODE(file.stat().st_mode) if file.exists() else None
    if mode is not None:
        os.close(os.open(beside, os.O_WRONLY | os.O_CREAT, mode & stat.S_IRWXU | stat.S_IWUSR))
    beside.write_bytes(data)
    if mode is not None:
        with suppress(OSError):  # a file system without modes: it stays as narrow as it is
            beside.chmod(mode)


def write_owned(path: str | PathLike[str], data: bytes, *, mode: int, new: bool = False) -> None:
    """Write a file that has its mode from its first moment on, and leave none where that fails.

    Parameters
    ----------
    path : path-like
    data : bytes
    mode : int
        Such as 0o600: for its owner alone.
    new : bool
        Refuse a file that is there already.

    Raises
    ------
    OSError
        It cannot be written, or is there already.
    """
    flags = os.O_WRONLY | os.O_CREAT | (os.O_EXCL if new else os.O_TRUNC)
    number = os.open(path, flags, mode)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(data)
            file.flush()
            sync(number)
    except OSError:
        Path(path).unlink(missing_ok=True)
        raise


def decode(data: bytes, name: str) -> str:
    """Decode UTF-8, or what the byte order mark says, which is dropped; say where it is neither."""
    for magic, what in _NO_TEXT.items():
        if data.startswith(magic):
            raise ProblemError(f"{name}: must be text, but is {what}")
    encoding = next((code for mark, code in MARKS.items() if data.startswith(mark)), "utf-8")
    if not encoding.startswith("utf-8"):
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError as error:
            raise ProblemError(
                f"{name}: begins as {encoding.upper()}, but byte {error.start} is malformed; save "
                "it as UTF-8"
            ) from None
        # A byte order mark does not make a text of binary data.
        return _without_nul(text, name)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ProblemError(
            f"{name}, line {line}: must be UTF-8 text, got byte 0x{data[error.start]:02x}; "
            "save it as UTF-8"
        ) from None
    return _without_nul(text, name)


def _without_nul(text: str, name: str) -> str:
    nul = text.find("\0")
    if nul >= 0:
        line = text.count("\n", 0, nul) + 1
        raise ProblemError(
            f"{name}, line {line}: must be text, got a NUL character; is it a binary file, or "
            "UTF-16? Save it as UTF-8"
        )
    return text


def parse_toml(text: str, name: str) -> dict[str, Any]:
    """Parse TOML; name line and column of a mistake."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        where, reason = _place_in_toml(str(error), text)
        raise ProblemError(f"{name}{where}: not valid TOML: {reason}") from None
    except (ValueError, RecursionError) as error:
        raise ProblemError(f"{name}: {_too_much(error)}") from None


def parse_json(text: str, name: str) -> Any:
    """Parse JSON, in which no key may be given twice; name line and column of a mistake."""
    try:
        return json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        got = _line(text, error.lineno)
        raise ProblemError(
            f"{name}, line {error.lineno}, column {error.colno}: not valid JSON: {error.msg}{got}; "
            "correct it"
        ) from None
    except ProblemError as error:
        raise ProblemError(f"{name}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise ProblemError(f"{name}: {_too_much(error)}") from None


def peer_json(data: str | bytes | bytearray, *, has_unique_keys: bool = False) -> Any:
    """Return what somebody else says in JSON; None where that is no JSON: its form is checked next.

    Nothing that a peer sends raises anything here: neither letters of no encoding, nor numbers of
    thousands of digits, nor brackets within brackets without end. Of a file of the user's
    `parse_json` says what is wrong with it, and where.

    Parameters
    ----------
    data : str or bytes
    has_unique_keys : bool, optional
        Whether JSON in which a key is given twice is none, as where a signature covers it.

    Examples
    --------
    >>> peer_json(b'{"a": 1, "a": 2}'), peer_json("[" * 100_000)
    ({'a': 2}, None)
    """
    try:
        return json.loads(data, object_pairs_hook=_object if has_unique_keys else None)
    except (ValueError, RecursionError):
        return None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    tree = dict(pairs)
    if len(tree) < len(pairs):
        twice = next(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)
        beside = ", ".join(shown_text(key) for key in list(tree)[:4] if key != twice)
        raise ProblemError(
            f"key {shown(twice)} given twice in one object"
            + (f", beside {beside}" if beside else "")
            + "; keep one"
        )
    return tree


def _place_in_toml(message: str, text: str) -> tuple[str, str]:
    """Split tomllib's message into place and reason."""
    found = re.search(r" \(at line (\d+), column (\d+)\)$", message)
    if not found:
        reason = shown_text(message.removesuffix(" (at end of document)"))
        return ", at the end", f"{reason}; is something missing?"
    line = int(found[1])
    reason = shown_text(message[: found.start()])
    twice = "declare" in reason or "overwrite" in reason
    remedy = "a key is given twice, keep one" if twice else _quoted_remedy(text, line)
    return f", line {line}, column {found[2]}", f"{reason}{_line(text, line)}; {remedy}"


def _line(text: str, number: int) -> str:
    line = _line_of(text, number)
    return f", got {shown(line)}" if line else ""


def _line_of(text: str, number: int) -> str:
    lines = text.split("\n", number)
    return lines[number - 1].strip() if number <= len(lines) else ""


# A table whose last name has characters that TOML takes only in quotes, such as [hosts.aws:x].
_TABLE_TO_QUOTE = re.compile(
    r"(\[\[?)((?:[\w-]+\.)*?)([\w-]*[^\w\s.\"'\[\]#=-][^\"'\[\]#=]*?)(\]\]?)"
)


def _quoted_remedy(text: str, number: int) -> str:
    """Say how a line is to be corrected: names with other characters than letters need quotes."""
    line = _line_of(text, number)
    found = _TABLE_TO_QUOTE.fullmatch(line)
    # Of noise nothing is to be proposed.
    if not found or not line.isprintable() or len(line) > NAME_LENGTH:
        return "correct the line"
    opening, before, name, closing = found.groups()
    quoted = json.dumps(name, ensure_ascii=False)
    return f"a name with such characters stands in quotes: {opening}{before}{quoted}{closing}"


def _too_much(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply; a problem file needs four levels at most"
    if "digits" in str(error):
        return "a whole number has thousands of digits; no quantity needs that many"
    return f"cannot be parsed: {shown_text(str(error))}"


def _nearest_file(file: Path) -> str:
    # Names that end alike are not alike for that: what stands before the ending has to be.
    try:
        others = [other for other in file.parent.iterdir() if other.is_file()]
        stems = get_close_matches(file.stem, {other.stem for other in others}, n=1)
        alike = [other.name for other in others if other.stem in stems]
        match = get_close_matches(file.name, sorted(alike), n=1, cutoff=0.0)
        return f"; did you mean {match[0]!r}?" if match else ""
    except (OSError, ValueError):
        return ""
