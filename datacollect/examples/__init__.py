"""Files to start from: ``datacollect example`` lists and writes them.

The first line of each says what it shows. Most are problems; files whose names begin with
``scenario`` are scenarios, for ``datacollect simulate``, ``host`` those of hosts, for ``datacollect
host simulate``; modules are programs.
"""

from __future__ import annotations

from importlib.resources import files

SCENARIO, HOST = "scenario", "host"

# A machine's profile, which belongs to the problem that names it.
PROFILE = "_profile.toml"


def example_names() -> tuple[str, ...]:
    """Return the names of the problems, sorted.

    >>> example_names()
    ('alps', 'cities', 'connections', 'constraints', 'figure1', 'minimal', 'prices', 'returns',
     'sites', 'upload')
    """
    return tuple(name for name in _names() if not name.startswith((SCENARIO, HOST)))


def scenario_names() -> tuple[str, ...]:
    """Return the names of the scenarios, sorted.

    >>> scenario_names()
    ('scenario_small',)
    """
    return tuple(name for name in _names() if name.startswith(SCENARIO))


def host_names() -> tuple[str, ...]:
    """Return the names of the simulated hosts, sorted.

    >>> host_names()
    ('host_simulation',)
    """
    return tuple(name for name in _names() if name.startswith(HOST))


def program_names() -> tuple[str, ...]:
    """Return the names of the programs, sorted; their files have underscores.

    >>> program_names()
    ('upload-server',)
    """
    found = (path.name for path in files(__name__).iterdir())
    modules = (name.removesuffix(".py") for name in found if name.endswith(".py"))
    return tuple(sorted(name.replace("_", "-") for name in modules if name != "__init__"))


def example_files(name: str) -> dict[str, str]:
    """Return an example's files: the problem file first, then those that it names, if any.

    >>> list(example_files("upload")), list(example_files("upload-server"))
    (['upload.toml', 'upload.csv'], ['upload_server.py'])
    """
    folder = files(__name__)
    found = {}
    others = (f"{name}{part}" for part in (".csv", "_files.csv", "_samples.csv", PROFILE))
    program = f"{name.replace('-', '_')}.py" if name in program_names() else None
    for file in (f"{name}.toml", *others) if program is None else (program,):
        if (folder / file).is_file():
            found[file] = (folder / file).read_text(encoding="utf-8")
    return found


def example_summary(name: str) -> str:
    """Return what an example shows, in a line.

    >>> example_summary("minimal")
    'Two sources, one destination: the least a problem file holds.'
    """
    first, _, _ = next(iter(example_files(name).values())).partition("\n")
    return first.removeprefix("# ").removeprefix('"""')


def _names() -> list[str]:
    names = (path.name for path in files(__name__).iterdir() if not path.name.endswith(PROFILE))
    return sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml"))
