"""The command ``datacollect host simulate``: a host that packets are sent to, and what it loses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from datacollect.commands.console import emit_facts, emit_json, emit_text, working
from datacollect.commands.inputs import require_kept
from datacollect.commands.options import Force, Json, require_new
from datacollect.commands.reading import write_text

if TYPE_CHECKING:
    from datacollect.simulation.hosts.run import HostRun


def simulate(
    file: Annotated[
        str,
        typer.Argument(metavar="SIM", help="Simulated host, TOML or JSON; - is standard input."),
    ],
    output: Annotated[
        str | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="Write a CSV: buffers and load in each second."
        ),
    ] = None,
    losses: Annotated[
        str | None,
        typer.Option(
            "--losses", metavar="FILE", help="Write a CSV of lost packets: cause, number, when."
        ),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Simulate a host that packets are sent to: what it loses where, buffers, load.

    Packets pass its card, its kernel and a job that reads, works, frees and sleeps.
    """
    from datacollect.simulation.hosts.run import run_host
    from datacollect.simulation.hosts.setting import HostSimulation

    given = [path for path in (output, losses) if path is not None]
    for path in given:
        require_kept(path, file, *(other for other in given if other is not path))
        require_new(path, force=force)
    host = HostSimulation.from_file(file)
    with working(f"simulating {host.name}"):
        run = run_host(host)
    if output is not None:
        write_text(run.seconds_csv().removesuffix("\n"), output)
    if losses is not None:
        write_text(run.losses_csv().removesuffix("\n"), losses)
    if as_json:
        emit_json(run.to_dict())
    else:
        _show(run)


def _show(run: HostRun) -> None:
    from datacollect.files.units import counted, format_duration, format_rate

    host = run.host
    packets = counted(run.total("due_packets"), "packet")
    over = f"{format_duration(host.end_ns / 1e9)} of {'TCP' if host.is_tcp else 'UDP'}"
    payload = host.packet_bytes * run.total("due_packets") * 1e9 / host.end_ns
    facts = [
        ("simulated", f"{over} to {host.name}, {packets} of {host.packet_bytes} B"),
        ("sent", format_rate(payload)),
        ("read", format_rate(run.read_bytes_per_s)),
        ("lost", _lost(run)),
        ("processor", _load(run)),
        ("buffers", _buffers(run)),
    ]
    if run.frames:
        facts.append(("frames", _frames(run)))
    emit_facts(facts)
    if run.livelock_s is not None:
        emit_text(
            f"From {format_duration(run.livelock_s)} on, packets arrive faster than the kernel "
            "handles "
            "them: the job never runs again (receive livelock). Give it a processor of its own, or "
            "send less."
        )


def _lost(run: HostRun) -> str:
    lost = sum(run.lost.values())
    if not lost:
        behind = run.total("due_packets") - run.total("arrived_packets")
        waits = f"; {behind} wait at the sender, whose window is closed" if behind else ""
        return f"nothing{waits}"
    from datacollect.files.units import format_duration

    causes = ", ".join(f"{cause} {n}" for cause, n in run.lost.items() if n)
    share = lost / run.total("arrived_packets")
    return f"{share:.2%}: {causes}; first at {format_duration(run.losses[0].from_s)}"


def _load(run: HostRun) -> str:
    kernel, job = run.mean("kernel_mean_load"), run.mean("job_mean_load")
    own = ", each on its own" if run.host.processors > 1 else ""
    return f"{run.mean('mean_load'):.1%} busy: kernel {kernel:.1%}, job {job:.1%}{own}"


def _buffers(run: HostRun) -> str:
    from datacollect.files.units import format_bytes

    host = run.host
    kernel = host.room * host.packet_bytes
    card = host.slots * (host.packet_bytes + host.header_bytes)
    used, held = (run.mean(f"{part}_buffer_mean_bytes") for part in ("kernel", "nic"))
    return (
        f"on average kernel {format_bytes(used)} of {format_bytes(kernel)}, NIC "
        f"{format_bytes(held)} of {format_bytes(card)}, user "
        f"{format_bytes(run.mean('user_buffer_mean_bytes'))}"
    )


def _frames(run: HostRun) -> str:
    damaged, frames = sum(run.damaged_frames.values()), sum(run.frames.values())
    kinds = ", ".join(
        f"{kind} {run.damaged_frames.get(kind, 0)} of {n}" for kind, n in run.frames.items()
    )
    return f"{damaged} of {frames} damaged: {kinds}"
