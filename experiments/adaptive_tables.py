"""Tables and a figure for the study: gains of the adaptive method, and its costs to others.

    datacollect sweep experiments/harm.toml -o RESULTS/harm
    datacollect sweep experiments/families.toml -o RESULTS/families
    for n in 1 2 3; do datacollect sweep experiments/reach.toml -o RESULTS/reach --seeds $n; done
    datacollect sweep experiments/reach_5mb.toml -o RESULTS/reach_5mb --seeds 10 \\
        --reuse experiments/results/study/rows/figure3_paper
    datacollect sweep experiments/thrice.toml -o RESULTS/thrice --seeds 10 --reuse RESULTS/reach
    datacollect sweep experiments/thrice_fluid.toml -o RESULTS/thrice_fluid --seeds 10
    datacollect sweep experiments/pulled.toml -o RESULTS/pulled --seeds 10 \\
        --reuse RESULTS/reach --only "method=coordinated,pull,direct over 16 connections"
    datacollect sweep experiments/pulled_fluid.toml -o RESULTS/pulled_fluid
    datacollect sweep experiments/errors_ns3.toml -o RESULTS/errors_ns3 --seeds 10 \\
        --reuse RESULTS/reach
    datacollect sweep experiments/prediction_ns3.toml -o RESULTS/prediction_ns3 --seeds 5 \\
        --reuse RESULTS/reach
    datacollect sweep experiments/sample.toml -o RESULTS/sample --seeds 2
    python experiments/adaptive_tables.py RESULTS

Of those sweeps that are there, with what NAME_more has of them, it writes tables into
results/study/tables.txt (harm_frontier.csv, NAME_ratios.csv, NAME_reference.csv, NAME_settings.csv,
families_means.csv, NAME_errors.csv, NAME_coverage.csv), docs/figures/study_harm.png, and from
these docs/tables/study_*.md. Ratios are geometric means over seeds of makespans in the same seed,
with 95 % intervals by Student's t of their logarithms; with one seed there is none.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import published_tables
from adaptive_texts import BEHIND, UNDER_LOAD
from scipy import stats
from study_tables import fill

if TYPE_CHECKING:
    from collections.abc import Iterable

HERE = Path(__file__).resolve().parent
RESULTS = published_tables.RESULTS
FIGURE = HERE.parent / "docs" / "figures" / "study_harm.png"
CONFIDENCE = 0.95
COORDINATED, AS_MANY = "coordinated", "direct as many as coordinated"
ADAPTIVE = ("adaptive", "adaptive, chains alone")
# What `datacollect pull` does, and direct with as many connections as its default.
PULLS = ("pull", "pull with known links", "pull coordinated with known links")
AS_PULL = "direct over 16 connections"
BEST_PATH = "best-path"
RIGHT_ESTIMATES = "errors: none, 1:3"
LARGEST_ERRORS = {"+70 %, 1:3", "-70 %, 1:3"}
# Means over settings are of all that have others' flows.
LOADED_SETTINGS = 4
MB = 1e6
# What the figure's axes name.
LOSSES = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7)
SECONDS = (30, 50, 100, 200, 300, 500)


def geometric(ratios: Iterable[float]) -> tuple[float, float, float]:
    """Return the geometric mean and its interval; NaN at its ends for a single ratio.

    >>> [round(x, 3) for x in geometric([0.5, 0.5])]
    [0.5, 0.5, 0.5]
    """
    logs = np.log(list(ratios))
    mean = float(logs.mean())
    if len(logs) < 2:
        return float(np.exp(mean)), float("nan"), float("nan")
    reach = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(logs) - 1) * stats.sem(logs))
    return float(np.exp(mean)), float(np.exp(mean - reach)), float(np.exp(mean + reach))


def frontier(runs: pd.DataFrame) -> pd.DataFrame:
    """Return, for each setting and method, how soon it ends and what others lose."""
    rows = []
    for setting, of_setting in runs.groupby("setting", sort=False):
        direct = of_setting[of_setting["method"] == "direct"].set_index("seed")
        for method, found in of_setting.groupby("method", sort=False):
            during = found.set_index("seed")["tcp_during_bytes_per_s"]
            kept = during / direct["tcp_during_bytes_per_s"].reindex(during.index)
            rows.append(
                {
                    "setting": setting,
                    "method": method,
                    "seeds": len(found),
                    "connections": round(float(found["connections"].mean()), 1),
                    "makespan_s": round(float(found["makespan_s"].mean()), 1),
                    "part_lost": round(float(found["tcp_loss"].mean()), 3),
                    "kept_over_direct": round(float(kept.mean()), 3),
                    "lost_mb": round(float(found["tcp_lost_bytes"].mean()) / MB, 1),
                    "lost_mb_sd": round(float(found["tcp_lost_bytes"].std()) / MB, 1),
                }
            )
    table = pd.DataFrame(rows)
    return table.sort_values(["setting", "makespan_s"], ascending=[True, False], kind="stable")


def pulled(runs: pd.DataFrame) -> pd.DataFrame:
    """Return what `pull` takes over the others in the same seed, for each setting."""
    return ratios(runs, PULLS, AS_PULL)


def ratios(
    runs: pd.DataFrame, methods: Iterable[str] = ADAPTIVE, as_many: str = AS_MANY
) -> pd.DataFrame:
    """Return what adaptive takes over the others in the same seed, for each setting."""
    rows = []
    for method in methods:
        loaded: list[tuple[float, float]] = []
        for setting, of_setting in runs.groupby("setting", sort=False):
            times = of_setting.pivot_table(index="seed", columns="method", values="makespan_s")
            if not {method, COORDINATED, as_many} <= set(times):
                continue
            times = times.dropna(subset=[method, COORDINATED, as_many])
            over = [(times[method] / times[other]).tolist() for other in (COORDINATED, as_many)]
            if not over[0]:
                continue
            found = [geometric(each) for each in over]
            if setting != "none":
                loaded.append((found[0][0], found[1][0]))
            rows.append(_row(method, str(setting), len(times), found))
        if len(loaded) >= LOADED_SETTINGS:
            both = [geometric(each) for each in zip(*loaded, strict=True)]
            bare = [(mean, float("nan"), float("nan")) for mean, _, _ in both]
            rows.append(_row(method, UNDER_LOAD, len(loaded), bare))
    return pd.DataFrame(rows)


def _row(
    method: str, setting: str, n: int, found: list[tuple[float, float, float]]
) -> dict[str, object]:
    row: dict[str, object] = {"method": method, "setting": setting, "n": n}
    for name, (mean, low, high) in zip(("coordinated", "as_many"), found, strict=True):
        row |= {
            f"over_{name}": round(mean, 3),
            f"over_{name}_low": round(low, 3),
            f"over_{name}_high": round(high, 3),
        }
    return row


def reference(runs: pd.DataFrame) -> pd.DataFrame:
    """Return how near adaptive comes to its reference, and what that takes over the others."""
    rows = []
    for method in ADAPTIVE:
        own = runs[runs["method"] == method].dropna(subset=["reference_s"])
        for setting in sorted(own["setting"].unique(), key=_in_order):
            found, of_setting = own[own["setting"] == setting], runs[runs["setting"] == setting]
            times = of_setting.pivot_table(index="seed", columns="method", values="makespan_s")
            bound = found.set_index("seed")["reference_s"]
            over = (times[method] / bound).dropna()
            mean, low, high = geometric(over)
            row = {
                "method": method,
                "setting": setting,
                "seeds": len(over),
                "over_reference": round(mean, 3),
                "over_reference_low": round(low, 3),
                "over_reference_high": round(high, 3),
                "most": round(float(over.max()), 3),
            }
            for name, other in (("coordinated", COORDINATED), ("as_many", AS_MANY)):
                ratio = (bound / times[other]).dropna()
                row[f"reference_over_{name}"] = round(geometric(ratio)[0], 3)
            row["sent_again"] = round(float(found["retransmissions"].fillna(0).mean()))
            rows.append(row)
    return pd.DataFrame(rows)


def coverage(runs: pd.DataFrame) -> pd.DataFrame:
    """Return how many runs end within the range that was predicted, sooner, and later."""
    predicted = runs.dropna(subset=["predicted_low_s", "predicted_high_s"])
    rows = []
    for method, found in predicted.groupby("method", sort=False):
        makespan_s = found["makespan_s"]
        within = makespan_s.between(found["predicted_low_s"], found["predicted_high_s"])
        # Clopper and Pearson's interval of the part that lies within.
        part = stats.binomtest(int(within.sum()), len(found)).proportion_ci(CONFIDENCE)
        rows.append(
            {
                "method": method,
                "runs": len(found),
                "within": int(within.sum()),
                "sooner": int((makespan_s < found["predicted_low_s"]).sum()),
                "later": int((makespan_s > found["predicted_high_s"]).sum()),
                "part_low": round(float(part.low), 3),
                "part_high": round(float(part.high), 3),
            }
        )
    return pd.DataFrame(rows)


# Families of settings -------------------------------------------------------------------------


def settings(runs: pd.DataFrame) -> pd.DataFrame:
    """Return adaptive over the best other method with as many connections, for each setting.

    The best of coordinated and direct with as many is the one whose makespans have the smaller
    geometric mean over the setting's seeds. Best-path opens fewer connections, so it counts where
    it is the fastest all the same.
    """
    rows = []
    for method in ADAPTIVE:
        for setting, times in _times(runs):
            others = [name for name in (COORDINATED, AS_MANY, BEST_PATH) if name in times]
            best = min(others, key=lambda name: float(np.log(times[name]).mean()))
            mean, low, high = geometric((times[method] / times[best]).tolist())
            rows.append(
                {
                    "method": method,
                    "family": setting.partition(":")[0],
                    "setting": setting.partition(": ")[2],
                    "seeds": len(times),
                    "best_other": best,
                    "over_best": round(mean, 3),
                    "over_best_low": round(low, 3),
                    "over_best_high": round(high, 3),
                }
            )
    return pd.DataFrame(rows)


def means(runs: pd.DataFrame) -> pd.DataFrame:
    """Return, for each family, the geometric mean over its settings, and the least favourable."""
    rows = []
    for (method, family), found in settings(runs).groupby(["method", "family"], sort=False):
        worst = found.loc[found["over_best"].idxmax()]
        mean, _, _ = geometric(found["over_best"])
        rows.append(
            {
                "method": method,
                "family": family,
                "settings": len(found),
                "mean": round(mean, 3),
                "worst": worst["over_best"],
                "worst_low": worst["over_best_low"],
                "worst_high": worst["over_best_high"],
                "worst_setting": worst["setting"],
                "behind": int((found["over_best_low"] > BEHIND).sum()),
            }
        )
    return pd.DataFrame(rows)


def errors(runs: pd.DataFrame) -> pd.DataFrame:
    """Return what wrong estimates cost each method: its makespans over those with right ones.

    Where both were run, the last rows are of the largest errors either way together.
    """
    found = dict(_times(runs))
    wrong = {
        setting.partition(": ")[2]: times / found[RIGHT_ESTIMATES]
        for setting, times in found.items()
        if setting.startswith("errors:") and setting != RIGHT_ESTIMATES
    }
    if wrong.keys() >= LARGEST_ERRORS:
        both = [wrong[errors] for errors in sorted(LARGEST_ERRORS)]
        # The mean of both, seed by seed: a seed is one draw, not two.
        wrong[" and ".join(sorted(LARGEST_ERRORS))] = np.exp(sum(map(np.log, both)) / len(both))
    rows = []
    for errors, ratios in wrong.items():
        for method in (m for m in (*ADAPTIVE, COORDINATED, BEST_PATH) if m in ratios):
            mean, low, high = geometric(ratios[method].dropna())
            rows.append(
                {
                    "estimates": errors,
                    "method": method,
                    "seeds": len(ratios[method].dropna()),
                    "over_right": round(mean, 3),
                    "over_right_low": round(low, 3),
                    "over_right_high": round(high, 3),
                }
            )
    return pd.DataFrame(rows)


def _times(runs: pd.DataFrame) -> Iterable[tuple[str, pd.DataFrame]]:
    """Yield each setting with its makespans, a row per seed that has all methods."""
    for setting in sorted(runs["setting"].unique(), key=_in_order):
        of_setting = runs[runs["setting"] == setting]
        times = of_setting.pivot_table(index="seed", columns="method", values="makespan_s").dropna()
        yield setting, times


def _in_order(label: str) -> list[tuple[int, str]]:
    """Return what sorts labels so that seed 2 comes before seed 10."""
    return [(int(p), "") if p.isdigit() else (-1, p) for p in re.split(r"(\d+)", label)]


# The figure ---------------------------------------------------------------------------------


def draw(table: pd.DataFrame, file: Path) -> None:
    """Draw makespans against the part of their rate that others lose, a panel for each setting."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import FixedLocator, NullLocator

    settings = list(dict.fromkeys(table["setting"]))
    columns = 2
    figure, panels = plt.subplots(
        -(-len(settings) // columns), columns, figsize=(9, 7), squeeze=False, layout="constrained"
    )
    for panel, setting in zip(panels.flat, settings, strict=False):
        found = table[table["setting"] == setting].sort_values("part_lost")
        lost = found["part_lost"].to_numpy()
        # All lose about the same bytes: time and rate lost are inverse to each other.
        middle = float(np.median(lost * found["makespan_s"].to_numpy()))
        along = np.geomspace(lost.min() / 1.15, lost.max() * 1.15, 50)
        panel.plot(along, middle / along, color="0.7", zorder=0, label="equal bytes")
        for name, marker in (("direct", "o"), ("coordinated", "s"), ("adaptive", "^")):
            of_kind = found[found["method"].str.startswith(name)]
            panel.plot(
                of_kind["part_lost"], of_kind["makespan_s"], marker, linestyle="none", label=name
            )
        for row in found.itertuples():
            n = f"{row.connections:.0f}"
            panel.annotate(
                n,
                (row.part_lost, row.makespan_s),
                textcoords="offset points",
                xytext=(5, 4),
                fontsize=8,
            )
        panel.set(xscale="log", yscale="log", title=setting)
        for axis, ticks in ((panel.xaxis, LOSSES), (panel.yaxis, SECONDS)):
            axis.set_major_locator(FixedLocator(ticks))
            axis.set_major_formatter("{x:g}")
            axis.set_minor_locator(NullLocator())
        panel.set_xlabel("part of their rate that others lose")
        panel.set_ylabel("makespan, s")
    panels.flat[0].legend(frameon=False, fontsize=8)
    figure.savefig(file, dpi=110)
    plt.close(figure)


def main() -> None:
    """Write tables and figure of the sweeps that are there, and those of the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, help="folder of the sweeps' folders")
    given = parser.parse_args()
    for name, make, suffix in (
        ("harm", frontier, "frontier"),
        ("harm", ratios, "ratios"),
        ("harm", reference, "reference"),
        ("reach", ratios, "ratios"),
        ("reach", reference, "reference"),
        ("reach_5mb", ratios, "ratios"),
        ("reach_5mb", reference, "reference"),
        ("pulled", pulled, "ratios"),
        ("pulled_fluid", pulled, "ratios"),
        ("thrice", ratios, "ratios"),
        ("thrice", reference, "reference"),
        ("thrice_fluid", reference, "reference"),
        ("families", settings, "settings"),
        ("families", means, "means"),
        ("families", errors, "errors"),
        ("sample", settings, "settings"),
        ("errors_ns3", errors, "errors"),
        ("prediction_ns3", coverage, "coverage"),
    ):
        files = [given.results / folder / "results.parquet" for folder in (name, f"{name}_more")]
        runs = [pd.read_parquet(file) for file in files if file.exists()]
        table = make(pd.concat(runs)) if runs else pd.DataFrame()
        if table.empty:
            print(f"{files[0]}: no seed has all methods, {name} stays as it was")
            continue
        published_tables.keep(RESULTS, f"{name}_{suffix}.csv", table.to_csv(index=False))
        if make is frontier:
            draw(table, FIGURE)
    fill()


if __name__ == "__main__":
    main()
