"""Faults of a bistro's batches, in words.

Rows count whatever their bistro does with its chain: people are not to blame for it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from datacollect.bistro.formats.custody.batch_chain import chain_faults
from datacollect.bistro.formats.custody.batches import judged, signed_by_tickets
from datacollect.bistro.formats.receipt.evidence import Lie
from datacollect.files.units import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from datacollect.bistro.formats.custody.batch_chain import Link
    from datacollect.bistro.formats.custody.batches import Batch
    from datacollect.bistro.formats.event.event import Event


def chain_lies(bistro: str, links: Iterable[Link], note_of: Callable[[bytes], bytes]) -> list[Lie]:
    """Return what a bistro has signed that does not fit together.

    A batch that is missing counts, too: the bistro itself was asked for it.

    Parameters
    ----------
    bistro : str
        Its name in the event.
    links : iterable of Link
        All that it has signed, as far as they are known, in any order.
    note_of : function
        Returns the note of a batch by its digest: two that differ are evidence as they are.

    Examples
    --------
    >>> from datacollect.bistro.formats.custody.batch_chain import Link
    >>> first, third = Link(0, b"a" * 32, bytes(32)), Link(2, b"c" * 32, b"b" * 32)
    >>> [lie.text for lie in chain_lies("north", [third, first], {}.__getitem__)]
    ['It has signed batch 2, but shows no batch 1.']
    """
    found = chain_faults(links)
    texts = [
        f"It has signed {len(some)} different batches with the number {some[0].number}: "
        f"{' and '.join(json.dumps(note_of(link.digest).decode()) for link in some[:2])}."
        for some in found.doubled
    ]
    texts += [
        f"It has signed batch {each.stop}, but shows no batch {each.stop - 1}."
        for each in found.absent
    ]
    texts += [
        f"Its batch {link.number} follows a batch that it does not show, {link.previous.hex()}."
        for link in found.broken
    ]
    return [Lie(bistro, text) for text in texts]


def rows_handed_in(
    batch: Batch, event: Event, ticket_keys: Mapping[str, str] | None = None
) -> tuple[np.ndarray, list[Lie]]:
    """Return the rows of a batch that somebody has handed in; and that nobody has others.

    Only who owns an entry can have signed what a row says is held of it, and only who has its
    ticket that this one has pushed it. All other rows are evidence against the bistro that has
    signed them, and say nothing of the entries that they name.

    Parameters
    ----------
    batch : Batch
    event : Event
    ticket_keys : mapping of str to str or None
        Public keys of tickets, by number; a row of a ticket that is not among them counts, for the
        organiser may have given it since. None: the event admits everybody.

    Returns
    -------
    rows : ndarray of dtype ``ROW`` in `datacollect.bistro.formats.custody.batches`
    lies : list of Lie
    """
    found = judged(batch, event)
    is_theirs = found.is_handed_in.copy()
    if ticket_keys is not None:
        bistro = next(each for each in event.bistros if each.name == batch.bistro)
        keys = {bytes.fromhex(number): key for number, key in ticket_keys.items()}
        rows = batch.rows[found.is_handed_in]
        is_theirs[found.is_handed_in] = signed_by_tickets(rows, event, bistro, keys)
    faults = {
        "opening no commitment": ~found.is_open,
        "without the owner's signature": found.is_open & ~found.is_handed_in,
        "without the ticket's signature": found.is_handed_in & ~is_theirs,
    }
    lies = [
        Lie(
            batch.bistro,
            f"It reports entries that nobody handed in: {counted(int(is_wrong.sum()), 'row')} of "
            "its batch "
            f"{batch.number} {what}, the first is row {int(np.flatnonzero(is_wrong)[0])}.",
        )
        for what, is_wrong in faults.items()
        if is_wrong.any()
    ]
    return batch.rows[is_theirs], lies
