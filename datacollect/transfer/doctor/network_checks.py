"""Checks of others over the network: names, ports, certificates, clocks, versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacollect.errors import DatacollectError
from datacollect.installation import installed_version
from datacollect.net.deadline import Deadline
from datacollect.net.fan_out import fan_out
from datacollect.net.names import host_port_text
from datacollect.transfer.doctor.checks import DoctorCheck, Finding, Level, milliseconds
from datacollect.transfer.doctor.patient import COLLECTION, LATE, LEFT_AFTER_S, WITHIN_S, why_not
from datacollect.transfer.protocol.kind import Surroundings
from datacollect.transfer.sources.kinds import AGENTS, KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from datacollect.transfer.doctor.patient import Patient, Seen
    from datacollect.transfer.sources.agent.network import Network

# Clocks may differ by so much before that is said: logs of hosts are hard to compare then. Tickets
# are written by the agent's clock, whatever that says.
MOST_OFFSET_S = 2.0
# What an agent has left out of its list where its whole folder is gone.
WHOLE_FOLDER = "."


def _ports(patient: Patient) -> Iterator[Finding]:
    for name, seen in patient.seen.items():
        place = host_port_text(*patient.places[name].address)
        what = f"{name} at {place}"
        if seen.step not in ("name", "port"):
            leads = ", ".join(seen.addresses)
            rtt = "" if seen.rtt_s is None else f", round trip {milliseconds(seen.rtt_s)}"
            yield Finding(what, f"open ({leads}{rtt})")
        else:
            yield _unreached(patient, name, what, seen)
    if patient.collection is not None:
        yield from _other_kinds(patient)


def _unreached(patient: Patient, name: str, what: str, seen: Seen) -> Finding:
    relays = _relays_to(patient, name)
    if relays:
        wanted = "open from here, too, if pulls are to come directly"
        remedy = f"nothing, if all is to come over {', '.join(relays)}"
        return Finding(what, seen.trouble, wanted, remedy, Level.NOTE)
    level = Level.STOPS if patient.is_wanted(name) else Level.NOTE
    if seen.step == "name":
        remedy = f"correct the name of {name} in {patient.file}, or in the name service"
        return Finding(what, seen.trouble, "a name that leads to a host", remedy, level)
    remedy = f"start {name} there, open its port in the firewalls, or correct {patient.file}"
    return Finding(what, seen.trouble, "a program that listens", remedy, level)


def _relays_to(patient: Patient, name: str) -> list[str]:
    """Return the agents that reach a host that cannot be reached from here."""
    return [tail for (tail, head), why in patient.ways.items() if head == name and not why]


def _other_kinds(patient: Patient) -> Iterator[Finding]:
    """Look at hosts that are no agents, in the way of their kind."""
    collection, network = patient.collection, patient.network
    assert collection is not None
    if network is None:
        return
    sources = {
        name: KINDS.get(kind).make(
            entry, Surroundings(network, collection.patterns(name), WITHIN_S, WITHIN_S)
        )
        for kind, entries in collection.entries.items()
        if kind != AGENTS
        for name, entry in entries.items()
    }
    outcomes = fan_out(
        sources,
        lambda name: why_not(lambda: sources[name].reach(Deadline(WITHIN_S))),
        LEFT_AFTER_S,
    )
    for name in sources:
        why = outcomes[name].result() if name in outcomes else LATE
        level = Level.STOPS if patient.is_wanted(name) else Level.NOTE
        remedy = f"correct what {patient.file} says of {name}, or have it started"
        yield (
            Finding(name, why, "a server that answers", remedy, level)
            if why
            else Finding(name, "answers")
        )


def _other_side(patient: Patient) -> Iterator[Finding]:
    for (tail, head), why in patient.ways.items():
        what = f"{head}, dialled by {tail}"
        if not why:
            yield Finding(what, "answers")
            continue
        yield Finding(
            what, why, "an answer, over the relay", _way_mended(patient, tail, head), Level.NOTE
        )


def _way_mended(patient: Patient, tail: str, head: str) -> str:
    """Return what lets a relay reach a host, by what is known of that from here."""
    if patient.seen[head].step:
        return (
            f"start {head} on its host; if it is running there, let {tail} through to it, or "
            f"correct connect_to of {tail}'s file and restart {tail}"
        )
    return (
        f"{head} answers from here: let {tail} through to it, or correct its address in "
        f"connect_to of {tail}'s file and restart {tail}"
    )


def _fingerprints(patient: Patient) -> Iterator[Finding]:
    collection = patient.collection
    for name, seen in patient.seen.items():
        what = f"certificate of {name}"
        if seen.step in ("TLS", "answer"):
            level = Level.STOPS if patient.is_wanted(name) else Level.NOTE
            remedy = f"correct what {patient.file} says of {name}: its port, its ca"
            yield Finding(what, seen.trouble, "an agent that answers over TLS 1.3", remedy, level)
        if seen.facts is None:
            continue
        wanted = None if collection is None else collection.entries[AGENTS][name].fingerprint
        if wanted in (None, seen.fingerprint):
            yield Finding(what, seen.fingerprint)
        else:
            remedy = (
                f"compare with what {name} says when it starts: if it is the same, copy "
                f"it into {patient.file}; otherwise another host answers there"
            )
            yield Finding(what, seen.fingerprint, str(wanted), remedy, Level.STOPS)
        if seen.facts.name != name:
            remedy = f"call it {seen.facts.name!r} in {patient.file}, or give the right address"
            said = f"calls itself {seen.facts.name!r}"
            yield Finding(f"name of {name}", said, repr(name), remedy, Level.STOPS)


def _tickets(patient: Patient) -> Iterator[Finding]:
    network = patient.network
    if network is None:
        return
    names = _answering(patient)
    outcomes = fan_out(names, lambda name: why_not(lambda: _ask_sessions(network, name)), WITHIN_S)
    for name in names:
        why = outcomes[name].result() if name in outcomes else LATE
        what = f"our key at {name}"
        if not why:
            yield Finding(what, "counts")
            continue
        assert patient.key is not None
        remedy = f"write {patient.key.public} into collectors of {name}'s file, and reload it"
        yield Finding(what, why, "a key that the agent knows", remedy, Level.STOPS)


def _served(patient: Patient) -> Iterator[Finding]:
    """Ask for one file of each agent that is wanted: its folder may be gone since it began."""
    network, collection = patient.network, patient.collection
    if network is None or collection is None:
        return
    names = []
    for name in filter(patient.is_wanted, _answering(patient)):
        facts = patient.seen[name].facts
        if facts is not None and facts.serves:
            names.append(name)
        elif collection.sources is not None:
            remedy = f"write serve into {name}'s file and restart it, or take {name} out of sources"
            what, wanted = f"folder of {name}", "an agent that serves one"
            yield Finding(what, "it only relays", wanted, remedy, Level.STOPS)
    outcomes = fan_out(names, lambda name: _why_not_served(network, name), WITHIN_S)
    for name in names:
        # Who may not ask is told by another check.
        why = outcomes[name].result() if name in outcomes else ""
        what = f"folder of {name}"
        if not why:
            yield Finding(what, "is there" if name in outcomes else "not listed in time")
            continue
        remedy = f"put it back on the host of {name}, and restart the agent there"
        yield Finding(what, why, "the folder that it serves", remedy, Level.STOPS)


def _why_not_served(network: Network, name: str) -> str:
    """Return why an agent has nothing to list, as it says itself; empty where it says nothing."""
    try:
        session, admission = network.open(name, (), None)
        with session:
            page = session.inventory(admission.ticket(), None, 1)
    except DatacollectError:
        return ""
    return next((each.why for each in page.left_out if each.name == WHOLE_FOLDER), "")


def _answering(patient: Patient) -> list[str]:
    """Return the agents that answer by the names and certificates that the file has."""
    return [
        name
        for name, seen in patient.seen.items()
        if seen.facts is not None and seen.facts.name == name and _is_the_one(patient, name, seen)
    ]


def _is_the_one(patient: Patient, name: str, seen: Seen) -> bool:
    assert patient.collection is not None
    return patient.collection.entries[AGENTS][name].fingerprint in (None, seen.fingerprint)


def _ask_sessions(network: Network, name: str) -> None:
    """Ask what costs an agent nothing, and needs a ticket."""
    session, admission = network.open(name, (), None)
    with session:
        session.sessions(admission.ticket())


def _clocks(patient: Patient) -> Iterator[Finding]:
    for name, seen in patient.seen.items():
        if seen.facts is None:
            continue
        found = f"{seen.offset_s:+.3f} s ± {milliseconds(seen.half_rtt_s)}"
        if abs(seen.offset_s) - seen.half_rtt_s <= MOST_OFFSET_S:
            yield Finding(f"clock of {name}", found)
            continue
        remedy = f"set the clocks of both by NTP, as `timedatectl set-ntp true` does, on {name} too"
        wanted = f"ours, within {MOST_OFFSET_S:g} s"
        yield Finding(f"clock of {name}", found, wanted, remedy, Level.NOTE)


def _versions(patient: Patient) -> Iterator[Finding]:
    own = installed_version() or "unknown"
    yield Finding("version here", own)
    for name, seen in patient.seen.items():
        if seen.facts is None:
            continue
        if seen.facts.version == own:
            yield Finding(f"version of {name}", own)
        else:
            remedy = "install the same version at both, before you look for anything else"
            version = seen.facts.version
            yield Finding(f"version of {name}", version, own, remedy, Level.NOTE)


PORTS_CHECK = DoctorCheck("ports", "Names and ports, from here.", _ports)
OTHER_SIDE_CHECK = DoctorCheck(
    "other side", "Hosts of the collection, as its agents reach them.", _other_side, (COLLECTION,)
)
FINGERPRINTS_CHECK = DoctorCheck("fingerprints", "Who answers there.", _fingerprints)
TICKETS_CHECK = DoctorCheck(
    "tickets", "Whether agents know the collection's key.", _tickets, (COLLECTION,)
)
SERVED_CHECK = DoctorCheck(
    "served", "Whether agents still have what they serve.", _served, (COLLECTION,)
)
CLOCKS_CHECK = DoctorCheck("clocks", "Clocks against this one.", _clocks)
VERSIONS_CHECK = DoctorCheck("versions", "Versions here and there.", _versions)
