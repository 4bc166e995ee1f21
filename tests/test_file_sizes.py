"""No source file is long: who opens one reads it whole."""

from __future__ import annotations

from judges.imports import REPOSITORY

MOST_LINES = 450
FOLDERS = ("datacollect", "solvers", "topologies", "tests", "experiments", "docs")
SUFFIXES = {".py", ".h", ".js", ".css"}

# A file may be longer where one of its first lines says why: "Longer than 450 lines: ...".
EXCUSE = f"Longer than {MOST_LINES} lines: "
MOST_EXCUSED, FIRST_LINES = 3, 10


def long_files() -> dict[str, list[str]]:
    """Return the lines of each source file that is too long, by its path."""
    found = {}
    for folder in FOLDERS:
        # rglob does not follow links: solvers and topologies are read once, where they lie.
        for path in sorted((REPOSITORY / folder).rglob("*")):
            if path.suffix in SUFFIXES and "_build" not in path.parts:
                lines = path.read_text(encoding="utf-8").splitlines()
                if len(lines) > MOST_LINES:
                    found[str(path.relative_to(REPOSITORY))] = lines
    return found


def is_excused(lines: list[str]) -> bool:
    """Whether one of the first lines says why the file is long."""
    return any(EXCUSE in line for line in lines[:FIRST_LINES])


def test_no_file_is_long_without_a_reason():
    too_long = {path: len(lines) for path, lines in long_files().items() if not is_excused(lines)}
    assert not too_long, f"split them at their ideas, or say why: {EXCUSE}..."


def test_few_files_have_a_reason_to_be_long():
    excused = [path for path, lines in long_files().items() if is_excused(lines)]
    assert len(excused) <= MOST_EXCUSED
