"""Throughput and cost of a commitment service, and delay of its proofs; over real TLS.

    python experiments/timestamp_speed.py [--seconds 20] [--rate 2000] [--workers 2]

A service and four witnesses run as processes on this machine; the load is a compiled Go program,
`timestamp_load`, built when it is needed (Go 1.22 or newer). It comes from several addresses of
this host, as Linux has them. CPU is the service's, all processes of it; that of making connections
that are kept is not counted. On a machine that does other things as well, CPU is an upper bound and
waits are longer.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from datacollect.bistro.formats.event.draft import complete
from datacollect.bistro.formats.event.file import read_event
from datacollect.bistro.formats.event.tickets import new_ticket
from datacollect.bistro.formats.log.checkpoints import witness_key
from datacollect.net.keys import new_private_key, write_private_key
from datacollect.net.tls import make_certificate

LOAD = Path(__file__).parent / "timestamp_load"
FIRST_PORT = 17_400
N_WITNESSES = 4
QUOTA = 10_000
RECIPIENTS = (
    "age1uq2m0r6zz2ghqcnqyeqafkvggmkvxprxrp0hj4n96zqhmuxlfcxqv5996p",
    "age1e3u85mtpdyuturdj9a85exxat0jevw85d8rmwsr5upg6dtenug3qy97g9l",
)


class Stage:
    """A service, its witnesses, and who loads them, below a folder."""

    def __init__(self, folder: Path, workers: int) -> None:
        self.folder = folder
        self.children: dict[str, subprocess.Popen[str]] = {}
        go = shutil.which("go") or "/usr/local/go/bin/go"
        self.load = folder / "load"
        subprocess.run([go, "build", "-o", str(self.load), "."], cwd=LOAD, check=True)
        for name, data in zip(
            ("tls.pem", "tls.key"), make_certificate("localhost", "127.0.0.1"), strict=True
        ):
            (folder / name).write_bytes(data)
        keys = {name: new_private_key() for name in ("organiser", "s", "w0", "w1", "w2", "w3")}
        for name, key in keys.items():
            write_private_key(folder / f"{name}.key", key)
        self.organiser = keys["organiser"]
        draft = {
            "name": "Speed",
            "deadline": "2099-04-15T23:59:59+00:00",
            "timezone": "UTC",
            "collect_until": "2099-04-30T23:59:59+00:00",
            "keep_until": "2099-05-30T23:59:59+00:00",
            "recipients": list(RECIPIENTS),
            "limits": {"commitments_per_ticket": QUOTA},
            "services": [{"url": f"https://localhost:{FIRST_PORT}", "key": keys["s"].public}],
            "witnesses": [
                {
                    "url": f"https://localhost:{FIRST_PORT + 1 + i}",
                    "vkey": witness_key(f"w{i}.example", keys[f"w{i}"].public).text,
                }
                for i in range(N_WITNESSES)
            ],
        }
        data = complete(draft, self.organiser.public, os.urandom, {})
        (folder / "event.toml").write_bytes(data)
        self.event = read_event(data)
        tls = 'tls = { certificate = "tls.pem", key = "tls.key" }\n'
        (folder / "s.toml").write_text(
            'format = "datacollect-service/1"\nevent = "event.toml"\nkey = "s.key"\n'
            f'listen = "127.0.0.1:{FIRST_PORT}"\nfolder = "log"\nworkers = {workers}\n{tls}'
        )
        for i in range(N_WITNESSES):
            (folder / f"w{i}.toml").write_text(
                f'format = "datacollect-witness/1"\nname = "w{i}.example"\nkey = "w{i}.key"\n'
                f'listen = "127.0.0.1:{FIRST_PORT + 1 + i}"\nfolder = "signed{i}"\n'
                f'clock = "trusted"\nlogs = ["{self.event.services[0].log.text}"]\n{tls}'
            )
        for i in range(N_WITNESSES):
            self.start("witness", f"w{i}")
        self.start("timestamp", "s")

    def start(self, command: str, name: str) -> None:
        child = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "datacollect",
                command,
                str(self.folder / f"{name}.toml"),
                "--json",
            ],
            env=os.environ | {"SSL_CERT_FILE": str(self.folder / "tls.pem")},
            stdout=subprocess.PIPE,
            stderr=(self.folder / f"{name}.log").open("w"),
            text=True,
        )
        self.children[name] = child
        if not child.stdout.readline():
            sys.exit((self.folder / f"{name}.log").read_text())

    def close(self) -> None:
        for child in self.children.values():
            child.send_signal(signal.SIGTERM)
        for child in self.children.values():
            child.wait()

    def tickets(self, n: int) -> Path:
        path = self.folder / "tickets"
        numbers = (os.urandom(16) for _ in range(n))
        path.write_text(
            "".join(
                new_ticket(self.event, number, bytes(32), self.organiser).token + "\n"
                for number in numbers
            )
        )
        return path

    def cpu_s(self) -> tuple[float, float]:
        """Return what who keeps the log has taken by now, and what those in front have."""
        pid = self.children["s"].pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return cpu_s_of(str(pid)), sum(map(cpu_s_of, children))

    def run(self, title: str, n_tickets: int, *options: str) -> None:
        command = [
            str(self.load),
            *("-url", f"https://localhost:{FIRST_PORT}"),
            *("-ca", str(self.folder / "tls.pem")),
            *("-tickets", str(self.tickets(n_tickets))),
            *options,
        ]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as load:
            load.stdout.readline()  # once connections are made
            keeper_before_s, front_before_s = self.cpu_s()
            told = load.stdout.read()
        if load.returncode:
            sys.exit("the load has failed")
        found = json.loads(told)
        keeper_s, front_s = self.cpu_s()
        n = found["acknowledged"]
        keeper_ms = 1e3 * (keeper_s - keeper_before_s) / max(n, 1)
        front_ms = 1e3 * (front_s - front_before_s) / max(n, 1)
        print(f"{title}: {n / found['acknowledged_s']:.0f} acknowledged a second")
        print(
            f"  CPU of the service {keeper_ms + front_ms:.3f} ms each, all requests counted; "
            f"{keeper_ms:.3f} ms of it who keeps the log"
        )
        print(f"  acknowledgement {_times(found['acknowledgement'])}")
        if found["proved"]:
            print(f"  proof {_times(found['proof'])}, {found['proved']} of {n}")
        if found["other"]:
            print(f"  otherwise: {found['other']}")


def cpu_s_of(pid: str) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _times(quantiles: dict[str, float]) -> str:
    return ", ".join(f"{name} {1e3 * s:.0f} ms" for name, s in sorted(quantiles.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=20, help="of load at the rate")
    parser.add_argument("--rate", type=int, default=2000, help="commitments a second")
    parser.add_argument("--connections", type=int, default=4096)
    parser.add_argument("--addresses", type=int, default=32, help="that they come from")
    parser.add_argument("--workers", type=int, default=2, help="processes in front")
    options = parser.parse_args()
    n = options.rate * options.seconds
    kept = ["-n", str(n), "-rate", str(options.rate), "-connections", str(options.connections)]
    kept += ["-addresses", str(options.addresses), "-proofs"]
    with tempfile.TemporaryDirectory() as folder:
        stage = Stage(Path(folder), options.workers)
        try:
            time.sleep(3)  # until witnesses have told what they have signed
            print(f"{os.cpu_count()} cores, load before: {os.getloadavg()[0]:.1f}")
            stage.run("new TLS connections", 2000, "-n", "2000", "-connections", "16", "-new")
            come = ["-n", "2000", "-rate", "300", "-connections", "1000", "-new", "-proofs"]
            stage.run("300/s, a new TLS connection each, kept for the proof", 2000, *come)
            stage.run("batches of 1000", 5, "-n", "50", "-connections", "4", "-batch", "1000")
            stage.run(f"{options.rate}/s, kept connections", n, *kept)
            stage.children.pop("w3").kill()
            stage.run("the same, one witness dead", n, *kept)
            print(f"load after: {os.getloadavg()[0]:.1f}")
        finally:
            stage.close()


if __name__ == "__main__":
    main()
