"""What advises users of feeds by UDP, and whoever takes them."""

from __future__ import annotations

from instances.udp_feeds import feed_file
from remedies.trying import Example

from datacollect.feeds.formats.frames import Hello
from datacollect.feeds.receiver.udp_taking import UdpLimits, require_udp
from datacollect.feeds.udp.drop_sets import drop_set
from datacollect.feeds.udp.guard import Guard, GuardLimits


def read(**keys):
    return lambda: feed_file(**keys)


def taken(most_rate_bytes_per_s, transport="udp"):
    """Ask whether a feed may come by UDP; by TCP it is not asked."""
    hello = Hello("scan7", "s", "udp", 1e6, 1000, 0.02, "b", 0)

    def ask():
        if transport == "udp":
            require_udp(hello, UdpLimits(("127.0.0.1", 0), most_rate_bytes_per_s))

    return ask


def alarm(part, n_host=0):
    """Return the alarm of a path that carries no more than 99 of 100 packets, of all or a part."""

    def send():
        drops, guard = drop_set("single", 1 - part).drops, Guard(GuardLimits(), 0.0)
        sent = lost = 0
        for tick in range(1, 100):
            n = sum(not drops() for _ in range(1000))
            sent, lost = sent + n, lost + max(n - 990, 0) * 10
            guard.report(tick / 10, sent, lost, lost, n_host * tick)
            guard.look(tick / 10)
        return guard.alarm.text if guard.alarm else None

    return send


EXAMPLES = [
    Example(
        "{} must be left out with udp: packets {}, got {}; leave it out, or write transport = "
        '"tcp"',
        read(via=["K"]),
        read(via=["K"], transport="tcp", udp=None),
    ),
    Example(
        'udp must be left out with tcp, got {}; write transport = "udp"',
        read(transport="tcp", udp={"drop": 0.1}),
        read(transport="udp", udp={"drop": 0.1}),
    ),
    Example(
        "a message is one packet; {} fit what Ethernet usually carries",
        read(message_bytes=20_000),
        read(message_bytes=1412),
    ),
    Example(
        "its file has no most_rate in [feed]; write one, and start the agent again, or send by "
        'transport = "tcp"',
        taken(None),
        taken(1e7),
    ),
    Example("send less, or leave a part out by a drop set", alarm(1.0), alarm(0.95)),
]
