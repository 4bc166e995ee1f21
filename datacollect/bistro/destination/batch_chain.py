"""A bistro's batches held against each other: none is missing, none is there twice, none altered.

Rows count whatever their bistro does with its chain: people are not to blame for it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from datacollect.bistro.custody.batches import FIRST
from datacollect.bistro.log.checkpoints import TIME_STOP
from datacollect.bistro.log.entry import COMMITMENT_LABEL, SIZE_STOP
from datacollect.bistro.receipt.evidence import Lie
from datacollect.files.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from datacollect.bistro.custody.batches import Batch


@dataclass(frozen=True, order=True)
class Link:
    """A batch in its chain: its number, its digest, and that of the batch that it follows."""

    number: int
    digest: bytes
    previous: bytes


def chain_lies(bistro: str, links: Iterable[Link]) -> list[Lie]:
    """Return what a bistro has signed that does not fit together.

    Parameters
    ----------
    bistro : str
        Its name in the event.
    links : iterable of Link
        All that it has signed, as far as they are known, in any order.

    Examples
    --------
    >>> first, third = Link(0, b"a" * 32, bytes(32)), Link(2, b"c" * 32, b"b" * 32)
    >>> [lie.text for lie in chain_lies("north", [third, first])]
    ['It has signed batch 2 and shows no batch 1.']
    """
    by_number = {
        number: [*some] for number, some in groupby(sorted({*links}), lambda link: link.number)
    }
    texts = []
    for number, some in by_number.items():
        if len(some) > 1:
            hashes = " and ".join(link.digest.hex() for link in some)
            texts.append(f"It has signed {len(some)} batches of number {number}: {hashes}.")
        before = by_number.get(number - 1)
        if number == 0:
            known = {FIRST}
        elif before is None:
            texts.append(f"It has signed batch {number} and shows no batch {number - 1}.")
            continue
        else:
            known = {link.digest for link in before}
        texts += [
            f"Its batch {number} follows a batch {number - 1} that it does not show, "
            f"{link.previous.hex()}."
            for link in some
            if link.previous not in known
        ]
    return [Lie(bistro, text) for text in texts]


def opening_rows(batch: Batch) -> tuple[np.ndarray, list[Lie]]:
    """Return the rows of a batch that open the commitments which they name; and that others do not.

    Parameters
    ----------
    batch : Batch

    Returns
    -------
    rows : ndarray of dtype ``ROW`` in `datacollect.bistro.custody.batches`
    lies : list of Lie
    """
    rows = batch.rows
    bounded = rows["committed_size"] < SIZE_STOP
    bounded &= (rows["size"] < SIZE_STOP) & (rows["time_s"] < TIME_STOP)
    head = COMMITMENT_LABEL + batch.event
    salts, sizes = _raw(rows, "salt", 32), _raw(rows, "committed_size", 8)
    hashes, codes = _raw(rows, "committed_sha256", 32), _raw(rows, "content_p", 32)
    entries = [
        hashlib.sha256(head + b"".join(parts)).digest()
        for parts in zip(salts, sizes, hashes, codes, strict=True)
    ]
    is_open = bounded & np.array(
        [ours == theirs for ours, theirs in zip(entries, _raw(rows, "entry", 32), strict=True)],
        bool,
    )
    n_wrong = len(rows) - int(is_open.sum())
    if not n_wrong:
        return rows, []
    where = int(np.flatnonzero(~is_open)[0])
    text = (
        f"{counted(n_wrong, 'row')} of its batch {batch.number} open no commitment, the first is "
        f"row {where}: nobody can have handed that in."
    )
    return rows[is_open], [Lie(batch.bistro, text)]


def _raw(rows: np.ndarray, name: str, n_bytes: int) -> list[bytes]:
    data = np.ascontiguousarray(rows[name]).tobytes()
    return [data[i : i + n_bytes] for i in range(0, len(data), n_bytes)]
