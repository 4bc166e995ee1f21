"""Remedies in messages: texts that name a command, an option, a key or a package.

Advice stands behind a semicolon. Parts that only run time knows are ``{}``, so that a text is a
template of all messages that come of it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from judges.imports import read_modules

OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*[a-z0-9]")
COMMAND = re.compile(r"\bdatacollect((?: [a-z]+)+)")
KEY = re.compile(r"(?<![\w.{/-])[a-z]+(?:_[a-z0-9]+)+(?![\w(])|\b[a-z]+(?= = )")
PACKAGE = re.compile(r"apt install|command_for_(?:extra|package)")

# Texts that describe keys and options, and advise nothing: help and the columns of tables.
DESCRIPTIONS = re.compile(r"fields$|_spec$|\.spec$|commands\.options$")


@dataclass(frozen=True)
class Template:
    """A text that names something."""

    module: str
    text: str

    @property
    def advice(self) -> str:
        """What stands behind the first semicolon; empty where there is none."""
        return self.text.partition("; ")[2]

    @property
    def options(self) -> set[str]:
        """Options that it names, in advice or without."""
        return set(OPTION.findall(self.text))

    @property
    def commands(self) -> set[str]:
        """Commands of ours that it names between backticks, with what follows in small letters."""
        quoted = re.findall(r"`([^`]*)`", self.text)
        return {found.strip() for text in quoted for found in COMMAND.findall(text)}

    @property
    def keys(self) -> set[str]:
        """Keys and arguments that its advice names."""
        return set(KEY.findall(self.advice))

    @property
    def is_remedy(self) -> bool:
        """Whether its advice names something, and so can be carried out to the letter."""
        advice = self.advice
        names = OPTION.search(advice) or COMMAND.search(advice) or KEY.search(advice)
        return bool(names or PACKAGE.search(advice))

    def comes_to(self, message: str) -> bool:
        """Whether a message comes of this text."""
        parts = re.split(r"\{[^{}]*\}", self.text)
        pattern = ".*".join(re.escape(" ".join(part.split(" "))) for part in parts)
        return re.search(pattern, message, re.DOTALL) is not None


@cache
def templates() -> tuple[Template, ...]:
    """Return all texts that name something, each once."""
    found = {}
    for module, source in read_modules().items():
        if DESCRIPTIONS.search(module):
            continue
        for text in texts_in(source):
            template = Template(module, text)
            if template.is_remedy or template.options or template.commands:
                found[template] = None
    return tuple(found)


def texts_in(source: str) -> Iterator[str]:
    """Yield the texts of a module as a whole each: no docstrings, no parts of other texts."""
    todo: list[ast.AST] = [ast.parse(source)]
    while todo:
        node = todo.pop()
        text = _text(node)
        if text is not None:
            yield text
            continue
        children = list(ast.iter_child_nodes(node))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            children = [c for c in children if not _is_docstring(c)]
        todo += children


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _text(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            each.value if isinstance(each, ast.Constant) else _filled(each) for each in node.values
        )
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _text(node.left), _text(node.right)
        return None if left is None and right is None else f"{left or '{}'}{right or '{}'}"
    return None


def _filled(node: ast.AST) -> str:
    """Return a part that run time knows; who names a package there is kept, for `PACKAGE`."""
    named = PACKAGE.search(ast.unparse(node))
    return f"{{{named[0]}}}" if named else "{}"
