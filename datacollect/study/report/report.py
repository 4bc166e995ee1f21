"""From the folders of sweeps to pictures, tables, verdicts on the paper's claims, and one page."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datacollect.documents import write_atomically
from datacollect.study.report.across import across_table
from datacollect.study.report.cells import Cells, cells_of
from datacollect.study.report.claims import claims_table, findings
from datacollect.study.report.figures import draw_panels, panel_groups, picture_bytes
from datacollect.study.report.folders import read_sweeps
from datacollect.study.report.page import MOST_RUNS, page_html, plotly_script, run_tree, sweep_tree
from datacollect.study.report.panels import panels_of, panels_table
from datacollect.study.report.readings import readings_table
from datacollect.study.report.tables import prediction_table, summary_table
from datacollect.study.store import make_folder
from datacollect.units import format_duration

if TYPE_CHECKING:
    from os import PathLike

    import pandas as pd

    from datacollect.study.report.folders import SweepFolder
    from datacollect.study.report.panels import Panel

PAGE, CLAIMS, SWEEPS, FOLDER = "index.html", "claims.csv", "sweeps.csv", "report"
READINGS = "readings.csv"


@dataclass(frozen=True, eq=False)
class Report:
    """What a report consists of.

    Attributes
    ----------
    folder, page : Path
    claims : DataFrame
        The fields of `datacollect.study.report.judging.Finding`.
    files : tuple of str
        Names of all files in the folder, sorted.
    n_runs : int
    n_unreadable : int
        Files of runs that are cut short, and left out.
    """

    folder: Path
    page: Path
    claims: pd.DataFrame
    files: tuple[str, ...]
    n_runs: int
    n_unreadable: int


def report(directory: str | PathLike[str], output: str | PathLike[str] | None = None) -> Report:
    """Write the report of one sweep, or of all sweeps right below a folder.

    Parameters
    ----------
    directory : path-like
        Folder that `datacollect.study.sweep.sweep` filled, or one that holds several such. A sweep
        that is still running has a report of what is finished.
    output : path-like, optional
        Folder to write to; by default ``report`` in `directory`. Made if need be.

    Returns
    -------
    Report
        ``index.html`` is one page that needs no network. For each sweep there are pictures (PNG
        and SVG) and, as CSV, all numbers drawn, a summary of each setting and one over all
        settings, predictions against measurements, and the runs; ``claims.csv`` has the verdicts
        on the core paper's claims, ``readings.csv`` those under other readings of its text, if any
        were run, ``sweeps.csv`` how the numbers were made.

    Raises
    ------
    ProblemError
        There is no sweep, none of its runs is finished, or `output` cannot be written.
    DatacollectError
        Plotly is not installed.

    Examples
    --------
    >>> import tempfile
    >>> import datacollect as dc
    >>> experiment = dc.Experiment.from_dict(
    ...     {
    ...         "engine": "fluid",
    ...         "seeds": {"least": 2, "batch": 2},
    ...         "axes": [
    ...             {"name": "rate", "key": "topology.rate_bytes_per_s", "values": [1e5, 1e6]}
    ...         ],
    ...     },
    ...     scenario={
    ...         "topology": {"kind": "line", "n_nodes": 2, "rate_bytes_per_s": 1e6},
    ...         "hosts": {
    ...             "destination": {"at": "N0"},
    ...             "sources": [{"at": "N1", "backlog_bytes": 1_000_000}],
    ...         },
    ...     },
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = dc.sweep(experiment, folder, workers=0)
    ...     found = dc.report(folder)
    >>> found.n_runs, set(found.claims.loc[found.claims["claim"] < "C12", "verdict"])
    (4, {'not run'})
    >>> found.files[:4]
    ('claims.csv', 'experiment.csv', 'experiment.png', 'experiment.svg')
    """
    plotly = plotly_script()
    sweeps = read_sweeps(directory)
    folder = Path(directory, FOLDER) if output is None else Path(output)
    make_folder(folder, "the report")
    files: dict[str, bytes] = {}
    trees: list[dict[str, Any]] = []
    runs: dict[str, Any] = {}
    quota = max(1, MOST_RUNS // len(sweeps))
    for sweep in sweeps:
        if sweep.table.empty:
            continue
        parts = _Parts(sweep)
        files |= parts.files()
        shown = parts.runs(quota)
        runs |= shown
        trees.append(sweep_tree(sweep, parts.facts(), parts.panels, parts.tables, list(shown)))
    claims = claims_table(findings(sweeps))
    cells = cells_of(claims, CLAIMS)
    files[CLAIMS] = cells.to_csv().encode()
    readings = readings_table(sweeps)
    if not readings.empty:
        files[READINGS] = cells_of(readings, READINGS).to_csv().encode()
    facts = [[tree["name"], *fact] for tree in trees for fact in tree["facts"]]
    files[SWEEPS] = Cells(SWEEPS, ["sweep", "fact", "value"], facts).to_csv().encode()
    title = f"Report: {', '.join(tree['name'] for tree in trees)}"
    files[PAGE] = page_html(title, cells, trees, runs, plotly).encode()
    for name, content in files.items():
        write_atomically(folder / name, content)
    return Report(
        folder=folder,
        page=folder / PAGE,
        claims=claims,
        files=tuple(sorted(files)),
        n_runs=sum(len(sweep.table) for sweep in sweeps),
        n_unreadable=sum(sweep.n_unreadable for sweep in sweeps),
    )


class _Parts:
    """What is drawn and written of one sweep."""

    def __init__(self, sweep: SweepFolder) -> None:
        self.sweep, self.stem = sweep, file_stem(sweep.name)
        self.panels: list[Panel] = panels_of(sweep)
        self.summary = summary_table(sweep)
        self.tables = {
            "figure": self._cells("", panels_table(self.panels)),
            "summary": self._cells("_summary", self.summary),
            "prediction": self._cells("_prediction", prediction_table(sweep)),
        }
        across = across_table(sweep)
        if not across.empty:
            self.tables["across"] = self._cells("_across", across)

    def files(self) -> dict[str, bytes]:
        """Return contents by name."""
        cells = [*self.tables.values(), self._cells("_runs", self.sweep.table)]
        found = {table.file: table.to_csv().encode() for table in cells}
        for i, panels in enumerate(panel_groups(self.panels)):
            stem = self.stem if i == 0 else f"{self.stem}-{i + 1}"
            figure = draw_panels(panels, str(self.sweep.tree.get("title") or self.sweep.name))
            for suffix in ("png", "svg"):
                found[f"{stem}.{suffix}"] = picture_bytes(figure, suffix)
        return found

    def runs(self, most: int) -> dict[str, Any]:
        """Return single runs of the panels' points, the first seed of each."""
        found: dict[str, Any] = {}
        if self.sweep.engine != "ns3":
            return found
        keys = dict.fromkeys(key for panel in self.panels for key in panel.points["run"])
        for key in keys:
            tree = run_tree(self.sweep, key) if len(found) < most else None
            if tree is not None:
                found[key] = tree
        return found

    def facts(self) -> list[tuple[str, str]]:
        """Return how the numbers were made, and what would add to them."""
        sweep, tree, table = self.sweep, self.sweep.tree, self.sweep.table
        setting_axes = [axis.name for axis in sweep.axes if not axis.paired]
        n_run = len(table[setting_axes].drop_duplicates()) if setting_axes else 1
        seeds = table.groupby(setting_axes or "engine")["seed"].nunique()
        probes_s = table.groupby([*setting_axes, "seed"])["probes_cpu_s"].max().sum()
        versions = tree.get("versions") or {}
        return [
            ("engine, size", f"{sweep.engine}, scale {sweep.scale:g}"),
            ("runs", f"{len(table)}, of them {int((~table['complete']).sum())} incomplete"),
            ("failed", str(len(sweep.failures))),
            ("files cut short", str(sweep.n_unreadable)),
            ("settings run", f"{n_run} of {len(sweep.settings())}"),
            ("seeds of a setting", f"{seeds.min()} to {seeds.max()}"),
            ("precision", self._precision()),
            ("processor time", f"{format_duration(float(table['cpu_s'].sum() + probes_s))}"),
            ("last run", str(table["finished_at"].max())),
            ("versions", ", ".join(f"{name} {word}" for name, word in versions.items()) or "?"),
            ("to add or tighten", sweep.command(2 * int(table["seed"].nunique()))),
        ]

    def _precision(self) -> str:
        wanted = self.sweep.tree.get("precision")
        widths = self.summary["relative_half_width"]
        half_width = wanted["half_width"] if wanted else 0.05
        reached = int((widths <= half_width).sum())
        # A single seed has no interval.
        median = f"± {100 * widths.median():.2g} %" if widths.notna().any() else "unknown"
        return (
            f"± {100 * half_width:g} % of the mean makespan in {reached} of {len(widths)} rows; "
            f"median {median}"
        )

    def _cells(self, suffix: str, table: pd.DataFrame) -> Cells:
        return cells_of(table, f"{self.stem}{suffix}.csv")


def file_stem(name: str) -> str:
    """Return a name for files.

    >>> file_stem("figure 3/a"), file_stem("///")
    ('figure_3_a', 'sweep')
    """
    return re.sub(r"[^\w.-]+", "_", name).strip("_.") or "sweep"
