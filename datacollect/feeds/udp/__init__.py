"""Feeds by UDP: what comes late is as bad as lost, and what is lost is said.

Imports lead downwards::

    receiver, sender   threads and sockets around the cores
    sockets            many packets by one call of the kernel
    receiving, sending the two ends (sans I/O)
    guard              says when the path, or the other host, cannot carry the feed
    ring               which numbers have come, which are missing
    drop_sets, pacing  what is left out on purpose; when packets may leave
    packets            what lies before each message
    settings           the table `udp` of a feed's file
"""
