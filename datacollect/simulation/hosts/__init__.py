"""Simulated hosts: what of a stream of packets a machine takes in, what it loses, and where."""
