"""Put a report's numbers and pictures into the documentation.

    datacollect report RESULTS -o REPORT
    python experiments/study_tables.py REPORT --sweeps RESULTS

The report's CSV files of means, predictions and claims go to experiments/results/study/; what was
published before stays there until the same world, or the same sweep, is reported anew. Between
`<!-- table: NAME -->` and `<!-- end -->` in docs/study*.md and experiments/README.md the table NAME
is written anew from these files. NAME is "claims", "claims side by side", "claims in short",
"readings", "sweeps", or the name of a sweep and what of it: "figure3 makespan", "figure3 across"
or "figure3 prediction", with a choice of rows as in "figure3 makespan flows=60". Those of the
sweeps' pictures that a page shows go to docs/figures/study_NAME.png. Numbers in sentences are
filled from the same files (study_fields.py). With --sweeps also the rows of all runs are kept, from
which `datacollect report experiments/results/study/rows` makes all of it again. Makes no number of
its own.
"""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import sys
from pathlib import Path

import pandas as pd
from adaptive_texts import (
    REACHES,
    begins_text,
    coverage_text,
    errors_text,
    frontier_text,
    means_text,
    optimum_text,
    ratios_text,
    reference_text,
    settings_text,
)
from control_variate import table as control_text
from study_fields import pages, with_fields

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "study.md"
README = HERE / "README.md"
MARKED = re.compile(r"(<!-- table: (?P<name>[^>]+?) -->\n).*?(<!-- end -->)", re.DOTALL)
# Columns of a summary that name neither a setting nor a method.
MEASURES_FROM = "connections"
ACROSS_FROM = "settings"
# What stands below the table of sweeps, since it is long.
COMMAND = "to add or tighten"
# Tables that speak of several worlds or sweeps, and the columns that name one.
WORLDS = {
    "claims.csv": ["where", "method"],
    "readings.csv": ["where", "reading", "method"],
    "sweeps.csv": ["sweep"],
}
# Where a reading differs from the base scenario, as a report names it, and in plain words.
READINGS = {
    r"hosts\.sources = \[.*\]": "sources in stubs",
    r'transport\.preset = "ns-2"': "ns-2's TCP",
    r"hosts\.seed = 1; backlog\.seed = 1": "fixed places and backlogs",
    r'method\.first = "relay"': "best-path first with a relay",
    r"seeds chosen for halves(_fluid)?": "seeds in which direct moves half over each peering wire",
}
# The paper's claims in a few words.
IN_WORDS = {
    "C1": "under 1:1 the others take more than 2 times coordinated's time",
    "C2": "under 2:1 direct takes 2.56 and best-path 1.64 times of it",
    "C3": "under 1:1 direct and best-path are alike",
    "C4": "under unequal load best-path beats direct",
    "C5": "the same with 0, 5 and 20 % of UDP",
    "C6": "wrong estimates: coordinated takes 1.46 and 1.24 times its own time",
    "C7": "wrong estimates: best-path against coordinated, and against itself",
    "C8": "storage over direct's: at most 1.04; best-path up to 1.73",
    "C9": "background TCP keeps 0.91 to 0.98 of what direct leaves it",
    "C10": "means known to 5 %",
    "C11": "planning takes a few seconds",
    "C12": "Figure 1's example",
    "C13": "direct in parallel is as fast as direct in turns",
    "C14": "where one wire is far better, best-path and coordinated are alike",
    "C15": "at +70 or +50 % best-path can be slower than direct",
    "C16": "to under-estimate the congested wire does not touch best-path",
}


def main() -> None:
    """Fill the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("report", type=Path, help="folder that `datacollect report` wrote")
    parser.add_argument("--sweeps", type=Path, help="folder of the sweeps: keep their rows, too")
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--readme", type=Path, default=README)
    parser.add_argument("--results", type=Path, default=HERE / "results" / "study")
    options = parser.parse_args()
    if not (options.report / "claims.csv").is_file():
        sys.exit(f"{options.report}: no claims.csv; write a report with `datacollect report DIR`")
    figures = options.page.parent / "figures"
    figures.mkdir(parents=True, exist_ok=True)
    options.results.mkdir(parents=True, exist_ok=True)
    shown = "".join(page.read_text(encoding="utf-8") for page in pages(options.page))
    for picture in sorted(options.report.glob("*.png")):
        if f"study_{picture.name}" in shown:
            shutil.copy(picture, figures / f"study_{picture.name}")
    if options.sweeps is not None:
        keep_rows(options.sweeps, options.results / "rows")
    for table in sorted(options.report.glob("*.csv")):
        # Single runs are many; the sweep's folder has them.
        if not table.name.endswith("_runs.csv"):
            keep(table, options.results / table.name)
    for page in (*pages(options.page), options.readme):
        text = filled(page.read_text(encoding="utf-8"), options.results)
        page.write_text(text, encoding="utf-8")
        try:
            page.write_text(with_fields(text, options.results), encoding="utf-8")
        except ValueError as error:
            # Tables are written; a sentence may speak of runs that results have no more.
            sys.exit(f"{page}: {error}; write its sentence anew, and then run study_fields.py")


def keep(table: Path, published: Path) -> None:
    """Publish a table; of claims and sweeps those stay that the report does not speak of."""
    named = WORLDS.get(table.name)
    if named is None or not published.exists():
        shutil.copy(table, published)
        return
    new, old = read(table), read(published)
    is_new = set(new[named].itertuples(index=False, name=None))
    kept = [row not in is_new for row in old[named].itertuples(index=False, name=None)]
    found = pd.concat([new, old[kept]], ignore_index=True)
    if table.name == "claims.csv":
        found = by_claim(found)
    elif table.name == "sweeps.csv":
        found = found.sort_values("sweep", kind="stable")
    found.to_csv(published, index=False)


def by_claim(table: pd.DataFrame) -> pd.DataFrame:
    """Return rows by claim and part; what was run nowhere has one row, if no other speaks of it."""
    parts = list(zip(table["claim"], table["part"], strict=True))
    is_run = table["where"] != ""
    spoken = {part for part, run in zip(parts, is_run, strict=True) if run}
    once = ~table.duplicated(["claim", "part", "where", "method"])
    kept = is_run | pd.Series([part not in spoken for part in parts], index=table.index)
    place = {part: i for i, part in enumerate(dict.fromkeys(parts))}
    order = [(int(claim.removeprefix("C")), place[claim, part]) for claim, part in parts]
    table = table.assign(order=order)[kept & once].sort_values("order", kind="stable")
    return table.drop(columns="order")


def keep_rows(sweeps: Path, folder: Path) -> None:
    """Keep one row for each run, so that every interval can be computed from them again."""
    from datacollect.study.report.folders import read_sweeps
    from datacollect.study.report.published import publish

    for sweep in read_sweeps(sweeps):
        publish(sweep, folder / sweep.name)


def filled(text: str, results: Path) -> str:
    """Return the page with its tables made anew; those of which nothing was run stay."""

    def table(found: re.Match[str]) -> str:
        made = table_of(found["name"], results)
        return found[0] if made is None else f"{found[1]}\n{made}\n\n{found[3]}"

    return MARKED.sub(table, text)


def table_of(name: str, report: Path) -> str | None:
    """Return one table in Markdown; None where the report has no such runs."""
    sweep, *words = shlex.split(name)
    if sweep == "claims":
        make = {"": claims, "in short": claims_in_short, "side by side": side_by_side}
        return make[" ".join(words)](by_packets(read(report / "claims.csv")))
    if sweep == "readings":
        file = report / "readings.csv"
        return readings(read(file)) if file.exists() else None
    if sweep == "sweeps":
        return sweeps(read(report / "sweeps.csv"))
    kind, *choice = words
    makers = {
        "makespan": ("summary", makespans),
        "prediction": ("prediction", predictions),
        "across": ("across", comparisons),
        "frontier": ("frontier", frontier_text),
        "settings": ("settings", settings_text),
        "means": ("means", means_text),
        "errors": ("errors", errors_text),
        "ratios": ("ratios", lambda table: ratios_text(table, REACHES.get(sweep, {}))),
        "optimum": ("optimum", optimum_text),
        "reference": ("reference", reference_text),
        "begins": ("begins", begins_text),
        "coverage": ("coverage", coverage_text),
        "control": ("control", control_text),
    }
    if kind not in makers:
        sys.exit(f"table {name!r}: must be one of {', '.join(makers)}, got {kind!r}")
    suffix, make = makers[kind]
    file = report / f"{sweep}_{suffix}.csv"
    if not file.exists():
        return None
    table = read(file)
    for part in choice:
        axis, _, label = part.partition("=")
        if axis not in table:
            sys.exit(f"table {name!r}: {file} has no column {axis!r}")
        table = table[table[axis] == label]
    return make(table) if len(table) else None


def read(file: Path) -> pd.DataFrame:
    """Return a table whose labels stay text."""
    return pd.read_csv(file, dtype=str, keep_default_na=False)


def claims(table: pd.DataFrame) -> str:
    """Return the claims and verdicts."""
    rows = [
        [
            row["claim"],
            row["statement"],
            row["paper"],
            row["method"],
            f"{interval(row, 'value', 'low', 'high')} ({'; '.join(circumstances(row))})",
            row["equal_connections"],
            f"**{row['verdict']}**{settled_words(row)}: {row['why']}",
        ]
        for row in table.to_dict("records")
    ]
    head = (
        "claim|the paper says|its number|coordinated method|found"
        "|direct with as many, over coordinated|verdict"
    )
    return markdown(head.split("|"), rows)


def circumstances(row: dict[str, str]) -> list[str]:
    """Return size, setting, seeds and connections; of several settings what they share."""
    words = [row["where"], row["setting"].partition(": ")[0]]
    if row["seeds"] != "0":
        words += [f"{row['seeds']} seeds", f"{row['connections']} connections"]
    return words


def claims_in_short(table: pd.DataFrame) -> str:
    """Return the claims and verdicts with one line each, and without reasons."""
    rows = [
        [
            row["claim"],
            row["verdict"] + settled_words(row),
            row["statement"],
            row["paper"],
            row["method"],
            interval(row, "value", "low", "high"),
            row["equal_connections"],
            row["where"],
        ]
        # What has a single seed is in the longer table.
        for row in table.to_dict("records")
        if row["verdict"] != "not run"
    ]
    head = (
        "claim|verdict|the paper says|its number|coordinated method|found"
        "|direct with as many connections, over coordinated|where"
    )
    return markdown(head.split("|"), rows)


def side_by_side(table: pd.DataFrame) -> str:
    """Return a row for each claim: what it says, the verdict on the paper's method, and on ours."""
    rows = []
    for claim, of_claim in table.groupby("claim", sort=False):
        statements = list(dict.fromkeys(of_claim["part"]))
        cells = []
        for whose in ("the paper's", "ours"):
            # What has no coordinated plan in it is said of both.
            mine = of_claim[of_claim["method"].str.startswith(whose) | (of_claim["method"] == "")]
            found = {part: best_row(mine[mine["part"] == part]) for part in statements}
            words = [part_words(part, row) for part, row in found.items()]
            cells.append("<br>".join(words) if any(found.values()) else part_words("", None))
        rows.append([f"{claim}: {IN_WORDS[str(claim)]}", *cells])
    return markdown(["claim", "the paper's method", "ours, pipelined"], rows)


def best_row(rows: pd.DataFrame) -> dict[str, str] | None:
    """Return the row of the world that is most like the paper's, among those with a verdict."""
    judged = rows[(rows["verdict"] != "not run")]
    ranked = sorted(
        judged.to_dict("records"),
        key=lambda row: ("probes of 5 MB, mean" not in row["where"], "full" in row["where"]),
    )
    return ranked[0] if ranked else None


def part_words(part: str, row: dict[str, str] | None) -> str:
    """Return one verdict with its number and seeds."""
    named = f"{part}: " if part else ""
    if row is None:
        return f"{named}not run yet"
    n = row["seeds"]
    seeds = "" if n == "0" else f", {n} seed{'' if n == '1' else 's'}"
    found = interval(row, "value", "low", "high")
    return f"{named}**{row['verdict']}**{settled_words(row)}, {found}{seeds}"


def by_packets(claims: pd.DataFrame) -> pd.DataFrame:
    """Return what was judged packet by packet, or planned: the paper's own means.

    Max-min fair rates are judged too, in claims.csv, for readings to stand beside them.
    """
    return claims[~claims["where"].str.startswith("fluid engine")]


def settled_words(row: dict[str, str]) -> str:
    """Say where more runs may change the verdict."""
    is_open = row["verdict"] != "not run" and row["is_settled"] == "no"
    return " (not settled)" if is_open else ""


def readings(table: pd.DataFrame) -> str:
    """Return which verdicts other readings of the paper's text change, a row for each reading."""
    rows = []
    for (where, reading, method), part in table.groupby(["where", "reading", "method"], sort=False):
        changed = part[part["changes"] == "yes"]
        words = [
            f"{row['claim']} {row['part']}: {row['base_verdict']} → {row['verdict']} "
            f"({short(row['base_value'])} → {interval(row, 'value', 'value_low', 'value_high')})"
            for row in changed.to_dict("records")
        ]
        seeds = " or ".join(sorted(set(part["seeds"]), key=int))
        cells = [reading_words(str(reading)), str(where), str(method), seeds, str(len(part))]
        rows.append([*cells, "; ".join(words) or "none"])
    head = "reading|where|coordinated method|seeds|parts judged|verdicts that change"
    return markdown(head.split("|"), rows)


def reading_words(reading: str) -> str:
    """Return in plain words where a reading differs from the base scenario.

    >>> reading_words('hosts.seed = 1; backlog.seed = 1; method.first = "relay"')
    'fixed places and backlogs; best-path first with a relay'
    """
    for pattern, words in READINGS.items():
        reading = re.sub(pattern, words, reading)
    return reading


def sweeps(table: pd.DataFrame) -> str:
    """Return how the numbers were made, a row for each sweep, and what adds to them."""
    facts = [fact for fact in dict.fromkeys(table["fact"]) if fact != COMMAND]
    values = table.set_index(["sweep", "fact"])["value"]
    names = list(dict.fromkeys(table["sweep"]))
    rows = [[name, *(values[name, fact] for fact in facts)] for name in names]
    commands = [values[name, COMMAND] for name in names]
    return "\n".join([markdown(["sweep", *facts], rows), "", "```sh", *commands, "```"])


def makespans(table: pd.DataFrame) -> str:
    """Return makespans and ratios of each setting and method."""
    axes = list(table.columns[: list(table.columns).index(MEASURES_FROM)])
    names = {
        "makespan_s": "makespan, s",
        "over_coordinated": "over coordinated",
        "over_ours": "over ours",
        "over_as_many": "over direct with as many",
        "storage_over_direct": "storage over direct's, means",
        "storage_mean": "mean of ratios",
        "tcp_over_direct": "background TCP over direct's",
    }
    # Reports of earlier versions lack some.
    names = {name: words for name, words in names.items() if name in table}
    rows = [
        [
            *(row[axis] for axis in axes),
            short(row["connections"]),
            row["seeds"],
            *(interval(row, name, f"{name}_low", f"{name}_high") for name in names),
        ]
        for row in table.to_dict("records")
    ]
    return markdown([*axes, "connections", "seeds", *names.values()], rows)


def comparisons(table: pd.DataFrame) -> str:
    """Return ratios over all settings together."""
    ways = list(table.columns[: list(table.columns).index(ACROSS_FROM)])
    names = {
        "over_direct": "over direct",
        "over_as_many": "over direct with as many",
        "over_coordinated": "over coordinated",
        "over_ours": "over ours",
    }
    # Reports of earlier versions lack some.
    names = {name: words for name, words in names.items() if name in table}
    rows = [
        [
            *(row[way] for way in ways),
            row["settings"],
            short(row["connections"]),
            *(
                cell
                for name in names
                for cell in (interval(row, name, f"{name}_low", f"{name}_high"), counts(row, name))
            ),
        ]
        for row in table.to_dict("records")
    ]
    head = [cell for name in names.values() for cell in (name, "faster, slower, open")]
    return markdown([*ways, "settings", "connections", *head], rows)


def counts(row: dict[str, str], name: str) -> str:
    """Return in how many settings a method was faster, slower, and neither by its interval.

    Of a method beside itself there is nothing to count.
    """
    if row[f"{name}_smallest"] == row[f"{name}_largest"] == "1":
        return ""
    faster, slower, n = (int(row[f"{name}_{word}"]) for word in ("faster", "slower", "settings"))
    return f"{faster}, {slower}, {n - faster - slower}" if n else ""


def predictions(table: pd.DataFrame) -> str:
    """Return predictions against measurements."""
    axes = list(table.columns[: list(table.columns).index(MEASURES_FROM)])
    name = "predicted_over_measured"
    rows = [
        [
            *(row[axis] for axis in axes),
            short(row["connections"]),
            row["seeds"],
            short(row["predicted_s"]),
            short(row["makespan_s"]),
            interval(row, name, f"{name}_low", f"{name}_high"),
            interval(row, "over_as_many", "over_as_many_low", "over_as_many_high"),
            f"{row['busiest_wire']} ({percent(row['busiest_share'])})"
            if row["is_off"] == "yes"
            else "",
        ]
        for row in table.to_dict("records")
    ]
    head = [*axes, "connections", "seeds", "predicted, s", "measured, s", "predicted over measured"]
    ends = ["measured over direct with as many", "busiest wire where it is off (share of runs)"]
    return markdown([*head, *ends], rows)


def interval(row: dict[str, str], name: str, low: str, high: str) -> str:
    """Return a value and its interval."""
    ends = f" [{short(row[low])}, {short(row[high])}]" if row[low] else ""
    return f"{short(row[name])}{ends}" if row[name] else ""


def short(number: str) -> str:
    """Return a number with three digits."""
    return f"{float(number):.3g}" if number else ""


def percent(share: str) -> str:
    """Return a share in percent."""
    return f"{100 * float(share):.0f} %" if share else ""


def markdown(head: list[str], rows: list[list[str]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        "| " + " | ".join(c.replace("|", "\\|") for c in line) + " |" for line in lines
    )


if __name__ == "__main__":
    main()
