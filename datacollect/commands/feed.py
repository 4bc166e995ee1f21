"""The commands ``datacollect feed …``: of the core ``plan``, and those that others bring."""

from __future__ import annotations

import math
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from datacollect.commands.brought import FEED_COMMANDS
from datacollect.commands.console import emit, emit_json, emit_table, emit_text, note
from datacollect.commands.conversion import number_in
from datacollect.commands.help_option import Command, Group
from datacollect.commands.options import Json
from datacollect.commands.wing_commands import add_brought
from datacollect.errors import ProblemError
from datacollect.wings import LISTED_FEED_COMMANDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.measurement.feed_plans import FeedHop, FeedPlan, TcpAnswer

HELP = "Sources of constant rate that cannot wait: do they keep up, and bring it there."
KERNEL = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
DOES_NOT_KEEP_UP = 1
# Of what a packet of UDP can carry, the part that a feed's message is: its head, and room for
# addresses of IPv6, are no data.
MESSAGE_PART = 1412 / 1472


def feed_group(words: Sequence[str] = ()) -> typer.Typer:
    """Return the group, with the commands that wings bring; of other packages those in `words`."""
    group = typer.Typer(cls=Group, help=HELP, no_args_is_help=True, rich_markup_mode=None)
    group.command(cls=Command)(plan)
    brought = [*FEED_COMMANDS.own]
    brought += [name for name in words if name != plan.__name__ and FEED_COMMANDS.has(name)]
    for name in dict.fromkeys(brought):
        add_brought(group, FEED_COMMANDS, name, LISTED_FEED_COMMANDS.get(name))
    return group


def plan(
    rate: Annotated[
        str,
        typer.Option(
            "--rate", metavar="RATE", help='Rate at which the source makes data: "16 Mbit/s".'
        ),
    ],
    rtt: Annotated[
        str | None, typer.Option("--rtt", metavar="TIME", help='Round trip of the path: "50 ms".')
    ] = None,
    bandwidth: Annotated[
        str | None,
        typer.Option(
            "--bandwidth",
            metavar="RATE",
            help='Rate of the path\'s wire, headers included: "1 Gbit/s".',
        ),
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option("--loss", metavar="PART", help="Part of the packets that are lost: 1e-5."),
    ] = None,
    samples: Annotated[
        str | None,
        typer.Option(
            "--samples",
            metavar="DIR",
            help="Folder of measurements, instead of --rtt and --bandwidth; with --from and --to.",
        ),
    ] = None,
    begin: Annotated[
        str | None,
        typer.Option("--from", metavar="HOST", help="With --samples: the host that sends."),
    ] = None,
    end: Annotated[
        str | None,
        typer.Option("--to", metavar="HOST", help="With --samples: the host that receives."),
    ] = None,
    via: Annotated[
        list[str] | None,
        typer.Option(
            "--via",
            metavar="RELAY",
            help="A relay; repeat it for more, in order. K=17ms: the round trip to K. Default: "
            "equal hops.",
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """Say whether a source that cannot wait keeps up, how late it gets, which buffer it needs.

    By Reno, Cubic and BBR, directly and over relays, and by UDP. Exit code 1: it does not keep up
    by any. What is said after a loss holds at most.
    """
    from datacollect.files.kinds import Number
    from datacollect.files.quantities import BYTES_PER_S
    from datacollect.measurement.feed_plans import feed_plan, require_feed

    kind = Number(BYTES_PER_S, positive=True, remedy="say what the source makes")
    rate_bytes_per_s = kind.read(number_in(rate), "--rate")
    if samples is None:
        direct, relayed = _given_hops(rtt, bandwidth, loss, begin, end, via or [])
    else:
        direct, relayed = _measured_hops(samples, begin, end, via or [], (rtt, bandwidth, loss))
    require_feed(rate_bytes_per_s, direct.rtt_s)
    found = feed_plan(rate_bytes_per_s, direct, relayed, _in_kernel())
    if as_json:
        emit_json({**found.to_dict(), "sender_toml": "\n".join(_for_sender(found))})
    else:
        _show(found)
    return 0 if found.keeps_up else DOES_NOT_KEEP_UP


# What the path is -----------------------------------------------------------------------------


def _given_hops(
    rtt: str | None,
    bandwidth: str | None,
    loss: str | None,
    begin: str | None,
    end: str | None,
    via: list[str],
) -> tuple[FeedHop, list[FeedHop]]:
    from datacollect.files.kinds import Number
    from datacollect.files.quantities import BYTES_PER_S
    from datacollect.files.with_units import DURATION
    from datacollect.measurement.feed_plans import FeedHop

    for option, given in (("--from", begin), ("--to", end)):
        if given is not None:
            raise ProblemError(f"{option} {given}: needs --samples DIR, where hosts were measured")
    if rtt is None or bandwidth is None:
        missing = "--rtt" if rtt is None else "--bandwidth"
        raise ProblemError(
            f"{missing} is missing; give --rtt and --bandwidth, or --samples DIR --from S --to D"
        )
    rtt_s = DURATION.read(number_in(rtt), "--rtt")
    carries = Number(BYTES_PER_S, positive=True, remedy="say what the wire carries")
    wire = carries.read(number_in(bandwidth), "--bandwidth")
    part = _loss(loss)
    direct = FeedHop.of_wire("the receiver", rtt_s, wire, part)
    if not via:
        return direct, []
    names, times = [], []
    for relay in via:
        name, _, time = relay.partition("=")
        if not name or name in names:
            raise ProblemError(
                f"--via {relay}: must begin with a relay's name, each relay once; write --via K1 "
                "--via K2=17ms"
            )
        names.append(name)
        times.append(DURATION.read(number_in(time), f"--via {name}=") if time else None)
    known = [time for time in times if time is not None]
    equal_s = (rtt_s - sum(known)) / (len(times) - len(known) + 1)
    if equal_s <= 0:
        raise ProblemError(
            f"--via: round trips to relays must sum to less than --rtt, got {sum(known):g} s of "
            f"{rtt_s:g} s; the last hop takes the rest of --rtt"
        )
    each_s = [equal_s if time is None else time for time in [*times, None]]
    # Packets are lost on any hop: the whole path's losses are shared out among them.
    each_loss = None if part is None else 1 - (1 - part) ** (1 / len(each_s))
    hops = [
        FeedHop.of_wire(name, hop_s, wire, each_loss)
        for name, hop_s in zip([*names, "the receiver"], each_s, strict=True)
    ]
    return direct, hops


def _loss(loss: str | None) -> float | None:
    if loss is None:
        return None
    number = number_in(loss.removesuffix("%").strip())
    if isinstance(number, str) or not 0 <= (part := number / (100 if "%" in loss else 1)) < 1:
        raise ProblemError(f'--loss must be a part >= 0 and < 1, got {loss!r}; 1e-5 is "0.001 %"')
    return part


def _measured_hops(
    samples: str,
    begin: str | None,
    end: str | None,
    via: list[str],
    instead: tuple[str | None, ...],
) -> tuple[FeedHop, list[FeedHop]]:
    from datacollect.measurement.feed_samples import measured_hop
    from datacollect.measurement.sample_store import read_parts

    for option, given in zip(("--rtt", "--bandwidth", "--loss"), instead, strict=True):
        if given is not None:
            raise ProblemError(
                f"{option} {given}: cannot be combined with --samples, which says what was "
                "measured; leave one of them out"
            )
    if begin is None or end is None:
        raise ProblemError("--samples needs --from HOST and --to HOST: between whom the feed goes")
    folder = Path(samples)
    if not folder.is_dir():
        what = "is a file" if folder.exists() else "no such folder"
        raise ProblemError(f"{folder}: {what}; name the folder that tests have written into")
    frame = read_parts(folder).frame
    if frame.empty:
        raise ProblemError(f"{folder}: holds no samples; measure first: datacollect measure cycle")
    ends = [begin, *via, end]
    direct = measured_hop(frame, begin, end)
    note(f"{begin} -> {end}: measured, {direct.n_samples} of bandwidth")
    hops = [measured_hop(frame, a, b).hop for a, b in pairwise(ends)]
    return direct.hop, hops if via else []


def _in_kernel() -> list[str] | None:
    """Return the congestion controls of this kernel; None where it does not say."""
    with suppress(OSError):
        return KERNEL.read_text(encoding="ascii").split()
    return None


# What people are told --------------------------------------------------------------------------


def _show(found: FeedPlan) -> None:
    from datacollect.files.units import format_rate, format_short_duration

    direct = found.direct
    carries = f"{format_rate(direct.tcp_bytes_per_s)} of data by TCP"
    if direct.udp_bytes_per_s != direct.tcp_bytes_per_s:
        carries += f", {format_rate(direct.udp_bytes_per_s)} by UDP"
    emit_text(
        f"The source makes {format_rate(found.rate_bytes_per_s)}; the path carries {carries}, "
        f"and a round trip takes {format_short_duration(direct.rtt_s)}."
    )
    emit("")
    emit_table(
        ("transport", "keeps up", "worst delay", "late for", "buffer"),
        [_row(one) for one in found.tcp],
        "<<>>>",
    )
    emit_text("Delay, lateness and buffer are upper bounds, after a single loss.")
    emit("")
    for text in _sentences(found):
        emit_text(text, 2)
    emit("")
    emit("By SRT, where the receiver listens with the same latency and buffers:")
    emit(f"  {found.srt_command}")
    best = found.best
    emit(f"For the program that sends, by {'udp' if best is None else best.name}:")
    for line in _for_sender(found):
        emit(f"  {line}")


def _row(one: TcpAnswer) -> tuple[str, ...]:
    from datacollect.files.units import format_bytes, format_duration

    name = one.name + (" (not in this kernel)" if one.in_kernel is False else "")
    if one.worst_delay_s is None or one.late_s is None or one.buffer_bytes is None:
        return name, "yes" if one.keeps_up else "no", *(["no bound" if one.keeps_up else "-"] * 3)
    return (
        name,
        "yes" if one.keeps_up else "no",
        format_duration(float(f"{one.worst_delay_s:.3g}")),
        format_duration(float(f"{one.late_s:.3g}")) if math.isfinite(one.late_s) else "ever",
        format_bytes(one.buffer_bytes),
    )


def _sentences(found: FeedPlan) -> list[str]:
    """Say what decides: bandwidth, losses, what would mend them, UDP."""
    from datacollect.files.units import format_duration, format_rate
    from datacollect.measurement.feed_plans import MOST_DROPPED

    lines = []
    lagging = next((one for one in found.tcp if one.lags_bytes_per_s), None)
    if lagging is not None:
        lines.append(
            f"By TCP the path is too narrow: each second {format_rate(lagging.lags_bytes_per_s)} "
            "more are late, whatever the buffer."
        )
    verdicts = {
        "timely": "all is timely again after each",
        "late": "some is always late, but not more and more",
        "behind": "it falls further and further behind: it never catches up",
    }
    for one in found.tcp:
        if one.lags_bytes_per_s or one.timely_if_each_s is None:
            continue
        text = f"{one.name}: "
        if one.verdict is not None and one.losses_each_s is not None:
            each = (
                "with no losses"
                if math.isinf(one.losses_each_s)
                else f"with losses each {format_duration(float(f'{one.losses_each_s:.3g}'))}"
            )
            text += f"{each}, {verdicts[one.verdict]}; "
        assert one.keeps_up_if_each_s is not None
        timely, least = (
            format_duration(float(f"{each_s:.3g}"))
            for each_s in (one.timely_if_each_s, one.keeps_up_if_each_s)
        )
        text += f"timely again if losses are at least {timely} apart, behind for ever below {least}"
        if one.no_deficit_bytes_per_s is not None and not one.via:
            text += (
                f"; with {format_rate(one.no_deficit_bytes_per_s)} for its data no loss makes it "
                "late, once its window has grown"
            )
        lines.append(f"{text}.")
    if any(one.transport == "bbr" and not one.lags_bytes_per_s for one in found.tcp):
        lines.append(
            "bbr: a loss does not lower its rate, and no model bounds its delay; measured: within "
            "2 round trips, once 7."
        )
    udp = found.udp
    if udp.fits:
        lost = "what the path loses, which is not known" if udp.lost is None else f"{udp.lost:.3g}"
        lines.append(f"udp: it fits; lost and never sent again: {lost}.")
    else:
        lines.append(
            f"udp: it does not fit, {udp.lost:.1%} would be lost at random; leave out "
            f"{udp.drop:.2%}, evenly (a drop set), and the rest arrives"
            + (
                f". More than {MOST_DROPPED:.0%} spoils what correlators make of it."
                if udp.drop > MOST_DROPPED
                else "."
            )
        )
    return lines


def _for_sender(found: FeedPlan) -> list[str]:
    """Return what a sender has to be told of this, as lines of TOML."""
    from datacollect.files.units import format_bytes, format_rate

    rate, best = format_rate(found.rate_bytes_per_s), found.best
    if best is None:
        fits = found.direct.udp_bytes_per_s * MESSAGE_PART / found.rate_bytes_per_s
        # Rounded up, to a tenth of a percent.
        drop = math.ceil(1000 * (1 - fits)) / 1000
        drop_set = [f"udp = {{ drop = {drop:g} }}  # with the heads of its packets"]
        return [f'rate = "{rate}"', 'transport = "udp"', *(drop_set if drop > 0 else [])]
    lines = [f'rate = "{rate}"', 'transport = "tcp"']
    if best.buffer_bytes is not None:
        # Rounded up, to two digits.
        digits = 10 ** max(math.floor(math.log10(best.buffer_bytes)) - 1, 0)
        most = math.ceil(best.buffer_bytes / digits) * digits
        lines.append(f'buffer_bytes = "{format_bytes(most)}"')
    return lines
