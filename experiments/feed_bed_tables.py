"""Tables of what `feed_bed.py` has measured, and whether what was asked for is reached."""

from __future__ import annotations

from functools import cache
from statistics import mean, median
from typing import TYPE_CHECKING, Any

import feed_bed_parts as parts
from feed_bed_runs import Setting

from datacollect.measurement.feed_models import CUBIC, CUBIC_FALLING, Path, after_loss

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from datacollect.measurement.feed_plans import TcpAnswer

    Row = Mapping[str, Any]

# Where the source itself was later than this, the machine was busy, and the loss is set aside.
PUNCTUAL_S = 0.02


def of_part(rows: Iterable[Row], part: str) -> dict[str, Row]:
    """Return the rows of a part by name."""
    return {row["name"]: row for row in rows if row["part"] == part}


def setting_of(name: str) -> Setting:
    """Return the setting of a row of losses.

    >>> setting_of("reno-20-2").relays
    ('K1', 'K2')
    """
    congestion, link, n_relays, *_ = name.split("-")
    return Setting(congestion, float(link), int(n_relays))


@cache
def plan_of(name: str) -> TcpAnswer:
    """Return what `feed plan` says of a row's setting."""
    return setting_of(name).plan()


def punctual(losses: Sequence[Row]) -> list[Row]:
    """Return the losses during which the source was in time."""
    return [loss for loss in losses if loss["machine_s"] <= PUNCTUAL_S]


def _table(heads: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """Return a table in Markdown: the first column words, the others numbers."""
    rule = ["---", *("--:" for _ in heads[1:])]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in (heads, rule, *lines))


def losses_table(rows: Sequence[Row]) -> str:
    """After one loss, by congestion control, link and relays."""
    lines = []
    for name, row in of_part(rows, "losses").items():
        setting, good = setting_of(name), punctual(row["losses"])
        if not good:
            continue
        plan = plan_of(name)
        delays, late = ([loss[key] for loss in good] for key in ("worst_delay_s", "late_for_s"))
        relays = f", {setting.n_relays} relays" if setting.n_relays else ""
        each = f", one each {row['spacing_s']:g} s" if name.endswith("slow") else ""
        most = plan.worst_delay_s
        lines.append(
            (
                f"{setting.congestion}, {setting.link_mbit:g} Mbit/s{relays}{each}",
                f"{len(good)} of {len(row['losses'])}",
                f"{median(delays):.3f}",
                f"{max(delays):.3f}",
                "–" if most is None else f"{most:.2f}",
                f"{mean(late):.2f}",
                f"{max(late):.2f}",
                "–" if plan.late_s is None else f"{plan.late_s:.1f}",
            )
        )
    heads = (
        *("16 Mbit/s over", "losses", "delay, s: median", "worst", "plan"),
        *("late for, s: mean", "longest", "plan"),
    )
    return _table(heads, lines)


def asked_table(rows: Sequence[Row]) -> str:
    """What was to be reached, and what was."""
    found = of_part(rows, "losses")
    lines = []

    def lateness(name: str, chosen: Callable[[Sequence[Row]], Sequence[Row]]) -> float:
        return mean(loss["lateness_s2"] for loss in chosen(found[name]["losses"]))

    if {"reno-20-0", "reno-20-2"} <= found.keys():
        for which, chosen in (("punctual", punctual), ("all", list)):
            ratio = lateness("reno-20-2", chosen) / lateness("reno-20-0", chosen)
            words = f"mean lateness over two relays ÷ direct, {which} losses"
            lines.append((f"Reno, 16 over 20 Mbit/s: {words}", f"{ratio:.3f}", "≤ 0.333"))
    bounded = [
        (loss["worst_delay_s"] <= (plan_of(name).worst_delay_s or 0.0), loss)
        for name, row in found.items()
        if not name.startswith("bbr")
        for loss in row["losses"]
    ]
    for which, some in (
        ("punctual", [within for within, loss in bounded if loss["machine_s"] <= PUNCTUAL_S]),
        ("all", [within for within, _ in bounded]),
    ):
        if some:
            words = f"worst delays ≤ `feed plan`'s, Reno and Cubic, {which} losses"
            lines.append((words, f"{sum(some)} of {len(some)}", "≥ 95 %"))
    for name in ("cubic-20-0", "cubic-20-0-slow"):
        if name in found:
            setting = setting_of(name)
            most_s = 2 * setting.rtt_s + 0.02
            good = [loss["worst_delay_s"] for loss in punctual(found[name]["losses"])]
            each_s = found[name].get("spacing_s", 8)
            words = f"Cubic, 16 over 20 Mbit/s, a loss each {each_s:g} s: worst delay, s"
            n = sum(delay <= most_s for delay in good)
            lines.append((words, f"{max(good):.3f}; {n} of {len(good)} within", f"≤ {most_s:.2f}"))
    return _table(("what", "found", "asked"), lines)


def windows_table(rows: Sequence[Row]) -> str:
    """Cubic's window before each loss, the delay that follows from it, and the one that was found.

    Where the window was smaller than before the last loss, it rests earlier.
    """
    row = of_part(rows, "losses").get("cubic-20-0")
    if row is None or "window_bytes" not in row["losses"][0]:
        return ""
    losses, lines, rests_at = row["losses"], [], 0.0
    sent_bytes = losses[-1]["sent_bytes"] - losses[0]["sent_bytes"]
    rate = sent_bytes / (row["spacing_s"] * (len(losses) - 1))
    for loss in losses:
        path = Path(setting_of(row["name"]).hops()[0].tcp_bytes_per_s, loss["rtt_s"])
        ratio = loss["window_bytes"] / (rate * path.rtt_s)
        is_falling = loss["window_bytes"] < rests_at
        law = CUBIC_FALLING if is_falling else CUBIC
        rests_at = loss["window_bytes"] * ((1 + law.beta) / 2 if is_falling else 1)
        deficit = after_loss(law, rate, path, window_ratio=ratio).deficit_bytes
        delay_s = row["least_s"] + max(path.rtt_s, deficit / rate)
        found = f"{loss['worst_delay_s']:.3f}"
        falls = "yes" if is_falling else "no"
        lines.append((f"{ratio:.2f}", falls, f"{delay_s:.3f}", found))
    heads = ("window ÷ what is needed", "smaller than before", "delay, s: model", "found")
    return _table(heads, lines)


def rates_table(rows: Sequence[Row]) -> str:
    """How late messages come, in tenths of the feed, by the part of packets that is lost."""
    lines = []
    for name, row in of_part(rows, "rates").items():
        loss, _, how = name.rpartition("-")
        window = "one bandwidth-delay product" if how == "window" else "as it grows"
        tenths = row["tenths_s"]
        lines.append(
            (
                f"{float(loss):g}, {window}",
                row["lost_packets"],
                *(f"{tenths[i]:.2f}" for i in (1, 3, 5, 7, 9)),
            )
        )
    parts_of = [f"{10 * (i + 1)} %" for i in (1, 3, 5, 7, 9)]
    return _table(("part lost, window", "packets lost", *parts_of), lines)


def bursts_table(rows: Sequence[Row]) -> str:
    """What comes together, and what gaps there are, before losses and after."""
    lines = []
    for name, row in of_part(rows, "bursts").items():
        congestion, how = name.split("-")
        before, after = (list(zip(*row[key], strict=True)) for key in ("before", "after"))
        lines.append(
            (
                f"{congestion}, {how}",
                f"{median(before[0]):.1f}",
                f"{median(after[0]):.1f}",
                f"{1e3 * median(before[1]):.0f}",
                f"{1e3 * median(after[1]):.0f}",
            )
        )
    heads = ("TCP", "in 10 ms ÷ usual: before", "after", "longest gap, ms: before")
    return _table((*heads, "after"), lines)


def three_table(rows: Sequence[Row]) -> str:
    """Three feeds at once."""
    row = of_part(rows, "three").get("three")
    if row is None:
        return ""
    where = {"S1": "a wire of its own", "S2": "a campus's wire", "S3": "another wire of its own"}
    theirs = {"S1": "800, no loss", "S2": "600, some loss", "S3": "400, little loss"}
    lines = [
        (
            f"{where[host]}",
            f"{row[host]['mbit']:g}",
            f"{row[host]['received_mbit']:.2f}",
            f"{100 * row[host]['lost'] / row[host]['made']:.2f} %",
            theirs[host],
        )
        for host in where
    ]
    return _table(("over", "sent, Mbit/s", "received", "lost", "report, Mbit/s"), lines)


def buffers_table(rows: Sequence[Row]) -> str:
    """Losses by the room at the receiver."""
    lines = [
        (
            name,
            f"{row['granted_bytes'] / 1e3:.0f}",
            row["lost"],
            f"{100 * row['lost'] / row['sent']:.3g} %",
            f"{row['load']:.0f}",
        )
        for name, row in of_part(rows, "buffers").items()
    ]
    lost = ("lost", f"of {parts.BUFFER_RATE_MBIT:g} Mbit/s")
    return _table(("asked for, kB", "granted, kB", *lost, "load"), lines)


def gaps_table(rows: Sequence[Row]) -> str:
    """Gaps, and the processor."""
    lines = [
        (
            name.replace("-paced", ", 2 Mbit/s").replace("-fast", ", 236 Mbit/s"),
            f"{row['received']} of {row['sent']}",
            *(row[key] for key in ("p1_ms", "p50_ms", "p99_ms", "most_ms", "us_each")),
        )
        for name, row in of_part(rows, "gaps").items()
    ]
    heads = ("packets", "received", "gap, ms: 1 %", "50 %", "99 %", "most", "µs of processor each")
    return _table(heads, lines)


TABLES: dict[str, Callable[[Sequence[Row]], str]] = {
    "feed_bed_losses": losses_table,
    "feed_bed_asked": asked_table,
    "feed_bed_windows": windows_table,
    "feed_bed_rates": rates_table,
    "feed_bed_bursts": bursts_table,
    "feed_bed_three": three_table,
    "feed_bed_buffers": buffers_table,
    "feed_bed_gaps": gaps_table,
}
