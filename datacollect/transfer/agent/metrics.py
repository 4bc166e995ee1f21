"""Metrics of an agent: its totals, and what is open now."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from datacollect.net.bounded_rows import OTHER
from datacollect.net.metrics import COUNTER, counter, gauge, one

if TYPE_CHECKING:
    from datacollect.net.metrics import Family
    from datacollect.transfer.agent.core.core import AgentCore

BY_SESSION = ("kind", "collection", "host")
# What sessions are that have shown no ticket: strangers, and those who ask handlers.
NO_TICKET = "none"


def agent_families(core: AgentCore, version: str, started_s: float) -> list[Family]:
    """Return what an agent has to tell.

    Parameters
    ----------
    core : AgentCore
        Which nobody else changes meanwhile.
    version : str
    started_s : float
        Seconds since 1970.
    """
    totals, rows = core.totals, list(core.totals.by_session.items())
    open_now = Counter(
        NO_TICKET if each.ticket is None else each.ticket.kind for each in core.sessions.values()
    )
    return [
        gauge(
            "datacollect_agent_info",
            "Always 1: which agent, which version.",
            ("host", "version"),
            {(core.name, version): 1},
        ),
        one("datacollect_agent_start_time_seconds", "When it was started.", started_s),
        counter(
            "datacollect_agent_up_bytes",
            "Bytes relayed to the host of the label.",
            BY_SESSION,
            {labels: row.up_bytes for labels, row in rows},
        ),
        counter(
            "datacollect_agent_down_bytes",
            "Bytes relayed from the host of the label; for the agent itself, bytes of files that "
            "it has sent.",
            BY_SESSION,
            {labels: row.down_bytes for labels, row in rows},
        ),
        counter(
            "datacollect_agent_hashed_bytes",
            "Bytes of files that were read and hashed, and not sent.",
            BY_SESSION,
            {labels: row.hashed_bytes for labels, row in rows if row.hashed_bytes},
        ),
        counter(
            "datacollect_agent_sessions",
            "Sessions that a ticket has let in.",
            BY_SESSION,
            {labels: row.sessions for labels, row in rows},
        ),
        gauge(
            "datacollect_agent_open_sessions",
            "Connections that are open, by kind of ticket; none: without one.",
            ("kind",),
            {(kind,): n for kind, n in open_now.items()},
        ),
        one(
            "datacollect_agent_most_sessions",
            "Connections that may be open.",
            core.limits.sessions,
        ),
        one(
            "datacollect_agent_connections",
            "Connections that were accepted.",
            totals.connections,
            COUNTER,
        ),
        counter(
            "datacollect_agent_refused",
            "Requests and connections that were refused, by status; none: closed without one.",
            ("status",),
            {(status,): n for status, n in totals.refused.items()},
        ),
        one(
            "datacollect_agent_failed",
            "What this host could not do: its disk, its memory, its threads.",
            totals.failed,
            COUNTER,
        ),
        one(
            "datacollect_agent_stopping",
            "1: it was told to stop, and waits for what is under way.",
            int(core.stopping_since_s is not None),
        ),
        one(
            "datacollect_agent_other_rows",
            "1: more collections or hosts than have labels of their own; the rest is `other`.",
            int(any(set(labels) == {OTHER} for labels, _ in rows)),
        ),
    ]
