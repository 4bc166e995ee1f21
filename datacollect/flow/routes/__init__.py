"""Decomposition of flows on arcs into paths and routes, in whole bytes."""
