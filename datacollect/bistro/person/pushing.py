"""State machine of uploading (sans I/O): tries bistros until one has signed that it holds all.

Bistros are tried in the given order, the next one where one refuses, has no room, or gives no help
again and again. After an interruption the same bistro is asked how far it is, and gone on with.
Whatever a bistro answers, it holds nobody: each is left once several tries running have not had it
take some more, or once all was sent to it for a second time.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urlsplit

from datacollect.bistro.formats.custody.bistro_receipt import read_bistro_receipt
from datacollect.errors import TicketError
from datacollect.files.documents import peer_json
from datacollect.net.safe_text import safe_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from datacollect.bistro.formats.custody.bistro_receipt import BistroReceipt
    from datacollect.bistro.formats.event.event import Event
    from datacollect.bistro.formats.log.entry import Commitment
    from datacollect.bistro.formats.receipt.receipt import Receipt
    from datacollect.net.http_asking import Answer

# How often in a row a bistro may fail without having taken so much more, or all; waits between.
MOST_FAILURES, LEAST_GAIN_BYTES, AGAIN_S = 3, 64 * 1024, 1.0
# Besides all once, and once more in vain, a bistro is sent so much: what was under way when a
# connection was cut.
MORE_BYTES = 64 * 2**20
# A bistro that asks to be left alone for longer is left.
MOST_WAIT_S = 60.0
# So much goes with the request that begins: a refusal of more would come too late.
TOGETHER_BYTES = 2**20
NO_ROOM, CONFLICT, NOT_THERE, TOO_MANY = 507, 409, (404, 410), 429


@dataclass(frozen=True)
class Payload:
    """Bytes that are pushed.

    Attributes
    ----------
    n_bytes : int
    sha256 : bytes
    sealed_anew : bool
        Whether that is another ciphertext than the one committed to.
    is_new : bool
        Whether nothing of it can be anywhere yet.
    """

    n_bytes: int
    sha256: bytes
    sealed_anew: bool = False
    is_new: bool = False

    @classmethod
    def committed(cls, commitment: Commitment) -> Payload:
        """Return the ciphertext that was committed to."""
        return cls(commitment.size, commitment.ciphertext_sha256)


@dataclass(frozen=True, slots=True)
class Begin:
    """Ask a bistro to take the upload, with its first `n_bytes`: ``POST /tus/``."""

    bistro: int
    n_bytes: int


@dataclass(frozen=True, slots=True)
class Look:
    """Ask how far the upload is: ``HEAD``."""

    bistro: int
    path: str


@dataclass(frozen=True, slots=True)
class Send:
    """Send all from an offset on: ``PATCH``."""

    bistro: int
    path: str
    offset: int


@dataclass(frozen=True, slots=True)
class End:
    """Have the bistro forget what it has of another ciphertext: ``DELETE``."""

    bistro: int
    path: str


Step: TypeAlias = Begin | Look | Send | End


class Pushing:
    """Pushes one sealed file, until a bistro's receipt counts.

    Parameters
    ----------
    event : Event
    receipt : Receipt
        Proves a time, which bistros want to see.
    order : sequence of int
        The event's bistros, by their index, in which they are tried.
    payload : Payload

    Attributes
    ----------
    receipt : Receipt
        With the bistro's, once it holds the file.
    step : Step or None
        What is to be done now; None: it is over.
    wait_s : float
        How long to wait before it.
    troubles : list of str
        What bistros said that gave no help.
    """

    def __init__(
        self, event: Event, receipt: Receipt, order: Sequence[int], payload: Payload
    ) -> None:
        self._event, self._order, self._payload = event, list(order), payload
        self.receipt = receipt
        self.troubles: list[str] = []
        self.wait_s = 0.0
        # What was sent to this bistro, how far it has come at most, and where failing was forgiven.
        self._n_failures = self._sent_bytes = self._most = self._forgiven = 0
        self.step: Step | None = None
        if self.holder is None:
            self._next()

    @property
    def holder(self) -> tuple[str, int] | None:
        """Name of the bistro that holds the file, and since when, by its own clock."""
        for word in words_of(self.receipt, self.receipt.bistro_receipts, self._event):
            if self._is_held(word):
                return word.bistro, word.time_s
        return None

    def _is_held(self, word: BistroReceipt) -> bool:
        """Return whether a bistro's word is on the bytes that are pushed."""
        payload = self._payload
        said = (word.size, word.sha256, word.sealed_anew)
        return said == (payload.n_bytes, payload.sha256, payload.sealed_anew)

    def take(self, answer: Answer | None, why: str = "", sent_bytes: int = 0) -> None:
        """Take what has come of `step`.

        Parameters
        ----------
        answer : Answer or None
            None: there was none, `why` says it in words.
        why : str
        sent_bytes : int
            How much of the file has left with the step, whatever has become of it.
        """
        step = self.step
        assert step is not None
        self._sent_bytes += sent_bytes
        if answer is None:
            self._failed(step, why)
        elif answer.status in (200, 201, 204):
            self._went_on(step, answer)
        elif answer.status == CONFLICT and not isinstance(step, Begin):
            self._failed(step, "it is at another offset")
        elif answer.status in NOT_THERE and not isinstance(step, Begin):
            # It has expired meanwhile: begin again.
            self._failed(step, "it has forgotten the upload", Begin(step.bistro, 0))
        elif answer.status == TOO_MANY or (answer.status >= 500 and answer.status != NO_ROOM):
            self._put_off(step, answer)
        else:
            if answer.status == NO_ROOM:
                self._prefer(_named(answer.body))
            self._given_up(step, f"({answer.status}): {_words(answer.body)}")

    def _put_off(self, step: Step, answer: Answer) -> None:
        again_s = answer.retry_after_s or 0.0
        if again_s > MOST_WAIT_S:
            why = f"answers {answer.status}, and asks to try again in {again_s:.0f} s"
            self._given_up(step, why)
            return
        self._failed(step, f"answers {answer.status}")
        if self.step is not None and self.step.bistro == step.bistro:
            self.wait_s = max(self.wait_s, again_s)

    def _prefer(self, names: Collection[str]) -> None:
        """Try bistros that another has named before the rest of those that are left."""
        bistros = self._event.bistros
        self._order.sort(key=lambda i: bistros[i].name not in names)

    def _went_on(self, step: Step, answer: Answer) -> None:
        token = answer.headers.get("datacollect-receipt")
        if token is not None:
            self._signed(step, token)
            return
        if isinstance(step, End):
            self.step = Begin(step.bistro, self._together_bytes)
            return
        path = (
            urlsplit(answer.headers.get("location", "")).path
            if isinstance(step, Begin)
            else step.path
        )
        # Who only begins an upload need not say that nothing of it is there.
        text = answer.headers.get("upload-offset", "0" if isinstance(step, Begin) else "")
        is_whole = text.isascii() and text.isdigit() and len(text) < 20
        offset = int(text) if is_whole else -1
        if not path.startswith("/") or not 0 <= offset <= self._payload.n_bytes:
            self._given_up(step, "does not say how far it is, or where")
            return
        if self._payload.is_new and isinstance(step, Begin) and offset:
            # Of another seal of the same file: these bytes and those make nothing that opens.
            self._failed(step, "has begun with another ciphertext", End(step.bistro, path))
            return
        if offset == self._payload.n_bytes:
            self._failed(
                step, "has received everything, but signs nothing", Look(step.bistro, path)
            )
            return
        then = Send(step.bistro, path, offset)
        self._most = max(self._most, offset)
        if self._most >= self._forgiven + LEAST_GAIN_BYTES:
            self._forgiven, self._n_failures = self._most, 0
        if isinstance(step, Send):
            # It was sent all that was left.
            self._failed(step, "accepts less than it is sent", then)
            return
        self.wait_s, self.step = 0.0, then

    def _signed(self, step: Step, token: str) -> None:
        words = words_of(self.receipt, [token], self._event)
        name = self._event.bistros[step.bistro].name
        if not any(word.bistro == name and self._is_held(word) for word in words):
            self._given_up(step, "its receipt does not count")
            return
        self.receipt = self.receipt.with_more(bistro_receipts=[token])
        self.step = None

    def _failed(self, step: Step, why: str, then: Step | None = None) -> None:
        self._n_failures += 1
        most_bytes = 2 * self._payload.n_bytes + MORE_BYTES
        if self._n_failures >= MOST_FAILURES or self._sent_bytes > most_bytes:
            self._given_up(step, why)
            return
        self.wait_s = AGAIN_S * 2.0 ** (self._n_failures - 1)
        if then is None:
            then = Look(step.bistro, step.path) if isinstance(step, Look | Send) else step
        self.step = then

    def _given_up(self, step: Step, why: str) -> None:
        self.troubles.append(f"{self._event.bistros[step.bistro].name}: {safe_text(why)}")
        self._next()

    def _next(self) -> None:
        self._n_failures = self._sent_bytes = self._most = self._forgiven = 0
        self.wait_s = 0.0
        self.step = Begin(self._order.pop(0), self._together_bytes) if self._order else None

    @property
    def _together_bytes(self) -> int:
        n_bytes = self._payload.n_bytes
        return n_bytes if n_bytes <= TOGETHER_BYTES else 0


def words_of(receipt: Receipt, tokens: Iterable[str], event: Event) -> list[BistroReceipt]:
    """Return what bistros of an event have signed, by tokens, of a receipt's entry."""
    found = []
    for token in tokens:
        with suppress(TicketError):
            found.append(read_bistro_receipt(token, event))
    return [word for word in found if word.entry == receipt.entry]


def _named(body: bytes) -> set[str]:
    """Return the bistros that a full one names."""
    try:
        return {name for name in peer_json(body)["bistros"] if isinstance(name, str)}
    except (TypeError, KeyError):
        return set()


def _words(body: bytes) -> str:
    """Return what a refusal says."""
    try:
        return str(peer_json(body)["why"])
    except (TypeError, KeyError):
        return body[:200].decode(errors="replace").strip()
