"""The examples in README.md and docs/ run, and print what they say.

Each document runs from top to bottom in one empty folder:

- ``python`` blocks share one namespace; lines after ``>>>`` are doctests;
- ``console`` blocks hold shell commands after ``$``, which lines after ``>`` go on with, and what
  they print (``...`` for anything);
  a command that is to fail ends in ``|| echo "exit $?"``; what is ``datacollect`` and, but for this
  end, nothing else runs in this process, which has long imported what each command would import;
- a block with a ``:caption:`` becomes a file of that name.

Blocks in other languages (``sh``, ``text``) are only shown.
"""

from __future__ import annotations

import doctest
import io
import os
import shlex
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sybil import Region, Sybil
from sybil.parsers.myst import CodeBlockParser, PythonCodeBlockParser
from sybil.parsers.myst.lexers import DirectiveLexer

from datacollect.commands.main import run as run_datacollect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sybil import Document, Example

REPOSITORY = Path(__file__).resolve().parents[1]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
SHELL_ONLY = set("|&;<>()$`*?~#\n")
TO_FAIL = ' || echo "exit $?"'


def run_commands(example: Example) -> str | None:
    """Run the commands of a console block; return what differs, or None."""
    for command in ("\n" + example.parsed).split("\n$ ")[1:]:
        line, *rest = command.split("\n")
        while rest and rest[0].startswith("> "):
            line += "\n" + rest.pop(0).removeprefix("> ")
        expected = "\n".join(rest)
        exit_code, output = run_line(line)
        if exit_code != 0:
            return f"$ {line}\nexit code {exit_code}:\n{output}"
        if expected.strip() and not doctest.OutputChecker().check_output(
            expected.strip(), output.strip(), FLAGS
        ):
            return f"$ {line}\nExpected:\n{expected.strip()}\nGot:\n{output.strip()}"
    return None


def run_line(line: str) -> tuple[int, str]:
    """Run a command; return its exit code and what it wrote, to either stream."""
    command = line.removesuffix(TO_FAIL)
    if command.startswith("datacollect ") and not SHELL_ONLY & set(command):
        with io.StringIO() as both, redirect_stdout(both), redirect_stderr(both):
            code = run_datacollect(shlex.split(command)[1:])
            if command != line and code != 0:
                print(f"exit {code}")  # noqa: T201 - as the shell would
                code = 0
            return code, both.getvalue()
    done = subprocess.run(
        ["bash", "-c", line],
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.returncode, done.stdout


def captioned_files(document: Document) -> Iterator[Region]:
    """Find the blocks that are to become files."""
    for region in DirectiveLexer(directive="code-block")(document):
        if "caption" in region.lexemes["options"]:
            yield Region(region.start, region.end, region.lexemes, write_file)


def write_file(example: Example) -> None:
    """Write a captioned block to the file that its caption names."""
    caption = example.parsed["options"]["caption"]
    Path(caption).write_text(str(example.parsed["source"]), encoding="utf-8")


EXAMPLES = Sybil(
    parsers=[
        PythonCodeBlockParser(doctest_optionflags=FLAGS),
        CodeBlockParser("console", run_commands),
        captioned_files,
    ]
)
DOCUMENTS = {
    str(path.relative_to(REPOSITORY)): path
    for path in (REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md")))
    if path.is_file() and "_build" not in path.parts and list(EXAMPLES.parse(path).examples())
}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Run all examples of a document in an empty folder."""

    def run_document(path: Path) -> None:
        folder = tmp_path / "empty"
        folder.mkdir()
        monkeypatch.chdir(folder)
        for example in EXAMPLES.parse(path).examples():
            example.evaluate()

    # The commands that were installed next to this Python, and plain output.
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("MPLBACKEND", "agg")
    return run_document


@pytest.mark.slow
@pytest.mark.parametrize("document", DOCUMENTS)
def test_examples_of_document_run(document, run):
    run(DOCUMENTS[document])


# The test of the test.

GOOD = """
```python
x = 1
```
```python
>>> x + 1
2
```
```{code-block} toml
:caption: b.toml

b = 2
```
```console
$ cat b.toml
b = 2
$ echo one; echo two
one
...
$ false || echo "exit $?"
exit 1
$ for n in 1 2
> do echo $n; done
1
2
```
```sh
exit 1
```
"""


def test_good_examples_pass(tmp_path, run):
    path = tmp_path / "good.md"
    path.write_text(GOOD)
    run(path)


@pytest.mark.parametrize(
    ("block", "error"),
    [
        ("```python\nassert False, 'not so'\n```", "not so"),
        ("```python\n>>> 1 + 1\n3\n```", "Got:"),
        ("```console\n$ echo one\ntwo\n```", "Got:"),
        ("```console\n$ echo one\n$ false\n```", "exit code 1"),
    ],
)
def test_wrong_examples_fail(block, error, tmp_path, run):
    path = tmp_path / "wrong.md"
    path.write_text(f"{block}\n")
    with pytest.raises(AssertionError, match=error):
        run(path)
