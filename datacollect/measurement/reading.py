"""One reader of measurements: files and folders, whatever they are called, whoever measured.

What a file is, its content says: JSON that a tool printed (`datacollect.measurement.json_texts`),
a table (`datacollect.measurement.sample_tables`), or what else a reader
(`datacollect.measurement.readers`) knows.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from datacollect.errors import DatacollectWarning, ProblemError
from datacollect.files.documents import (
    STANDARD_INPUT,
    CutOffError,
    document_name,
    read_bytes,
    text_of,
)
from datacollect.files.kinds import shown_text
from datacollect.files.stages import counting
from datacollect.files.units import counted
from datacollect.measurement.addresses import NAMES_FILE, read_names
from datacollect.measurement.json_texts import documents_of, holds_documents, how_cut, unwrapped
from datacollect.measurement.outcomes import (
    FailedTestError,
    Outcome,
    limited_tests,
    listed,
    once_each,
    require_tests,
)
from datacollect.measurement.readers import READERS
from datacollect.measurement.sample_rules import require_samples, ruled
from datacollect.measurement.sample_tables import (
    ReadTable,
    TableOptions,
    is_sample_table,
    read_table,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from os import PathLike

    import pandas as pd

    from datacollect.measurement.readers import Reader

# Hosts' names by address, None where nothing is said of them.
Names: TypeAlias = "Mapping[str, str] | None"


class _NoResultError(ProblemError):
    """A document of JSON that is no result of a test."""


@dataclass(frozen=True)
class Measurements:
    """Samples that were read, and notes on them.

    Attributes
    ----------
    samples : DataFrame
        See `datacollect.measurement.samples`.
    notes : tuple of str
        What was left out, or assumed.
    """

    samples: pd.DataFrame
    notes: tuple[str, ...]


def read_measurements(
    paths: Sequence[str | PathLike[str]],
    *,
    names: Mapping[str, str] | None = None,
    columns: Mapping[str, str] | None = None,
    only: Mapping[str, str] | None = None,
    times: bool = True,
    skip_failed: bool = False,
    tables: bool = True,
) -> Measurements:
    """Read all samples of files and folders; a test counts once, wherever it stands.

    Parameters
    ----------
    paths : sequence of path-like
        ``-`` is standard input.
    names : mapping, optional
        Host's name by address, for what tools printed. A file ``names.csv`` in a folder says more,
        for the folder and all below it.
    columns, only : mapping, optional
        For tables, see `datacollect.measurement.samples.read_samples`.
    times : bool
        False: samples count as equally old, in the order of the files.
    skip_failed : bool
        Pass over tests that failed.
    tables : bool
        Whether tables are read at all.

    Raises
    ------
    ProblemError
        A file is neither, or breaks a rule; all tests that failed are named at once.
    """
    import pandas as pd

    reader = _Reader(names, TableOptions(columns, only, times), tables)
    for path in paths:
        reader.read(path)
    notes, parts = reader.notes, reader.parts
    kept = once_each([one for part in parts if isinstance(part, list) for one in part], notes)
    of_tables = [part for part in parts if isinstance(part, ReadTable)]
    require_tests(
        [*kept, *(Outcome("", failures=table.failures) for table in of_tables)],
        notes,
        skip_failed=skip_failed,
        n_rows=sum(len(table.frame) for table in of_tables),
    )
    for table in of_tables:
        notes += table.notes
    notes += limited_tests(kept)
    if times and len({table.is_timeless for table in of_tables} | ({False} if kept else set())) > 1:
        notes.append("samples without times count as older than those that have some")
    counts = {id(one) for one in kept}
    frames = [part.frame if isinstance(part, ReadTable) else _frame(part, counts) for part in parts]
    filled = [frame for frame in frames if len(frame)]
    samples = pd.concat(filled or frames[:1] or [_frame([], counts)], ignore_index=True)
    found = ruled(samples if times else samples.assign(time_s=0.0))
    notes += found.notes
    require_samples(found.samples, notes)
    return Measurements(found.samples.reset_index(drop=True), tuple(notes))


def with_warnings(found: Measurements) -> pd.DataFrame:
    """Return the samples with the notes in their ``attrs``, and warn of each note."""
    for text in found.notes:
        warnings.warn(text, DatacollectWarning, stacklevel=3)
    found.samples.attrs["notes"] = found.notes
    return found.samples


class _Reader:
    """Reads file by file what counts, in order: outcomes of tests, and tables."""

    def __init__(
        self, names: Mapping[str, str] | None, options: TableOptions, tables: bool
    ) -> None:
        self.parts: list[list[Outcome] | ReadTable] = []
        self.notes: list[str] = []
        self._names, self._options, self._tables = names, options, tables
        self._seen: dict[bytes, str] = {}

    def read(self, path: str | PathLike[str]) -> None:
        """Read a file, or the files of a folder and of all folders below it."""
        if str(path) != "-" and Path(path).is_dir():
            self._read_folder(Path(path))
        else:
            self._read_file(path, self._names)

    def _read_folder(self, path: Path) -> None:
        passed_over, n_read = [], 0
        files = list(_files_below(path, self._names))
        with counting(len(files), "files") as step:
            for file, names in files:
                try:
                    self._read_file(file, names, of_folder=True)
                    n_read += 1
                except _NoResultError:
                    passed_over.append(str(file.relative_to(path)))
                step()
        if not n_read:
            raise ProblemError(
                f"{path}: the folder holds no file *.json, nor another one with results of tests; "
                "put iperf3's outputs there"
            )
        if passed_over:
            self.notes.append(
                f"{path}: {counted(len(passed_over), 'file')} without results of tests skipped: "
                f"{listed(passed_over)}"
            )

    def _read_file(
        self, path: str | PathLike[str], names: Names, *, of_folder: bool = False
    ) -> None:
        name = document_name(path)
        data = read_bytes(path)
        try:
            text = text_of(data, name)
        except CutOffError as error:
            self.parts.append([Outcome(name, failures=(str(error),))])
            return
        except ProblemError as error:
            # In a folder there may be pictures; a result that is no text is none of these.
            if of_folder and ".json" not in name.lower():
                raise _NoResultError(str(error)) from None
            raise
        if of_folder and not self._is_measurement(text, name):
            raise _NoResultError(f"{name}: holds no result of a test")
        self._read_text(text, name, names)

    def _is_measurement(self, text: str, name: str) -> bool:
        return (
            not text.strip()
            or holds_documents(text)
            or self._is_table(text, name)
            or self._reader_of_text(text, name) is not None
        )

    def _is_table(self, text: str, name: str) -> bool:
        return self._tables and is_sample_table(text, name, self._options)

    def _reader_of_text(self, text: str, name: str) -> Reader | None:
        """Return who reads a text that is no JSON; None: it is a table, or nobody does."""
        found = next((one for one in map(READERS.get, READERS.own) if one.reads_text(text)), None)
        if found is not None or self._is_table(text, name):
            return found
        return next((one for one in READERS.brought() if one.reads_text(text)), None)

    def _read_text(self, text: str, name: str, names: Names) -> None:
        digest = sha256(text.encode()).digest()
        if text.strip() and digest in self._seen:
            self.notes.append(f"{name} holds the same as {self._seen[digest]}, and counts once")
            return
        self._seen[digest] = name
        if holds_documents(text):
            if self._options.columns or self._options.only:
                option = "--column" if self._options.columns else "--only"
                raise ProblemError(
                    f"{option} is for a CSV of samples, got {name!r}, which a tool printed as JSON"
                )
            self.parts.append(list(self._outcomes(text, name, names)))
        elif text.strip() and (reader := self._reader_of_text(text, name)) is not None:
            self.parts.append(list(reader.outcomes(text, name, names)))
        elif not text.strip() or not self._tables:
            self.parts.append([Outcome(name, failures=(_why_nothing(text, name),))])
        else:
            if self._names is not None:
                raise ProblemError(
                    "--name is for iperf3's output; a CSV of samples names its hosts"
                )
            try:
                self.parts.append(read_table(text, name, self._options))
            except FailedTestError as error:
                self.parts.append([Outcome(name, failures=(str(error),))])

    def _outcomes(self, text: str, name: str, names: Names) -> Iterator[Outcome]:
        other_lines: list[str] = []
        of_other_kinds: dict[str, int] = {}
        for document in documents_of(text, other_lines):
            place = name if document.number == 1 else f"{name}, test {document.number}"
            if document.problem:
                begins = f"{name}, " if document.problem.startswith("line ") else f"{place}: "
                yield Outcome(place, failures=(begins + document.problem,))
                continue
            trees = list(unwrapped(document.tree))
            if cut := how_cut(document.tree):
                self.notes.append(f"{place}: the answer is cut: {cut}; ask for all of it")
            if not trees:
                yield Outcome(place, failures=(f"{place}: the answer holds no document",))
            for number, tree in enumerate(trees, start=1):
                hit = f", hit {number}" if len(trees) > 1 else ""
                outcome = _outcome(tree, f"{place}{hit}", names)
                if outcome.other_kind:
                    kind = outcome.other_kind
                    of_other_kinds[kind] = of_other_kinds.get(kind, 0) + 1
                else:
                    yield outcome
        if other_lines:
            first = shown_text(other_lines[0])
            self.notes.append(
                f"{name}: {counted(len(other_lines), 'line')} of other text skipped, such as "
                f"{first!r}"
            )
        for kind, n in of_other_kinds.items():
            self.notes.append(
                f"{name}: left out, as they measure no bandwidth: {counted(n, 'test')} of type "
                f"{kind}"
            )


def _files_below(folder: Path, by_hand: Names, names: Names = None) -> Iterator[tuple[Path, Names]]:
    """Yield the files of a folder and of those below it, in order, with hosts' names by address.

    What the user says `by_hand` counts before files of names, and the nearest of these before those
    of folders above. What begins with a dot is passed over, and so are links to folders, which may
    lead in circles.
    """
    names = names or by_hand
    entries = [entry for entry in sorted(folder.iterdir()) if not entry.name.startswith(".")]
    for entry in entries:
        if entry.name == NAMES_FILE and entry.is_file():
            names = {**(names or {}), **read_names(entry), **(by_hand or {})}
    for entry in entries:
        if entry.is_dir() and not entry.is_symlink():
            yield from _files_below(entry, by_hand, names)
        elif entry.is_file() and entry.name != NAMES_FILE:
            yield entry, names


def _outcome(tree: Any, place: str, names: Names) -> Outcome:
    for reader in READERS.entries():
        if reader.reads_document(tree):
            return reader.outcome(tree, place, names)
    known = ", or ".join(reader.document for reader in READERS.entries() if reader.document)
    raise _NoResultError(f"{place}: must be {known}")


# Columns of samples, and the attributes of a `Sample` that they hold.
_COLUMNS = {
    "from": "from_host",
    "to": "to_host",
    "time_s": "time_s",
    "bandwidth_bytes_per_s": "bandwidth_bytes_per_s",
    "bytes": "n_bytes",
    "duration_s": "duration_s",
    "streams": "streams",
    "kind": "kind",
}


def _frame(outcomes: Sequence[Outcome], counts: set[int]) -> pd.DataFrame:
    """Return the samples of the outcomes that count."""
    import pandas as pd

    samples = [sample for one in outcomes if id(one) in counts for sample in one.samples]
    return pd.DataFrame(
        {
            column: [getattr(sample, attribute) for sample in samples]
            for column, attribute in _COLUMNS.items()
        }
    )


def _why_nothing(text: str, name: str) -> str:
    """Say why a text holds no result."""
    what = "there is no input" if name == STANDARD_INPUT else "the file is empty"
    if not text.strip():
        return f"{name}, line 1: no header, and no output of iperf3 -J: {what}"
    first = shown_text(text.strip().splitlines()[0])
    return f"{name}, line 1: not complete JSON, got {first!r}; must be the output of iperf3 -J"
