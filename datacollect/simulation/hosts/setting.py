"""Setting of a simulated host: from a file's values to whole nanoseconds and packets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from datacollect.errors import InfeasibleError, ProblemError
from datacollect.files.kinds import shown
from datacollect.files.units import counted, format_rate
from datacollect.simulation.hosts.fields import HOST_SIMULATION, MOST_S, TABLES
from datacollect.simulation.hosts.job import Job
from datacollect.simulation.hosts.streams import NS_PER_S, Stream, constant, video
from datacollect.simulation.hosts.tables import HEADER_BYTES, MACHINES, PAYLOAD_BYTES, VIDEOS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

# Readings of one simulation: each takes a microsecond or so of a processor.
MOST_READINGS = 10**9
# The paper's frames are whole kB: packets of this size are all full.
VIDEO_PACKET_BYTES = 1000

Values = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class HostSimulation:
    """A simulated host.

    Attributes
    ----------
    name : str
    is_tcp : bool
    end_ns : int
    packet_bytes, header_bytes : int
        Of each packet: payload, and headers.
    kernel_ns : int
        The kernel's work on a packet, its copy included.
    wire_ns : int
        What a packet takes on the wire.
    slots, room : int
        Packets for which the card, and the kernel, have room.
    processors : int
        1: the kernel goes before the job; 2: each has its own.
    job : Job
    stream : Stream
    """

    name: str
    is_tcp: bool
    end_ns: int
    packet_bytes: int
    header_bytes: int
    kernel_ns: int
    wire_ns: int
    slots: int
    room: int
    processors: int
    job: Job
    stream: Stream

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> HostSimulation:
        """Read a file, TOML or JSON.

        Parameters
        ----------
        path : path-like
            ``-`` reads standard input.

        Raises
        ------
        ProblemError
            The message names file, place, rule, value and remedy.
        InfeasibleError
            The job never reads.
        """
        return HOST_SIMULATION.from_file(path, lambda tree, _: cls.from_dict(tree))

    @classmethod
    def from_dict(cls, tree: Mapping[str, Any]) -> HostSimulation:
        """Build it from the tree of a file.

        Parameters
        ----------
        tree : mapping

        Raises
        ------
        ProblemError
            The message names place, rule, value and remedy.
        InfeasibleError
            The job never reads.

        Examples
        --------
        >>> host = HostSimulation.from_dict(
        ...     {
        ...         "format": "datacollect-host-simulation/1",
        ...         "machine": "e55",
        ...         "stream": {"rate_bytes_per_s": "60 Mbit/s"},
        ...         "job": {"period_s": "40 ms"},
        ...     }
        ... )
        >>> host.kernel_ns, host.room  # 23.6 µs of work and 12.0 µs of copying; 65536 // 1472
        (35583, 44)
        """
        given = HOST_SIMULATION.read(tree)
        values: Values = {
            name: given[name] or table.read({}, name) for name, table in TABLES.items()
        }
        _fill_in(values, given["machine"])
        return _built(cls, given, values)

    def to_dict(self) -> dict[str, Any]:
        """Return what was simulated as plain data."""
        return {
            "name": self.name,
            "protocol": "tcp" if self.is_tcp else "udp",
            "time_s": self.end_ns / NS_PER_S,
            "packet_bytes": self.packet_bytes,
            "header_bytes": self.header_bytes,
            "kernel_packet_s": self.kernel_ns / NS_PER_S,
            "job_packet_s": self.job.packet_ns / NS_PER_S,
            "job_period_s": self.job.period_ns / NS_PER_S,
            "nic_packets": self.slots,
            "kernel_packets": self.room,
            "processors": self.processors,
            "offered_packets": self.stream.packets,
        }


def _fill_in(values: Values, machine: str | None) -> None:
    """Put a machine's and a video's numbers where the file says none."""
    protocol, stream, job = values["protocol"], values["stream"], values["job"]
    name = protocol["name"]
    if stream["video"] is not None:
        _default(protocol, packet_bytes=VIDEO_PACKET_BYTES)
    _default(protocol, packet_bytes=PAYLOAD_BYTES[name], header_bytes=HEADER_BYTES[name])
    if machine is not None:
        known = MACHINES[machine]
        if values["kernel"]["cycles_per_header_byte"] is None:
            _default(values["kernel"], packet_s=1 / known.packets_per_s[name])
        _default(values["memory"], copy_bytes_per_s=known.copy_bytes_per_s)
        _default(values["processor"], clock_hz=known.clock_mhz * 1e6)
    if stream["video"] is not None:
        shown_video = VIDEOS[stream["video"]]
        sizes = {f"{kind.lower()}_frame_bytes": 1000 * kb for kind, kb in _sizes(shown_video)}
        _default(stream, frames_per_s=shown_video.frames_per_s, **sizes)
        if not shown_video.frames["P"]:
            stream["ratio"] = [1, 0, 0]
        if machine is not None and job["packet_s"] is None:
            _default(job, cycles_per_byte=MACHINES[machine].cycles_per_byte[stream["video"]])
    _default(job, period_s=1 / stream["frames_per_s"] if stream["frames_per_s"] else None)


def _sizes(known: Any) -> list[tuple[str, int]]:
    return [(kind, kb) for kind, kb in known.frame_kb.items() if kb]


def _default(table: dict[str, Any], **values: Any) -> None:
    for key, value in values.items():
        if table[key] is None:
            table[key] = value


def _built(cls: type[HostSimulation], given: Mapping[str, Any], values: Values) -> HostSimulation:
    protocol, memory, nic = values["protocol"], values["memory"], values["nic"]
    packet_bytes, header_bytes = protocol["packet_bytes"], protocol["header_bytes"]
    if given["time_s"] > MOST_S:
        raise ProblemError(
            f"time_s must be at most {MOST_S}, got {given['time_s']:g}; simulate a shorter time"
        )
    end_ns = max(1, round(given["time_s"] * NS_PER_S))
    copy_ns = 0
    if memory["copies"]:
        rate = _required(memory, "memory", "copy_bytes_per_s", "or copies = 0")
        copy_ns = round(packet_bytes / rate * NS_PER_S)
    work_ns = _kernel_work_ns(values)
    wire_ns = _at_least_1((packet_bytes + header_bytes) / nic["rate_bytes_per_s"])
    room = _packets("kernel", values["kernel"]["buffer_bytes"], packet_bytes)
    job = _job(values, copy_ns, room)
    if end_ns // job.period_ns > MOST_READINGS:
        raise ProblemError(
            f"job.period_s: {end_ns // job.period_ns} readings are more than {MOST_READINGS}, the "
            "most of one simulation; simulate a shorter time_s"
        )
    return cls(
        name=given["name"],
        is_tcp=protocol["name"] == "tcp",
        end_ns=end_ns,
        packet_bytes=packet_bytes,
        header_bytes=header_bytes,
        kernel_ns=max(1, work_ns + copy_ns * (memory["copies"] == 2)),
        wire_ns=wire_ns,
        slots=_packets("nic", nic["buffer_bytes"], packet_bytes + header_bytes),
        room=room,
        processors=values["processor"]["count"],
        job=job,
        stream=_stream(values, end_ns, packet_bytes, wire_ns),
    )


def _at_least_1(duration_s: float) -> int:
    return max(1, round(duration_s * NS_PER_S))


def _required(table: Mapping[str, Any], place: str, key: str, instead: str) -> Any:
    if table[key] is None:
        raise ProblemError(f"{place}.{key} is missing; add it, {instead}")
    return table[key]


def _kernel_work_ns(values: Values) -> int:
    kernel = values["kernel"]
    if kernel["packet_s"] is not None and kernel["cycles_per_header_byte"] is not None:
        raise ProblemError(
            "kernel.packet_s and kernel.cycles_per_header_byte cannot be combined; give one of them"
        )
    if kernel["cycles_per_header_byte"] is None:
        instead = "or cycles_per_header_byte, or a machine"
        return _at_least_1(_required(kernel, "kernel", "packet_s", instead))
    clock_hz = _required(values["processor"], "processor", "clock_hz", "or kernel.packet_s")
    cycles = kernel["cycles_per_header_byte"] * values["protocol"]["header_bytes"]
    return _at_least_1(cycles / clock_hz)


def _packets(place: str, buffer_bytes: int, packet_bytes: int) -> int:
    """Return how many packets a buffer has room for."""
    if buffer_bytes < packet_bytes:
        raise ProblemError(
            f"{place}.buffer_bytes must be at least the {packet_bytes} of one packet, got "
            f"{buffer_bytes}; make it larger, or protocol.packet_bytes smaller"
        )
    return buffer_bytes // packet_bytes


def _job(values: Values, copy_ns: int, room: int) -> Job:
    job, packet_bytes = values["job"], values["protocol"]["packet_bytes"]
    period_s = _required(job, "job", "period_s", "or stream.frames_per_s")
    if job["packet_s"] is not None and job["cycles_per_byte"] is not None:
        raise ProblemError(
            "job.packet_s and job.cycles_per_byte cannot be combined; give one of them"
        )
    work_ns = round((job["packet_s"] or 0.0) * NS_PER_S)
    if job["cycles_per_byte"]:
        clock_hz = _required(values["processor"], "processor", "clock_hz", "or job.packet_s")
        work_ns = round(job["cycles_per_byte"] * packet_bytes / clock_hz * NS_PER_S)
    most = room
    for key in ("user.buffer_bytes", "job.most_bytes"):
        place, _, name = key.partition(".")
        if values[place][name] is not None:
            if values[place][name] < packet_bytes:
                raise ProblemError(
                    f"{key} must be at least the {packet_bytes} of one packet, got "
                    f"{values[place][name]}; make it larger, or protocol.packet_bytes smaller"
                )
            most = min(most, values[place][name] // packet_bytes)
    least = -(-job["least_bytes"] // packet_bytes)
    if least > most:
        raise InfeasibleError(
            f"the job never reads: it waits for job.least_bytes = {job['least_bytes']}, which is "
            f"{counted(least, 'packet')} of {packet_bytes} B, but can have {most} at most; make "
            "kernel.buffer_bytes, user.buffer_bytes and job.most_bytes larger, or least_bytes "
            "smaller"
        )
    return Job(_at_least_1(period_s), work_ns + copy_ns, most, least)


def _stream(values: Values, end_ns: int, packet_bytes: int, wire_ns: int) -> Stream:
    stream = values["stream"]
    way = _way(stream)
    if way == "i_frame_bytes":
        return _video(stream, end_ns, packet_bytes, wire_ns)
    rate = stream["rate_bytes_per_s"]
    if way == "width":
        pixels = stream["width"] * _needed(stream, "height")
        bits = pixels * _needed(stream, "bits_per_pixel") / stream["compression"]
        rate = bits / 8 * _needed(stream, "frames_per_s")
    every_ns = _at_least_1(packet_bytes / rate)
    # A nanosecond less is rounding.
    if every_ns < wire_ns - 1:
        raise _too_fast("stream", format_rate(rate), every_ns, wire_ns)
    return constant(max(every_ns, wire_ns), end_ns)


def _way(stream: Mapping[str, Any]) -> str:
    """Return the key that says in which of three ways the stream is described."""
    ways = ("rate_bytes_per_s", "width", "i_frame_bytes")
    given = [key for key in ways if stream[key] is not None]
    if len(given) != 1:
        raise ProblemError(
            "stream must have either rate_bytes_per_s, or width, height, bits_per_pixel and "
            "frames_per_s, or a video's frames_per_s and i_frame_bytes, got "
            f"{' and '.join(given) or 'none'}; give one of them"
        )
    return given[0]


def _needed(stream: Mapping[str, Any], key: str) -> Any:
    return _required(stream, "stream", key, "or stream.rate_bytes_per_s alone")


def _video(stream: Mapping[str, Any], end_ns: int, packet_bytes: int, wire_ns: int) -> Stream:
    frames_per_s = _needed(stream, "frames_per_s")
    period_ns = _at_least_1(1 / frames_per_s)
    ratio = tuple(stream["ratio"])
    if not ratio[0]:
        raise ProblemError(
            f"stream.ratio must begin with 1 or more I frames, got {shown(stream['ratio'])}; write "
            "how many I, P and B frames make a group, such as [1, 4, 10]"
        )
    at_once = wire_ns if stream["sent"] == "at once" else None
    packets = {}
    for kind, n in zip("IPB", ratio, strict=True):
        key = f"{kind.lower()}_frame_bytes"
        if n:
            frame_bytes = _required(stream, "stream", key, "or make its part of stream.ratio 0")
            packets[kind] = -(-frame_bytes // packet_bytes)
            # A nanosecond less is rounding.
            if packets[kind] * (at_once or wire_ns - 1) > period_ns:
                rate = format_rate(frame_bytes * frames_per_s)
                raise _too_fast(f"stream.{key}", rate, period_ns // packets[kind], wire_ns)
    return video(packets, ratio, period_ns, end_ns, at_once)


def _too_fast(place: str, rate: str, every_ns: int, wire_ns: int) -> ProblemError:
    return ProblemError(
        f"{place}: {rate} is a packet each {every_ns} ns, more than the card's rate carries, one "
        f"each {wire_ns} ns; send less, or make nic.rate_bytes_per_s larger"
    )
