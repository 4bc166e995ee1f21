"""Problem files to start from: ``datacollect example`` lists and writes them.

The first line of each says what it shows. Files whose names begin with ``scenario`` are scenarios,
for ``datacollect simulate``.
"""

from __future__ import annotations

from importlib.resources import files

SCENARIO = "scenario"


def example_names() -> tuple[str, ...]:
    """Return the names of the problems, sorted.

    >>> example_names()
    ('alps', 'connections', 'constraints', 'figure1', 'minimal', 'prices', 'returns', 'sites',
     'upload')
    """
    return tuple(name for name in _names() if not name.startswith(SCENARIO))


def scenario_names() -> tuple[str, ...]:
    """Return the names of the scenarios, sorted.

    >>> scenario_names()
    ('scenario_small',)
    """
    return tuple(name for name in _names() if name.startswith(SCENARIO))


def example_files(name: str) -> dict[str, str]:
    """Return an example's files: the problem file first, then the CSVs that it names, if any.

    >>> list(example_files("upload"))
    ['upload.toml', 'upload.csv']
    """
    folder = files(__name__)
    found = {}
    for file in (f"{name}.toml", *(f"{name}{part}.csv" for part in ("", "_files", "_samples"))):
        if (folder / file).is_file():
            found[file] = (folder / file).read_text(encoding="utf-8")
    return found


def example_summary(name: str) -> str:
    """Return what an example shows, in a line.

    >>> example_summary("minimal")
    'Two sources, one destination: the least a problem file holds.'
    """
    first, _, _ = example_files(name)[f"{name}.toml"].partition("\n")
    return first.removeprefix("# ")


def _names() -> list[str]:
    names = (path.name for path in files(__name__).iterdir())
    return sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml"))
