"""Handing in by a deadline without sending first: events, timestamps, witnesses, receipts.

A hundred million people hand something in by a deadline. Each seals a file and has a commitment to
it, 32 bytes, logged in time; the file itself is pushed and collected later. A log only grows, and
witnesses sign by when it had grown so far: a receipt proves to everybody, without a network, that
the sealed bytes were ready. The protocol goes back to Bhattacharjee et al., "Bistro: a framework
for building scalable wide-area upload applications" (2000); logs, witnesses and proofs are in
C2SP's formats (c2sp.org, 2025), seals in age's.

Cores read no clock, socket or file: shells do, and hand over what they have read.

::

    log       notes, checkpoints, tree, tiles, proofs, entries, what witnesses are sent
    event     the event's file, its rules, drafts, amendments, tickets        -> log
    receipt   receipts, the rule of time, tokens, verdicts, evidence          -> log, event
    custody   what bistros and the destination sign about uploads           -> log, event
    assignment  to which bistro something goes, what lies there           -> log, event
    audit     what became of each entry, and who has lied -> log, event, receipt, custody, client
    witness   WitnessCore: what has only grown is signed, with the time       -> log
    service   ServiceCore: entries kept, acknowledged, signed, published      -> log, event
    store     what both keep on the disk, before they promise anything        -> service, witness
    config    their files                                                     -> log, event
    serving   their shells: HTTP, TLS, processes, clocks                      -> all of these

Who owns what: the event's file owns all keys and the deadline, and is known by its hash; an
amendment, an entry of the logs like others, owns what is changed of it. `ServiceCore` owns which
index an entry has and which checkpoint comes next; its shell owns the disk, and tells what is on
it. `WitnessCore` owns what it has signed; its shell writes that down before the answer leaves.
"""

from importlib import import_module
from typing import Any

_HOME_OF = {
    "assign": "datacollect.bistro.formats.assignment.assigning",
    "problem_of": "datacollect.bistro.formats.assignment.collecting",
}

__all__ = ["assign", "problem_of"]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'datacollect.bistro' has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
