"""The study's tables of a report as text, in Markdown; `study_tables.py` puts them into pages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

# Columns of a summary that name neither a setting nor a method.
MEASURES_FROM = "connections"
ACROSS_FROM = "settings"
# What stands below the table of sweeps, since it is long.
COMMAND = "to add or tighten"
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


def claims(table: pd.DataFrame) -> str:
    """Return the claims and verdicts; those without a coordinated plan in them once."""
    said = ["claim", "part", "where", "value", "low", "high"]
    is_either = (table["method"] != "") & table.duplicated(said, keep=False)
    table = table.assign(
        method=table["method"].mask(is_either, "either"),
        equal_connections=table["equal_connections"].mask(is_either, ""),
    ).drop_duplicates([*said, "method"])
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
        words += [counted(row), f"{row['connections']} connections"]
    return words


def counted(row: dict[str, str]) -> str:
    """Return how many seeds, or pairs of runs of one seed, made the interval.

    C11's is one over runs of all settings, several of each seed.
    """
    one = "run" if row["claim"] == "C11" else "seed"
    return f"{row['seeds']} {one}{'' if row['seeds'] == '1' else 's'}"


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
        if cells[0] == cells[1] != part_words("", None):
            cells[1] = "the same runs"
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
    """Return one verdict with its number and seeds; a dash where there is none."""
    named = f"{part}: " if part else ""
    if row is None:
        return f"{named}–"
    seeds = "" if row["seeds"] == "0" else f", {counted(row)}"
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
            f"({interval(row, 'base_value', 'base_value_low', 'base_value_high')} → "
            f"{interval(row, 'value', 'value_low', 'value_high')})"
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


def beside_base(table: pd.DataFrame) -> str:
    """Return makespans of each setting and method, and over those of what it is compared with."""
    axes = list(table.columns[: list(table.columns).index("seeds")])
    rows = [
        [
            *(row[axis] for axis in axes),
            short(row["connections"]),
            row["seeds"],
            interval(row, "makespan_s", "makespan_s_low", "makespan_s_high"),
            row["base"],
            interval(row, "over_base", "over_base_low", "over_base_high"),
        ]
        for row in table.to_dict("records")
    ]
    head = [*axes, "connections", "seeds", "makespan, s", "compared with", "over that"]
    return markdown(head, rows)


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


def controls(means: pd.DataFrame) -> str:
    """Return means without and with a control variate, in Markdown."""
    names = {"plain_s": "mean, s", "controlled_s": "with control, s", "cut": "variance taken away"}
    return markdown([names.get(name, name) for name in means], means.to_numpy().tolist())


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
