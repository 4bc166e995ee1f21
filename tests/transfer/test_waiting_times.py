"""The page of times has every constant by which a pull, an agent or a destination waits."""

import ast
import importlib
import re
from functools import cache
from pathlib import Path

import pytest

import datacollect

ROOT = Path(datacollect.__file__).parent
PAGE = ROOT.parent / "docs/collecting_limits.md"
PLACES = (
    *("net/deadline.py", "net/tickets.py", "net/http_asking.py", "net/fan_out.py"),
    "net/tcp_options.py",
    *("transfer", "bistro/destination/run", "bistro/mirror"),
    "bistro/log_service/server/mirroring.py",
)
# Rates, which are no times.
RATES = re.compile(r"_PER_S$")


UNITS = {"": 1, " million": 10**6, " KiB": 2**10, " MiB": 2**20, " TiB": 2**40,
         " s": 1, " h": 3600, " days": 86400}  # fmt: skip
NUMBER = re.compile(r"([0-9]+(?: [0-9]{3})*(?:\.[0-9]+)?)( million| KiB| MiB| TiB| s| h| days|)")
# Defaults of the collection's own limits.
USERS = {"timeout_s": 20.0, "patience_s": 60.0}


def modules():
    for place in PLACES:
        path = ROOT / place
        yield from [path] if path.is_file() else sorted(path.rglob("*.py"))


@cache
def parsed(path):
    return ast.parse(path.read_text())


def times_of(path):
    """The constants of a module whose names end with seconds."""
    for node in parsed(path).body:
        if isinstance(node, ast.Assign):
            names = [name.id for each in node.targets for name in ast.walk(each)
                     if isinstance(name, ast.Name)]  # fmt: skip
            yield from (n for n in names if re.fullmatch(r"[A-Z_]+_S", n) and not RATES.search(n))


def rows():
    """Names and places of each row of the page."""
    for line in PAGE.read_text().splitlines():
        if line.startswith("| `") and "`" in line.split("|")[2]:
            names, places = line.split("|")[1:3]
            yield set(re.findall(r"`([A-Z_]+)`", names)), re.findall(r"`([^`]+)`", places)


CONSTANTS = [(str(path.relative_to(ROOT)), name) for path in modules() for name in times_of(path)]


def test_there_are_constants_to_look_for():
    assert ("transfer/pull/core/under_way.py", "STALL_S") in CONSTANTS
    assert len(CONSTANTS) > 60


def test_the_page_has_each_constant():
    listed = list(rows())
    missing = [
        (place, name)
        for place, name in CONSTANTS
        if not any(name in names and place.startswith(tuple(places)) for names, places in listed)
    ]
    assert missing == []


def defaults_of(path):
    """Parameters whose names end with seconds, and that have a number where none is given."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.arguments):
            given = [*node.posonlyargs, *node.args]
            pairs = [*zip(given[::-1], node.defaults[::-1], strict=False)]
            for argument, value in (*pairs, *zip(node.kwonlyargs, node.kw_defaults, strict=True)):
                if argument.arg.endswith("_s") and isinstance(value, ast.Constant) and value.value:
                    yield argument.arg, value.value


@pytest.mark.slow
def test_no_time_hides_in_a_default():
    """A number has a name, and stands on the page, unless it is the default of the user's limit."""
    hidden = [
        (str(path.relative_to(ROOT)), name, value)
        for path in modules()
        if "bistro" not in path.parts
        for name, value in defaults_of(path)
        if USERS.get(name) != value
    ]
    assert hidden == []


def told():
    """Each constant of the page with the numbers that stand behind it, and its places."""
    for line in PAGE.read_text().splitlines():
        if line.startswith("| `") and re.match(r"\| `[A-Z_]+` [0-9]", line):
            names, places = line.split("|")[1:3]
            for name, text in re.findall(r"`([A-Z_]+)` ([^`]*)", names):
                values = {
                    float(number.replace(" ", "")) * UNITS[unit]
                    for number, unit in NUMBER.findall(text)
                }
                yield name, values, re.findall(r"`([^`]+)`", places)


def values_at(name, places):
    """The values of a constant in all modules of some places."""
    for place in places:
        path = ROOT / place
        files = [path] if path.is_file() else [*path.rglob("*.py")]
        for file in files:
            for node in parsed(file).body:
                if not isinstance(node, ast.Assign):
                    continue
                names = (n for each in node.targets for n in ast.walk(each))
                if any(isinstance(n, ast.Name) and n.id == name for n in names):
                    module = ".".join(file.relative_to(ROOT.parent).with_suffix("").parts)
                    value = getattr(importlib.import_module(module), name)
                    yield from value.values() if isinstance(value, dict) else [value]


@pytest.mark.slow
def test_the_page_says_each_value_as_it_is():
    """Of pulls and agents: what a destination needs takes long to load."""
    found = [
        (name, said, {*values_at(name, places)})
        for name, said, places in told()
        if not places[0].startswith("bistro")
    ]
    assert len(found) > 80
    assert [each for each in found if not each[1] or not each[1] <= each[2]] == []


def test_the_page_has_nothing_else():
    known = {name for _, name in CONSTANTS}
    listed = {name for names, _ in rows() for name in names if name.endswith("_S")}
    assert listed <= known
