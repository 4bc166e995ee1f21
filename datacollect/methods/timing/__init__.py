"""Timing of fluid paths: transfers at instants, in pipelines or slots, and what hops use."""
