"""Engines that carry out a collection in a simulated network: fair shares, or packets in ns-3."""
