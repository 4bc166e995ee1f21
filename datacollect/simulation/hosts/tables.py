"""Machines and videos of Bresnahan, Raicu and Margaryan (2004), and what follows from them.

A Study between Networks and General Purpose Systems for High Bandwidth Applications. Its Mb/s of
networks and its MB/s of memory are powers of two: with 10^6 its own numbers do not fit each other.
"""

from __future__ import annotations

from dataclasses import dataclass

MEBI = 2**20
TCP, UDP = "tcp", "udp"

# Table 1: bytes of payload and of headers in a full frame.
PAYLOAD_BYTES = {TCP: 1460, UDP: 1472}
HEADER_BYTES = {TCP: 54, UDP: 42}


@dataclass(frozen=True)
class Machine:
    """A machine of Tables 6 to 8; rates by protocol are in 2^20 bits per second, as printed.

    Attributes
    ----------
    year, clock_mhz : int
    copy_mib_per_s : int
        Of main memory (Table 7).
    packets_per_s : dict of str to int
        Of the least size, over loopback, by protocol: the processor's power (Table 8).
    measured, theory : dict of str to int
        Printed throughput of full packets, and its printed limit by the processor.
    cycles_per_header_byte : dict of str to float
        As printed.
    cycles_per_byte : dict of str to float
        Of decoding, by video (Table 10).
    decode_s : dict of str to float
        By video.
    """

    year: int
    clock_mhz: int
    copy_mib_per_s: int
    packets_per_s: dict[str, int]
    measured: dict[str, int]
    theory: dict[str, int]
    cycles_per_header_byte: dict[str, float]
    cycles_per_byte: dict[str, float]
    decode_s: dict[str, float]

    @property
    def copy_bytes_per_s(self) -> int:
        """Return how fast it copies in main memory."""
        return self.copy_mib_per_s * MEBI

    def limit_mibit_per_s(self, protocol: str, payload_bytes: int | None = None) -> float:
        """Return what the processor allows of packets that hold so much: its packets per second.

        >>> round(MACHINES["e55"].limit_mibit_per_s("tcp"), 1)  # the table prints 380
        379.3
        """
        payload = PAYLOAD_BYTES[protocol] if payload_bytes is None else payload_bytes
        return self.packets_per_s[protocol] * payload * 8 / MEBI

    def rate_mibit_per_s(
        self, protocol: str, copies: int = 2, payload_bytes: int | None = None
    ) -> float:
        """Return what is taken in where one processor works on packets and copies them.

        >>> round(MACHINES["stealth"].rate_mibit_per_s("udp", copies=1))
        761
        """
        limit = self.limit_mibit_per_s(protocol, payload_bytes)
        return 1 / (1 / limit + copies / (self.copy_mib_per_s * 8))


@dataclass(frozen=True)
class Video:
    """A video of Table 9; sizes are in kB, as printed.

    Attributes
    ----------
    width, height : int
    frames_per_s : float
    bits_per_pixel : int
    mbit_per_s : float
    compression_percent : float
    compression_ratio : int
    frames : dict of str to int
        By kind: I, P and B.
    frame_kb : dict of str to int
    length_s : float
    """

    width: int
    height: int
    frames_per_s: float
    bits_per_pixel: int
    mbit_per_s: float
    compression_percent: float
    compression_ratio: int
    frames: dict[str, int]
    frame_kb: dict[str, int]
    length_s: float

    @property
    def raw_bits_per_s(self) -> float:
        """Return what it is without compression."""
        return self.width * self.height * self.bits_per_pixel * self.frames_per_s


MACHINES = {
    "e55": Machine(
        year=1999,
        clock_mhz=466,
        copy_mib_per_s=117,
        packets_per_s={TCP: 34_048, UDP: 42_400},
        measured={TCP: 310, UDP: 354},
        theory={TCP: 380, UDP: 476},
        cycles_per_header_byte={TCP: 265.8, UDP: 274.4},
        cycles_per_byte={"video1": 282.2, "video2": 195.3, "video3": 177.0, "video4": 162.0},
        decode_s={"video1": 351.9664, "video2": 3.0004, "video3": 4.9999, "video4": 5.9994},
    ),
    "stealth": Machine(
        year=2002,
        clock_mhz=1300,
        copy_mib_per_s=246,
        packets_per_s={TCP: 89_050, UDP: 110_500},
        measured={TCP: 676, UDP: 704},
        theory={TCP: 992, UDP: 1241},
        cycles_per_header_byte={TCP: 283.5, UDP: 293.7},
        cycles_per_byte={"video1": 322.2, "video2": 181.6, "video3": 197.5, "video4": 150.7},
        decode_s={"video1": 144.0341, "video2": 1.0003, "video3": 1.9997, "video4": 2.0005},
    ),
    "diablo": Machine(
        year=2003,
        clock_mhz=2166,
        copy_mib_per_s=429,
        packets_per_s={TCP: 274_500, UDP: 352_500},
        measured={TCP: 2180, UDP: 2180},
        theory={TCP: 3058, UDP: 3959},
        cycles_per_header_byte={TCP: 153.2, UDP: 153.4},
        cycles_per_byte={"video1": 275.8, "video2": 191.3, "video3": 173.5, "video4": 158.8},
        decode_s={"video1": 74.0056, "video2": 0.6325, "video3": 1.0541, "video4": 1.2650},
    ),
}

VIDEOS = {
    "video1": Video(
        *(352, 288, 25, 24, 0.9, 0.16, 625),
        frames={"I": 8743, "P": 41_235, "B": 97_007},
        frame_kb={"I": 19, "P": 6, "B": 2},
        length_s=5879.4,
    ),
    "video2": Video(
        *(720, 480, 29.97, 24, 5.7, 2.41, 41),
        frames={"I": 21, "P": 80, "B": 200},
        frame_kb={"I": 59, "P": 30, "B": 19},
        length_s=10.04,
    ),
    "video3": Video(
        *(720, 480, 29.97, 24, 9.5, 4.02, 25),
        frames={"I": 23, "P": 88, "B": 220},
        frame_kb={"I": 58, "P": 50, "B": 35},
        length_s=11.04,
    ),
    "video4": Video(
        *(720, 480, 29.97, 24, 12.5, 5.29, 19),
        frames={"I": 330, "P": 0, "B": 0},
        frame_kb={"I": 54, "P": 0, "B": 0},
        length_s=11.01,
    ),
}

# Growth a year, by part (section 1.2).
GROWTH = {"network": 0.80, "processor": 0.35, "memory bandwidth": 0.20, "memory latency": 0.05}
