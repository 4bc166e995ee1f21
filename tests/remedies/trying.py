"""Examples of remedies: what provokes a message, and the same as the message advises."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pytest

from datacollect.commands.main import run
from datacollect.errors import DatacollectError


@dataclass(frozen=True)
class Example:
    """What provokes a message, and the same as the message advises.

    `says` is a part of the message as it stands in the source, with ``{}`` for what run time fills
    in. `bad` raises the message, or returns it among what was said; `good` raises nothing, and
    returns nothing, or what was said. `module` is who says so, where several say the same.
    """

    says: str
    bad: Callable[[], object]
    good: Callable[[], object]
    module: str = ""


def told(provoke: Callable[[], object]) -> str:
    """Return what somebody is told: an error, or else what was said."""
    try:
        return " ".join(str(provoke()).split())
    except DatacollectError as error:
        return " ".join(str(error).split())


def is_in(part: str, message: str) -> bool:
    """Whether a part of a text, with ``{}`` for what run time fills in, is in a message."""
    pieces = re.split(r"\{[^{}]*\}", part)
    return re.search(".*".join(map(re.escape, pieces)), message) is not None


def until(stage: str, provoke: Callable[[], object]) -> Callable[[], None]:
    """Return what comes so far, to another error, and fails where it comes less far or further."""

    def come() -> None:
        with pytest.raises(DatacollectError, match=stage):
            provoke()

    return come


@contextlib.contextmanager
def in_new_folder(**files: str | bytes) -> Iterator[Path]:
    """Work in a folder with some files, whose names have ``_`` for the dot before their kind."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name, content in files.items():
            data = content if isinstance(content, bytes) else content.encode()
            Path(".".join(name.rsplit("_", 1))).write_bytes(data)
        yield Path(folder)


def call(line: str) -> str:
    """Run a command; return all that it says, or raise what it is told."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        code = run(shlex.split(line))
    text = " ".join(said.getvalue().split())
    if code:
        raise DatacollectError(text)
    return text


def in_folder(*lines: str, **files: str | bytes) -> Callable[[], str]:
    """Return what runs commands in a folder of its own, and returns what the last one says.

    Only the last may fail.
    """

    def run_all() -> str:
        with in_new_folder(**files):
            *before, last = lines
            for line in before:
                try:
                    call(line)
                except DatacollectError as error:
                    raise AssertionError(f"{line}: {error}") from None
            return call(last)

    return run_all


def without(package: str, provoke: Callable[[], object]) -> Callable[[], object]:
    """Return what runs where a package is not installed."""
    import builtins

    real = builtins.__import__

    def importing(name: str, *rest: object) -> object:
        if name.partition(".")[0] == package:
            raise ModuleNotFoundError(f"No module named {package!r}", name=package)
        return real(name, *rest)

    def run_without() -> object:
        gone = {name for name in sys.modules if name.partition(".")[0] == package}
        with (
            mock.patch.dict(sys.modules),
            mock.patch.object(builtins, "__import__", importing),
        ):
            for name in gone:
                del sys.modules[name]
            return provoke()

    return run_without
