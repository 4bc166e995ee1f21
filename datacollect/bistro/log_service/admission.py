"""Admission of requests to a log: counted by ticket, and by address where no ticket counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacollect.bistro.formats.event.tickets import Admitted, admitted
from datacollect.errors import RefusedError, TicketError
from datacollect.files.units import counted
from datacollect.net.buckets import bucket_of

if TYPE_CHECKING:
    from datacollect.bistro.formats.event.event import Event
    from datacollect.net.buckets import Bucket

# Requests of a ticket; of an address that shows none that counts, and entries at an open event.
TICKET_PER_S, TICKET_AT_ONCE = 2.0, 60.0
ADDRESS_PER_S, ADDRESS_AT_ONCE = 20.0, 600.0

# So many tickets are known without verifying their signature again.
MOST_KNOWN = 20_000


class TooManyError(RefusedError):
    """Too many requests: come again after `retry_after_s` seconds."""

    def __init__(self, what: str, retry_after_s: float) -> None:
        super().__init__(f"too many requests {what}; come again later", 429)
        self.retry_after_s = retry_after_s


class Admission:
    """What tickets and addresses have used.

    A campus has one address: it counts only requests whose ticket does not count, or that have
    none. What a ticket has used is on the disk, but for what is under way.

    Parameters
    ----------
    event : Event
        Replaced as amendments come.
    """

    def __init__(self, event: Event) -> None:
        self.event = event
        self._known: dict[str, Admitted] = {}
        self._tickets: dict[str, Bucket] = {}
        self._addresses: dict[str, Bucket] = {}

    def admit(
        self,
        shown: str | Admitted | None,
        address: str,
        now_s: float,
        unix_s: float,
        n_entries: int = 1,
    ) -> str | None:
        """Return the number of the ticket that a request counts for; None: it needs none.

        Parameters
        ----------
        shown : str, Admitted or None
            The ticket's token as it came; or what `verified` has found in it, somewhere else.
        address : str
        now_s, unix_s : float
            The monotonic clock, and seconds since 1970.
        n_entries : int
            How many it asks for: at an open event each counts for the address.

        Raises
        ------
        RefusedError
            The event is not open, no ticket counts, or there are too many requests.
        """
        if unix_s < self.event.opens_s:
            opens = self.event.clock_text(self.event.opens_s)
            raise RefusedError(f"the event opens at {opens}; come again then", 403)
        if unix_s >= self.event.collect_until_s:
            raise RefusedError("the event is over", 410, is_final=True)
        if self.event.admission == "open":
            self.count_address(address, now_s, n_entries)
            return None
        if not isinstance(shown, Admitted):
            shown = self.verified(shown, address, now_s, unix_s)
        elif shown.token_sha256 in self.event.revoked:
            raise RefusedError("the ticket is revoked; ask the organiser for the new one", 403)
        number = shown.id
        bucket = bucket_of(self._tickets, number, TICKET_PER_S, TICKET_AT_ONCE)
        if not bucket.take(now_s):
            raise TooManyError("with this ticket", 1.0 / TICKET_PER_S)
        return number

    def count_address(self, address: str, now_s: float, n: int = 1) -> None:
        """Count requests for an address; raise `TooManyError` where there were too many."""
        if not self._of_address(address).take(now_s, n):
            raise TooManyError("from this address", n / ADDRESS_PER_S)

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

    def verified(self, token: str | None, address: str, now_s: float, unix_s: float) -> Admitted:
        """Return what a ticket's token says, counted for an address where it does not count.

        Raises
        ------
        RefusedError
            There is none, it does not count, or there were too many such from the address.
        """
        if token is None:
            self.count_address(address, now_s)
            raise RefusedError("a ticket is needed; the organiser of the event gives you one", 403)
        known = self._known.get(token)
        if known is None:
            bucket = self._of_address(address)
            if not bucket.take(now_s):
                raise TooManyError("from this address without a ticket", 1.0 / ADDRESS_PER_S)
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
