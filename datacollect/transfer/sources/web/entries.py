"""Entries of other servers in collection files: where they are, and which files they have."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from datacollect.errors import ProblemError, naming
from datacollect.files.documents import document_name, read_text
from datacollect.files.fields import Field, Table
from datacollect.files.kinds import Flag, ListOf, Text, Whole, join, shown, wrong
from datacollect.files.tables import open_table
from datacollect.net.agent_entries import require_fingerprint_text
from datacollect.problem.manifest import read_manifest
from datacollect.transfer.protocol.file_names import why_not_written
from datacollect.transfer.sources.web.core.urls import Target, file_below, name_in, target_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from datacollect.transfer.sources.web.core.urls import Origin

COLUMNS = ("url", "path", "bytes", "sha256")
_SHA256 = re.compile(r"[0-9a-fA-F]{64}")


SERVER = Table(
    "the server",
    "Another web server, which supports ranges: nginx, an object store.",
    (
        Field("url", Text(), "Folder below which the files lie: https://host/folder/."),
        Field(
            "manifest",
            Text(),
            "CSV file: host, path, bytes and, optionally, sha256; only rows with this server as "
            "host count.",
        ),
        Field("paths", ListOf(Text(), 1), "The server's files, where no manifest lists them."),
        Field(
            "urls",
            Text(),
            "CSV file of whole URLs, such as presigned ones, instead of url: url and, optionally, "
            "path, bytes, sha256.",
        ),
        Field(
            "fingerprint",
            Text(),
            "Fingerprint of the server's certificate: sha256: and 64 hexadecimal digits; if "
            "absent, the certificate must be signed by an authority that this host trusts.",
        ),
        Field(
            "ca",
            Text(),
            "Instead of fingerprint: file of the authority that signed the server's certificate.",
        ),
        Field(
            "plain_http",
            Flag(),
            "Whether plain HTTP is allowed: anyone on the way can read and change the data.",
            default=False,
        ),
        Field(
            "redirects_to",
            ListOf(Text()),
            "Hosts that the server may redirect to, such as *.cdn.example; none if absent.",
            default=(),
        ),
    ),
)


class ServerFile(NamedTuple):
    """A file of another server; `place` is where the collection says so."""

    path: str
    target: Target
    n_bytes: int | None
    sha256: str | None
    place: str

    @property
    def is_known(self) -> bool:
        """Return whether size and hash are said: then nothing need be asked."""
        return self.n_bytes is not None and self.sha256 is not None


@dataclass(frozen=True)
class ServerEntry:
    """Another server, and its files.

    Attributes
    ----------
    name : str
    origin : Origin
        Where all its files are.
    files : tuple of ServerFile
    fingerprint : str or None
    ca : Path or None
    plain_http : bool
    redirects_to : tuple of str
    """

    name: str
    origin: Origin
    files: tuple[ServerFile, ...]
    fingerprint: str | None = None
    ca: Path | None = None
    plain_http: bool = False
    redirects_to: tuple[str, ...] = ()

    @cached_property
    def targets(self) -> Mapping[str, Target]:
        """Return where each path lies; the empty path: the server itself."""
        targets = {file.path: file.target for file in self.files}
        return targets | {"": Target(self.origin, "/")}

    @cached_property
    def said(self) -> str:
        """A short text for all its files: where they are, their sizes and hashes."""
        told = hashlib.sha256()
        for file in self.files:
            row = (file.path, file.target.mark, file.n_bytes, file.sha256)
            told.update(repr(row).encode(errors="surrogatepass"))
        return told.hexdigest()[:16]


def server_of(name: str, entry: Mapping[str, Any], base: Path) -> ServerEntry:
    """Return what the table of a server says, and the files that it names.

    Raises
    ------
    ProblemError
        No message holds the query or the password of a URL.
    """
    place = join("servers", name)
    require_fingerprint_text(
        entry["fingerprint"], place, "`openssl x509 -fingerprint -sha256` prints it"
    )
    files = tuple(_files(name, entry, base, place))
    if not files:
        raise ProblemError(f"{place}: it has no files; name some, or leave the server out")
    _require_distinct(files)
    origins = list(dict.fromkeys(file.target.origin for file in files))
    if len(origins) > 1:
        raise ProblemError(
            f"{place}: all its URLs must lead to one server, got {origins[0].authority} and "
            f"{origins[1].authority}; make it two [servers.NAME]"
        )
    _require_protected(entry, origins[0], files, place)
    ca = entry["ca"]
    return ServerEntry(
        name,
        origins[0],
        files,
        entry["fingerprint"],
        None if ca is None else base / ca,
        entry["plain_http"],
        tuple(entry["redirects_to"]),
    )


def _files(name: str, entry: Mapping[str, Any], base: Path, place: str) -> Iterator[ServerFile]:
    given = [key for key in ("manifest", "paths", "urls") if entry[key] is not None]
    if len(given) != 1:
        raise ProblemError(
            f"{place}: must have one of manifest, paths and urls, got "
            f"{' and '.join(given) or 'none'}; these keys say which files the server has"
        )
    if (entry["url"] is None) != (given == ["urls"]):
        rule = "must not have url beside urls" if entry["url"] else "must have url: its folder"
        raise ProblemError(f"{place}: {rule}; urls are whole, paths lie below url")
    if given == ["urls"]:
        yield from of_urls(base / entry["urls"])
        return
    with naming(f"{place}.url"):
        folder = target_of(entry["url"])
    if given == ["paths"]:
        for i, path in enumerate(entry["paths"]):
            yield ServerFile(path, file_below(folder, path), None, None, f"{place}.paths[{i}]")
        return
    manifest = base / entry["manifest"]
    held = read_manifest(manifest)
    if name not in held:
        raise ProblemError(
            f"{document_name(manifest)}: has no files of {name!r}; the column host must name the "
            "server"
        )
    files = held[name]
    for path, n_bytes, sha256 in zip(
        files.paths, files.n_bytes.tolist(), files.sha256, strict=True
    ):
        where = document_name(manifest)
        yield ServerFile(path, file_below(folder, path), n_bytes, sha256 or None, where)


def of_urls(path: Path) -> Iterator[ServerFile]:
    """Read a table of files by their URLs, whose queries no message may show."""
    name = document_name(path)
    texts = ("url", "path")
    table = open_table(read_text(path), name, "url,path", texts=texts, is_secret=True)
    header = [column.strip() for column in table.header]
    if "url" not in header or len(set(header)) < len(header) or not set(header) <= set(COLUMNS):
        raise ProblemError(
            f"{name}, line {1 + table.skipped_lines}: must be a header of url and, if they are "
            "known, path, bytes and sha256; begin with a line `url`, or `url,path`"
        )
    for line, row in table.rows():
        place = f"{name}, line {line}"
        with naming(place):
            yield _row(dict(zip(header, row, strict=True)), place)


def _row(cells: Mapping[str, str], place: str) -> ServerFile:
    with naming("url"):
        target = target_of(cells["url"].strip())
    path = cells.get("path", "") or name_in(target)
    text = cells.get("bytes", "").strip()
    if text and not text.isdecimal():
        raise wrong("bytes", "must be a whole number", text, "leave it out if it is not known")
    sha256 = cells.get("sha256", "").strip()
    if sha256 and not _SHA256.fullmatch(sha256):
        raise wrong("sha256", "must be 64 hexadecimal digits", sha256, "or leave it empty")
    n_bytes = Whole("bytes").read(int(text), "bytes") if text else None
    return ServerFile(path, target, n_bytes, sha256.lower() or None, place)


def _require_distinct(files: Sequence[ServerFile]) -> None:
    seen: dict[str, str] = {}
    for file in files:
        if why := why_not_written(file.path):
            raise ProblemError(
                f"{file.place}: the file {shown(file.path)} cannot be written: {why}; give it "
                "another path"
            )
        other = seen.setdefault(file.path, file.place)
        if other is not file.place:
            raise ProblemError(
                f"{file.place}: the path {shown(file.path)} is given twice, also at {other}; "
                "give each file a path of its own"
            )


def _require_protected(
    entry: Mapping[str, Any], origin: Origin, files: Sequence[ServerFile], place: str
) -> None:
    is_plain = origin.scheme == "http"
    if is_plain and not entry["plain_http"]:
        raise ProblemError(
            f"{place}: its URL must begin with https://; without TLS anyone on the way "
            "can read and change the data. Where that does not matter, write plain_http = true"
        )
    pinned = [key for key in ("fingerprint", "ca") if entry[key] is not None]
    if is_plain and pinned:
        raise ProblemError(
            f"{place}: must not have {pinned[0]}: without TLS there is no certificate"
        )
    if len(pinned) > 1:
        raise ProblemError(f"{place}: must have fingerprint or ca, not both; leave one out")
    if is_plain and any(file.target.authorization for file in files):
        raise ProblemError(
            f"{place}: must not have a password in its URL, which anybody could read"
        )
