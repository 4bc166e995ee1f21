"""Remedies about logs of verdicts that never go on, and those that succeed them."""

from __future__ import annotations

from contextlib import redirect_stdout
from io import StringIO
from types import SimpleNamespace

from instances.bistro_folders import collecting_event
from instances.custody import custody_event, custody_event_bytes
from instances.events import key_of
from remedies.bistros import CLOSED
from remedies.trying import Example, call, in_new_folder, until

from datacollect.bistro.commands.event_recover import OTHER_SERVICE, SUCCESSOR, _show
from datacollect.bistro.destination.keys import require_key
from datacollect.bistro.destination.marking import mark_keys
from datacollect.bistro.destination.place import verdicts_folder
from datacollect.bistro.destination.run.event_run import _verdict_log
from datacollect.bistro.formats.event.amendments import amended, read_amendment, sign_amendment
from datacollect.bistro.formats.log.checkpoints import log_key
from datacollect.bistro.mirror.rebuilding import AHEAD, SIGNS, Rebuilt, WitnessSaid
from datacollect.bistro.mirror.succeeding import begin
from datacollect.bistro.organiser.extend import _successor
from datacollect.net.keys import write_private_key

EVENT = custody_event()
MARKED = collecting_event()
KEY = key_of("dest2")


def note_of(log: str) -> bytes:
    table = {"log": log, "url": "https://dest2.example"}
    return sign_amendment(EVENT, {"verdicts": table}, 1, key_of("organiser"))


def succeeded():
    """Return the event whose log of verdicts another has succeeded."""
    return amended(
        EVENT, [read_amendment(note_of(log_key("d/" + "0" * 16, KEY.public).text), EVENT)]
    )


def key_is(who: str):
    """Go on as a destination with a key."""
    return lambda: require_key(succeeded(), SimpleNamespace(key=key_of(who)), "destination.toml")


def marked_by(*names: str | None):
    """Go on as destinations that say by which key people mark their entries; None: it is lost."""

    def run():
        for who in names:
            config = SimpleNamespace(mark_key=None if who is None else key_of(who))
            mark_keys(MARKED, config, "destination.toml")

    return run


def begun(*, is_recovered: bool):
    """Begin the log of verdicts of a destination, whose folder may have been made."""

    def run():
        with in_new_folder() as folder:
            event = succeeded()
            if is_recovered:
                begin(event, KEY, verdicts_folder(folder, event.verdicts, event), [b"a"])
            config = SimpleNamespace(folder=folder, key=KEY, listening=None, behind=(), mirrors=())
            given = SimpleNamespace(config=config, event_data=b"")
            _verdict_log(given, event, print)._close()

    return run


def of_origin(*, is_fresh: bool):
    """Name a log of verdicts of an origin that the event has had, or of one that is made."""

    def run():
        table = _successor(KEY.public, None, EVENT, ()) if is_fresh else None
        note_of(table["log"] if table else log_key(EVENT.verdicts.name, KEY.public).text)

    return run


def recovered(remedy: str, *outcomes: str):
    """Show what witnesses have said of a log that was made again."""

    def run():
        said = tuple(WitnessSaid(f"w{i}", each, "") for i, each in enumerate(outcomes))
        with redirect_stdout(StringIO()) as shown:
            _show(Rebuilt("log", 0, 5, 0, said, quorum=3, n_believed=2), remedy)
        return shown.getvalue()

    return run


def extended(options: str):
    """Extend an event that has a log of verdicts; its services do not answer."""

    def run():
        with in_new_folder() as folder:
            (folder / "e.toml").write_bytes(custody_event_bytes(services=CLOSED))
            write_private_key(folder / "o.key", key_of("organiser"))
            return call(f"event extend e.toml --key o.key {options}")

    return run


ELSEWHERE = "--verdicts-url https://elsewhere.example"
EXAMPLES = [
    Example(
        "take the file of its private key, and run `datacollect event recover` before `event run`",
        key_is("dest"),
        key_is("dest2"),
    ),
    Example(
        "people mark their entries; take the file of its private key, or, if nobody has it",
        marked_by("dest2"),
        marked_by("verdicts", None),
    ),
    Example(
        "with the verdicts of the one before; `datacollect event recover` makes it",
        begun(is_recovered=False),
        begun(is_recovered=True),
    ),
    Example(
        "that no log of the event has had, got {}; `datacollect event extend --verdicts` makes one",
        of_origin(is_fresh=False),
        of_origin(is_fresh=True),
    ),
    Example(
        "have the organiser name it with `datacollect event extend --verdicts`, and run this again",
        recovered(SUCCESSOR, AHEAD, AHEAD, SIGNS, SIGNS),
        recovered(SUCCESSOR, SIGNS, SIGNS, SIGNS, SIGNS),
    ),
    Example(
        "or give with --receipts a folder of receipts of those who handed in last",
        recovered(OTHER_SERVICE, AHEAD, AHEAD, SIGNS, SIGNS),
        recovered(OTHER_SERVICE, SIGNS, SIGNS, SIGNS, SIGNS),
    ),
    Example(
        "--verdicts-url belongs to a new log of verdicts; give that log's key with --verdicts",
        extended(ELSEWHERE),
        until("published by nowhere yet", extended(f"{ELSEWHERE} --verdicts {KEY.public}")),
    ),
]
