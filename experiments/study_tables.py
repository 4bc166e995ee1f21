"""Put a report's numbers and pictures into the documentation.

    datacollect report RESULTS -o REPORT --verdicts experiments/paper
    python experiments/study_tables.py REPORT --sweeps RESULTS

The report's CSV files of means, predictions and claims go to experiments/results/study/, all but a
few into one file (published_tables.py); what was published before stays there until the same world,
or the same sweep, is reported again. Each table of the study's pages is a file
docs/tables/study_*.md, which a page includes. Its first line, `<!-- table: NAME -->`, says what is
written below it from these files. NAME is "claims", "claims side by side", "readings", "sweeps", or
the name of a sweep and what of it: "figure3 makespan", "figure3 across", "figure3 prediction" or
"probes own", with a choice of rows as in "figure3 makespan flows=60". Those of the sweeps' pictures
that a page shows go to docs/figures/study_NAME.png. The numbers of sentences are written, too
(study_numbers.py). With --sweeps also the rows of all runs are kept, from which `datacollect report
experiments/results/study/rows --verdicts experiments/paper` makes all of it again.
Makes no number of its own.
"""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import sys
from pathlib import Path

import pandas as pd
import published_tables
import study_numbers
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
from shown_tables import TABLES
from study_texts import (
    beside_base,
    by_packets,
    claims,
    comparisons,
    controls,
    makespans,
    predictions,
    readings,
    side_by_side,
    sweeps,
)

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent / "docs"
NAMED = re.compile(r"<!-- table: (?P<name>[^>]+?) -->\n")
# Tables that speak of several worlds or sweeps, and the columns that name one.
WORLDS = {
    "claims.csv": ["where", "method"],
    "readings.csv": ["where", "reading", "method"],
    "sweeps.csv": ["sweep"],
}


def main() -> None:
    """Publish a report, and write what pages show of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("report", type=Path, help="folder that `datacollect report` wrote")
    parser.add_argument("--sweeps", type=Path, help="folder of the sweeps: keep their rows, too")
    parser.add_argument("--docs", type=Path, default=DOCS)
    parser.add_argument("--results", type=Path, default=HERE / "results" / "study")
    options = parser.parse_args()
    if not (options.report / "claims.csv").is_file():
        sys.exit(
            f"{options.report}: no claims.csv; write a report with `datacollect report DIR "
            "--verdicts experiments/paper`"
        )
    figures, tables = options.docs / "figures", options.docs / "tables"
    figures.mkdir(parents=True, exist_ok=True)
    options.results.mkdir(parents=True, exist_ok=True)
    shown = "".join(page.read_text(encoding="utf-8") for page in options.docs.glob("study*.md"))
    for picture in sorted(options.report.glob("*.png")):
        if f"study_{picture.name}" in shown:
            shutil.copy(picture, figures / f"study_{picture.name}")
    if options.sweeps is not None:
        keep_rows(options.sweeps, options.results / "rows")
    for table in sorted(options.report.glob("*.csv")):
        # Single runs are many; the sweep's folder has them.
        if not table.name.endswith("_runs.csv"):
            keep(table, options.results)
    fill(tables, options.results)
    try:
        study_numbers.write(options.results, file=tables / study_numbers.NUMBERS.name)
    except ValueError as error:
        # Tables are written; a sentence may speak of runs that results have no more.
        sys.exit(
            f"{study_numbers.SOURCES}: {error}; rewrite the sentence that has this number, and "
            "then run study_numbers.py"
        )


def keep(table: Path, results: Path) -> None:
    """Publish a table; of claims and sweeps those stay that the report does not speak of."""
    named = WORLDS.get(table.name)
    old = None if named is None else published_tables.read(results, table.name)
    if named is None or old is None:
        published_tables.keep(results, table.name, table.read_text(encoding="utf-8"))
        return
    new = pd.read_csv(table, dtype=str, keep_default_na=False)
    is_new = set(new[named].itertuples(index=False, name=None))
    kept = [row not in is_new for row in old[named].itertuples(index=False, name=None)]
    found = pd.concat([new, old[kept]], ignore_index=True)
    if table.name == "claims.csv":
        found = by_claim(found)
    elif table.name == "sweeps.csv":
        found = found.sort_values("sweep", kind="stable")
    published_tables.keep(results, table.name, found.to_csv(index=False))


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


def fill(tables: Path = TABLES, results: Path = published_tables.RESULTS) -> None:
    """Write the study's tables; those of which nothing was run stay."""
    for file in tables.glob("study_*.md"):
        file.write_text(filled(file.read_text(encoding="utf-8"), results), encoding="utf-8")


def filled(text: str, results: Path) -> str:
    """Return a table's file, written again from the results."""
    found = NAMED.match(text)
    assert found, "the first line of a table's file has its name"
    made = table_of(found["name"], results)
    return text if made is None else f"{found[0]}\n{made}\n"


def table_of(name: str, report: Path) -> str | None:
    """Return one table in Markdown; None where the report has no such runs."""
    sweep, *words = shlex.split(name)
    if sweep == "claims":
        make = {"": claims, "side by side": side_by_side}
        return make[" ".join(words)](by_packets(published_tables.read(report, "claims.csv")))
    if sweep == "readings":
        table = published_tables.read(report, "readings.csv")
        return None if table is None else readings(table)
    if sweep == "sweeps":
        return sweeps(published_tables.read(report, "sweeps.csv"))
    kind, *choice = words
    makers = {
        "makespan": ("summary", makespans),
        "prediction": ("prediction", predictions),
        "across": ("across", comparisons),
        "own": ("own", beside_base),
        "frontier": ("frontier", frontier_text),
        "settings": ("settings", settings_text),
        "means": ("means", means_text),
        "errors": ("errors", errors_text),
        "ratios": ("ratios", lambda table: ratios_text(table, REACHES.get(sweep, {}))),
        "optimum": ("optimum", optimum_text),
        "reference": ("reference", reference_text),
        "begins": ("begins", begins_text),
        "coverage": ("coverage", coverage_text),
        "control": ("control", controls),
    }
    if kind not in makers:
        sys.exit(f"table {name!r}: must be one of {', '.join(makers)}, got {kind!r}")
    suffix, make = makers[kind]
    file = f"{sweep}_{suffix}.csv"
    table = published_tables.read(report, file)
    if table is None:
        return None
    for part in choice:
        axis, _, label = part.partition("=")
        if axis not in table:
            sys.exit(f"table {name!r}: {file} has no column {axis!r}")
        table = table[table[axis] == label]
    return make(table) if len(table) else None


if __name__ == "__main__":
    main()
