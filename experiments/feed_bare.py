"""Bare loops of Python that send and receive packets as feeds by UDP do: what nothing beats.

    feed_bare.py receive ADDRESS PACKET_BYTES HOW     until nothing has come for a second
    feed_bare.py send ADDRESS PACKET_BYTES HOW SECONDS PACKETS_PER_S

HOW is ``plain``, a call for each packet, or ``together``, as many packets as one call takes. Both
print how many packets there were, and the processor's time, in JSON.
"""

from __future__ import annotations

import argparse
import json
import socket
import time
from contextlib import suppress

from datacollect.feeds.udp.pacing import MOST_IN_QUANTUM
from datacollect.feeds.udp.sockets import (
    TOGETHER_BYTES,
    UDP_SEGMENT,
    prepare_receiver,
    receive_together,
)

PORT, SILENT_S, FIRST_WITHIN_S = 9100, 1.0, 30.0


def receive(address: str, packet_bytes: int, how: str) -> int:
    """Receive until nothing comes any more; return how many packets came."""
    n, into = 0, bytearray(TOGETHER_BYTES)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as bound:
        prepare_receiver(bound)
        if how == "plain":
            bound.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT + 1, 0)
        bound.bind((address, PORT))
        print("ready", flush=True)
        bound.settimeout(FIRST_WITHIN_S)
        with suppress(TimeoutError):
            while True:
                if how == "plain":
                    n_bytes = bound.recv_into(into)
                else:
                    n_bytes = receive_together(bound, into).n_bytes
                if not n:
                    bound.settimeout(SILENT_S)
                n += -(-n_bytes // packet_bytes)
    return n


def send(address: str, packet_bytes: int, how: str, seconds: float, per_s: float) -> int:
    """Send at a rate; return how many packets."""
    each = 1 if how == "plain" else max(min(MOST_IN_QUANTUM, TOGETHER_BYTES // packet_bytes), 1)
    data, n = bytes(each * packet_bytes), 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.connect((address, PORT))
        if how == "together":
            sender.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, packet_bytes)
        begun_s = time.monotonic()
        while (now_s := time.monotonic() - begun_s) < seconds:
            # As feeds do: what is due, and then a rest of half a millisecond.
            while n < now_s * per_s:
                if how == "plain":
                    sender.sendto(data, (address, PORT))
                else:
                    sender.send(data)
                n += each
            time.sleep(0.0005)
    return n


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("end", choices=("send", "receive"))
    parser.add_argument("address")
    parser.add_argument("packet_bytes", type=int)
    parser.add_argument("how", choices=("plain", "together"))
    parser.add_argument("seconds", type=float, nargs="?", default=0.0)
    parser.add_argument("per_s", type=float, nargs="?", default=0.0)
    asked = parser.parse_args()
    before_s = time.process_time()
    if asked.end == "send":
        n = send(asked.address, asked.packet_bytes, asked.how, asked.seconds, asked.per_s)
    else:
        n = receive(asked.address, asked.packet_bytes, asked.how)
    print(json.dumps({"packets": n, "processor_s": time.process_time() - before_s}), flush=True)


if __name__ == "__main__":
    main()
