"""Uploads of 100 KB that a bistro takes each second, beside a plain write and fdatasync.

    python experiments/bistro_pushes.py [--uploads 4000] [--clients 16]

The bistro is a process of its own, clients are threads of another one, on kept connections over
TLS; each upload has a proof of its own, all under one checkpoint. Printed: uploads a second, CPU of
the bistro for each, and what a plain write of the same bytes with one fdatasync after each 16 does.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from instances.bistros import PUSH, Client, bistro_event, commitment_to, metadata, running_bistro

SIZE = 100_000


def serve(folder: str, pipe) -> None:
    """Run a bistro until told to end; tell its address and then its CPU seconds."""
    with running_bistro(Path(folder), most_bytes=10**11) as (client, _):
        pipe.send(client.address)
        pipe.recv()
        before = resource.getrusage(resource.RUSAGE_SELF)
        pipe.send(None)
        pipe.recv()
        after = resource.getrusage(resource.RUSAGE_SELF)
        pipe.send(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def plain_per_s(folder: Path, n: int, data: bytes) -> float:
    """Return how many plain writes a second are durable, 16 to a sync."""
    number = os.open(folder / "plain", os.O_CREAT | os.O_WRONLY)
    began_s = time.perf_counter()
    for i in range(n):
        os.write(number, data)
        if i % 16 == 15:
            os.fdatasync(number)
    os.fdatasync(number)
    os.close(number)
    return n / (time.perf_counter() - began_s)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--uploads", type=int, default=4000)
    parser.add_argument("--clients", type=int, default=16)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=".") as text:
        folder = Path(text)
        event = bistro_event(folder, admission="open")
        data = os.urandom(SIZE)
        plain = plain_per_s(folder, given.uploads, data)
        heads = [metadata(event, commitment_to(event, data, salt)) for salt in range(given.uploads)]
        ours, theirs = multiprocessing.get_context("spawn").Pipe()
        process = multiprocessing.get_context("spawn").Process(target=serve, args=(text, theirs))
        process.start()
        address = ours.recv()
        ours.send("begin")
        ours.recv()
        began_s = time.perf_counter()
        threads = [
            threading.Thread(target=push, args=(address, heads[i :: given.clients], data))
            for i in range(given.clients)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        per_s = given.uploads / (time.perf_counter() - began_s)
        ours.send("end")
        cpu_s = ours.recv()
        process.join()
    row = {
        "uploads_per_s": round(per_s, 1),
        "cpu_ms_each": round(1000 * cpu_s / given.uploads, 2),
        "plain_per_s": round(plain, 1),
        "ratio": round(per_s / plain, 3),
    }
    print(json.dumps(row))


def push(address: tuple[str, int], heads: list[str], data: bytes) -> None:
    """Push one upload after the other over one connection."""
    client = Client(address)
    for text in heads:
        status, _, _ = client.ask(
            *("POST", "/tus/", data),
            Upload_Length=str(len(data)),
            Upload_Metadata=text,
            Content_Type=PUSH,
        )
        assert status == 201
    client.close()


if __name__ == "__main__":
    main()
