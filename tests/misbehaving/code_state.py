"""Digest of the code that a result judges: of what is tried, and of what tries and judges it.

Comments and docstrings do not count: hours of results outlive a better word.
"""

from __future__ import annotations

import ast
import hashlib
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from judges.misbehaviour import HONEST
from judges.strict_client import VARIANTS
from misbehaving.cases import Case
from misbehaving.scripting import SCRIPT, TOOLS, Scripts

TESTS = Path(__file__).resolve().parents[1]
PACKAGE = TESTS.parent / "datacollect"
JUDGES = (
    *(f"judges/{name}.py" for name in ("misbehaving_answers", "misbehaving_server")),
    *("judges/misbehaviour.py", "judges/strict_client.py", "misbehaving/cases.py"),
)
# What of the package decides what a pull makes of an answer.
ROOMS_OF_PULLS = ("transfer", "net", "control")


@cache
def code_state(tool: str) -> str:
    """Return twelve digits that tell whether results of a tool are of this code, as it began."""
    return digest_now(tool)


def digest_now(tool: str) -> str:
    """Return them for the code as it is by now: somebody may have changed it meanwhile."""
    is_script = tool in TOOLS
    bench = "misbehaving/scripting.py" if is_script else "misbehaving/pulling.py"
    texts = [meaning((TESTS / path).read_text()) for path in (*JUDGES, bench)]
    texts += _scripts(tool) if is_script else _code_of_pulls()
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12]


def meaning(text: str) -> str:
    """Return Python code without comments, docstrings and layout.

    >>> meaning("'What it does.'\\nx = 1  # so much")
    'x = 1'
    """
    tree = ast.parse(text)
    for node in ast.walk(tree):
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        if isinstance(node, documented) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)


def _scripts(tool: str) -> Iterator[str]:
    """Yield scripts as they are exported for some files, with and without hashes."""
    for known in VARIANTS:
        with tempfile.TemporaryDirectory(prefix="misbehaving-") as name:
            bench = Scripts(Path(name), tool, [Case(HONEST, known, n) for n in range(20)])
            bench.write("http://server.example")
            lines = (Path(name) / SCRIPT).read_text().splitlines()
        yield "\n".join(line for line in lines if not line.lstrip().startswith("#"))


def _code_of_pulls() -> Iterator[str]:
    for room in ROOMS_OF_PULLS:
        for path in sorted((PACKAGE / room).rglob("*.py")):
            yield f"{path.relative_to(PACKAGE)}\n{meaning(path.read_text())}"
