"""Checks of an agent on its own host: whether it answers, and whether others reach it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacollect.errors import DatacollectError, ProblemError
from datacollect.net.deadline import Deadline
from datacollect.net.dialling import dial, start_tls
from datacollect.net.fan_out import fan_out
from datacollect.net.http_client import HttpChannel
from datacollect.net.http_heads import request_head
from datacollect.net.names import host_port_text
from datacollect.net.tls import client_context, fingerprint_of_file
from datacollect.transfer.agent.dial_back import PATH
from datacollect.transfer.doctor.checks import DoctorCheck, Finding, Level
from datacollect.transfer.doctor.patient import AGENT, LATE, LEFT_AFTER_S, WITHIN_S, Place, look_at
from datacollect.transfer.protocol.checked import require_list
from datacollect.transfer.protocol.messages import parse_object

if TYPE_CHECKING:
    from collections.abc import Iterator

    from datacollect.transfer.doctor.patient import Patient

LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}
MOST_ANSWER_BYTES = 64 * 1024


def _listening(patient: Patient) -> Iterator[Finding]:
    agent = patient.agent
    assert agent is not None
    host, port = agent.listen
    what = f"this agent, at {host_port_text(host, port)}"
    if port == 0:
        yield Finding(what, "any free port: another at each start")
        return
    seen = look_at(agent.name, Place((LOOPBACK.get(host, host), port)))
    if seen.step == "port":
        remedy = f"start it: datacollect agent {patient.file}"
        yield Finding(what, "nobody listens", "the running agent", remedy, Level.NOTE)
    elif seen.facts is None:
        remedy = "stop the program that listens there, or choose another port as listen"
        yield Finding(what, seen.trouble, "nobody, or the agent", remedy, Level.STOPS)
    elif seen.facts.name != agent.name or not _is_ours(patient, seen.fingerprint):
        remedy = "stop the agent that listens there, or choose another port as listen"
        found = f"an agent that calls itself {seen.facts.name!r}"
        yield Finding(what, found, f"{agent.name!r}, with its certificate", remedy, Level.STOPS)
    else:
        yield Finding(what, f"answers; its fingerprint is {seen.fingerprint}")


def _is_ours(patient: Patient, fingerprint: str) -> bool:
    assert patient.agent is not None
    certificate = patient.agent.certificate
    try:
        return fingerprint_of_file(certificate) == fingerprint
    except (ProblemError, OSError):
        return False


def _dial_back(patient: Patient) -> Iterator[Finding]:
    """Ask each agent that this one relays to whether it reaches this host."""
    names = [name for name, seen in patient.seen.items() if seen.facts is not None]
    outcomes = fan_out(names, lambda name: _asked_back(name, patient.places[name]), LEFT_AFTER_S)
    for name in names:
        what = f"this host, dialled by {name}"
        found = outcomes[name].result() if name in outcomes else LATE
        if isinstance(found, str):
            yield Finding(what, f"not known: {found}")
        elif not found:
            yield Finding(what, f"{name} names no host at our address in its connect_to")
        for row in found if isinstance(found, list) else ():
            if not row["why"]:
                yield Finding(f"{what} as {row['name']}", "reached")
                continue
            remedy = (
                f"start this agent, open its port in the firewalls, or correct connect_to of "
                f"{name}'s file"
            )
            wanted = "a port that is open from there"
            yield Finding(f"{what} as {row['name']}", row["why"], wanted, remedy, Level.NOTE)


def _asked_back(name: str, place: Place) -> list[dict[str, str]] | str:
    """Return what a host says that it has dialled; or why it says nothing."""
    deadline = Deadline(WITHIN_S)
    try:
        plain = dial([place.address], name, deadline)
        connection = start_tls(plain, client_context(place.ca), place.address[0], name, deadline)
        channel = HttpChannel(connection, name, WITHIN_S)
        try:
            channel.send(request_head("GET", PATH, "agent", []))
            head = channel.head(deadline)
            body = channel.body(head.length, MOST_ANSWER_BYTES, deadline)
            if head.status != 200:
                return f"{name} answers {head.status}; its version may be older"
            rows = require_list(parse_object(body), "rows", 100)
            return [{key: str(row[key]) for key in ("name", "why")} for row in rows]
        finally:
            channel.close()
    except (DatacollectError, OSError, ValueError, KeyError, TypeError) as error:
        return str(error)


LISTENING_CHECK = DoctorCheck("listening", "Who listens at its port.", _listening, (AGENT,))
DIAL_BACK_CHECK = DoctorCheck("dial back", "Whether others can reach it.", _dial_back, (AGENT,))
