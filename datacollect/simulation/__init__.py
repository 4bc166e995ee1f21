"""Engines that carry out a schedule in a simulated network, one per file.

The package is not named ``simulate``, which is the function.
"""
