"""Costs of bytes on this machine: probes, and what many repeats of them say."""
