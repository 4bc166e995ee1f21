"""The bed is the network that it was made from, for root and for others, and leaves nothing."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest
from testbed.bed import HERE, Bed, BedError
from testbed.networks import PEERING_BYTES_PER_S, one_wire, two_domains

from datacollect.simulation.network import BackgroundFlow

pytestmark = pytest.mark.usefixtures("beds_possible")

# Of a frame of 1514 bytes TCP carries 1448.
PAYLOAD = 0.95
EXCHANGE = [sys.executable, "-I", "-S", str(HERE / "exchange.py")]


@pytest.fixture(scope="module")
def domains():
    """Two domains with two peering wires, seven hosts behind the first and one by the second."""
    with Bed(two_domains().network) as bed:
        yield bed


@contextmanager
def fetching(bed, server, client, seconds):
    """One stream from server to client; yields the receiver, which says its bytes per second."""
    started = bed.start(server, [*EXCHANGE, "serve", bed.address(server)])
    port = started.says("\n").strip()
    fetch = [*EXCHANGE, "fetch", bed.address(server), port, str(seconds)]
    running = bed.start(client, fetch)

    try:
        yield running
    finally:
        started.kill()


def rate_of(bed, server, client, seconds):
    with fetching(bed, server, client, seconds) as running:
        assert running.wait(seconds + 30) == 0, running.stderr.read_text()
        return float(running.stdout.read_text())


def answers(bed, one, other, number):
    """Seconds from question to answer of those datagrams that came back."""
    return [float(line) for line in ask(bed, one, other, "ask", number).splitlines()]


def ask(bed, one, other, how, number):
    echo = bed.start(other, [*EXCHANGE, "echo", bed.address(other)])
    port = echo.says("\n").strip()
    said = bed.run(one, [*EXCHANGE, how, bed.address(other), port, str(number)])
    echo.kill()
    return said


@pytest.mark.slow
def test_a_wire_has_its_rate_and_its_delay():
    """20 ms there and 20 ms back, never less; 10 Mbit/s of which TCP carries 95 %."""
    with Bed(one_wire(1.25e6, delay_s=0.02, queue_packets=30)) as bed:
        assert 0.040 <= min(answers(bed, "L", "R", 5)) < 0.050
        assert rate_of(bed, "L", "R", 1.5) == pytest.approx(PAYLOAD * 1.25e6, rel=0.1)


def test_ordinary_users_have_beds_too():
    with Bed(one_wire(1.25e6, delay_s=0.02), as_user=True) as bed:
        assert min(answers(bed, "L", "R", 5)) >= 0.040


@pytest.mark.slow
def test_a_wire_without_delay_has_its_rate_too():
    with Bed(one_wire(1.25e6)) as bed:
        assert rate_of(bed, "L", "R", 1.0) == pytest.approx(PAYLOAD * 1.25e6, rel=0.1)


@pytest.mark.slow
def test_the_same_frames_are_lost_each_time():
    """The first 40 frames one way, half of them lost, decide which questions are answered."""
    counts = []
    for _ in range(2):
        with Bed(one_wire(1e6, delay_s=0.001), loss={0: 0.3}, seed=7) as bed:
            counts.append(int(ask(bed, "L", "R", "flood", 20)))
            carried = bed.carried()
        assert carried[0].frames + carried[0].lost == 20
        assert carried[1].frames == carried[0].frames == counts[-1]
    assert counts[0] == counts[1]
    # Binomial(20, 0.7): beyond these in one seed of 10^4.
    assert 6 <= counts[0] <= 19


def test_a_full_queue_drops_what_comes():
    """At 151 bytes/s a frame of 1514 bytes takes ten seconds: a burst fills the queue of 4."""
    with Bed(one_wire(151, delay_s=0.001, queue_packets=4)) as bed:
        burst = "import socket; s = socket.socket(type=socket.SOCK_DGRAM)\n"
        burst += f"for _ in range(20): s.sendto(bytes(1472), ({bed.address('R')!r}, 9))"
        bed.run("L", [sys.executable, "-I", "-S", "-c", burst])
        # One leaves, four wait.
        ends = time.monotonic() + 5
        while (dropped := bed.carried()[0].dropped) < 15:
            assert time.monotonic() < ends, f"{dropped} were dropped"
        assert dropped == 15


@pytest.mark.slow
def test_two_wires_carry_twice_as_much_through_a_relay(domains):
    """Seven hosts' way to D is one peering wire; by K1 there is another: both are full then."""
    bed, network = domains, domains.network
    with fetching(bed, "S1", "D", 60) as one, fetching(bed, "K1", "D", 60) as other:
        time.sleep(0.6)
        seen = []
        for _ in range(10):  # of which whoever is held up spoils one or two
            seen.append((time.monotonic(), bed.carried()))
            time.sleep(0.15)
        one.kill()
        other.kill()
    for ends in ("B0 -> A0", "B1 -> A1"):
        wire = [network.wire_name(i) for i in range(network.n_wires)].index(ends)
        rate = median(
            (after[wire].bytes - before[wire].bytes) / (ended_s - began_s)
            for (began_s, before), (ended_s, after) in pairwise(seen)
        )
        assert rate == pytest.approx(0.95 * PEERING_BYTES_PER_S, rel=0.1), ends


@pytest.mark.slow
def test_background_flows_take_their_part():
    """A TCP flow and UDP at a fifth of the wire, always on, leave some two fifths for one more."""
    network = one_wire(1.25e6, delay_s=0.01, queue_packets=30)
    udp = BackgroundFlow("udp", 0, 1, 0.0, 250_000.0, 1e9, 1.0)
    with Bed(replace(network, background=(udp,))) as bed:
        bed.start_background()
        rate = rate_of(bed, "L", "R", 1.5)
        assert rate == pytest.approx(PAYLOAD * 1e6, rel=0.12)
    with Bed(replace(network, background=(udp, BackgroundFlow("tcp", 0, 1)))) as bed:
        bed.start_background(congestion="reno")
        assert 0.1 * 1e6 < rate_of(bed, "L", "R", 1.5) < 0.85 * 1e6


@pytest.mark.slow
def test_a_cable_can_be_cut_and_mended(domains):
    bed = domains
    # Several, of which some may be late on a busy machine.
    assert answers(bed, "S1", "D", 9)
    bed.cut("B0", "A0")
    assert answers(bed, "K1", "D", 9)
    assert answers(bed, "S1", "D", 1) == []
    bed.mend("B0", "A0")
    assert answers(bed, "S1", "D", 9)


def hold_a_bed(pipe):
    with Bed(one_wire(1e6, delay_s=0.01)) as bed:
        for name in "LR":
            bed.start(name, ["sleep", "1000"])
        pipe.send((bed.folder, bed._keeper.pid))
        time.sleep(1000)


@pytest.mark.slow
def test_nothing_stays_where_whoever_made_a_bed_is_killed():
    """Neither processes, nor the folder, nor with them namespaces and interfaces."""
    fork = multiprocessing.get_context("fork")
    mine, its = fork.Pipe(duplex=False)
    holder = fork.Process(target=hold_a_bed, args=(its,), daemon=True)
    holder.start()
    folder, pid = mine.recv()
    inside = descendants(pid)
    assert len(inside) >= 4, "the keeper, the link program, two sleepers"
    os.kill(holder.pid, signal.SIGKILL)
    holder.join()
    ends = time.monotonic() + 10
    while any(Path(f"/proc/{one}").exists() for one in inside) or Path(folder).exists():
        assert time.monotonic() < ends, "something lives on"
        time.sleep(0.01)


def descendants(pid):
    found = [pid]
    for one in found:
        text = Path(f"/proc/{one}/task/{one}/children").read_text(encoding="ascii")
        found.extend(map(int, text.split()))
    return found


def test_what_cannot_be_had_is_said():
    with Bed(one_wire(1e6)) as bed:
        with pytest.raises(BedError, match="no cable between L and L"):
            bed.cut("L", "L")
        with pytest.raises(BedError, match="No such file"):
            bed.start("L", ["/no/such/program"])
        with pytest.raises(BedError, match="code 3"):
            bed.run("L", ["sh", "-c", "exit 3"])
        bed._keeper.kill()
        bed._keeper.wait()
        with pytest.raises(BedError, match="gone"):
            bed.run("L", ["true"])
    with pytest.raises(BedError):
        Bed(one_wire(1e6), congestion="none such").__enter__()


@pytest.mark.slow
@pytest.mark.parametrize("mbit_per_s", [5, 50, 100])
@pytest.mark.parametrize("delay_s", [0.0, 0.005])
def test_rates_up_to_a_hundred_megabits(mbit_per_s, delay_s):
    rate = mbit_per_s * 125_000
    with Bed(one_wire(rate, delay_s=delay_s, queue_packets=200)) as bed:
        assert rate_of(bed, "L", "R", 4.0) == pytest.approx(PAYLOAD * rate, rel=0.1)


def test_a_frame_is_lost_when_that_is_told():
    """Of three large datagrams one is lost, on the first wire; a small one passes before them."""
    sent = "import socket, sys; s = socket.socket(type=socket.SOCK_DGRAM); "
    sent += "[s.sendto(bytes(n), (sys.argv[1], 9)) for n in (100, 1200, 1200, 1200)]"
    with Bed(one_wire(1e6, delay_s=0.001)) as bed:
        bed.lose_one()
        bed.run("L", [sys.executable, "-I", "-S", "-c", sent, bed.address("R")])
        ends = time.monotonic() + 10
        while (there := bed.carried()[0]).frames + there.lost < 4 and time.monotonic() < ends:
            time.sleep(0.01)
        assert (there.frames, there.lost) == (3, 1)
    with Bed(one_wire(1e6)) as bed, pytest.raises(BedError, match="no wire has a delay"):
        bed.lose_one()


def test_two_beds_do_not_meet():
    """Same names, same addresses, other namespaces."""
    with Bed(one_wire(1e6)) as one, Bed(one_wire(1e6)) as other:
        for bed in (one, other):
            assert answers(bed, "L", "R", 9)
        assert one.folder != other.folder
