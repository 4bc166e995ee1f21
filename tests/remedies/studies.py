"""Remedies about sweeps, and about reports of them."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from unittest import mock

from remedies.trying import Example, in_new_folder

from datacollect.study.report.hooks import load_hook
from datacollect.study.report.own import require_over

JUDGE = "def judge(sweeps): ...\n"


def hook(place, **files):
    """Load who judges, from a file or a module; it is forgotten again."""

    def load():
        with in_new_folder(**files), mock.patch.dict(sys.modules):
            load_hook(place)

    return load


def axis(name, labels=("a", "b"), paired=True):
    return SimpleNamespace(name=name, labels=labels, paired=paired)


def over(name, label):
    """Compare a sweep of a method, whose rates are other networks, with a label of an axis."""
    sweep = SimpleNamespace(axes=[axis("method"), axis("rate", paired=False)])
    return lambda: require_over([sweep], {name: label})


EXAMPLES = [
    Example("no such folder, file or module; {}", hook("no_such"), hook("own.py", own_py=JUDGE)),
    Example("there is no file {}; {}", hook("gone.py"), hook("gone.py", gone_py=JUDGE)),
    Example(
        "{} is not Python source; {}", hook("own.txt", own_txt=JUDGE), hook("own.py", own_py=JUDGE)
    ),
    Example(
        "line {}: {}; mend it", hook("own.py", own_py="1 +* 2\n"), hook("own.py", own_py=JUDGE)
    ),
    Example(
        "a module is called {} already, from {}; rename one of them",
        hook("json.py", json_py=JUDGE),
        hook("our_json.py", our_json_py=JUDGE),
    ),
    Example(
        "no axis is called {}; of those that pair {}", over("methods", "a"), over("method", "a")
    ),
    Example(
        "cannot be compared seed for seed; of those that are {}",
        over("rate", "a"),
        over("method", "a"),
    ),
]
