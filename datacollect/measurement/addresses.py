"""Hosts' names by their addresses, from a table: tools print addresses, problems name hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacollect.errors import ProblemError
from datacollect.files.addresses import host_of
from datacollect.files.documents import document_name, read_bytes, text_of
from datacollect.files.tables import open_table

if TYPE_CHECKING:
    from os import PathLike

# A folder of results may hold such a file, for all that lies in the folder and below it.
NAMES_FILE = "names.csv"

_COLUMNS = ("address", "host")
_HEADER = ",".join(_COLUMNS)


def read_names(path: str | PathLike[str]) -> dict[str, str]:
    r"""Read a CSV with the columns ``address`` and ``host``.

    A host may have several addresses.

    Raises
    ------
    ProblemError
        A column is missing or unknown, a field is empty, or an address is that of two hosts.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "names.csv")
    ...     _ = file.write_text("address,host\n10.0.0.1,lyon\n10.0.1.1,lyon\n")
    ...     read_names(file)
    {'10.0.0.1': 'lyon', '10.0.1.1': 'lyon'}
    """
    name = document_name(path)
    table = open_table(text_of(read_bytes(path), name), name, _HEADER)
    if set(table.header) != set(_COLUMNS):
        raise ProblemError(
            f"{name}, line {1 + table.skipped_lines}: must have the columns address and host, got "
            f"{', '.join(table.header)}; write a header like {_HEADER}"
        )
    found: dict[str, str] = {}
    for line, row in table.rows():
        field = dict(zip(table.header, row, strict=True))
        for column in _COLUMNS:
            if not field[column].strip():
                raise ProblemError(
                    f"{name}, line {line}: {column} must not be empty; fill it in, or remove the "
                    "line"
                )
        address, host = (field[column].strip() for column in _COLUMNS)
        if (known := host_of(address, found) or host) != host:
            raise ProblemError(
                f"{name}, line {line}: address {address!r} must be that of one host, got {host!r} "
                f"after {known!r}; keep one"
            )
        found[address] = host
    return found
