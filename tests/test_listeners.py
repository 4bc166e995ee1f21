"""Ports of servers that have ended: free at once, whatever else this process was starting.

A program that another thread starts holds copies of all that is open here until its exec. Where a
copy of a listener listens on, nobody else can listen there: a server that begins again at its port
is told that the port is in use.
"""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread

import pytest
from instances.agents import running, write_agent
from instances.ports import free_port

from datacollect.bistro.http.config import Listening
from datacollect.bistro.http.web import WebServer, bound_socket
from datacollect.bistro.joining.reception import receiving
from datacollect.net.few_http import FewHandler, FewServer
from datacollect.transfer.tunnel.listening import TunnelListener


@contextmanager
def agent(tmp_path):
    with running(write_agent(tmp_path, "S1", serve="data")) as found:
        yield found.address[1]


@contextmanager
def metrics(_):
    with FewServer(("127.0.0.1", 0), FewHandler, "metrics.listen") as server:
        yield server.server_port


@contextmanager
def tunnel(_):
    listener = TunnelListener(None, 0, print)
    thread = Thread(target=listener.run)
    thread.start()
    try:
        yield listener.port
    finally:
        listener.close()
        thread.join(20)
        assert not thread.is_alive()


@contextmanager
def bistro_web(_):
    with asyncio.Runner() as runner:
        bound = bound_socket(Listening(("127.0.0.1", 0), None))
        server = WebServer(Listening(("127.0.0.1", 0), None), None)
        runner.run(server.start(bound))
        yield bound.getsockname()[1]
        runner.run(server.stop())


@contextmanager
def reception(_):
    port = free_port()
    with receiving(None, port):
        yield port


def copies(port: int) -> list[socket.socket]:
    """Return copies of all sockets of this process that are bound to a port."""
    found = []
    for number in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            copy = socket.socket(fileno=os.dup(int(number.name)))
            if copy.family == socket.AF_INET and copy.getsockname()[1] == port:
                found.append(copy)
            else:
                copy.close()
    return found


@pytest.mark.parametrize("server", [agent, metrics, tunnel, bistro_web, reception])
def test_port_is_free_again_though_a_copy_of_the_listener_is_open(server, tmp_path):
    with server(tmp_path) as port:
        held = copies(port)
        assert held
    try:
        socket.create_server(("127.0.0.1", port)).close()
    finally:
        for copy in held:
            copy.close()
