"""Limits of a test of TCP connections, as samples name them: what kept it from being faster."""

from __future__ import annotations

NETWORK, RECEIVER, SEND_BUFFER = "network", "receiver", "send buffer"
APPLICATION, RATE = "application", "rate of the agent"
