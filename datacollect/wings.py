"""Wings: the products that stand on the core. The core knows them by the names in this file alone.

Each mapping is what a registry has of our own, ``"module:attribute"`` by name; nothing is imported
before it is asked for, and a wing that is not installed is an error that says so. Another package
brings the same by entry points, see `datacollect.files.registry`.
"""

from __future__ import annotations

_BISTRO, _MEASURING = "datacollect.bistro", "datacollect.measuring"
_FEEDS = "datacollect.feeds"

# What each needs beside the package: an extra of `setup.cfg`.
EXTRAS = {_BISTRO: "bistro", _MEASURING: "measure", _FEEDS: "feeds"}

# What help lists, in its order, without a word of theirs being imported.
LISTED_COMMANDS = {
    "upload": "Hand files in: seal and timestamp them, keep a receipt, send them to a bistro.",
    "join": "Keep a part of an event on this host: one command, with the organiser's line.",
    "verify": (
        "Show what a receipt proves, offline: which file, by when, and whether it was collected."
    ),
    "audit": (
        "Read all that was signed in an event; report what became of every entry, and who has lied."
    ),
    "timestamp": "Keep a log of an event: take entries, have witnesses sign, publish proofs.",
    "witness": "Be a witness: sign how large each log in its file is, and when.",
}
LISTED_GROUPS = {
    "bistro": "Set up an upload server, and manage it.",
    "event": "Make an event, give people tickets, collect what they hand in.",
    "measure": "Measure the network between hosts.",
}
# `datacollect.commands.brought`.
COMMANDS = {
    "upload": f"{_BISTRO}.commands.upload:COMMAND",
    "verify": f"{_BISTRO}.commands.verify:COMMAND",
    "audit": f"{_BISTRO}.commands.audit:COMMAND",
    "timestamp": f"{_BISTRO}.commands.servers:TIMESTAMP_COMMAND",
    "witness": f"{_BISTRO}.commands.servers:WITNESS_COMMAND",
    "join": f"{_BISTRO}.commands.join:COMMAND",
    "bistro": f"{_BISTRO}.commands.bistro:COMMAND",
    "event": f"{_BISTRO}.commands.event:COMMAND",
    "measure": f"{_MEASURING}.commands.group:COMMAND",
}

# Commands of the core's group ``host`` that wings bring: `datacollect.commands.host`.
LISTED_HOST_COMMANDS = {
    "calibrate": "Measure what bytes cost this machine, into a profile.",
}
HOST_COMMANDS = {"calibrate": f"{_MEASURING}.commands.calibrate:COMMAND"}
# Behind ``datacollect feed``: what carries feeds.
LISTED_FEED_COMMANDS = {
    "send": "Bring what a source makes to another host while it is made; say what is missing.",
    "run": "Send several feeds together, each as `feed send` does; a line for each.",
}
FEED_COMMANDS = {
    "send": f"{_FEEDS}.commands.send:SEND_COMMAND",
    "run": f"{_FEEDS}.commands.run:RUN_COMMAND",
}

# Tables of agents' files, and who answers for them: `datacollect.transfer.agent.config.tables`,
# `datacollect.transfer.agent.handlers`.
AGENT_TABLES = {
    "accept": f"{_BISTRO}.upload_server.table:ACCEPT_TABLE",
    "front": f"{_BISTRO}.one_host.front_table:FRONT_TABLE",
    "measure": f"{_MEASURING}.agent.table:MEASURE_TABLE",
    "feed": f"{_FEEDS}.receiver.table:FEED_TABLE",
}
AGENT_HANDLERS = {
    "accept": f"{_BISTRO}.upload_server.handlers:ACCEPT_HANDLERS",
    "front": f"{_BISTRO}.one_host.front:FRONT_HANDLERS",
    "measure": f"{_MEASURING}.agent.handlers:MEASURE_HANDLERS",
    "feed": f"{_FEEDS}.receiver.service:FEED_HANDLERS",
}

# Live pages: `datacollect.pictures.live_views`.
LIVE_VIEWS = {
    "measurements": f"{_MEASURING}.page.watch:WATCH_VIEW",
    "feeds": f"{_FEEDS}.page.feeds_page:FEEDS_VIEW",
}

# What `datacollect doctor` looks at: `datacollect.transfer.doctor.checks`.
DOCTOR_CHECKS = {"tests between hosts": f"{_MEASURING}.agent.doctor:TESTS_CHECK"}

# Files that people write: `datacollect.files.file_kinds`.
FILES = {
    "event": f"{_BISTRO}.formats.event.fields:EVENT_KIND",
    "service": f"{_BISTRO}.http.config_fields:SERVICE_KIND",
    "witness": f"{_BISTRO}.http.config_fields:WITNESS_KIND",
    "destination": f"{_BISTRO}.http.config_fields:DESTINATION_KIND",
    "feed": f"{_FEEDS}.formats.feed_file:FEED_KIND",
    "feeds": f"{_FEEDS}.formats.feeds_file:FEEDS_KIND",
    "smtp": f"{_BISTRO}.http.config_fields:SMTP_KIND",
    "hosts": f"{_MEASURING}.plan.hosts_file:HOSTS_KIND",
}

# What else `datacollect keys` prints of a public key: `datacollect.commands.keys`.
KEY_FORMS = {"witness": f"{_BISTRO}.formats.log.checkpoints:WITNESS_KEY_FORM"}

# Names of `datacollect` itself.
NAMES = {
    "audit_event": f"{_BISTRO}.auditor.audit_event:audit_event",
    "bistro": _BISTRO,
    "feeds": _FEEDS,
    "measure_cycle": f"{_MEASURING}.cycle.measure_cycle:measure_cycle",
    "upload": f"{_BISTRO}.person.upload:upload",
    "verify_receipt": f"{_BISTRO}.person.verify_receipt:verify_receipt",
}


def extra_of(place: str) -> str:
    """Return the extra of the wing that a place of ours lies in.

    >>> extra_of(COMMANDS["upload"])
    'bistro'
    """
    return next(extra for wing, extra in EXTRAS.items() if place.startswith(wing))
