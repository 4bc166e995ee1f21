"""Files of simulated hosts: from values to nanoseconds and packets, and what is refused."""

from __future__ import annotations

import pytest
from instances.simulated_hosts import simulated_host

import datacollect as dc
from datacollect.errors import InfeasibleError
from datacollect.simulation.hosts.run import run_host


def test_times_follow_from_cycles_copies_and_rates():
    """By hand: 42 B of headers at 100 cycles each, 1 GHz: 4.2 µs; 1000 B at 100 MB/s: 10 µs."""
    host = simulated_host(
        kernel={"cycles_per_header_byte": 100, "buffer_bytes": 5999},
        memory={"copy_bytes_per_s": "100 MB/s"},
        processor={"clock_hz": 1e9},
        protocol={"packet_bytes": 1000},
        stream={"rate_bytes_per_s": "1 MB/s"},
        job={"cycles_per_byte": 2, "period_s": "40 ms"},
        nic={"rate_bytes_per_s": "8.336 Mbit/s", "buffer_bytes": 3126},
    )
    assert host.kernel_ns == 4_200 + 10_000
    assert host.job.packet_ns == 2_000 + 10_000
    assert host.wire_ns == 1_000_000  # 1042 B
    assert (host.room, host.slots, host.job.most) == (5, 3, 5)
    assert host.stream.trains == ((1_000_000, 1_000_000, 10_000),)


@pytest.mark.parametrize(("copies", "kernel_ns", "packet_ns"), [(2, 3, 2), (1, 1, 2), (0, 1, 0)])
def test_copies_are_taken_off_the_kernel_first(copies, kernel_ns, packet_ns):
    host = simulated_host(
        kernel={"packet_s": "1 ns"},
        memory={"copy_bytes_per_s": "5 GB/s", "copies": copies},
        protocol={"packet_bytes": 10},
    )
    assert (host.kernel_ns, host.job.packet_ns) == (kernel_ns, packet_ns)


def test_a_machine_of_the_paper_fills_in_what_is_left_out_and_no_more():
    own = simulated_host(machine="e55", kernel={"packet_s": "1 us"}, memory={"copies": 0})
    assert own.kernel_ns == 1_000
    whole = simulated_host(machine="e55", kernel={}, memory={"copies": 2})
    assert whole.kernel_ns == round(1e9 / 42_400) + round(1472 / (117 * 2**20) * 1e9)


def test_a_frame_is_a_whole_number_of_packets_spread_over_its_time():
    """By hand: 2001 B are three packets of 1000 B; 10 ms of a frame hold one each 3.333333 ms."""
    stream = {"frames_per_s": 100, "i_frame_bytes": 2001, "ratio": [1, 0, 0]}
    host = simulated_host(time_s="15 ms", protocol={"packet_bytes": 1000}, stream=stream, job={})
    assert host.stream.trains == ((3_333_333, 3_333_333, 3), (13_333_333, 3_333_333, 1))
    assert host.job.period_ns == 10_000_000
    assert host.stream.frames == {0: "I", 3: "I"}


REFUSED = {
    "nic.buffer_bytes must be at least the 1514 of one packet, got 1513": {
        "nic": {"buffer_bytes": 1513}
    },
    "kernel.buffer_bytes must be at least the 1472 of one packet, got 1": {
        "kernel": {"buffer_bytes": 1, "packet_s": 1e-6}
    },
    "user.buffer_bytes must be at least the 1472 of one packet, got 7": {
        "user": {"buffer_bytes": 7}
    },
    "job.most_bytes must be at least the 1472 of one packet, got 8": {
        "job": {"period_s": 1, "most_bytes": 8}
    },
    "memory.copy_bytes_per_s is missing": {"memory": {"copies": 1}},
    "kernel.packet_s is missing": {"kernel": {"buffer_bytes": 65_536}},
    "processor.clock_hz is missing": {"kernel": {"cycles_per_header_byte": 3}},
    "job.period_s is missing": {"job": {"least_bytes": 1}},
    "kernel.packet_s and kernel.cycles_per_header_byte cannot be combined": {
        "kernel": {"packet_s": 1e-6, "cycles_per_header_byte": 3}
    },
    "job.packet_s and job.cycles_per_byte cannot be combined": {
        "job": {"period_s": 1, "packet_s": 1e-6, "cycles_per_byte": 3}
    },
    "protocol.packet_bytes must be a whole number of bytes >= 1 and below 65508, got 65508": {
        "protocol": {"packet_bytes": 65_508}
    },
    "nic.rate_bytes_per_s must be a finite number of bytes per second > 0, got 0": {
        "nic": {"rate_bytes_per_s": 0}
    },
    "memory.copy_bytes_per_s must be a finite number of bytes per second > 0, got nan": {
        "memory": {"copy_bytes_per_s": float("nan")}
    },
    "stream: 200 Mbit/s is a packet each 58880 ns, more than the card's rate carries": {
        "stream": {"rate_bytes_per_s": "200 Mbit/s"}
    },
    "stream.i_frame_bytes: 800 Mbit/s is a packet each": {
        "stream": {"frames_per_s": 1000, "i_frame_bytes": 100_000, "ratio": [1, 0, 0]}
    },
    "stream must have either": {"stream": {}},
    "stream.height is missing": {"stream": {"width": 8}},
    "stream.p_frame_bytes is missing": {"stream": {"frames_per_s": 1, "i_frame_bytes": 100}},
    "stream.ratio must begin with 1 or more I frames": {
        "stream": {"frames_per_s": 1, "i_frame_bytes": 100, "ratio": [0, 1, 1]}
    },
    "time_s must be at most 1000000": {"time_s": 1e7},
    "readings are more than": {"time_s": 10, "job": {"period_s": "1 ns"}},
    "frames are more than": {
        "time_s": 1e6,
        "stream": {"frames_per_s": 25, "i_frame_bytes": 100, "ratio": [1, 0, 0]},
    },
    "machine must be one of e55, stealth, diablo, got 'e56'; did you mean 'e55'?": {
        "machine": "e56"
    },
}


@pytest.mark.parametrize("message", REFUSED)
def test_bad_input_is_refused_with_its_key_and_value(message):
    with pytest.raises(dc.ProblemError) as error:
        simulated_host(**REFUSED[message])
    assert message in str(error.value)


@pytest.mark.parametrize(
    "buffers",
    [{"kernel": {"packet_s": 1e-6, "buffer_bytes": 3000}}, {"user": {"buffer_bytes": 3000}}],
)
def test_a_job_that_waits_for_more_than_its_buffers_hold_never_reads(buffers):
    with pytest.raises(InfeasibleError, match="job never reads: it waits for job"):
        simulated_host(job={"period_s": 0.01, "least_bytes": 3001}, **buffers)


def test_packets_are_conserved_whatever_becomes_of_them():
    for protocol in ("udp", "tcp"):
        run = run_host(
            simulated_host(
                time_s=2.5,
                protocol={"name": protocol},
                kernel={"packet_s": "100 us"},
                stream={"rate_bytes_per_s": "95 Mbit/s"},
                job={"period_s": "7 ms", "packet_s": "90 us"},
            )
        )
        assert [each.time_s for each in run.seconds] == [1, 2, 2.5]
        last = run.seconds[-1]
        size = run.host.packet_bytes
        held = last.nic_buffer_bytes // 1514
        inside = held + last.kernel_buffer_bytes // size + run.total("read_packets")
        assert run.total("arrived_packets") == inside + run.total("lost_packets")
        # Losses in the order of instants may lie a little past the end of the last packet's work.
        assert abs(sum(run.lost.values()) - run.total("lost_packets")) <= run.host.slots
        assert (protocol == "tcp") == (not run.losses)
        assert all(0 <= each.mean_load <= 1 + 1e-9 for each in run.seconds)


def test_bursts_that_the_kernel_could_take_on_average_are_lost_by_the_card():
    """By hand: 20 packets back to back each second, 10 µs apart; 30 µs each; room for two.

    The first is taken at once, so that of the others one in three finds room: 1, 2, 4, 7, 10, ...
    """
    run = run_host(
        simulated_host(
            time_s=1,
            nic={"rate_bytes_per_s": 1e8, "buffer_bytes": 2000},
            kernel={"packet_s": "30 us"},
            memory={"copies": 0},
            protocol={"packet_bytes": 958, "header_bytes": 42},
            stream={
                "frames_per_s": 1,
                "i_frame_bytes": 20 * 958,
                "ratio": [1, 0, 0],
                "sent": "at once",
            },
            job={"period_s": "1 ms"},
        )
    )
    assert run.lost == {"processor": 0, "kernel buffer": 0, "NIC buffer": 12}
    assert run.damaged_frames == run.frames == {"I": 1}


def test_a_livelock_is_said_and_not_on_a_processor_of_its_own():
    given = {
        "kernel": {"packet_s": "120 us"},
        "stream": {"rate_bytes_per_s": "99 MB/s"},
        "nic": {"rate_bytes_per_s": "10 Gbit/s"},
        "time_s": 1,
    }
    assert run_host(simulated_host(**given)).livelock_s == 0.01
    assert run_host(simulated_host(**given, processor={"count": 2})).livelock_s is None
