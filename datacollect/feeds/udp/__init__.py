"""Feeds by UDP: cores without clocks, sockets or files, but for `sockets`.

Imports lead downwards::

    sending, receiving  the two ends
    settings            the table `udp` of a feed's file; what fills holes
    guard, reports      whether the path, and the other host, carry the feed
    ring                which numbers have come, which are missing
    drop_sets, pacing   what is left out on purpose; when packets may leave
    packets, sockets    what lies before each message; many packets by one call
"""
