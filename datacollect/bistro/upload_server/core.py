"""State machine of uploads (sans I/O): tus's states, room, segments, batches.

Bytes of all uploads go one behind the other into the open segment. A push that ends early keeps
what has come; whoever goes on with an upload ends the connection that had it before. Where pieces
of one upload overlap, in the order in which they lie, the last one counts.
"""

from __future__ import annotations

from collections import Counter
from copy import copy
from typing import TYPE_CHECKING, NamedTuple

from datacollect.bistro.formats.custody.segments import (
    CLOSED_AFTER_S,
    LEAST_PIECE_BYTES,
    MORE_PIECES,
    MOST_SEGMENT_BYTES,
)
from datacollect.bistro.formats.event.statements import GIVE_UP_HEADER, give_up_statement, is_by_key
from datacollect.bistro.upload_server import messages, requests
from datacollect.bistro.upload_server.messages import (
    Append,
    Carry,
    CloseBatch,
    CloseSegment,
    Cut,
    Drop,
    Forget,
    Keep,
    Refuse,
    Release,
    Tell,
    Unlink,
    Upload,
)
from datacollect.transfer.pieces.room import SPARE_BYTES, Room

if TYPE_CHECKING:
    from collections.abc import Iterable

    from datacollect.bistro.formats.event.event import Event as OfEvent
    from datacollect.bistro.formats.receipt.upload_wish import Wish
    from datacollect.bistro.upload_server.messages import Action, Event, Kept, Known

BATCH_ROWS, BATCH_AFTER_S = 10_000, 10.0
# Segments that only unfinished uploads keep are at most so many times as large as what these have
# there: where it is less, that is carried to the open segment, and the rest may go.
MOST_KEPT = 4
# So much is carried at a time, and the rest of a segment in which it ends.
MOST_CARRIED_BYTES = 32 * 2**20
# What an entry may leave behind by pushes that are given up or wrong, in its own sizes: no owner
# fills the disk with one proof. Pieces take room as well, in indices and the database.
MOST_SPOILT = 4
# So many are under way at most: of more, who was silent longest gives way, `EMPTY_S` at least.
MOST_UNDER_WAY = 100_000
# An upload reserves what it has sent, so many times, and as much as this: nobody holds all room by
# a promise. Who has sent nothing for `EMPTY_S` gives way to who would be refused for want of room.
GROWTH, LEAST_CLAIM_BYTES, EMPTY_S = 4, 64 * 2**20, 120.0
# How far the destination's clock may be ahead.
AHEAD_S = 3600.0
NO_ROOM, CHECKSUM, CONFLICT = 507, 460, 409
TAKEN = "this upload continues over another connection"
GONE = "there is no such upload here: it was given up, has expired, or never began"


class _Push(NamedTuple):
    """A push under way: between which offsets, and in what pieces and segments lay all before."""

    upload: Upload
    start: int
    stop: int
    n_pieces: int
    segments: dict[int, int]


class Accepting:
    """A bistro's uploads.

    Parameters
    ----------
    event : Event
    bistro : str
        Its name in the event.
    most_bytes : int
        Room for everything.
    expire_s : float
        How long an unfinished upload waits.
    kept : Kept
    known : Known
    keep_s : float
        How long what was collected stays, while there is room.
    """

    def __init__(
        self,
        event: OfEvent,
        bistro: str,
        most_bytes: int,
        expire_s: float,
        kept: Kept,
        known: Known,
        keep_s: float = 0.0,
    ) -> None:
        self._event, self._bistro, self._keep_s = event, bistro, keep_s
        self._expire_s, self._known = expire_s, known
        self._room = Room(most_bytes, kept.closed, kept.released)
        # Those that are whole stay until they are on the disk; who was silent longest is the first.
        self._uploads: dict[str, Upload] = {}
        self._by_key: dict[tuple[bytes, bool], Upload] = {}
        # Of which nothing has come, the oldest first.
        self._empty: dict[str, Upload] = {}
        # By upload: so many of its bytes may be here, those that are included.
        self._claims: dict[str, int] = {}
        # By ticket: entries that are under way, or were spoilt.
        self._entries: dict[bytes, Counter[bytes]] = {}
        # By ticket and entry: what one has spoilt is nothing to another.
        self._spoilt_bytes = Counter(kept.spoilt_bytes)
        self._spoilt_pieces = Counter(kept.spoilt_pieces)
        for budget in kept.spoilt_bytes:
            self._count_entry(budget, 1)
        for each in sorted(kept.unfinished, key=lambda each: each.expires_s):
            self._take_in(each)
            self._grow(each, each.offset)  # there may be less room than each would have alone
        self._told_s = kept.told_s
        self._segment = kept.segment
        self._room.open_bytes = kept.segment_bytes
        self._named = dict(kept.named)
        # What might go, were it not for unfinished uploads; as the destination has said last.
        self._held: set[int] = set()
        self._segment_since_s: float | None = None
        self._batch, self._batch_rows = kept.batch, 0
        self._batch_since_s = 0.0
        self._writing: dict[int, _Push] = {}
        # By upload: who pushes it.
        self._pushing: dict[str, int] = {}
        self.last_contact_s = kept.last_contact_s

    @property
    def stored_bytes(self) -> int:
        """Return what segments take that the destination still needs."""
        return self._room.stored_bytes

    @property
    def released_bytes(self) -> int:
        """Return what segments take that may go, and stays while there is room."""
        return self._room.released_bytes

    @property
    def reserved_bytes(self) -> int:
        """Return what unfinished uploads still may send."""
        return self._room.reserved_bytes

    def free_bytes(self, disk_bytes: int) -> int:
        """Return how much may still be reserved, where the disk has so much left."""
        return self._room.free_bytes(disk_bytes)

    @property
    def oldest_s(self) -> float | None:
        """Return when the oldest segment that the destination still needs was closed."""
        return self._room.oldest_s

    def amend(self, event: OfEvent) -> None:
        """Go by the event as amendments change it."""
        self._event = event

    def size_of(self, upload: str) -> int:
        """Return how many bytes an upload will have that is under way."""
        return self._uploads[upload].wish.size

    def has_spoilt(self, upload: str) -> bool:
        """Return whether some of the entry of an upload under way was sent wrong, or given up."""
        found = self._uploads.get(upload)
        return found is not None and found.wish.budget in self._spoilt_bytes

    def handle(self, event: Event) -> list[Action]:
        """Take what has happened; return what to do now, in this order."""
        match event:
            case messages.CreateAsked():
                return self._create(event)
            case messages.LookAsked():
                return self._look(event)
            case messages.WriteAsked():
                return self._write(event)
            case messages.Arrived():
                return self._arrived(event)
            case messages.WriteEnded():
                return self._write_ended(event)
            case messages.EndAsked():
                return self._end(event)
            case requests.CoveredSaid():
                return self._covered(event)
            case messages.Settled():
                return self._settled(event)
            case messages.Ticked():
                done = self._tick(event.now_s)
                done += self._carry(event.now_s, event.free_bytes)
                return [*done, *self._make_room(event.free_bytes)]
            case messages.Posted():
                raise TypeError(f"no method of a bistro takes {type(event).__name__}")

    # Reservations -----------------------------------------------------------------------------

    def _create(self, event: messages.CreateAsked) -> list[Action]:
        wish = event.wish
        entry = wish.commitment.entry
        known = self._by_key.get((entry, wish.sealed_anew))
        known = known or self._known.whole(entry, sealed_anew=wish.sealed_anew)
        if known is not None and (known.is_whole or known.wish == wish):
            return [Tell(event.request, copy(known))]
        why = self._quota(event) or self._spoilt(event)
        if why is not None:
            return [why]
        done: list[Action] = []
        # Whoever owns an entry has signed for this one: what it began before, it has given up.
        # Of what was committed to and the same sealed anew one may be under way.
        for anew in (False, True):
            other = self._by_key.get((entry, anew))
            if other is not None and not other.is_whole:
                done += self._forget(other)
        done += self._end_silent(event.now_s)
        done += self._end_empty(event)
        why = self._too_little(event)
        if why is not None:
            return [*done, why]
        upload = Upload(event.id, wish, event.now_s + self._expire_s)
        self._take_in(upload)
        self._claim(upload, _claim_of(upload, 0))
        done += self._make_room(event.free_bytes)
        return [*done, Keep(upload), Tell(event.request, copy(upload), is_new=True)]

    def _quota(self, event: messages.CreateAsked) -> Refuse | None:
        """Refuse more entries by one ticket than the event allows, also such as it has spoilt."""
        wish = event.wish
        if not any(wish.ticket):
            return None
        most = self._event.commitments_per_ticket
        entries = self._known.entries_of(wish.ticket) | self._entries.get(wish.ticket, {}).keys()
        if len(entries | {wish.commitment.entry}) <= most:
            return None
        return Refuse(
            event.request, 403, f"the ticket allows {most} uploads, which are here or under way"
        )

    def _spoilt(self, event: messages.CreateAsked) -> Refuse | None:
        """Refuse an entry of which too much was sent and given up."""
        if not self._is_spoilt(event.wish):
            return None
        text = "too much of this was sent and given up; no more of it is accepted here"
        return Refuse(event.request, 403, text)

    def _is_spoilt(self, wish: Wish) -> bool:
        size = max(wish.size, wish.commitment.size)
        return self._spoilt_bytes[wish.budget] > MOST_SPOILT * size or self._spoilt_pieces[
            wish.budget
        ] > MOST_SPOILT * _most_pieces(size)

    def _end_silent(self, now_s: float) -> list[Action]:
        """End who was silent longest where too many are under way: each takes memory."""
        if len(self._uploads) < MOST_UNDER_WAY:
            return []
        upload = next(iter(self._uploads.values()))
        if upload.is_whole or now_s - (upload.expires_s - self._expire_s) < EMPTY_S:
            return []
        return self._forget(upload)

    def _end_empty(self, event: messages.CreateAsked) -> list[Action]:
        """End uploads of which nothing has come for long, where somebody else needs their room."""
        done: list[Action] = []
        while self._empty and event.wish.size > self.free_bytes(event.free_bytes):
            upload = next(iter(self._empty.values()))
            if event.now_s - (upload.expires_s - self._expire_s) < EMPTY_S:
                break
            done += self._forget(upload)
        return done

    def _too_little(self, event: messages.CreateAsked) -> Refuse | None:
        free_bytes = self.free_bytes(event.free_bytes)
        if event.wish.size <= free_bytes:
            return None
        text = f"there is room for {free_bytes} bytes here, {event.wish.size} are needed"
        return Refuse(event.request, NO_ROOM, text)

    def _look(self, event: messages.LookAsked) -> list[Action]:
        upload = self._found(event.upload)
        if upload is None:
            return [Refuse(event.request, 404, GONE)]
        return [*self._release(upload), Tell(event.request, copy(upload))]

    def _end(self, event: messages.EndAsked) -> list[Action]:
        upload = self._found(event.upload)
        if upload is None:
            return [Refuse(event.request, 404, GONE)]
        if upload.is_whole:
            text = "it is complete, and the server has promised to keep it"
            return [Refuse(event.request, 403, text)]
        said = give_up_statement(self._event.id, self._key, upload.id)
        if not is_by_key(said, event.signature, upload.wish.commitment.owner or b""):
            text = (
                f"{GIVE_UP_HEADER} must be the signature of the entry's owner: nobody else can "
                "give it up"
            )
            return [Refuse(event.request, 403, text)]
        return [*self._forget(upload), Tell(event.request, copy(upload))]

    @property
    def _key(self) -> str:
        """The bistro's public key."""
        return next(each.key for each in self._event.bistros if each.name == self._bistro)

    # Bytes ------------------------------------------------------------------------------------

    def _write(self, event: messages.WriteAsked) -> list[Action]:
        upload = self._found(event.upload)
        if upload is None:
            return [Refuse(event.request, 404, GONE)]
        # Who goes on with an upload is right: the connection before is stale.
        done = self._release(upload)
        if event.offset != upload.offset or upload.is_whole:
            text = f"Upload-Offset must be {upload.offset}, got {event.offset}; ask by HEAD"
            return [*done, Refuse(event.request, CONFLICT, text)]
        if event.n_bytes > upload.wish.size - upload.offset:
            text = f"the upload has {upload.wish.size} bytes, and this would be more"
            return [*done, Refuse(event.request, 413, text)]
        if upload.n_pieces >= _most_pieces(upload.wish.size):
            text = "it arrived in too many small pieces; give it up, and send larger ones"
            return [*done, Refuse(event.request, 403, text)]
        stop = upload.offset + event.n_bytes
        before = dict(upload.segments)
        self._writing[event.request] = _Push(upload, upload.offset, stop, upload.n_pieces, before)
        self._pushing[upload.id] = event.request
        return done

    def _arrived(self, event: messages.Arrived) -> list[Action]:
        if event.request not in self._writing:
            return [Refuse(event.request, CONFLICT, TAKEN)]
        push = self._writing[event.request]
        upload = push.upload
        if event.n_bytes > push.stop - upload.offset:
            raise ValueError("more bytes arrived than were announced")
        done: list[Action] = []
        n_bytes = upload.offset + event.n_bytes
        if n_bytes > self._claims[upload.id] and not self._grow(upload, n_bytes):
            self._release(upload)
            text = (
                "there is no more room here; what has arrived is kept, continue later or elsewhere"
            )
            return [Refuse(event.request, NO_ROOM, text)]
        done += self._make_room(None)
        done += self._open_for(event.n_bytes, event.now_s)
        done.append(
            Append(upload, upload.offset, self._segment, self._room.open_bytes, event.n_bytes)
        )
        self._put(upload, event.n_bytes)
        upload.n_pieces += 1
        self._move(upload, upload.offset + event.n_bytes)
        upload.expires_s = event.now_s + self._expire_s
        self._empty.pop(upload.id, None)
        self._uploads[upload.id] = self._uploads.pop(upload.id)
        return [*done, Keep(upload)]

    def _open_for(self, n_bytes: int, now_s: float) -> list[Action]:
        """Have an open segment with room for so many bytes."""
        done: list[Action] = []
        if self._room.open_bytes + n_bytes > MOST_SEGMENT_BYTES:
            done += self._close_segment(now_s)
        if self._segment_since_s is None:
            self._segment_since_s = now_s
        return done

    def _put(self, upload: Upload, n_bytes: int) -> None:
        """Count bytes of an upload that go into the open segment."""
        upload.segments[self._segment] = upload.segments.get(self._segment, 0) + n_bytes
        self._room.open_bytes += n_bytes

    def _grow(self, upload: Upload, n_bytes: int) -> bool:
        """Have room for so many bytes of an upload, and, as far as there is, for what may follow.

        How full the disk is, writing shows: it is not asked with each block.
        """
        claim = self._claims[upload.id]
        wanted = _claim_of(upload, n_bytes)
        granted = min(wanted, claim + max(self._room.unpromised_bytes, 0))
        if granted < n_bytes:
            return False
        self._claim(upload, granted)
        return True

    def _write_ended(self, event: messages.WriteEnded) -> list[Action]:
        if event.request not in self._writing:
            return [Refuse(event.request, CONFLICT, TAKEN)]
        push = self._writing[event.request]
        upload, start = push.upload, push.start
        self._release(upload)
        if event.is_wrong:
            self._spoil(upload, upload.offset - start, upload.n_pieces - push.n_pieces)
            upload.n_pieces, upload.segments = push.n_pieces, push.segments
            # What was spoilt lies there, and has had its room.
            self._claim(upload, self._claims[upload.id] - (upload.offset - start))
            self._move(upload, start)
            if self._is_spoilt(upload.wish):
                text = "too much of this arrived with wrong checksums; no more of it is accepted"
                return [*self._forget(upload), Refuse(event.request, 403, text)]
            text = "Upload-Checksum is not that of the bytes that came; send them again"
            return [Unlink(upload.id, start), Keep(upload), Refuse(event.request, CHECKSUM, text)]
        if upload.offset < upload.wish.size:
            return [Tell(event.request, copy(upload))]
        assert event.sha256 is not None
        if event.sha256 != upload.wish.sha256:
            text = "these are not the bytes that their owner has signed for; begin again"
            return [*self._forget(upload), Refuse(event.request, CHECKSUM, text)]
        if not self._batch_rows:
            self._batch_since_s = event.now_s
        upload.sha256, upload.batch, upload.time_s = event.sha256, self._batch, int(event.now_s)
        self._empty.pop(upload.id, None)
        self._batch_rows += 1
        self._named |= dict.fromkeys(upload.segments, self._batch)
        done: list[Action] = [Keep(upload), Tell(event.request, copy(upload))]
        if self._batch_rows >= BATCH_ROWS:
            done += self._close_batch(event.now_s)
        return done

    def _settled(self, event: messages.Settled) -> list[Action]:
        for each in event.uploads:
            if each in self._uploads:
                self._let_go(self._uploads[each])
        return []

    # Time and the destination -----------------------------------------------------------------

    def _tick(self, now_s: float) -> list[Action]:
        done: list[Action] = []
        collect_until_s = self._event.collect_until_s
        for upload in [*self._uploads.values()]:
            if not upload.is_whole and min(upload.expires_s, collect_until_s) <= now_s:
                done += [*self._release(upload), *self._forget(upload)]
        # A clock that was set back must not hold them open for as long.
        since_s = now_s if self._segment_since_s is None else min(self._segment_since_s, now_s)
        self._batch_since_s = min(self._batch_since_s, now_s)
        if self._room.open_bytes:
            self._segment_since_s = since_s  # the segment may be of an earlier start
        is_due = bool(self._room.open_bytes) and now_s - since_s >= CLOSED_AFTER_S
        if is_due:
            done += self._close_segment(now_s)
        if self._batch_rows and (is_due or now_s - self._batch_since_s >= BATCH_AFTER_S):
            done += self._close_batch(now_s)
        if now_s >= self._event.keep_until_s:
            done += self._drop(sorted(self._room.closed - self._needed()))
        return [*done, *self._drop_released(now_s)]

    def _covered(self, event: requests.CoveredSaid) -> list[Action]:
        if event.covered.bistro != self._bistro:
            text = f"that is for {event.covered.bistro}, this is {self._bistro}"
            return [Refuse(event.request, 403, text)]
        why = self._untimely(event.covered.time_s, event.now_s)
        if why:
            return [Refuse(event.request, CONFLICT, why)]
        self._told_s, self.last_contact_s = event.covered.time_s, event.now_s
        needed = self._needed()
        # Of what its batches say that come next the destination knows nothing yet.
        may_go = {
            n
            for n in self._room.closed
            if n in event.covered and self._named.get(n, -1) < event.covered.n_batches
        }
        self._held = may_go & needed
        numbers = tuple(sorted(may_go - self._room.released - needed))
        # A destination that has lost its disk needs again what it had covered.
        again = tuple(n for n in self._room.released if n not in may_go)
        self._room.release(numbers, event.now_s)
        self._room.need(again)
        return [
            Release(numbers, again, event.now_s, self._told_s),
            *self._drop_released(event.now_s),
        ]

    def _untimely(self, time_s: int, now_s: float) -> str:
        """Say why a word of a time is none to go by.

        Whoever has heard an older one could have let go by it what is needed again since; one of
        times to come would make the next ones older.
        """
        # A clock that was far ahead, here and there, must not keep all later words out.
        if time_s < min(self._told_s, now_s + AHEAD_S):
            return f"the last statement is dated {self._told_s} s, this one {time_s} s: it is older"
        if time_s > now_s + AHEAD_S:
            return f"this statement is dated {time_s} s, but the clock here says {now_s:.0f} s"
        return ""

    def _carry(self, now_s: float, disk_bytes: int | None) -> list[Action]:
        """Carry the little that unfinished uploads have in segments that might go to the open one.

        The next word of the destination lets those go. Who touches each segment with a byte keeps
        so of nobody else's more than `MOST_KEPT` times its own.
        """
        done: list[Action] = []
        if disk_bytes is None or not self._held:
            return done
        held_by: dict[int, list[Upload]] = {number: [] for number in self._held}
        for upload in self._uploads.values():
            for number in upload.segments.keys() & held_by.keys():
                held_by[number].append(upload)
        n_carried = 0
        for number, holders in sorted(held_by.items()):
            # Others wait meanwhile: the rest comes with the next ticks.
            if n_carried >= MOST_CARRIED_BYTES:
                return done
            self._held.discard(number)
            n_bytes = sum(each.segments[number] for each in holders)
            is_little = n_bytes * MOST_KEPT <= self._room.bytes_of(number)
            if not is_little or any(each.is_whole for each in holders):
                continue
            if disk_bytes - n_carried - n_bytes < SPARE_BYTES:
                continue
            n_carried += n_bytes
            for upload in holders:
                done += self._open_for(upload.segments[number], now_s)
                at, n_of_it = self._room.open_bytes, upload.segments.pop(number)
                done.append(Carry(upload.id, number, self._segment, at, n_of_it))
                self._put(upload, n_of_it)
                if upload.id in self._pushing:
                    before = self._writing[self._pushing[upload.id]].segments
                    n_before = before.pop(number, 0)
                    before[self._segment] = before.get(self._segment, 0) + n_before
        return done

    def _needed(self) -> set[int]:
        """Return where unfinished uploads lie: that is needed still, whatever anybody says."""
        return {n for each in self._uploads.values() for n in each.segments}

    def _drop_released(self, now_s: float) -> list[Action]:
        """Drop what was collected, and has stayed for its time."""
        return self._drop(self._room.released_before(now_s, self._keep_s))

    def _drop(self, numbers: Iterable[int]) -> list[Action]:
        going = tuple(numbers)
        self._room.drop(going)
        return self._dropped(going)

    def _dropped(self, going: tuple[int, ...]) -> list[Action]:
        for number in going:
            self._named.pop(number, None)
        return [Drop(going)] if going else []

    def _make_room(self, disk_bytes: int | None) -> list[Action]:
        """Drop what was collected, the oldest first, until all has room that is promised."""
        return self._dropped(tuple(self._room.drop_for_promised(disk_bytes)))

    def _found(self, upload: str) -> Upload | None:
        return self._uploads.get(upload) or self._known.by_id(upload)

    def _release(self, upload: Upload) -> list[Action]:
        """End the push that is under way of an upload."""
        stale = self._pushing.pop(upload.id, None)
        if stale is None:
            return []
        del self._writing[stale]
        return [Cut(stale)]

    def _take_in(self, upload: Upload) -> None:
        """Have one more under way; it has room for what has come of it."""
        self._uploads[upload.id] = self._by_key[upload.key] = upload
        self._claims[upload.id] = upload.offset
        self._count_entry(upload.wish.budget, 1)
        if not upload.offset:
            self._empty[upload.id] = upload

    def _let_go(self, upload: Upload) -> None:
        """Have it under way no more."""
        self._claim(upload, upload.offset)
        del self._uploads[upload.id], self._by_key[upload.key], self._claims[upload.id]
        self._empty.pop(upload.id, None)
        self._count_entry(upload.wish.budget, -1)

    def _claim(self, upload: Upload, n_bytes: int) -> None:
        """Let so many bytes of an upload be here."""
        self._room.reserved_bytes += n_bytes - self._claims[upload.id]
        self._claims[upload.id] = n_bytes

    def _move(self, upload: Upload, offset: int) -> None:
        """So much of an upload has come now."""
        self._room.reserved_bytes -= offset - upload.offset
        upload.offset = offset

    def _count_entry(self, budget: tuple[bytes, bytes], n: int) -> None:
        """Count an entry for its ticket, or no more."""
        ticket, entry = budget
        if not any(ticket):
            return  # an open event, where nobody asks
        entries = self._entries.setdefault(ticket, Counter())
        entries[entry] += n
        if not entries[entry]:
            del entries[entry]
        if not entries:
            del self._entries[ticket]

    def _forget(self, upload: Upload) -> list[Action]:
        self._spoil(upload, upload.offset, upload.n_pieces)
        done = self._release(upload)
        self._let_go(upload)
        return [*done, Forget(upload.id)]

    def _spoil(self, upload: Upload, n_bytes: int, n_pieces: int) -> None:
        """Count what stays in segments, and is of no use."""
        if not n_bytes:
            return
        budget = upload.wish.budget
        if budget not in self._spoilt_bytes:
            self._count_entry(budget, 1)
        self._spoilt_bytes[budget] += n_bytes
        self._spoilt_pieces[budget] += n_pieces

    def _close_segment(self, now_s: float) -> list[Action]:
        number = self._segment
        self._room.close(number, now_s)
        self._segment, self._segment_since_s = number + 1, None
        return [CloseSegment(number, now_s)]

    def _close_batch(self, now_s: float) -> list[Action]:
        """Close a batch, and before it the segment: all that it names can be had by then."""
        done = self._close_segment(now_s) if self._room.open_bytes else []
        number, self._batch, self._batch_rows = self._batch, self._batch + 1, 0
        return [*done, CloseBatch(number, now_s, self._segment)]


def _most_pieces(size: int) -> int:
    """Return in how many pieces an upload of a size may come."""
    return MORE_PIECES + size // LEAST_PIECE_BYTES


def _claim_of(upload: Upload, n_bytes: int) -> int:
    """Return for how many bytes an upload may have room of which so many have come."""
    return min(upload.wish.size, GROWTH * n_bytes + LEAST_CLAIM_BYTES)
