"""Remedies about mirrors, and logs that are made again from them."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from instances.custody import service_log
from instances.events import draft, event_bytes, key_of
from remedies.trying import Example, call, in_new_folder, until

from datacollect.bistro.formats.event.file import read_event
from datacollect.bistro.log_service.log_copy import LogCopy, folder_name
from datacollect.bistro.log_service.server.mirroring import MirrorFolder
from datacollect.bistro.mirror.copying import LogCopying
from datacollect.net.keys import write_private_key

# Nobody answers there, at once.
NOWHERE = "https://127.0.0.1:1"
EVENT = event_bytes(
    services=[{"url": NOWHERE, "key": key_of("s0").public}],
    witnesses=[row | {"url": f"{NOWHERE}{i}"} for i, row in enumerate(draft()["witnesses"])],
)
SERVICE = (
    'format = "datacollect-service/1"\nevent = "e.toml"\nkey = "s.key"\n'
    'listen = "127.0.0.1:0"\nfolder = "log"\n'
)
RECOVER = "event recover e.toml"
OF_SERVICE = f"{RECOVER} --service s.toml"


def log_of(n: int):
    leaves = [sha256(b"%d" % i).digest() for i in range(n)]
    return service_log(read_event(EVENT), 0, leaves, [(n, 1000)])


def told_to(line: str, *folders: str):
    """Give a command where there are some folders, and a mirror."""

    def run():
        with in_new_folder(e_toml=EVENT, s_toml=SERVICE):
            write_private_key("s.key", key_of("s0"))
            event = read_event(EVENT)
            log = event.services[0].log
            copy = LogCopy(Path("mirror") / folder_name(log), log, event)
            for name in folders:
                Path(name).mkdir()
            if "mirror" in line:
                Path("mirror").mkdir(exist_ok=True)
                LogCopying(copy, event, is_mirror=True).take(log_of(5))
            return call(line)

    return run


# The witnesses do not answer, and the command says so.
recovered = until("is silent", told_to(f"{OF_SERVICE} --from mirror"))


def pushed(n: int):
    """Have a mirror written to by a log of 20 entries, then by one that has so many."""

    def run():
        with in_new_folder() as folder:
            event = read_event(EVENT)
            log = event.services[0].log
            copy = LogCopy(folder / folder_name(log), log, event)
            for size in (20, n):
                made = log_of(size)
                MirrorFolder(folder, log, event, made.tile_or_bundle)._push(copy, made.heads[0])

    return run


EXAMPLES = [
    Example("name one file: --destination, or --service", told_to(RECOVER), recovered),
    Example(
        "no such folder; name a mirror of the log with --from",
        told_to(OF_SERVICE),
        recovered,
    ),
    Example(
        "holds no checkpoint; name a mirror with --from",
        told_to(OF_SERVICE, "log"),
        recovered,
    ),
    Example(
        "no mirror holds the log {}: {}; name another with --from",
        told_to(f"{OF_SERVICE} --from empty", "empty"),
        recovered,
    ),
    Example(
        "must be a mirror's folder, or its address; `datacollect event mirror` makes one",
        told_to("event mirror e.toml --into new --once --from nowhere"),
        until("cannot be reached", told_to("event mirror e.toml --into new --once --from mirror")),
    ),
    Example(
        "it was restored from an old copy; stop this, and run `datacollect event recover`",
        pushed(10),
        pushed(30),
    ),
]
