"""The page of times has every constant by which a pull, an agent or a destination waits."""

import ast
import re
from pathlib import Path

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


def modules():
    for place in PLACES:
        path = ROOT / place
        yield from [path] if path.is_file() else sorted(path.rglob("*.py"))


def times_of(path):
    """The constants of a module whose names end with seconds."""
    for node in ast.parse(path.read_text()).body:
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


def test_the_page_has_nothing_else():
    known = {name for _, name in CONSTANTS}
    listed = {name for names, _ in rows() for name in names if name.endswith("_S")}
    assert listed <= known
