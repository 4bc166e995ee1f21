"""Checks of the doctor: what each looks at, and what it finds; wings and other packages add theirs.

Another package brings one as an entry point of the group ``datacollect.doctor_checks``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from datacollect.errors import DatacollectError
from datacollect.files.registry import Registry
from datacollect.net.safe_text import safe_text, without_secrets
from datacollect.transfer.doctor.patient import AGENT, COLLECTION, Patient
from datacollect.wings import DOCTOR_CHECKS as OF_WINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class Level(StrEnum):
    """Meaning of a finding: all is well; something could be better; nothing works."""

    GOOD = "good"
    NOTE = "note"
    STOPS = "stops"


URGENCY = {Level.STOPS: 0, Level.NOTE: 1, Level.GOOD: 2}


@dataclass(frozen=True)
class Finding:
    """One line of the doctor.

    Attributes
    ----------
    what : str
        What was looked at.
    found, wanted, remedy : str
        The last two are empty where nothing is wrong.
    level : Level
    """

    what: str
    found: str
    wanted: str = ""
    remedy: str = ""
    level: Level = Level.GOOD


@dataclass(frozen=True)
class DoctorCheck:
    """A check.

    Attributes
    ----------
    name : str
    text : str
        What it looks at, in a sentence.
    look : callable
        Returns what it finds.
    of : tuple of str
        ``collection``, ``agent``.
    """

    name: str
    text: str
    look: Callable[[Patient], Iterable[Finding]]
    of: tuple[str, ...] = (COLLECTION, AGENT)


_NETWORK = "datacollect.transfer.doctor.network_checks"
_AGENT = "datacollect.transfer.doctor.agent_checks"
_HOST = "datacollect.transfer.doctor.host_checks"
# In the order in which they are shown, after what stops.
OWN = {
    "keys": f"{_HOST}:KEYS_CHECK",
    "ports": f"{_NETWORK}:PORTS_CHECK",
    "other side": f"{_NETWORK}:OTHER_SIDE_CHECK",
    "fingerprints": f"{_NETWORK}:FINGERPRINTS_CHECK",
    "tickets": f"{_NETWORK}:TICKETS_CHECK",
    "served": f"{_NETWORK}:SERVED_CHECK",
    "listening": f"{_AGENT}:LISTENING_CHECK",
    "dial back": f"{_AGENT}:DIAL_BACK_CHECK",
    "clocks": f"{_NETWORK}:CLOCKS_CHECK",
    "files": f"{_HOST}:FILES_CHECK",
    "room": f"{_HOST}:ROOM_CHECK",
    "buffers": f"{_HOST}:BUFFERS_CHECK",
    "congestion": f"{_HOST}:CONGESTION_CHECK",
    "versions": f"{_NETWORK}:VERSIONS_CHECK",
    **OF_WINGS,
}
DOCTOR_CHECKS = Registry("check of the doctor", "datacollect.doctor_checks", DoctorCheck, OWN)


def examine(patient: Patient) -> list[tuple[str, Finding]]:
    """Return what all checks find, each with the name of its check; what stops a pull first.

    A check that cannot be made is a note of its own: the others go on.
    """
    found: list[tuple[str, Finding]] = []

    def cannot(why: str) -> None:
        found.append(("checks", Finding("a check", why, "a package that works", why, Level.NOTE)))

    for name in DOCTOR_CHECKS.usable_names(cannot):
        try:
            check = DOCTOR_CHECKS.get(name)
            if patient.kind in check.of:
                found += [(name, _safe(each)) for each in check.look(patient)]
        except (DatacollectError, OSError, ImportError) as error:
            why = safe_text(f"cannot be examined: {error}")
            found.append((name, Finding(name, why, level=Level.NOTE)))
    return sorted(found, key=lambda each: URGENCY[each[1].level])


def milliseconds(time_s: float) -> str:
    """Write a round trip.

    >>> milliseconds(0.0123456), milliseconds(1.6e-5)
    ('12.3 ms', '0.016 ms')
    """
    return f"{1e3 * time_s:.3g} ms"


def _safe(finding: Finding) -> Finding:
    """Return a finding in which nothing is what a peer has hidden there."""

    def safe(text: str) -> str:
        return safe_text(without_secrets(text))

    return Finding(
        safe(finding.what),
        safe(finding.found),
        safe(finding.wanted),
        safe(finding.remedy),
        finding.level,
    )
