"""Checks of the doctor where an agent lets tests run."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from datacollect.measuring.agent.measure_config import MeasureConfig
from datacollect.transfer.doctor.checks import DoctorCheck, Finding, Level
from datacollect.transfer.doctor.patient import AGENT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from datacollect.transfer.doctor.patient import Patient

# Any of them traces.
TRACERS = ("scamper", "traceroute")


def _tests(patient: Patient) -> Iterator[Finding]:
    assert patient.agent is not None
    table = patient.agent.tables.get("measure")
    if table is None:
        return
    assert isinstance(table, MeasureConfig)
    if "trace" in table.tools:
        found = [name for name in TRACERS if shutil.which(name)]
        if found:
            yield Finding("tool trace", f"runs {found[0]}")
        else:
            remedy = "apt install traceroute, or leave trace out of measure.tools"
            wanted = " or ".join(TRACERS)
            yield Finding("tool trace", "not installed", wanted, remedy, Level.NOTE)
    if "pairs" in table.tools and not table.udp_port:
        remedy = "give measure.udp_port, and let it through the firewalls"
        wanted = "a UDP port for packet pairs that come here"
        yield Finding("tool pairs", "no udp_port", wanted, remedy, Level.NOTE)


TESTS_CHECK = DoctorCheck("tests between hosts", "What tools of tests need.", _tests, (AGENT,))
