"""Readers of measurements: what each program's results look like. Each is one file beside.

What a file is, its content says: no reader looks at names of files. Another package brings a reader
as an entry point of the group ``datacollect.readers``; it is asked where none of ours knows what a
file is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from datacollect.files.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from datacollect.measurement.outcomes import Outcome


@dataclass(frozen=True)
class TableKind:
    """Columns of one program's tables, and what they are here.

    Attributes
    ----------
    program : str
        Its reader's name; empty where the user says what columns are.
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
        Columns that distinguish unlike measurements of a pair.
    optional : tuple of str
        Those of `columns` that a table may lack.
    success : str
        Column that is ``"True"`` where the test succeeded; ``""``: none.
    """

    program: str
    columns: Mapping[str, str]
    only: Mapping[str, str] = field(default_factory=dict)
    timeless: bool = False
    tests: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unlike: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    success: str = ""


@dataclass(frozen=True, kw_only=True)
class Reader:
    """Reader of one program's results, with what they look like.

    Attributes
    ----------
    name : str
    text : str
        What it reads, for help.
    document : str
        What its JSON documents are, for messages; empty where it reads none.
    tables : tuple of TableKind
        What the columns of its tables mean.
    """

    name: str
    text: str
    document: str = ""
    tables: tuple[TableKind, ...] = ()

    def reads_document(self, tree: Any) -> bool:
        """Return whether a JSON document is one of the program's."""
        return False

    def outcome(self, tree: Any, place: str, names: Mapping[str, str] | None) -> Outcome:
        """Return what a JSON document says of a test.

        Parameters
        ----------
        tree : object
            Of which `reads_document` says that it is the program's.
        place : str
            File, and which test in it, for messages.
        names : mapping of str to str or None
            Host's name by address.

        Raises
        ------
        ProblemError
            It is no complete result.
        """
        raise NotImplementedError

    def reads_text(self, text: str) -> bool:
        """Return whether a text, neither JSON nor a table of samples, is one of the program's."""
        return False

    def outcomes(self, text: str, place: str, names: Mapping[str, str] | None) -> Iterable[Outcome]:
        """Return what such a text says of tests; see `outcome`."""
        raise NotImplementedError


READERS = Registry(
    "reader of measurements",
    "datacollect.readers",
    Reader,
    {
        "iperf3": "datacollect.measurement.iperf3_results:IPERF3",
        "perfSONAR": "datacollect.measurement.perfsonar:PERFSONAR",
        "Skyplane": "datacollect.measurement.skyplane:SKYPLANE",
    },
)
