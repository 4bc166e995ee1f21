"""The command ``datacollect measure cycle``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from datacollect.commands.console import emit, emit_json, note_text
from datacollect.commands.options import Json
from datacollect.errors import ProblemError
from datacollect.files.choices import MeasuredPairs
from datacollect.measuring.commands.tools import NOT_ALL_DONE, DryRun, Folder, Hosts, Patience
from datacollect.measuring.operator.tools import usual_tools


def cycle(
    hosts_file: Hosts,
    folder: Folder = "samples",
    tools: Annotated[
        list[str] | None,
        typer.Option(
            "--tools",
            metavar="TOOLS",
            help="Tests to run, such as ping,tcp; flood: all hosts send to the destination at "
            "once, and hosts that a plan asks for more than was shown; shared: which links "
            f"share a wire.  [default: {','.join(usual_tools())},flood,shared]",
        ),
    ] = None,
    only: Annotated[
        MeasuredPairs | None,
        typer.Option(
            "--only",
            help="Test the pairs that may decide when all data have arrived (matter), or all.  "
            "[default: matter above 30 hosts]",
        ),
    ] = None,
    patience_s: Patience = 120.0,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Measure all hosts within the budget of their file, no test disturbing another.

    Killed anywhere and started again it goes on with what is not done yet.
    """
    from datacollect.measuring.cycle.measure_cycle import lines_of, measure_cycle
    from datacollect.measuring.cycle.planning import DEFAULT_TOOLS, plan_cycle_of
    from datacollect.measuring.plan.hosts_file import HostsFile

    names = [name for text in tools or () for name in text.replace(",", " ").split()]
    if tools and not names:
        raise ProblemError(f"--tools names no tool; leave it out for {', '.join(DEFAULT_TOOLS)}")
    hosts = HostsFile.from_file(hosts_file)
    if dry_run:
        planned = plan_cycle_of(hosts, Path(folder), names or DEFAULT_TOOLS, only)
        chosen, comparison, floods = planned.chosen, planned.comparison, planned.host_floods
        if as_json:
            emit_json(
                {
                    "cycle": planned.record.number,
                    "rounds": [
                        [{"from": tail, "to": head} for tail, head in one] for one in planned.rounds
                    ],
                    "left_out": [{"from": tail, "to": head} for tail, head in chosen.unpaid],
                    "without_agent": list(planned.without_agent),
                    "most_bytes": planned.cost.n_bytes,
                    "most_s": planned.cost.seconds,
                    "host_floods_most_bytes": floods and floods.n_bytes,
                    "host_floods_most_s": floods and floods.seconds,
                    "comparison_most_bytes": comparison and comparison.n_bytes,
                    "comparison_most_s": comparison and comparison.seconds,
                }
            )
            return
        for line in planned.lines():
            note_text(line)
        for number, one in enumerate(planned.rounds):
            emit(f"round {number + 1}: {', '.join(f'{tail} → {head}' for tail, head in one)}")
        return
    done = measure_cycle(
        hosts,
        folder,
        tools=names or DEFAULT_TOOLS,
        only=only,
        patience_s=patience_s,
        tell=note_text,
    )
    if as_json:
        emit_json(
            {
                "folder": folder,
                "cycle": done.number,
                "tests": done.tests,
                "failed": done.failed,
                "left_out": [{"from": tail, "to": head} for tail, head in done.left_out],
                "without_agent": list(done.without_agent),
                "failures": [
                    {"tool": one.tool, "from": one.pair[0], "to": one.pair[1], "ended": one.why}
                    for one in done.failures
                ],
            }
        )
    else:
        for line in lines_of(done.failures):
            note_text(line)
        emit(f"cycle {done.number}: {done.tests} tests, {done.failed} of them failed")
    if done.failed:
        raise typer.Exit(NOT_ALL_DONE)
