"""Tables of samples as other programs write them: whose they are, and what their columns mean.

- Skyplane's grids of cloud regions (Jain et al., Skyplane, NSDI 2023): ``src``, ``dst`` and
  ``received_bps``, or ``src_region``, ``dst_region`` and ``throughput_recieved`` (spelt so) or
  ``throughput_received``, in bits per second; no times. Rows say in which network tier, and between
  which machines, they were measured, and whether the test succeeded.
- perfSONAR's ``esmond-ps-get`` and ``esmond-ps-get-bulk`` with ``--output-format csv``: ``source``,
  ``destination``, ``event_type``, ``timestamp`` (UTC) and ``value``, bits per second where the
  event type is ``throughput``; rows of other types measure no bandwidth. Rows whose
  ``summary_type`` is not ``base`` are averages of others over a ``summary_window``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from datacollect.errors import ProblemError, nearest_hint

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


@dataclass(frozen=True)
class TableKind:
    """What the columns of one program's tables are here.

    Attributes
    ----------
    program : str
    columns : mapping
        From its columns to those of samples; its others are left out.
    only : mapping
        Rows count where a column has this value.
    timeless : bool
        Whether samples have no times: they count as equally old, in the file's order.
    tests : mapping
        Where a table has such a column, and rows with one of these values, the others are
        summaries of them and do not count.
    unlike : tuple of str
        Columns that tell unlike measurements of a pair from each other.
    success : str
        Column that is ``"True"`` where the test succeeded; ``""``: none.
    """

    program: str
    columns: Mapping[str, str]
    only: Mapping[str, str] = field(default_factory=dict)
    timeless: bool = False
    tests: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unlike: tuple[str, ...] = ()
    success: str = ""


_SKYPLANE_COUNTS = {"iperf3_connections": "streams"}
KINDS = (
    TableKind(
        "Skyplane",
        {
            "src": "from",
            "dst": "to",
            "received_bps": "bandwidth_bit_per_s",
            **_SKYPLANE_COUNTS,
        },
        timeless=True,
        unlike=("src_instance", "dst_instance", "iperf3_connections"),
    ),
    *(
        TableKind(
            "Skyplane",
            {
                "src_region": "from",
                "dst_region": "to",
                spelling: "bandwidth_bit_per_s",
                **_SKYPLANE_COUNTS,
            },
            timeless=True,
            unlike=(
                *("src_tier", "dst_tier", "src_instance_class", "dst_instance_class"),
                "iperf3_connections",
            ),
            success="success",
        )
        for spelling in ("throughput_recieved", "throughput_received")
    ),
    TableKind(
        "perfSONAR",
        {
            "source": "from",
            "destination": "to",
            "timestamp": "time",
            "value": "bandwidth_bit_per_s",
        },
        only={"event_type": "throughput"},
        tests={"summary_type": ("base", "")},
        unlike=("summary_type", "summary_window", "tool_name"),
    ),
)


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
        return None if {"from", "to"} <= set(header) else next(_fitting(header), None)
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
        raise ProblemError(f"{where}, line 1: two columns are to be {twice!r}; keep one")
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
        for other in _fitting(header)
        for column, ours in other.columns.items()
        if column in header and ours in theirs and theirs[ours] != column
    }
    return sorted(pairs)


def _fitting(header: Sequence[str]) -> Iterator[TableKind]:
    optional = set(_SKYPLANE_COUNTS)
    return (k for k in KINDS if {*k.columns, *k.only} - optional <= set(header))
