"""Fail the n-th call of a tunnel: no program ever takes what was cut off for all there was.

Run as a script in a process of its own, as `log_run`. In each copy there are a service, an agent
beside it, a relay, and a program that sends what it has, ends its direction, and reads the answer.
Whoever sees an end has all that the other side has said; else it is a reset, or no connection at
all, and somebody says why. Afterwards the same without a fault ends well.
"""

from __future__ import annotations

import errno
import hashlib
import socket
import sys
import threading
from contextlib import ExitStack, suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from faults import shim

shim.install()

from faults.copies import BROKEN, DONE, SAID, Trial  # noqa: E402
from faults.experiments import Experiment  # noqa: E402
from faults.time_limits import Late, limit_s  # noqa: E402
from instances.agents import RunningAgent, write_agent  # noqa: E402
from instances.tunnels import collection_of, tunnel_agent  # noqa: E402

import datacollect as dc  # noqa: E402
from datacollect.errors import DatacollectError  # noqa: E402
from datacollect.transfer.agent.config.file import AgentConfig  # noqa: E402
from datacollect.transfer.agent.run import Agent  # noqa: E402

# Loaded now, once for all copies.
OPEN = dc.tunnel
DATA = b"".join(hashlib.sha256(b"%d" % i).digest() for i in range(20_000))
ANSWER = hashlib.sha256(DATA).digest() * 10_000
WITHIN_S = 30


class Service:
    """Answers with the same each time, and notes what it has been told.

    Attributes
    ----------
    wrong : str
        What it was told that is not so, if anything.
    """

    def __init__(self) -> None:
        self.wrong = ""
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.place = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                one, _ = self.listener.accept()
                threading.Thread(target=self._answer, args=(one,), daemon=True).start()

    def _answer(self, one: socket.socket) -> None:
        with one, suppress(OSError):
            data = b""
            while part := one.recv(65_536):
                data += part
            if data != DATA:
                self.wrong = f"the service saw an end after {len(data)} of {len(DATA)} bytes"
            one.sendall(ANSWER)


def started(path: Path) -> RunningAgent:
    config = AgentConfig.from_file(path)
    agent = Agent(config, lambda _: None)
    threading.Thread(target=agent.run, daemon=True).start()
    return RunningAgent(config.name, agent)


def talk(tunnel: dc.Tunnel) -> str:
    """Say what there is to say; return what is wrong with the answer, if it is one."""
    tunnel.socket.settimeout(limit_s(WITHIN_S))
    tunnel.socket.sendall(DATA)
    try:
        tunnel.socket.shutdown(socket.SHUT_WR)
    except OSError as error:
        # So says the kernel where the reset came before the end was said, and all was sent by then.
        raise ConnectionError if error.errno == errno.ENOTCONN else error from error
    answer = b""
    while part := tunnel.socket.recv(65_536):
        answer += part
    return "" if answer == ANSWER else f"an end after {len(answer)} of {len(ANSWER)} bytes"


def run(folder: Path, generation: int) -> int:
    """Send and receive once; return how that ended."""
    service = Service()
    place = folder / str(generation)
    place.mkdir()
    with ExitStack() as held:
        try:
            s1 = started(tunnel_agent(place, {"echo": service.place}))
            held.callback(s1.agent.stop)
            k1 = started(write_agent(place, "K1", connect_to={"S1": s1.place}))
            held.callback(k1.agent.stop)
            tree = collection_of(place, s1, k1)
            tunnel = OPEN(tree, "S1:echo", via=["K1"])
        except DatacollectError as error:
            return SAID if str(error) else BROKEN
        try:
            wrong = talk(tunnel)
            tunnel.close()
        except ConnectionError:
            tunnel.close()
            wrong = "" if tunnel.why else "a reset that nobody has a reason for"
        except TimeoutError:
            raise Late("the other side says nothing, and does not end") from None
        wrong = wrong or service.wrong
        assert not wrong, wrong
        return DONE if tunnel.why is None else SAID


class TunnelTrial(Trial):
    """A kernel that says that a program has ended, which has not, is beyond what can be noticed."""

    def _plan(self, scratch: Path) -> list[Experiment]:
        return [
            each
            for each in super()._plan(scratch)
            if not (each.error == shim.END and each.kind == "duplex.py:_take")
        ]


TRIAL = TunnelTrial("tunnel", lambda _: None, run)


if __name__ == "__main__":
    sys.exit(TRIAL.carry_out())
