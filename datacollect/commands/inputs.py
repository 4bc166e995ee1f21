"""Protection of inputs: no command overwrites what it read, or what that names, even by --force."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from collections.abc import Iterable

# Keys of problem and scenario files that name other files, by the tables that they stand in.
NAMES_FILES = (
    ("bandwidth_csv",),
    ("manifest",),
    ("problem",),
    ("truth_csv",),
    ("estimates", "file"),
    ("topology", "file"),
)


def require_kept(output: str | None, *inputs: str, option: str = "-o") -> None:
    """Refuse to write over an input, or over a file that one of the inputs names.

    Parameters
    ----------
    output : str or None
        What is to be written; None: nothing.
    inputs : str
        Files, or folders of files, that are read; ``-`` is standard input, which cannot be looked
        at twice.
    option : str
        Which option names `output`.

    Raises
    ------
    ProblemError
        It would overwrite one of them.
    """
    if output is None or not Path(output).is_file():
        return
    for path in inputs:
        if Path(path).is_dir() and Path(path).resolve() in Path(output).resolve().parents:
            raise ProblemError(
                f"{option} {output} would overwrite the input {Path(output).name!r}, which is in "
                f"{path}; name another file"
            )
        for name, why in ((path, ""), *_named_by(path)):
            if Path(name).exists() and Path(output).samefile(name):
                raise ProblemError(
                    f"{option} {output} would overwrite the input{why}; name another file"
                )


def _named_by(path: str) -> Iterable[tuple[str, str]]:
    """Files that a problem or scenario names, and those that its problem names in turn."""
    for keys, name in _names_in(path):
        file = str(Path(path).parent / name)
        yield file, f" {name!r}, which is {'.'.join(keys)} in {path}"
        if keys == ("problem",):
            yield from _named_by(file)


def _names_in(path: str) -> Iterable[tuple[tuple[str, ...], str]]:
    from datacollect.files.documents import read_tree

    if path == "-" or not Path(path).is_file():
        return
    try:
        tree: Any = read_tree(path)
    except ProblemError:
        return  # whoever reads it in earnest says what is wrong
    for keys in NAMES_FILES:
        value = tree
        for key in keys:
            value = value.get(key) if isinstance(value, Mapping) else None
        if isinstance(value, str) and value:
            yield keys, value
