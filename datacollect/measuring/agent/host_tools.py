"""The tools that hosts run for operators, a row each; files and requests know them from here."""

from __future__ import annotations

from datacollect.measuring.agent.pair_sending import PAIRS
from datacollect.measuring.agent.pinging import PING
from datacollect.measuring.agent.sending import TCP
from datacollect.measuring.agent.tracing import TRACE

HOST_TOOLS = {tool.name: tool for tool in (PING, TRACE, PAIRS, TCP)}
