"""Remedies in messages: texts that name a command, an option, a key or a package.

Advice stands behind a semicolon, or begins with what is to be done. Parts that only run time knows
are ``{}``, so that a text is a template of all messages that come of it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TypeAlias

from judges.imports import read_modules

import datacollect

OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*[a-z0-9]")
COMMAND = re.compile(r"\bdatacollect((?: [a-z]+)+)")
KEY = re.compile(r"(?<![\w.{/-])[a-z]+(?:_[a-z0-9]+)+(?!\w)|\b[a-z]+(?= = )")
PACKAGE = re.compile(r"apt install|GNU coreutils|command_for_(?:extra|package)|\{command\}")
# Another program than the one that has failed.
PROGRAM = re.compile(r"\btake (?:curl|aria2|rclone|rsync)\b")
NAMES = (OPTION, COMMAND, KEY, PACKAGE, PROGRAM)

# What advice begins with, at the beginning of a clause.
DO = (
    "add allow ask change choose compare convert correct count drop give install keep leave lower "
    "make mark measure move name open pass plan put raise read remove rename repair repeat report "
    "resume round run say send set shorten simulate start stop submit sweep take turn use wait "
    "write"
)
# What an option does about it.
DOES = "ends has keeps lists makes overwrites plans replaces saves takes writes"
ADVICE = re.compile(
    rf"; |\([a-z]+: --|(?:^|[:?.] |, (?:or |and )?)(?i:{'|'.join(DO.split())})\b(?!\.\w)"
    rf"|--[a-z-]+\)?(?: [A-Z]+)? (?:{'|'.join(DOES.split())})\b"
)

# Texts that describe keys and options, and advise nothing: help and the columns of tables.
DESCRIPTIONS = re.compile(r"fields$|_spec$|\.spec$|commands\.options$")
HELP = {"help", "metavar", "epilog"}

# Texts in other languages: a page, a program of awk, and what a database is asked.
OTHER_LANGUAGES = re.compile(
    r"\s*(?:<|add_header |BEGIN \{|(?:SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|WITH|AND|FROM) )"
)


@dataclass(frozen=True)
class Template:
    """A text that names something."""

    module: str
    text: str

    @property
    def is_of_a_page(self) -> bool:
        """Whether a page says it; pages speak in whole sentences."""
        return self.module.endswith((".js", ".json"))

    @property
    def options(self) -> set[str]:
        """Options that it names, in advice or without."""
        return set(OPTION.findall(self.text))

    @property
    def commands(self) -> set[str]:
        """Commands of ours that it names between backticks, with what follows in small letters."""
        quoted = re.findall(r"`([^`]*)`", self.text)
        if self.is_of_a_page:
            quoted = [f"datacollect {text.removeprefix('datacollect ')}" for text in quoted]
        return {found.strip() for text in quoted for found in COMMAND.findall(text)}

    @property
    def keys(self) -> set[str]:
        """Keys and arguments that it names behind a semicolon."""
        return set(KEY.findall(self.text.partition("; ")[2]))

    @property
    def is_remedy(self) -> bool:
        """Whether it advises something by name, and so can be carried out to the letter."""
        text = self.in_one_line
        if self.is_of_a_page:
            return bool(self.commands)
        is_description = text[:1].isupper() and text.endswith(".")
        if PACKAGE.search(text) or (self.commands and not is_description):
            return True
        return bool(ADVICE.search(text)) and any(name.search(text) for name in NAMES)

    @cached_property
    def in_one_line(self) -> str:
        """The text without indents and breaks of lines."""
        return " ".join(self.text.split())

    def has(self, part: str) -> bool:
        """Whether a part of a message, with ``{}`` as here, is a part of this text."""
        return part in self.in_one_line

    def comes_to(self, message: str) -> bool:
        """Whether a message comes of this text."""
        parts = re.split(r"\{[^{}]*\}", self.text)
        pattern = ".*".join(re.escape(" ".join(part.split(" "))) for part in parts)
        return re.search(pattern, message, re.DOTALL) is not None


@cache
def templates() -> tuple[Template, ...]:
    """Return all texts that name something, each once."""
    return tuple(each for each in texts() if each.is_remedy or each.options or each.commands)


@cache
def texts() -> tuple[Template, ...]:
    """Return what modules, scripts and pages may tell somebody, each text once."""
    found = {
        Template(module, text): None
        for module, source in read_modules().items()
        if not DESCRIPTIONS.search(module)
        for text in texts_in(source)
        if " " in text and not OTHER_LANGUAGES.match(text)
    }
    beside = (("*.sh", SHELL), ("*.js", PAGE), ("texts/*.json", PAGE))
    return tuple(
        found
        | dict.fromkeys(text for names, quoted in beside for text in _texts_beside(names, quoted))
    )


# What stands in quotes in a line, and what run time fills in.
DOUBLE = r"\"((?:[^\"\\]|\\.)*)\""
SHELL = re.compile(rf"'([^']*)'|{DOUBLE}"), re.compile(r"\$\{[^}]*\}|\$\([^)]*\)|\$\w+")
PAGE = re.compile(rf"{DOUBLE}|`((?:[^`\\]|\\.)*)`"), re.compile(r"\$\{[^}]*\}")
Quoted: TypeAlias = tuple[re.Pattern[str], re.Pattern[str]]
# Of a page what is built of its sources.
BUILT = "page/static"


def _texts_beside(
    names: str, quoted: tuple[re.Pattern[str], re.Pattern[str]]
) -> Iterator[Template]:
    """Yield the texts of files in other languages, which lie among the modules."""
    in_quotes, filled = quoted
    root = Path(datacollect.__file__).parent
    for path in sorted(root.rglob(names)):
        place = path.relative_to(root)
        if BUILT in str(place):
            continue
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.lstrip().startswith(("#", "//", "*")):
                continue
            for groups in in_quotes.findall(line):
                text = filled.sub("{}", "".join(groups))
                if " " in text and not OTHER_LANGUAGES.match(text):
                    yield Template(".".join(place.parts), text)


def texts_in(source: str) -> Iterator[str]:
    """Yield the texts of a module as a whole each: no docstrings, help, or parts of others."""
    todo: list[ast.AST] = [ast.parse(source)]
    while todo:
        node = todo.pop()
        text = _text(node)
        if text is not None:
            yield text
            continue
        if isinstance(node, ast.keyword) and node.arg in HELP:
            continue
        children = list(ast.iter_child_nodes(node))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            children = [c for c in children if not _is_docstring(c)]
        todo += children


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _text(node: ast.AST) -> str | None:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "wrong":
        place, rule, _, *remedy = [_text(each) or "{}" for each in node.args]
        return "; ".join([f"{place} {rule}, got {{}}", *remedy])
    if isinstance(node, ast.keyword) and node.arg == "remedy":
        text = _text(node.value)
        return text and f"; {text}"
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
    return f"{{{named[0].strip('{}')}}}" if named else "{}"
