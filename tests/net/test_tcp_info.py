"""State of a connection from the kernel."""

from __future__ import annotations

import socket

from datacollect.net.tcp_info import tcp_info


def test_a_reader_that_takes_nothing_is_what_limits_the_sender():
    """All buffers are full, and the sender waits for room at the other side for nearly all time."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        with (
            socket.create_connection(listener.getsockname()) as sender,
            listener.accept()[0] as reader,
        ):
            sender.settimeout(0.3)
            try:
                while True:
                    sender.send(bytes(65_536))
            except TimeoutError:
                pass
            facts = tcp_info(sender)
            assert facts["receiver_limited_s"] > 0.5 * facts["busy_s"] > 0.05
            assert facts["send_buffer_limited_s"] <= facts["busy_s"]
            assert facts["acknowledged_bytes"] <= 10**6
            # The first acknowledged byte stands for the greeting.
            assert 0 <= facts["acknowledged_bytes"] - tcp_info(reader)["received_bytes"] <= 1
