"""Remedies about events with a deadline: their files, tickets, uploads and amendments."""

from __future__ import annotations

import pyrage
from instances.events import draft_text, event_bytes, key_of
from remedies.trying import Example, call, in_folder, in_new_folder, until

import datacollect as dc
from datacollect.net.keys import write_private_key

CLOSED = [{"url": f"https://127.0.0.1:{i + 1}", "key": key_of(f"s{i}").public} for i in range(2)]
NEW = "event new d.toml -o e.toml"


def new(line=NEW, **changes):
    return in_folder(line, d_toml=draft_text(**changes))


def with_a_made_key():
    """Write an event with the key that a command has made."""

    def run():
        with in_new_folder() as folder:
            call("keys new organiser.key")
            key = call("keys show organiser.key").split()[0]
            (folder / "d.toml").write_text(draft_text(organiser=key))
            return call(NEW)

    return run


def with_an_identity():
    """Write an event whose one recipient's identity is tried."""
    identity = pyrage.x25519.Identity.generate()
    with in_new_folder() as folder:
        (folder / "own.txt").write_text(f"{identity}\n")
        (folder / "d.toml").write_text(draft_text(recipients=[str(identity.to_public())]))
        return call(f"{NEW} --identity own.txt")


def audited(option=""):
    """Audit an event whose services do not answer."""

    def run():
        with in_new_folder() as folder:
            (folder / "e.toml").write_bytes(event_bytes(services=CLOSED))
            return call(f"audit e.toml {option}")

    return until("cannot be reached|cannot be read", run) if option else run


def of_two_services(second):
    row = {"url": "https://s1.example", "key": second}
    return new(services=[{"url": "https://s0.example", "key": key_of("s0").public}, row])


def page(*lines):
    """Write the page of an event, and that of another into the same folder."""

    def run():
        with in_new_folder() as folder:
            (folder / "e.toml").write_bytes(event_bytes())
            (folder / "f.toml").write_bytes(event_bytes(name="Another"))
            for line in lines:
                said = call(line)
            return said

    return run


def extended(options=""):
    """Extend an event whose services do not answer."""

    def run():
        with in_new_folder() as folder:
            (folder / "e.toml").write_bytes(event_bytes(services=CLOSED))
            write_private_key(folder / "o.key", key_of("organiser"))
            return call(f"event extend e.toml --key o.key {options}")

    return run


EXAMPLES = [
    Example(
        "organiser must be the public key of who signs tickets and amendments; `datacollect keys",
        new(organiser=None),
        with_a_made_key(),
    ),
    Example(
        "one key serves one purpose; make another with `datacollect keys new`",
        of_two_services(key_of("s0").public),
        of_two_services(key_of("s1").public),
    ),
    Example("not tried: give the identity with --identity", new(), with_an_identity),
    Example(
        "say what to audit: --log reads the logs alone",
        audited(),
        audited("--log"),
    ),
    Example(
        "exists already, and is another page's; --force overwrites it",
        page("event page e.toml -o out", "event page f.toml -o out"),
        page("event page e.toml -o out", "event page f.toml -o out --force"),
    ),
    Example(
        "--force overwrites it, or name another folder",
        page("event page e.toml -o out", "event page f.toml -o out"),
        page("event page e.toml -o out", "event page f.toml -o other"),
    ),
    Example(
        "say what changes: --deadline, --revoke or --bistros",
        extended(),
        until("published by nowhere yet", extended("--revoke " + "ab" * 32)),
    ),
    Example(
        "--revoke must be the file of a ticket, or 64 hexadecimal digits of its token_sha256",
        extended("--revoke mine"),
        until("published by nowhere yet", extended("--revoke " + "ab" * 32)),
    ),
    Example(
        "commit_only sends nothing, and elsewhere sends to one more bistro; give one of them",
        lambda: dc.upload("f", "e.toml", commit_only=True, elsewhere=True),
        until("no such file", lambda: dc.upload("f", "e.toml", commit_only=True)),
    ),
]
