"""The report: from the folders of sweeps to pictures, tables, verdicts of a hook, and one page."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datacollect.errors import ProblemError
from datacollect.files.documents import write_atomically
from datacollect.files.notebook import html_of_facts
from datacollect.files.plotly_script import plotly_script
from datacollect.files.stages import counting, stage
from datacollect.files.units import counted, format_duration
from datacollect.study.opening import make_folder
from datacollect.study.report.across import across_table
from datacollect.study.report.cells import Cells, cells_of
from datacollect.study.report.figures import picture_bytes
from datacollect.study.report.folders import read_sweeps
from datacollect.study.report.known_hooks import hook_for
from datacollect.study.report.own import SweepReport, require_over, sweep_report
from datacollect.study.report.page import (
    MOST_RUNS,
    claims_tree,
    page_html,
    run_tree,
    sweep_tree,
)
from datacollect.study.report.panels import panels_table
from datacollect.study.report.tables import prediction_table, summary_table
from datacollect.study.report.verdicts import Verdicts, no_verdicts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from os import PathLike

    import pandas as pd
    from matplotlib.figure import Figure

    from datacollect.study.report.folders import SweepFolder
    from datacollect.study.report.verdicts import Hook

PAGE, CLAIMS, SWEEPS, FOLDER = "index.html", "claims.csv", "sweeps.csv", "report"


@dataclass(frozen=True, eq=False)
class Report:
    """Contents of a report.

    Attributes
    ----------
    folder : Path
    page : Path or None
        None where Plotly, which draws it, is not installed; all else is there.
    sweeps : tuple of SweepReport
        Own results, sweep by sweep; those with no finished run are left out.
    verdicts : Verdicts
        What the hook found; no claims where there was no hook.
    known_hook : str
        Folder of this project's repository whose hook judges such sweeps; empty where none does,
        or where a hook was given.
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
    verdicts: Verdicts
    known_hook: str
    files: tuple[str, ...]
    n_runs: int
    n_unreadable: int
    unreadable: tuple[str, ...] = ()

    def __repr__(self) -> str:
        sweeps, runs = counted(len(self.sweeps), "sweep"), counted(self.n_runs, "run")
        return f"<Report: {sweeps}, {runs}, {counted(len(self.files), 'file')} in {self.folder}>"

    def _repr_html_(self) -> str:
        """Show the report in a notebook: where it is, and what of."""
        return html_of_facts(
            "Report",
            [
                ("page", str(self.page or "none: Plotly is not installed")),
                ("folder", str(self.folder)),
                ("sweeps", ", ".join(sweep.name for sweep in self.sweeps)),
                ("runs", str(self.n_runs)),
                ("files", str(len(self.files))),
            ],
        )

    def plots(self) -> list[Figure]:
        """Draw the figures of all sweeps, as the report's files have them.

        Returns
        -------
        list of matplotlib.figure.Figure
            In the order of `sweeps`.

        Examples
        --------
        >>> import tempfile
        >>> import datacollect as dc
        >>> scenario = {
        ...     "topology": {"kind": "line", "n_nodes": 2, "rate_bytes_per_s": 1e6},
        ...     "hosts": {
        ...         "destination": {"at": "N0"},
        ...         "sources": [{"at": "N1", "backlog_bytes": 1_000_000}],
        ...     },
        ... }
        >>> rates = {"name": "rate", "key": "topology.rate_bytes_per_s", "values": [1e5, 1e6]}
        >>> experiment = dc.Experiment.from_dict(
        ...     {"engine": "fluid", "seeds": {"least": 2, "batch": 2}, "axes": [rates]},
        ...     scenario=scenario,
        ... )
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = dc.sweep(experiment, folder, workers=0)
        ...     len(dc.report(folder).plots())
        1
        """
        return [figure for sweep in self.sweeps for figure in sweep.plots()]

    @property
    def claims(self) -> pd.DataFrame:
        """The hook's claims with their verdicts, as in ``claims.csv``."""
        return self.verdicts.claims


def report(
    directory: str | PathLike[str],
    output: str | PathLike[str] | None = None,
    *,
    over: Mapping[str, str] | None = None,
    verdicts: Hook | None = None,
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
        with one connection per source, or, where that was not run, the first treatment in the file.
    verdicts : callable, optional
        A hook that judges claims: it gets the sweeps, a list of
        `datacollect.study.report.folders.SweepFolder`, and returns
        `datacollect.study.report.verdicts.Verdicts`.
    before_writing : callable
        Called with the path of each file before the first is written; may raise.

    Returns
    -------
    Report
        ``index.html`` is one page that needs no network, if Plotly is installed. For each sweep
        there are pictures (PNG and SVG) and, as CSV, its own results, all numbers drawn, a summary
        of each setting and one over all settings, predictions against measurements, and the runs;
        ``sweeps.csv`` has how the numbers were made. Where the hook found verdicts, ``claims.csv``
        has them, and each of its own tables is a CSV as well.

    Raises
    ------
    ProblemError
        There is no sweep, none of its runs is finished, `over` names what is not there, the hook
        returns something else than verdicts, or `output` cannot be written.

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
    with stage(f"reading {directory}"):
        sweeps = read_sweeps(directory)
    require_over(sweeps, over or {})
    with stage("judging claims"):
        found = _judged(sweeps, verdicts)
    folder = Path(directory, FOLDER) if output is None else Path(output)
    make_folder(folder, "the report")
    files: dict[str, bytes] = {}
    reports: list[SweepReport] = []
    trees: list[dict[str, Any]] = []
    runs: dict[str, Any] = {}
    quota = max(1, MOST_RUNS // len(sweeps))
    for sweep in sweeps:
        if sweep.table.empty:
            continue
        with stage(f"drawing {sweep.name}") as shown_of_it:
            parts = _Parts(sweep, over)
            files |= parts.files()
            shown = parts.runs(quota)
            shown_of_it.append(counted(len(sweep.table), "run"))
        runs |= shown
        reports.append(parts.report)
        trees.append(
            sweep_tree(sweep, parts.facts(), parts.panels, parts.tables, parts.report, list(shown))
        )
    judged = [cells_of(found.claims, CLAIMS)]
    judged += [cells_of(table, f"{name}.csv") for name, table in found.tables.items()]
    files |= {cells.file: cells.to_csv().encode() for cells in judged if cells.rows}
    facts = [[tree["name"], *fact] for tree in trees for fact in tree["facts"]]
    files[SWEEPS] = Cells(SWEEPS, ["sweep", "fact", "value"], facts).to_csv().encode()
    title = f"Report: {', '.join(tree['name'] for tree in trees)}"
    if plotly is not None:
        files[PAGE] = page_html(title, claims_tree(found, judged[0]), trees, runs, plotly).encode()
    for name in files:
        before_writing(folder / name)
    for name, content in files.items():
        write_atomically(folder / name, content)
    for name in {*(cells.file for cells in judged), PAGE} - files.keys():
        (folder / name).unlink(missing_ok=True)  # of a report before, which had it
    return Report(
        folder=folder,
        page=folder / PAGE if PAGE in files else None,
        sweeps=tuple(reports),
        verdicts=found,
        known_hook=hook_for(sweeps) if verdicts is None else "",
        files=tuple(sorted(files)),
        n_runs=sum(len(sweep.table) for sweep in sweeps),
        n_unreadable=sum(sweep.n_unreadable for sweep in sweeps),
        unreadable=tuple(str(sweep.folder / name) for sweep in sweeps for name in sweep.unreadable),
    )


def _judged(sweeps: list[SweepFolder], hook: Hook | None) -> Verdicts:
    """Return what a hook returns; refused where one of its tables is called as the report's own."""
    if hook is None:
        return no_verdicts()
    found = hook(sweeps)
    if not isinstance(found, Verdicts):
        raise ProblemError(
            f"verdicts: a hook must return datacollect.Verdicts, got {type(found).__name__}"
        )
    for name in found.tables:
        if f"{name}.csv" in (CLAIMS, SWEEPS):
            raise ProblemError(
                f"verdicts: {name}.csv is another table of the report; give the hook's "
                "table another name"
            )
    return found


class _Parts:
    """Figures and tables of one sweep."""

    def __init__(self, sweep: SweepFolder, over: Mapping[str, str] | None) -> None:
        self.sweep, self.stem = sweep, file_stem(sweep.name)
        self.report = sweep_report(sweep, over)
        self.panels = list(self.report.panels)
        self.summary = summary_table(sweep)
        self.tables = {
            "own": self._cells("_own", self.report.own.table),
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
        figures = self.report.plots()
        with counting(len(figures), "figures") as step:
            for i, figure in enumerate(figures):
                stem = self.stem if i == 0 else f"{self.stem}-{i + 1}"
                for suffix in ("png", "svg"):
                    found[f"{stem}.{suffix}"] = picture_bytes(figure, suffix)
                step()
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
            ("processor time", format_duration(self.report.cpu_cost.total_s)),
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
