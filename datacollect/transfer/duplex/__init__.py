"""Bytes both ways between a program and a connection over TLS: half-closes, resets, limits."""
