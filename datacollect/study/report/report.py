"""From the folders of sweeps to pictures, tables, verdicts on the paper's claims, and one page."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datacollect.files.documents import write_atomically
from datacollect.files.units import format_duration
from datacollect.study.opening import make_folder
from datacollect.study.report.across import across_table
from datacollect.study.report.cells import Cells, cells_of
from datacollect.study.report.claims import claims_table, findings
from datacollect.study.report.figures import draw_panels, panel_groups, picture_bytes
from datacollect.study.report.folders import read_sweeps
from datacollect.study.report.own import SweepReport, require_over, sweep_report
from datacollect.study.report.page import MOST_RUNS, page_html, plotly_script, run_tree, sweep_tree
from datacollect.study.report.panels import panels_of, panels_table
from datacollect.study.report.readings import readings_table
from datacollect.study.report.tables import prediction_table, summary_table
from datacollect.study.report.verdicts import NOT_RUN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from os import PathLike

    import pandas as pd

    from datacollect.study.report.folders import SweepFolder
    from datacollect.study.report.panels import Panel

PAGE, CLAIMS, SWEEPS, FOLDER = "index.html", "claims.csv", "sweeps.csv", "report"
READINGS = "readings.csv"

# Claims that are computed by hand rather than from runs.
WITHOUT_RUNS = "C12"


@dataclass(frozen=True, eq=False)
class Report:
    """What a report consists of.

    Attributes
    ----------
    folder : Path
    page : Path or None
        None where Plotly, which draws it, is not installed; all else is there.
    sweeps : tuple of SweepReport
        Own results, sweep by sweep; those with no finished run are left out.
    claims : DataFrame
        The fields of `datacollect.study.report.judging.Finding`; no rows where no run is in a
        setting that the core paper's claims speak of.
    files : tuple of str
        Names of all files in the folder, sorted.
    n_runs : int
    n_unreadable : int
        Files of runs that are cut short, and left out.
    unreadable : tuple of str
        What they are called.
    """

    folder: Path
    page: Path | None
    sweeps: tuple[SweepReport, ...]
    claims: pd.DataFrame
    files: tuple[str, ...]
    n_runs: int
    n_unreadable: int
    unreadable: tuple[str, ...] = ()


def report(
    directory: str | PathLike[str],
    output: str | PathLike[str] | None = None,
    *,
    over: Mapping[str, str] | None = None,
    before_writing: Callable[[Path], None] = lambda _: None,
) -> Report:
    """Write the report of one sweep, or of all sweeps right below a folder.

    Parameters
    ----------
    directory : path-like
        Folder that `datacollect.study.sweep.sweep` filled, or one that holds several such. A sweep
        that is still running has a report of what is finished.
    output : path-like, optional
        Folder to write to; by default ``report`` in `directory`. Made if need be.
    over : mapping, optional
        What makespans are compared with in own results: labels by paired axis. By default direct
        with one connection per source, or, where that was not run, the first way in the file.
    before_writing : callable
        Called with the path of each file before the first is written; may raise.

    Returns
    -------
    Report
        ``index.html`` is one page that needs no network, if Plotly is installed. For each sweep
        there are pictures (PNG and SVG) and, as CSV, its own results, all numbers drawn, a summary
        of each setting and one over all settings, predictions against measurements, and the runs;
        ``sweeps.csv`` has how the numbers were made. Where the core paper's claims could be judged,
        ``claims.csv`` has the verdicts, ``readings.csv`` those under other readings of its text, if
        any were run.

    Raises
    ------
    ProblemError
        There is no sweep, none of its runs is finished, `over` names what is not there, or
        `output` cannot be written.

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
    >>> found.n_runs, found.files[:3]
    (4, ('experiment.csv', 'experiment.png', 'experiment.svg'))
    >>> own = found.sweeps[0].own.table
    >>> own.set_index("rate")["makespan_s"].round(1).to_dict()
    {'100000': 10.4, '1e+06': 1.1}
    >>> found.sweeps[0].chance.words
    'Nothing is random here: 2 seeds are the same. One is enough: --seeds 1.'
    """
    plotly = plotly_script()
    sweeps = read_sweeps(directory)
    require_over(sweeps, over or {})
    folder = Path(directory, FOLDER) if output is None else Path(output)
    make_folder(folder, "the report")
    files: dict[str, bytes] = {}
    told: list[SweepReport] = []
    trees: list[dict[str, Any]] = []
    runs: dict[str, Any] = {}
    quota = max(1, MOST_RUNS // len(sweeps))
    for sweep in sweeps:
        if sweep.table.empty:
            continue
        parts = _Parts(sweep, over)
        files |= parts.files()
        shown = parts.runs(quota)
        runs |= shown
        told.append(parts.told)
        trees.append(
            sweep_tree(sweep, parts.facts(), parts.panels, parts.tables, parts.told, list(shown))
        )
    claims = _claims(sweeps)
    cells = cells_of(claims, CLAIMS)
    if not claims.empty:
        files[CLAIMS] = cells.to_csv().encode()
    readings = readings_table(sweeps)
    if not readings.empty:
        files[READINGS] = cells_of(readings, READINGS).to_csv().encode()
    facts = [[tree["name"], *fact] for tree in trees for fact in tree["facts"]]
    files[SWEEPS] = Cells(SWEEPS, ["sweep", "fact", "value"], facts).to_csv().encode()
    title = f"Report: {', '.join(tree['name'] for tree in trees)}"
    if plotly is not None:
        files[PAGE] = page_html(title, cells, trees, runs, plotly).encode()
    for name in files:
        before_writing(folder / name)
    for name, content in files.items():
        write_atomically(folder / name, content)
    for name in {CLAIMS, PAGE} - files.keys():
        (folder / name).unlink(missing_ok=True)  # of a report before, which had it
    return Report(
        folder=folder,
        page=folder / PAGE if PAGE in files else None,
        sweeps=tuple(told),
        claims=claims,
        files=tuple(sorted(files)),
        n_runs=sum(len(sweep.table) for sweep in sweeps),
        n_unreadable=sum(sweep.n_unreadable for sweep in sweeps),
        unreadable=tuple(str(sweep.folder / name) for sweep in sweeps for name in sweep.unreadable),
    )


def _claims(sweeps: list[SweepFolder]) -> pd.DataFrame:
    """Verdicts, or none where no run has to do with a claim: most sweeps ask other questions."""
    table = claims_table(findings(sweeps))
    judged = table[(table["verdict"] != NOT_RUN) & (table["claim"] != WITHOUT_RUNS)]
    return table[:0] if judged.empty else table


class _Parts:
    """What is drawn and written of one sweep."""

    def __init__(self, sweep: SweepFolder, over: Mapping[str, str] | None) -> None:
        self.sweep, self.stem = sweep, file_stem(sweep.name)
        self.told = sweep_report(sweep, over)
        self.panels: list[Panel] = panels_of(sweep)
        self.summary = summary_table(sweep)
        self.tables = {
            "own": self._cells("_own", self.told.own.table),
            "summary": self._cells("_summary", self.summary),
            "prediction": self._cells("_prediction", prediction_table(sweep)),
        }
        if self.panels:
            self.tables["figure"] = self._cells("", panels_table(self.panels))
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
        versions = tree.get("versions") or {}
        return [
            ("engine, size", f"{sweep.engine}, scale {sweep.scale:g}"),
            ("runs", f"{len(table)}, of them {int((~table['complete']).sum())} incomplete"),
            ("failed", str(len(sweep.failures))),
            ("files cut short", str(sweep.n_unreadable)),
            ("settings run", f"{n_run} of {len(sweep.settings())}"),
            ("seeds of a setting", f"{seeds.min()} to {seeds.max()}"),
            ("precision", self._precision()),
            ("processor time", format_duration(self.told.spent.total_s)),
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
