"""Items that are handed in: a file, or several as one, the ``.keep``, the proofs, the receipt.

``NAME.keep`` is written before anything is committed, then ``NAME.proof``, which is made of it, and
``NAME.receipt.json`` after each step. What is there already is gone on with: the entry of a
``.keep`` never changes. One process at a time hands a ``.keep`` in: else an older receipt could
take the place of one that proves more.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datacollect.bistro.formats.event.file import id_advice
from datacollect.bistro.formats.event.marks import own_mark_key, with_mark
from datacollect.bistro.formats.event.statements import hand_in_statement
from datacollect.bistro.formats.event.tickets import owned
from datacollect.bistro.formats.log.content import (
    FILES_FORMAT,
    SECRET_BYTES,
    content_digest,
    file_openings,
    header_bytes,
)
from datacollect.bistro.formats.log.entry import SALT_BYTES, Commitment
from datacollect.bistro.formats.log.file_names import PROOF_SUFFIX
from datacollect.bistro.formats.receipt.receipt import Receipt, read_receipt
from datacollect.bistro.formats.sealing.keep import (
    SUFFIX,
    FileVersion,
    Kept,
    KeptSeal,
    Sealing,
    Source,
    keep,
    keep_files,
    read_keep,
)
from datacollect.bistro.formats.sealing.sealed import Inner
from datacollect.bistro.person.showing import save_proof, save_proofs
from datacollect.bistro.person.sources import joint_name, sources_of
from datacollect.errors import NotWrittenError, ProblemError, TicketError
from datacollect.files.documents import document_name, naming_unread, read_bytes, written_durably
from datacollect.files.units import format_bytes
from datacollect.net.keys import new_private_key, public_key_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from os import PathLike

    from datacollect.bistro.formats.event.event import Event
    from datacollect.bistro.formats.event.tickets import Ticket

RECEIPT_SUFFIX, ANEW_SUFFIX = ".receipt.json", ".anew"
# Of a file's name, where the system does not say.
MOST_NAME_BYTES = 255
BLOCK_BYTES = 2**20


@dataclass(frozen=True)
class Item:
    """What is to be handed in, and where its ``.keep`` and its receipt stand.

    Attributes
    ----------
    file : Path or None
        None: only the ``.keep`` is there, and gone on with; or there are several files.
    keep, receipt : Path
    several : tuple of Source
        All of several files that are handed in together.
    """

    file: Path | None
    keep: Path
    receipt: Path
    several: tuple[Source, ...] = ()

    @property
    def name(self) -> str:
        """Return what messages call it."""
        if self.several:
            return f"{document_name(self.joint)} ({len(self.several)} files)"
        return document_name(self.file or self.keep)

    @property
    def joint(self) -> Path:
        """What all that is kept is called after."""
        return self.keep.with_name(self.keep.name.removesuffix(SUFFIX))

    @property
    def anew(self) -> Path:
        """Return where it stands sealed anew, where that was needed.

        No ``.keep``, which is handed in.
        """
        return self.keep.with_name(f"{self.keep.name}{ANEW_SUFFIX}")

    @property
    def proof(self) -> Path:
        """Return where what shows which file it was is to stand."""
        return self.joint.with_name(f"{self.joint.name}{PROOF_SUFFIX}")

    @property
    def proofs(self) -> Path:
        """Folder of the proofs of several files."""
        return self.proof.with_name(f"{self.proof.name}s")

    @property
    def is_kept(self) -> bool:
        """Return whether it was sealed by an earlier start."""
        return os.path.exists(self.keep)  # noqa: PTH110 - what cannot be looked at is said later

    @property
    def has_proof(self) -> bool:
        """Return whether something stands where its proof, or proofs' folder, is to stand."""
        return os.path.lexists(self.proof) or os.path.lexists(self.proofs)

    @property
    def damage(self) -> str:
        """Return what is said where the ciphertext in the ``.keep`` is damaged."""
        what = "its files" if self.several else document_name(self.source)
        return (
            f"{document_name(self.keep)}: its ciphertext is damaged; it is sealed again from {what}"
        )

    @property
    def is_sealed_anew(self) -> bool:
        """Return whether that was done."""
        return os.path.exists(self.anew)  # noqa: PTH110 - what cannot be looked at was not

    @property
    def source(self) -> Path:
        """Return where the file itself should be.

        There is none perhaps where the ``.keep`` was named.
        """
        return self.file or self.joint

    def sources(self, kept: Kept) -> list[Source]:
        """Return where all of several files should be: as they were named, or beside the seal."""
        beside = [Source(each.name, self.keep.parent / each.name) for each in kept.files]
        return [*self.several] or beside

    def save(self, receipt: Receipt) -> None:
        """Have the receipt on the disk.

        Raises
        ------
        NotWrittenError
            It cannot be written; the one before is as it was.
        """
        with written_durably(self.receipt) as beside:
            beside.write_bytes(receipt.data)


@dataclass(frozen=True)
class Refused:
    """A file that cannot be taken, as it was named, and why."""

    name: str
    error: ProblemError


def items_of(
    files: Sequence[str | PathLike[str]],
    into: str | PathLike[str] | None,
    most_files: int = 1,
) -> list[Item | Refused]:
    """Return what is to be handed in, or why it cannot be, for each file, or for all together.

    Where an event takes several at once, files and folders that are named together are one item,
    and each ``.keep`` is one of its own.

    Parameters
    ----------
    files : sequence of path-like
        Files, or what is kept of them.
    into : path-like or None
        The folder of what is kept; None: beside each file, or the first by name.
    most_files : int
        How many files the event takes at once.

    Raises
    ------
    ProblemError
        There are none, or two would be kept under one name; of several at once one cannot be taken.
    """
    plain = [each for each in files if not os.fspath(each).endswith(SUFFIX)]
    is_folder = len(plain) == 1 and os.path.isdir(plain[0])  # noqa: PTH112 - what is none is told
    if most_files > 1 and (len(plain) > 1 or is_folder):
        others = [each for each in files if each not in plain]
        found: list[Item | Refused] = [_joint(plain, into, most_files)]
        found += [_item_or_refused(each, into) for each in others]
    else:
        found = [_item_or_refused(each, into) for each in files]
    by_keep: dict[str, Item] = {}
    for item in found:
        if isinstance(item, Refused):
            continue
        other = by_keep.setdefault(os.path.realpath(item.keep), item)
        if other is not item:
            raise ProblemError(
                f"{other.name} and {item.name} would both be kept as {document_name(item.keep)}; "
                "hand them in one after the other, each with its own folder by -o"
            )
    if not found:
        raise ProblemError("name a file to hand in")
    return found


def _joint(
    files: Sequence[str | PathLike[str]], into: str | PathLike[str] | None, most_files: int
) -> Item:
    """Return the item of several files."""
    for each in files:
        _require_named(each)
    # What is kept of the folder one stands in lies beside it, too, and not among its files.
    paths = [path if path.name not in ("", "..") else path.resolve() for path in map(Path, files)]
    for path in paths:
        with naming_unread(path):
            if not path.is_dir():
                _require_file(path)
    several = tuple(sources_of(paths, most_files))
    name = joint_name(paths)
    beside = min(paths, key=lambda path: path.name).parent
    folder = beside if into is None else Path(into)
    item = Item(
        several[0].path if len(several) == 1 else None,
        folder / f"{name}{SUFFIX}",
        folder / f"{name}{RECEIPT_SUFFIX}",
        several if len(several) > 1 else (),
    )
    _require_short(item)
    return item


def _item_or_refused(
    given: str | PathLike[str], into: str | PathLike[str] | None
) -> Item | Refused:
    try:
        return _item(given, into)
    except ProblemError as error:
        return Refused(os.fspath(given), error)


def _item(given: str | PathLike[str], into: str | PathLike[str] | None) -> Item:
    path = Path(given)
    _require_named(given)
    with naming_unread(path):
        _require_file(path)
    # Who names a .keep goes on with it, also where the file has gone or changed.
    name = path.name.removesuffix(SUFFIX)
    is_kept = path.name.endswith(SUFFIX)
    folder = path.parent if into is None or is_kept else Path(into)
    item = Item(
        None if is_kept else path, folder / f"{name}{SUFFIX}", folder / f"{name}{RECEIPT_SUFFIX}"
    )
    _require_short(item)
    return item


def _require_named(given: str | PathLike[str]) -> None:
    if not os.fspath(given):
        raise ProblemError("'': no file has an empty name; check what the shell made of it")


def _require_short(item: Item) -> None:
    """Reject a name that leaves no room for the longest of those beside it."""
    n_bytes = len(os.fsencode(item.receipt.name))
    most = MOST_NAME_BYTES
    with suppress(OSError, ValueError):  # the folder is not there, which is said later
        most = os.pathconf(item.receipt.parent, "PC_NAME_MAX")
    if n_bytes > most:
        room = most - len(RECEIPT_SUFFIX)
        raise ProblemError(
            f"{item.name}: its name has {n_bytes - len(RECEIPT_SUFFIX)} bytes, at most {room} are "
            f"allowed: its receipt is kept as NAME{RECEIPT_SUFFIX}; copy it to a shorter name"
        )


def _require_file(path: Path) -> None:
    name = document_name(path)
    if path.is_dir():
        raise ProblemError(f"{name}: is a folder; pack it into one file, as with tar or zip")
    if not path.exists():
        raise ProblemError(f"{name}: no such file; check the path")
    if not path.is_file():
        raise ProblemError(f"{name}: is not a regular file; copy its content into one")


def require_ticket(ticket: Ticket, event_data: bytes, event: Event) -> None:
    """Raise `ProblemError` where a ticket does not count for an event, as far as its file says."""
    if ticket.event != event.id:
        advice = id_advice(event_data, ticket.event)
        raise ProblemError(
            f"the ticket is for event {ticket.event.hex()}, the event's file has the id "
            f"{event.id.hex()}: {advice}"
        )
    try:
        owned(ticket, event)
    except TicketError as error:
        raise ProblemError(f"{error}; ask the organiser for the right one") from None


@contextmanager
def kept_item(
    item: Item, event: Event, event_data: bytes, ticket: Ticket | None
) -> Iterator[tuple[Kept, Receipt]]:
    """Seal a file, or go on with what is kept of it; yield what is kept, and its receipt so far.

    Its proof is on the disk then, too. No other process hands it in meanwhile.

    Raises
    ------
    ProblemError
        The file was changed since, what is kept is damaged or of another event, a ticket is
        needed, or another process hands it in.
    NotWrittenError
        It cannot be written: the folder does not allow it, or there is no room.
    """
    kept = _kept(item, event, event_data, ticket)
    with _alone(item):
        receipt = _receipt(item, commitment_of(kept, event))
        if kept.files:
            save_proofs(item.proofs, kept, receipt.entry)
        else:
            save_proof(item.proof, kept, receipt.entry)
        yield kept, receipt


def _kept(item: Item, event: Event, event_data: bytes, ticket: Ticket | None) -> Kept:
    with naming_unread(item.keep):
        if not item.keep.exists():
            try:
                return _sealed(item, event, ticket)
            except NotWrittenError:
                # Another process may have sealed it meanwhile.
                if not item.keep.exists():
                    raise
    return _found(item, event_data, event, ticket)


@contextmanager
def _alone(item: Item) -> Iterator[None]:
    with naming_unread(item.keep):
        number = os.open(item.keep, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if not _is_locked(number):
            raise ProblemError(f"{item.name}: another process is handing it in; wait until it ends")
        yield
    finally:
        os.close(number)


def _is_locked(number: int) -> bool:
    """Return whether no other process has the lock of an open file.

    Some file systems have no locks.
    """
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return not isinstance(error, BlockingIOError)
    return True


def _receipt(item: Item, commitment: Commitment) -> Receipt:
    """Return the receipt as far as it is."""
    with naming_unread(item.receipt):
        if not item.receipt.exists():
            return Receipt(commitment)
    receipt = read_receipt(read_bytes(item.receipt), document_name(item.receipt))
    if receipt.commitment != commitment:
        raise ProblemError(
            f"{document_name(item.receipt)}: is the receipt of something else than "
            f"{document_name(item.keep)}; keep both, and name another folder with -o"
        )
    return receipt


def commitment_of(kept: KeptSeal, event: Event) -> Commitment:
    """Return to what a log's entry commits, by what is kept; of an older kind it has no owner."""
    found = Commitment(
        event=kept.event,
        salt=kept.salt,
        size=kept.sealed.n_bytes,
        ciphertext_sha256=kept.sealed.sha256,
        content=kept.sealed.content_p,
        owner=public_key_bytes(kept.owner.public) if isinstance(kept, Kept) else None,
    )
    if not isinstance(kept, Kept) or kept.ticket is None:
        return found
    # The same at each start: no retry, at whatever service, makes another entry of it.
    return with_mark(found, own_mark_key(event, kept.ticket.key))


def _sealed(item: Item, event: Event, ticket: Ticket | None) -> Kept:
    n_bytes = _n_bytes(item)
    _require_length(n_bytes, item, event)
    header = header_bytes(_header(item, event, ticket))
    salt, owner = secrets.token_bytes(SALT_BYTES), new_private_key()
    said = hand_in_statement(event.id, salt, public_key_bytes(owner.public))
    signature = None if ticket is None else ticket.key.sign(said)
    sealing = Sealing(
        event=event.id,
        salt=salt,
        inner=Inner(header, secrets.token_bytes(SECRET_BYTES), signature),
        owner=owner,
        ticket=ticket,
        recipients=event.recipients,
    )
    try:
        kept = _sealed_into(item.keep, item.file, item.several, sealing)
    except NotWrittenError as error:
        if " -o" in str(error):
            raise
        named = NotWrittenError(f"{error}; or name another folder with -o")
        named.exit_code = error.exit_code
        raise named from None
    try:
        _require_length(kept.sealed.n_bytes, item, event)
    except ProblemError:
        # Nothing is committed, and nobody will take it.
        item.keep.unlink(missing_ok=True)
        raise
    return kept


def _header(item: Item, event: Event, ticket: Ticket | None) -> dict[str, Any]:
    """Return what is sealed and committed to beside the files."""
    header: dict[str, Any] = {"event": event.id.hex()}
    if item.several:
        header |= {"content": FILES_FORMAT, "files": len(item.several)}
    else:
        assert item.file is not None
        # Systems have names that are no text, and the header is text.
        header["name"] = os.fsencode(item.file.name).decode(errors="replace")
        if event.has_proofs:
            header["content"] = event.content
    if event.admission == "tickets":
        if ticket is None:
            raise ProblemError(
                "a ticket is needed to hand in: give its file with --ticket; the organiser of "
                f"{event.name!r} gives you one"
            )
        header["ticket"] = owned(ticket, event).id
    return header


def _sealed_into(
    target: Path, file: Path | None, several: Sequence[Source], sealing: Sealing
) -> Kept:
    """Seal a file, or several."""
    if several:
        return keep_files(several, target, sealing)
    assert file is not None
    with naming_unread(file):
        return keep(file, target, **vars(sealing))


def _n_bytes(item: Item) -> int:
    """Return how many bytes all files have."""
    paths = [each.path for each in item.several]
    if not paths and item.file is not None:
        paths = [item.file]
    n_bytes = 0
    for path in paths:
        with naming_unread(path):
            n_bytes += path.stat().st_size
    return n_bytes


def _require_length(n_bytes: int, item: Item, event: Event) -> None:
    if event.most_bytes is not None and n_bytes > event.most_bytes:
        raise ProblemError(
            f"{item.name}: sealed it has {format_bytes(n_bytes)} or more, the event takes "
            f"{format_bytes(event.most_bytes)} at most; make it smaller"
        )


def _found(item: Item, event_data: bytes, event: Event, ticket: Ticket | None) -> Kept:
    """Return what is kept of an earlier start; refuse it where it is of something else."""
    name = document_name(item.keep)
    with naming_unread(item.keep):
        kept = read_keep(item.keep)
    if kept.event != event.id:
        raise ProblemError(
            f"{name}: is for event {kept.event.hex()}, the event's file has the id "
            f"{event.id.hex()}: {id_advice(event_data, kept.event)}; or name another folder with -o"
        )
    if ticket is not None and kept.ticket != ticket:
        raise ProblemError(
            f"{name}: was sealed with another ticket; to hand the file in with this one, name "
            "another folder with -o"
        )
    _require_same_names(item, kept, name)
    if not kept.is_whole:
        _require_source(item, kept)
        return kept
    if item.several:
        changed = changed_of(item.several, kept)
        what = None if changed is None else f"{document_name(changed.path)}: "
    else:
        is_same = item.file is None or is_unchanged(item.file, kept)
        what = None if is_same else f"{item.name}: "
    if what is not None:
        raise ProblemError(
            f"{what}was changed since it was sealed as {name}; to continue with what was "
            f"sealed, name {name} instead of the file; to hand in the file as it is now, name "
            "another folder with -o"
        )
    return kept


def _require_same_names(item: Item, kept: Kept, name: str) -> None:
    """Reject files that are not those that a ``.keep`` is of."""
    if item.keep.name.endswith(SUFFIX) and not item.several and item.file is None:
        return
    named, sealed = {each.name for each in item.several}, {each.name for each in kept.files}
    if named != sealed:
        first = min(named ^ sealed)
        why = "was not sealed with the others" if first in named else "is not named with the others"
        raise ProblemError(
            f"{name}: is of other files: {first!r} {why}; to continue with what was sealed, name "
            f"{name} alone; to hand in these files, name another folder with -o"
        )


def _require_source(item: Item, kept: Kept) -> None:
    """Reject a ``.keep`` without its ciphertext whose file is not there to be sealed anew."""
    if kept.files:
        lost = changed_of(item.sources(kept), kept)
        if lost is not None:
            raise ProblemError(
                f"{document_name(item.keep)}: its ciphertext is damaged, and "
                f"{document_name(lost.path)}, which must be sealed again, is missing or changed; "
                "put it back as it was"
            )
        return
    with naming_unread(item.source):
        is_there = item.source.is_file()
    if not is_there or not is_unchanged(item.source, kept):
        raise ProblemError(
            f"{document_name(item.keep)}: its ciphertext is damaged, and "
            f"{document_name(item.source)}, which must be sealed again, is missing or changed; "
            "put it back as it was"
        )


def sealed_anew(item: Item, kept: Kept, event: Event) -> tuple[Kept, bool]:
    """Seal a file once more for the same commitment, durably, unless that was done before.

    Parameters
    ----------
    item : Item
    kept : Kept
        Of what was committed to: its secrets bind the content.
    event : Event

    Returns
    -------
    Kept
        Of what stands at ``item.anew``.
    bool
        Whether it was sealed just now.

    Raises
    ------
    ProblemError
        The file is not there as it was.
    NotWrittenError
        It cannot be written.
    """
    with suppress(ProblemError):
        found = read_keep(item.anew)
        if found.is_whole and _is_for(found, kept):
            return found, False
    sources = [each.path for each in item.sources(kept)] or [item.source]
    for source in sources:
        with naming_unread(source):
            is_there = source.is_file()
        if not is_there:
            raise ProblemError(
                f"{document_name(source)}: does not exist, and must be sealed again; put it back"
            )
    with suppress(OSError):  # said below, where it is still there
        item.anew.unlink(missing_ok=True)
    sealing = Sealing(
        event=kept.event,
        salt=kept.salt,
        inner=kept.inner,
        owner=kept.owner,
        ticket=kept.ticket,
        recipients=event.recipients,
    )
    made = _sealed_into(item.anew, item.source, item.sources(kept), sealing)
    if not _is_for(made, kept):
        with suppress(OSError):  # found out again the next time
            item.anew.unlink()
        changed = changed_of(item.sources(kept), kept) if kept.files else None
        raise ProblemError(
            f"{document_name(item.source if changed is None else changed.path)}: has changed "
            "since it was handed in, and must be sealed again as it was; put the old content back"
        )
    return made, True


def _is_for(made: Kept, kept: Kept) -> bool:
    """Return whether what was sealed anew opens the same commitment."""
    return (made.event, made.salt, made.inner, made.owner, made.sealed.content_p) == (
        kept.event,
        kept.salt,
        kept.inner,
        kept.owner,
        kept.sealed.content_p,
    )


def is_unchanged(file: Path, kept: Kept) -> bool:
    """Return whether a file holds what was sealed of it; it is read only where it looks changed."""
    with naming_unread(file), file.open("rb") as opened:
        if FileVersion.of(opened) == kept.version:
            return True
        inner = kept.inner
        found = content_digest(inner.secret, inner.header, pieces_of(file))
        return found == kept.sealed.content_p


def changed_of(sources: Sequence[Source], kept: Kept) -> Source | None:
    """Return the first of several files that is not what was sealed; None: all are.

    One is read only where it looks changed.
    """
    by_name = {each.name: each for each in kept.files}
    codes = [each.code for each in kept.files]
    openings = file_openings(kept.inner.secret, kept.inner.header, [*by_name], codes)
    opening_of = dict(zip(by_name, openings, strict=True))
    for source in sources:
        of_file, path = by_name[source.name], source.path
        with naming_unread(path):
            if not path.is_file():
                return source
            with path.open("rb") as opened:
                if FileVersion.of(opened) == of_file.version:
                    continue
        if opening_of[source.name].code_of(pieces_of(path)) != of_file.code:
            return source
    return None


def pieces_of(path: str | PathLike[str]) -> Iterator[bytes]:
    """Yield the bytes of a file, in pieces; raise `ProblemError` where it cannot be read."""
    with naming_unread(path), Path(path).open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            yield block
