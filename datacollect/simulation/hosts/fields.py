"""Fields of files that describe a simulated host: names, kinds, units, defaults."""

from __future__ import annotations

from typing import Any

from datacollect.files.fields import Document, Field, Part, Table
from datacollect.files.kinds import Choice, Kind, ListOf, Number, Text, Whole
from datacollect.simulation.hosts.tables import MACHINES, VIDEOS

HOST_SIMULATION_FORMAT = "datacollect-host-simulation/1"
# What a datagram over IPv4 holds at most.
MOST_PACKET_BYTES = 65_507
MOST_S = 10**6

RATE = Number("bytes per second", positive=True)
SECONDS = Number("seconds", positive=True)
BUFFER = Whole("bytes", minimum=1)
CYCLES = Number("cycles", positive=True)
PIXELS = Whole("pixels", minimum=1, stop=100_001)


def _optional(name: str, kind: Kind, description: str, default: Any = None) -> Field:
    return Field(name, kind, description, default=default)


NIC = Table(
    "the nic",
    "The network card.",
    (
        _optional("rate_bytes_per_s", RATE, "Its rate, headers included.", 12_500_000.0),
        _optional(
            "buffer_bytes", BUFFER, "Bytes of its buffer, which holds whole packets.", 65_536
        ),
    ),
)
KERNEL = Table(
    "the kernel",
    "What the kernel does with each packet, and where it puts it.",
    (
        _optional(
            "buffer_bytes", BUFFER, "Bytes of its buffer, which holds whole packets.", 65_536
        ),
        _optional("packet_s", SECONDS, "Seconds of work on a packet, without the copy."),
        _optional(
            "cycles_per_header_byte",
            CYCLES,
            "The same in cycles of the processor for each byte of headers.",
        ),
    ),
)
USER = Table(
    "the user",
    "Buffer of the job.",
    (
        _optional(
            "buffer_bytes", BUFFER, "Size of the buffer; by default all that is read at once fits."
        ),
    ),
)
MEMORY = Table(
    "the memory",
    "Memory, in which packets are copied.",
    (
        _optional("copy_bytes_per_s", RATE, "How fast it is copied."),
        _optional(
            "copies",
            Whole(stop=3),
            "Copies of each packet: 2, from the card and to the job; 1, to the job; 0, none.",
            2,
        ),
    ),
)
PROCESSOR = Table(
    "the processor",
    "Processors for kernel and job.",
    (
        _optional("clock_hz", CYCLES, "Cycles per second."),
        _optional(
            "count",
            Whole(minimum=1, stop=3),
            "1: the kernel's work goes before the job's; 2: each has its own.",
            1,
        ),
    ),
)
PROTOCOL = Table(
    "the protocol",
    "How packets are sent.",
    (
        _optional(
            "name",
            Choice(("udp", "tcp")),
            "udp loses what finds no room; tcp's sender waits until there is some.",
            "udp",
        ),
        _optional(
            "packet_bytes",
            Whole("bytes", minimum=1, stop=MOST_PACKET_BYTES + 1),
            "Payload of a packet; by default that of a full frame, or 1000 of a video.",
        ),
        _optional("header_bytes", Whole("bytes"), "Headers of a packet, those of the wire too."),
    ),
)
STREAM = Table(
    "the stream",
    "What is sent: data at a constant rate, pictures without compression, or frames of a video.",
    (
        _optional("rate_bytes_per_s", RATE, "Payload per second, at a constant rate."),
        _optional("width", PIXELS, "Width of a raw picture, pixels."),
        _optional("height", PIXELS, "Height of a raw picture, pixels."),
        _optional("bits_per_pixel", Whole("bits", minimum=1, stop=1025), "Of raw pictures."),
        _optional(
            "compression",
            Number(positive=True),
            "Compression of raw pictures: 10 leaves a tenth.",
            1.0,
        ),
        _optional("frames_per_s", Number(positive=True), "Frames, or pictures, per second."),
        _optional("i_frame_bytes", BUFFER, "Size of frames that need no other."),
        _optional("p_frame_bytes", BUFFER, "Size of frames that need one before them."),
        _optional("b_frame_bytes", BUFFER, "Size of frames between two others."),
        _optional(
            "ratio",
            ListOf(Whole(stop=1001), 3, 3, "must be a list of three numbers of frames"),
            "How many I, P and B frames make a group.",
            [1, 4, 10],
        ),
        _optional("video", Choice(tuple(VIDEOS)), "A video of the paper, in place of its numbers."),
        _optional(
            "sent",
            Choice(("evenly", "at once")),
            "Packets of a frame: spread over its time, or back to back at the card's rate.",
            "evenly",
        ),
    ),
)
JOB = Table(
    "the job",
    "What reads: at each period it reads, works on what it has read, and frees it.",
    (
        _optional("period_s", SECONDS, "Seconds between readings; by default those of a frame."),
        _optional("most_bytes", BUFFER, "Most that it reads at once, in whole packets."),
        _optional("least_bytes", BUFFER, "If less is there, it reads nothing.", 1),
        _optional(
            "cycles_per_byte", Number("cycles"), "Work on each byte that it reads, as for decoding."
        ),
        _optional(
            "packet_s", SECONDS, "Seconds of work on each packet, instead of cycles_per_byte."
        ),
    ),
)

# In the order of files.
TABLES = {
    "nic": NIC,
    "kernel": KERNEL,
    "user": USER,
    "memory": MEMORY,
    "processor": PROCESSOR,
    "protocol": PROTOCOL,
    "stream": STREAM,
    "job": JOB,
}

HOST_SIMULATION = Document(
    "the simulated host",
    "A machine that packets are sent to, and the job that reads them.",
    (
        Field("format", Text((HOST_SIMULATION_FORMAT,)), "Format and its version.", required=True),
        _optional("name", Text(), "Its name, for people.", "host"),
        _optional(
            "machine", Choice(tuple(MACHINES)), "A machine of the paper, for what is left out."
        ),
        _optional("time_s", SECONDS, "For how long to simulate, seconds.", 10.0),
        *(_optional(name, Part(table), table.description) for name, table in TABLES.items()),
    ),
    remedy="`datacollect example host_simulation` writes one",
    named_after_file=True,
)
