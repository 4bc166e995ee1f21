"""The command ``datacollect sweep``: options, progress with time left, the answer for people."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from datacollect.commands.console import (
    complain,
    emit_facts,
    emit_json,
    emit_text,
    is_watched,
    note,
    on_terminal,
    progress_shown,
)
from datacollect.commands.options import Dask, Json, Processes, require_at_most_one
from datacollect.commands.streams import without_logs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pandas as pd

    from datacollect.study.axes import Axis
    from datacollect.study.sweep import SweepProgress

FAILED = 3


def sweep(
    experiment: Annotated[
        str, typer.Argument(metavar="EXPERIMENT", help="Experiment file, TOML or JSON.")
    ],
    output: Annotated[
        str,
        typer.Option("-o", "--output", metavar="DIR", help="Folder of results, old and new."),
    ],
    workers: Processes = None,
    dask: Dask = None,
    scale: Annotated[
        float | None,
        typer.Option(
            "--scale", metavar="X", help="Factor on backlogs, and on probes without their own."
        ),
    ] = None,
    probe_scale: Annotated[
        float | None,
        typer.Option("--probe-scale", metavar="X", help="Factor on the size of probes alone."),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option("--seeds", metavar="N", min=1, help="Most seeds of each setting."),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="AXIS=LABEL,LABEL",
            help="Run these labels of an axis; repeatable, for other axes.",
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option("--data", metavar="DIR", help="Folder that stands for {data} in the file."),
    ] = None,
    reuse: Annotated[
        list[str] | None,
        typer.Option(
            "--reuse",
            metavar="DIR",
            help="Reuse identical runs of another sweep, or its published rows; repeatable.",
        ),
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Try again what failed at an earlier start.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Carry out an experiment's runs that DIR does not have yet.

    However it ends, the same command continues where it was; so it does with more seeds, or with
    more values of an axis. Exit code 3 where runs failed.
    """
    from datacollect.study.report.folders import axes_of
    from datacollect.study.sweep import sweep as carry_out_sweep

    require_at_most_one({"--workers": workers, "--dask": dask})
    latest: list[SweepProgress] = []
    with showing_progress() as show, without_logs():

        def progress(now: SweepProgress) -> None:
            if now.trouble and not (latest and latest[0].trouble == now.trouble):
                complain(f"warning: {now.trouble}")
            latest[:] = [now]
            show(now)

        table = carry_out_sweep(
            experiment,
            output,
            workers=workers,
            dask=dask,
            scale=scale,
            probe_scale=probe_scale,
            seeds_most=seeds,
            only=labels_by_axis(experiment, only or (), data),
            data=data,
            reuse=reuse or (),
            retry_failed=retry_failed,
            progress=progress,
        )
    now, axes = latest[0], axes_of(output)
    if as_json:
        emit_json(_tree(output, now, table, axes))
    else:
        _show(output, now, table, axes)
    if now.failed:
        complain(f"one of the runs that failed: {now.last_failure}")
        raise typer.Exit(FAILED)


def _tree(
    folder: str, now: SweepProgress, table: pd.DataFrame, axes: Sequence[Axis]
) -> dict[str, Any]:
    from datacollect.study.chance import chance_in
    from datacollect.study.cpu_cost import processor_time

    spent, chance = processor_time(table), chance_in(table, axes)
    return {
        "folder": folder,
        "runs": len(table),
        "kept": now.kept,
        "new": len(table) - now.kept,
        "settings": now.settings,
        "finished_settings": now.finished_settings,
        "failed": now.failed,
        "last_failure": now.last_failure if now.failed else None,
        "cpu_s": spent.total_s,
        "runs_cpu_s": spent.runs_s,
        "measurements_cpu_s": spent.measurements_s,
        "nothing_is_random": chance.has_no_part,
    }


def _show(folder: str, now: SweepProgress, table: pd.DataFrame, axes: Sequence[Axis]) -> None:
    from datacollect.study.chance import chance_in
    from datacollect.study.cpu_cost import processor_time

    kept = f": {now.kept} kept, {len(table) - now.kept} new" if now.kept else ""
    emit_facts(
        [
            ("runs", f"{len(table)} in {folder}{kept}"),
            ("settings", f"{now.finished_settings} of {now.settings} finished"),
            ("time", processor_time(table).words),
            ("failed", f"{now.failed}, in {folder}/failed.jsonl" if now.failed else "none"),
            ("next", f"datacollect report {folder}"),
        ]
    )
    if words := chance_in(table, axes).words:
        emit_text(words)


def labels_by_axis(
    experiment: str, parts: Sequence[str], data: str | None = None
) -> dict[str, list[str]]:
    """Read the options --only, with the axes of the experiment that they choose from."""
    if not parts:
        return {}
    from datacollect.study.axes import chosen_labels
    from datacollect.study.experiment import Experiment

    axes = Experiment.from_file(experiment, data=data).axes
    found: dict[str, list[str]] = {}
    for part in parts:
        name, labels = chosen_labels(axes, part)
        found.setdefault(name, []).extend(labels)
    return found


class SweepPace:
    """Says how far a sweep is, how many runs end, and how long what is known to be to do takes.

    Runs take unlike long: the remaining time follows from their expected times, and from how
    these were kept to of late.
    """

    def __init__(self) -> None:
        from datacollect.numbers.pace import Pace

        self._runs, self._work = Pace(), Pace()

    def words(self, now: SweepProgress) -> str:
        """Return progress in words."""
        from datacollect.numbers.pace import left_words, percent_words, two_digits

        ended = now.done + now.failed
        self._runs.note(now.elapsed_s, ended)
        left = None
        if now.left_s is None:
            self._work.note(now.elapsed_s, 0.0)
        elif now.to_do:
            share = now.elapsed_s / max(now.elapsed_s + now.left_s, 1e-9)
            self._work.note(now.elapsed_s, share)
            left = self._work.left_s(1 - share) or (now.left_s, now.left_s)
        n_runs = ended + now.to_do
        parts = [f"{percent_words(ended, n_runs)}: {now.done} of {n_runs} runs done"]
        parts += [f"{now.kept} kept from before"] if now.kept else []
        parts += [f"{now.failed} failed"] if now.failed else []
        parts.append(f"{now.finished_settings} of {now.settings} settings finished")
        if self._runs.rate and now.to_do:
            parts.append(f"{two_digits(60 * self._runs.rate)} runs a minute")
        parts += filter(None, [left_words(left)])
        return ", ".join(parts)


@contextmanager
def showing_progress() -> Iterator[Callable[[SweepProgress], None]]:
    """Show progress on standard error: on a terminal in place, else a line now and then."""
    pace, is_told = SweepPace(), False
    with progress_shown() as tell:

        def show(now: SweepProgress) -> None:
            nonlocal is_told
            words = pace.words(now)
            tell(words)
            # Where nobody watches, the first at once: what is kept from before is to be seen.
            if is_watched() and not (is_told or on_terminal(sys.stderr)):
                note(words)
            is_told = True

        tell("reading …")
        yield show
