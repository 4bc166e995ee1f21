"""Makes a log again, for who has its key and has lost its folder, from mirrors.

All of a log can be copied but its key. What is made again holds the same entries, the same
checkpoints and cosignatures; then each witness is asked to sign it, for that alone shows whether
the log goes on. Entries that no mirror holds and witnesses have signed are missed by these.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from datacollect.bistro.auditor.log_reading import got
from datacollect.bistro.formats.event import strength
from datacollect.bistro.formats.log.checkpoints import (
    MOST_CHECKPOINT_BYTES,
    SIZE_STOP,
    Checkpoint,
    SignedCheckpoint,
    cosigned_times,
    sign_checkpoint,
    time_of,
    whole,
)
from datacollect.bistro.formats.log.notes import parse_signatures
from datacollect.bistro.formats.log.tiles import Edge, TileReader
from datacollect.bistro.formats.log.tree import consistency_proof
from datacollect.bistro.formats.log.witnessing import ADD_CHECKPOINT, AddCheckpoint
from datacollect.bistro.formats.receipt.counted_time import kth_smallest
from datacollect.bistro.log_service.core import log_of
from datacollect.bistro.log_service.log_copy import PUSHED, LogCopy, folder_name
from datacollect.bistro.log_service.messages import Publish, Row, Store, StoreHead
from datacollect.bistro.log_service.store import LogStore
from datacollect.bistro.mirror.copying import ForkError, Growing, LogCopying, new_leaves
from datacollect.bistro.mirror.mirror import asker_of, require_mirrors
from datacollect.errors import DatacollectError, ProblemError, TransferError
from datacollect.files.held_folder import Held, not_written
from datacollect.net.fan_out import fan_out
from datacollect.net.http_asking import Asker
from datacollect.net.safe_text import safe_text
from datacollect.net.tls import web_context

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator, Mapping, Sequence

    from datacollect.bistro.auditor.log_reading import Asks
    from datacollect.bistro.formats.event.event import Event, Witness
    from datacollect.bistro.formats.log.notes import NoteSignature
    from datacollect.bistro.formats.log.proofs import LogProof
    from datacollect.bistro.formats.log.tree import Nodes
    from datacollect.net.keys import PrivateKey

SIGNS, AHEAD, OTHER, SILENT = "signs", "has signed more", "has signed another log", "is silent"
# So many entries are written together; so many checkpoints have their tiles synced together.
MOST_ROWS, MOST_HEADS = 10_000, 100
PROOF_TYPE = "text/plain; charset=utf-8"


@dataclass(frozen=True)
class WitnessSaid:
    """Answer of a witness to a log that was made again.

    `outcome` is `SIGNS`, `AHEAD`, `OTHER` or `SILENT`; `text` says it in words.
    """

    witness: str
    outcome: str
    text: str


@dataclass(frozen=True)
class Rebuilt:
    """A log that was made again.

    Attributes
    ----------
    log : str
        Its origin.
    n_before : int
        Entries that its folder held.
    size : int
        That it holds now.
    n_filled : int
        Of these, entries that no mirror has, from what people hold.
    witnesses : tuple of WitnessSaid
    quorum, n_believed : int
        So many witnesses make it count; where so many miss entries it takes nothing more.
    """

    log: str
    n_before: int
    size: int
    n_filled: int
    witnesses: tuple[WitnessSaid, ...]
    quorum: int
    n_believed: int

    @property
    def is_dead(self) -> bool:
        """Return whether it never goes on: too many witnesses have signed what is not here."""
        n_others = sum(each.outcome in (AHEAD, OTHER) for each in self.witnesses)
        return n_others >= self.n_believed or len(self.witnesses) - n_others < self.quorum

    @property
    def goes_on(self) -> bool:
        """Return whether a quorum of witnesses has signed it as it is."""
        n_signing = sum(each.outcome == SIGNS for each in self.witnesses)
        return n_signing >= self.quorum and not self.is_dead


def rebuild(
    event: Event,
    key: PrivateKey,
    folder: Path,
    mirrors: Sequence[str],
    proofs: Mapping[bytes, LogProof] | None = None,
    tls: ssl.SSLContext | None = None,
    words: Mapping[int, bytes] | None = None,
) -> Rebuilt:
    """Make the folder of a log again from mirrors, or bring an older copy of it up to date.

    Parameters
    ----------
    event : Event
    key : PrivateKey
        Of the log.
    folder : Path
        Of the log; nobody is at work there.
    mirrors : sequence of str
        Their addresses or folders; what any of them holds counts.
    proofs : mapping of bytes to LogProof, optional
        By entry: what people hold, verified. Entries that no mirror has are taken from there.
    tls : ssl.SSLContext, optional
        By which witnesses are verified.
    words : mapping of int to bytes, optional
        Entries that the log has acknowledged to people, by their places.

    Raises
    ------
    ProblemError
        No mirror holds the log, or the folder holds what is no beginning of it.
    StoreError, NotWrittenError
        The disk is full, or fails.
    """
    log = log_of(event, key)
    require_mirrors(mirrors)
    if not folder.exists() and not mirrors:
        raise ProblemError(f"{folder}: no such folder; name a mirror of the log with --from")
    with ExitStack() as stack:
        held = Held(folder)
        store = stack.enter_context(closing(LogStore(held, log.text)))
        scratch = stack.enter_context(scratch_beside(folder))
        n_before, copy = store.kept().n_entries, LogCopy(Path(scratch), log, event)
        pushed = gather(copy, event, mirrors) if mirrors else None
        n_filled = fill(copy, proofs or {}, event)
        pushed, n_by_words = acknowledged(copy, pushed, words or {}, key)
        write_log(copy, event, key, store, pushed)
        if store.kept().head is None:
            raise ProblemError(f"{folder}: holds no checkpoint; name a mirror with --from")
        said = ask_witnesses(event, key, store, tls)
    return Rebuilt(
        log.name,
        n_before,
        max(copy.size, n_before, 0 if pushed is None else pushed.head.checkpoint.size),
        n_filled + n_by_words,
        said,
        event.quorum,
        strength.n_believed(event),
    )


def scratch_beside(folder: Path) -> tempfile.TemporaryDirectory[str]:
    """Return a folder beside another, which goes when it is left."""
    try:
        return tempfile.TemporaryDirectory(prefix=".recover-", dir=folder.parent)
    except OSError as error:
        raise not_written(folder.parent, error) from error


@dataclass(frozen=True)
class Pushed:
    """Entries behind those that a quorum has signed: `head` is by the log alone."""

    head: SignedCheckpoint
    leaves: tuple[bytes, ...]

    def beyond(self, size: int) -> tuple[bytes, ...]:
        """Return the entries behind so many of the log."""
        first = self.head.checkpoint.size - len(self.leaves)
        return self.leaves[max(size - first, 0) :]


def gather(copy: LogCopy, event: Event, mirrors: Sequence[str]) -> Pushed | None:
    """Take into a copy of a log all that any mirror holds of it; return what it had pushed beyond.

    Raises
    ------
    ProblemError
        None holds any of it; the message says why. Or the log has signed two trees.
    """
    place, troubles = folder_name(copy.log), []
    pushed: Pushed | None = None
    with ExitStack() as stack:
        askers = {
            mirror: stack.enter_context(asker_of(f"{mirror.rstrip('/')}/{place}"))
            for mirror in mirrors
        }
        for mirror, asker in askers.items():
            try:
                LogCopying(copy, event, is_mirror=True).take(asker)
            except ForkError as error:
                raise ProblemError(
                    f"{mirror}: shows another log than others do: {error}; ask the operators of "
                    "the witnesses which one continues, and name only mirrors of that one"
                ) from None
            except (ProblemError, TransferError) as error:
                troubles.append(f"{mirror}: {error}")
        for mirror, asker in askers.items():
            try:
                found = _pushed(copy, asker)
            except (ProblemError, TransferError) as error:
                troubles.append(f"{mirror}: {error}")
            else:
                pushed = max(pushed, found, key=_size_of)
    if copy.size < 0 and pushed is None:
        why = "; ".join(troubles) or "it is in none of them"
        raise ProblemError(
            f"no mirror holds the log {copy.log.name}: {why}; name another with --from"
        )
    return pushed


def _size_of(pushed: Pushed | None) -> int:
    return -1 if pushed is None else pushed.head.checkpoint.size


def _pushed(copy: LogCopy, asker: Asks) -> Pushed | None:
    """Return what a service has written into a mirror itself, beyond what a quorum has signed."""
    answer = got(asker, f"/{PUSHED}", MOST_CHECKPOINT_BYTES)
    if answer.status != 200:
        return None
    head = SignedCheckpoint.parse(answer.body, PUSHED)
    if not head.is_of(copy.log):
        raise ProblemError(f"{PUSHED} is not signed by the log's key")
    if head.checkpoint.size <= copy.size:
        return None
    growing, leaves = Growing(*copy.edge()), []
    for leaf in new_leaves(head.checkpoint.size, growing, asker):
        growing.append(leaf)
        leaves.append(leaf)
    if growing.edge.root() != head.checkpoint.root:
        raise ProblemError(f"{PUSHED} does not begin with what its log had published")
    return Pushed(head, tuple(leaves))


def fill(copy: LogCopy, proofs: Mapping[bytes, LogProof], event: Event) -> int:
    """Add entries that proofs show to a copy, as far as none is missing; return how many.

    They count where they make the root of a checkpoint that a quorum of witnesses has signed.
    """
    at = {proof.index: entry for entry, proof in proofs.items()}
    heads = {
        proof.signed.checkpoint.size: proof.signed
        for proof in proofs.values()
        if proof.signed.is_of(copy.log)
        and len(cosigned_times(proof.signed.note, event.witness_keys)) >= event.quorum
    }
    first, growing = copy.size, Growing(*copy.edge())
    while growing.edge.size in at:
        growing.append(at[growing.edge.size])
        head = heads.get(growing.edge.size)
        if head is not None and growing.edge.root() == head.checkpoint.root:
            copy.extend(growing.taken(), growing.edge, growing.bundle, [head])
    return copy.size - first


def acknowledged(
    copy: LogCopy, pushed: Pushed | None, words: Mapping[int, bytes], key: PrivateKey
) -> tuple[Pushed | None, int]:
    """Add entries that the log has acknowledged behind all that is held, as far as none is missing.

    Whether witnesses have signed just these, they say themselves. Returns how many there are, too.
    """
    leaves = [] if pushed is None else [*pushed.beyond(copy.size)]
    n_held = max(copy.size, 0) + len(leaves)
    n = 0
    while n_held + n in words:
        leaves.append(words[n_held + n])
        n += 1
    if not n:
        return pushed, 0
    growing = Growing(*copy.edge())
    for leaf in leaves:
        growing.append(leaf)
    head = Checkpoint(copy.log.name, growing.edge.size, growing.edge.root())
    return Pushed(SignedCheckpoint(head, sign_checkpoint(head, key)), tuple(leaves)), n


def write_log(
    copy: LogCopy,
    event: Event,
    key: PrivateKey,
    store: LogStore,
    pushed: Pushed | None = None,
) -> None:
    """Write into a log's folder what a copy has more: entries, tiles, published checkpoints.

    What tickets were used for no mirror knows: the quotas of who hands in more begin anew.

    Raises
    ------
    ProblemError
        The folder holds other entries.
    """
    beyond = () if pushed is None else pushed.beyond(copy.size)
    write_entries(chain(copy.leaves(), beyond), store)
    growing, leaves = Growing(Edge(), []), copy.leaves()
    sizes = copy.sizes()
    while some := [*islice(sizes, MOST_HEADS)]:
        heads = [head for size in some if (head := copy.checkpoint(size)) is not None]
        for leaf in islice(leaves, some[-1] - growing.edge.size):
            growing.append(leaf)
        # Those of smaller sizes are the beginnings of these.
        store.store_tiles(StoreHead(growing.edge.size, b"", tuple(growing.taken())))
        store.restore(_heads(head, event, key) for head in heads)
    if pushed is not None and growing.edge.size < pushed.head.checkpoint.size:
        for leaf in beyond:
            growing.append(leaf)
        write_head(growing, pushed.head.checkpoint, key, store)


def write_head(growing: Growing, checkpoint: Checkpoint, key: PrivateKey, store: LogStore) -> None:
    """Write the checkpoint of a tree that no witness has signed yet, and what tiles are new."""
    signed = sign_checkpoint(checkpoint, key)
    head = StoreHead(growing.edge.size, signed.data, tuple(growing.taken()))
    store.store_tiles(head)
    store.store_head(head)


def _heads(head: SignedCheckpoint, event: Event, key: PrivateKey) -> tuple[StoreHead, Publish]:
    """Return a checkpoint as it was kept, and as it was published."""
    size, own = head.checkpoint.size, sign_checkpoint(head.checkpoint, key)
    time_s = kth_smallest(cosigned_times(head.note, event.witness_keys).values(), event.quorum)
    assert time_s is not None
    return StoreHead(size, own.data, ()), Publish(size, head.note.data, time_s)


def write_entries(leaves: Iterator[bytes], store: LogStore) -> None:
    """Write entries into a log's folder, whose beginning they go on with.

    Raises
    ------
    ProblemError
        The folder holds other entries.
    """
    at, n_held = 0, store.kept().n_entries
    while some := [*islice(leaves, MOST_ROWS)]:
        held = store.entries(at, at + len(some))
        differs = [i for i, entry in enumerate(held) if entry != some[i]]
        if differs:
            raise ProblemError(
                f"the log's folder holds another entry {at + differs[0]} than mirrors do: this "
                "log continued after it was lost; move that folder away, and run this again"
            )
        if new := some[len(held) :]:
            first = max(at, n_held)
            store.store(Store(first, tuple(Row(leaf, None) for leaf in new)))
        at += len(some)


def ask_witnesses(
    event: Event, key: PrivateKey, store: LogStore, tls: ssl.SSLContext | None = None
) -> tuple[WitnessSaid, ...]:
    """Ask each witness to sign the log as it is in its folder; return what they say."""
    kept = store.kept().head
    assert kept is not None
    checkpoint = SignedCheckpoint.parse(kept).checkpoint
    head = SignedCheckpoint(checkpoint, sign_checkpoint(checkpoint, key))
    node = TileReader(checkpoint.size, store.tile).node
    tls = tls or web_context()
    witnesses = {each.vkey.name: each for each in event.witnesses}
    outcomes = fan_out(witnesses, lambda name: _said_by(witnesses[name], head, node, tls))
    return tuple(outcomes[name].result() for name in witnesses)


def _said_by(
    witness: Witness, head: SignedCheckpoint, node: Nodes, tls: ssl.SSLContext
) -> WitnessSaid:
    """Ask a witness for its signature; once more where it had signed less than this."""
    name, size = witness.vkey.name, head.checkpoint.size
    try:
        answer = _asked(witness, size, (), head, tls)
        if isinstance(answer, int) and answer < size:
            proof = tuple(consistency_proof(answer, size, node))
            answer = _asked(witness, answer, proof, head, tls)
    except DatacollectError as error:
        return WitnessSaid(name, SILENT, f"is silent: {error}")
    if answer is None:
        return WitnessSaid(name, SIGNS, f"signs {size} entries")
    if isinstance(answer, str):
        return WitnessSaid(name, OTHER if answer == OTHER else SILENT, answer)
    if answer > size:
        missing = f"entries {size} to {answer - 1} are missing here"
        return WitnessSaid(name, AHEAD, f"has signed {answer} entries: {missing}")
    return WitnessSaid(name, OTHER, f"{OTHER} of {answer} entries in this one's name")


def _asked(
    witness: Witness,
    old_size: int,
    proof: tuple[bytes, ...],
    head: SignedCheckpoint,
    tls: ssl.SSLContext,
) -> int | str | None:
    """Return None where a witness signs, the size that it has signed, or why it does not."""
    body = AddCheckpoint(old_size, proof, head).data
    with Asker(witness.url, tls) as asker:
        answer = asker.post(ADD_CHECKPOINT, body, PROOF_TYPE)
    text = answer.body.decode(errors="replace")
    if answer.status == 200:
        lines = _lines(text)
        is_signed = any(time_of(line, head.note.text, witness.vkey) is not None for line in lines)
        return None if is_signed else "answers something that is no signature"
    if answer.status == 409:
        return whole(text.removesuffix("\n"), "its size", SIZE_STOP)
    if answer.status == 422:
        return OTHER
    return f"answers {answer.status}: {safe_text(text.strip())}"


def _lines(text: str) -> Sequence[NoteSignature]:
    try:
        return parse_signatures(text, "its answer")
    except ProblemError:
        return ()
