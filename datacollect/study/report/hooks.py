"""Hooks that judge sweeps, found by what a command line names."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING

from datacollect.errors import ProblemError, nearest_hint

if TYPE_CHECKING:
    from types import ModuleType

    from datacollect.study.report.verdicts import Hook

# What a hook is called where nothing else is said.
NAME = "judge"

_EXAMPLES = "name a folder with __init__.py, a file or a module, and :NAME where it is not judge"


def load_hook(place: str) -> Hook:
    """Return the function that a command line names.

    Parameters
    ----------
    place : str
        A folder with ``__init__.py``, which is imported as a package of its name, a file
        ``NAME.py``, or an installed module; with ``:NAME`` where the function has another name
        than ``judge``.

    Raises
    ------
    ProblemError
        There is no such place, or no such function in it.
    """
    where, name = _where_and_name(place)
    module = _of_file(Path(where), place) if _is_path(where) else _of_module(where, place)
    hook = getattr(module, name, None)
    if not callable(hook):
        listed = [known for known, value in vars(module).items() if callable(value)]
        raise ProblemError(
            f"--verdicts {place}: there is no function {name!r} in it"
            f"{nearest_hint(name, listed) or f'; {_EXAMPLES}'}"
        )
    return hook  # type: ignore[no-any-return]


def _where_and_name(place: str) -> tuple[str, str]:
    where, colon, name = place.rpartition(":")
    return (where, name) if colon and not Path(place).exists() else (place, NAME)


def _is_path(where: str) -> bool:
    return "/" in where or where.endswith(".py") or Path(where).exists()


def _of_module(where: str, place: str) -> ModuleType:
    try:
        return import_module(where)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{where}.".startswith(f"{error.name}."):
            raise
    except ValueError:
        pass
    raise ProblemError(f"--verdicts {place}: no such folder, file or module; {_EXAMPLES}")


def _of_file(path: Path, place: str) -> ModuleType:
    """Import a folder or a file by its own name: modules of a folder import each other by it."""
    file = path / "__init__.py" if path.is_dir() else path
    if not file.is_file():
        raise ProblemError(f"--verdicts {place}: there is no file {file}; {_EXAMPLES}")
    name = path.resolve().stem
    known = find_spec(name)
    if known is not None and known.origin is not None:
        if known.has_location and Path(known.origin).samefile(file):
            return import_module(name)
        raise ProblemError(
            f"--verdicts {place}: a module is called {name!r} already, from {known.origin}; "
            "rename one of them"
        )
    inner = [str(path.resolve())] if path.is_dir() else None
    spec = spec_from_file_location(name, file.resolve(), submodule_search_locations=inner)
    if spec is None or spec.loader is None:
        raise ProblemError(f"--verdicts {place}: {file} is not Python source; {_EXAMPLES}")
    module = sys.modules[name] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        del sys.modules[name]
        raise ProblemError(
            f"--verdicts {place}: {error.filename}, line {error.lineno}: {error.msg}; correct it"
        ) from None
    except BaseException:
        del sys.modules[name]
        raise
    return module
