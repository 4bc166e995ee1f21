"""Measuring the network between hosts."""
