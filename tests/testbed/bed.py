"""The test bed: a network of namespaces on this machine, with real TCP between them.

    with Bed(setting.network) as bed:
        server = bed.start("S1", ["iperf3", "-s"])
        print(bed.run("D", ["ping", "-c", "1", bed.address("S1")]))

Works for root, and for an ordinary user where the kernel lets users make namespaces. Setting up
takes about a second; nothing outlives the process that made it (`keeper.py` says why).
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from testbed.layout import SETTINGS, Layout

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from datacollect.simulation.network import SimulatedNetwork

HERE = Path(__file__).parent
# The bed's own namespace, where the far ends of wires with delay lie.
OWN = 0
# A sender that waits for a processor is slow, and no path is: before what else the machine does, as
# far as it is allowed.
PUNCTUAL = ("nice", "-n", "-10")
PROBE = (
    "ip link add probe0 type veth peer name probe1 && ip link set probe0 up && "
    "tc qdisc add dev probe0 root tbf rate 1mbit burst 3000 limit 30000"
)


class BedError(Exception):
    """The bed, or what was started in it, did not do as it was told."""


@functools.cache
def why_no_bed() -> str | None:
    """Return why there can be no bed on this machine; None where there can."""
    if sys.platform != "linux":
        return "not Linux"
    for program in ("unshare", "ip", "tc", "gcc"):
        if shutil.which(program, path=_path()) is None:
            return f"no {program}"
    tried = subprocess.run(
        [*_unshare(os.geteuid() != 0), "sh", "-c", PROBE],
        check=False,
        capture_output=True,
        text=True,
        timeout=30,
    )
    return None if tried.returncode == 0 else tried.stderr.strip()


@dataclass(frozen=True)
class Carried:
    """Bytes and packets of one wire with delay so far."""

    frames: int
    bytes: int
    dropped: int
    lost: int


class Started:
    """A process in the bed."""

    def __init__(self, bed: Bed, pid: int, stdout: Path, stderr: Path) -> None:
        self._bed = bed
        self.pid = pid
        self.stdout = stdout
        self.stderr = stderr

    def poll(self) -> int | None:
        """Return its code; None while it runs."""
        code = self._bed.ask("poll", pid=self.pid)
        return None if code is None else int(code)

    def wait(self, timeout_s: float) -> int:
        """Return its code, once it is there."""
        ends = time.monotonic() + timeout_s
        while (code := self.poll()) is None:
            if time.monotonic() > ends:
                raise BedError(f"process {self.pid} runs for more than {timeout_s:g} s")
            time.sleep(0.01)
        return code

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal to it and its children."""
        self._bed.ask("kill", pid=self.pid, number=int(number))

    def says(self, text: str, timeout_s: float = 10.0) -> str:
        """Wait until it has said something on its standard output; return all that it has said."""
        ends = time.monotonic() + timeout_s
        while text not in (said := self.stdout.read_text(encoding="utf-8", errors="replace")):
            if self.poll() is not None or time.monotonic() > ends:
                errors = self.stderr.read_text(encoding="utf-8", errors="replace")
                raise BedError(f"process {self.pid} does not say {text!r}: {said}{errors}")
            time.sleep(0.005)
        return said


class Bed:
    """A network that stands from ``with`` to the end of its block.

    Parameters
    ----------
    network : SimulatedNetwork
        As engines take it; its background flows are carried out only when asked
        (`start_background`).
    loss : mapping of int to float
        By wire: the probability that a frame is lost on it.
    seed : int
        Of losses.
    congestion : str
        What TCP does in all namespaces, unless a socket says otherwise. Kernels let namespaces
        choose among those in ``tcp_allowed_congestion_control`` only: always reno.
    as_user : bool
        Make it as an ordinary user has to, by a user namespace; also for root.
    prefix : str
        Of all addresses.
    """

    def __init__(
        self,
        network: SimulatedNetwork,
        *,
        loss: Mapping[int, float] | None = None,
        seed: int = 1,
        congestion: str = "reno",
        as_user: bool = False,
        prefix: str = "10.77",
    ) -> None:
        self.network = network
        self.layout = Layout(network, dict(loss or {}), seed, prefix)
        self.congestion = congestion
        self.as_user = as_user or os.geteuid() != 0
        self._asking = threading.Lock()
        self._number: dict[int, int] = {}
        self._link: Started | None = None

    def __enter__(self) -> Self:
        self.folder = Path(tempfile.mkdtemp(prefix="testbed-"))
        self._n_started = 0
        try:
            # Its own session: an interrupt from the terminal ends the test, which ends the bed.
            self._keeper = subprocess.Popen(
                [
                    *_unshare(self.as_user),
                    *(sys.executable, "-I", "-S"),
                    *(str(HERE / "keeper.py"), str(self.folder)),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
            self._set_up()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if keeper := getattr(self, "_keeper", None):
            with suppress(BrokenPipeError):  # of a keeper that is gone, with what it was not told
                keeper.stdin.close()
            try:
                keeper.wait(10)
            except subprocess.TimeoutExpired:
                keeper.kill()
                keeper.wait()
            keeper.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def ask(self, do: str, **values: Any) -> Any:
        """Have the keeper do something; return its answer."""
        with self._asking:
            try:
                self._keeper.stdin.write(json.dumps({"do": do, "with": values}) + "\n")
                self._keeper.stdin.flush()
                line = self._keeper.stdout.readline()
            except OSError as error:
                raise BedError(f"the bed is gone: {error}") from error
        if not line:
            raise BedError("the bed is gone")
        answer = json.loads(line)
        if "error" in answer:
            raise BedError(answer["error"])
        return answer["answer"]

    # Places ----------------------------------------------------------------------------------

    def node(self, name: str) -> int:
        """The node of a host, or of a router."""
        hosts = self.network.host_node
        return int(hosts[name]) if name in hosts else self.network.node_names.index(name)

    def address(self, name: str) -> str:
        """The address of a host or router, from everywhere in the bed."""
        return self.layout.address(self.node(name))

    # Processes -------------------------------------------------------------------------------

    def start(
        self,
        name: str,
        argv: Sequence[str],
        *,
        stdin: str = "",
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> Started:
        """Start a program at a host; what it says goes into files of the bed."""
        return self._start(self._number[self.node(name)], argv, stdin, env, cwd)

    def run(self, name: str, argv: Sequence[str], *, timeout_s: float = 60.0) -> str:
        """Run a program at a host to its end; return what it says."""
        started = self.start(name, argv)
        try:
            code = started.wait(timeout_s)
        finally:
            started.kill()
        said = started.stdout.read_text(encoding="utf-8", errors="replace")
        if code:
            errors = started.stderr.read_text(encoding="utf-8", errors="replace")
            raise BedError(f"{' '.join(argv)} at {name}: code {code}: {said}{errors}")
        return said

    def _start(
        self,
        namespace: int,
        argv: Sequence[str],
        stdin: str,
        env: Mapping[str, str] | None,
        cwd: Path | None,
    ) -> Started:
        self._n_started += 1
        stem = self.folder / f"{self._n_started:03d}"
        entrance, stdout, stderr = (stem.with_suffix(f".{part}") for part in ("in", "out", "err"))
        entrance.write_text(stdin, encoding="utf-8")
        pid = self.ask(
            "start",
            namespace=namespace,
            argv=[str(one) for one in argv],
            stdin=str(entrance),
            stdout=str(stdout),
            stderr=str(stderr),
            env=dict(os.environ, **(env or {})),
            cwd=str(cwd or self.folder),
        )
        return Started(self, pid, stdout, stderr)

    # Wires -----------------------------------------------------------------------------------

    def cut(self, one: str, other: str) -> None:
        """Take the cable between two neighbours down."""
        self._set_cable(one, other, "down")

    def mend(self, one: str, other: str) -> None:
        """Take it up again, with its routes."""
        for node in self._set_cable(one, other, "up"):
            # A route goes with the interface that it leads out of.
            text = self.layout.node_set_up(node)
            lines = [line for line in text.splitlines() if line.startswith(("route", "neigh"))]
            again = "".join(line.replace(" add ", " replace ", 1) + "\n" for line in lines)
            self.ask("run", namespace=self._number[node], argv=_batch("ip"), text=again)

    def _set_cable(self, one: str, other: str, state: str) -> list[int]:
        wanted = {self.node(one), self.node(other)}
        for cable in self.layout.cables:
            if {cable.tail, cable.head} == wanted:
                for node, name in cable.ends:
                    argv = ["ip", "link", "set", name, state]
                    self.ask("run", namespace=self._number[node], argv=argv)
                return [node for node, _ in cable.ends]
        raise BedError(f"no cable between {one} and {other}")

    def carried(self) -> dict[int, Carried]:
        """What each wire with delay has carried so far, by its number."""
        if self._link is None:
            return {}
        before = self._link.says("ready").count("end\n")
        self._link.kill(signal.SIGUSR1)
        ends = time.monotonic() + 5
        while (said := self._link.says("ready")).count("end\n") == before:
            if time.monotonic() > ends:
                raise BedError("the link program does not answer")
            time.sleep(0.005)
        last = said.removesuffix("end\n").rpartition("end\n")[2].removeprefix("ready\n")
        counts = [Carried(*map(int, line.split()[2:])) for line in last.splitlines()]
        return dict(zip(self.layout.emulated_numbers, counts, strict=True))

    def lose_one(self) -> None:
        """Have the next large frame be lost that enters the first wire with delay."""
        if self._link is None:
            raise BedError("no wire has a delay: nothing there loses frames")
        self._link.kill(signal.SIGUSR2)

    def start_background(self, seed: int = 1, congestion: str = "cubic") -> Started:
        """Start the network's background flows; they last until the bed ends."""
        flows = [
            {
                "kind": flow.kind,
                "from": self._paths[flow.from_node],
                "to": self._paths[flow.to_node],
                "address": self.layout.address(flow.to_node),
                "start_s": flow.start_s,
                "rate_bytes_per_s": flow.rate_bytes_per_s,
                "mean_on_s": flow.mean_on_s,
                "mean_off_s": flow.mean_off_s,
                "congestion": congestion,
            }
            for flow in self.network.background
        ]
        script = [*PUNCTUAL, sys.executable, "-I", "-S", str(HERE / "traffic.py"), str(seed)]
        started = self._start(OWN, script, json.dumps(flows), None, None)
        started.says("ready")
        return started

    # Set-up ----------------------------------------------------------------------------------

    def _set_up(self) -> None:
        layout, nodes = self.layout, range(self.network.n_nodes)
        self.ask("namespace")
        self._paths = {node: str(self.ask("namespace")) for node in nodes}
        self._number = {node: node + 1 for node in nodes}
        settings = SETTINGS | {"net/ipv4/tcp_congestion_control": self.congestion}
        for number in (OWN, *self._number.values()):
            self.ask("write", namespace=number, values=settings)
        self.ask("write", namespace=OWN, values={"net/ipv4/ip_forward": "0"})
        new = layout.new_cables(self._paths)
        self.ask("run", namespace=OWN, argv=_batch("ip"), text=new)
        for node in nodes:
            number = self._number[node]
            self.ask("plain_interfaces", namespace=number, names=layout.interfaces(node))
            self.ask("run", namespace=number, argv=_batch("ip"), text=layout.node_set_up(node))
            if buckets := layout.buckets(node):
                self.ask("run", namespace=number, argv=_batch("tc"), text=buckets)
        if wires := layout.emulated_wires():
            self._link = self._start(OWN, [str(link_program())], wires, None, None)
            self._link.says("ready")


def _batch(program: str) -> list[str]:
    return [program, "-batch", "-"]


def _path() -> str:
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


def _unshare(as_user: bool) -> list[str]:
    user = ["--map-root-user"] if as_user else []
    spaces = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    return ["unshare", *user, *spaces]


@functools.cache
def link_program() -> Path:
    """Compile the link program, once for all processes and tests of this version of it."""
    source = HERE / "link.c"
    version = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"datacollect-testbed-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise BedError(f"{folder} belongs to somebody else; remove it")
    program = folder / f"link-{version}"
    if not program.exists():
        fresh = folder / f"link-{version}.{os.getpid()}"
        warnings = ["-Wall", "-Wextra", "-Werror"]
        done = subprocess.run(
            ["gcc", "-O2", *warnings, "-o", str(fresh), str(source)],
            check=False,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise BedError(f"link.c does not compile: {done.stderr}")
        fresh.rename(program)
    return program
