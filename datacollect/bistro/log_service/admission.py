"""Admission of requests to a log: counted by ticket, and by address where no ticket counts.

A request counts for a ticket where the ticket's key has signed it, for this log. Who only shows its
token counts for an address, and takes nothing from the ticket's owner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacollect.bistro.formats.event.statements import commit_statement
from datacollect.bistro.formats.event.tickets import Admitted, admitted
from datacollect.errors import RefusedError, TicketError
from datacollect.files.units import counted
from datacollect.net.buckets import bucket_of
from datacollect.net.keys import is_signed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.bistro.formats.event.event import Event
    from datacollect.bistro.formats.event.tickets import Shown
    from datacollect.net.buckets import Bucket

# Requests of a ticket; of an address that shows none that counts, and entries at an open event.
TICKET_PER_S, TICKET_AT_ONCE = 2.0, 60.0
ADDRESS_PER_S, ADDRESS_AT_ONCE = 20.0, 600.0

# So many tickets are known without verifying their signature again.
MOST_KNOWN = 20_000


class TooManyError(RefusedError):
    """Too many requests: come again after `retry_after_s` seconds."""

    def __init__(self, what: str, retry_after_s: float) -> None:
        super().__init__(f"{what}; try again later", 429)
        self.retry_after_s = retry_after_s


class Admission:
    """Uses of tickets and addresses so far.

    A campus has one address: it counts only requests whose ticket does not count, or that have
    none. What a ticket has used is on the disk, but for what is under way.

    Parameters
    ----------
    event : Event
        Replaced as amendments come.
    log_key : str
        The public key of the log for which tickets sign.
    """

    def __init__(self, event: Event, log_key: str) -> None:
        self.event, self._log_key = event, log_key
        self._known: dict[str, Admitted] = {}
        self._tickets: dict[str, Bucket] = {}
        self._addresses: dict[str, Bucket] = {}

    def admit(
        self,
        shown: Shown | Admitted | None,
        entries: Sequence[bytes],
        address: str,
        now_s: float,
        unix_s: float,
    ) -> str | None:
        """Return the number of the ticket that a request counts for; None: it needs none.

        Parameters
        ----------
        shown : Shown, Admitted or None
            What came of a ticket; or what `verified` has found in it, somewhere else.
        entries : sequence of bytes
            What is asked for: at an open event each counts for the address.
        address : str
        now_s, unix_s : float
            The monotonic clock, and seconds since 1970.

        Raises
        ------
        RefusedError
            The event is not open, or was cancelled; no ticket counts; or there are too many
            requests.
        """
        if self.event.cancelled_text is not None:
            raise RefusedError(self.event.cancelled_text, 410, is_final=True)
        if unix_s < self.event.opens_s:
            opens = self.event.clock_text(self.event.opens_s)
            raise RefusedError(f"the event opens at {opens}; try again then", 403)
        if unix_s >= self.event.collect_until_s:
            raise RefusedError("the event is over", 410, is_final=True)
        if self.event.admission == "open":
            self.count_address(address, now_s, len(entries))
            return None
        if not isinstance(shown, Admitted):
            shown = self.verified(shown, entries, address, now_s, unix_s)
        elif shown.token_sha256 in self.event.revoked:
            raise RefusedError("the ticket is revoked; ask the organiser for the new one", 403)
        number = shown.id
        bucket = bucket_of(self._tickets, number, TICKET_PER_S, TICKET_AT_ONCE)
        if not bucket.take(now_s):
            raise TooManyError("too many requests with this ticket", 1.0 / TICKET_PER_S)
        return number

    def count_address(self, address: str, now_s: float, n: int = 1) -> None:
        """Count requests for an address; raise `TooManyError` where there were too many."""
        if not self._of_address(address).take(now_s, n):
            raise TooManyError("too many requests from this address", n / ADDRESS_PER_S)

    def check_quota(self, n_used: int, n_new: int) -> None:
        """Raise `RefusedError` where a ticket is not good for so many more entries."""
        most = self.event.commitments_per_ticket
        if n_used + n_new > most:
            raise RefusedError(
                f"the ticket is good for {counted(most, 'commitment')}, {n_used} were made with "
                f"it, got {n_new} more",
                403,
                is_final=True,
            )

    def amended(self, event: Event) -> None:
        """Take an event as an amendment has left it: tickets may be revoked."""
        self.event = event
        self._known.clear()

    def verified(
        self,
        shown: Shown | None,
        entries: Sequence[bytes],
        address: str,
        now_s: float,
        unix_s: float,
    ) -> Admitted:
        """Return whose ticket has signed for entries, in their order, and for this log.

        A request that no ticket has signed counts for its address.

        Raises
        ------
        RefusedError
            There is no ticket, it does not count or has not signed, or there were too many such
            requests from the address.
        """
        if shown is None:
            self.count_address(address, now_s)
            raise RefusedError("a ticket is needed; the organiser of the event gives you one", 403)
        found = self._named(shown.token, address, now_s, unix_s)
        said = commit_statement(self.event.id, self._log_key, entries)
        # Also where the address has used up its own: who signs is not refused for a neighbour.
        if not is_signed(said, shown.signature, found.key):
            self.count_address(address, now_s)
            raise RefusedError(
                "signature must be the ticket's, for this log and these entries in their order: "
                "the token alone gives no right to hand in",
                403,
            )
        return found

    def _named(self, token: str, address: str, now_s: float, unix_s: float) -> Admitted:
        """Return what a ticket's token says, counted for an address where it does not count."""
        known = self._known.get(token)
        if known is None:
            bucket = self._of_address(address)
            if not bucket.take(now_s):
                raise TooManyError(
                    "too many requests from this address without a ticket", 1.0 / ADDRESS_PER_S
                )
            try:
                known = admitted(token, self.event, unix_s)
            except TicketError as error:
                raise RefusedError(str(error), 403) from None
            bucket.give_back()
            if len(self._known) >= MOST_KNOWN:
                self._known.pop(next(iter(self._known)))
            self._known[token] = known
        return known

    def _of_address(self, address: str) -> Bucket:
        return bucket_of(self._addresses, address, ADDRESS_PER_S, ADDRESS_AT_ONCE)
