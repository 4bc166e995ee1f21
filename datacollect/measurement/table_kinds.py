"""Columns of tables of samples, which other programs name as they like, and their meanings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacollect.errors import ProblemError, nearest_hint
from datacollect.measurement.readers import READERS, TableKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from datacollect.measurement.readers import Reader


def kind_of(
    header: Sequence[str], columns: Mapping[str, str] | None, known: Iterable[str], where: str
) -> TableKind | None:
    """Return what the columns of a table mean; None where they are named as samples are.

    Parameters
    ----------
    header : sequence of str
    columns : mapping or None
        From columns of the table to those of samples, as the user says.
    known : iterable of str
        Columns of samples.
    where : str
        The table's name, for messages.

    Raises
    ------
    ProblemError
        `columns` names a column that the table, or samples, do not have, or two alike.

    Examples
    --------
    >>> kind_of(["src", "dst", "received_bps"], None, (), "grid.csv").program
    'Skyplane'
    """
    if columns is None:
        is_ours = {"from", "to"} <= set(header)
        return None if is_ours else next(_fitting(header, READERS.entries()), None)
    for theirs, ours in columns.items():
        if theirs not in header:
            raise ProblemError(
                f"{where}, line 1: has no column {theirs!r}, which is to be {ours!r}"
                + nearest_hint(theirs, header)
            )
        if ours not in known:
            raise ProblemError(
                f"column {theirs!r} must become one of {', '.join(known)}, got {ours!r}"
                + nearest_hint(ours, known)
            )
    same = {name: name for name in header if name in known and name not in columns.values()}
    chosen = {**same, **columns}
    if len(set(chosen.values())) < len(chosen):
        twice = next(n for n in chosen.values() if list(chosen.values()).count(n) > 1)
        raise ProblemError(f"{where}, line 1: two columns would become {twice!r}; keep one")
    return TableKind("", chosen)


def said_twice(header: Sequence[str], kind: TableKind) -> list[tuple[str, str]]:
    """Return pairs of columns that say the same: what is read, and what might be read instead.

    >>> header = ["src_region", "dst_region", "throughput_recieved", "throughput_received"]
    >>> said_twice(header, kind_of(header, None, (), "grid.csv"))
    [('throughput_recieved', 'throughput_received')]
    """
    theirs = {ours: column for column, ours in kind.columns.items()}
    pairs = {
        (theirs[ours], column)
        for other in _fitting(header, [READERS.get(kind.program)])
        for column, ours in other.columns.items()
        if column in header and ours in theirs and theirs[ours] != column
    }
    return sorted(pairs)


def _fitting(header: Sequence[str], readers: Iterable[Reader]) -> Iterator[TableKind]:
    for reader in readers:
        for kind in reader.tables:
            if {*kind.columns, *kind.only} - {*kind.optional} <= set(header):
                yield kind
