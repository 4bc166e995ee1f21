"""Measuring the network between hosts: an operator asks their agents to test it, within limits.

What samples say, however they came about, is `datacollect.measurement`. Imports lead downwards::

    commands   `datacollect measure …`
    cycle      all hosts within a budget, no test disturbing another; goes on where it ended
    page       routers, rates, round trips, failures, live or in a file
    results    problems with curves, shared links, limits, changes
    operator   leases taken, tests asked for by tools, rows from what both ends say
    agent      takes part in tests that operators ask for: the table `measure` of its file
    hosts      what bytes cost this machine: processors, memory, network, disk
    plan       hosts, budgets, rounds without overlap, leases, tickets
    probes     what a test tells: packet pairs, connections by their number, two links together
"""
