"""Faults of a bistro's batches, in words.

Rows count whatever their bistro does with its chain: people are not to blame for it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from datacollect.bistro.formats.custody.batch_chain import chain_faults
from datacollect.bistro.formats.custody.batches import judged
from datacollect.bistro.formats.receipt.evidence import Lie
from datacollect.files.units import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

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
    ['It has signed batch 2 and shows no batch 1.']
    """
    found = chain_faults(links)
    texts = [
        f"It has signed {len(some)} batches of number {some[0].number}: "
        f"{' and '.join(json.dumps(note_of(link.digest).decode()) for link in some)}."
        for some in found.doubled
    ]
    texts += [
        f"It has signed batch {each.stop} and shows no batch {each.stop - 1}."
        for each in found.absent
    ]
    texts += [
        f"Its batch {link.number} follows a batch that it does not show, {link.previous.hex()}."
        for link in found.broken
    ]
    return [Lie(bistro, text) for text in texts]


def rows_handed_in(batch: Batch, event: Event) -> tuple[np.ndarray, list[Lie]]:
    """Return the rows of a batch that somebody has handed in; and that nobody has others.

    Only who owns an entry can have signed what a row says is held of it. All other rows are
    evidence against the bistro that has signed them, and say nothing of the entries that they name.

    Parameters
    ----------
    batch : Batch
    event : Event

    Returns
    -------
    rows : ndarray of dtype ``ROW`` in `datacollect.bistro.formats.custody.batches`
    lies : list of Lie
    """
    found = judged(batch, event)
    faults = {
        "opening no commitment": ~found.is_open,
        "without the owner's signature": found.is_open & ~found.is_handed_in,
    }
    lies = [
        Lie(
            batch.bistro,
            f"It reports what nobody handed in: {counted(int(is_wrong.sum()), 'row')} of its batch "
            f"{batch.number} {what}, the first is row {int(np.flatnonzero(is_wrong)[0])}.",
        )
        for what, is_wrong in faults.items()
        if is_wrong.any()
    ]
    return batch.rows[found.is_handed_in], lies
