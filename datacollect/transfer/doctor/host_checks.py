"""Checks of this host: modes of keys, limits of files, room, buffers, congestion control."""

from __future__ import annotations

import math
import os
import resource
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from datacollect.errors import ProblemError
from datacollect.files.documents import document_name
from datacollect.files.refusals import refusal_of
from datacollect.files.units import format_bytes, format_rate
from datacollect.net.keys import read_private_key
from datacollect.transfer.doctor.checks import DoctorCheck, Finding, Level, milliseconds
from datacollect.transfer.pull.open_hours import OpenHours

if TYPE_CHECKING:
    from collections.abc import Iterator

    from datacollect.transfer.doctor.patient import Patient

# What others than its owner may do with a file.
OTHERS = stat.S_IRWXG | stat.S_IRWXO
# Of a relayed connection; of the program itself.
FILES_EACH, FILES_BESIDE = 6, 64
# A pull's connection, with its file and its place.
FILES_OF_PULL = 3
LEAST_ROOM_BYTES = 16 * 2**20
KERNEL = Path("/proc/sys/net/ipv4")
# Of a buffer the kernel gives about a half to data.
PART_OF_BUFFER = 0.5
# Reno: rate = MSS / RTT * sqrt(3/2) / sqrt(loss) (Mathis et al., 1997), at one packet in ten
# thousand, over a round trip at which that matters.
MSS_BYTES, LOSS, LONG_RTT_S = 1448, 1e-4, 0.01
RENO = "reno"


def _keys(patient: Patient) -> Iterator[Finding]:
    if patient.collection is not None:
        yield from _collectors_key(patient.collection.key)
    elif patient.agent is not None:
        agent = patient.agent
        if agent.key.exists():
            yield from _modes(agent.key)
        elif agent.own_certificate:
            yield Finding(
                f"key {document_name(agent.key)}", "does not exist yet: made at the start"
            )
        else:
            remedy = "make it, or leave tls out: then the agent makes both"
            yield _stops(f"key {document_name(agent.key)}", "no such file", "a key, PEM", remedy)


def _collectors_key(path: Path) -> Iterator[Finding]:
    name = document_name(path)
    try:
        read_private_key(path)
    except ProblemError as error:
        why = str(error).removeprefix(f"{name}: ")
        remedy = "name the key's file as key; `datacollect keys new FILE` makes one"
        yield _stops(f"key {name}", why, "a private key", remedy)
        return
    yield from _modes(path)


def _modes(path: Path) -> Iterator[Finding]:
    name, mode = document_name(path), stat.S_IMODE(path.stat().st_mode)
    if not os.access(path, os.R_OK):
        remedy = "run this as the user whose key it is, or give the key to that user"
        yield _stops(f"key {name}", "cannot be read", "one that this user reads", remedy)
    elif mode & OTHERS and not _is_credential(path):
        remedy = f"chmod 600 {name}; if others may have read it, make another"
        found = f"mode {mode:04o}: others than its owner may read it"
        yield Finding(f"key {name}", found, "mode 0600", remedy, Level.NOTE)
    else:
        yield Finding(f"key {name}", f"mode {mode:04o}")


def _is_credential(path: Path) -> bool:
    """Return whether systemd has put it where one service alone may look."""
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    return bool(folder) and path.resolve().is_relative_to(Path(str(folder)).resolve())


def _stops(what: str, found: str, wanted: str, remedy: str) -> Finding:
    return Finding(what, found, wanted, remedy, Level.STOPS)


def _files(patient: Patient) -> Iterator[Finding]:
    soft, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if patient.agent is not None:
        # It raises its own limit as far as it may.
        has = math.inf if most == resource.RLIM_INFINITY else most
        wanted = FILES_EACH * patient.agent.limits.sessions + FILES_BESIDE
        unit, of = "LimitNOFILE of its unit", f"{patient.agent.limits.sessions} sessions"
    else:
        assert patient.collection is not None
        has = math.inf if soft == resource.RLIM_INFINITY else soft
        n = patient.collection.limits.connections + len(patient.places)
        wanted = FILES_OF_PULL * n + FILES_BESIDE
        unit, of = "`ulimit -n`", f"{patient.collection.limits.connections} connections"
    found = "unlimited" if has == math.inf else f"{has:.0f}"
    if has >= wanted:
        yield Finding("files that may be open", found)
    else:
        remedy = f"raise {unit} to {wanted}, or allow for fewer than {of} in limits"
        yield Finding("files that may be open", found, f"{wanted} for {of}", remedy, Level.NOTE)


def _room(patient: Patient) -> Iterator[Finding]:
    spare_bytes = LEAST_ROOM_BYTES
    if patient.collection is not None:
        spare_bytes = max(spare_bytes, patient.collection.limits.spare_bytes)
    yield _free(patient.folder, spare_bytes)
    if patient.agent is not None and (serve := patient.agent.serve) is not None:
        what = f"folder {document_name(serve)}"
        if os.access(serve, os.R_OK | os.X_OK):
            yield Finding(what, "can be read")
        else:
            remedy = f"let the user that runs the agent read {document_name(serve)}"
            yield _stops(what, "cannot be read", "a folder to serve", remedy)


def _free(folder: Path, least_bytes: int) -> Finding:
    """Return how much room there is, where the folder is, or will be."""
    there = next(each for each in (folder, *folder.resolve().parents) if each.exists())
    what = f"room in {document_name(folder)}"
    if not there.is_dir():
        return _stops(what, "is no folder", "a folder", "name another folder")
    try:
        found = os.statvfs(there)
    except OSError as error:
        reason, remedy = refusal_of(error)
        return _stops(what, reason, "a disk that responds", remedy or "repair the disk")
    if found.f_flag & os.ST_RDONLY or not os.access(there, os.W_OK):
        remedy = "name another folder, or give this user permission to write there"
        return _stops(what, "cannot be written", "a folder that can be written", remedy)
    free_bytes = found.f_bavail * found.f_frsize
    if free_bytes >= least_bytes:
        return Finding(what, f"{format_bytes(free_bytes)} free; what is to come is not known here")
    wanted = f"{format_bytes(least_bytes)} beside what is to come"
    return _stops(what, f"{format_bytes(free_bytes)} free", wanted, "make room, or name another")


def _buffers(patient: Patient) -> Iterator[Finding]:
    """Look at what one connection may have under way, against rate times round trip."""
    is_agent = patient.agent is not None
    name = "tcp_wmem" if is_agent else "tcp_rmem"
    most_bytes = _most_of(KERNEL / name)
    if most_bytes is None:
        yield Finding(name, "cannot be read here")
        return
    window_bytes = PART_OF_BUFFER * most_bytes
    rates = _rates(patient)
    for host, seen in patient.seen.items():
        if not seen.rtt_s:
            continue
        what, carried = f"{name} for {host}", window_bytes / seen.rtt_s
        found = f"{format_bytes(most_bytes)}: {format_rate(carried)} a connection"
        rate = rates.get(host)
        if rate is None or rate <= carried:
            yield Finding(what, found)
            continue
        wanted_bytes = round(rate * seen.rtt_s / PART_OF_BUFFER)
        n = math.ceil(rate / carried)
        remedy = (
            f"sysctl net.ipv4.{name}='4096 131072 {wanted_bytes}', or use {n} connections at a time"
        )
        rtt = milliseconds(seen.rtt_s)
        wanted = f"{format_bytes(wanted_bytes)} for {format_rate(rate)} over {rtt}"
        yield Finding(what, found, wanted, remedy, Level.NOTE)


def _most_of(path: Path) -> int | None:
    """Return the largest buffer that the kernel gives."""
    try:
        return int(path.read_text().split()[2])
    except (OSError, ValueError, IndexError):
        return None


def _rates(patient: Patient) -> dict[str, float]:
    """Return at which rate each host's data may come at most, where the file says it."""
    if patient.agent is not None:
        rate = patient.agent.limits.rate
        if isinstance(rate, int | float):
            return dict.fromkeys(patient.places, float(rate))
        return {}
    collection = patient.collection
    assert collection is not None
    rates = {}
    for link in OpenHours(collection).file_links(closed_too=True):
        rate = link.get("bandwidth_bytes_per_s")
        most = max(rate) if isinstance(rate, list | tuple) and rate else rate
        if link["to"] == collection.destination and isinstance(most, int | float):
            rates[link["from"]] = float(most)
    return rates


def _congestion(patient: Patient) -> Iterator[Finding]:
    control = patient.agent.congestion if patient.agent is not None else None
    if control is None:
        try:
            control = (KERNEL / "tcp_congestion_control").read_text().strip()
        except OSError:
            yield Finding("congestion control", "cannot be read here")
            return
    long = {
        name: seen.rtt_s
        for name, seen in patient.seen.items()
        if seen.rtt_s and seen.rtt_s >= LONG_RTT_S
    }
    if control != RENO or not long:
        yield Finding("congestion control", control)
        return
    for name, rtt_s in long.items():
        rate = MSS_BYTES / rtt_s * math.sqrt(1.5 / LOSS)
        found = f"{control}: {format_rate(rate)} a connection where 0.01 % is lost"
        remedy = "sysctl net.ipv4.tcp_congestion_control=bbr, or cubic, on hosts that send"
        what = f"congestion control to {name}"
        wanted = f"bbr or cubic over {milliseconds(rtt_s)}"
        yield Finding(what, found, wanted, remedy, Level.NOTE)


KEYS_CHECK = DoctorCheck("keys", "Who may read the keys.", _keys)
FILES_CHECK = DoctorCheck("files", "How many files may be open.", _files)
ROOM_CHECK = DoctorCheck("room", "Room on disks, and folders.", _room)
BUFFERS_CHECK = DoctorCheck("buffers", "Buffers of TCP for rate and round trip.", _buffers)
CONGESTION_CHECK = DoctorCheck("congestion", "Congestion control on long ways.", _congestion)
