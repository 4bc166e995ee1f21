"""Installation: how the package was installed, and the commands that add what is missing.

The package is on no index, so that a command with its bare name would fetch a stranger's, or
nothing: a clone, or the file that was installed, is named instead.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Where only a clone has what is wanted, and nobody here knows where one is.
CLONE = "/path/of/clone"

# This package is installed as one of these; each later one is a part of the first.
DISTRIBUTIONS = ("datacollect", "datacollect-collector", "datacollect-agent")


def installed_version() -> str | None:
    """Return the version of this package; None where it is not installed.

    >>> installed_version() == metadata.version("datacollect")
    True
    """
    try:
        return metadata.version(_distribution())
    except metadata.PackageNotFoundError:
        return None


def is_absent(error: ImportError, package: str) -> bool:
    """Say whether an import has failed only because a package is not installed.

    One that is there and cannot be loaded is mended by no installation: memory is short, a library
    of the system's is missing, a disk fails.

    >>> is_absent(ModuleNotFoundError("No module named 'x'", name="x"), "x")
    True
    >>> is_absent(ImportError("libx.so: failed to map segment from shared object"), "x")
    False
    >>> is_absent(ModuleNotFoundError("No module named 'y'", name="y"), "x")
    False
    """
    return isinstance(error, ModuleNotFoundError) and error.name == package


def command_for_extra(extra: str) -> str:
    """Return the command that installs an extra of this package, such as ``report``.

    Where the source of this installation is gone, or was an index, the command names what the
    extra consists of. The collector alone and the agent alone have no extras: a clone does.

    >>> command_for_extra("report").partition("pip ")[2].startswith("install ")
    True
    """
    source = _source()
    known = [found for _, found in map(_of_extra, _requirements())]
    if source is None or (known and extra not in known):
        return _command(*_requirements_of(extra))
    folder, options = source
    return _command(*options, f"{folder}[{extra}]")


def command_for_package(package: str) -> str:
    """Return the command that installs a package in a version that this one can use.

    >>> command_for_package("ortools").endswith("'ortools>=9.15'")
    True
    """
    known = (_of_extra(requirement)[0] for requirement in _requirements())
    wanted = _plain(package)
    return _command(next((text for text in known if _plain(_name(text)) == wanted), package))


def _distribution() -> str:
    """Return what this package is installed as."""
    for name in DISTRIBUTIONS:
        if any(metadata.distributions(name=name)):
            return name
    return DISTRIBUTIONS[0]


def _command(*arguments: str) -> str:
    """Return a call of what installs where this program runs: pip, or uv where there is no pip."""
    pip = shutil.which("pip")
    if pip is not None and Path(pip).parent == Path(sys.executable).parent:
        return shlex.join(["pip", "install", *arguments])
    by_module = [sys.executable, "-m", "pip", "install", *arguments]
    if find_spec("pip") is not None:
        return shlex.join(by_module)
    if shutil.which("uv") is not None:
        return shlex.join(["uv", "pip", "install", "--python", sys.executable, *arguments])
    return f"{shlex.join([sys.executable, '-m', 'ensurepip'])} && {shlex.join(by_module)}"


def _source() -> tuple[str, tuple[str, ...]] | None:
    """Return what was installed, a folder or a wheel that is still there, and pip's options.

    What pip keeps of it: https://packaging.python.org/specifications/direct-url/.
    """
    # In a clone the folder of a build may come first: it does not know where it was installed from.
    for found in metadata.distributions(name=_distribution()):
        text = found.read_text("direct_url.json")
        if text is None:
            continue
        kept = json.loads(text)
        parts = urlsplit(kept["url"])
        path = Path(unquote(parts.path))
        if parts.scheme == "file" and path.exists():
            is_editable = kept.get("dir_info", {}).get("editable", False)
            return str(path), ("--editable",) if is_editable else ()
    # Run from a clone that nobody has installed.
    clone = Path(__file__).resolve().parents[1]
    return (str(clone), ()) if (clone / "setup.cfg").is_file() else None


def _requirements() -> list[str]:
    try:
        return metadata.requires(_distribution()) or []
    except metadata.PackageNotFoundError:  # copied from somewhere
        return []


def _requirements_of(extra: str) -> list[str]:
    pairs = map(_of_extra, _requirements())
    return [text for text, found in pairs if found == extra] or [f"{CLONE}[{extra}]"]


def _of_extra(requirement: str) -> tuple[str, str | None]:
    """Split a line of the metadata into the requirement itself and the extra that has it."""
    text, _, marker = requirement.partition(";")
    extra = re.search(r"extra == [\"']([^\"']+)[\"']", marker)
    return text.strip(), extra[1] if extra else None


def _name(requirement: str) -> str:
    found = re.match(r"[\w.-]+", requirement)
    return found[0] if found else requirement


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
