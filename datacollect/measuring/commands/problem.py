"""The command ``datacollect measure problem``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from datacollect.commands.console import emit_json, emit_table, note, note_text, working
from datacollect.commands.conversion import number_in
from datacollect.commands.inputs import require_kept
from datacollect.commands.instants import start_text
from datacollect.commands.options import Force, Json, Output, require_new
from datacollect.commands.problem_options import (
    MOST_NAMED,
    Backlogs,
    Start,
    backlogs_by_host,
)
from datacollect.commands.reading import write_text
from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    import pandas as pd

    from datacollect.measurement.sample_store import StoredSamples
    from datacollect.measuring.plan.hosts_file import HostsFile
    from datacollect.measuring.plan.rounds import Pair
    from datacollect.measuring.results.mathis_check import ComparedWithReno
    from datacollect.measuring.results.samples_to_problem import ProblemOfSamples
    from datacollect.measuring.results.unknown import Unknown


def problem(
    samples: Annotated[
        str, typer.Argument(metavar="SAMPLES", help="Folder that tests have written into.")
    ],
    hosts: Annotated[
        str | None,
        typer.Option(
            "--hosts",
            metavar="HOSTS.toml",
            help="File that says which hosts take part, and which collects.",
        ),
    ] = None,
    destination: Annotated[
        str | None,
        typer.Option(
            "--destination",
            metavar="NAME",
            help="The host that collects all data; default: that of --hosts.",
        ),
    ] = None,
    backlog: Backlogs = None,
    half_life: Annotated[
        str,
        typer.Option("--half-life", metavar="TIME", help="Age at which a sample weighs half."),
    ] = "1 d",
    streams: Annotated[
        int | None,
        typer.Option("--streams", min=1, metavar="N", help="Only tests with N connections count."),
    ] = None,
    timezone: Annotated[
        str,
        typer.Option(
            "--timezone", metavar="ZONE", help="Time zone in which day and night are told apart."
        ),
    ] = "UTC",
    start: Start = None,
    changes: Annotated[
        bool, typer.Option("--changes", help="Also show where bandwidths and routes have changed.")
    ] = False,
    from_pulls: Annotated[
        list[str] | None,
        typer.Option(
            "--from-pulls",
            metavar="DIR",
            help="Folder of pulls: what the pulls have shown of hosts and links counts, too; "
            "repeatable.",
        ),
    ] = None,
    output: Output = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Turn measurements into a problem file, and say what is not known.

    Each bandwidth has the interval in which it lies with 90 % certainty, where enough tests say so,
    and one number for day and one for night, where they differ every day.
    """
    from pathlib import Path

    from datacollect.files.kinds import Number
    from datacollect.files.toml_tables import toml_of
    from datacollect.measurement.sample_rules import ruled
    from datacollect.measuring.plan.hosts_file import HostsFile
    from datacollect.measuring.results.pulls_to_problem import with_pulls
    from datacollect.measuring.results.samples_to_problem import problem_of_samples
    from datacollect.measuring.results.unknown import unknown_of
    from datacollect.problem.fields import PROBLEM
    from datacollect.problem.problem import Problem
    from datacollect.transfer.store.promises import kept_pulls

    require_kept(output, samples)
    require_new(output, force=force)
    known = None if hosts is None else HostsFile.from_file(hosts)
    half_life_s = Number("seconds", positive=True).read(number_in(half_life), "--half-life")
    with working("reading samples"):
        stored = stored_samples(Path(samples))
    with working("estimating"):
        found = problem_of_samples(
            stored.frame,
            _destination(known, destination),
            hosts=None if known is None else known.hosts.keys(),
            backlog_bytes=backlogs_by_host(backlog, _names(stored.frame, known)),
            half_life_s=half_life_s,
            streams=streams,
            shared=() if known is None else known.shared,
            timezone=timezone,
            start=start_text(start, timezone),
        )
        for folder in from_pulls or ():
            found = with_pulls(found, kept_pulls(folder), folder)
        Problem.from_dict(found.tree)
    if output is not None or not as_json:
        write_text(toml_of(PROBLEM, found.tree).rstrip("\n"), output)
    with working("planning by what is known"):
        unknown = unknown_of(found, ruled(stored.frame).samples, _is_able(known))
    changed = _changes(found.samples, ruled(stored.frame).samples) if changes else {}
    unchanged = _said_of_none(changed, found.samples) if changes else []
    if as_json:
        answer = _answer(found, stored.damaged) | _unknown_answer(unknown, hosts) | changed
        emit_json(answer | {"notes": [*found.notes, *unchanged]})
    elif output is not None:
        _emit_links(found)
    for file in stored.damaged:
        note_text(f"note: {samples}/{file} is damaged and left out")
    _note_changes(changed)
    for text in unchanged:
        note_text(f"note: {text}")
    _note_what_is_known(found)
    _note_what_plans_lean_on(unknown, found.rates_bytes_per_s, hosts)


def stored_samples(folder: Path) -> StoredSamples:
    """Read the parts of a folder; refuse what holds none."""
    from datacollect.measurement.outcomes import listed
    from datacollect.measurement.sample_store import read_parts

    if not folder.is_dir():
        what = "is a file" if folder.exists() else "no such folder"
        raise ProblemError(f"{folder}: {what}; name the folder that tests have written into")
    stored = read_parts(folder)
    if stored.frame.empty and stored.damaged:
        raise ProblemError(
            f"{folder}: {_all_of(len(stored.damaged))} damaged ({listed(stored.damaged)}); "
            "measure again, or restore these files"
        )
    if stored.frame.empty:
        raise ProblemError(
            f"{folder}: holds no samples (NAME.parquet); name the folder that tests have written "
            "into"
        )
    return stored


def _all_of(n_files: int) -> str:
    return "its only file of samples is" if n_files == 1 else f"all {n_files} files of samples are"


def _destination(hosts: HostsFile | None, given: str | None) -> str:
    if given is not None:
        return given
    if hosts is None:
        raise ProblemError(
            "where do all data go? Give --hosts, a file with the destination, or --destination"
        )
    return hosts.destination


def _names(table: pd.DataFrame, hosts: HostsFile | None) -> list[str]:
    """Return all hosts that the samples, or the hosts' file, name."""
    return sorted({*table["from"], *table["to"], *(() if hosts is None else hosts.hosts)})


def _answer(found: ProblemOfSamples, damaged: Sequence[str]) -> dict[str, Any]:
    from dataclasses import asdict

    line = found.calibration
    return {
        "problem": found.tree,
        "links": found.links.to_dict("records"),
        "unknown": [
            {"from": tail, "to": head, "why": why} for (tail, head), why in found.unknown.items()
        ],
        "calibration": None if line is None else asdict(line),
        "daily": list(found.daily),
        "shared": [asdict(wire) for wire in found.wires],
        "reno": [_reno(link) for link in found.reno],
        "n_samples": len(found.samples),
        "damaged": list(damaged),
        "notes": list(found.notes),
    }


def _reno(link: ComparedWithReno) -> dict[str, Any]:
    from dataclasses import asdict

    said = asdict(link)
    tail, head = said.pop("link")
    return {"from": tail, "to": head, **said}


def _changes(samples: pd.DataFrame, table: pd.DataFrame) -> dict[str, list[dict[str, Any]]]:
    """Return what has changed, with names as in files."""
    from dataclasses import asdict

    from datacollect.measuring.results.changed_links import bandwidth_changes, changed_routes

    def named(change: Any) -> dict[str, Any]:
        said = asdict(change)
        return {"from": said.pop("tail"), "to": said.pop("head"), **said}

    return {
        "changes": [named(each) for each in bandwidth_changes(samples)],
        "route_changes": [named(each) for each in changed_routes(table)],
    }


def _said_of_none(
    changed: Mapping[str, Sequence[Mapping[str, Any]]], samples: pd.DataFrame
) -> list[str]:
    """Say where no change was found, and of which links too few samples would show one."""
    from datacollect.files.units import counted
    from datacollect.measurement.outcomes import listed
    from datacollect.measurement.series.changes import LEAST_SAMPLES

    n_samples = samples.groupby(["from", "to"]).size()
    few = [f"{tail} → {head}" for tail, head in n_samples.index[n_samples < LEAST_SAMPLES]]
    said = []
    if not changed["changes"] and len(few) < len(n_samples):
        said.append("no bandwidth was found to have changed")
    if few:
        said.append(
            f"not known whether bandwidths have changed: {counted(len(few), 'link')} with "
            f"fewer than {LEAST_SAMPLES} samples: {listed(few, MOST_NAMED)}"
        )
    if not changed["route_changes"]:
        said.append("no route was found to have changed")
    return said


def _note_changes(changed: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    from datacollect.files.units import format_rate

    states = {True: "confirmed", False: "not confirmed so far", None: "not confirmed"}
    bandwidths = changed.get("changes", ())
    for each in bandwidths:
        rates = " to ".join(format_rate(each[f"{of}_bytes_per_s"]) for of in ("before", "after"))
        state = states[each["confirmed"]]
        note_text(f"changed: {each['from']} → {each['to']} from {rates}, {_at(each)}; {state}")
    for each in changed.get("route_changes", ()):
        note_text(f"changed: the route {each['from']} → {each['to']}, {_at(each)}")
    if any(each["confirmed"] is None for each in bandwidths):
        from datacollect.installation import command_for_extra

        note_text(
            "note: the package ruptures would confirm these changes: "
            f"{command_for_extra('measure')}"
        )


def _at(change: Mapping[str, Any]) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(change["time_s"], UTC).isoformat(timespec="seconds")


def _is_able(hosts: HostsFile | None) -> Callable[[Pair], bool]:
    """Return whether a link can be flooded: both its hosts have agents, as far as it is known."""
    if hosts is None:
        return lambda _: True
    from datacollect.net.agent_entries import AgentEntry

    agents = {name for name, host in hosts.hosts.items() if isinstance(host, AgentEntry)}
    return lambda pair: {*pair} <= agents


def _note_what_plans_lean_on(
    unknown: Unknown, rates: Mapping[Pair, float], hosts: str | None
) -> None:
    """Name what a plan counts on and nobody knows, with the commands that measure it."""
    from datacollect.files.units import format_bytes, format_duration
    from datacollect.measurement.outcomes import listed
    from datacollect.measuring.cycle.several_links import comparison_of
    from datacollect.measuring.results.unknown import text_of
    from datacollect.methods.leaning.flood_tests import HOSTS_FILE

    file = hosts or HOSTS_FILE
    for leaning in unknown.leanings:
        note_text(text_of(leaning))
        if leaning.floods:
            note(f"  {leaning.floods[-1].test.command(file)}")
    for wire in unknown.wires.may_share:
        one, other, *_ = sorted(wire)
        cost = comparison_of((one, other), rates).cost
        links = listed([f"{tail} → {head}" for tail, head in sorted(wire)], MOST_NAMED)
        note_text(
            f"not known whether these links share a wire: {links}; they have a router in common. "
            f"A test of two of them takes at most {format_bytes(cost.n_bytes)} and "
            f"{format_duration(cost.seconds)}:"
        )
        note(f"  datacollect measure cycle {file} --tools trace,shared")
    if unknown.wires.unseen:
        links = listed([f"{tail} → {head}" for tail, head in unknown.wires.unseen], MOST_NAMED)
        note_text(
            f"not known whether these links share a wire with others: {links}; no public router "
            "of their routes is known. Write what you know into [[shared]]"
        )


def _unknown_answer(unknown: Unknown, hosts: str | None) -> dict[str, Any]:
    from datacollect.measuring.results.unknown import tree_of
    from datacollect.methods.leaning.flood_tests import HOSTS_FILE

    def links(pairs: Iterable[Pair]) -> list[dict[str, str]]:
        return [{"from": tail, "to": head} for tail, head in sorted(pairs)]

    return {
        "not_shown": [tree_of(leaning, hosts or HOSTS_FILE) for leaning in unknown.leanings],
        "may_share": [links(wire) for wire in unknown.wires.may_share],
        "unseen": links(unknown.wires.unseen),
    }


def _emit_links(found: ProblemOfSamples) -> None:
    """Show each bandwidth with its interval, beside the raw mean and the last sample."""
    from datacollect.files.units import format_rate
    from datacollect.problem.bandwidth_intervals import HIGH, LOW

    interval = {
        (link["from"], link["to"]): f"{format_rate(link[LOW])} – {format_rate(link[HIGH])}"
        for link in found.tree["links"]
        if LOW in link
    }
    rows = [
        [
            f"{row['from']} → {row['to']}",
            format_rate(row["bandwidth_bytes_per_s"]),
            interval.get((row["from"], row["to"]), "not known"),
            format_rate(row["mean_bytes_per_s"]),
            format_rate(row["last_bytes_per_s"]),
            str(row["n_samples"]),
        ]
        for row in found.links.to_dict("records")
    ]
    emit_table(["link", "bandwidth", "90 % interval", "mean", "last", "samples"], rows, "<>>>>>")


def _note_what_is_known(found: ProblemOfSamples) -> None:
    """Say how probes and tests compare, which hours differ, and which pairs have no link."""
    from datacollect.files.units import counted, format_rate
    from datacollect.measurement.outcomes import listed

    for text in found.notes:
        note_text(f"note: {text}")
    if line := found.calibration:
        note_text(
            f"connections get {line.slope:.3g} times the bandwidth that packet pairs show (R² "
            f"{line.r_squared:.2f} over {counted(line.n, 'link')})"
        )
    for wire in found.wires:
        links = listed([f"{tail} → {head}" for tail, head in wire.links], MOST_NAMED)
        note_text(
            f"these links share one wire of {format_rate(wire.bandwidth_bytes_per_s)}: {links}; "
            f"in {wire.held} of {counted(wire.n_tests, 'test')} of two links they got less "
            "together than alone"
        )
    if found.daily:
        note_text(f"bandwidths differ every day from {' and from '.join(found.daily)} on")
    for why in dict.fromkeys(found.unknown.values()):
        pairs = [f"{tail} → {head}" for (tail, head), of in found.unknown.items() if of == why]
        named = listed(pairs, MOST_NAMED)
        note_text(f"not known, {why}: {counted(len(pairs), 'link')}: {named}")
    n_links, n_samples = len(found.links), len(found.samples)
    note(f"{counted(n_links, 'link')} from {counted(n_samples, 'sample')}")
