"""Handing in by a deadline without sending first: events, timestamps, witnesses, receipts.

A hundred million people hand something in by a deadline. Each seals a file and has a commitment to
it, 32 bytes, logged in time; the file itself is pushed and collected later. A log only grows, and
witnesses sign by when it had grown so far: a receipt proves to everybody, without a network, that
the sealed bytes were ready. The protocol goes back to Bhattacharjee et al., "Bistro: a framework
for building scalable wide-area upload applications" (2000); logs, witnesses and proofs are in
C2SP's formats (c2sp.org, 2025), seals in age's.

Each party has a room: a core that reads no clock, socket or file, its messages, its store, and the
server that does what the core says. Imports lead downwards::

    commands, page     what people call, and the page on which they hand in, in a browser
    joining, one_host, organiser  events of hosts that join; of one host; tickets, what is changed
    destination/{run}  a register of uploads, opening them, what is missing; the event carried out
    auditor, mirror    what became of each entry, and who has lied; copies of logs
    upload_server      a bistro: takes sealed uploads over an agent, and signs for them
    person             seals, has it timestamped, sends it, keeps and verifies receipts
    log_service/{server}  entries kept, acknowledged, signed, published; its processes
    witness            signs what has only grown, with the time
    http               requests of strangers within limits, clocks, signals, files of servers
    formats/{log, event, receipt, custody, assignment, sealing}  what parties write, sign and read

Who owns what: the event's file owns all keys and the deadline, and is known by its hash; an
amendment, an entry of the logs like others, owns what is changed of it. `ServiceCore` owns which
index an entry has and which checkpoint comes next; its shell owns the disk, and tells what is on
it. `WitnessCore` owns what it has signed; its shell writes that down before the answer leaves. A
person owns an entry by the key that it commits to, and hands in by the key of a ticket: both sign
for one receiver at a time, and neither leaves its host.
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
