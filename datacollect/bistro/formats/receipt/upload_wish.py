"""Admission of an upload: it opens an entry that a log held in time, and its owner signs for it.

What a receipt shows is not enough: the owner's key signs for this bistro, and for these bytes; so
does the ticket's, where the event has tickets. Both come with the request, and change with nothing.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from datacollect.bistro.formats.event.kinds import Hex
from datacollect.bistro.formats.event.statements import is_by_key, push_statement
from datacollect.bistro.formats.event.tickets import ID_BYTES, admitted
from datacollect.bistro.formats.log.entry import MARK_BYTES, SIZE_STOP, Commitment
from datacollect.bistro.formats.log.notes import decoded
from datacollect.bistro.formats.log.one_meaning import peer_json
from datacollect.bistro.formats.log.proofs import LogProof
from datacollect.bistro.formats.receipt.counted_time import ProvedTime, checkpoint_time
from datacollect.errors import ProblemError, RefusedError, TicketError
from datacollect.files.kinds import Whole
from datacollect.net.keys import SIGNATURE_BYTES, is_signed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacollect.bistro.formats.event.event import Event
    from datacollect.bistro.formats.event.tickets import Admitted, Ticket
    from datacollect.net.keys import PrivateKey

# Uploads of one second share a checkpoint, whose signatures are verified once.
MOST_CHECKPOINTS = 1024
_COMMITTED = ("salt", "size", "sha256", "content_p", "owner")


@dataclass(frozen=True)
class Wish:
    """An upload that may begin.

    Attributes
    ----------
    commitment : Commitment
    size : int
        In bytes, of what is to be pushed.
    sha256 : bytes
        Of what is to be pushed.
    signature : bytes
        The owner's, over `push_statement` of these bytes for this bistro.
    ticket : bytes
        Number of the ticket; zeros at an open event.
    ticket_signature : bytes
        The ticket's, over the same; zeros at an open event.
    """

    commitment: Commitment
    size: int
    sha256: bytes
    signature: bytes
    ticket: bytes = bytes(ID_BYTES)
    ticket_signature: bytes = bytes(SIGNATURE_BYTES)

    @property
    def budget(self) -> tuple[bytes, bytes]:
        """For whom is counted what it spoils: the ticket and the entry, which has one owner."""
        return self.ticket, self.commitment.entry

    @property
    def sealed_anew(self) -> bool:
        """Return whether that is another ciphertext than the one committed to."""
        return self.sha256 != self.commitment.ciphertext_sha256


class SignedWish(NamedTuple):
    """An upload for which all have signed, and a proof that nobody has looked at.

    `token_sha256` is that by which its ticket is revoked; None at an open event.
    """

    wish: Wish
    proof: LogProof
    token_sha256: bytes | None = None


class LateError(RefusedError):
    """A proof is of after the deadline, as far as that is known here."""


class Admission:
    """Judges uploads by what they bring along.

    Parameters
    ----------
    event : Event
    bistro_key : str
        The public key of the bistro for which it must be signed.
    most_bytes : int
        That an upload may have where the event does not say.
    """

    def __init__(self, event: Event, bistro_key: str, most_bytes: int) -> None:
        self._event, self._bistro_key = event, bistro_key
        # What was committed to before a ticket was revoked still counts: its time decides.
        self._unrevoked = replace(event, revoked=frozenset())
        self._most_bytes = most_bytes if event.most_bytes is None else event.most_bytes
        self._checkpoints: dict[bytes, ProvedTime] = {}

    def wish_of(self, metadata: str, size: int, now_s: float) -> Wish:
        """Return what may begin: `signed_wish`, of which the proof counts.

        Raises
        ------
        LateError
            It was not in time, and nothing else is wrong with its proof.
        RefusedError
            It may not; the status says why.
        """
        signed = self.signed_wish(metadata, size, now_s)
        self.require_in_time(signed)
        return signed.wish

    def signed_wish(self, metadata: str, size: int, now_s: float) -> SignedWish:
        """Return what may begin if its proof counts, which costs most to see.

        Parameters
        ----------
        metadata : str
            The header ``Upload-Metadata``: ``commitment``, ``proof``, ``owner``, the owner's
            signature; where the event has tickets ``ticket``, the token, and ``holder``, the
            ticket's signature; where it was sealed anew ``sha256`` of what is pushed.
        size : int
            The header ``Upload-Length``.
        now_s : float
            Seconds since 1970.

        Raises
        ------
        RefusedError
            It may not; the status says why.
        """
        event = self._event
        if event.cancelled_text is not None:
            raise RefusedError(event.cancelled_text, 410)
        if not event.opens_s <= now_s < event.collect_until_s:
            raise RefusedError("nothing is accepted now: the event is over, or not open yet", 410)
        try:
            values = metadata_of(metadata)
            commitment = commitment_of(values.get("commitment", b""), event)
            proof = LogProof.parse(values.get("proof", b""))
        except ProblemError as error:
            raise RefusedError(str(error), 400) from None
        sha256 = values.get("sha256", commitment.ciphertext_sha256)
        if len(sha256) != len(commitment.ciphertext_sha256):
            raise RefusedError("sha256 must be 32 bytes, in Base64", 400)
        if size != commitment.size and sha256 == commitment.ciphertext_sha256:
            raise RefusedError(
                f"Upload-Length must be {commitment.size}, as committed to, got {size}", 400
            )
        if size > self._most_bytes:
            raise RefusedError(f"an upload has {self._most_bytes} bytes at most, got {size}", 413)
        ticket = self._ticket(values.get("ticket", b""), now_s)
        number = bytes(ID_BYTES) if ticket is None else bytes.fromhex(ticket.id)
        said = push_statement(event.id, self._bistro_key, commitment.entry, sha256, size, number)
        signature = self._owners(values, commitment.owner, said)
        holder = self._holders(values, ticket, said)
        wish = Wish(commitment, size, sha256, signature, number, holder)
        return SignedWish(wish, proof, None if ticket is None else ticket.token_sha256)

    def _owners(self, values: Mapping[str, bytes], owner: bytes | None, said: bytes) -> bytes:
        """Return the owner's signature, without which nothing more is looked at."""
        signature = values.get("owner", b"")
        if owner is None or not is_by_key(said, signature, owner):
            raise RefusedError(
                "owner must be the signature of the entry's owner, for this bistro and these "
                "bytes: a receipt alone gives no right to send the file",
                403,
            )
        return signature

    def require_in_time(self, signed: SignedWish) -> None:
        """Raise `RefusedError` where a proof does not count, `LateError` where it came late.

        A ticket that was revoked since counts for what stood in a log before that was published.
        """
        proof, entry = signed.proof, signed.wish.commitment.entry
        found = self._time(proof)
        if found.time_s is None:
            raise RefusedError(f"the proof does not count: {found.why_not}", 403)
        if not proof.includes(entry):
            raise RefusedError("the proof is that of another entry", 403)
        if found.time_s > self._event.latest_s:
            raise LateError(
                "the proof's time is after the deadline; the destination does not collect this "
                "upload",
                403,
            )
        if signed.token_sha256 in self._event.revoked:
            revoked_s = self._event.revoked_s(signed.token_sha256)
            if revoked_s is None or found.time_s > revoked_s:
                raise RefusedError(
                    "the ticket is revoked, and the proof's time is after that; ask the organiser "
                    "for the new one",
                    403,
                )

    def _time(self, proof: LogProof) -> ProvedTime:
        note = proof.signed.note.data
        found = self._checkpoints.get(note)
        if found is None:
            found = checkpoint_time(proof.signed, self._event)
            if len(self._checkpoints) >= MOST_CHECKPOINTS:
                self._checkpoints.clear()
            self._checkpoints[note] = found
        return found

    def _ticket(self, token: bytes, now_s: float) -> Admitted | None:
        """Return what the token says; None at an open event."""
        if self._event.admission != "tickets":
            return None
        try:
            return admitted(token.decode(errors="replace"), self._unrevoked, now_s)
        except TicketError as error:
            raise RefusedError(str(error), 403) from None

    def _holders(self, values: Mapping[str, bytes], ticket: Admitted | None, said: bytes) -> bytes:
        """Return the ticket's signature; zeros at an open event."""
        if ticket is None:
            return bytes(SIGNATURE_BYTES)
        signature = values.get("holder", b"")
        if not is_signed(said, signature, ticket.key):
            raise RefusedError(
                "holder must be the signature of the ticket, for this bistro and these bytes: "
                "the token alone gives no right to send the file",
                403,
            )
        return signature


def push_metadata(
    commitment: Commitment,
    proof: bytes | None,
    *,
    event: Event,
    bistro_key: str,
    sha256: bytes,
    size: int,
    owner: PrivateKey,
    ticket: Ticket | None,
) -> str:
    """Return the header ``Upload-Metadata`` that lets an upload begin, signed for one bistro.

    Parameters
    ----------
    commitment : Commitment
    proof : bytes or None
        A tlog-proof of the entry; None: there is none yet, which the bistro will say.
    event : Event
    bistro_key : str
        The bistro's public key.
    sha256 : bytes
    size : int
        Of what is pushed.
    owner : PrivateKey
        Whose public half the commitment names.
    ticket : Ticket or None
        None at an open event.
    """
    number = bytes(ID_BYTES) if ticket is None else ticket.number
    said = push_statement(event.id, bistro_key, commitment.entry, sha256, size, number)
    values = {"commitment": commitment_json(commitment), "owner": owner.sign(said)}
    if proof is not None:
        values["proof"] = proof
    if ticket is not None:
        values |= {"ticket": ticket.token.encode(), "holder": ticket.key.sign(said)}
    if sha256 != commitment.ciphertext_sha256:
        values["sha256"] = sha256
    return metadata_text(values)


def metadata_of(text: str) -> dict[str, bytes]:
    """Return what a header ``Upload-Metadata`` says.

    >>> metadata_of("a YWI=,b")
    {'a': b'ab', 'b': b''}
    """
    found: dict[str, bytes] = {}
    for part in text.split(",") if text else ():
        name, _, value = part.strip().partition(" ")
        raw = decoded(value)
        if raw is None:
            raise ProblemError("Upload-Metadata must be names and Base64")
        if not name or name in found:
            raise ProblemError("Upload-Metadata must give each name once")
        found[name] = raw
    return found


def metadata_text(values: Mapping[str, bytes]) -> str:
    """Return the header that says that.

    >>> metadata_text({"a": b"ab"})
    'a YWI='
    """
    return ",".join(f"{k} {base64.b64encode(v).decode()}" for k, v in values.items())


def commitment_json(commitment: Commitment) -> bytes:
    """Return a commitment as a bistro is told of it."""
    tree = {
        "salt": commitment.salt.hex(),
        "size": commitment.size,
        "sha256": commitment.ciphertext_sha256.hex(),
        "content_p": commitment.content.hex(),
        "owner": None if commitment.owner is None else commitment.owner.hex(),
    }
    if commitment.mark is not None:
        tree["mark"] = commitment.mark.hex()
    return json.dumps(tree, separators=(",", ":")).encode()


def commitment_of(data: bytes, event: Event) -> Commitment:
    """Return the commitment of `commitment_json`; raise `ProblemError` where it is none."""
    place = "Upload-Metadata: commitment"
    tree = peer_json(data)
    wanted = (*_COMMITTED, "mark") if event.has_marks else _COMMITTED
    if not isinstance(tree, dict) or tree.keys() != {*wanted}:
        names = f"{', '.join(wanted[:-1])} and {wanted[-1]}"
        raise ProblemError(f"{place} must be JSON with {names}")
    return Commitment(
        event.id,
        Hex().read(tree["salt"], f"{place}: salt"),
        Whole("bytes", stop=SIZE_STOP).read(tree["size"], f"{place}: size"),
        Hex().read(tree["sha256"], f"{place}: sha256"),
        Hex().read(tree["content_p"], f"{place}: content_p"),
        Hex().read(tree["owner"], f"{place}: owner"),
        Hex(MARK_BYTES).read(tree["mark"], f"{place}: mark") if event.has_marks else None,
    )
