"""Files of the servers of an event on one host, and the commands by which they run.

Written anew at each start: ports of the loopback that are free now. What was chosen when the event
was made stands in the same files, and is read from there.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from datacollect.bistro.http.config_fields import (
    DESTINATION_FORMAT,
    SERVICE_FORMAT,
    WITNESS_FORMAT,
)
from datacollect.bistro.one_host.certificates import Certificate
from datacollect.bistro.one_host.checks import free_ports
from datacollect.bistro.one_host.places import SERVICE, VERDICTS, WITNESS
from datacollect.errors import ProblemError
from datacollect.files.documents import (
    document_name,
    parse_toml,
    read_text,
    toml_text,
    write_atomically,
)
from datacollect.net.keys import read_private_key
from datacollect.net.names import host_and_port, host_port_text
from datacollect.transfer.agent.config.fields import AGENT_FORMAT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacollect.bistro.formats.event.event import Event
    from datacollect.bistro.one_host.places import Places

LOOPBACK = "127.0.0.1"
# A school comes from one address, and browsers open several connections each.
MOST_SESSIONS, MOST_NEW_PER_S = 4000, 1000
# What is under way goes on after a new start: nobody waits long for it.
DRAIN_S = 5
EVERY_S = 5


@dataclass(frozen=True)
class Chosen:
    """What is chosen when an event is made on one host, and is no part of it.

    Attributes
    ----------
    listen : tuple of str and int
    certificate : Certificate
    room_bytes : int
        For uploads.
    is_clock_trusted : bool
        Whether the organiser vouches for the clock of this host.
    """

    listen: tuple[str, int]
    certificate: Certificate
    room_bytes: int
    is_clock_trusted: bool


def chosen_before(places: Places) -> Chosen:
    """Return what was chosen, from the files of the servers.

    Raises
    ------
    ProblemError
        They are not there, or somebody has changed them into something else.
    """
    front = parse_toml(read_text(places.front_file), document_name(places.front_file))
    witness = parse_toml(read_text(places.witness_file), document_name(places.witness_file))
    try:
        tls, room = front["tls"], front["accept"]["bytes"]
        return Chosen(
            host_and_port(front["listen"]),
            Certificate(Path(tls["certificate"]), Path(tls["key"])),
            int(room),
            witness.get("clock") == "trusted",
        )
    except (KeyError, TypeError, ValueError):
        raise ProblemError(
            f"{document_name(places.front_file)}: must have listen, tls and accept.bytes as "
            "`datacollect event quickstart` has written them; write them again"
        ) from None


def write_servers(places: Places, event: Event, chosen: Chosen) -> None:
    """Write the files of all servers.

    Raises
    ------
    NotWrittenError
        One cannot be written.
    """
    service, witness, verdicts = (f"{LOOPBACK}:{port}" for port in free_ports(3))
    behind = f"behind = {toml_text([LOOPBACK])}\n"
    logs = [key.text for key in event.log_keys]
    collector = read_private_key(places.key("collector")).public
    texts = {
        places.witness_file: (
            f"format = {toml_text(WITNESS_FORMAT)}\n"
            f"name = {toml_text(event.witnesses[0].vkey.name)}\n"
            f'key = "witness.key"\nlisten = {toml_text(witness)}\nfolder = "signed"\n'
            f"clock = {toml_text('trusted' if chosen.is_clock_trusted else 'kernel')}\n"
            f"logs = {toml_text(logs)}\n{behind}"
        ),
        places.service_file: (
            f'format = {toml_text(SERVICE_FORMAT)}\nevent = "event.toml"\nkey = "service.key"\n'
            f'listen = {toml_text(service)}\nfolder = "log"\n{behind}'
        ),
        places.destination_file: destination_text(
            places, f"listen = {toml_text(verdicts)}\n{behind}"
        ),
        places.front_file: agent_text(
            event.bistros[0].name,
            collector,
            chosen.listen,
            chosen.certificate,
            accept_table(chosen.room_bytes),
            front_table(places.page.name, {SERVICE: service, WITNESS: witness, VERDICTS: verdicts}),
        ),
    }
    (places.folder / "state").mkdir(mode=0o700, exist_ok=True)
    for path, text in texts.items():
        write_atomically(path, text.encode())


def destination_text(places: Places, listening: str) -> str:
    """Return the file of a destination that keeps all in one folder, and listens by these lines."""
    return (
        f'format = {toml_text(DESTINATION_FORMAT)}\nkey = "verdicts.key"\n'
        f'collector = "collector.key"\nidentities = ["{places.identity.name}"]\n'
        f'tickets = "{places.tickets.name}"\nfolder = "collected"\n{listening}'
        f"every_s = {EVERY_S}\n"
    )


def agent_text(
    name: str,
    collector: str,
    listen: tuple[str, int],
    certificate: Certificate,
    *tables: str,
) -> str:
    """Return the file of an agent that many people speak to, with tables for what it does."""
    own = {
        "format": AGENT_FORMAT,
        "name": name,
        "listen": host_port_text(*listen),
        "collectors": [collector],
        "state": "state",
    }
    limits = {
        "sessions": MOST_SESSIONS,
        "sessions_per_address": MOST_SESSIONS,
        "new_per_s": MOST_NEW_PER_S,
        "drain_s": DRAIN_S,
    }
    tls = {"certificate": str(certificate.chain), "key": str(certificate.key)}
    parts = (_lines(own), f"[tls]\n{_lines(tls)}", *tables, f"[limits]\n{_lines(limits)}")
    return "\n".join(parts)


def _lines(values: Mapping[str, object]) -> str:
    return "".join(f"{key} = {toml_text(value)}\n" for key, value in values.items())


def accept_table(n_bytes: int) -> str:
    """Return the table of a bistro."""
    return (
        f'[accept]\nevent = "event.toml"\nfolder = "uploads"\nbytes = {n_bytes}\n'
        'receipt_key = "receipts.key"\n'
    )


def front_table(page: str, to: Mapping[str, str]) -> str:
    """Return the table of what else answers at an agent's address."""
    passed = ", ".join(f"{name} = {toml_text(place)}" for name, place in to.items())
    return f"[front]\npage = {toml_text(page)}\nto = {{ {passed} }}\n"


def commands(places: Places) -> dict[str, list[str]]:
    """Return the commands of all servers by their names, in the order in which they start.

    The bistro comes before the service: through it the service reaches its witness.
    """
    program = [sys.executable, "-m", "datacollect"]
    destination = ["--destination", str(places.destination_file)]
    return {
        "witness": [*program, "witness", str(places.witness_file), "--json"],
        "bistro": [*program, "agent", str(places.front_file), "--json"],
        "service": [*program, "timestamp", str(places.service_file), "--json"],
        "destination": [*program, "event", "run", str(places.event), *destination, "--json"],
    }
