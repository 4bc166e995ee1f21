"""The guard of feeds by UDP, simulated: false alarms at bearable loss, and how soon it fires.

    python experiments/feed_guard.py [--hours 10]

Losses come as a Poisson process of events, in bunches of one size, at 0.9 of the loss that was
declared bearable. Beside the guard stands the rule "more than most_loss in a second".
"""

from __future__ import annotations

import argparse
from statistics import median

import numpy as np

from datacollect.feeds.udp.guard import Guard, GuardLimits, Phase

MOST_LOSS = 0.01
RATES, BUNCHES = (136, 1_360, 7_600, 76_000), (1, 5, 10)
TRIALS = 20


def false_alarms(per_s: int, bunch: int, hours: float, seed: int) -> tuple[int, int]:
    """Return how often the guard fires in so many hours, and how often the other rule does."""
    rng, per_tick = np.random.default_rng(seed), per_s // 10
    n = int(hours * 36_000)
    events = rng.poisson(per_tick * 0.9 * MOST_LOSS / bunch, n)
    sums = np.concatenate([[0], np.cumsum(events)])
    over = (sums[10:] - sums[:-10]) * bunch > 10 * per_tick * MOST_LOSS
    guard = Guard(GuardLimits(MOST_LOSS, bunch), 0.0)
    for tick, total in enumerate(sums[1:].tolist(), 1):
        guard.sent(tick / 10, per_tick * tick)
        guard.report(tick / 10, per_tick * tick, total * bunch, total, 0)
        guard.look(tick / 10)
    return guard.n_alarms, int((np.diff(over.astype(int)) == 1).sum())


def fires_after_s(per_s: int, bunch: int, loss: float, seed: int) -> float | None:
    """Return how long after losses begin the guard fires; None: not within a minute."""
    rng, per_tick, total = np.random.default_rng(seed), per_s // 10, 0
    guard = Guard(GuardLimits(MOST_LOSS, bunch), 0.0)
    for tick in range(1, 801):
        now = 0.9 * MOST_LOSS if tick <= 200 else loss
        total += int(rng.poisson(per_tick * now / bunch))
        guard.report(tick / 10, per_tick * tick, total * bunch, total, 0)
        if guard.look(tick / 10) is not Phase.WELL and tick > 200:
            return (tick - 200) / 10
    return None


def fired_text(per_s: int, bunch: int, loss: float) -> str:
    """Return median and longest time of some trials."""
    times = [fires_after_s(per_s, bunch, loss, seed) for seed in range(TRIALS)]
    known = [time for time in times if time is not None]
    if len(known) < TRIALS:
        return f"{len(known)} of {TRIALS}"
    return f"{median(known):.1f} ({max(known):.1f})"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--hours", type=float, default=10.0)
    hours = parser.parse_args().hours
    print(
        f"| packets/s | bunches of | false alarms in {hours:g} h | by 1 % in a second, an hour "
        "| half is lost: s | 5 % is lost: s |"
    )
    print("|--:|--:|--:|--:|--:|--:|")
    for per_s in RATES:
        for bunch in BUNCHES:
            alarms, others = false_alarms(per_s, bunch, hours, seed=per_s + bunch)
            half, twentieth = (fired_text(per_s, bunch, loss) for loss in (0.5, 0.05))
            print(
                f"| {per_s} | {bunch} | {alarms} | {others / hours:.0f} | {half} | {twentieth} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
