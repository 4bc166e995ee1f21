"""The guard of feeds by UDP, simulated: false alarms at bearable loss, and how soon it fires.

    python experiments/feed_guard.py [--hours 10]

Losses come as a Poisson process of events, in bunches of one size, at 0.9 of the loss that was
declared bearable. Beside the guard stands the rule "more than most_loss in a second"; and how often
the best of all tests whose chance of a false alarm is the guard's would fire within a second, by
Neyman and Pearson's lemma.
"""

from __future__ import annotations

import argparse
from statistics import median

import numpy as np
from scipy.stats import poisson

from datacollect.feeds.udp.guard import CHANCE, Guard, GuardLimits, Phase

MOST_LOSS = 0.01
RATES, BUNCHES = (136, 1_360, 7_600, 76_000), (1, 5, 10)
TRIALS, MANY_TRIALS = 20, 1000
HALF, TWENTIETH, GOAL_S = 0.5, 0.05, 1.0


def false_alarms(per_s: int, bunch: int, hours: float, seed: int) -> tuple[int, int]:
    """Return how often the guard fires in so many hours, and how often the other rule does."""
    rng, per_tick = np.random.default_rng(seed), per_s / 10
    n = int(hours * 36_000)
    events = rng.poisson(per_tick * 0.9 * MOST_LOSS / bunch, n)
    sums = np.concatenate([[0], np.cumsum(events)])
    over = (sums[10:] - sums[:-10]) * bunch > 10 * per_tick * MOST_LOSS
    guard = Guard(GuardLimits(MOST_LOSS, bunch), 0.0)
    for tick, total in enumerate(sums[1:].tolist(), 1):
        guard.sent(tick / 10, per_s * tick // 10)
        guard.report(tick / 10, per_s * tick // 10, total * bunch, total, 0)
        guard.look(tick / 10)
    return guard.n_alarms, int((np.diff(over.astype(int)) == 1).sum())


def fires_after_s(per_s: int, bunch: int, loss: float, seed: int) -> float | None:
    """Return how long after losses begin the guard fires; None: not within a minute."""
    rng, per_tick, total = np.random.default_rng(seed), per_s / 10, 0
    guard = Guard(GuardLimits(MOST_LOSS, bunch), 0.0)
    for tick in range(1, 801):
        now = 0.9 * MOST_LOSS if tick <= 200 else loss
        total += int(rng.poisson(per_tick * now / bunch))
        guard.report(tick / 10, per_s * tick // 10, total * bunch, total, 0)
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


def within_goal(per_s: int, bunch: int) -> float:
    """Return in which part of many trials the guard fires in time where half is lost."""
    times = (fires_after_s(per_s, bunch, HALF, seed) for seed in range(MANY_TRIALS))
    return sum(time is not None and time <= GOAL_S for time in times) / MANY_TRIALS


def most_within_goal(per_s: int, bunch: int) -> float:
    """Return the same of the most powerful test of what is lost in that time.

    It fires at so many events, and sometimes at one less, that its chance is just the guard's.
    """
    bearable, halved = (per_s * GOAL_S * loss / bunch for loss in (MOST_LOSS, HALF))
    k = int(poisson.isf(CHANCE, bearable)) + 1
    sometimes = (CHANCE - poisson.sf(k - 1, bearable)) / poisson.pmf(k - 1, bearable)
    return float(poisson.sf(k - 1, halved) + sometimes * poisson.pmf(k - 1, halved))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--hours", type=float, default=10.0)
    hours = parser.parse_args().hours
    print(
        f"| packets/s | bunches of | false alarms in {hours:g} h | by 1 % in a second, an hour "
        f"| half is lost: s | within {GOAL_S:g} s, % | by any test, % | 5 % is lost: s |"
    )
    print("|--:|--:|--:|--:|--:|--:|--:|--:|")
    for per_s in RATES:
        for bunch in BUNCHES:
            alarms, others = false_alarms(per_s, bunch, hours, seed=per_s + bunch)
            half, twentieth = (fired_text(per_s, bunch, loss) for loss in (HALF, TWENTIETH))
            parts = (within_goal(per_s, bunch), most_within_goal(per_s, bunch))
            in_time = " | ".join(f"{100 * part:.1f}" for part in parts)
            print(
                f"| {per_s} | {bunch} | {alarms} | {others / hours:.0f} | {half} | {in_time} "
                f"| {twentieth} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
